//! The processes of a run under valgrind, by its log: which of them have counts, and of which some are lost.

use std::collections::{BTreeMap, BTreeSet};

/// Calls after which a process may not be able to write where it could before, as valgrind's log names them.
const LEAVING: [&str; 12] = [
    "chroot",
    "pivot_root",
    "setuid",
    "setgid",
    "setreuid",
    "setregid",
    "setresuid",
    "setresgid",
    "setfsuid",
    "capset",
    "unshare",
    "setns",
];

/// What the log says of processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Processes {
    /// How many programs each process has executed: valgrind begins anew in each, and names itself. A forked child that executes
    /// none is not among them.
    programs: BTreeMap<u32, u32>,
    /// Those that were forked.
    children: BTreeSet<u32>,
    /// A file that valgrind could not make.
    unwritten: Option<String>,
    /// Which of [`LEAVING`] were called.
    left_by: BTreeSet<&'static str>,
}

/// Whether all counts of a run are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// They are.
    Whole,
    /// Those of programs that another one replaced (`execve`) are lost.
    AtLeast,
}

impl Processes {
    /// Takes a line of the log. A line may have parts of two processes' lines.
    pub fn hear(&mut self, line: &str) {
        // "==7== Parent PID: 6": in the words with which valgrind begins.
        for (at, _) in line.match_indices("== Parent PID: ") {
            let digits = line[..at].rfind(|one: char| !one.is_ascii_digit()).map_or(0, |before| before + 1);
            if let Ok(process) = line[digits..at].parse() {
                *self.programs.entry(process).or_default() += 1;
            }
        }
        // "clone(fork): process 7 created child 8" (coregrind/m_syswrap/syswrap-linux.c).
        for (at, found) in line.match_indices(" created child ") {
            let number = line[at + found.len()..].split(|one: char| !one.is_ascii_digit()).next();
            self.children.extend(number.and_then(|number| number.parse::<u32>().ok()));
        }
        // "error: can't open cache simulation output file '/x/7'" (cachegrind/cg_main.c, fprint_CC_table_and_calc_totals).
        if let Some((_, rest)) = line.split_once("error: can't open ") {
            self.unwritten = rest.split('\'').nth(1).map(str::to_owned).or(self.unwritten.take());
        }
        for (at, found) in line.match_indices("sys_") {
            let name = line[at + found.len()..].split([' ', '(']).next().unwrap_or_default();
            self.left_by.extend(LEAVING.iter().find(|known| **known == name));
        }
    }

    /// How much of a run's counts the processes have that wrote some, or why they are not the run's.
    pub fn extent(&self, counted: &BTreeSet<u32>) -> Result<Extent, String> {
        let known: BTreeSet<u32> = self.programs.keys().chain(&self.children).copied().collect();
        let missing = known.difference(counted).count();
        if let Some(file) = self.unwritten.as_ref().filter(|_| missing > 0) {
            return Err(self.unwritten_reason(file));
        }
        // After fork(2) the child goes on counting from where its parent stood, and says all of it again. A child that
        // executes another program begins anew.
        if counted.iter().any(|process| !self.programs.contains_key(process)) {
            return Err(
                "it forks without executing another program, and valgrind counts what came before the fork twice"
                    .to_owned(),
            );
        }
        match (missing, known.len()) {
            (0, 0) => Err("valgrind left neither counts nor a word in its log".to_owned()),
            (0, _) if self.programs.values().any(|programs| *programs > 1) => Ok(Extent::AtLeast),
            (0, _) => Ok(Extent::Whole),
            (missing, all) => Err(format!(
                "{missing} of its {all} processes left no counts: valgrind writes them when a process ends, not if it is killed, \
                 or still runs at the program's end"
            )),
        }
    }

    fn unwritten_reason(&self, file: &str) -> String {
        let calls: Vec<&str> = self.left_by.iter().copied().collect();
        let why = match calls.is_empty() {
            true => String::new(),
            false => format!(": the program called {}, after which it may not reach it", calls.join(", ")),
        };
        format!("valgrind could not make its file of counts at the end of a process, {file}{why}")
    }
}

/// Whether a line is one of those that valgrind's tools write of every process: their name, and sums of counts.
pub(super) fn is_routine(line: &str) -> bool {
    const BEGINNINGS: [&str; 7] = [
        "Cachegrind, a ",
        "Copyright (C)",
        "Using Valgrind-",
        "Command: ",
        "Parent PID: ",
        "could not unlink ",
        "warning: ",
    ];
    const SUMS: [&str; 5] = ["refs:", "misses:", "rate:", "Branches:", "Mispredicts:"];
    // "==7== …" and "--7-- …".
    let said = line.trim_start_matches(['=', '-', ' ']).trim_start_matches(|one: char| one.is_ascii_digit());
    let said = said.trim_start_matches(['=', '-']).trim();
    let is_of_valgrind = line.starts_with("==") || line.starts_with("--");
    let is_begun = BEGINNINGS.iter().any(|beginning| said.starts_with(beginning));
    is_of_valgrind && (said.is_empty() || is_begun || SUMS.iter().any(|word| said.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(log: &[&str], counted: &[u32]) -> Result<Extent, String> {
        let mut processes = Processes::default();
        log.iter().for_each(|line| processes.hear(line));
        processes.extent(&counted.iter().copied().collect())
    }

    #[test]
    fn a_child_is_forked_without_executing_a_program_if_valgrind_does_not_begin_in_it() {
        let begun = "==7== Parent PID: 1\n";
        let forked = "SYSCALL[7,1](56) sys_clone ( 1200011, 0x0 )   clone(fork): process 7 created child 8\n";
        assert_eq!(extent(&[begun, forked, "==8== Parent PID: 7\n"], &[7, 8]), Ok(Extent::Whole));
        // Parts of two lines.
        let torn = "SYSCALL[7,1](3) sys_close ( 1 )==8== Parent PID: 7\n";
        assert_eq!(extent(&[begun, forked, torn], &[7, 8]), Ok(Extent::Whole));
        assert!(extent(&[begun, forked], &[7, 8]).unwrap_err().starts_with("it forks without executing"));
        assert!(extent(&[begun, forked], &[7])
            .unwrap_err()
            .starts_with("1 of its 2 processes left no counts"));
        assert_eq!(extent(&[begun, begun], &[7]), Ok(Extent::AtLeast));
        assert!(extent(&[], &[]).is_err());
    }

    #[test]
    fn a_file_that_valgrind_cannot_make_is_named_with_the_calls_before() {
        let begun = "==7== Parent PID: 1\n";
        let error = "==7== error: can't open cache simulation output file '/x/7'\n";
        let reason = extent(&[begun, "SYSCALL[7,1](105) sys_setuid ( 9 )[sync]\n", error], &[]).unwrap_err();
        assert_eq!(
            reason,
            "valgrind could not make its file of counts at the end of a process, /x/7: the program called setuid, after which \
             it may not reach it"
        );
        assert!(extent(&[begun, error], &[]).unwrap_err().ends_with("/x/7"));
    }

    #[test]
    fn what_valgrind_says_of_every_process_is_routine() {
        for line in
            ["==7== \n", "==7== Command: x\n", "==7== I   refs:      1\n", "--7-- warning: L3 cache\n"]
        {
            assert!(is_routine(line), "{line}");
        }
        for line in ["valgrind: Command: x\n", "==7== Valgrind: debuginfo reader: x\n", "Command: x\n"] {
            assert!(!is_routine(line), "{line}");
        }
    }
}
