//! What valgrind counts otherwise than a processor: repetitions of string instructions (`rep movsb`), and the calls of i386 programs.
//!
//! Valgrind executes each repetition as a jump of the instruction to itself, and counts an instruction and one or two conditional branches.
//! A processor counts one instruction, however often it repeats, and no branch (Weaver & McKee 2008, "Can hardware performance
//! counters be trusted?"). glibc copies and clears by such instructions on x86-64 alone: a comparison of ABIs would be one of this
//! choice. callgrind's files have the jumps of every instruction, and so the repetitions (valgrind's manual, "Callgrind Format
//! Specification").
//!
//! Of calls of the kernel by i386 programs it counts too few instructions ([`vsyscall`]). They are found by the same files.

use std::collections::HashMap;
use std::path::Path;

use widthwise_machine::vsyscall;

/// The options with which callgrind writes what is read here: of every instruction its address, its own counts, and its jumps.
pub(super) const OPTIONS: [&str; 5] = [
    "--dump-instr=yes",
    "--dump-line=no",
    "--collect-jumps=yes",
    "--compress-strings=no",
    "--compress-pos=no",
];

/// x32 programs lie below 4 GiB, as their pointers have 4 bytes; the x32 runtime lies above (`runtime/x32/layout.ld`).
const RUNTIME: u64 = 1 << 32;

/// Whether an address in an x32 process is the x32 runtime's. It has code without a symbol, too: stubs that it makes at run time.
pub(super) fn is_of_runtime(address: u64) -> bool {
    address >= RUNTIME
}

/// What a line says of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// Executed so often, with so many conditional branches (0 where they are not counted).
    Executed { address: u64, instructions: u64, branches: u64 },
    /// It jumped so often to an address; a repetition is a jump to itself.
    Jumped { address: u64, target: u64, times: u64 },
}

/// What the next line with a position is.
#[derive(Debug, Default)]
enum Next {
    #[default]
    Own,
    /// The inclusive counts of a call.
    Call,
    /// The place of a jump that went so often to an address.
    Jump { times: u64, target: u64 },
}

/// Reads callgrind's lines, one after the other.
#[derive(Debug, Default)]
pub(super) struct Reader {
    next: Next,
}

impl Reader {
    /// What a line says of an instruction; nothing if it says nothing, or is none of the format.
    pub fn line(&mut self, line: &str) -> Option<Line> {
        if line.starts_with("calls=") {
            self.next = Next::Call;
        } else if let Some(jump) = line.strip_prefix("jump=").or_else(|| line.strip_prefix("jcnd=")) {
            // Of a conditional one also how often it was executed: `96/100 0x1003`.
            let (times, target) = jump.split_once(' ')?;
            let times = times.split('/').next()?.parse().ok()?;
            self.next = Next::Jump { times, target: address(target.trim())? };
        } else if line.starts_with("0x") {
            let mut words = line.split_whitespace();
            let address = address(words.next()?)?;
            let mut count = || words.next().map_or(Some(0), |word| word.parse().ok());
            return match std::mem::take(&mut self.next) {
                Next::Own => Some(Line::Executed { address, instructions: count()?, branches: count()? }),
                Next::Jump { times, target } => Some(Line::Jumped { address, target, times }),
                Next::Call => None,
            };
        }
        None
    }
}

fn address(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// Where the code that a file of callgrind's speaks of calls the kernel without `__kernel_vsyscall`.
#[derive(Debug, Default)]
pub(super) struct KernelCalls {
    by_object: HashMap<String, Vec<u64>>,
    /// Those of the object that the lines are of.
    here: Vec<u64>,
}

impl KernelCalls {
    /// Notes of which object the next lines are.
    pub fn line(&mut self, line: &str) {
        if let Some(object) = line.strip_prefix("ob=") {
            let read = || vsyscall::replacements(Path::new(object));
            self.here.clone_from(self.by_object.entry(object.to_owned()).or_insert_with(read));
        }
    }

    /// Whether the instruction is such a call.
    pub fn has(&self, address: u64) -> bool {
        self.here.binary_search(&address).is_ok()
    }
}

/// The instructions that so many of these calls have beyond what valgrind counts.
pub(super) fn missing_of(calls: u64) -> u64 {
    calls.saturating_mul(vsyscall::MORE_INSTRUCTIONS)
}

/// What valgrind counts too much of a program, and what too little.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Deviations {
    /// Instructions too many: those that repeat.
    pub instructions: u64,
    /// Conditional branches too many: those of repetitions.
    pub branches: u64,
    /// Calls of the kernel by i386 programs, of each of which it counts too few instructions.
    pub kernel_calls: u64,
}

impl Deviations {
    /// Of a file of one process, whose events are `Ir Bc …`; without those of the x32 runtime. Nothing if the file is not whole.
    pub fn of(text: &str) -> Option<Deviations> {
        let in_runtime = text
            .lines()
            .find_map(|line| line.strip_prefix("cmd:"))
            .is_some_and(|command| command.contains("x32run"));
        // Addresses are those of the object file: two files may have the same.
        let mut places: HashMap<(&str, u64), Deviations> = HashMap::new();
        let (mut object, mut reader, mut is_whole) = ("", Reader::default(), false);
        let (mut calls, mut kernel_calls) = (KernelCalls::default(), 0_u64);
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("ob=") {
                object = name;
            }
            calls.line(line);
            is_whole |= line.starts_with("totals:");
            let found = reader.line(line);
            if let Some(Line::Executed { address, instructions, .. }) = found {
                kernel_calls += if calls.has(address) { instructions } else { 0 };
            }
            match found {
                Some(Line::Executed { address, branches, .. }) if branches > 0 => {
                    places.entry((object, address)).or_default().branches += branches;
                }
                Some(Line::Jumped { address, target, times }) if address == target => {
                    places.entry((object, address)).or_default().instructions += times;
                }
                _ => {}
            }
        }
        let mut sum = Deviations { kernel_calls, ..Deviations::default() };
        for ((_, address), own) in places {
            if own.instructions > 0 && !(in_runtime && is_of_runtime(address)) {
                sum.add(own);
            }
        }
        is_whole.then_some(sum)
    }

    /// Adds those of another process.
    pub fn add(&mut self, other: Deviations) {
        self.instructions += other.instructions;
        self.branches += other.branches;
        self.kernel_calls += other.kernel_calls;
    }
}

/// The deviations of every process of a run.
pub(super) fn in_folder(folder: &Path) -> Result<Deviations, String> {
    let unreadable = |error: std::io::Error| format!("valgrind's counts: {error}");
    let mut sum = Deviations::default();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let text = std::fs::read(entry.map_err(unreadable)?.path()).map_err(unreadable)?;
        sum.add(Deviations::of(&String::from_utf8_lossy(&text)).ok_or("valgrind's counts are not whole")?);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4 times `rep stosb` of 25 repetitions and a loop in the program, the same in another file, and one in the x32 runtime.
    const FILE: &str = "cmd: PROGRAM\npositions: instr\nevents: Ir Bc Bcm\nob=/x\nfn=f\n0x1000 4\n0x1003 4 4\njcnd=4/4 0x1003 \n0x1003 \n\
                        0x1003 100 100 1\njcnd=96/100 0x1003 \n0x1003 \n0x1005 8 8\njcnd=4/8 0x1000 \n0x1005 \n\
                        ob=/y\nfn=g\n0x1003 7 7\ncalls=1 0x1003 \n0x1003 9 9\njump=7 0x1010 \n0x1003 \n\
                        ob=/r\nfn=door\n0x100400200 11 11\njcnd=10/11 0x100400200 \n0x100400200 \ntotals: 134 130 1\n";

    #[test]
    fn repetitions_are_the_jumps_of_an_instruction_to_itself_and_its_branches_are_none() {
        let found = |program: &str| Deviations::of(&FILE.replace("PROGRAM", program));
        assert_eq!(found("./x"), Some(Deviations { instructions: 110, branches: 115, kernel_calls: 0 }));
        assert_eq!(
            found("/a/x32run-1 -- ./x"),
            Some(Deviations { instructions: 100, branches: 104, kernel_calls: 0 })
        );
        assert_eq!(Deviations::of(FILE.trim_end().rsplit_once('\n').unwrap().0), None);
    }
}
