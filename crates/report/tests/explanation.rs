//! Explanations: their texts are harmless, and state no more than what is known.

use serde_json::Value;
use widthwise_anatomy::heap::Composition;
use widthwise_experiment::memory::Class;
use widthwise_experiment::metric::find;
use widthwise_experiment::units::Unit;
use widthwise_report::explanation::function::Function;
use widthwise_report::explanation::memory::{Allocated, Memory, Origin, Recordings, Resident, Use};
use widthwise_report::explanation::{Basis, Certainty, Explanation, Measured, Part, Section};
use widthwise_report::text::Palette;
use widthwise_verdict::{wording, Word};

use crate::campaign::{laid, SLOW};

const HOSTILE: &str = "name\u{1b}]0;title\u{7}\u{202e}";

/// A section on one metric.
struct One {
    measured: Measured,
    cause: &'static str,
}

impl Section for One {
    fn name(&self) -> &'static str {
        "one"
    }

    fn measured(&self) -> Vec<Measured> {
        vec![self.measured]
    }

    fn parts(&self) -> Vec<Part> {
        vec![self.measured.part(self.cause, "", self.measured.difference(), Certainty::High)]
    }

    fn text(&self, _: usize, _: &Palette) -> String {
        String::new()
    }

    fn json(&self) -> Value {
        Value::Null
    }
}

fn explanation(measured: Measured, cause: &'static str) -> Explanation<'static> {
    let section = One { measured, cause };
    Explanation {
        variant: "x32",
        baseline: "x86-64",
        sections: vec![Box::new(section)],
        remarks: Vec::new(),
        details: None,
    }
}

#[test]
fn names_of_symbols_in_sentences_are_harmless() {
    let measured = Measured::counted("file_size", Unit::Bytes, [2000, 1000]);
    let text = explanation(measured, HOSTILE).terminal(200, &Palette::plain());
    assert!(text.contains("50 points are name\\x1b]0;title\\x07\\u{202e}"), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
}

#[test]
fn names_of_programs_beside_a_function_are_harmless() {
    let function = Function { name: "main", names: [HOSTILE, "x32"], lines: [&[], &[]], aligned: &[] };
    let text = function.terminal(100, &Palette::plain());
    assert!(text.contains("\\x1b]0;title") && !text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn a_difference_of_less_than_a_tenth_of_a_per_cent_is_not_0_per_cent() {
    let measured = Measured::counted("static_instructions", Unit::Count, [10_200_000, 10_201_234]);
    let sentences = explanation(measured, "code").sentences();
    assert_eq!(
        sentences,
        ["x32 has less than 0.1 % more instructions in its code than x86-64 (instructions 10.2 M, 1\u{202f}234 more in x32)."]
    );
}

#[test]
fn of_values_with_two_bounds_no_share_is_known() {
    let measured = Measured {
        metric: "tree_peak",
        unit: Unit::Bytes,
        baseline: 505_000_000,
        variant: 404_000_000,
        basis: Basis::Judged(Word::Lower),
        uppers: [Some(520e6), None],
        estimate: None,
    };
    let explanation = explanation(measured, "pointers");
    assert_eq!(
        explanation.sentences(),
        ["x32 uses less memory at the peak of all its processes than x86-64 (tree peak 505 MB … 520 MB → 404 MB)."]
    );
    assert_eq!(explanation.unexplained()[0].explained_share, None);
}

#[test]
fn a_sentence_has_the_verdicts_figure_and_behind_the_typical_values_theirs() {
    let laid = laid(8);
    let verdict = laid.comparison().verdict(SLOW, find("max_rss").unwrap()).unwrap().clone();
    let figure = wording::size(&verdict).unwrap().to_string();
    assert!(wording::sentence(&verdict).contains(&format!(" uses {figure} (")), "{verdict:?}");
    let of = |variant| Measured {
        metric: "max_rss",
        unit: Unit::Bytes,
        baseline: 10_000_000,
        variant,
        basis: Basis::Judged(Word::Lower),
        uppers: [None; 2],
        estimate: wording::size(&verdict),
    };
    let [sentence] = &explanation(of(8_000_000), "pointers").sentences()[..] else { panic!("one sentence") };
    let digits = figure.split_once('.').map_or(0, |(_, rest)| rest.len() - " %".len());
    let typical = format!("(typical max RSS 10.0 MB → 8.00 MB, which differ by {:.digits$} %)", 20.0);
    assert!(
        sentence.starts_with(&format!("x32 uses {figure} less memory at its peak than x86-64 {typical}")),
        "{sentence}"
    );
    // Values that differ by the verdict's share, or by one within its interval.
    for ratio in [verdict.ratio, verdict.low, verdict.high] {
        let variant = 10e6 * ratio.unwrap();
        let inside = if ratio == verdict.low { variant.ceil() } else { variant.floor() };
        let [sentence] = &explanation(of(inside as i64), "pointers").sentences()[..] else { panic!() };
        assert!(sentence.contains("(max RSS 10.0 MB → ") && !sentence.contains("differ by"), "{sentence}");
    }
    // The other way round.
    let reversed = verdict.reversed();
    assert_eq!((reversed.word, reversed.reversed().word), (Word::Higher, Word::Lower));
    assert!((reversed.ratio.unwrap() * verdict.ratio.unwrap() - 1.0).abs() < 1e-12);
    assert!(wording::sentence(&reversed).starts_with(&format!("{} uses ", verdict.baseline)));
}

/// The memory of two variants in a reading each, of which nothing is explained.
fn memory(metric: &'static str, origin: Origin) -> Memory {
    let resident =
        Resident { bytes: Default::default(), origin, processes: 2, share: 1.0, has_huge_pages: false };
    Memory {
        measured: Measured {
            metric,
            unit: Unit::Bytes,
            baseline: 3000,
            variant: 2000,
            basis: Basis::Judged(Word::Lower),
            uppers: [None; 2],
            estimate: None,
        },
        says: None,
        resident: Some([resident.clone(), resident]),
        allocated: None,
        recordings: Recordings::default(),
        heap: Vec::new(),
        variables: Vec::new(),
        top: 10,
        lag: 0,
        missing: Vec::new(),
        remarks: Vec::new(),
    }
}

#[test]
fn copies_after_a_fork_are_neither_unwritten_memory_nor_mappings_of_no_known_owner() {
    const CAUSE: &str = "memory copied after a fork, kept, or not resident";
    // Both allocate 30 MB before they fork and share a mapping of 5 MB, which is no anonymous memory. All of it is written to. The
    // variant's children write to 9 MB more of what they inherit.
    let composition = Composition {
        blocks: 1,
        requested: 30_000_000,
        mapped: 30_000_000,
        own: 5_000_000,
        ..Composition::default()
    };
    let one = Allocated { composition, peak_heap: 30_000_000, word: 8, is_glibc: true, may_copy: true };
    let parts = |processes| {
        let resident = [33_000_000, 42_000_000].map(|bytes| Resident {
            bytes: [(Use::Class(Class::Mmapped), bytes)].into(),
            origin: Origin::Series,
            processes,
            share: 1.0,
            has_huge_pages: false,
        });
        let both = resident.each_ref().map(|one| vec![one.clone(); 6]);
        let recordings = Recordings { resident: both, allocated: [vec![one; 6], vec![one; 6]] };
        let measured = Measured {
            baseline: 33_000_000,
            variant: 42_000_000,
            ..memory("tree_peak", Origin::Series).measured
        };
        let memory = Memory {
            measured,
            resident: Some(resident),
            allocated: Some([one; 2]),
            recordings,
            ..memory("tree_peak", Origin::Series)
        };
        memory.parts().into_iter().map(|part| (part.cause, part.amount, part.certainty)).collect::<Vec<_>>()
    };
    assert_eq!(parts(4), [(CAUSE.to_owned(), 9_000_000, Certainty::Low)]);
    assert!(parts(1).iter().all(|(cause, ..)| cause != CAUSE), "nothing was forked");
}

#[test]
fn the_memory_of_a_tree_is_explained_by_what_was_measured_of_it() {
    let of = |metric, origin| {
        let memory = memory(metric, origin);
        (memory.reason(metric).unwrap(), memory.text(1000, &Palette::plain()))
    };
    let (reason, text) = of("tree_peak", Origin::Series);
    assert!(
        reason.starts_with("tree peak is typical of all memory rounds, and the parts are from"),
        "{reason}"
    );
    assert!(!reason.contains("max RSS") && !text.contains("max RSS"), "{reason} {text}");
    assert!(text.contains("Page tables are no part of tree peak."), "{text}");
    let (reason, _) = of("max_rss", Origin::Series);
    assert!(reason.starts_with("max RSS is from the timed rounds"), "{reason}");
}

#[test]
fn what_is_not_explained_may_be_what_the_kernels_account_lags_by() {
    let reason = |metric, lag| Memory { lag, ..memory(metric, Origin::Series) }.reason(metric).unwrap();
    let lagging = "the kernel's account of max RSS may lag by 393 kB";
    assert!(reason("max_rss", 393_216).contains(lagging), "{}", reason("max_rss", 393_216));
    let missing = vec!["Nothing was read.".to_owned()];
    let unread = Memory { lag: 393_216, missing, ..memory("max_rss", Origin::Series) };
    let unread = unread.reason("max_rss").unwrap();
    assert!(unread.starts_with("Nothing was read. The kernel's account of max RSS may lag"), "{unread}");
    // The difference is of 1000 bytes.
    assert!(!reason("max_rss", 999).contains("may lag"));
    // The peak of a tree is read elsewhere.
    assert!(!reason("tree_peak", 393_216).contains("may lag"));
}

#[test]
fn nearly_all_of_a_difference_is_not_all_of_it() {
    let of = |bytes: u64| Resident {
        bytes: [(Use::Class(Class::Stack), bytes)].into(),
        origin: Origin::Series,
        processes: 1,
        share: 1.0,
        has_huge_pages: false,
    };
    let sides = [of(1_990_400), of(1_000_000)];
    let mut memory = memory("max_rss", Origin::Series);
    (memory.measured.baseline, memory.measured.variant) = (1_995_000, 1_000_000);
    memory.recordings.resident = sides.each_ref().map(|side| vec![side.clone(); 3]);
    memory.resident = Some(sides);
    let text = memory.text(1000, &Palette::plain());
    assert!(text.contains("Named causes cover 99.5 % of the difference."), "{text}");
}

#[test]
fn a_part_of_low_certainty_counts_against_the_named_causes_whatever_its_sign() {
    let of = |stack: u64, mapped: u64| Resident {
        bytes: [(Use::Class(Class::Stack), stack), (Use::Class(Class::Mmapped), mapped)].into(),
        origin: Origin::Series,
        processes: 1,
        share: 1.0,
        has_huge_pages: false,
    };
    let covers = |share: &str| {
        format!(
            "Named causes cover {share} of the difference. The rest are parts of low certainty and what is not explained, each without its sign."
        )
    };
    let none = "Parts of low certainty and what is not explained are together at least as large as the difference, whatever their signs.";
    // The stacks explain 950 kB. Mappings of no known owner are of certainty low; 100 kB are not explained.
    for (mapped, variant, sentence) in [
        ([0, 100_000], 2_050_000, covers("79 %")),
        ([100_000, 0], 1_850_000, covers("83 %")),
        ([0, 950_000], 2_900_000, none.to_owned()),
    ] {
        let sides = [of(1_950_000, mapped[0]), of(1_000_000, mapped[1])];
        let mut memory = memory("max_rss", Origin::Series);
        (memory.measured.baseline, memory.measured.variant) = (3_000_000, variant);
        memory.recordings.resident = sides.each_ref().map(|side| vec![side.clone(); 3]);
        memory.resident = Some(sides);
        let text = memory.text(1000, &Palette::plain());
        assert!(text.contains(&sentence), "{sentence}: {text}");
    }
}

#[test]
fn a_reading_below_the_peak_tells_unwritten_memory_from_memory_of_another_moment() {
    // Both allocate 16 MB at the peak. The variant is read after it has freed 4 MB of blocks in the heap segment and allocated another
    // of 1 MB, which has a mapping of its own.
    let allocated = |main, mapped| {
        let composition =
            Composition { blocks: 1, requested: 16_000_000, main, mapped, ..Composition::default() };
        Allocated { composition, peak_heap: 16_000_000, word: 8, is_glibc: true, may_copy: false }
    };
    let of = |heap, mapped, stack| Resident {
        bytes: [(Class::Heap, heap), (Class::Mmapped, mapped), (Class::Stack, stack)]
            .map(|(class, bytes)| (Use::Class(class), bytes))
            .into(),
        origin: Origin::Series,
        processes: 1,
        share: 1.0,
        has_huge_pages: false,
    };
    let parts = |peak: i64, stack: u64| {
        let read = of(11_000_000, 2_000_000, stack);
        let share = read.total() as f64 / peak as f64;
        let sides = [of(15_000_000, 1_000_000, 100_000), read.at(share)];
        let both = [allocated(15_000_000, 1_000_000); 2];
        let mut memory = memory("max_rss", Origin::Series);
        (memory.measured.baseline, memory.measured.variant) = (16_100_000, peak);
        memory.recordings = Recordings {
            resident: sides.each_ref().map(|side| vec![side.clone(); 6]),
            allocated: both.map(|one| vec![one; 6]),
        };
        (memory.resident, memory.allocated) = (Some(sides), Some(both));
        memory.parts().into_iter().map(|part| (part.cause, part.amount, part.certainty)).collect::<Vec<_>>()
    };
    let unwritten = "allocated memory that is not resident".to_owned();
    let unknown = "anonymous mappings of no known owner".to_owned();
    let stacks = "stacks".to_owned();
    // 50 kB of the blocks were not written to at the peak. What the reading lacks may be of any use.
    assert_eq!(
        parts(16_100_000, 150_000),
        [(unwritten.clone(), -50_000, Certainty::Low), (stacks.clone(), 50_000, Certainty::Low)]
    );
    // Parts that are larger than what the reading lacks.
    let found = parts(18_100_000, 3_100_000);
    assert_eq!(
        found,
        [(stacks.clone(), 3_000_000, Certainty::Medium), (unwritten.clone(), -1_000_000, Certainty::Low)]
    );
    // A block may be larger than what the reading lacks.
    let found = parts(13_900_000, 150_000);
    assert_eq!(
        found,
        [(unwritten.clone(), -2_250_000, Certainty::Medium), (stacks.clone(), 50_000, Certainty::Low)]
    );
    // At the peak both are memory of their own.
    assert_eq!(
        parts(13_150_000, 150_000),
        [
            (unwritten, -4_000_000, Certainty::Medium),
            (unknown, 1_000_000, Certainty::Low),
            (stacks, 50_000, Certainty::High)
        ]
    );
}
