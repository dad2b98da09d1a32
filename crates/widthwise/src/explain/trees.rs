//! Which logs are of one process tree: a program that could not reach the log of the process before it has a log of its own.

use widthwise_anatomy::heap::Header;

/// What a log says of one of its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its number.
    pub process: u32,
    /// The number of the process that started it.
    pub parent: u32,
    /// When it began, by CLOCK_MONOTONIC, in nanoseconds.
    pub began_ns: u64,
    /// It was not forked from another process of the log.
    pub is_root: bool,
    /// It ended by `exit`, by `_exit`, or by returning from `main`: what executes another program does not.
    pub has_ended: bool,
}

impl Member {
    /// Of a process's header.
    pub fn of(header: &Header) -> Member {
        Member {
            process: header.process,
            parent: header.parent_number,
            began_ns: header.began_ns,
            is_root: header.parent.is_none(),
            has_ended: header.ended,
        }
    }
}

/// Groups logs, by their indexes: each group is a process tree, and the groups are in the order of their first logs.
///
/// A log belongs to another one if its first process was executed by a process of that one, and so has its number, or was
/// started by one.
pub fn group(logs: &[Vec<Member>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = (0..logs.len()).map(|log| vec![log]).collect();
    for (later, members) in logs.iter().enumerate() {
        let before = (0..logs.len()).find(|before| *before != later && descends(members, &logs[*before]));
        let Some(before) = before else { continue };
        let position = |log: usize| groups.iter().position(|group| group.contains(&log));
        if let (Some(from), Some(to)) = (position(later), position(before)) {
            if from != to {
                let moved = std::mem::take(&mut groups[from]);
                groups[to].extend(moved);
            }
        }
    }
    groups.retain(|group| !group.is_empty());
    for group in &mut groups {
        group.sort_unstable();
    }
    groups.sort_unstable();
    groups
}

fn descends(members: &[Member], ancestors: &[Member]) -> bool {
    // The first one made the log; those that joined it later have what they need in it.
    let Some(first) = members.first().filter(|first| first.is_root) else { return false };
    ancestors.iter().any(|ancestor| {
        ancestor.began_ns < first.began_ns
            && (ancestor.process == first.process && !ancestor.has_ended || ancestor.process == first.parent)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(process: u32, parent: u32, began_ns: u64, is_root: bool) -> Member {
        Member { process, parent, began_ns, is_root, has_ended: false }
    }

    #[test]
    fn a_program_that_was_executed_or_started_belongs_to_the_tree_of_who_did_it() {
        let first = vec![member(10, 1, 100, true), member(11, 10, 200, false)];
        let executed = vec![member(11, 10, 300, true)];
        let started = vec![member(12, 11, 400, true)];
        let other = vec![member(20, 1, 150, true)];
        assert_eq!(group(&[first, started, other, executed]), [vec![0, 1, 3], vec![2]]);
    }

    #[test]
    fn two_runs_of_one_program_are_two_trees_though_numbers_come_round_again() {
        let run = |began_ns| vec![member(10, 1, began_ns, true), member(11, 10, began_ns + 1, false)];
        // The second run has another number; its parent is the same shell.
        let other = vec![member(30, 1, 500, true), member(31, 30, 501, false)];
        assert_eq!(group(&[run(100), other]), [vec![0], vec![1]]);
        // In containers numbers begin anew.
        let ended = vec![Member { has_ended: true, ..member(10, 1, 100, true) }];
        assert_eq!(group(&[ended, run(500)]), [vec![0], vec![1]]);
        // A process that began before the one that has the number of its parent was not started by that one.
        assert_eq!(group(&[run(100), vec![member(9, 10, 50, true)]]), [vec![0], vec![1]]);
    }
}
