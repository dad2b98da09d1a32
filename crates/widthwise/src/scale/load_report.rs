//! From a study's archive to its report.

use std::path::{Path, PathBuf};

use widthwise_archive::{Archive, Metadata, Scaling};
use widthwise_experiment::scale::Attempt;
use widthwise_machine::record::MachineRecord;
use widthwise_machine::Placement;
use widthwise_report::scale::{self, StudyReport};
use widthwise_report::text::Palette;
use widthwise_report::topology;
use widthwise_verdict::study::{summarise, Question, Summary};

use crate::failure::Failure;
use crate::output;
use crate::output::{short, width};
use crate::scale::picture;
use crate::session::experiment;

/// What the attempts come to.
pub fn summary(seed: u64, scaling: &Scaling, variants: &[String], attempts: &[Attempt]) -> Summary {
    let question = Question {
        plan: &scaling.plan,
        variants,
        placements: &scaling.placements,
        cores: &scaling.cores,
        confidence: scaling.confidence,
        seed,
        memory: scaling.memory,
    };
    summarise(question, attempts)
}

/// What a scaling campaign asks; other campaigns are refused.
pub fn scaling(archive: &Archive) -> Result<&Scaling, Failure> {
    archive.metadata().scaling.as_ref().ok_or_else(|| {
        let folder = short(archive.folder());
        Failure::request(format!(
            "{folder}: this is a campaign of `widthwise compare`, and no scaling campaign"
        ))
    })
}

/// A study read from its archive, and summed up.
pub struct LoadedScaling {
    metadata: Metadata,
    scaling: Scaling,
    variants: Vec<String>,
    unable: Vec<(String, String)>,
    attempts: Vec<Attempt>,
    remarks: Vec<String>,
    summary: Summary,
    run: String,
    equal_within: f64,
    allows_different: bool,
    folder: String,
    machine: Option<MachineRecord>,
}

impl LoadedScaling {
    /// Reads and sums up; `equal_within` replaces the margin of equivalence that the campaign was begun with.
    pub fn new(archive: &Archive, equal_within: Option<f64>) -> Result<LoadedScaling, Failure> {
        let (metadata, scaling) = (archive.metadata().clone(), scaling(archive)?.clone());
        let samples = archive.load().map_err(Failure::request)?;
        let (attempts, variants) = (samples.group_runs, metadata.names());
        let unable = samples
            .statuses
            .iter()
            .filter_map(|(name, status)| Some((name.clone(), status.not_measured()?.to_owned())));
        let experiment = experiment(&metadata.spec, metadata.seed)?;
        let mut summary = summary(metadata.seed, &scaling, &variants, &attempts);
        if experiment.check.off {
            summary.different.clear();
        }
        let mut remarks = samples.warnings;
        for (text, times) in told(&attempts) {
            remarks.push(match times {
                1 => text,
                times => format!(
                    "{text} (and likewise {})",
                    if times == 2 {
                        "once more".to_owned()
                    } else {
                        format!("in {} other attempts", times - 1)
                    }
                ),
            });
        }
        if experiment.check.off {
            remarks.push("answers were not compared (--check off)".into());
        }
        let equal_within = equal_within.unwrap_or(experiment.judging.equal_within);
        let run = experiment.program.run;
        let machine = serde_json::from_value::<MachineRecord>(metadata.machine.clone()).ok();
        let allows_different = experiment.check.allow_different;
        Ok(LoadedScaling {
            equal_within,
            allows_different,
            attempts,
            remarks,
            summary,
            run,
            folder: short(archive.folder()),
            machine,
            unable: unable.collect(),
            variants,
            scaling,
            metadata,
        })
    }

    /// As the report wants it.
    pub fn report(&self) -> StudyReport<'_> {
        let (metadata, scaling) = (&self.metadata, &self.scaling);
        let mut pictures = Vec::new();
        let mut drawings = Vec::new();
        if let Some(machine) = &self.machine {
            for (name, cpus) in &scaling.placements {
                let placement = Placement { cpus: cpus.clone(), remarks: Vec::new() };
                let machine = picture::picture(&machine.topology, &placement);
                let picture = topology::text(&machine, width());
                // Placements that come to the same are drawn once.
                if !pictures.iter().any(|(_, known)| *known == picture) {
                    pictures.push((name.clone(), picture));
                }
                drawings.push((name.clone(), topology::svg(&machine).into_string()));
            }
        }
        StudyReport {
            program: &metadata.program,
            version: &metadata.program_version,
            created: &metadata.created,
            folder: self.folder.clone(),
            command: &metadata.command,
            widthwise: &metadata.widthwise,
            run: &self.run,
            plan: &scaling.plan,
            variants: &self.variants,
            unable: &self.unable,
            remarks: self.remarks.clone(),
            machine_lines: self.machine.as_ref().map(MachineRecord::lines).unwrap_or_default(),
            pictures,
            drawings,
            has_siblings: scaling.cores.iter().any(|core| core.len() > 1),
            memory: scaling.memory,
            equal_within: self.equal_within,
            attempts: &self.attempts,
            summary: &self.summary,
        }
    }

    /// Whether something failed, or answered differently: exit status 1.
    pub fn has_failed(&self) -> bool {
        (!self.summary.different.is_empty() && !self.allows_different)
            || self.attempts.iter().any(|attempt| !attempt.is_sound())
    }
}

/// What attempts say, each text once, with the cell in which it was said first.
fn told(attempts: &[Attempt]) -> Vec<(String, usize)> {
    // Numbers differ from attempt to attempt; the first stands for all.
    let plain = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let mut all: Vec<(String, String, usize)> = Vec::new();
    for attempt in attempts {
        for remark in &attempt.remarks {
            match all.iter_mut().find(|(known, _, _)| *known == plain(remark)) {
                Some((_, _, times)) => *times += 1,
                None => all.push((plain(remark), format!("{}: {remark}", attempt.cell), 1)),
            }
        }
    }
    all.into_iter().map(|(_, text, times)| (text, times)).collect()
}

/// The report of a study that has just been measured: the terminal's, or JSON, and an HTML file in its folder.
pub fn report(folder: &Path, as_json: &Option<PathBuf>) -> Result<(), Failure> {
    let archive = Archive::read(folder).map_err(Failure::request)?;
    let presented = LoadedScaling::new(&archive, None)?;
    let report = presented.report();
    let page = folder.join("report.html");
    output::keep(&page, scale::html(&report).as_bytes())?;
    if let Some(path) = as_json {
        output::put(path, (scale::json(&report).map_err(Failure::machine)? + "\n").as_bytes())?;
    }
    if !output::is_stdout(as_json) {
        anstream::print!("{}", scale::terminal(&report, &Palette::coloured(), width(), Some(&short(&page))));
    }
    if presented.has_failed() {
        return Err(Failure::told());
    }
    Ok(())
}
