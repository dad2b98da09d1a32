//! The x32 runtime's own part, where it ran a variant: what the figures leave out, what they include, and
//! which calls it translated.

use widthwise_experiment::metric::find;
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_experiment::Metric;
use widthwise_verdict::{wording, RuntimeShare};

use crate::comparison::{Comparison, RuntimeCalls};
use crate::{order, sanitize};

/// The most calls to name.
const NAMED: usize = 6;

/// A figure of the program, the runtime's figure that belongs to it, and whether that is included or left
/// out.
const BESIDE: [(&str, &str, &str); 6] = [
    ("cpu", "runtime_cpu", "included"),
    ("wall", "runtime_cpu", "included"),
    ("max_rss", "runtime_resident", "left out"),
    ("page_faults", "runtime_faults", "left out"),
    ("minor_faults", "runtime_faults", "left out"),
    ("runtime_calls", "runtime_calls", ""),
];

/// The name of the row below a variant's.
pub fn label(variant: &str) -> String {
    format!("{variant} · x32run itself")
}

/// The runtime's own figures below those of a variant, a cell for each metric; absent where the runtime did
/// not run it, or has no such figures. With many variants, a table has no such rows in any format.
pub fn row(comparison: &Comparison, variant: &str, metrics: &[Metric]) -> Option<Vec<String>> {
    let is_run = find("runtime_calls").and_then(|metric| comparison.typical(variant, metric)).is_some();
    let own = |metric: &Metric| {
        let (_, runtime, how) = BESIDE.iter().find(|(name, _, _)| *name == metric.name)?;
        let runtime = find(runtime)?;
        let typical = comparison.typical(variant, runtime)?;
        let amount = Quantity { value: typical.value, unit: runtime.unit };
        Some(format!("{amount} {how}").trim().to_owned())
    };
    let cells: Vec<String> = metrics.iter().map(|metric| own(metric).unwrap_or_default()).collect();
    let says_any = cells.iter().any(|cell| !cell.is_empty());
    let is_many = order::is_many(comparison);
    (is_run && says_any && !is_many && comparison.campaign.not_measured(variant).is_none()).then_some(cells)
}

/// A paragraph for each variant that the runtime ran.
pub fn lines(comparison: &Comparison) -> Vec<String> {
    let variants = comparison.campaign.experiment.variants.iter().map(|variant| variant.name.as_str());
    variants.filter_map(|variant| line(comparison, variant)).map(|line| sanitize::line(&line)).collect()
}

/// The same or, for many variants, one sentence on all of them.
pub fn brief(comparison: &Comparison) -> Vec<String> {
    let typical = |variant: &str, name: &str| Some(comparison.typical(variant, find(name)?)?.value);
    let names = comparison.campaign.experiment.variants.iter().map(|variant| variant.name.as_str());
    let run: Vec<&str> = names.filter(|name| typical(name, "runtime_calls").is_some()).collect();
    if !order::is_many(comparison) || run.len() < 2 {
        return lines(comparison);
    }
    // The shares that verdicts and sentences on each variant have.
    let part = &comparison.judgement.runtime;
    let share = |name: &&str| find("cpu").and_then(|cpu| part.share(name, cpu));
    let shares: Vec<&RuntimeShare> = run.iter().filter_map(share).collect();
    let least = shares.iter().min_by(|a, b| a.share.total_cmp(&b.share)).map(|share| share.estimate());
    let most = shares.iter().max_by(|a, b| a.share.total_cmp(&b.share)).map(|share| share.estimate());
    let took = match (least, most) {
        (Some(least), Some(most)) if shares.len() == run.len() => {
            let range = if least == most { least } else { format!("{least} to {most}") };
            format!("the runtime took {range} of their CPU time, which includes that")
        }
        _ => "the runtime's share of their CPU time could not be counted for all of them".to_owned(),
    };
    vec![format!(
        "{} variants run in user space here (x32run): {took}. Its own memory and page faults are left out of all figures.",
        run.len()
    )]
}

fn line(comparison: &Comparison, variant: &str) -> Option<String> {
    let typical = |name: &str| Some(comparison.typical(variant, find(name)?)?.value);
    let slow = typical("runtime_calls")?;
    let part = &comparison.judgement.runtime;
    let took = find("cpu")
        .and_then(|cpu| part.share(variant, cpu))
        .map_or("the runtime's share of its CPU time could not be counted".to_owned(), |share| {
            format!("the runtime took {} of its CPU time, which includes that", share.text())
        });
    let mut text = format!("{variant} runs in user space here (x32run): {took}; ");
    text += &format!("{} calls per run went the slow way{}.", amount(slow), named(comparison, variant));
    let mut left_out = Vec::new();
    if let Some(resident) = typical("runtime_resident") {
        left_out.push(format!("{} of resident memory", Quantity { value: resident, unit: Unit::Bytes }));
    }
    if let Some(faults) = typical("runtime_faults") {
        left_out.push(format!("{} page faults", amount(faults)));
    }
    if !left_out.is_empty() {
        text += &format!(" Its own {} are left out of all figures.", left_out.join(" and "));
    }
    let deciding = comparison.campaign.experiment.deciding();
    let without = part.without.iter().filter(|own| own.variant == variant && deciding.contains(&own.metric));
    let without: Vec<String> = without
        .filter_map(|own| Some(format!("{} of {}", wording::numbers(own)?, own.metric.noun)))
        .collect();
    if !without.is_empty() {
        let baseline = &comparison.campaign.experiment.baseline;
        text +=
            &format!(" Without the runtime's work the difference from {baseline} is {}.", without.join(", "));
    }
    Some(text)
}

/// `: getdents64 12 345, openat 200, and 12 others`
fn named(comparison: &Comparison, variant: &str) -> String {
    let own: Vec<&RuntimeCalls> =
        comparison.runtime_calls.iter().filter(|calls| calls.variant == variant).collect();
    let named = own.iter().take(NAMED).map(|calls| {
        let all = amount(calls.entered + calls.trapped);
        // Every site traps twice before it is rewritten.
        if calls.trapped > 100.0 && calls.trapped > calls.entered {
            format!("{} {all} (trapped)", calls.call)
        } else {
            format!("{} {all}", calls.call)
        }
    });
    let named: Vec<String> = named.collect();
    // Calls, as all other numbers here.
    let rest: f64 = own.iter().skip(NAMED).map(|calls| calls.entered + calls.trapped).sum();
    match (named.is_empty(), rest.round() as u64) {
        (true, _) => String::new(),
        (false, 0) => format!(": {}", named.join(", ")),
        (false, 1) => format!(": {}, and 1 other", named.join(", ")),
        (false, _) => format!(": {}, and {} others", named.join(", "), amount(rest)),
    }
}

fn amount(count: f64) -> Quantity {
    Quantity { value: count.round(), unit: Unit::Count }
}
