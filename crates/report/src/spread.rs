//! How certain a measured part is: by the spread of the recordings of one variant.

use widthwise_anatomy::Certainty;
use widthwise_verdict::repeats::{separation, Separation};

/// The highest certainty of a part whose amount was read in these recordings of both variants. `step` and `resolution` are those
/// of [`separation`]. A variant that was recorded once has no spread: its parts are of certainty medium at most.
pub fn certainty(a: &[f64], b: &[f64], step: f64, resolution: f64) -> Certainty {
    match separation(a, b, step, resolution) {
        Separation::Within => Certainty::Low,
        Separation::Unknown | Separation::Beyond => Certainty::Medium,
        Separation::Clear => Certainty::High,
    }
}
