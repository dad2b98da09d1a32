//! Figures as text, with their intervals.

use widthwise_experiment::units::{Quantity, Unit};
use widthwise_verdict::scaling::{Figure, Unfitted};

/// The text that replaces a missing figure.
fn instead(reason: &Unfitted) -> String {
    match reason {
        Unfitted::Withheld(_) => "withheld".into(),
        _ => "·".into(),
    }
}

pub(super) fn plain(figure: &Result<Figure, Unfitted>) -> String {
    figure.as_ref().map_or_else(instead, |figure| significant(figure.estimate))
}

/// Three significant digits, without an exponent where possible.
pub(super) fn significant(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 1000.0 => return Quantity { value, unit: Unit::Count }.to_string(),
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        value if value >= 0.1 => 3,
        value if value >= 0.001 => 5,
        _ => return format!("{value:.2e}"),
    };
    format!("{value:.digits$}")
}

pub(super) fn seconds(figure: &Result<Figure, Unfitted>) -> String {
    figure.as_ref().map_or_else(instead, |figure| time(figure.estimate))
}

pub(super) fn time(seconds: f64) -> String {
    if seconds < 0.0 {
        return format!("−{}", time(-seconds));
    }
    Quantity { value: seconds * 1e9, unit: Unit::Nanoseconds }.to_string()
}

pub(super) fn bytes(value: f64) -> String {
    if value < 0.0 {
        return format!("−{}", bytes(-value));
    }
    Quantity { value, unit: Unit::Bytes }.to_string()
}

/// `1.97 (1.95 … 1.99)`.
pub(super) fn ranged(figure: &Result<Figure, Unfitted>, digits: usize) -> String {
    let figure = match figure {
        Ok(figure) => figure,
        Err(reason) => return instead(reason),
    };
    match figure.bounds {
        Some(ends) if ends.low < ends.high => {
            format!("{:.digits$} ({:.digits$} … {:.digits$})", figure.estimate, ends.low, ends.high)
        }
        _ => format!("{:.digits$}", figure.estimate),
    }
}

pub(super) fn percent(figure: &Result<Figure, Unfitted>) -> String {
    figure.as_ref().map_or_else(instead, |figure| format!("{:.1} %", 100.0 * figure.estimate))
}

/// `+26.0`: a share in percent with its sign; what rounds to 0 has none.
pub(super) fn with_sign(share: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", (100.0 * share).abs());
    match text.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        true => text,
        false if share < 0.0 => format!("−{text}"),
        false => format!("+{text}"),
    }
}

/// `+26 % (25 … 27)`, of a share.
pub(super) fn signed(figure: &Figure) -> String {
    let word = |value: f64| with_sign(value, 1);
    match figure.bounds {
        Some(ends) => format!("{} % ({} … {})", word(figure.estimate), word(ends.low), word(ends.high)),
        None => format!("{} %", word(figure.estimate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_that_rounds_to_nothing_has_no_sign() {
        assert_eq!(
            [-0.00026, 0.0004, -0.02, 0.26].map(|share| with_sign(share, 1)),
            ["0.0", "0.0", "−2.0", "+26.0"]
        );
        assert_eq!(with_sign(-0.004, 0), "0");
    }
}
