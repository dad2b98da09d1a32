//! The parts of a difference in max RSS: what the program allocates, what the allocator adds, what is resident besides.

use std::collections::BTreeSet;

use widthwise_anatomy::Certainty;
use widthwise_experiment::memory::Class;
use widthwise_experiment::units::thousands;

use super::allocated::Allocated;
use super::recordings::{Recordings, PAGE};
use super::resident::{Resident, Use};
use crate::explanation::model::{Measured, Part};
use crate::explanation::sentence::noun;

/// The causes without a place have this one.
const NOWHERE: &str = "";
/// If more of the heap than this share is not live when most is allocated, its sites do not stand for max RSS.
const MOST_ELSEWHERE: f64 = 0.1;

/// The parts of the heap: those of its sites first.
pub struct HeapParts<'a> {
    /// What both have allocated.
    pub allocated: [Allocated; 2],
    /// The parts of the peak heap's difference, by site or type.
    pub parts: &'a [Part],
}

/// One variable's bytes in both programs.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name, demangled.
    pub name: String,
    /// Its section, such as `.bss`.
    pub section: String,
    /// Bytes in the baseline and in the variant.
    pub bytes: [u64; 2],
}

/// All parts of the measured difference.
pub fn parts(
    measured: &Measured,
    resident: Option<&[Resident; 2]>,
    heap: Option<&HeapParts>,
    variables: &[Variable],
    recordings: &Recordings,
) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(heap) = heap {
        parts.extend(of_heap(measured, heap, recordings));
        let beyond = |resident| beyond_blocks(measured, resident, heap, recordings);
        parts.extend(resident.map(beyond).unwrap_or_default());
    }
    if let Some(resident) = resident {
        parts.extend(of_uses(measured, resident, heap.is_some(), variables, recordings));
    }
    parts.retain(|part| part.amount != 0);
    parts
}

/// Blocks by site, then what the allocator adds to them, and what the program maps itself.
fn of_heap(measured: &Measured, heap: &HeapParts, recordings: &Recordings) -> Vec<Part> {
    let [a, b] = &heap.allocated;
    let elsewhere = |of: &Allocated| of.peak_heap as i64 - of.composition.requested as i64;
    let is_far = |of: &Allocated| elsewhere(of).abs() as f64 > MOST_ELSEWHERE * of.peak_heap as f64;
    let is_low = is_far(a) || is_far(b);
    let carried = heap.parts.iter().map(|part| {
        let certainty = if is_low { Certainty::Low } else { part.certainty };
        measured
            .part(part.cause.clone(), part.place.clone(), part.amount, certainty)
            .with_detail(part.detail.clone())
            .with_layout_of(part.layout_of.clone())
    });
    let mut parts: Vec<Part> = carried.collect();
    let late = elsewhere(a) - elsewhere(b);
    let late_certainty = match is_low {
        true => Certainty::Low,
        false => recordings.of_allocated(0.0, &elsewhere).min(Certainty::Medium),
    };
    let cause = format!("blocks of the heap's peak that {} lacks", noun(measured.metric));
    parts.push(measured.part(cause, NOWHERE, late, late_certainty));
    parts.extend(overhead(measured, [a, b], recordings));
    let own = b.composition.own as i64 - a.composition.own as i64;
    let certainty = recordings.of_allocated(PAGE, &|of| of.composition.own as i64);
    parts.push(measured.part("memory that the program maps itself", "mmap", own, certainty));
    parts
}

/// The allocator's headers, and its rounding.
fn overhead(measured: &Measured, [a, b]: [&Allocated; 2], recordings: &Recordings) -> Vec<Part> {
    let of = |of: &Allocated| of.composition.overhead() as i64;
    let whole = of(b) - of(a);
    if !(a.is_glibc && b.is_glibc) {
        // Headers are known of glibc alone: those of another allocator are counted with its rounding.
        let cause = "the allocator's headers and rounding";
        let certainty = recordings.of_allocated(0.0, &of).min(Certainty::Medium);
        return vec![measured.part(cause, NOWHERE, whole, certainty)];
    }
    // malloc/malloc.c, malloc_chunk: the size before each block. A block with a mapping of its own has one word more,
    // which is in the rounding here.
    let headers_of =
        |one: &Allocated| (one.composition.blocks * one.word).min(one.composition.overhead()) as i64;
    let headers = headers_of(b) - headers_of(a);
    let of_rounding = recordings.of_allocated(0.0, &|one| of(one) - headers_of(one));
    let (words, blocks) = ([a.word, b.word], [a.composition.blocks, b.composition.blocks]);
    let detail = format!("{} bytes × {}", change(words), change(blocks));
    vec![
        measured
            .part("glibc's block headers", "malloc", headers, recordings.of_allocated(0.0, &headers_of))
            .with_detail(detail),
        measured
            .part("glibc's rounding of block sizes", "malloc", whole - headers, of_rounding)
            .with_detail("to 16 bytes, and to pages"),
    ]
}

fn change([a, b]: [u64; 2]) -> String {
    match a == b {
        true => thousands(a as i64),
        false => format!("{} → {}", thousands(a as i64), thousands(b as i64)),
    }
}

/// What is resident beyond the allocated memory, or allocated and not resident: in the heap segment, and in anonymous
/// mappings.
fn beyond_blocks(
    measured: &Measured,
    resident: &[Resident; 2],
    heap: &HeapParts,
    recordings: &Recordings,
) -> Vec<Part> {
    // A block from before a fork counts once in the recording, and each page that a process has copied by writing to it once more in
    // the reading. Nothing tells such pages from what the allocator keeps, and the reading and the recording are of two moments.
    if is_copying(resident, &heap.allocated) {
        let of = |side: usize| {
            let (resident, of) = (&resident[side], &heap.allocated[side]);
            beyond_heap(resident, of) + beyond_mappings(resident, of)
        };
        let cause = "memory copied after a fork, kept, or not resident";
        return vec![measured.part(cause, NOWHERE, of(1) - of(0), Certainty::Low)];
    }
    let whole = [measured.baseline, measured.variant];
    let both = [0, 1].map(|side| Beyond::of(whole[side], &resident[side], &heap.allocated[side]));
    // A huge page is resident as a whole, whatever the program has written of it.
    let (most, why) = match resident.iter().any(|side| side.has_huge_pages) {
        true => (Certainty::Low, "huge pages, or never written to"),
        false => (Certainty::Medium, "never written to"),
    };
    let part = |cause: &str, place: &str, of: fn(&Beyond) -> i64| {
        let amounts = both.each_ref().map(of);
        let amount = amounts[1] - amounts[0];
        let spread = recordings
            .of_both(PAGE, &|side, resident, allocated| of(&Beyond::of(whole[side], resident, allocated)));
        let certainty = spread.min(most).min(of_readings(resident, amount));
        let detail = change(amounts.map(|bytes| bytes.unsigned_abs())) + " bytes";
        measured.part(cause, place, amount, certainty).with_detail(detail)
    };
    let mapped = both[1].mapped - both[0].mapped;
    vec![
        part("memory that the allocator keeps", "heap (brk)", |of| of.kept),
        measured.part("anonymous mappings of no known owner", "mmap", mapped, Certainty::Low),
        part("allocated memory that is not resident", why, |of| of.unwritten),
    ]
}

/// Whether one of the trees may have copied pages after a fork.
pub fn is_copying(resident: &[Resident; 2], allocated: &[Allocated; 2]) -> bool {
    resident.iter().zip(allocated).any(|(resident, allocated)| resident.processes > 1 && allocated.may_copy)
}

/// Resident in the heap segments, and not allocated.
fn beyond_heap(resident: &Resident, of: &Allocated) -> i64 {
    resident.of(&Use::Class(Class::Heap)) - of.composition.main as i64
}

/// The same of anonymous mappings.
fn beyond_mappings(resident: &Resident, Allocated { composition: of, .. }: &Allocated) -> i64 {
    let allocated = of.mapped.saturating_add(of.arenas).saturating_add(of.own) as i64;
    resident.of(&Use::Class(Class::Mmapped)) - allocated
}

/// What one variant has beyond its blocks.
struct Beyond {
    /// Resident in the heap segment, and not allocated.
    kept: i64,
    /// Resident in anonymous mappings, and not allocated.
    mapped: i64,
    /// Allocated and not resident, below zero.
    unwritten: i64,
}

impl Beyond {
    /// `whole` is max RSS.
    fn of(whole: i64, resident: &Resident, allocated: &Allocated) -> Beyond {
        let (brk, mapped) = (beyond_heap(resident, allocated), beyond_mappings(resident, allocated));
        // What max RSS has and the reading lacks was written to after the reading, or freed before it.
        let lacks = (whole - resident.total()).max(0);
        let unwritten = (brk.min(0) + mapped.min(0) + lacks).min(0);
        // Between the two moments the program may have freed blocks of the one kind and allocated blocks of the other: what is not
        // allocated at the one and not resident at the other is then no memory of its own. At the peak the moments differ by little.
        let surplus = brk.max(0) + mapped.max(0);
        let most = if resident.is_at_peak() { surplus.min(lacks) } else { surplus };
        let moved = most.min(-unwritten);
        Beyond { kept: (brk - moved).max(0), mapped: (mapped - moved).max(0), unwritten: unwritten + moved }
    }
}

/// The highest certainty of a difference between the readings: what was resident at the peak beside a reading may be of the same use.
fn of_readings(resident: &[Resident; 2], amount: i64) -> Certainty {
    match resident.iter().map(Resident::lacks).sum::<u64>() {
        0 => Certainty::High,
        lacks if amount.unsigned_abs() <= lacks => Certainty::Low,
        _ if resident.iter().all(Resident::is_at_peak) => Certainty::High,
        _ => Certainty::Medium,
    }
}

/// Everything else that is resident, by use.
fn of_uses(
    measured: &Measured,
    resident: &[Resident; 2],
    has_heap: bool,
    variables: &[Variable],
    recordings: &Recordings,
) -> Vec<Part> {
    let uses: BTreeSet<&Use> = resident.iter().flat_map(|side| side.bytes.keys()).collect();
    let mut parts = Vec::new();
    for one in uses {
        let is_heap = matches!(one, Use::Class(Class::Heap | Class::Mmapped));
        let amount = resident[1].of(one) - resident[0].of(one);
        if is_heap && has_heap || amount == 0 {
            continue;
        }
        let certainty = recordings.of_use(one).min(of_readings(resident, amount));
        if *one == Use::Class(Class::ProgramData) {
            parts.extend(of_variables(measured, amount, variables, certainty));
            continue;
        }
        let certainty = if is_heap { Certainty::Low } else { certainty };
        let detail = change([resident[0].of(one) as u64, resident[1].of(one) as u64]) + " bytes";
        parts.push(measured.part(one.title(), one.place(), amount, certainty).with_detail(detail));
    }
    parts
}

/// The program's variables: one part for each large one that changes, if together they stand for the difference of the
/// resident pages, and one for the pages that remain. `certainty` is that of the pages.
fn of_variables(measured: &Measured, amount: i64, variables: &[Variable], certainty: Certainty) -> Vec<Part> {
    /// Smaller ones share pages.
    const LARGE: u64 = 16 << 10;
    /// Pages that begin or end with other variables.
    const PAGES: u64 = 8 << 12;
    let changed: Vec<&Variable> =
        variables.iter().filter(|one| one.bytes[0].abs_diff(one.bytes[1]) >= LARGE).collect();
    let sum: i64 = changed.iter().map(|one| one.bytes[1] as i64 - one.bytes[0] as i64).sum();
    let title = Use::Class(Class::ProgramData).title();
    // Variables that are only partly resident do not stand for pages.
    let tolerance = PAGES.max(amount.unsigned_abs() / 20);
    if changed.is_empty() || sum.abs_diff(amount) > tolerance {
        return vec![measured.part(title, ".data, .bss", amount, certainty)];
    }
    let of = |one: &Variable| {
        let difference = one.bytes[1] as i64 - one.bytes[0] as i64;
        let word = if difference < 0 { "smaller" } else { "larger" };
        measured
            .part(format!("{word} variable {}", one.name), one.section.clone(), difference, certainty)
            .with_detail(change(one.bytes) + " bytes")
    };
    // What the pages have at their ends, and what is resident of a variable.
    let most = if (amount - sum).unsigned_abs() < PAGES { Certainty::Low } else { certainty };
    let rest = measured.part(format!("other {title}"), ".data, .bss", amount - sum, most);
    changed.into_iter().map(of).chain([rest]).collect()
}

#[cfg(test)]
mod tests {
    use widthwise_anatomy::heap::Composition;
    use widthwise_experiment::memory;
    use widthwise_experiment::units::Unit;

    use super::*;
    use crate::explanation::Basis;

    fn resident(heap: u64, mmapped: u64, stack: u64) -> Resident {
        let part = |class| memory::Part { class, name: String::new() };
        let parts = [(Class::Heap, heap), (Class::Mmapped, mmapped), (Class::Stack, stack)];
        Resident::of_recording(parts.map(|(class, bytes)| (part(class), bytes)), 1)
    }

    fn measured(baseline: i64, variant: i64) -> Measured {
        let basis = Basis::Unjudged;
        Measured { basis, ..Measured::counted("max_rss", Unit::Bytes, [baseline, variant]) }
    }

    fn allocated(requested: u64, main: u64, blocks: u64, word: u64) -> Allocated {
        let composition = Composition { blocks, requested, main, ..Composition::default() };
        Allocated { composition, peak_heap: requested, word, is_glibc: true, may_copy: false }
    }

    fn amounts(parts: &[Part]) -> Vec<(&str, i64)> {
        parts.iter().map(|part| (part.cause.as_str(), part.amount)).collect()
    }

    #[test]
    fn the_parts_sum_to_the_difference_of_the_readings() {
        let measured = measured(100_000, 60_000);
        let site = measured
            .part("smaller blocks", "a.c:1", -20_000, Certainty::High)
            .with_layout_of(Some("Node".to_owned()));
        let heap = HeapParts {
            allocated: [allocated(40_000, 64_000, 1000, 8), allocated(20_000, 32_000, 1000, 4)],
            parts: &[site],
        };
        let resident = [resident(70_000, 5_000, 20_000), resident(33_000, 6_000, 19_000)];
        let twice = |all: [Resident; 2]| all.map(|one| vec![one.clone(), one]);
        let allocated = heap.allocated.map(|one| vec![one; 2]);
        let recordings = Recordings { resident: twice(resident.clone()), allocated };
        let parts = parts(&measured, Some(&resident), Some(&heap), &[], &recordings);
        assert_eq!(
            amounts(&parts),
            [
                ("smaller blocks", -20_000),
                ("glibc's block headers", -4_000),
                ("glibc's rounding of block sizes", -8_000),
                ("memory that the allocator keeps", -5_000),
                ("anonymous mappings of no known owner", 1_000),
                ("stacks", -1_000),
            ]
        );
        assert_eq!(parts[0].layout_of.as_deref(), Some("Node"));
        // Blocks are counted; so few pages may be those of another run.
        let certainties: Vec<&str> = parts.iter().map(|part| part.certainty.name()).collect();
        assert_eq!(certainties, ["high", "high", "high", "low", "low", "low"]);
        let sum: i64 = parts.iter().map(|part| part.amount).sum();
        assert_eq!(sum, resident[1].total() - resident[0].total());
    }

    #[test]
    fn headers_and_rounding_are_one_part_unless_both_allocators_are_glibcs() {
        let of = |are_glibcs: [bool; 2]| {
            let [a, b] = [allocated(16_000, 24_000, 1000, 8), allocated(16_000, 16_000, 1000, 8)];
            let allocated =
                [Allocated { is_glibc: are_glibcs[0], ..a }, Allocated { is_glibc: are_glibcs[1], ..b }];
            let heap = HeapParts { allocated, parts: &[] };
            let parts = parts(&measured(24_000, 16_000), None, Some(&heap), &[], &Recordings::default());
            parts.into_iter().map(|part| (part.cause, part.amount)).collect::<Vec<_>>()
        };
        let whole = [("the allocator's headers and rounding".to_owned(), -8_000)];
        assert_eq!(
            [of([true, false]), of([false, true]), of([false, false])],
            [whole.clone(), whole.clone(), whole]
        );
        assert_eq!(of([true, true]), [("glibc's block headers".to_owned(), -8_000)]);
    }

    #[test]
    fn what_forked_processes_may_have_copied_is_no_memory_that_the_allocator_keeps() {
        let of = |processes, may_copy| {
            let allocated = [allocated(60_000, 60_000, 1, 8), allocated(30_000, 30_000, 1, 4)]
                .map(|one| Allocated { may_copy, ..one });
            let resident =
                [resident(120_000, 0, 0), resident(60_000, 0, 0)].map(|one| Resident { processes, ..one });
            let heap = HeapParts { allocated, parts: &[] };
            let all =
                parts(&measured(120_000, 60_000), Some(&resident), Some(&heap), &[], &Recordings::default());
            let all = amounts(&all);
            let has = |cause: &str| all.iter().any(|(own, amount)| own == &cause && *amount == -30_000);
            [has("memory that the allocator keeps"), has("memory copied after a fork, kept, or not resident")]
        };
        assert_eq!(of(2, true), [false, true]);
        // One process at the peak, or processes that were executed and have logs of their own.
        assert_eq!([of(1, true), of(2, false)], [[true, false]; 2]);
    }

    #[test]
    fn allocated_memory_that_is_not_resident_is_a_part_of_its_own() {
        let heap = HeapParts {
            allocated: [allocated(50_000, 50_000, 1, 8), allocated(50_000, 50_000, 1, 8)],
            parts: &[],
        };
        let resident = [resident(50_000, 0, 0), resident(10_000, 0, 0)];
        let parts =
            parts(&measured(50_000, 10_000), Some(&resident), Some(&heap), &[], &Recordings::default());
        assert_eq!(amounts(&parts), [("allocated memory that is not resident", -40_000)]);
        assert_eq!(parts[0].place, "never written to");
    }

    #[test]
    fn what_a_reading_near_the_peak_may_lack_is_not_certain() {
        let of = |share| {
            let readings = [resident(50_000, 0, 0).at(share), resident(48_000, 0, 0)];
            [of_readings(&readings, 2_000), of_readings(&readings, 40_000)]
        };
        // The first lacks 2 632 of 52 632 bytes, or nothing.
        assert_eq!(of(0.95), [Certainty::Low, Certainty::High]);
        assert_eq!(of(1.0), [Certainty::High; 2]);
        assert_eq!(of(0.9), [Certainty::Low, Certainty::Medium]);
    }

    #[test]
    fn huge_pages_are_resident_as_a_whole_and_say_nothing_of_what_is_written() {
        let heap = HeapParts { allocated: [allocated(50_000_000, 50_000_000, 1, 8); 2], parts: &[] };
        let resident = [resident(5_000_000, 0, 0), resident(50_000_000, 0, 0).asking_for_huge_pages(true)];
        let twice = resident.clone().map(|one| vec![one.clone(), one]);
        let recordings = Recordings { resident: twice, allocated: heap.allocated.map(|one| vec![one; 2]) };
        let parts = parts(&measured(5_000_000, 50_000_000), Some(&resident), Some(&heap), &[], &recordings);
        assert_eq!(amounts(&parts), [("allocated memory that is not resident", 45_000_000)]);
        assert_eq!(
            (parts[0].place.as_str(), parts[0].certainty),
            ("huge pages, or never written to", Certainty::Low)
        );
    }

    #[test]
    fn memory_that_was_written_to_after_the_reading_is_resident() {
        let heap = HeapParts {
            allocated: [allocated(50_000, 50_000, 1, 8), allocated(50_000, 50_000, 1, 8)],
            parts: &[],
        };
        // The variant was read before it had touched all; its max RSS is larger.
        let resident = [resident(50_000, 0, 0), resident(40_000, 0, 0)];
        let of = |variant| {
            let measured = measured(50_000, variant);
            parts(&measured, Some(&resident), Some(&heap), &[], &Recordings::default())
        };
        assert_eq!(amounts(&of(50_000)), []);
        assert_eq!(amounts(&of(47_000)), [("allocated memory that is not resident", -3_000)]);
    }

    #[test]
    fn a_variable_stands_for_pages_only_where_they_are_resident() {
        let table =
            Variable { name: "table".to_owned(), section: ".bss".to_owned(), bytes: [800_000, 400_000] };
        let of =
            |amount| of_variables(&measured(0, 0), amount, std::slice::from_ref(&table), Certainty::High);
        assert_eq!(
            amounts(&of(-402_000)),
            [("smaller variable table", -400_000), ("other variables of the program", -2_000)]
        );
        assert_eq!(amounts(&of(-100_000)), [("variables of the program", -100_000)]);
    }

    #[test]
    fn sites_of_another_moment_are_a_low_guess() {
        let site = measured(0, 0).part("smaller blocks", "a.c:1", -20_000, Certainty::High);
        let early = Allocated { peak_heap: 80_000, ..allocated(40_000, 40_000, 1, 8) };
        let heap = HeapParts { allocated: [early, allocated(60_000, 60_000, 1, 4)], parts: &[site] };
        let parts = parts(&measured(0, 0), None, Some(&heap), &[], &Recordings::default());
        assert!(parts[..2].iter().all(|part| part.certainty == Certainty::Low), "{parts:?}");
        assert_eq!(parts[..2].iter().map(|part| part.amount).sum::<i64>(), 20_000);
    }
}
