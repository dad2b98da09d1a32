//! Relocation records, by kind.

use object::Endian;
use rustc_hash::FxHashMap;

use crate::elf::{Elf, Section};

/// Names of the kinds that linked files have: machine, number, name (the psABI of each).
const NAMES: [(u16, u32, &str); 33] = [
    (62, 1, "R_X86_64_64"),
    (62, 5, "R_X86_64_COPY"),
    (62, 6, "R_X86_64_GLOB_DAT"),
    (62, 7, "R_X86_64_JUMP_SLOT"),
    (62, 8, "R_X86_64_RELATIVE"),
    (62, 10, "R_X86_64_32"),
    (62, 16, "R_X86_64_DTPMOD64"),
    (62, 18, "R_X86_64_TPOFF64"),
    (62, 37, "R_X86_64_IRELATIVE"),
    (62, 38, "R_X86_64_RELATIVE64"),
    (3, 1, "R_386_32"),
    (3, 5, "R_386_COPY"),
    (3, 6, "R_386_GLOB_DAT"),
    (3, 7, "R_386_JUMP_SLOT"),
    (3, 8, "R_386_RELATIVE"),
    (3, 14, "R_386_TLS_TPOFF"),
    (3, 42, "R_386_IRELATIVE"),
    (183, 257, "R_AARCH64_ABS64"),
    (183, 1025, "R_AARCH64_GLOB_DAT"),
    (183, 1026, "R_AARCH64_JUMP_SLOT"),
    (183, 1027, "R_AARCH64_RELATIVE"),
    (40, 2, "R_ARM_ABS32"),
    (40, 21, "R_ARM_GLOB_DAT"),
    (40, 22, "R_ARM_JUMP_SLOT"),
    (40, 23, "R_ARM_RELATIVE"),
    (21, 20, "R_PPC64_GLOB_DAT"),
    (21, 21, "R_PPC64_JMP_SLOT"),
    (21, 22, "R_PPC64_RELATIVE"),
    (21, 38, "R_PPC64_ADDR64"),
    (20, 21, "R_PPC_JMP_SLOT"),
    (20, 22, "R_PPC_RELATIVE"),
    (243, 3, "R_RISCV_RELATIVE"),
    (22, 12, "R_390_RELATIVE"),
];

/// The kinds of a section's records with their numbers, the most frequent first. Whole records alone count.
pub fn kinds(elf: &Elf, section: &Section, data: &[u8]) -> Vec<(String, u64)> {
    let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
    let word = elf.word() as usize;
    // A record that is too short for its kind has none.
    let Some(size) = usize::try_from(section.entry_size).ok().filter(|size| *size >= 2 * word) else {
        return Vec::new();
    };
    for record in data.chunks_exact(size) {
        *counts.entry(kind(elf, &record[word..2 * word])).or_default() += 1;
    }
    let mut kinds: Vec<(u32, u64)> = counts.into_iter().collect();
    kinds.sort_unstable_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
    kinds.into_iter().map(|(kind, count)| (name(elf.machine, kind), count)).collect()
}

/// The kind in `r_info`: its lower 32 bits, or the lowest 8 of a 32-bit file.
fn kind(elf: &Elf, info: &[u8]) -> u32 {
    match info.try_into() {
        Ok(info) => elf.endian.read_u64(info) as u32,
        Err(_) => info.try_into().map_or(0, |info| elf.endian.read_u32(info)) & 0xff,
    }
}

fn name(machine: u16, kind: u32) -> String {
    let known = NAMES.iter().find(|(of, number, _)| (*of, *number) == (machine, kind));
    known.map_or_else(|| format!("type {kind}"), |(_, _, name)| (*name).to_owned())
}
