//! How long blocks live: as a word, as a sentence, and as JSON.

use serde::Serialize;
use widthwise_anatomy::heap::lifetimes::EDGES;
use widthwise_anatomy::heap::Values;

use super::quantities::{not_quite, number};
use crate::format::capitalized;

/// Its form in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lifetimes {
    /// Temporary allocations: blocks that were freed before the process's next request.
    temporary: u64,
    /// Blocks that were freed later.
    later: u64,
    /// Blocks that were never freed.
    never: u64,
    /// The lower bound of the median lifetime; absent if half of the blocks live to the end of the run.
    median_from_ns: Option<u64>,
    /// Its upper bound; absent if half of the blocks live to the end of the run, or over 1000 s, or if it is
    /// not known.
    median_below_ns: Option<u64>,
    /// Likewise for nine in ten blocks.
    p90_from_ns: Option<u64>,
    p90_below_ns: Option<u64>,
}

/// The lifetimes, where they are known.
pub fn lifetimes(values: &Values) -> Option<Lifetimes> {
    let (lifetimes, never) = (&values.lifetimes, values.live_count);
    values.lifetimes_are_known().then(|| Lifetimes {
        temporary: lifetimes.temporary,
        later: lifetimes.released().saturating_sub(lifetimes.temporary),
        never,
        median_from_ns: lifetimes.from(0.5, never),
        median_below_ns: lifetimes.below(0.5, never),
        p90_from_ns: lifetimes.from(0.9, never),
        p90_below_ns: lifetimes.below(0.9, never),
    })
}

/// A bucket edge is a round number, not a measured one.
fn rounded(edge_ns: u64) -> String {
    match edge_ns {
        ..100_000_000 => format!("{} ms", edge_ns as f64 / 1e6),
        _ => format!("{} s", edge_ns as f64 / 1e9),
    }
}

/// A median between two bounds: one step, or all steps that the readings of the recorder's clock allow.
fn between(from_ns: u64, below_ns: Option<u64>) -> String {
    let Some(below_ns) = below_ns else {
        return if from_ns == 0 { "unknown".to_owned() } else { format!("> {}", rounded(from_ns)) };
    };
    let step = EDGES.iter().position(|edge| *edge == below_ns).unwrap_or(0);
    let is_one_step = step.checked_sub(1).map_or(0, |before| EDGES[before]) == from_ns;
    match is_one_step {
        true => format!("< {}", rounded(below_ns)),
        false if from_ns == 0 => format!("0 to {}", rounded(below_ns)),
        false => format!("{} to {}", rounded(from_ns), rounded(below_ns)),
    }
}

/// The median lifetime: `temporary`, `< 3 ms`, `0 to 300 ms`, `to the end`.
pub fn word(values: &Values) -> Option<String> {
    let reported = lifetimes(values)?;
    let all = reported.temporary + reported.later + reported.never;
    Some(match reported.median_from_ns {
        _ if reported.temporary * 2 >= all => "temporary".to_owned(),
        Some(from_ns) => between(from_ns, reported.median_below_ns),
        None => "to the end".to_owned(),
    })
}

/// Shares of all blocks: `45 % are temporary (freed before the next allocation), 12 % are freed later, 43 % are never freed`.
pub fn shares(values: &Values) -> Option<String> {
    let reported = lifetimes(values)?;
    let all = (reported.temporary + reported.later + reported.never) as f64;
    let share = |count: u64| match count {
        0 => "none".to_owned(),
        // Of a hundred thousand, one block is not none, and the others are not all.
        count if (count as f64) < all * 0.001 => "< 0.1 %".to_owned(),
        count if (count as f64) < all && count as f64 > all * 0.999 => "> 99.9 %".to_owned(),
        count if count as f64 == all => "all".to_owned(),
        count => not_quite(count as f64 / all),
    };
    Some(format!(
        "{} are temporary (freed before the next allocation), {} are freed later, {} are never freed",
        share(reported.temporary),
        share(reported.later),
        share(reported.never)
    ))
}

/// The shares of a side's blocks. A single block has no shares.
fn block_shares(values: &Values, whose: &str) -> Option<String> {
    let reported = lifetimes(values)?;
    Some(match (reported.temporary + reported.later + reported.never, reported.temporary, reported.later) {
        (1, 1, _) => format!("{whose} only block is temporary (freed before the next allocation)"),
        (1, _, 1) => format!("{whose} only block is freed after the next allocation"),
        (1, ..) => format!("{whose} only block is never freed"),
        _ => format!("of {whose} {} blocks {}", number(values.count), shares(values)?),
    })
}

/// The sentence on one or two variants, by their names.
pub fn sentence(a: (&str, &Values), b: Option<(&str, &Values)>) -> Option<String> {
    let Some(b) = b else {
        return Some(format!("{}.", capitalized(&block_shares(a.1, "its")?)));
    };
    let (first, second) = (shares(a.1)?, shares(b.1)?);
    if first == second && a.1.count.min(b.1.count) > 1 {
        return Some(format!("Of the blocks of either {first}."));
    }
    let [first, second] = [a, b].map(|(name, values)| block_shares(values, &format!("{name}'s")));
    // A name does not get a capital letter.
    let first = first?;
    let first = first.strip_prefix("of ").map_or_else(|| first.clone(), |rest| format!("Of {rest}"));
    Some(format!("{first}; {}.", second?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use widthwise_anatomy::heap::lifetimes::Lifetime;

    fn values(temporary: u64, later: &[u64], never: u64) -> Values {
        let mut values =
            Values { count: temporary + later.len() as u64 + never, live_count: never, ..Values::default() };
        for _ in 0..temporary {
            values.lifetimes.end(Lifetime { at_least_ns: 10, at_most_ns: 10, temporary: true });
        }
        for duration_ns in later {
            let (at_least_ns, at_most_ns) = (*duration_ns, *duration_ns);
            values.lifetimes.end(Lifetime { at_least_ns, at_most_ns, temporary: false });
        }
        values
    }

    #[test]
    fn the_word_is_the_median_lifetime() {
        assert_eq!(word(&values(2, &[5_000_000], 1)).as_deref(), Some("temporary"));
        assert_eq!(word(&values(0, &[2_000_000, 2_000_000], 1)).as_deref(), Some("< 3 ms"));
        assert_eq!(word(&values(0, &[2_000_000], 2)).as_deref(), Some("to the end"));
        assert_eq!(word(&values(0, &[u64::MAX, u64::MAX], 1)).as_deref(), Some("> 1000 s"));
        let spread = |at_least_ns, at_most_ns| {
            let mut values = Values { count: 1, ..Values::default() };
            values.lifetimes.end(Lifetime { at_least_ns, at_most_ns, temporary: false });
            word(&values)
        };
        assert_eq!(spread(0, 200_000_000).as_deref(), Some("0 to 0.3 s"));
        assert_eq!(spread(2_000_000, 40_000_000).as_deref(), Some("1 ms to 0.1 s"));
        assert_eq!(spread(4_000_000, u64::MAX).as_deref(), Some("> 3 ms"));
        assert_eq!(spread(0, u64::MAX).as_deref(), Some("unknown"));
        // massif and pprof do not record lifetimes.
        assert_eq!(word(&Values { count: 3, live_count: 1, ..Values::default() }), None);
    }

    #[test]
    fn one_block_has_no_shares() {
        let one =
            |never: usize| sentence(("x32", &values(0, &[5][..1 - never], never as u64)), None).unwrap();
        assert_eq!(one(1), "Its only block is never freed.");
        assert_eq!(one(0), "Its only block is freed after the next allocation.");
    }

    #[test]
    fn equal_shares_of_two_variants_are_printed_once() {
        let (a, b) = (values(1, &[5], 2), values(0, &[5], 0));
        assert_eq!(
            sentence(("x86-64", &a), Some(("x32", &a))).as_deref(),
            Some("Of the blocks of either 25 % are temporary (freed before the next allocation), 25 % are freed later, 50 % are never freed.")
        );
        let many = values(1, &[5; 2000], 0);
        assert_eq!(
            shares(&many).as_deref(),
            Some("< 0.1 % are temporary (freed before the next allocation), > 99.9 % are freed later, none are never freed")
        );
        let output = sentence(("x86-64", &a), Some(("x32", &b))).unwrap();
        assert!(output.contains("; x32's only block is freed after the next allocation."), "{output}");
    }
}
