//! The functions of two variants side by side: rows whose counts sum to both totals.

use std::collections::BTreeMap;

use super::counts::Counts;
use super::module::Module;
use super::place::{file_name, Place};
use super::profile::{Function, Profile};
use crate::pairing::{paired, Paired};

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
    pub place: Option<Place>,
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
    let [a, b] = sides(baseline, variant);
    let mut rows: Vec<Row> = Vec::new();
    let mut rest: BTreeMap<&Module, [Side; 2]> = BTreeMap::new();
    for found in pairs(&a, &b) {
        let sides = [found.a.map(|place| &a[place]), found.b.map(|place| &b[place])];
        let Some(first) = sides[0].or(sides[1]).and_then(|side| side.function.as_ref()) else { continue };
        let module = &first.module;
        let sides = sides.map(|side| side.map_or(Side::default(), Side::clone));
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

/// An object file, and the key of a function's name in both builds.
type Name<'s> = (Option<&'s Module>, &'s str);

/// A function in one variant.
#[derive(Debug, Clone, Default)]
struct Side {
    function: Option<Function>,
    /// Of each recording; empty without the function.
    counts: Vec<Counts>,
}

impl Side {
    fn add(&mut self, other: &Side) {
        if self.function.is_none() {
            self.function.clone_from(&other.function);
        }
        let longer = self.counts.len().max(other.counts.len());
        self.counts.resize(longer, Counts::default());
        for (sum, counts) in self.counts.iter_mut().zip(&other.counts) {
            *sum += *counts;
        }
    }

    fn module(&self) -> Option<&Module> {
        self.function.as_ref().map(|function| &function.module)
    }

    /// The key in the same build.
    fn key(&self) -> &str {
        self.function.as_ref().map_or("", |function| &function.key)
    }

    /// The key in other builds.
    fn common(&self) -> &str {
        self.function.as_ref().map_or("", |function| &function.common)
    }

    /// Whether Valgrind alone says its file.
    fn is_labelled(&self) -> bool {
        self.function.as_ref().is_some_and(|function| function.is_labelled)
    }

    /// What identifies functions of its name in both builds.
    fn name(&self) -> Name<'_> {
        (self.module(), self.common())
    }

    /// The name of the source file without its folder: each build may have another.
    fn file(&self) -> &str {
        self.function.as_ref().map_or("", |function| file_name(&function.file))
    }
}

/// The functions of both variants. Those of one name are one where the variants cannot be compared file by file: one of them tells no
/// file, or each has files of that name that the other does not have. (A static function of a header is in the header for a line
/// table, and in each unit that includes it for the symbol table.) They are also one where Valgrind alone says the files, and the two
/// do not have the same: it may have given the counts of one file's function to another's.
fn sides(baseline: &[Profile], variant: &[Profile]) -> [Vec<Side>; 2] {
    let all = [functions(baseline), functions(variant)];
    let [a, b] = [&all[0], &all[1]];
    let mut left: BTreeMap<Name, [usize; 2]> = BTreeMap::new();
    let mut is_told: BTreeMap<Name, [bool; 2]> = BTreeMap::new();
    for (side, sides) in all.iter().enumerate() {
        for one in sides {
            is_told.entry(one.name()).or_default()[side] |= !one.file().is_empty();
        }
    }
    for pair in by_file(a, b) {
        match pair {
            Paired { a: Some(place), b: None } => left.entry(a[place].name()).or_default()[0] += 1,
            Paired { a: None, b: Some(place) } => left.entry(b[place].name()).or_default()[1] += 1,
            _ => {}
        }
    }
    let mut is_labelled: BTreeMap<Name, bool> = BTreeMap::new();
    let mut are_several: BTreeMap<Name, [usize; 2]> = BTreeMap::new();
    for (side, sides) in all.iter().enumerate() {
        for one in sides {
            *is_labelled.entry(one.name()).or_default() |= one.is_labelled();
            are_several.entry(one.name()).or_default()[side] += 1;
        }
    }
    let is_uncertain = |one: &Side| {
        is_labelled.get(&one.name()) == Some(&true)
            && are_several
                .get(&one.name())
                .is_some_and(|several| several.iter().any(|functions| *functions > 1))
            && left.get(&one.name()).is_some_and(|left| left.contains(&0))
    };
    let is_one = |one: &Side| {
        is_told.get(&one.name()).is_some_and(|told| told.contains(&false))
            || left.get(&one.name()).is_some_and(|left| !left.contains(&0) && *left != [1, 1])
            || is_uncertain(one)
    };
    let as_one = |own: &[Side]| {
        let mut sides = as_one(own, &is_one);
        for side in sides.iter_mut().filter(|side| is_uncertain(side)) {
            // The one file of a side is not that of all its counts.
            side.function.iter_mut().for_each(|function| function.place = None);
        }
        sides
    };
    [as_one(a), as_one(b)]
}

/// The functions of a variant's recordings, by module, name and source file.
fn functions(profiles: &[Profile]) -> Vec<Side> {
    let mut by_key: BTreeMap<(Module, String, String), Side> = BTreeMap::new();
    for (repeat, profile) in profiles.iter().enumerate() {
        for function in profile.functions() {
            let key = (function.module.clone(), function.key.clone(), function.file.clone());
            let side = by_key.entry(key).or_default();
            side.counts.resize(profiles.len(), Counts::default());
            side.counts[repeat] = function.counts;
            side.function.get_or_insert(function);
        }
    }
    by_key.into_values().collect()
}

/// The functions of one variant, some names with all their files as one.
fn as_one(own: &[Side], is_one: &dyn Fn(&Side) -> bool) -> Vec<Side> {
    let mut sides: Vec<Side> = Vec::new();
    for side in own {
        match sides.last_mut() {
            // They are in the order of their keys.
            Some(last) if last.module() == side.module() && last.key() == side.key() && is_one(side) => {
                last.add(side);
                let both: Vec<&Function> = last.function.iter().chain(&side.function).collect();
                last.function = Function::merged(&both);
            }
            _ => sides.push(side.clone()),
        }
    }
    sides
}

/// Pairs functions by name and source file.
fn by_file(a: &[Side], b: &[Side]) -> Vec<Paired> {
    let own = |one: &Side| (one.module().cloned(), one.key().to_owned(), one.file().to_owned());
    let common = |one: &Side| (one.module().cloned(), one.common().to_owned(), one.file().to_owned());
    paired(a, b, own, common)
}

/// Pairs functions by name and source file, and those that are left by name.
fn pairs(a: &[Side], b: &[Side]) -> Vec<Paired> {
    let (mut pairs, left): (Vec<Paired>, Vec<Paired>) =
        by_file(a, b).into_iter().partition(|pair| pair.a.is_some() && pair.b.is_some());
    let [of_a, of_b]: [Vec<usize>; 2] =
        [left.iter().filter_map(|pair| pair.a).collect(), left.iter().filter_map(|pair| pair.b).collect()];
    let left_a: Vec<&Side> = of_a.iter().map(|place| &a[*place]).collect();
    let left_b: Vec<&Side> = of_b.iter().map(|place| &b[*place]).collect();
    let own = |one: &&Side| (one.module().cloned(), one.key().to_owned());
    let common = |one: &&Side| (one.module().cloned(), one.common().to_owned());
    pairs.extend(
        paired(&left_a, &left_b, own, common)
            .into_iter()
            .map(|pair| Paired { a: pair.a.map(|place| of_a[place]), b: pair.b.map(|place| of_b[place]) }),
    );
    pairs
}

fn row(kind: RowKind, module: &Module, sides: &[Side; 2]) -> Row {
    let known = || sides.iter().filter_map(|side| side.function.as_ref());
    let spread = sides.iter().map(|side| spread(&side.counts));
    let places: Vec<&Place> = known().filter_map(|function| function.place.as_ref()).collect();
    let is_one_file = places.windows(2).all(|two| two[0].file_name() == two[1].file_name());
    let place = places.iter().find(|place| place.line.is_some()).or(places.first());
    Row {
        kind,
        module: module.clone(),
        name: known().next().map_or(String::new(), |function| function.name.clone()),
        place: place.filter(|_| is_one_file).map(|place| (*place).clone()),
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
        let costs: Vec<_> =
            costs.iter().map(|(object, name, count)| (*object, "x.c", *name, *count)).collect();
        profile_of_files(&costs)
    }

    /// Of each cost the object file, the source file, the function, and the instructions.
    fn profile_of_files(costs: &[(&str, &str, &str, u64)]) -> Profile {
        let mut text = "events: Ir\n".to_owned();
        for (object, file, function, count) in costs {
            text.push_str(&format!("ob={object}\nfl={file}\nfn={function}\n3 {count}\n"));
        }
        text.push_str(&format!("totals: {}\n", costs.iter().map(|(.., count)| count).sum::<u64>()));
        let outputs = [callgrind::read(text.as_bytes()).expect("a file")];
        let mut profile = Profile::default();
        let programs = ["/x".to_owned()];
        profile.add(&outputs, None, &programs, &mut CodeNames::default()).expect("a profile");
        profile
    }

    /// Of each row the name, the source file, and the instructions of both sides; in the order of these.
    fn compared(
        a: &[(&str, &str, &str, u64)],
        b: &[(&str, &str, &str, u64)],
    ) -> Vec<(String, String, [u64; 2])> {
        let rows = rows(&[profile_of_files(a)], &[profile_of_files(b)]);
        let mut shown: Vec<_> = rows
            .into_iter()
            .map(|row| {
                let file = row.place.map_or("none".to_owned(), |place| place.file);
                (row.name, file, row.sides.map(|counts| counts.instructions))
            })
            .collect();
        shown.sort();
        shown
    }

    fn expected(rows: &[(&str, &str, [u64; 2])]) -> Vec<(String, String, [u64; 2])> {
        rows.iter().map(|(name, file, sides)| ((*name).to_owned(), (*file).to_owned(), *sides)).collect()
    }

    #[test]
    fn local_functions_of_one_name_are_paired_by_their_source_files() {
        let lp64 = [("/x", "/a64/a.c", "_Z4workm", 100), ("/x", "/a64/b.c", "_Z4workm", 7)];
        let ilp32 = [("/x", "/a32/b.c", "_Z4workj", 9), ("/x", "/a32/a.c", "_Z4workj", 300)];
        assert_eq!(
            compared(&lp64, &ilp32),
            expected(&[
                ("work(unsigned long)", "/a64/a.c", [100, 300]),
                ("work(unsigned long)", "/a64/b.c", [7, 9])
            ])
        );
        // The other build has inlined one of them, or Valgrind has given its counts to the other: it alone says the files here.
        assert_eq!(compared(&lp64, &ilp32[..1]), expected(&[("work(unsigned long)", "none", [107, 9])]));
        assert_eq!(compared(&lp64[..1], &ilp32), expected(&[("work(unsigned long)", "none", [100, 309])]));
    }

    #[test]
    fn no_file_is_named_where_it_is_not_known() {
        let two = [("/x", "a.c", "work", 100), ("/x", "b.c", "work", 7), ("/x", "a.c", "main", 1)];
        // Of x32 programs only symbols are known.
        let symbols = [("/x", "???", "work", 50), ("/x", "???", "main", 1)];
        let one = expected(&[("main", "a.c", [1, 1]), ("work", "none", [107, 50])]);
        assert_eq!(compared(&two, &symbols), one);
        let other_way = expected(&[("main", "a.c", [1, 1]), ("work", "none", [50, 107])]);
        assert_eq!(compared(&symbols, &two), other_way);
        // The only function of a name is the same function, although it begins with an inlined copy in one build.
        assert_eq!(
            compared(&[("/x", "x.c", "_Z1fm", 5)], &[("/x", "vector.h", "_Z1fj", 6)]),
            expected(&[("f(unsigned long)", "none", [5, 6])])
        );
    }

    #[test]
    fn functions_of_one_name_are_one_where_the_files_of_both_sides_are_of_two_kinds() {
        // Valgrind says the header, the symbol table each unit that includes it.
        let header = [("/x", "util.h", "work", 9)];
        let units = [("/x", "a.c", "work", 4), ("/x", "b.c", "work", 3)];
        assert_eq!(compared(&header, &units), expected(&[("work", "util.h", [9, 7])]));
        assert_eq!(compared(&units, &header), expected(&[("work", "util.h", [7, 9])]));
        // A global function has no file in the symbol table.
        let valgrind = [("/x", "c.c", "run", 1), ("/x", "a.c", "run", 2), ("/x", "b.c", "run", 3)];
        let symbols = [("/x", "???", "run", 5), ("/x", "a.c", "run", 6), ("/x", "b.c", "run", 7)];
        assert_eq!(
            compared(&valgrind, &symbols),
            expected(&[("run", "a.c", [2, 6]), ("run", "b.c", [3, 7]), ("run", "c.c", [1, 5])])
        );
    }

    #[test]
    fn a_part_of_a_function_that_begins_in_another_file_is_the_functions() {
        let a = [("/x", "vector.h", "f.cold", 2), ("/x", "x.c", "f", 5)];
        assert_eq!(compared(&a, &a[1..]), expected(&[("f", "x.c", [7, 5])]));
        // Which names of a library's functions are local is not known.
        let library = [("/lib/libc.so.6", "a.c", "work", 4), ("/lib/libc.so.6", "b.c", "work", 5)];
        assert_eq!(compared(&library, &library), expected(&[("work", "none", [9, 9])]));
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
