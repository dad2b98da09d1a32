//! Where a process has mapped which file, as valgrind's log of its system calls says (`--trace-syscalls=yes`).
//!
//! valgrind names no code of ELFCLASS32 files on x86-64, nor the file that it is in. The log names the files:
//! `SYSCALL[12,1](257) sys_openat ( -100, 0x1fff(./a), 0 ) --> [async] ...`, then `SYSCALL[12,1](257) ... [async] --> Success(0x4)`,
//! then `SYSCALL[12,1](9) sys_mmap ( 0x400000, 4096, 5, 18, 4, 0 ) --> [pre-success] Success(0x400000)`.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

/// A stretch of a file in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    end: u64,
    /// Where the stretch begins in the file.
    offset: u64,
    path: String,
}

/// The files in a process's memory, each where it was mapped last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mappings {
    by_start: BTreeMap<u64, Mapping>,
}

impl Mappings {
    /// Reads the logs of all processes of a run, by process number. A forked process begins with the files of its parent.
    pub fn of_processes(logs: &BTreeMap<u32, String>) -> FxHashMap<u32, Mappings> {
        let mut all: FxHashMap<u32, Mappings> = FxHashMap::default();
        let is_created = |process: &u32| logs.values().any(|log| created(log).any(|child| child == *process));
        let first = logs.keys().copied().filter(|process| !is_created(process));
        let mut waiting: Vec<(u32, Mappings)> = first.map(|process| (process, Mappings::default())).collect();
        while let Some((process, mut mappings)) = waiting.pop() {
            if all.contains_key(&process) {
                continue;
            }
            let log = logs.get(&process).map_or("", String::as_str);
            waiting.extend(mappings.read(log));
            all.insert(process, mappings);
        }
        all
    }

    /// Reads a log; returns the processes that were forked, with their files. Lines that say nothing of files are passed over.
    fn read(&mut self, log: &str) -> Vec<(u32, Mappings)> {
        let mut forked = Vec::new();
        let mut opened: FxHashMap<u64, &str> = FxHashMap::default();
        let mut opening: FxHashMap<&str, &str> = FxHashMap::default();
        for line in log.lines() {
            forked.extend(created(line).map(|child| (child, self.clone())));
            let Some((thread, rest)) = line.find("SYSCALL[").and_then(|at| line[at + 8..].split_once(']'))
            else {
                continue;
            };
            if rest.starts_with("(257)") || rest.starts_with("(2)") {
                if let Some(path) = path(rest) {
                    opening.insert(thread, path);
                }
                if let (Some(file), Some(path)) = (success(rest), opening.get(thread)) {
                    opened.insert(file, path);
                    opening.remove(thread);
                }
            } else if rest.starts_with("(9)") {
                self.map(rest, |file| opened.get(&file).copied());
            }
        }
        forked
    }

    fn map<'a>(&mut self, call: &str, path: impl Fn(u64) -> Option<&'a str>) -> Option<()> {
        let (_, words) = call.split_once("( ")?;
        let (words, _) = words.split_once(')')?;
        let words: Vec<&str> = words.split(',').map(str::trim).collect();
        let [_, length, _, _, file, offset] = words.as_slice() else { return None };
        let start = success(call)?;
        let end = start.checked_add(length.parse::<u64>().ok()?.checked_next_multiple_of(4096)?)?;
        self.unmap(start, end);
        // −1 is memory without a file.
        let path = path(file.parse().ok()?)?.to_owned();
        self.by_start.insert(start, Mapping { end, offset: offset.parse().ok()?, path });
        Some(())
    }

    /// Takes a range out of what is mapped: what is mapped over it is gone.
    fn unmap(&mut self, start: u64, end: u64) {
        let over = self.by_start.range(..end).rev().take_while(|(_, mapping)| mapping.end > start);
        let over: Vec<u64> = over.map(|(start, _)| *start).collect();
        for from in over {
            let Some(mapping) = self.by_start.remove(&from) else { continue };
            if mapping.end > end {
                let behind = Mapping { offset: mapping.offset.saturating_add(end - from), ..mapping.clone() };
                self.by_start.insert(end, behind);
            }
            if from < start {
                self.by_start.insert(from, Mapping { end: start, ..mapping });
            }
        }
    }

    /// The file that an address is in, and the offset in the file.
    pub fn resolve(&self, address: u64) -> Option<(&str, u64)> {
        let (start, mapping) = self.by_start.range(..=address).next_back()?;
        (address < mapping.end)
            .then(|| (mapping.path.as_str(), mapping.offset.saturating_add(address - start)))
    }
}

/// The forked processes of `clone(fork): process 12 created child 13`.
fn created(log: &str) -> impl Iterator<Item = u32> + '_ {
    log.lines().filter_map(|line| line.rsplit_once(" created child ")?.1.trim().parse().ok())
}

/// The path of `sys_openat ( -100, 0x1fff(PATH), 0 )`.
fn path(call: &str) -> Option<&str> {
    let (_, rest) = call.split_once("sys_open")?;
    let (_, rest) = rest.split_once("0x")?;
    let (_, rest) = rest.split_once('(')?;
    // The path may have parentheses; the flags behind it have none.
    let (path, _) = rest.rsplit_once(" )")?;
    path.rsplit_once("),").map(|(path, _)| path)
}

/// The result of `… Success(0x4)`.
fn success(call: &str) -> Option<u64> {
    let (_, result) = call.rsplit_once("Success(0x")?;
    u64::from_str_radix(result.split_once(')')?.0, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
SYSCALL[12,1](257) sys_openat ( -100, 0x1fff000a0e(./a (1)), 526336 ) --> [async] ... 
SYSCALL[12,1](257) ... [async] --> Success(0x4) 
SYSCALL[12,1](9) sys_mmap ( 0x400000, 5000, 1, 1048578, 4, 4096 ) --> [pre-success] Success(0x400000) 
SYSCALL[12,1](257) sys_openat ( -100, 0x1ffe(/no), 0 ) --> [async] ... 
SYSCALL[12,1](257) ... [async] --> Failure(0x2) 
SYSCALL[12,1](257) sys_openat ( -100, 0x1ffe(/lib/b.so), 0 ) --> [async] ... 
SYSCALL[12,1](257) ... [async] --> Success(0x5) 
SYSCALL[12,1](9) sys_mmap ( 0x401000, 4096, 5, 18, 5, 8192 ) --> [pre-success] Success(0x401000) 
SYSCALL[12,1](9) sys_mmap ( 0x0, 4096, 3, 34, -1, 0 ) --> [pre-success] Success(0x500000) 
";

    fn read(log: &str) -> Mappings {
        let mut mappings = Mappings::default();
        mappings.read(log);
        mappings
    }

    #[test]
    fn a_forked_process_has_the_files_that_its_parent_had_then() {
        let map =
            "SYSCALL[12,1](9) sys_mmap ( 0x402000, 9, 5, 18, 5, 0 ) --> [pre-success] Success(0x402000) \n";
        let fork = "SYSCALL[12,1](56) sys_clone ( 0 )   clone(fork): process 12 created child 13\n";
        let own = LOG.replace("[12,", "[13,").replace("/lib/b.so", "/lib/c.so");
        let logs = BTreeMap::from([(12, format!("{LOG}{fork}{map}")), (13, own)]);
        let all = Mappings::of_processes(&logs);
        assert_eq!(all[&12].resolve(0x402000), Some(("/lib/b.so", 0)));
        assert_eq!(all[&13].resolve(0x402000), None);
        assert_eq!(all[&13].resolve(0x401000), Some(("/lib/c.so", 8192)));
        let alone = BTreeMap::from([(12, format!("{LOG}{fork}"))]);
        assert_eq!(Mappings::of_processes(&alone)[&13].resolve(0x400010), Some(("./a (1)", 4112)));
        // Processes that create each other are in no log of valgrind's.
        let ring = BTreeMap::from([(1, "created child 1 created child 1".to_owned())]);
        assert_eq!(Mappings::of_processes(&ring), FxHashMap::default());
    }

    #[test]
    fn an_address_belongs_to_the_file_that_was_mapped_there_last() {
        let mappings = read(LOG);
        assert_eq!(mappings.resolve(0x400010), Some(("./a (1)", 4096 + 16)));
        assert_eq!(mappings.resolve(0x401000), Some(("/lib/b.so", 8192)));
        assert_eq!([mappings.resolve(0x402000), mappings.resolve(0x500000), mappings.resolve(0)], [None; 3]);
    }

    #[test]
    fn a_mapping_inside_another_divides_it() {
        let mut mappings = Mappings::default();
        let map = |mappings: &mut Mappings, start: u64, length: u64, offset: u64, name: &str| {
            let call = format!("(9) sys_mmap ( 0, {length}, 1, 2, 3, {offset} ) --> Success({start:#x})");
            mappings.map(&call, |_| Some(name)).unwrap();
        };
        map(&mut mappings, 0x1000, 0x3000, 0, "a");
        map(&mut mappings, 0x2000, 0x1000, 0x9000, "b");
        assert_eq!(mappings.resolve(0x1fff), Some(("a", 0xfff)));
        assert_eq!(mappings.resolve(0x2001), Some(("b", 0x9001)));
        assert_eq!(mappings.resolve(0x3000), Some(("a", 0x2000)));
    }

    #[test]
    fn damaged_lines_are_passed_over() {
        for at in 0..LOG.len() {
            if let Some(log) = LOG.get(..at) {
                read(log);
            }
        }
        let log = "SYSCALL[1,1](9) sys_mmap ( 0, 18446744073709551615, 1, 2, 3, 0 ) --> Success(0xffffffffffffffff)";
        assert_eq!(read(log), Mappings::default());
    }
}
