//! The order of variants, and how their names are shortened in long lists.

use widthwise_experiment::Metric;
use widthwise_verdict::Word;

use crate::columns::Columns;
use crate::comparison::Comparison;

/// With more variants than this beside the baseline, one sentence on each is too long.
const FEW: usize = 3;
/// Characters at which a name may be split.
const JOINTS: [char; 6] = ['/', '_', '-', ':', ' ', '='];
/// A shorter prefix is not worth a line of its own.
const SHORTEST_PREFIX: usize = 5;

/// The number of variants to show before all others are folded: the baseline and these few.
pub fn shown(comparison: &Comparison) -> usize {
    if is_many(comparison) {
        FEW + 1
    } else {
        usize::MAX
    }
}

/// Whether there are so many variants that a summary replaces the sentences on each.
pub fn is_many(comparison: &Comparison) -> bool {
    comparison.campaign.experiment.variants.len() > FEW + 1
}

/// All participants: the baseline, the variants by the first metric (the lowest first, then those without a
/// verdict, then those that could not be measured), and the A/A control.
pub fn participants(comparison: &Comparison) -> Vec<String> {
    let experiment = comparison.campaign.experiment;
    let first = Columns::of(experiment).leading.first().copied();
    let mut others: Vec<(u8, f64, &str)> = experiment
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .filter(|name| *name != experiment.baseline)
        .map(|name| {
            match (
                comparison.campaign.not_measured(name),
                first.and_then(|metric| key(comparison, name, metric)),
            ) {
                (Some(_), _) => (2, 0.0, name),
                (None, None) => (1, 0.0, name),
                (None, Some(key)) => (0, key, name),
            }
        })
        .collect();
    // Stable: equal variants have the order of the experiment.
    others.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut names = vec![experiment.baseline.clone()];
    names.extend(others.into_iter().map(|(_, _, name)| name.to_owned()));
    names.push(experiment.control());
    names
}

/// The sort key of a variant in that metric: its ratio to the baseline or, if some have none, its amount;
/// none without a comparable verdict.
pub fn key(comparison: &Comparison, variant: &str, metric: Metric) -> Option<f64> {
    let judged = |word: Word| !matches!(word, Word::Withheld | Word::NoData);
    let of_metric = comparison.judgement.verdicts.iter().filter(|v| v.metric.name == metric.name);
    let has_ratios = of_metric.filter(|v| judged(v.word)).all(|v| v.ratio.is_some());
    let verdict = comparison.verdict(variant, metric).filter(|verdict| judged(verdict.word))?;
    match has_ratios {
        true => verdict.ratio,
        false => comparison.typical(variant, metric).map(|typical| typical.value),
    }
}

/// The common prefix of many variants' names, up to a joint; empty if there are few variants, or no common
/// prefix.
pub fn prefix<'a>(comparison: &Comparison<'a>) -> &'a str {
    let names: Vec<&'a str> =
        comparison.campaign.experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
    if !is_many(comparison) {
        return "";
    }
    common(&names)
}

fn common<'a>(names: &[&'a str]) -> &'a str {
    let Some((first, rest)) = names.split_first() else { return "" };
    let shared = |name: &&str| first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    let length = rest.iter().map(shared).min().unwrap_or(0);
    // The joint is one byte long, so that the cut is between characters.
    let bytes = first.as_bytes();
    // A dash that begins an option belongs to it.
    let is_joint = |at: &usize| {
        JOINTS.contains(&char::from(bytes[*at])) && *at > 0 && bytes[at - 1].is_ascii_alphanumeric()
    };
    let cut = (0..length).rev().find(is_joint).map_or(0, |at| at + 1);
    let prefix = &first[..cut];
    match cut >= SHORTEST_PREFIX && names.iter().all(|name| name.len() > cut) {
        true => prefix,
        false => "",
    }
}

/// A variant's name without the common prefix.
pub fn short<'n>(comparison: &Comparison, name: &'n str) -> &'n str {
    name.strip_prefix(prefix(comparison)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_prefix_ends_at_a_joint_and_leaves_part_of_every_name() {
        assert_eq!(common(&["tree/x32/a", "tree/x86-64/a"]), "tree/");
        assert_eq!(common(&["x86-64/-O2", "x86-64/-O3"]), "x86-64/");
        assert_eq!(common(&["-O2", "-O3"]), "");
        assert_eq!(common(&["tree/", "tree/a"]), "");
        assert_eq!(common(&["länge/é", "länge/è"]), "länge/");
    }
}
