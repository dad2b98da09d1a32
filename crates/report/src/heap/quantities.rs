//! Bytes, counts and shares as text.

use widthwise_experiment::units::{Quantity, Unit};

/// A number of bytes with its unit.
pub fn bytes(value: u64) -> String {
    Quantity { value: value as f64, unit: Unit::Bytes }.to_string()
}

pub(super) fn number(value: u64) -> String {
    Quantity { value: value as f64, unit: Unit::Count }.to_string()
}

pub(crate) fn signed(value: i128) -> String {
    let sign = match value {
        0 => "",
        1.. => "+",
        _ => "−",
    };
    format!("{sign}{}", bytes(value.unsigned_abs() as u64))
}

pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole == 0.0 {
        return String::new();
    }
    let share = 100.0 * part / whole;
    let text = if share.abs() < 9.95 { format!("{share:.1} %") } else { format!("{share:.0} %") };
    text.replace('-', "−")
}

/// A share; nearly all is not all.
pub(crate) fn not_quite(share: f64) -> String {
    match share {
        0.995..1.0 => format!("{:.1} %", ((share * 1000.0).floor() / 10.0)),
        share => percent(share, 1.0),
    }
}

/// A part of a number: `100 %` of all alone.
pub fn share_of(part: u64, all: u64) -> String {
    not_quite(part as f64 / all.max(1) as f64)
}
