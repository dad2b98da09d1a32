//! Units of amounts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a metric's numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Time, in nanoseconds.
    Nanoseconds,
    /// Memory, in bytes.
    Bytes,
    /// Events: faults, switches, instructions, processes.
    Count,
}

impl Unit {
    /// The unit's name in JSON, CSV and the archive.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
            Unit::Count => "count",
        }
    }

    /// The unit of that name, if there is one.
    pub fn find(name: &str) -> Option<Unit> {
        Unit::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// All of them.
    pub const ALL: [Unit; 3] = [Unit::Nanoseconds, Unit::Bytes, Unit::Count];

    /// The best unit for an amount: its size, and its name with the space before it.
    pub fn step(self, amount: f64) -> (f64, &'static str) {
        let steps: &[(f64, f64, &str)] = match self {
            // Times from 0.1 s on are shown in seconds.
            Unit::Nanoseconds => &[(1e8, 1e9, " s"), (1e6, 1e6, " ms"), (1e3, 1e3, " µs"), (0.0, 1.0, " ns")],
            Unit::Bytes => &[(1e9, 1e9, " GB"), (1e6, 1e6, " MB"), (1e3, 1e3, " kB"), (0.0, 1.0, " B")],
            Unit::Count if amount.fract() == 0.0 && amount.abs() < 1e7 => &[],
            Unit::Count => &[(1e9, 1e9, " G"), (1e6, 1e6, " M")],
        };
        let step = steps.iter().find(|(from, ..)| amount.abs() >= *from);
        step.map_or((1.0, ""), |(_, size, name)| (*size, name))
    }
}

/// An amount with its unit, formatted for readers (`13.9 MB`, `0.284 s`, `3 214`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    /// How many of `unit`.
    pub value: f64,
    /// The unit.
    pub unit: Unit,
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, name) = self.unit.step(self.value);
        if self.value == 0.0 {
            return write!(f, "0{name}");
        }
        // A typical count is an average: from a thousand on its decimals are meaningless.
        let is_whole = self.value.fract() == 0.0 || self.value.abs() >= 999.5;
        if self.unit == Unit::Count && size == 1.0 && is_whole {
            return f.write_str(&thousands(self.value.round() as i64));
        }
        write!(f, "{}{name}", significant(self.value / size))
    }
}

/// Three significant digits; an exponent only below a billionth.
fn significant(value: f64) -> String {
    let magnitude = value.abs();
    let digits = if magnitude >= 99.95 {
        0
    } else if magnitude >= 9.995 {
        1
    } else if magnitude >= 0.9995 {
        2
    } else if magnitude >= 0.099_95 {
        3
    } else if magnitude >= 1e-9 {
        // The factor: what rounds up to a power of ten has its digits.
        (2.0 - (magnitude * 1.0005).log10().floor()) as usize
    } else {
        return format!("{value:.2e}").replace('-', "−");
    };
    format!("{value:.digits$}")
}

/// Groups of three, parted by a narrow no-break space, as ISO 80000-1 has it.
pub fn thousands(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    if value < 0 {
        text.push('−');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64, unit: Unit) -> String {
        Quantity { value, unit }.to_string()
    }

    #[test]
    fn amounts_are_formatted_with_suitable_units_and_digits() {
        assert_eq!(shown(284e6, Unit::Nanoseconds), "0.284 s");
        assert_eq!(shown(12.34e6, Unit::Nanoseconds), "12.3 ms");
        assert_eq!(shown(850.0, Unit::Nanoseconds), "850 ns");
        assert_eq!(shown(13.94e6, Unit::Bytes), "13.9 MB");
        assert_eq!(shown(3214.0, Unit::Count), "3\u{202f}214");
        assert_eq!(shown(3213.4, Unit::Count), "3\u{202f}213");
        assert_eq!(shown(999.6, Unit::Count), "1\u{202f}000");
        assert_eq!(shown(2.345e9, Unit::Count), "2.35 G");
        assert_eq!(shown(0.0, Unit::Count), "0");
        assert_eq!(shown(0.0999, Unit::Count), "0.0999");
        assert_eq!(shown(0.0004, Unit::Count), "0.000400");
        assert_eq!(shown(0.000_999_6, Unit::Count), "0.00100");
        assert_eq!(shown(-0.0123, Unit::Count), "-0.0123");
        assert_eq!(shown(0.02, Unit::Nanoseconds), "0.0200 ns");
        assert_eq!(shown(1.5e-12, Unit::Count), "1.50e−12");
        assert_eq!(shown(0.0, Unit::Bytes), "0 B");
        assert_eq!(shown(0.0, Unit::Nanoseconds), "0 ns");
    }
}
