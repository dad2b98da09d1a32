//! `report`: renders a campaign from its archive.

use std::path::PathBuf;

use clap::Args;
use widthwise_archive::Archive;
use widthwise_experiment::request::Request;
use widthwise_experiment::{percentage, Located, SourceLocation};
use widthwise_report::text::Palette;
use widthwise_report::{csv_memory, terminal, Report as Rendered};

use crate::explain::excerpts;
use crate::failure::Failure;
use crate::formats::Formats;
use crate::interrupt;
use crate::load_report::LoadedReport;
use crate::micro;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  widthwise report
  widthwise report .widthwise/latest --all-metrics
  widthwise report .widthwise/2026-11-21-sqlite3 --html=out.html --csv=out.csv --json";

/// Render a campaign from its archive: terminal, HTML, Markdown, JSON, CSV
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Report {
    /// The campaign's folder
    #[arg(default_value = ".widthwise/latest")]
    campaign: PathBuf,
    #[command(flatten)]
    formats: Formats,
    /// The memory series as CSV: one row for each reading and part
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    series: Option<PathBuf>,
    /// Report no difference if the whole interval lies within ± this (default: as in the campaign, otherwise 1%)
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    equal_within: Option<String>,
    /// Show every metric on the terminal
    #[arg(long)]
    all_metrics: bool,
}

impl Report {
    /// Reads, judges, renders.
    pub fn run(&self) -> Result<(), Failure> {
        self.check_outputs()?;
        let margin = self.margin()?;
        interrupt::end_by_signal().map_err(Failure::machine)?;
        let archive = Archive::read(&self.campaign).map_err(Failure::request)?;
        let mut loaded = LoadedReport::new(&archive, margin)?;
        if self.formats.has_page() {
            loaded = loaded.with_heap(&archive);
            if let Rendered::Comparison(comparison) = loaded.report() {
                let excerpts = excerpts::of(&archive, &comparison, None)?;
                let inner_loops = micro::loops::of_campaign(&archive, &comparison);
                drop(comparison);
                loaded = loaded.with_explanations(excerpts).with_inner_loops(inner_loops);
            }
        }
        let report = loaded.report();
        self.check_series(&report)?;
        self.formats.write(&report)?;
        if let (Some(path), Rendered::Comparison(comparison)) = (&self.series, &report) {
            let mut text = Vec::new();
            csv_memory::write(comparison, &mut text).map_err(Failure::machine)?;
            output::put(path, &text)?;
        }
        if !self.formats.is_any() && self.series.is_none() {
            let options = terminal::Options {
                width: output::width(),
                all_metrics: self.all_metrics,
                palette: Palette::coloured(),
                why: None,
                report: None,
            };
            output::print(&report.terminal(&options))?;
        }
        Ok(())
    }
}

impl Report {
    /// The margin of equivalence, if one is asked for.
    fn margin(&self) -> Result<Option<f64>, Failure> {
        let Some(text) = &self.equal_within else { return Ok(None) };
        let location = SourceLocation::Flag("--equal-within");
        let value = percentage::parse(text)
            .map_err(|kind_of_error| Failure::request(location.wrong(kind_of_error)))?;
        let mut request = Request::default();
        request.measure.equal_within = Some(Located::new(value, location));
        request.equal_within().map(Some).map_err(Failure::request)
    }

    /// Refuses a series of memory where the campaign has none, before any file is written.
    fn check_series(&self, report: &Rendered) -> Result<(), Failure> {
        match report {
            Rendered::Comparison(comparison) if self.series.is_some() && comparison.memory.is_empty() => {
                Err(Failure::request(
                    "--series: no memory series was made in this campaign; `widthwise compare --memory` makes one",
                ))
            }
            Rendered::Comparison(_) => Ok(()),
            Rendered::Scaling(_) if self.series.is_some() => Err(Failure::request(
                "--series: this is a campaign of `widthwise scale`, which has no series of memory classes",
            )),
            Rendered::Scaling(_) => Ok(()),
        }
    }

    /// Refuses a folder in place of a file, before anything is read. Where the file is optional, the folder is most likely
    /// the campaign.
    fn check_outputs(&self) -> Result<(), Failure> {
        let [html, markdown, json, csv] = self.formats.files();
        let outputs = [html, markdown, json, csv, ("--series", "series.csv", &self.series)];
        for (flag, file, path) in outputs {
            if let Some(path) = path.as_deref().filter(|path| path.is_dir()) {
                let folder = path.display();
                return Err(Failure::request(format!(
                    "{flag}: {folder} is a folder, and a file is to be written: name one ({flag}={file}). A \
                     campaign stands by itself: widthwise report {folder} {flag}={file}"
                )));
            }
        }
        output::check(&outputs.map(|(flag, _, path)| (flag, path)))
    }
}
