//! The functions of two variants side by side: rows whose counts sum to both totals.

use std::collections::BTreeMap;

use super::counts::Counts;
use super::module::Module;
use super::profile::{Function, Profile};
use crate::pairing::paired;

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// A function.
    Function,
    /// The dynamic linker: it starts the program and finds its symbols.
    Loader,
    /// Functions of a library that have a name in one variant only, and code without a name, of one object file.
    Rest,
}

/// One row: counts of the baseline and of the variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What it stands for.
    pub kind: RowKind,
    /// The object file.
    pub module: Module,
    /// The function's name; empty for other rows.
    pub name: String,
    /// Where the function is in the source, where one of the variants says so.
    pub place: Option<(String, u64)>,
    /// The counts of the baseline and of the variant.
    pub sides: [Counts; 2],
    /// By how much recordings of one variant differ, of the variant that repeats worse: a smaller difference is none.
    pub spread: Counts,
    /// Whether each variant has it.
    pub is_in: [bool; 2],
}

impl Row {
    /// The variant's instructions minus the baseline's.
    pub fn difference(&self) -> i64 {
        self.of(|counts| counts.instructions)
    }

    /// The variant's count minus the baseline's.
    pub fn of(&self, count: fn(&Counts) -> u64) -> i64 {
        let [a, b] = self.sides.each_ref().map(|counts| i64::try_from(count(counts)).unwrap_or(i64::MAX));
        b - a
    }
}

/// All rows: the largest difference of instructions first, then of page faults, then by name. Each side has one profile for each of
/// its recordings; the first one's counts are shown, and the others say how well they repeat.
///
/// A function of the program that only one variant has is a row: it is inlined in the other. A library's functions are rows where
/// both variants name them; which names a library's symbol table has is its packager's choice.
pub fn rows(baseline: &[Profile], variant: &[Profile]) -> Vec<Row> {
    let (a, b) = (functions(baseline), functions(variant));
    let own = |one: &(&Function, Side)| (one.0.module.clone(), one.0.key.clone());
    let common = |one: &(&Function, Side)| (one.0.module.clone(), one.0.common.clone());
    let mut rows: Vec<Row> = Vec::new();
    let mut rest: BTreeMap<&Module, [Side; 2]> = BTreeMap::new();
    for found in paired(&a, &b, own, common) {
        let sides = [found.a.map(|place| &a[place]), found.b.map(|place| &b[place])];
        let Some((first, _)) = sides[0].or(sides[1]) else { continue };
        let module = &first.module;
        let sides = sides.map(|side| side.map_or(Side::default(), |(_, side)| side.clone()));
        let is_function = !first.key.is_empty()
            && (*module == Module::Program || sides.iter().all(|side| side.function.is_some()));
        if is_function {
            rows.push(row(RowKind::Function, module, &sides));
            continue;
        }
        let all = rest.entry(module).or_default();
        all.iter_mut().zip(&sides).for_each(|(all, side)| all.add(side));
    }
    rows.extend(rest.into_iter().map(|(module, sides)| {
        let kind = if *module == Module::Loader { RowKind::Loader } else { RowKind::Rest };
        Row { name: String::new(), place: None, ..row(kind, module, &sides) }
    }));
    rows.sort_by_cached_key(|row| {
        let faults = row.of(|counts| counts.page_faults).unsigned_abs();
        (std::cmp::Reverse((row.difference().unsigned_abs(), faults)), row.module.clone(), row.name.clone())
    });
    rows
}

/// A function in one variant.
#[derive(Debug, Clone, Default)]
struct Side<'a> {
    function: Option<&'a Function>,
    /// Of each recording; empty without the function.
    counts: Vec<Counts>,
}

impl<'a> Side<'a> {
    fn add(&mut self, other: &Side<'a>) {
        self.function = self.function.or(other.function);
        let longer = self.counts.len().max(other.counts.len());
        self.counts.resize(longer, Counts::default());
        for (sum, counts) in self.counts.iter_mut().zip(&other.counts) {
            *sum += *counts;
        }
    }
}

/// The functions of a variant's recordings, by module and name.
fn functions(profiles: &[Profile]) -> Vec<(&Function, Side<'_>)> {
    let mut by_key: BTreeMap<(&Module, &str), (&Function, Side)> = BTreeMap::new();
    for (repeat, profile) in profiles.iter().enumerate() {
        for function in profile.functions() {
            let new = || (function, Side { function: Some(function), counts: Vec::new() });
            let (_, side) = by_key.entry((&function.module, &function.key)).or_insert_with(new);
            side.counts.resize(profiles.len(), Counts::default());
            side.counts[repeat] = function.counts;
        }
    }
    by_key.into_values().collect()
}

fn row(kind: RowKind, module: &Module, sides: &[Side; 2]) -> Row {
    let known = || sides.iter().filter_map(|side| side.function);
    let spread = sides.iter().map(|side| spread(&side.counts));
    Row {
        kind,
        module: module.clone(),
        name: known().next().map_or(String::new(), |function| function.name.clone()),
        place: known().find_map(|function| function.place.clone()),
        sides: sides.each_ref().map(|side| side.counts.first().copied().unwrap_or_default()),
        spread: spread.fold(Counts::default(), |a, b| a.greater(&b)),
        is_in: sides.each_ref().map(|side| side.function.is_some()),
    }
}

/// By how much counts of one thing differ.
fn spread(counts: &[Counts]) -> Counts {
    let Some(first) = counts.first() else { return Counts::default() };
    counts.iter().fold(Counts::default(), |spread, other| spread.greater(&first.apart(other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::callgrind;
    use crate::time::symbols::CodeNames;

    fn profile(costs: &[(&str, &str, u64)]) -> Profile {
        let mut text = "events: Ir\n".to_owned();
        for (object, function, count) in costs {
            text.push_str(&format!("ob={object}\nfl=x.c\nfn={function}\n3 {count}\n"));
        }
        text.push_str(&format!("totals: {}\n", costs.iter().map(|(.., count)| count).sum::<u64>()));
        let outputs = [callgrind::read(text.as_bytes()).expect("a file")];
        let mut profile = Profile::default();
        let programs = ["/x".to_owned()];
        profile.add(&outputs, None, &programs, &mut CodeNames::default()).expect("a profile");
        profile
    }

    #[test]
    fn rows_sum_to_both_totals_and_functions_are_matched_across_abis() {
        let a = profile(&[
            ("/x", "_Z4growm", 100),
            ("/x", "inlined", 9),
            ("/lib64/libc.so.6", "_int_malloc", 50),
            ("/lib64/libc.so.6", "malloc", 5),
            ("/lib64/ld-linux-x86-64.so.2", "do_lookup", 1000),
        ]);
        let b = profile(&[
            ("/x", "_Z4growj", 160),
            ("/libx32/libc.so.6", "__libc_malloc", 6),
            ("/libx32/libc.so.6", "0xf7f51aa0", 70),
            ("/libx32/ld-linux-x32.so.2", "???", 990),
        ]);
        let rows = rows(std::slice::from_ref(&a), std::slice::from_ref(&b));
        let shown: Vec<(RowKind, &str, &str, i64)> = rows
            .iter()
            .map(|row| (row.kind, row.module.name(), row.name.as_str(), row.difference()))
            .collect();
        assert_eq!(
            shown,
            [
                (RowKind::Function, "the program", "grow(unsigned long)", 60),
                (RowKind::Rest, "libc", "", 20),
                (RowKind::Loader, "the loader", "", -10),
                (RowKind::Function, "the program", "inlined", -9),
                (RowKind::Function, "libc", "malloc", 1),
            ]
        );
        for (side, profile) in [a, b].iter().enumerate() {
            let sum = rows.iter().fold(Counts::default(), |sum, row| sum + row.sides[side]);
            assert_eq!(sum, profile.total());
        }
    }

    #[test]
    fn recordings_of_one_variant_say_how_well_counts_repeat() {
        let a = [profile(&[("/x", "f", 100), ("/x", "g", 7)]), profile(&[("/x", "f", 103)])];
        let b = [profile(&[("/x", "f", 90)]), profile(&[("/x", "f", 91)])];
        let rows = rows(&a, &b);
        let shown: Vec<(&str, i64, u64)> =
            rows.iter().map(|row| (row.name.as_str(), row.difference(), row.spread.instructions)).collect();
        assert_eq!(shown, [("f", -10, 3), ("g", -7, 7)]);
    }
}
