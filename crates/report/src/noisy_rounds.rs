//! Which rounds a report marks as noisy.

use widthwise_experiment::outcome::Noise;
use widthwise_verdict::wording::share;

/// A round is marked as noisy from this share on. The marks are a guide only; no verdict depends on them.
pub const NOISY_SHARE: f64 = 0.01;
/// PSI counts every task of the machine, not only those on the measured core, so its threshold is higher.
const NOISY_PRESSURE: f64 = 0.10;

/// Whether a round is marked as noisy.
pub fn is_noisy(noise: &Noise) -> bool {
    noise.steal >= NOISY_SHARE
        || noise.others >= NOISY_SHARE
        || noise.throttled > 0
        || noise.pressure.is_some_and(|pressure| pressure >= NOISY_PRESSURE)
}

/// The criteria for a noisy round, in words.
pub fn noisy_means() -> String {
    format!(
        "steal or other tasks on the measured core for {} of the round, a throttling event, or tasks waiting \
         for a CPU anywhere for {} of it",
        share(NOISY_SHARE),
        share(NOISY_PRESSURE)
    )
}
