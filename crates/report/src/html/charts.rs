//! All charts of one metric: its samples, their distribution, their order in time.

use maud::{html, Markup};
use widthwise_experiment::Metric;
use widthwise_verdict::wording;

use super::wording::{amount, name};
use super::{fold, samples, shape, timeline};
use crate::campaign::Campaign;
use crate::series::{quantile, Series};
use crate::{format, sanitize, series};

pub fn charts(campaign: &Campaign, metric: Metric) -> Markup {
    let series = series::of(campaign, metric);
    if series.iter().all(|series| series.points.is_empty()) {
        return html! { p class="none" { "No run has a reading of it." } };
    }
    let figures = html! {
        (samples::figure(campaign, metric, &series))
        (shape::figure(campaign, metric, &series))
        (timeline::figure(campaign, metric, &series))
        (timeline::positions(campaign, metric, &series))
    };
    html! {
        p class="about" { (metric.about) "." }
        (fold::packed(figures, || summary(campaign, metric, &series)))
    }
}

/// The runs of each variant in numbers: shown where no script draws them.
fn summary(campaign: &Campaign, metric: Metric, series: &[Series]) -> Markup {
    html! {
        p class="none" { "The drawings of so many runs need a script." }
        div class="scroll" tabindex="0" role="region" aria-label={ "Runs: " (campaign.title(metric)) } { table class="facts" {
            thead { tr { @for head in ["variant", "median", "middle half", "runs"] { th scope="col" { (head) } } } }
            tbody { @for series in series {
                @let values = series.timed();
                @let [low, median, high] = [0.25, 0.5, 0.75].map(|share| quantile(&values, share));
                tr {
                    th scope="row" { (name(campaign, &series.variant)) }
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
pub fn brief(campaign: &Campaign, metric: Metric) -> String {
    let baseline = campaign.typical(&campaign.experiment.baseline, metric);
    let typical = baseline.map(format::typical);
    let verdicts = campaign
        .experiment
        .variants
        .iter()
        .filter(|variant| campaign.unable(&variant.name).is_none())
        .filter_map(|variant| campaign.verdict(&variant.name, metric))
        .map(|verdict| format!("{} {}", sanitize::line(&verdict.variant), wording::interval(verdict)));
    sanitize::line(&typical.into_iter().chain(verdicts).collect::<Vec<_>>().join(" · "))
}
