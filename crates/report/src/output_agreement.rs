//! Whether the variants gave the same output as the baseline, in sentences.

use std::collections::BTreeSet;

use widthwise_experiment::outcome::Ending;
use widthwise_experiment::VariantStatus;

use crate::comparison::Comparison;
use crate::format::named;
use crate::sanitize;

/// The reason of a variant whose runs gave different outputs; the fix may follow.
const CHANGES: &str = "its output changes from run to run";
/// The reason of a variant whose output is another than the baseline's; what differs may follow.
const DIFFERS: &str = "its output differs";

/// What became of the comparison of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mismatch {
    /// It is another than the baseline's.
    Differs,
    /// Runs of one variant gave different outputs.
    Changes,
    /// A filter failed or a file is missing: nothing was compared.
    NotCompared,
}

/// Variants whose outputs did not agree in the same way.
struct Group {
    mismatch: Mismatch,
    /// The rest of the sentence.
    reason: String,
    is_allowed: bool,
    is_baseline: bool,
    names: Vec<String>,
}

/// Whether the variants gave the same output as the baseline.
pub(crate) fn sentences(comparison: &Comparison) -> Vec<String> {
    let experiment = comparison.campaign.experiment;
    if experiment.check.off {
        return vec!["Outputs were not compared: the output check is off.".to_owned()];
    }
    let baseline = sanitize::line(&experiment.baseline);
    let groups = groups(comparison);
    if !groups.is_empty() {
        return groups.iter().map(|group| sentence(group, &baseline)).collect();
    }
    let control = experiment.control();
    let compared: BTreeSet<&str> = comparison
        .runs
        .iter()
        .filter(|run| run.output_digest.is_some() && run.variant != control)
        .map(|run| run.variant.as_str())
        .collect();
    let all_measured = experiment
        .variants
        .iter()
        .all(|variant| comparison.campaign.status(&variant.name).not_measured().is_none());
    // A single output has nothing to agree with.
    match (compared.len(), all_measured) {
        (0, _) => Vec::new(),
        (1, _) => vec![format!("No other variant's output was compared with that of {baseline}.")],
        (_, true) => vec!["All variants gave the same output.".to_owned()],
        (_, false) => vec!["All variants that ran gave the same output.".to_owned()],
    }
}

fn groups(comparison: &Comparison) -> Vec<Group> {
    let experiment = comparison.campaign.experiment;
    let control = experiment.control();
    let of_baseline = found(comparison, &experiment.baseline);
    // The control is the baseline's program: where both give the same reason, the baseline has it.
    let control = Some(control.as_str()).filter(|control| found(comparison, control) != of_baseline);
    let mut groups: Vec<Group> = Vec::new();
    for name in experiment.variants.iter().map(|variant| variant.name.as_str()).chain(control) {
        let Some((mismatch, reason, is_allowed)) = found(comparison, name) else { continue };
        let is_baseline = mismatch == Mismatch::Differs && name == experiment.baseline;
        let same = |group: &&mut Group| {
            (group.mismatch, group.is_allowed, group.is_baseline) == (mismatch, is_allowed, is_baseline)
                && group.reason == reason
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.names.push(sanitize::line(name)),
            None => {
                let names = vec![sanitize::line(name)];
                groups.push(Group { mismatch, reason, is_allowed, is_baseline, names });
            }
        }
    }
    groups
}

/// How a variant's output disagrees, the rest of the sentence, and whether the user allows it; none if it agrees or no run ended well.
fn found(comparison: &Comparison, name: &str) -> Option<(Mismatch, String, bool)> {
    let (reason, is_allowed) = match comparison.campaign.status(name) {
        VariantStatus::OutputMismatch(reason) => (reason.clone(), false),
        VariantStatus::OutputMismatchAllowed(reason) => (reason.clone(), true),
        // The status has the processes that it left, and not the output.
        VariantStatus::LeftOver(_) => (reason_by_digests(comparison, name)?, false),
        VariantStatus::Ready
        | VariantStatus::Unsupported(_)
        | VariantStatus::BuildFailed(_)
        | VariantStatus::Excluded(_) => return None,
    };
    let reason = sanitize::line(&reason);
    let reason = reason.trim_end_matches('.');
    Some(if let Some(rest) = reason.strip_prefix(CHANGES) {
        (Mismatch::Changes, rest.to_owned(), is_allowed)
    } else if reason.starts_with(DIFFERS) {
        (Mismatch::Differs, String::new(), is_allowed)
    } else if ["the filter `", "it did not write the file", NO_OUTPUT]
        .iter()
        .any(|start| reason.starts_with(start))
    {
        (Mismatch::NotCompared, format!(": {reason}"), is_allowed)
    } else {
        (Mismatch::Differs, format!(": {reason}"), is_allowed)
    })
}

/// The reason where no output of a run was read.
const NO_OUTPUT: &str = "no output of its runs was read";

/// How the outputs of a variant's runs disagree with each other or with the baseline's; none if they agree, or no run ended well.
fn reason_by_digests(comparison: &Comparison, name: &str) -> Option<String> {
    let of = |name: &str| {
        let own = comparison.runs.iter().filter(|run| run.variant == name && run.ending == Ending::Done);
        own.map(|run| run.output_digest.as_deref()).collect::<BTreeSet<Option<&str>>>()
    };
    let own: BTreeSet<Option<&str>> = of(name);
    let read: BTreeSet<&str> = own.iter().copied().flatten().collect();
    let of_baseline: BTreeSet<&str> =
        of(&comparison.campaign.experiment.baseline).into_iter().flatten().collect();
    match read.len() {
        0 if own.is_empty() => None,
        0 => Some(NO_OUTPUT.to_owned()),
        1 => (!of_baseline.is_empty() && read.is_disjoint(&of_baseline)).then(|| DIFFERS.to_owned()),
        _ => Some(CHANGES.to_owned()),
    }
}

fn sentence(group: &Group, baseline: &str) -> String {
    let names = named(&group.names);
    let is_one = group.names.len() == 1;
    let reason = &group.reason;
    let finding = match group.mismatch {
        Mismatch::NotCompared if is_one => format!("{names}'s output could not be compared{reason}"),
        Mismatch::NotCompared => format!("The outputs of {names} could not be compared{reason}"),
        Mismatch::Changes if is_one => format!("{names}'s output changes from run to run{reason}"),
        Mismatch::Changes => format!("The outputs of {names} change from run to run{reason}"),
        Mismatch::Differs if group.is_baseline => {
            format!("{names}'s output differs from one run to another{reason}")
        }
        Mismatch::Differs if is_one => format!("{names}'s output differs from {baseline}'s{reason}"),
        Mismatch::Differs => format!("The outputs of {names} differ from {baseline}'s{reason}"),
    };
    let consequence = match (group.is_allowed, is_one) {
        (false, true) => "Its verdicts are withheld.",
        (false, false) => "Their verdicts are withheld.",
        (true, true) => "It is compared all the same (--allow-different-output).",
        (true, false) => "They are compared all the same (--allow-different-output).",
    };
    format!("{finding}. {consequence}")
}
