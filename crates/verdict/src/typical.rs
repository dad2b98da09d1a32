//! The distribution of a metric over the runs of one variant.

use widthwise_experiment::outcome::Reading;
use widthwise_experiment::Metric;

use crate::distribution::quantile;
use crate::pairs::Campaign;
use crate::trimmed_mean::trimmed_mean;
use crate::Typical;

/// The share left out on either side of a typical value.
const TRIM: f64 = 0.2;

/// The typical value of a metric over a variant's timed runs that ended well, if any was read.
pub(crate) fn typical(campaign: &Campaign, variant: &str, metric: Metric) -> Option<Typical> {
    let readings: Vec<Reading> = campaign.readings(variant, metric).map(|(_, reading)| reading).collect();
    let sorted = |of: fn(&Reading) -> f64| {
        let mut values: Vec<f64> = readings.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let values = sorted(|reading| reading.value);
    let is_bounded = readings.iter().any(|reading| reading.upper.is_some());
    Some(Typical {
        variant: variant.to_owned(),
        metric,
        min: *values.first()?,
        max: *values.last()?,
        value: trimmed_mean(&values, TRIM),
        upper: is_bounded.then(|| {
            let highest = sorted(Reading::highest);
            // One run without an upper bound is enough.
            if highest.last().is_some_and(|value| value.is_finite()) {
                trimmed_mean(&highest, TRIM)
            } else {
                f64::INFINITY
            }
        }),
        median: quantile(&values, 0.5)?,
        low_quartile: quantile(&values, 0.25)?,
        high_quartile: quantile(&values, 0.75)?,
        runs: values.len() as u32,
    })
}
