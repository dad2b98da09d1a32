//! The rows of two sides, paired.

use rustc_hash::{FxHashMap, FxHashSet};

use super::rows::section_key;
use super::{FileSize, RowKind};
use crate::names::{demangled, key_of_symbol, without_copies};

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
    for ((file, section, kind, raw), (amounts, flags)) in by_raw {
        let text = String::from_utf8_lossy(raw).into_owned();
        let is_matched = is_in_both(&amounts);
        // `main.cold` counts for `main`.
        let whole = without_copies(&text);
        let (key, name) = match kind {
            RowKind::Symbol
                if whole != text && (is_matched || in_both.contains(&(file, section, whole.as_bytes()))) =>
            {
                (whole.to_owned(), whole.to_owned())
            }
            // Demangling is slow, and needed only where the mangled names differ.
            RowKind::Symbol if !is_matched => key_of_symbol(raw),
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
            sum.bytes += amount.bytes;
            sum.count += amount.count;
            sum.record = sum.record.max(amount.record);
        }
    }
    let mut pairs: Vec<Pair> = by_name.into_values().collect();
    let place = |pair: &Pair| (pair.file.clone(), pair.section.clone(), pair.kind, pair.name.clone());
    pairs.sort_by_cached_key(|pair| (std::cmp::Reverse(pair.difference().unsigned_abs()), place(pair)));
    pairs
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
