//! Positions of values on an axis, and its labels.

use widthwise_experiment::units::{Quantity, Unit};

/// Plots are drawn this many units wide and stretched to the available width.
pub const WIDTH: f64 = 1000.0;

/// A linear axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// An axis on which those values fit with a small margin; never empty, always finite.
    pub fn over(values: impl IntoIterator<Item = f64>) -> Scale {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (low, high) =
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            return Scale { low: 0.0, high: 1.0 };
        }
        // All values are equal: the axis needs some length.
        let spread = (high - low).max(low.abs().max(high.abs()) * 1e-4).max(1e-9);
        let centre = low + (high - low) / 2.0;
        let half = (high - low).max(spread) / 2.0 * 1.08;
        Scale { low: centre - half, high: centre + half }
    }

    /// An axis from zero to that value.
    pub fn from_zero(high: f64) -> Scale {
        Scale { low: 0.0, high: if high.is_finite() && high > 0.0 { high } else { 1.0 } }
    }

    /// The position of a value in units of [`WIDTH`], clamped to the axis.
    pub fn place(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        if share.is_finite() {
            share.clamp(0.0, 1.0) * WIDTH
        } else {
            0.0
        }
    }

    /// Whether the value lies on the axis.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Whether the axis shows zero, or would be expected to.
    pub fn shows_zero(&self) -> bool {
        self.holds(0.0)
    }

    /// Its lowest and its highest value.
    pub fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// About `about` round numbers on the axis.
    pub fn ticks(&self, about: usize) -> Ticks {
        let rough = (self.high - self.low) / about.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough * 0.999)
            .unwrap_or(power * 10.0);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        // Multiples of the step, not sums of it: no drift, and zero is zero.
        let at = (first..=last).take(50).map(|multiple| multiple as f64 * step).collect();
        Ticks { at, step }
    }
}

/// Round numbers on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticks {
    /// Their values.
    pub at: Vec<f64>,
    /// The distance between them.
    pub step: f64,
}

impl Ticks {
    /// The ticks of a metric's values; the last one carries the unit.
    pub fn amounts(&self, unit: Unit) -> Vec<(f64, String)> {
        let largest = self.at.iter().fold(0.0f64, |largest, at| largest.max(at.abs()));
        let (size, name) = unit_step(unit, largest);
        let digits = digits(self.step / size);
        let last = self.at.len().saturating_sub(1);
        self.at
            .iter()
            .enumerate()
            .map(|(i, at)| {
                let number = match digits {
                    0 => Quantity { value: (at / size).round(), unit: Unit::Count }.to_string(),
                    _ => format!("{:.digits$}", at / size).replace('-', "−"),
                };
                (*at, if i == last { format!("{number}{name}") } else { number })
            })
            .collect()
    }

    /// The ticks of fractions, as signed per cents.
    pub fn shares(&self) -> Vec<(f64, String)> {
        let digits = digits(self.step * 100.0);
        self.at.iter().map(|at| (*at, signed_percent(*at, digits))).collect()
    }
}

/// `+2 %`, `−0.5 %`, `0`.
pub fn signed_percent(fraction: f64, digits: usize) -> String {
    let shown = format!("{:.digits$}", (fraction * 100.0).abs());
    if shown.bytes().all(|digit| matches!(digit, b'0' | b'.')) {
        return "0".to_owned();
    }
    let sign = if fraction < 0.0 { '−' } else { '+' };
    format!("{sign}{shown}\u{202f}%")
}

fn digits(step: f64) -> usize {
    (-(step * 1.001).log10().floor()).clamp(0.0, 9.0) as usize
}

fn unit_step(unit: Unit, largest: f64) -> (f64, &'static str) {
    let steps: &[(f64, &str)] = match unit {
        Unit::Nanoseconds => &[(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")],
        Unit::Bytes => &[(1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")],
        Unit::Count => &[(1e9, " G"), (1e6, " M"), (1.0, "")],
    };
    // As in `units::Quantity`: times from 0.1 s on are shown in seconds.
    let reaches = |size: f64| largest >= if size == 1e9 && unit == Unit::Nanoseconds { 1e8 } else { size };
    steps.iter().copied().find(|(size, _)| reaches(*size)).unwrap_or((1.0, steps[steps.len() - 1].1))
}

/// A logarithmic axis of ratios: halving and doubling are equally far from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioScale(Scale);

impl RatioScale {
    /// An axis on which those ratios fit, and 1.
    pub fn over(ratios: impl IntoIterator<Item = f64>) -> RatioScale {
        let logs = ratios.into_iter().filter(|ratio| *ratio > 0.0).map(f64::ln);
        let scale = Scale::over(logs.chain([0.0]));
        // A narrower axis than ±0.05 % would magnify differences that no machine can resolve.
        RatioScale(Scale { low: scale.low.min(-5e-4), high: scale.high.max(5e-4) })
    }

    /// The position of a ratio in units of [`WIDTH`], clamped to the axis.
    pub fn place(&self, ratio: f64) -> f64 {
        self.0.place(ratio.max(f64::MIN_POSITIVE).ln())
    }

    /// Whether the ratio lies on the axis.
    pub fn holds(&self, ratio: f64) -> bool {
        ratio > 0.0 && (self.0.low..=self.0.high).contains(&ratio.ln())
    }

    /// Round differences on the axis, as ratios and as per cents.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let (low, high) = (self.0.low.exp(), self.0.high.exp());
        if high / low > 4.0 {
            const FACTORS: [f64; 13] =
                [1e-3, 0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 30.0, 100.0, 1e3, 1e4];
            let inside = FACTORS.into_iter().filter(|factor| (low..=high).contains(factor));
            return inside
                .map(|factor| {
                    let text = if factor == 1.0 { "0".to_owned() } else { format!("×{factor}") };
                    (factor, text)
                })
                .collect();
        }
        let differences = Scale { low: low - 1.0, high: high - 1.0 };
        differences.ticks(5).shares().into_iter().map(|(share, text)| (1.0 + share, text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_over_nothing_or_over_one_value_has_a_length() {
        for values in [vec![], vec![0.0], vec![284e6], vec![f64::NAN, 3.0]] {
            let scale = Scale::over(values);
            assert!(scale.low < scale.high && scale.low.is_finite() && scale.high.is_finite());
            assert!(scale.ticks(5).at.len() < 50);
        }
    }

    #[test]
    fn ticks_are_round_and_have_distinct_labels() {
        let texts: Vec<String> = Scale::over([2.84e8, 2.87e8])
            .ticks(5)
            .amounts(Unit::Nanoseconds)
            .into_iter()
            .map(|t| t.1)
            .collect();
        assert_eq!(texts, ["0.284", "0.285", "0.286", "0.287 s"]);
    }

    #[test]
    fn a_number_that_rounds_to_zero_has_no_sign() {
        assert_eq!([signed_percent(-0.000_01, 2), signed_percent(0.021, 1)], ["0", "+2.1\u{202f}%"]);
    }

    #[test]
    fn halving_and_doubling_are_equally_far_from_one() {
        let scale = RatioScale::over([0.5, 2.0]);
        let middle = scale.place(1.0);
        assert!((middle - scale.place(0.5) - (scale.place(2.0) - middle)).abs() < 1e-9);
        assert!((middle - WIDTH / 2.0).abs() < 1e-9);
    }

    #[test]
    fn wide_ratio_axes_show_factors_and_narrow_ones_per_cents() {
        let texts = |low, high| -> Vec<String> {
            RatioScale::over([low, high]).ticks().into_iter().map(|tick| tick.1).collect()
        };
        assert_eq!(texts(0.2, 7.0), ["×0.25", "×0.5", "0", "×2", "×4"]);
        assert_eq!(texts(0.98, 1.02), ["−2\u{202f}%", "−1\u{202f}%", "0", "+1\u{202f}%", "+2\u{202f}%"]);
    }
}
