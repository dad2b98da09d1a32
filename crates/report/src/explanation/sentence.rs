//! The sentence of one metric: its difference, and the parts in percentage points.

use std::cmp::Ordering;

use widthwise_experiment::units::Quantity;

use crate::explanation::model::{Basis, Part, Unexplained};
use crate::format::{bounded, listed};
use crate::heap::not_quite;
use widthwise_verdict::Word;

/// Parts that a sentence names.
const MOST: usize = 5;
/// Parts below this are in the rest, in percentage points.
const LEAST: f64 = 0.05;

/// How a sentence says that a metric is smaller in the variant.
struct Wording {
    metric: &'static str,
    /// Behind the variant's name: the verb, and what follows `31 % less`.
    verb: &'static str,
    less: &'static str,
    more: &'static str,
    /// What follows the share.
    object: &'static str,
    /// The metric's name before its values.
    noun: &'static str,
}

const WORDINGS: [Wording; 11] = [
    Wording {
        metric: "max_rss",
        verb: "uses",
        less: "less",
        more: "more",
        object: "memory at its peak",
        noun: "max RSS",
    },
    Wording {
        metric: "tree_peak",
        verb: "uses",
        less: "less",
        more: "more",
        object: "memory at the peak of all its processes",
        noun: "tree peak",
    },
    Wording {
        metric: "peak_heap",
        verb: "has",
        less: "less",
        more: "more",
        object: "memory allocated at its peak",
        noun: "peak heap",
    },
    Wording {
        metric: "peak_heap_sum",
        verb: "has",
        less: "less",
        more: "more",
        object: "memory allocated at the peaks of its processes",
        noun: "sum of peak heaps",
    },
    Wording {
        metric: "file_size",
        verb: "has",
        less: "smaller",
        more: "larger",
        object: "files",
        noun: "file size",
    },
    Wording {
        metric: "static_instructions",
        verb: "has",
        less: "fewer",
        more: "more",
        object: "instructions in its code",
        noun: "instructions",
    },
    Wording {
        metric: "type_sizes",
        verb: "has",
        less: "smaller",
        more: "larger",
        object: "types",
        noun: "one object of each type that differs",
    },
    Wording {
        metric: "instructions",
        verb: "executes",
        less: "fewer",
        more: "more",
        object: "instructions (emulated)",
        noun: "instructions executed",
    },
    Wording {
        metric: "cache_misses",
        verb: "has",
        less: "fewer",
        more: "more",
        object: "last-level cache misses (emulated)",
        noun: "last-level cache misses",
    },
    Wording {
        metric: "branch_misses",
        verb: "has",
        less: "fewer",
        more: "more",
        object: "branch mispredictions (emulated)",
        noun: "branch mispredictions",
    },
    Wording {
        metric: "page_faults",
        verb: "has",
        less: "fewer",
        more: "more",
        object: "page faults",
        noun: "page faults",
    },
];

/// For a metric without words of its own.
const OTHER: Wording =
    Wording { metric: "", verb: "has", less: "less", more: "more", object: "of it", noun: "" };

/// A metric's name for readers.
pub fn noun(metric: &str) -> &str {
    wording(metric).map_or(metric, |wording| wording.noun)
}

fn wording(metric: &str) -> Option<&'static Wording> {
    WORDINGS.iter().find(|wording| wording.metric == metric)
}

/// What the named causes cover of a difference, where a share of it is known.
pub fn coverage(rest: &Unexplained, parts: &[&Part]) -> String {
    let Some(share) = rest.explained_share else { return String::new() };
    if share == 0.0 {
        return "Parts of low certainty and what is not explained are together at least as large as the difference, whatever their signs."
            .to_owned();
    }
    let of_low = match parts.iter().all(|part| part.is_named()) {
        true => "",
        false => " The rest are parts of low certainty and what is not explained, each without its sign.",
    };
    format!("Named causes cover {} of the difference.{of_low}", not_quite(share))
}

/// `x32 uses 31 % less memory at its peak than x86-64 (max RSS 74.5 MB → 44.7 MB): 24 points are pointers, 5.0 glibc's
/// rounding; 2.0 points are not explained.`
pub fn of_metric([baseline, variant]: [&str; 2], rest: &Unexplained, parts: &[&Part]) -> String {
    let quantity = |value: i64| Quantity { value: value as f64, unit: rest.unit }.to_string();
    let shown = |value: i64, upper| bounded(value as f64, upper, rest.unit);
    let (from, to) = (shown(rest.baseline, rest.uppers[0]), shown(rest.variant, rest.uppers[1]));
    let is_bounded = rest.uppers.iter().any(Option::is_some);
    let noun = noun(rest.metric);
    if rest.baseline == rest.variant && !is_bounded {
        return format!("{variant} and {baseline} have the same {noun}: {from}.");
    }
    let is_less = rest.variant < rest.baseline;
    // Points count in the direction of the difference.
    let sign = if is_less { -1.0 } else { 1.0 };
    if !rest.is_clear() {
        return unclear([baseline, variant], [&from, &to], rest, parts, sign);
    }
    let Wording { verb, less, more, object, .. } = wording(rest.metric).unwrap_or(&OTHER);
    let is_judged_less = match rest.basis {
        Basis::Judged(Word::Lower) => true,
        Basis::Judged(Word::Higher) => false,
        _ => is_less,
    };
    if is_judged_less != is_less && !is_bounded {
        let by =
            rest.estimate.filter(|size| !size.is_multiple).map_or(String::new(), |size| format!("{size} "));
        let word = if is_judged_less { less } else { more };
        return format!(
            "{variant} {verb} {by}{word} {object} than {baseline}; the typical values differ in the other direction ({noun} {from} → {to}), \
             so that no part of them explains it."
        );
    }
    let word = if is_less { less } else { more };
    if is_bounded {
        // Of a difference between bounds, no share is known.
        return format!("{variant} {verb} {word} {object} than {baseline} ({noun} {from} → {to}).");
    }
    let difference = quantity((rest.variant - rest.baseline).abs());
    // The verdict's figure, as everywhere in the report.
    let (by, than) = match (rest.estimate, rest.baseline) {
        (Some(size), _) if size.is_multiple => (format!("{size} as much"), "as"),
        (Some(size), _) => (format!("{size} {word}"), "than"),
        (None, 0) => (format!("{difference} {word}"), "than"),
        (None, baseline) => {
            let of_values = share(100.0 * (rest.variant - rest.baseline).abs() as f64 / baseline as f64);
            (format!("{of_values} {word}"), "than")
        }
    };
    // Both may round to one number.
    let change = match (from == to, is_less) {
        (false, _) => format!("{from} → {to}"),
        (true, true) => format!("{from}, {difference} {less} in {variant}"),
        (true, false) => format!("{from}, {difference} {more} in {variant}"),
    };
    let (typical, other) = match other_share(rest) {
        Some(other) => ("typical ", other),
        None => ("", String::new()),
    };
    let mut text =
        format!("{variant} {verb} {by} {object} {than} {baseline} ({typical}{noun} {change}{other})");
    // Parts of what was measured are guesses where their certainty is low.
    let is_cause = |part: &&Part| part.is_named() || rest.basis == Basis::Counted;
    let (causes, guesses): (Vec<&Part>, Vec<&Part>) = parts.iter().copied().partition(is_cause);
    let mut clauses = Vec::new();
    let named = points(rest, &causes, sign);
    if !named.is_empty() {
        clauses.push(named.join(", "));
    }
    let guessed = sign * guesses.iter().map(|part| part.points).sum::<f64>();
    for (points, what) in [(guessed, "of low certainty"), (sign * rest.points, "not explained")] {
        if points.abs() >= LEAST {
            let noun = if clauses.is_empty() { " points" } else { "" };
            clauses.push(format!("{}{noun} {what}", number(points)));
        }
    }
    if !clauses.is_empty() {
        text.push_str(&format!(": {}", clauses.join("; ")));
    }
    text.push('.');
    text
}

/// A metric in which no difference was established, or that was not judged: the values, and the parts that are known to differ.
fn unclear(
    [baseline, variant]: [&str; 2],
    [from, to]: [&str; 2],
    rest: &Unexplained,
    parts: &[&Part],
    sign: f64,
) -> String {
    let noun = noun(rest.metric);
    let Basis::Judged(word) = rest.basis else {
        return format!("{noun}: {baseline} has {from}, {variant} {to}; the two were not judged.");
    };
    let reason = rest.verdict_reason.as_ref().map_or(".".to_owned(), |reason| format!(": {reason}"));
    let says = format!(
        "{variant} and {baseline}, {noun}: {} ({baseline} {from}, {variant} {to}){reason}",
        word.text()
    );
    // The whole is not known to differ; some of its parts may be.
    let known: Vec<&Part> = parts.iter().copied().filter(|part| part.is_named()).collect();
    let which = match word {
        // The spread may be unknown.
        Word::Withheld | Word::NoData => "of certainty medium or high",
        _ => "beyond the spread of the recordings",
    };
    // No word of this sentence gives the direction.
    let direction = if sign < 0.0 { "less" } else { "more" };
    match points(rest, &known, sign) {
        points if points.is_empty() => says,
        points => {
            let points = points.join(", ");
            format!("{says} Parts {which}, positive where {variant} has {direction}: {points}.")
        }
    }
}

/// By what the typical values differ, if that is another share than the verdict's, of paired runs: the points are those of the typical
/// values. A share within the verdict's interval is the same share.
fn other_share(rest: &Unexplained) -> Option<String> {
    let size = rest.estimate.filter(|_| rest.baseline != 0)?;
    let ratio = rest.variant as f64 / rest.baseline as f64;
    let of_values = size.like(ratio).to_string();
    if size.includes(ratio) || of_values == size.to_string() {
        return None;
    }
    Some(match of_values.strip_suffix(" times") {
        Some(ratio) => format!(", whose ratio is {ratio}"),
        None => format!(", which differ by {of_values}"),
    })
}

/// `24 points are pointers in Node (a.cpp:3)`, `5.0 glibc's rounding`, …
fn points(rest: &Unexplained, parts: &[&Part], sign: f64) -> Vec<String> {
    if rest.baseline == 0 {
        return Vec::new();
    }
    // One cause may be at several places.
    let mut causes: Vec<(String, Option<&str>, f64)> = Vec::new();
    for (cause, place, points) in of_whole_types(parts) {
        match causes.iter_mut().find(|(known, ..)| *known == cause) {
            Some((_, known, sum)) => {
                *known = known.filter(|known| *known == place);
                *sum += points;
            }
            None => causes.push((cause, Some(place), points)),
        }
    }
    causes.sort_by(|(.., a), (.., b)| b.abs().total_cmp(&a.abs()));
    let count = causes.iter().take(MOST).filter(|(.., points)| points.abs() >= LEAST).count();
    let (named, smaller) = causes.split_at(count);
    let others: f64 = smaller.iter().map(|(.., points)| points).sum();
    let mut all: Vec<(f64, String)> = named
        .iter()
        .map(|(cause, place, points)| {
            let place = place.filter(|place| !place.is_empty() && !cause.contains(place));
            let place = place.map_or(String::new(), |place| format!(" ({place})"));
            (sign * points, format!("{cause}{place}"))
        })
        .collect();
    if others.abs() >= LEAST {
        all.push((sign * others, "smaller parts".to_owned()));
    }
    let shown = |(index, (points, what)): (usize, &(f64, String))| match index {
        0 => format!("{} points are {what}", number(*points)),
        _ => format!("{} {what}", number(*points)),
    };
    all.iter().enumerate().map(shown).collect()
}

/// Cause, place and points of each part. Parts of one type's layout at one place that have different directions are one: `pointers and holes in
/// Node`. One of them alone would be a gain or a cost that its objects do not have.
fn of_whole_types<'p>(parts: &[&'p Part]) -> Vec<(String, &'p str, f64)> {
    let mut all = Vec::new();
    let mut done: Vec<(&str, &str)> = Vec::new();
    for part in parts {
        let own = (part.cause.clone(), part.place.as_str(), part.points);
        let Some(ty) = part.layout_of.as_deref() else {
            all.push(own);
            continue;
        };
        let is_own = |other: &&&Part| other.layout_of == part.layout_of && other.place == part.place;
        let mut layout: Vec<&Part> = parts.iter().filter(is_own).copied().collect();
        let has = |order| layout.iter().any(|part| part.amount.cmp(&0) == order);
        if !has(Ordering::Less) || !has(Ordering::Greater) {
            all.push(own);
        } else if !done.contains(&(ty, own.1)) {
            done.push((ty, own.1));
            layout.sort_by_key(|part| std::cmp::Reverse(part.amount.unsigned_abs()));
            let end = format!(" in {ty}");
            let causes: Vec<&str> =
                layout.iter().map(|part| part.cause.strip_suffix(&end).unwrap_or(&part.cause)).collect();
            let points = layout.iter().map(|part| part.points).sum();
            all.push((format!("{}{end}", listed(&causes)), own.1, points));
        }
    }
    all
}

/// `1.3 %`, `24 %`.
fn share(value: f64) -> String {
    match value {
        ..LEAST => "less than 0.1 %".to_owned(),
        _ => format!("{} %", number(value)),
    }
}

/// `1.3`, `−24`.
fn number(value: f64) -> String {
    let digits = usize::from(value.abs() < 9.95);
    format!("{value:.digits$}").replace('-', "−")
}

#[cfg(test)]
mod tests {
    use widthwise_experiment::units::Unit;
    use widthwise_verdict::Word;

    use super::*;
    use crate::explanation::{Certainty, Measured};

    fn sentence(basis: Basis, values: [i64; 2], amounts: &[(&str, &str, i64)]) -> String {
        let measured = Measured { basis, ..Measured::counted("max_rss", Unit::Bytes, values) };
        let part = |(cause, place, amount): &(&str, &str, i64)| {
            measured.part(*cause, *place, *amount, Certainty::High)
        };
        let parts: Vec<Part> = amounts.iter().map(part).collect();
        let parts: Vec<&Part> = parts.iter().collect();
        of_metric(["x86-64", "x32"], &measured.unexplained(&parts, None), &parts)
    }

    #[test]
    fn typical_values_that_contradict_the_verdict_are_not_divided() {
        let text = sentence(Basis::Judged(Word::Lower), [100_000, 101_000], &[("pointers", "", -1_000)]);
        assert!(text.contains(" less "), "{text}");
        assert!(text.contains("the typical values differ in the other direction"), "{text}");
        assert!(!text.contains("pointers") && !text.contains(" more "), "{text}");
    }

    #[test]
    fn points_count_in_the_direction_of_the_difference() {
        let parts = [("pointers in Node", "a.cpp:3", -24_000), ("rounding", "", -9_000), ("text", "", 1_000)];
        assert_eq!(
            sentence(Basis::Judged(Word::Lower), [100_000, 66_000], &parts),
            "x32 uses 34 % less memory at its peak than x86-64 (max RSS 100 kB → 66.0 kB): 24 points are pointers in Node \
             (a.cpp:3), 9.0 rounding, −1.0 text; 2.0 not explained."
        );
        let more = sentence(Basis::Judged(Word::Higher), [100_000, 110_000], &[("text", "", 10_000)]);
        assert!(
            more.ends_with(
                "10 % more memory at its peak than x86-64 (max RSS 100 kB → 110 kB): 10 points are text."
            ),
            "{more}"
        );
    }

    #[test]
    fn a_difference_without_a_verdict_is_not_called_smaller() {
        let parts = [("pointers", "", -10)];
        for basis in [Basis::Judged(Word::NoDifference), Basis::Judged(Word::Inconclusive), Basis::Unjudged] {
            let text = sentence(basis, [1000, 990], &parts);
            // Its parts have a direction.
            let whole = text.split(" Parts ").next().unwrap_or_default();
            assert!(!whole.contains("less") && whole.contains("1.00 kB"), "{text}");
        }
    }

    #[test]
    fn an_inconclusive_whole_comes_before_the_parts_that_are_certain() {
        let parts = [("pointers in Node", "a.cpp:3", -24_000), ("stacks", "", 20_000)];
        let text = sentence(Basis::Judged(Word::Inconclusive), [100_000, 96_000], &parts);
        let [whole, parts] = text.split_once(" Parts ").map(|(whole, parts)| [whole, parts]).unwrap();
        assert!(whole.contains(Word::Inconclusive.text()), "{text}");
        assert_eq!(
            parts,
            "beyond the spread of the recordings, positive where x32 has less: 24 points are pointers in Node (a.cpp:3), −20 \
             stacks."
        );
    }

    #[test]
    fn a_part_has_one_sign_whether_or_not_the_verdict_is_clear() {
        let parts = [("libstdc++'s reserve", "", -10_000)];
        let of = |word, values| sentence(Basis::Judged(word), values, &parts);
        for (values, points, direction) in
            [([100_000, 90_000], "10", "less"), ([100_000, 110_000], "−10", "more")]
        {
            let clear = of(if direction == "less" { Word::Lower } else { Word::Higher }, values);
            assert!(clear.contains(&format!("): {points} points are libstdc++'s reserve")), "{clear}");
            let withheld = of(Word::Withheld, values);
            let said = format!(
                " Parts of certainty medium or high, positive where x32 has {direction}: {points} points are libstdc++'s reserve."
            );
            assert!(withheld.ends_with(&said), "{withheld}");
        }
    }

    #[test]
    fn a_withheld_verdict_comes_with_its_reason_and_what_is_needed() {
        let measured = Measured {
            basis: Basis::Judged(Word::Withheld),
            ..Measured::counted("peak_heap", Unit::Bytes, [100, 90])
        };
        let reason = Some("the spread is unknown. This command records each twice.".to_owned());
        let rest = Unexplained { verdict_reason: reason, ..measured.unexplained(&[], None) };
        assert_eq!(
            of_metric(["x86-64", "x32"], &rest, &[]),
            "x32 and x86-64, peak heap: withheld (x86-64 100 B, x32 90.0 B): the spread is unknown. This command records each \
             twice."
        );
    }

    #[test]
    fn a_part_of_low_certainty_is_no_cause() {
        let of = |certainty| {
            let measured = Measured {
                metric: "max_rss",
                unit: Unit::Bytes,
                baseline: 1000,
                variant: 1500,
                basis: Basis::Judged(Word::Higher),
                uppers: [None; 2],
                estimate: None,
            };
            let parts = [
                measured.part("larger blocks", "a.c:1", 400, certainty),
                measured.part("stacks", "", 80, Certainty::Medium),
            ];
            let parts: Vec<&Part> = parts.iter().collect();
            let text = of_metric(["x86-64", "x32"], &measured.unexplained(&parts, None), &parts);
            text.split_once("): ").map(|(_, parts)| parts.to_owned()).unwrap()
        };
        let named = "40 points are larger blocks (a.c:1), 8.0 stacks; 2.0 not explained.";
        assert_eq!([of(Certainty::High), of(Certainty::Medium)], [named; 2]);
        assert_eq!(of(Certainty::Low), "8.0 points are stacks; 40 of low certainty; 2.0 not explained.");
    }

    #[test]
    fn parts_of_one_types_layout_that_compensate_each_other_are_named_together() {
        let measured = Measured {
            basis: Basis::Judged(Word::Lower),
            ..Measured::counted("max_rss", Unit::Bytes, [100_000, 80_000])
        };
        let of_type = |cause: &str, ty: &str, place: &str, amount| {
            let part = measured.part(format!("{cause} in {ty}"), place, amount, Certainty::High);
            part.with_layout_of(Some(ty.to_owned()))
        };
        let clauses = |parts: &[Part]| {
            let parts: Vec<&Part> = parts.iter().collect();
            let text = of_metric(["x86-64", "x32"], &measured.unexplained(&parts, None), &parts);
            text.split_once("): ").map(|(_, clauses)| clauses.to_owned()).unwrap_or_default()
        };
        let node = [of_type("pointers", "Node", "a.c:3", -20_000), of_type("long", "Node", "a.c:3", -1_000)];
        let each = "20 points are pointers in Node (a.c:3), 1.0 long in Node (a.c:3)";
        let mut parts = node.to_vec();
        parts.push(of_type("pointers", "elf", "a.c:72", -60_000));
        parts.push(of_type("holes", "elf", "a.c:72", 60_000));
        assert_eq!(clauses(&parts), format!("{each}; −1.0 not explained."), "a type that keeps its size");
        parts.push(of_type("long", "elf", "a.c:72", -2_000));
        assert_eq!(
            clauses(&parts),
            "20 points are pointers in Node (a.c:3), 2.0 pointers, holes and long in elf (a.c:72), 1.0 long in Node (a.c:3); −3.0 \
             not explained."
        );
        // Another type in the same line, and more objects of the type.
        let mut parts = node.to_vec();
        parts.push(of_type("holes", "Leaf", "a.c:3", 1_000));
        parts.push(measured.part("more Node", "a.c:3", 2_000, Certainty::High));
        assert_eq!(
            clauses(&parts),
            "20 points are pointers in Node (a.c:3), −2.0 more Node (a.c:3), 1.0 long in Node (a.c:3), −1.0 holes in Leaf (a.c:3); \
             2.0 not explained."
        );
    }

    #[test]
    fn a_cause_at_several_places_is_named_once() {
        let parts = [("long", "a", -300), ("long", "b", -200)];
        let text = sentence(Basis::Judged(Word::Lower), [1000, 500], &parts);
        assert!(text.ends_with(": 50 points are long."), "{text}");
    }
}
