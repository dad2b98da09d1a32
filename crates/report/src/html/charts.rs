//! All charts of one metric: its samples, their distribution, their order in time.

use maud::{html, Markup};
use widthwise_experiment::Metric;
use widthwise_verdict::wording;

use super::wording::{amount, name};
use super::{fold, histogram, samples, timeline};
use crate::comparison::Comparison;
use crate::series::Series;
use crate::{format, sanitize, series};
use widthwise_verdict::distribution::quantile;

pub fn charts(comparison: &Comparison, metric: Metric) -> Markup {
    let series = series::of(comparison, metric);
    if series.iter().all(|series| series.points.is_empty()) {
        return html! { p class="none" { "No run has a reading of it." } };
    }
    let figures = html! {
        (samples::figure(comparison, metric, &series))
        (histogram::figure(comparison, metric, &series))
        (timeline::figure(comparison, metric, &series))
        (timeline::positions(comparison, metric, &series))
    };
    html! {
        p class="about" { (metric.about) "." }
        (fold::packed(figures, || summary(comparison, metric, &series)))
    }
}

/// The runs of each variant in numbers: shown where no script draws them.
fn summary(comparison: &Comparison, metric: Metric, series: &[Series]) -> Markup {
    html! {
        p class="none" { "The drawings of so many runs need a script." }
        div class="scroll" tabindex="0" role="region" aria-label={ "Runs: " (comparison.title(metric)) } { table class="facts" {
            thead { tr { @for head in ["variant", "median", "middle half", "runs"] { th scope="col" { (head) } } } }
            tbody { @for series in series {
                @let values = series.timed();
                @let [low, median, high] = [0.25, 0.5, 0.75].map(|share| quantile(&values, share));
                tr {
                    th scope="row" { (name(comparison, &series.variant)) }
                    @if let (Some(low), Some(median), Some(high)) = (low, median, high) {
                        td { (amount(median, metric.unit)) }
                        td { (amount(low, metric.unit)) " … " (amount(high, metric.unit)) }
                    } @else { td { "–" } td { "–" } }
                    td { (values.len()) }
                }
            } }
        } }
    }
}

/// The verdicts of a metric in one line, for a closed fold.
pub fn brief(comparison: &Comparison, metric: Metric) -> String {
    let baseline = comparison.typical(&comparison.campaign.experiment.baseline, metric);
    let typical = baseline.map(format::typical);
    let verdicts = comparison
        .campaign
        .experiment
        .variants
        .iter()
        .filter(|variant| comparison.campaign.not_measured(&variant.name).is_none())
        .filter_map(|variant| comparison.verdict(&variant.name, metric))
        .map(|verdict| format!("{} {}", sanitize::line(&verdict.variant), wording::interval(verdict)));
    sanitize::line(&typical.into_iter().chain(verdicts).collect::<Vec<_>>().join(" · "))
}
