//! The rows of two sides, paired.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::rows::section_key;
use super::{FileSize, RowKind};
use crate::names::{demangled, is_thunk, names_of_symbol, without_copies};
use crate::pairing::{paired_sums, Named};

/// Bytes and the number of symbols, records or gaps that they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes in the files.
    pub bytes: u64,
    /// Symbols, records, gaps.
    pub count: u64,
    /// The size of one record, 0 where these are no records.
    pub record: u64,
}

impl Amount {
    pub(super) fn add(&mut self, other: Amount) {
        self.bytes += other.bytes;
        self.count += other.count;
        self.record = self.record.max(other.record);
    }
}

/// A row of both sides, or of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The library's name; empty for the program itself.
    pub file: String,
    /// The section, `.rela` for `.rel`; empty outside of sections.
    pub section: String,
    /// The section's `sh_flags`.
    pub flags: u64,
    /// What the bytes are.
    pub kind: RowKind,
    /// The symbol, mangled or demangled, or the relocation's kind.
    pub name: String,
    /// In the baseline, and in the variant.
    pub sides: [Amount; 2],
}

impl Pair {
    /// The name for readers: demangled.
    pub fn shown_name(&self) -> String {
        demangled(&self.name)
    }

    /// The variant's bytes minus the baseline's.
    pub fn difference(&self) -> i64 {
        self.sides[1].bytes as i64 - self.sides[0].bytes as i64
    }
}

/// A file of a side: the program (an empty name), or a library that it brings.
pub type File<'f, 'a> = (String, &'f FileSize<'a>);

/// The file, the section, what the bytes are, and the mangled name.
type RawKey<'k> = (&'k str, &'k str, RowKind, &'k [u8]);

/// The rows of both sides: section, then symbol, then relocation kind; the largest difference first, then by place.
pub fn pairs(baseline: &[File], variant: &[File]) -> Vec<Pair> {
    let mut by_raw: FxHashMap<RawKey, ([Amount; 2], u64)> = FxHashMap::default();
    for (side, files) in [baseline, variant].into_iter().enumerate() {
        for (file, size) in files {
            for row in &size.rows {
                let key = (file.as_str(), section_key(&row.section), row.kind, &*row.name);
                let (amounts, flags) = by_raw.entry(key).or_insert(([Amount::default(); 2], row.flags));
                *flags |= row.flags;
                let amount = &mut amounts[side];
                amount.bytes += row.bytes;
                amount.count += row.count;
                amount.record = row.record;
            }
        }
    }
    let is_in_both = |amounts: &[Amount; 2]| amounts.iter().all(|amount| amount.count > 0);
    let in_both: FxHashSet<(&str, &str, &[u8])> = by_raw
        .iter()
        .filter(|((_, _, kind, _), (amounts, _))| *kind == RowKind::Symbol && is_in_both(amounts))
        .map(|((file, section, _, raw), _)| (*file, *section, *raw))
        .collect();
    let mut by_name: FxHashMap<(&str, &str, RowKind, String), Pair> = FxHashMap::default();
    let mut alone: BTreeMap<(&str, &str), Named<Alone>> = BTreeMap::new();
    for ((file, section, kind, raw), (amounts, flags)) in by_raw {
        let text = String::from_utf8_lossy(raw).into_owned();
        // A thunk's symbol has offsets, which are each ABI's own: one symbol of both need not be one thunk.
        let is_thunk = kind == RowKind::Symbol && is_thunk(&text);
        let is_matched = is_in_both(&amounts) && !is_thunk;
        // `main.cold` counts for `main`.
        let whole = without_copies(&text);
        let (key, name) = match kind {
            RowKind::Symbol
                if whole != text
                    && !is_thunk
                    && (is_matched || in_both.contains(&(file, section, whole.as_bytes()))) =>
            {
                (whole.to_owned(), whole.to_owned())
            }
            // Demangling is slow, and needed only where the mangled names differ.
            RowKind::Symbol if !is_matched => {
                let of_place = alone.entry((file, section)).or_default();
                for (side, amount) in of_place.iter_mut().zip(amounts).filter(|(_, amount)| amount.count > 0)
                {
                    side.push((names_of_symbol(raw), Alone { amount, flags }));
                }
                continue;
            }
            // The number of a relocation's kind is the machine's: records are paired by what they do.
            RowKind::Relocations => (relocation_key(raw), text),
            _ => (text.clone(), text),
        };
        let pair = by_name.entry((file, section, kind, key)).or_insert_with(|| Pair {
            file: file.to_owned(),
            section: section.to_owned(),
            flags,
            kind,
            name: name.clone(),
            sides: [Amount::default(); 2],
        });
        // The same name in every run: the maps have no order.
        if name < pair.name {
            pair.name = name;
        }
        for (sum, amount) in pair.sides.iter_mut().zip(amounts) {
            sum.add(amount);
        }
    }
    let mut pairs: Vec<Pair> = by_name.into_values().collect();
    let names = relocation_sections(baseline.iter().chain(variant));
    for pair in pairs.iter_mut().filter(|pair| pair.kind == RowKind::Relocations) {
        if let Some(Some(name)) = names.get(&(pair.file.as_str(), pair.section.as_str())) {
            pair.section = (*name).to_owned();
        }
    }
    pairs.extend(alone.into_iter().flat_map(|((file, section), sides)| of_one_side(file, section, sides)));
    let place = |pair: &Pair| (pair.file.clone(), pair.section.clone(), pair.kind, pair.name.clone());
    pairs.sort_by_cached_key(|pair| (std::cmp::Reverse(pair.difference().unsigned_abs()), place(pair)));
    pairs
}

/// The own name of each section of relocations, where all files that have it call it the same: `.rela.dyn` in two programs for x86-64.
fn relocation_sections<'f>(
    files: impl Iterator<Item = &'f File<'f, 'f>>,
) -> FxHashMap<(&'f str, &'f str), Option<&'f str>> {
    let mut names: FxHashMap<(&str, &str), Option<&str>> = FxHashMap::default();
    for (file, size) in files {
        for row in size.rows.iter().filter(|row| row.kind == RowKind::Relocations) {
            let name = names.entry((file, section_key(&row.section))).or_insert(Some(&row.section));
            *name = name.filter(|name| *name == row.section);
        }
    }
    names
}

/// What one side has of a mangled name that the other does not have.
#[derive(Debug, Clone, Copy, Default)]
struct Alone {
    amount: Amount,
    flags: u64,
}

/// The rows of the mangled names of a section that one side only has: those of both sides are paired by what they stand for.
fn of_one_side(file: &str, section: &str, mut sides: Named<Alone>) -> Vec<Pair> {
    for side in &mut sides {
        // Maps have no order.
        side.sort_by(|(a, _), (b, _)| (&a.own, &a.shown).cmp(&(&b.own, &b.shown)));
    }
    let sums = paired_sums(sides, |sum, other| {
        sum.amount.add(other.amount);
        sum.flags |= other.flags;
    });
    let pair = |(name, [a, b]): (String, [Alone; 2])| Pair {
        file: file.to_owned(),
        section: section.to_owned(),
        flags: a.flags | b.flags,
        kind: RowKind::Symbol,
        name,
        sides: [a.amount, b.amount],
    };
    sums.into_iter().map(pair).collect()
}

/// `RELATIVE` of `R_X86_64_RELATIVE`.
fn relocation_key(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let known = ["RELATIVE", "GLOB_DAT", "JUMP_SLOT", "JMP_SLOT", "COPY", "IRELATIVE"];
    let of = known
        .iter()
        .find(|known| name.rsplit('_').next() == known.rsplit('_').next() && name.ends_with(*known));
    of.map_or_else(|| name.clone().into_owned(), |known| known.replace("JMP", "JUMP"))
}
