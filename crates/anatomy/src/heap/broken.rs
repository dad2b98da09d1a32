//! Stacks that could not be followed to their outermost call: the recorder walks by unwind tables.

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::elf::{mapped, Elf};
use widthwise_heap_log::stacks::{CodeAddress, StackId, Stacks};

use super::StackValues;

/// So many object files are looked at.
const MOST_MODULES: usize = 64;

/// Blocks with such stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Broken {
    /// All of them.
    pub blocks: u64,
    /// Those whose outermost known call is in code without unwind tables, by the file's name, most blocks first.
    pub without_tables: Vec<(String, u64)>,
}

/// Where the stacks of blocks end that could not be followed.
pub fn of(values: &StackValues, stacks: &Stacks) -> Broken {
    let broken = stacks.broken();
    let mut ends: FxHashMap<CodeAddress, u64> = FxHashMap::default();
    let mut all = Broken::default();
    // Stacks have the outermost call of the stack around them, whose number is smaller.
    let mut outermost: Vec<Option<CodeAddress>> = vec![None; broken.len()];
    for number in 0..broken.len() {
        if let Some((code, outer)) = stacks.call(StackId(number as u32)).filter(|_| broken[number]) {
            outermost[number] = outermost.get(outer.0 as usize).copied().flatten().or(Some(code));
        }
    }
    for (stack, blocks) in values.blocks() {
        let number = stack.0 as usize;
        if broken.get(number) != Some(&true) {
            continue;
        }
        all.blocks = all.blocks.saturating_add(blocks);
        if let Some(code) = outermost[number] {
            let sum = ends.entry(code).or_default();
            *sum = sum.saturating_add(blocks);
        }
    }
    // The dynamic linker starts the program, and initialises its libraries, in code that has neither tables nor a caller; so does glibc
    // start the function of makecontext(3). Such a stack is whole.
    let begins_stacks =
        |name: &str| ["ld-", "libc.so.", "libc-2."].iter().any(|start| name.starts_with(start));
    let (whole, without_tables) =
        without_tables(&ends, stacks).into_iter().partition(|(name, _)| begins_stacks(name));
    let whole: Vec<(String, u64)> = whole;
    all.blocks = whole.iter().fold(all.blocks, |blocks, (_, some)| blocks.saturating_sub(*some));
    all.without_tables = without_tables;
    all
}

/// Those of the addresses that no unwind record is for, by their files' names.
fn without_tables(ends: &FxHashMap<CodeAddress, u64>, stacks: &Stacks) -> Vec<(String, u64)> {
    let mut by_file: FxHashMap<&str, Vec<(u64, u64)>> = FxHashMap::default();
    for (code, blocks) in ends {
        if let Some(file) = code.module.and_then(|module| stacks.file(module)) {
            by_file.entry(file).or_default().push((code.address, *blocks));
        }
    }
    let mut files: Vec<(&str, Vec<(u64, u64)>)> = by_file.into_iter().collect();
    files.sort_unstable_by_key(|(file, calls)| (u64::MAX - sum(calls), *file));
    let mut found: Vec<(String, u64)> = Vec::new();
    for (file, mut calls) in files.into_iter().take(MOST_MODULES) {
        retain_without_records(file, &mut calls);
        let name = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
        if let (Some(name), true) = (name, sum(&calls) > 0) {
            found.push((name, sum(&calls)));
        }
    }
    found.sort_by_key(|(_, blocks)| u64::MAX - blocks);
    found
}

fn sum(calls: &[(u64, u64)]) -> u64 {
    calls.iter().fold(0, |sum, (_, blocks)| sum.saturating_add(*blocks))
}

/// Keeps the return addresses for whose call the file has no record; none of a file that cannot be read.
fn retain_without_records(file: &str, calls: &mut Vec<(u64, u64)>) {
    let map = mapped(Path::new(file));
    let elf = map.as_ref().and_then(|map| Elf::read(map).ok());
    let Some(elf) = elf.filter(|elf| !elf.sections.is_empty()) else { return calls.clear() };
    let section = elf.section(".eh_frame");
    let records = section.map(|section| elf.unwind_records(section)).unwrap_or_default();
    let mut code: Vec<_> = records.into_iter().map(|record| (record.code.start, record.code.end)).collect();
    code.sort_unstable();
    calls.retain(|(address, _)| {
        // The call lies before the address that it returns to.
        let call = address.saturating_sub(1);
        let behind = code.partition_point(|(start, _)| *start <= call);
        behind.checked_sub(1).is_none_or(|record| code[record].1 <= call)
    });
}
