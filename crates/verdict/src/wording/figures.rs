//! The figures of a verdict as text, with as many digits as their interval justifies.

use widthwise_experiment::units::{Quantity, Unit};

use crate::Verdict;

/// From this ratio on a difference is shown as a multiple instead of in per cent.
const MULTIPLE: f64 = 10.0;

/// The size of a judged difference as sentences write it, without its sign and its interval: `31.0 %`, `12.3 times`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Per cent, or the multiple.
    value: f64,
    digits: usize,
    /// Whether it is a multiple.
    pub is_multiple: bool,
    /// The interval around the ratio.
    interval: (f64, f64),
}

impl Size {
    /// Of a verdict that has a ratio.
    pub(super) fn of(verdict: &Verdict) -> Option<Size> {
        let (value, digits, is_multiple) = match Figures::of(verdict)? {
            Figures::Percent(Signed { estimate, digits, .. }) => (estimate.abs(), digits, false),
            Figures::Multiple { ratio, digits, .. } => (ratio, digits, true),
            Figures::Amount { .. } => return None,
        };
        Some(Size { value, digits, is_multiple, interval: (verdict.low?, verdict.high?) })
    }

    /// Whether the verdict's interval contains a ratio.
    pub fn includes(&self, ratio: f64) -> bool {
        (self.interval.0..=self.interval.1).contains(&ratio)
    }

    /// The size of another ratio, in the form and with the digits of this one.
    pub fn like(&self, ratio: f64) -> Size {
        let value = if self.is_multiple { ratio } else { (100.0 * (ratio - 1.0)).abs() };
        Size { value, ..*self }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Size { value, digits, is_multiple, .. } = *self;
        let unit = if is_multiple { "times" } else { "%" };
        match digits {
            0 => write!(f, "{} {unit}", Quantity { value: value.round(), unit: Unit::Count }),
            _ => write!(f, "{value:.digits$} {unit}"),
        }
    }
}

/// The form of a verdict's figures.
pub(super) enum Figures {
    /// A ratio as a difference in per cent.
    Percent(Signed),
    /// A large ratio as a multiple.
    Multiple { ratio: f64, low: f64, high: f64, digits: usize },
    /// An amount, where there is no ratio.
    Amount { baseline: Quantity, variant: Quantity, difference: Signed },
}

/// A difference with its interval, in the unit in which it is shown.
pub(super) struct Signed {
    estimate: f64,
    low: f64,
    high: f64,
    digits: usize,
    /// The unit, with the space before it.
    unit: &'static str,
}

impl Figures {
    /// The figures of a verdict that has them.
    pub fn of(verdict: &Verdict) -> Option<Figures> {
        let (low, high) = (verdict.low?, verdict.high?);
        if let Some(difference) = verdict.difference {
            return Some(amount(verdict, difference, low, high));
        }
        let ratio = verdict.ratio?;
        if ratio >= MULTIPLE {
            let digits = match 0.5 * (high - low) {
                half if half >= 1.0 => 0,
                half if half >= 0.05 => 1,
                _ => 2,
            };
            return Some(Figures::Multiple { ratio, low, high, digits });
        }
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let digits = digits(50.0 * (high - low), percent(ratio));
        let (estimate, low, high) = (percent(ratio), percent(low), percent(high));
        Some(Figures::Percent(Signed { estimate, low, high, digits, unit: " %" }))
    }

    /// As a cell of a table: `−2.1 % (−2.9 … −1.4)`, `× 12.3 (12.1 … 12.6)`, `0 → 11: +11 (+9 … +13)`.
    pub fn cell(&self) -> String {
        match self {
            Figures::Percent(difference) => difference.cell(),
            Figures::Multiple { ratio, low, high, digits } => {
                format!("× {ratio:.digits$} ({low:.digits$} … {high:.digits$})")
            }
            Figures::Amount { baseline, variant, difference } => {
                format!("{baseline} → {variant}: {}", difference.cell())
            }
        }
    }

    /// The estimate alone: `−2.1 %`.
    pub fn estimate(&self) -> String {
        match self {
            Figures::Percent(found) | Figures::Amount { difference: found, .. } => {
                format!("{}{}", found.signed(found.estimate), found.unit)
            }
            Figures::Multiple { ratio, digits, .. } => format!("× {ratio:.digits$}"),
        }
    }

    /// The interval alone: `−2.1 % to +1.4 %`, `±0.3 %`.
    pub fn range(&self) -> String {
        match self {
            // A margin of a few per cent needs ends with one decimal.
            Figures::Percent(found) if found.low.abs().max(found.high.abs()) < 10.0 => {
                Signed { digits: found.digits.max(1), ..*found }.range()
            }
            Figures::Percent(difference) | Figures::Amount { difference, .. } => difference.range(),
            Figures::Multiple { low, high, digits, .. } => {
                format!("{low:.digits$} to {high:.digits$} times as much")
            }
        }
    }

    /// Whether the interval is 0 alone: at least most runs on both sides had the same figure.
    pub fn is_zero(&self) -> bool {
        match self {
            Figures::Percent(found) | Figures::Amount { difference: found, .. } => {
                found.low == 0.0 && found.high == 0.0
            }
            Figures::Multiple { .. } => false,
        }
    }
}

fn amount(verdict: &Verdict, difference: f64, low: f64, high: f64) -> Figures {
    let unit = verdict.metric.unit;
    let shown = |value: f64| Quantity { value: value.max(0.0), unit };
    let baseline = verdict.baseline_mean.unwrap_or(0.0);
    let (size, name) = unit.step(low.abs().max(high.abs()));
    let (estimate, low, high) = (difference / size, low / size, high / size);
    let half = 0.5 * (high - low);
    let digits = match unit {
        _ if half == 0.0 && estimate.fract() == 0.0 => 0,
        Unit::Count => digits(half, estimate),
        _ => digits_of_amount(half, estimate),
    };
    Figures::Amount {
        baseline: shown(baseline),
        variant: shown(baseline + difference),
        difference: Signed { estimate, low, high, digits, unit: name },
    }
}

impl Signed {
    fn cell(&self) -> String {
        let Signed { estimate, low, high, unit, .. } = *self;
        let estimate = self.signed(estimate);
        match self.even() {
            Some(reach) => format!("{estimate}{unit} (±{reach})"),
            None => format!("{estimate}{unit} ({} … {})", self.signed(low), self.signed(high)),
        }
    }

    fn range(&self) -> String {
        let unit = self.unit;
        match (self.low == self.high, self.signed(self.low), self.signed(self.high)) {
            (true, _, high) => format!("{high}{unit}"),
            (false, low, high) => format!("{low}{unit} to {high}{unit}"),
        }
    }

    /// The reach to either side, where `±` is true: it leads from the figure that is shown to the ends that would be
    /// shown.
    fn even(&self) -> Option<String> {
        let Signed { estimate, low, high, digits, .. } = *self;
        if high <= low {
            return Some("0".to_owned());
        }
        let steps = |value: f64| (value * 10f64.powi(digits as i32)).round();
        let reach = self.unsigned(0.5 * (high - low));
        let (below, above) = (steps(estimate) - steps(low), steps(high) - steps(estimate));
        (below == above && self.unsigned(below / 10f64.powi(digits as i32)) == reach).then_some(reach)
    }

    /// A number with its sign, and without one where it is shown as 0.
    fn signed(&self, value: f64) -> String {
        signed(value, self.unsigned(value))
    }

    /// A number without its sign; large counts in groups of three.
    fn unsigned(&self, value: f64) -> String {
        let (value, digits) = (value.abs(), self.digits);
        match digits {
            0 => Quantity { value: value.round(), unit: Unit::Count }.to_string(),
            _ => format!("{value:.digits$}"),
        }
    }

    /// The difference without its sign and its interval, nearer end first: `31.0 % (30.6 to 31.4)`.
    pub fn size(&self) -> String {
        let Signed { estimate, low, high, unit, .. } = *self;
        let (near, far) = if estimate < 0.0 { (high, low) } else { (low, high) };
        let range = if high > low {
            format!(" ({} to {})", self.unsigned(near), self.unsigned(far))
        } else {
            String::new()
        };
        format!("{}{unit}{range}", self.unsigned(estimate))
    }
}

/// A number's text with its sign, and without one where it is shown as 0.
pub(super) fn signed(value: f64, unsigned: String) -> String {
    match value {
        _ if unsigned.chars().all(|c| matches!(c, '0' | '.')) => unsigned,
        value if value < 0.0 => format!("−{unsigned}"),
        _ => format!("+{unsigned}"),
    }
}

/// How many digits after the point a number deserves whose interval reaches this far to either side; where there is no
/// spread at all, enough to show the number.
pub(super) fn digits(half: f64, seen: f64) -> usize {
    let measure = if half > 0.0 { half } else { seen.abs() };
    match measure {
        m if m >= 0.995 && half > 0.0 => 0,
        m if m >= 0.05 => 1,
        m if m >= 0.005 => 2,
        m if m > 0.0 => 3,
        _ => 1,
    }
}

/// The same of a time or a size, whose unit is a thousand times the next smaller one: half of an interval that begins with 1, 2 or 3
/// has a second digit, as the Particle Data Group rounds (Review of Particle Physics, 5.3). −0.6 ms (−2.3 … +1.1) is not −1 ms.
fn digits_of_amount(half: f64, seen: f64) -> usize {
    let place = half.log10().floor();
    match half / 10f64.powf(place) < 3.545 && half > 0.0 {
        true => (1.0 - place).clamp(0.0, 3.0) as usize,
        false => digits(half, seen),
    }
}
