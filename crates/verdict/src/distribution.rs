//! The normal and Student's distribution: as much of them as intervals and p-values need.

use std::f64::consts::{PI, SQRT_2};

/// The share of the standard normal distribution below `x`.
pub fn normal(x: f64) -> f64 {
    0.5 * erfc(-x / SQRT_2)
}

/// The complementary error function: its Maclaurin series near 0, its continued fraction (Abramowitz & Stegun 7.1.14)
/// beyond. Good to about 15 digits of the larger of the two tails, and to as many of the smaller beyond 2.
fn erfc(x: f64) -> f64 {
    let z = x.abs();
    let upper = if z < 2.0 {
        let (mut sum, mut term, mut k) = (z, z, 0.0);
        loop {
            k += 1.0;
            term *= -z * z / k;
            let step = term / (2.0 * k + 1.0);
            sum += step;
            if step.abs() <= 1e-17 * sum.abs() {
                break;
            }
        }
        1.0 - 2.0 / PI.sqrt() * sum
    } else {
        let fraction = (1..=100).rev().fold(0.0, |fraction, k| f64::from(k) / 2.0 / (z + fraction));
        (-z * z).exp() / (PI.sqrt() * (z + fraction))
    };
    if x < 0.0 {
        2.0 - upper
    } else {
        upper
    }
}

/// The standard normal quantile: Acklam's rational approximation (relative error 1.15e-9), then one step of Halley's
/// method, which takes it to the precision of [`normal`].
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416];
    /// Where the central approximation gives way to that of the tails.
    const TAIL: f64 = 0.024_25;

    if p.is_nan() {
        return f64::NAN;
    }
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let horner = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        horner(&C, q) / (horner(&D, q) * q + 1.0)
    };
    let x = if p < TAIL {
        tail(p)
    } else if p > 1.0 - TAIL {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        let r = q * q;
        horner(&A, r) * q / (horner(&B, r) * r + 1.0)
    };
    let error = (normal(x) - p) * (2.0 * PI).sqrt() * (x * x / 2.0).exp();
    x - error / (1.0 + x * error / 2.0)
}

/// How likely a Student's t with `freedom` degrees is at least as far from 0 as `t`, on either side.
pub fn student_two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_nan() {
        return f64::NAN;
    }
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The quantile of Student's t, for `p` from one half up: Newton's method on the logarithm of the tail, kept inside a
/// bracket. Closer than 1e-6 to one half, [`student_two_sided`] is rounded too much. It is asked for hundreds of times a verdict, where the rounds that would decide are looked for.
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    let tails = 2.0 * (1.0 - p);
    if tails >= 1.0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, f64::INFINITY);
    // The first terms of the expansion about the normal quantile (Abramowitz & Stegun 26.7.5).
    let z = normal_quantile(p);
    let mut t = z + (z.powi(3) + z) / (4.0 * freedom);
    for _ in 0..200 {
        let above = student_two_sided(t, freedom);
        let step = (above / tails).ln() * above / (2.0 * student_density(t, freedom));
        // Newton's method squares the error: after such a step it is that of rounding.
        if step.abs() <= 1e-9 * t {
            return t + step;
        }
        if above > tails {
            low = t;
        } else {
            high = t;
        }
        let newton = t + step;
        t = match newton > low && newton < high {
            true => newton,
            false if high.is_finite() => 0.5 * (low + high),
            false => 2.0 * t,
        };
    }
    t
}

fn student_density(t: f64, freedom: f64) -> f64 {
    let front = log_gamma(0.5 * (freedom + 1.0)) - log_gamma(0.5 * freedom) - 0.5 * (freedom * PI).ln();
    (front - 0.5 * (freedom + 1.0) * (t * t / freedom).ln_1p()).exp()
}

/// The logarithm of the gamma function (Lanczos, g = 7, nine terms: about 15 digits).
fn log_gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let sum = TERMS.iter().enumerate().skip(1).fold(TERMS[0], |sum, (i, term)| sum + term / (x + i as f64));
    let t = x + 7.5;
    0.5 * (2.0 * PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// The regularised incomplete beta function, by Lentz's evaluation of its continued fraction (DLMF 8.17.22).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        let step = d * c;
        fraction *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// The value below which that share of ascending samples lies, interpolated as in spreadsheets and R's default (Hyndman & Fan
/// 1996, definition 7). The intervals of the bootstrap have their own quantile, definition 6.
pub fn quantile(ascending: &[f64], share: f64) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(ascending[below] + (place - below as f64) * (ascending[above] - ascending[below]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-10 * b.abs().max(1e-3)
    }

    #[test]
    fn the_normal_distribution_has_the_values_of_the_tables() {
        assert!(close(normal(0.0), 0.5));
        assert!(close(normal(1.959_963_984_540_054), 0.975));
        assert!(close(normal(-3.0), 1.349_898_031_630_094_5e-3));
        assert!((normal(-8.0) / 6.220_960_574_271_785e-16 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_normal_quantile_undoes_the_distribution() {
        assert!(close(normal_quantile(0.975), 1.959_963_984_540_054));
        assert!(close(normal_quantile(0.5), 0.0));
        for p in [1e-6, 0.01, 0.024, 0.025, 0.3, 0.7, 0.99, 0.999_9] {
            assert!(close(normal(normal_quantile(p)), p), "{p}");
        }
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }

    #[test]
    fn students_t_has_the_values_of_the_tables() {
        for (p, freedom, t) in [
            (0.975, 1.0, 12.706_204_736_432_095),
            (0.975, 9.0, 2.262_157_162_740_991),
            (0.995, 5.0, 4.032_142_983_557_536),
            (0.975, 29.0, 2.045_229_642_132_703),
        ] {
            assert!(
                close(student_quantile(p, freedom), t),
                "{p} {freedom}: {}",
                student_quantile(p, freedom)
            );
            assert!(close(student_two_sided(t, freedom), 2.0 * (1.0 - p)), "{p} {freedom}");
        }
        // The quantile undoes the distribution, far out in the tail, too.
        for freedom in [1.0, 2.0, 5.0, 58.0, 1e4] {
            for p in [0.6, 0.9, 0.999, 1.0 - 1e-6, 1.0 - 1e-9] {
                let tails = student_two_sided(student_quantile(p, freedom), freedom);
                assert!((tails / (2.0 * (1.0 - p)) - 1.0).abs() < 1e-9, "{p} {freedom}: {tails}");
            }
            assert_eq!(student_quantile(0.5, freedom), 0.0);
        }
        // One and two degrees of freedom have closed forms, far out in the tail too.
        assert!(close(student_two_sided(1e4, 1.0), 2.0 / PI * (1e-4_f64).atan()));
        assert_eq!(student_two_sided(f64::INFINITY, 9.0), 0.0);
        assert!(close(student_two_sided(0.0, 9.0), 1.0));
    }

    #[test]
    fn quantiles_of_samples_are_those_of_a_spreadsheet() {
        let samples = [1.0, 2.0, 3.0, 4.0];
        assert_eq!((quantile(&samples, 0.25), quantile(&samples, 0.5)), (Some(1.75), Some(2.5)));
        assert_eq!((quantile(&[7.0], 0.75), quantile(&[], 0.5)), (Some(7.0), None));
    }
}
