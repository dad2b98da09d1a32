//! Formats amounts that are not metrics: durations, counts.

use std::time::Duration;

use widthwise_experiment::units::{Quantity, Unit};
use widthwise_verdict::Typical;

/// `40 µs`, `23 ms`, `0.4 s`, `12 s`, `3 min 10 s`, `2 h 5 min`.
pub fn duration(length: Duration) -> String {
    let seconds = length.as_secs_f64();
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds > 0.0 && seconds < 0.000_95 => format!("{:.0} µs", 1e6 * seconds),
        _ if seconds < 0.0995 => format!("{:.0} ms", 1e3 * seconds),
        _ if seconds < 9.95 => format!("{seconds:.1} s"),
        ..60 => format!("{whole} s"),
        60..3600 => joined(whole / 60, "min", whole % 60, "s"),
        _ => joined(whole / 3600, "h", whole % 3600 / 60, "min"),
    }
}

fn joined(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

/// `1 round`, `42 rounds`.
pub fn counted(count: usize, noun: &str) -> String {
    let text = Quantity { value: count as f64, unit: Unit::Count };
    if count == 1 {
        format!("{text} {noun}")
    } else {
        format!("{text} {noun}s")
    }
}

/// `a`, `a and b`, `a, b and c`.
pub fn listed<T: AsRef<str>>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [init @ .., last] => {
            let init: Vec<&str> = init.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", init.join(", "), last.as_ref())
        }
    }
}

/// A text that begins with a capital letter, as a sentence does.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The most names that a sentence lists; further names are counted.
const NAMED: usize = 6;

/// Names in a sentence: of many, the first ones and the number of others.
pub fn named(names: &[String]) -> String {
    match names.len() {
        ..=NAMED => listed(names),
        count => format!("{} and {} others", names[..NAMED - 1].join(", "), count + 1 - NAMED),
    }
}

/// A variant's typical value: `505 MB`; `505 MB … 520 MB` where only bounds are known; `at least 505 MB`
/// where the upper bound is unknown.
pub fn typical(typical: &Typical) -> String {
    bounded(typical.value, typical.upper, typical.metric.unit)
}

/// A value, or both bounds where there is an upper one.
pub fn bounded(value: f64, upper: Option<f64>, unit: Unit) -> String {
    let text = |value| Quantity { value, unit }.to_string();
    let low = text(value);
    match upper {
        Some(upper) if !upper.is_finite() => format!("at least {low}"),
        Some(upper) if text(upper) != low => format!("{low} … {}", text(upper)),
        _ => low,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_readable_units() {
        let shown = |seconds| duration(Duration::from_secs_f64(seconds));
        assert_eq!(shown(0.000_04), "40 µs");
        assert_eq!(shown(0.000_999), "1 ms");
        assert_eq!(shown(0.0234), "23 ms");
        assert_eq!(shown(0.42), "0.4 s");
        assert_eq!(shown(59.7), "1 min");
        assert_eq!(shown(190.0), "3 min 10 s");
        assert_eq!(shown(7500.0), "2 h 5 min");
    }

    #[test]
    fn lists_end_in_and() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
    }
}
