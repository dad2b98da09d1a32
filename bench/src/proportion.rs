//! How often something happened, out of how many times.

use std::fmt;

/// A count out of a count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Proportion {
    /// How often it happened.
    pub count: u32,
    /// Out of how many times.
    pub of: u32,
}

impl Proportion {
    /// One time more.
    pub fn add(&mut self, happened: bool) {
        self.count += u32::from(happened);
        self.of += 1;
    }

    /// As a fraction.
    pub fn fraction(self) -> f64 {
        f64::from(self.count) / f64::from(self.of.max(1))
    }

    /// Wilson's 95 % interval of the underlying probability (Wilson 1927; Brown, Cai & DasGupta 2001 recommend it).
    pub fn interval(self) -> (f64, f64) {
        const Z: f64 = 1.959964;
        let (p, n) = (self.fraction(), f64::from(self.of.max(1)));
        let centre = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
        let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        ((centre - half).max(0.0), (centre + half).min(1.0))
    }
}

impl fmt::Display for Proportion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.count, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_share_is_wilsons() {
        // R: prop.test(15, 300, correct = FALSE)
        let (low, high) = Proportion { count: 15, of: 300 }.interval();
        assert!((low - 0.03053).abs() < 1e-4 && (high - 0.08083).abs() < 1e-4, "{low} {high}");
        let (low, high) = Proportion { count: 0, of: 10 }.interval();
        assert!(low == 0.0 && (high - 0.2775).abs() < 1e-3, "{low} {high}");
    }
}
