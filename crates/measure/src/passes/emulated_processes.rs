//! The processes of a run under valgrind, by its log: which of them have counts, and of which some are lost.

use std::collections::{BTreeMap, BTreeSet};

use widthwise_experiment::outcome::LOST_BY_EXECVE;
use widthwise_machine::valgrind::of_itself;

use crate::passes::callgrind_parts::Part;

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
    /// Those that were forked, and whether callgrind began anew at that moment.
    children: BTreeMap<u32, bool>,
    /// What callgrind wrote before the end of a process.
    dumps: BTreeMap<u32, Dumps>,
    /// Parts that callgrind has written since they were last taken.
    written: Vec<Part>,
    /// A part that is not there.
    is_part_lost: bool,
    /// A file that valgrind could not make.
    unwritten: Option<String>,
    /// Which of [`LEAVING`] were called.
    left_by: BTreeSet<&'static str>,
    /// Why valgrind did not start in a process.
    refusal: Option<String>,
}

/// What callgrind wrote of a process before its end, at the entry of functions (`--dump-before`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Dumps {
    /// The last one's function, if neither a fork nor a program has followed.
    last: Option<String>,
    /// Whether the one that is being written is of a function: the last one, at the process's end, is of none.
    is_part: bool,
    /// How many there are of the program that the process now executes.
    parts: u32,
    /// Whether a program was replaced by another (`execve`) without one.
    is_replaced: bool,
    /// Whether there was one before the first program.
    is_before_first: bool,
}

/// Functions that execute another program in a process's place: glibc's and musl's.
pub(super) const EXECUTING: [&str; 4] = ["execve", "__execve", "fexecve", "execveat"];

/// The number that ends where `at` begins: a process, in valgrind's lines.
fn number_before(line: &str, at: usize) -> Option<u32> {
    let digits = line[..at].rfind(|one: char| !one.is_ascii_digit()).map_or(0, |before| before + 1);
    line[digits..at].parse().ok()
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
            if let Some(process) = number_before(line, at) {
                self.begins(process);
            }
        }
        // "clone(fork): process 7 created child 8" (coregrind/m_syswrap/syswrap-linux.c).
        for (at, found) in line.match_indices(" created child ") {
            let number = line[at + found.len()..].split(|one: char| !one.is_ascii_digit()).next();
            let Some(child) = number.and_then(|number| number.parse().ok()) else { continue };
            let parent = line[..at].rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
            let dump = self.dumps.entry(parent).or_default().last.take();
            self.children.insert(child, dump.is_some_and(|function| !EXECUTING.contains(&&*function)));
        }
        self.hear_dump(line);
        // "error: can't open cache simulation output file '/x/7'" (cachegrind/cg_main.c, fprint_CC_table_and_calc_totals), "Error: can
        // not open cache simulation output file `/x/7'" (callgrind/dump.c, file_err).
        for words in ["error: can't open ", "Error: can not open "] {
            if let Some((_, rest)) = line.split_once(words) {
                self.unwritten = rest.split(['\'', '`']).nth(1).map(str::to_owned).or(self.unwritten.take());
            }
        }
        for (at, found) in line.match_indices("sys_") {
            let name = line[at + found.len()..].split([' ', '(']).next().unwrap_or_default();
            self.left_by.extend(LEAVING.iter().find(|known| **known == name));
        }
    }

    /// Takes what was written to standard error: a valgrind that cannot load its program says so there, before it has a log.
    pub fn hear_errors(&mut self, said: &str) {
        let own = said.lines().filter(|line| line.trim_start().starts_with("valgrind: "));
        self.refusal = own.filter_map(of_itself).next().or(self.refusal.take());
    }

    /// A process begins with a program. The first one after a fork takes the place of the forked one.
    fn begins(&mut self, process: u32) {
        let programs = self.programs.entry(process).or_default();
        *programs += 1;
        let dumps = self.dumps.entry(process).or_default();
        let is_whole = dumps.last.take().is_some_and(|function| EXECUTING.contains(&&*function));
        dumps.is_replaced |= *programs > 1 && !is_whole;
        dumps.is_before_first |= *programs == 1 && is_whole;
        dumps.parts = 0;
    }

    /// "--7-- Start dumping at BB 12 (--dump-before=_Fork)...", and "--7-- Dumping done." (callgrind/dump.c, with `-v -v`).
    fn hear_dump(&mut self, line: &str) {
        const FUNCTION: &str = "(--dump-before=";
        for (at, _) in line.match_indices("-- Start dumping at BB ") {
            let Some(process) = number_before(line, at) else { continue };
            let dumps = self.dumps.entry(process).or_default();
            let function = line[at..].split_once(FUNCTION).and_then(|(_, rest)| rest.split(')').next());
            dumps.is_part = function.is_some();
            dumps.last = function.map(str::to_owned);
        }
        for (at, _) in line.match_indices("-- Dumping done.") {
            let Some(process) = number_before(line, at) else { continue };
            let dumps = self.dumps.entry(process).or_default();
            if dumps.is_part {
                dumps.parts += 1;
                let program = self.programs.get(&process).copied().unwrap_or(0);
                self.written.push(Part { process, program, number: dumps.parts });
            }
        }
    }

    /// The parts that callgrind has written since the last call.
    pub fn take_written(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.written)
    }

    /// A part is not there: the file cannot be made, or another one has taken its place.
    pub fn lose_part(&mut self) {
        self.is_part_lost = true;
    }

    /// Where each process has a log of its own, how often it was opened says which programs there were: once by a forked process,
    /// which begins its log with the same words, and once by each program, which empties it.
    pub fn opened(&mut self, process: u32, times: u32) {
        let programs = times.saturating_sub(u32::from(self.children.contains_key(&process)));
        self.programs.remove(&process);
        if programs > 0 {
            self.programs.insert(process, programs);
        }
        self.dumps.entry(process).or_default().is_replaced = programs > 1;
    }

    /// Whether a part has what a forked process counted of its parent's work.
    pub fn is_of_parent(&self, part: &Part) -> bool {
        part.program == 0 && self.children.get(&part.process) == Some(&false)
    }

    /// What a reader must know of forked processes that have executed a program: callgrind may not have written what they did before.
    pub fn between_fork_and_program(&self) -> Option<String> {
        let is_whole = |child: &u32| self.dumps.get(child).is_some_and(|dumps| dumps.is_before_first);
        let begun = self.children.iter().filter(|(child, _)| self.programs.contains_key(child));
        let count = begun.filter(|(child, is_seen)| !(**is_seen && is_whole(child))).count();
        let processes = if count == 1 { "process" } else { "processes" };
        (count > 0)
            .then(|| format!("what {count} forked {processes} did before executing a program is not counted"))
    }

    /// Whether the processes that wrote callgrind's counts at their end have all of a run's, or why not.
    pub fn all_of_callgrind(&self, counted: &BTreeSet<u32>) -> Result<(), String> {
        self.none_missing(counted)?;
        let is_seen = |process| self.children.get(process).copied().unwrap_or(false);
        if counted.iter().any(|process| !self.programs.contains_key(process) && !is_seen(process)) {
            return Err("valgrind did not see a fork: a forked process would count again what its parent counted before"
                .to_owned());
        }
        if self.is_part_lost {
            return Err("a part of valgrind's counts is not there that it wrote before the end of a process"
                .to_owned());
        }
        if self.dumps.values().any(|dumps| dumps.is_replaced) {
            return Err(format!("a process of it {LOST_BY_EXECVE}"));
        }
        Ok(())
    }

    /// All processes that the log knows.
    fn known(&self) -> BTreeSet<u32> {
        self.programs.keys().chain(self.children.keys()).copied().collect()
    }

    /// Whether every process wrote counts, or why not.
    fn none_missing(&self, counted: &BTreeSet<u32>) -> Result<(), String> {
        let known = self.known();
        let missing = known.difference(counted).count();
        if let Some(line) = self.refusal.as_ref().filter(|_| missing > 0) {
            let all = known.len();
            return Err(format!(
                "{missing} of its {all} processes left no counts: valgrind itself failed: {line}"
            ));
        }
        match (missing, known.len(), &self.unwritten) {
            (0, 0, _) => Err("valgrind left neither counts nor a word in its log".to_owned()),
            (0, ..) => Ok(()),
            (_, _, Some(file)) => Err(self.unwritten_reason(file)),
            (missing, all, None) => Err(format!(
                "{missing} of its {all} processes left no counts: valgrind writes them when a process ends, not if it is killed, \
                 or still runs at the program's end{}",
                match self.left_by.is_empty() {
                    true => String::new(),
                    false => format!(", or may not reach its file after it called {}", self.calls()),
                }
            )),
        }
    }

    /// Those of [`LEAVING`] that were called.
    fn calls(&self) -> String {
        self.left_by.iter().copied().collect::<Vec<&str>>().join(", ")
    }

    /// How much of a run's counts the processes have that wrote some, or why they are not the run's.
    pub fn extent(&self, counted: &BTreeSet<u32>) -> Result<Extent, String> {
        let missing = self.none_missing(counted);
        if self.unwritten.is_some() {
            missing.clone()?;
        }
        // After fork(2) the child goes on counting from where its parent stood, and says all of it again. A child that
        // executes another program begins anew.
        if counted.iter().any(|process| !self.programs.contains_key(process)) {
            return Err(
                "it forks without executing another program, and valgrind counts what came before the fork twice"
                    .to_owned(),
            );
        }
        missing?;
        match self.programs.values().any(|programs| *programs > 1) {
            true => Ok(Extent::AtLeast),
            false => Ok(Extent::Whole),
        }
    }

    fn unwritten_reason(&self, file: &str) -> String {
        let why = match self.left_by.is_empty() {
            true => String::new(),
            false => format!(": the program called {}, after which it may not reach it", self.calls()),
        };
        format!("valgrind could not make its file of counts at the end of a process, {file}{why}")
    }
}

/// Whether a line is one of those that valgrind's tools write of every process: their name, and sums of counts.
pub(super) fn is_routine(line: &str) -> bool {
    const FAILURES: [&str; 3] = ["ERROR", "WARNING", "nhandled"];
    const BEGINNINGS: [&str; 10] = [
        "Cachegrind, a ",
        "Callgrind, a ",
        "Events    :",
        "Collected :",
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
    // With `-v`, what it does: the files that it reads, the parts that it writes.
    let is_deed = line.starts_with("--") && !FAILURES.iter().any(|word| said.contains(word));
    is_of_valgrind && (said.is_empty() || is_deed || is_begun || SUMS.iter().any(|word| said.contains(word)))
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

    fn all_of_callgrind(log: &[&str], counted: &[u32]) -> Result<Vec<(u32, u32, u32)>, String> {
        let mut processes = Processes::default();
        log.iter().for_each(|line| processes.hear(line));
        processes.all_of_callgrind(&counted.iter().copied().collect())?;
        let written = processes.take_written();
        let kept = written.iter().filter(|part| !processes.is_of_parent(part));
        Ok(kept.map(|part| (part.process, part.program, part.number)).collect())
    }

    #[test]
    fn callgrind_has_all_counts_if_it_wrote_them_before_each_fork_and_each_program_in_a_processs_place() {
        let begun = "==7== Parent PID: 1\n";
        let fork = "--7-- Start dumping at BB 9 (--dump-before=_Fork)...\n--7-- Dumping done.\n";
        let forked = "   clone(fork): process 7 created child 8\n";
        let end = "--7-- Start dumping at BB 99 (Prg.Term.)...\n--7-- Dumping done.\n";
        let [seven, eight] = [7, 8].map(|process| {
            format!("SYSCALL[7,1](1) --{process}-- Start dumping at BB 9 (--dump-before=execve)...\n--{process}-- Dumping done.\n")
        });
        assert_eq!(all_of_callgrind(&[begun, fork, forked, end], &[7, 8]), Ok(vec![(7, 1, 1)]));
        let unseen = "valgrind did not see a fork";
        for log in [&[begun, forked, end][..], &[begun, &seven, forked], &[begun, fork, forked, forked]] {
            assert!(all_of_callgrind(log, &[7, 8]).unwrap_err().starts_with(unseen), "{log:?}");
        }
        // In a program that is executed in the place of another, parts have the same numbers again.
        let log = [begun, fork, forked, &eight, "==8== Parent PID: 7\n", &seven, begun, fork, end];
        assert_eq!(all_of_callgrind(&log, &[7, 8]), Ok(vec![(7, 1, 1), (8, 0, 1), (7, 1, 2), (7, 2, 1)]));
        let remark = |log: &[&str]| {
            let mut processes = Processes::default();
            log.iter().for_each(|line| processes.hear(line));
            processes.between_fork_and_program()
        };
        assert_eq!(remark(&log), None);
        // The forked process has what its parent counted before the fork.
        let log = [begun, forked, &eight, "==8== Parent PID: 7\n"];
        assert_eq!(all_of_callgrind(&log, &[7, 8]), Ok(vec![]));
        let expected = "what 1 forked process did before executing a program is not counted";
        assert_eq!(remark(&log).as_deref(), Some(expected));
        for log in [&[begun, begun][..], &[begun, fork, begun], &[begun, &seven, fork, begun]] {
            let reason = all_of_callgrind(log, &[7]).unwrap_err();
            assert!(reason.contains("in its place (execve)"), "{reason}");
        }
        let opened = |times: [u32; 2], fork| {
            let mut processes = Processes::default();
            [begun, fork, forked, "==8== Parent PID: 7\n"].iter().for_each(|line| processes.hear(line));
            processes.opened(7, times[0]);
            processes.opened(8, times[1]);
            let remark = processes.between_fork_and_program();
            processes.all_of_callgrind(&BTreeSet::from([7, 8])).map(|()| remark.is_some())
        };
        assert_eq!([opened([1, 1], fork), opened([1, 2], fork)], [Ok(false), Ok(true)]);
        assert!(opened([1, 1], "").unwrap_err().starts_with(unseen));
        assert!([[2, 1], [1, 3]].into_iter().all(|times| opened(times, fork).is_err()));
        let left = all_of_callgrind(&[begun, fork, forked, end], &[7]).unwrap_err();
        assert!(left.starts_with("1 of its 2 processes left no counts"), "{left}");
        let error = "==8== Error: can not open cache simulation output file `/x/8'\n";
        let reason = all_of_callgrind(&[begun, fork, forked, error], &[7]).unwrap_err();
        assert!(
            reason.starts_with("valgrind could not make its file of counts at the end of a process, /x/8")
        );
    }

    #[test]
    fn a_valgrind_that_does_not_start_in_a_process_is_the_reason() {
        let mut processes = Processes::default();
        processes.hear("==7== Parent PID: 1\n");
        processes.hear("   clone(fork): process 7 created child 8\n");
        let line = "valgrind: mmap(0x58000000, 4096) failed in UME with error 22 (Invalid argument).";
        processes.hear_errors(&format!("of the program\n{line}\nvalgrind: this can be caused by x\n"));
        let expected = format!("1 of its 2 processes left no counts: valgrind itself failed: {line} (does ");
        for reason in [
            processes.extent(&BTreeSet::from([7])).unwrap_err(),
            processes.all_of_callgrind(&BTreeSet::from([7])).unwrap_err(),
        ] {
            assert!(reason.starts_with(&expected) && reason.contains("/proc/self/exe"), "{reason}");
        }
        processes.hear("==8== Parent PID: 7\n");
        assert_eq!(processes.extent(&BTreeSet::from([7, 8])), Ok(Extent::Whole));
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
        for line in [
            "==7== \n",
            "==7== Command: x\n",
            "==7== I   refs:      1\n",
            "--7-- warning: L3 cache\n",
            "--7-- Dumping done.\n",
        ] {
            assert!(is_routine(line), "{line}");
        }
        for line in ["valgrind: Command: x\n", "==7== Valgrind: debuginfo reader: x\n", "Command: x\n"] {
            assert!(!is_routine(line), "{line}");
        }
    }
}
