//! The part of a report that only a scaling campaign has: its summary, and the machine's topology with the placements.

use std::collections::BTreeSet;

use widthwise_archive::{Archive, Metadata, Samples, Scaling};
use widthwise_experiment::model::Experiment;
use widthwise_experiment::outcome::RoundKind;
use widthwise_experiment::scale::{GroupRun, Purpose};
use widthwise_experiment::VariantStatus;
use widthwise_machine::{Placement, Topology};
use widthwise_report::scale;
use widthwise_report::{topology, Campaign};
use widthwise_verdict::scaling_summary::{summarise, Question, Summary};

use super::picture::picture;
use crate::failure::Failure;
use crate::output::{short, width};

/// The results of the runs of complete rounds. A run that failed in another round still tells why its cell has no later runs.
pub fn summary(seed: u64, scaling: &Scaling, variants: &[String], samples: &Samples) -> Summary {
    let complete: BTreeSet<u32> = samples
        .rounds
        .iter()
        .filter(|round| round.kind != RoundKind::Interrupted)
        .map(|one| one.number)
        .collect();
    let counts = |run: &&GroupRun| complete.contains(&run.round) || !run.is_sound();
    let runs: Vec<GroupRun> = samples.group_runs.iter().filter(counts).cloned().collect();
    let question = Question {
        plan: &scaling.plan,
        variants,
        placements: &scaling.placements,
        cores: &scaling.cores,
        confidence: scaling.confidence,
        seed,
        memory: scaling.memory,
    };
    let timed = samples.rounds.iter().filter(|round| round.kind == RoundKind::Timed).count();
    Summary { rounds: timed, runs: samples.group_runs.len(), ..summarise(question, &runs) }
}

/// The request of a scaling campaign; other campaigns are refused.
pub fn asked(archive: &Archive) -> Result<&Scaling, Failure> {
    archive.metadata().scaling.as_ref().ok_or_else(|| {
        let folder = short(archive.folder());
        Failure::request(format!(
            "{folder}: this is a campaign of `widthwise compare`, and no scaling campaign"
        ))
    })
}

/// The summary of a scaling campaign.
pub struct LoadedScaling {
    asked: Scaling,
    variants: Vec<String>,
    summary: Summary,
}

impl LoadedScaling {
    /// Sums up; adds the remarks of the runs to the warnings, and output mismatches to the statuses.
    pub fn new(
        asked: &Scaling,
        metadata: &Metadata,
        experiment: &Experiment,
        samples: &mut Samples,
    ) -> LoadedScaling {
        let variants = metadata.names();
        let mut summary = summary(metadata.seed, asked, &variants, samples);
        if experiment.check.off {
            summary.different.clear();
        }
        for (text, times) in remarks(&samples.group_runs) {
            samples.warnings.push(match times {
                1 => text,
                2 => format!("{text} (and likewise once more)"),
                times => format!("{text} (and likewise in {} other runs)", times - 1),
            });
        }
        if experiment.check.off {
            samples.warnings.push("outputs were not compared (--check off)".into());
        }
        for (variant, cell) in &summary.different {
            let reason = match *variant == experiment.baseline {
                true => format!("its output changes from run to run in {cell}"),
                false => format!("its output differs from the baseline's in {cell}"),
            };
            let status = match experiment.check.allow_different {
                true => VariantStatus::OutputMismatchAllowed(reason),
                false => VariantStatus::OutputMismatch(reason),
            };
            samples.statuses.entry(variant.clone()).or_insert(status);
        }
        LoadedScaling { asked: asked.clone(), variants, summary }
    }

    /// The input of the report.
    pub fn report<'a>(
        &'a self,
        campaign: Campaign<'a>,
        runs: &'a [GroupRun],
        machine: Option<&Topology>,
    ) -> scale::Scaling<'a> {
        let mut pictures = Vec::new();
        let mut drawings = Vec::new();
        for (name, cpus) in self.asked.placements.iter() {
            let Some(machine) = machine else { break };
            let placement = Placement { cpus: cpus.clone(), remarks: Vec::new() };
            let machine = picture(machine, &placement);
            let picture = topology::text(&machine, width());
            // Equal placements are drawn once.
            if !pictures.iter().any(|(_, known)| *known == picture) {
                pictures.push((name.clone(), picture));
            }
            drawings.push((name.clone(), topology::svg(&machine).into_string()));
        }
        scale::Scaling {
            campaign,
            plan: &self.asked.plan,
            variants: &self.variants,
            pictures,
            drawings,
            has_siblings: self.asked.cores.iter().any(|core| core.len() > 1),
            memory: self.asked.memory,
            runs,
            summary: &self.summary,
        }
    }

    /// Whether a variant has another output than the baseline, and must not.
    pub fn has_mismatch(&self, experiment: &Experiment) -> bool {
        !self.summary.different.is_empty() && !experiment.check.allow_different
    }
}

/// The remarks of runs, each text once, with the cell of its first run and the number of runs.
fn remarks(runs: &[GroupRun]) -> Vec<(String, usize)> {
    // Numbers differ from run to run; the first stands for all.
    let plain = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let mut all: Vec<(String, String, usize)> = Vec::new();
    for run in runs {
        let failure = run.failure.as_ref().filter(|_| run.purpose.is_auxiliary());
        let failed = failure.map(|failure| {
            let what = if run.purpose == Purpose::OneEvent { "one event" } else { "half of the events" };
            format!("its run with {what} failed ({failure}): the sequential part is estimated without it")
        });
        for remark in run.remarks.iter().chain(&failed) {
            match all.iter_mut().find(|(known, _, _)| *known == plain(remark)) {
                Some((_, _, times)) => *times += 1,
                None => all.push((plain(remark), format!("{}: {remark}", run.cell), 1)),
            }
        }
    }
    all.into_iter().map(|(_, text, times)| (text, times)).collect()
}
