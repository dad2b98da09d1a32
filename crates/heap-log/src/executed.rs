//! Programs that were executed and left no log.

use std::collections::BTreeMap;

use crate::decoder::{Exec, ExecState};
use crate::log::Header;

/// A process and the programs that it executed or started: [`crate::History::execs`].
#[derive(Debug, Clone, Copy)]
pub struct Executing<'a> {
    /// The process.
    pub header: &'a Header,
    /// In their order.
    pub execs: &'a [Exec],
}

/// The executed programs that left no log. `processes` are all processes that left one.
///
/// A process that was executed keeps its number and has no parent in the log. The system reuses numbers, so each such
/// process accounts for one execution, and it began after that execution.
pub fn without_log<'a>(processes: &[Executing<'a>]) -> Vec<&'a Exec> {
    let mut began: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for header in processes.iter().map(|process| process.header).filter(|header| header.parent.is_none()) {
        began.entry(header.process).or_default().push(header.began_ns);
    }
    let mut found = Vec::new();
    for (number, executions) in executions(processes) {
        let mut began = began.remove(&number).unwrap_or_default();
        began.sort_unstable();
        let mut began = began.into_iter().peekable();
        for execution in executions {
            // The clock of the execution is late by no more than its process's last reading of it.
            while began.next_if(|began| execution.is_later_than(*began)).is_some() {}
            if began.next().is_none() {
                found.push((execution.at_ns, execution.exec));
            }
        }
    }
    found.sort_by_key(|(at_ns, _)| *at_ns);
    found.into_iter().map(|(_, exec)| exec).collect()
}

struct Execution<'a> {
    /// CLOCK_MONOTONIC, in nanoseconds: the execution or an earlier moment.
    at_ns: u64,
    /// When the process began that executed or started it, if that has the same number.
    own_began_ns: Option<u64>,
    exec: &'a Exec,
}

impl Execution<'_> {
    fn is_later_than(&self, began_ns: u64) -> bool {
        began_ns < self.at_ns || self.own_began_ns.is_some_and(|own| began_ns <= own)
    }
}

/// Those that did not fail, by the number of the process, in the order of time.
fn executions<'a>(processes: &[Executing<'a>]) -> BTreeMap<u32, Vec<Execution<'a>>> {
    let mut executions: BTreeMap<u32, Vec<Execution>> = BTreeMap::new();
    for process in processes {
        let mut pending: BTreeMap<u32, Vec<&Exec>> = BTreeMap::new();
        for exec in process.execs {
            let of_number = pending.entry(exec.process).or_default();
            if exec.state == ExecState::Failed {
                // The failed execution is the one that the process announced last.
                if of_number.last().is_some_and(|last| last.state == ExecState::AboutTo) {
                    of_number.pop();
                }
            } else {
                of_number.push(exec);
            }
        }
        let header = process.header;
        for (number, execs) in pending {
            let all = executions.entry(number).or_default();
            all.extend(execs.into_iter().map(|exec| Execution {
                at_ns: header.began_ns.saturating_add(exec.time_ns),
                own_began_ns: (header.process == number).then_some(header.began_ns),
                exec,
            }));
        }
    }
    for all in executions.values_mut() {
        all.sort_by_key(|execution| execution.at_ns);
    }
    executions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Lost;

    fn header(process: u32, parent: Option<usize>, began_ns: u64) -> Header {
        Header {
            word: 8,
            machine: 62,
            process,
            parent,
            parent_number: 1,
            began_ns,
            inherited: 0,
            ended: true,
            has_stacks: true,
            own_malloc: false,
            glibc: true,
            linked: false,
            broken: 0,
            lost: Lost::default(),
            anonymous_bytes: 0,
            allocator: String::new(),
            program: String::new(),
        }
    }

    fn exec(process: u32, state: ExecState, path: &str, time_ns: u64) -> Exec {
        Exec { process, state, path: path.to_owned(), number: 0, time_ns }
    }

    fn paths(processes: &[(Header, Vec<Exec>)]) -> Vec<String> {
        let all: Vec<Executing> =
            processes.iter().map(|(header, execs)| Executing { header, execs }).collect();
        without_log(&all).into_iter().map(|exec| exec.path.clone()).collect()
    }

    #[test]
    fn a_program_that_was_executed_in_its_own_process_is_known_by_a_process_that_began_later() {
        let execs = vec![exec(5, ExecState::AboutTo, "/bin/next", 0)];
        let first = (header(5, None, 100), execs);
        assert_eq!(paths(std::slice::from_ref(&first)), ["/bin/next"]);
        let next = (header(5, None, 150), vec![]);
        assert_eq!(paths(&[first.clone(), next]), Vec::<String>::new());
        // An earlier process with the same number is another one, and a forked one was not executed.
        let (earlier, forked) = ((header(5, None, 50), vec![]), (header(5, Some(0), 150), vec![]));
        assert_eq!(paths(&[earlier, first, forked]), ["/bin/next"]);
    }

    #[test]
    fn what_failed_was_not_executed_and_each_process_stands_for_one_execution() {
        let execs = vec![
            exec(7, ExecState::AboutTo, "/usr/bin/a", 1),
            exec(7, ExecState::Failed, "/usr/bin/a", 1),
            exec(7, ExecState::AboutTo, "/bin/a", 1),
            exec(8, ExecState::Started, "/bin/b", 2),
            exec(8, ExecState::Started, "/bin/c", 9),
            exec(9, ExecState::AboutTo, "/bin/d", 3),
            exec(9, ExecState::Failed, "/bin/d", 3),
        ];
        let shell = (header(5, None, 100), execs);
        assert_eq!(paths(std::slice::from_ref(&shell)), ["/bin/a", "/bin/b", "/bin/c"]);
        let b = (header(8, None, 104), vec![]);
        assert_eq!(paths(&[shell, b]), ["/bin/a", "/bin/c"]);
    }
}
