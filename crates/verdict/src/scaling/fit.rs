//! Sums of a few known functions with coefficients that cannot be negative, fitted to positive values.
//!
//! Amdahl's law, Gunther's law and a line of time over work all have this form, so one small solver serves all.

/// Coefficients and the residual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fit<const K: usize> {
    /// One for each function, none below 0.
    pub coefficients: [f64; K],
    /// The sum of the squared residuals, on the scale of logarithms.
    pub squares: f64,
}

/// Least squares of the logarithms: the noise of times and throughputs is proportional, and a run of an hour must not
/// outweigh a run of a second. `rows` holds the functions at each point, `logs` the logarithm of what was measured
/// there.
///
/// The unbounded fit is tried first. If one of its coefficients is negative, the best fit with some functions left out
/// is returned. None if the points do not determine the coefficients.
pub(super) fn fit<const K: usize>(rows: &[[f64; K]], logs: &[f64]) -> Option<Fit<K>> {
    let mut best: Option<Fit<K>> = None;
    // As bits, from all of the functions down.
    for used in (1..1_usize << K).rev() {
        let Some(found) = descend(rows, logs, used) else { continue };
        if used == (1 << K) - 1 {
            return Some(found);
        }
        if best.is_none_or(|best| found.squares < best.squares) {
            best = Some(found);
        }
    }
    best
}

/// Gauss-Newton with the functions whose bits are set in `used`; None if it ends at a negative coefficient.
fn descend<const K: usize>(rows: &[[f64; K]], logs: &[f64], used: usize) -> Option<Fit<K>> {
    const MOST_STEPS: usize = 60;
    // Each function by its largest value: counts of events are millions beside a constant 1.
    let mut sizes = [0.0_f64; K];
    rows.iter().for_each(|row| (0..K).for_each(|k| sizes[k] = sizes[k].max(row[k].abs())));
    let scaled = |row: &[f64; K], k: usize| if sizes[k] > 0.0 { row[k] / sizes[k] } else { 0.0 };
    let sum = |row: &[f64; K], at: &[f64; K]| (0..K).map(|k| at[k] * scaled(row, k)).sum::<f64>();
    let middle = logs.iter().sum::<f64>() / logs.len() as f64;
    let logs: Vec<f64> = logs.iter().map(|log| log - middle).collect();
    let squares = |at: &[f64; K]| {
        rows.iter().zip(&logs).try_fold(0.0, |total, (row, log)| {
            let value = sum(row, at);
            (value > 0.0).then(|| total + (log - value.ln()).powi(2))
        })
    };
    // The start: least squares of the relative residuals, which is linear.
    let mut at = solve(
        rows.iter().zip(&logs).map(|(row, log)| {
            let value = log.exp();
            (std::array::from_fn(|k| scaled(row, k) / value), 1.0)
        }),
        used,
    )?;
    let mut left = squares(&at)?;
    for _ in 0..MOST_STEPS {
        let step: [f64; K] = solve(
            rows.iter().zip(&logs).map(|(row, log)| {
                let value = sum(row, &at);
                (std::array::from_fn(|k| scaled(row, k) / value), log - value.ln())
            }),
            used,
        )?;
        let mut length = 1.0;
        let moved = loop {
            let next: [f64; K] = std::array::from_fn(|k| at[k] + length * step[k]);
            match squares(&next) {
                Some(now) if now <= left => break Some((next, now)),
                _ if length < 1e-6 => break None,
                _ => length *= 0.5,
            }
        };
        let Some((next, now)) = moved else { break };
        let done = left - now <= 1e-14 * left;
        (at, left) = (next, now);
        if done {
            break;
        }
    }
    // A contribution below the rounding error at its largest counts as 0.
    let rounding = 1e-11 * at.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    at.iter_mut().filter(|value| value.abs() <= rounding).for_each(|value| *value = 0.0);
    if at.iter().any(|value| *value < 0.0) {
        return None;
    }
    let unit = middle.exp();
    let coefficients = std::array::from_fn(|k| if sizes[k] > 0.0 { unit * at[k] / sizes[k] } else { 0.0 });
    Some(Fit { coefficients, squares: left })
}

/// Linear least squares over the functions in `used`, by the normal equations (three unknowns at most, each scaled to
/// 1; the next Gauss-Newton step corrects their rounding). None if the points do not determine them.
fn solve<const K: usize>(points: impl Iterator<Item = ([f64; K], f64)>, used: usize) -> Option<[f64; K]> {
    let mut matrix = [[0.0; K]; K];
    let mut right = [0.0; K];
    for (row, value) in points {
        for i in 0..K {
            right[i] += row[i] * value;
            for j in 0..K {
                matrix[i][j] += row[i] * row[j];
            }
        }
    }
    for k in (0..K).filter(|k| used >> k & 1 == 0) {
        (0..K).for_each(|other| (matrix[k][other], matrix[other][k]) = (0.0, 0.0));
        (matrix[k][k], right[k]) = (1.0, 0.0);
    }
    // Gaussian elimination without pivoting: the matrix is symmetric and positive definite, or there is no solution.
    let diagonal: [f64; K] = std::array::from_fn(|k| matrix[k][k]);
    for k in 0..K {
        // A NaN pivot fails the comparison, too.
        let sound = matrix[k][k] > 1e-13 * diagonal[k] && matrix[k][k].is_finite();
        if !sound {
            return None;
        }
        let (pivot, height) = (matrix[k], right[k]);
        for i in k + 1..K {
            let factor = matrix[i][k] / pivot[k];
            matrix[i].iter_mut().zip(pivot).for_each(|(value, above)| *value -= factor * above);
            right[i] -= factor * height;
        }
    }
    let mut solution = [0.0; K];
    for k in (0..K).rev() {
        let known: f64 = (k + 1..K).map(|j| matrix[k][j] * solution[j]).sum();
        solution[k] = (right[k] - known) / matrix[k][k];
    }
    solution.iter().all(|value| value.is_finite()).then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_without_noise_returns_the_coefficients_and_no_residual() {
        let rows: Vec<[f64; 3]> = [1.0, 2.0, 4.0, 8.0].map(|n| [1.0, n, n * (n - 1.0)]).to_vec();
        let truth = [0.09, 0.004, 0.0003];
        let logs: Vec<f64> =
            rows.iter().map(|row| row.iter().zip(truth).map(|(f, c)| f * c).sum::<f64>().ln()).collect();
        let found = fit(&rows, &logs).unwrap();
        for (found, truth) in found.coefficients.iter().zip(truth) {
            assert!((found / truth - 1.0).abs() < 1e-9, "{found} {truth}");
        }
        assert!(found.squares < 1e-24);
    }

    #[test]
    fn a_negative_coefficient_becomes_zero_and_the_others_are_refitted() {
        // A line that falls: the best constant in logarithms is the geometric mean.
        let rows = [[1.0, 1.0], [1.0, 2.0], [1.0, 4.0]];
        let found = fit(&rows, &[4.0_f64.ln(), 2.0_f64.ln(), 1.0_f64.ln()]).unwrap();
        assert_eq!(found.coefficients[1], 0.0);
        assert!((found.coefficients[0] - 2.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn large_counts_and_a_constant_are_fitted_together() {
        let rows: [[f64; 2]; 3] = [[1.0, 1e3], [1.0, 1e6], [1.0, 4e9]];
        let logs = rows.map(|row| (30.0 * row[0] + 0.25e-3 * row[1]).ln());
        let found = fit(&rows, &logs).unwrap().coefficients;
        assert!((found[0] / 30.0 - 1.0).abs() < 1e-6 && (found[1] / 0.25e-3 - 1.0).abs() < 1e-6, "{found:?}");
    }
}
