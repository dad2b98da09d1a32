//! `report`: renders a campaign from its archive.

use std::path::PathBuf;

use clap::Args;
use widthwise_archive::Archive;
use widthwise_experiment::request::Request;
use widthwise_experiment::{percentage, Located, SourceLocation};
use widthwise_report::text::Palette;
use widthwise_report::{csv, csv_memory, html, json, markdown, scale, terminal};

use crate::failure::Failure;
use crate::interrupt;
use crate::load_report::LoadedReport;
use crate::output;
use crate::scale::load_report::LoadedScaling;

const EXAMPLES: &str = "\
Examples:
  widthwise report
  widthwise report .widthwise/latest --all-metrics
  widthwise report .widthwise/2026-11-21-sqlite3 --html out.html --csv=out.csv --json";

/// Render a campaign from its archive: on the terminal, or as files.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Report {
    /// The campaign's folder
    #[arg(default_value = ".widthwise/latest")]
    campaign: PathBuf,
    /// HTML: one self-contained page (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Markdown
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    markdown: Option<PathBuf>,
    /// JSON (its schema: docs/json.md)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// CSV: one row for each reading
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    csv: Option<PathBuf>,
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
        if archive.metadata().scaling.is_some() {
            return self.scaling(&archive, margin);
        }
        let mut presentation = LoadedReport::with_margin(&archive, margin)?;
        if self.html.is_some() {
            presentation = presentation.with_heap(&archive);
        }
        let campaign = presentation.campaign();
        let mut written = false;
        if let Some(path) = &self.html {
            output::put(path, html::render(&campaign).as_bytes())?;
            written = true;
        }
        if let Some(path) = &self.markdown {
            output::put(path, markdown::render(&campaign).as_bytes())?;
            written = true;
        }
        if let Some(path) = &self.json {
            let text = json::render(&campaign).map_err(Failure::machine)?;
            output::put(path, format!("{text}\n").as_bytes())?;
            written = true;
        }
        if let Some(path) = &self.csv {
            let mut text = Vec::new();
            csv::write(&campaign, &mut text).map_err(Failure::machine)?;
            output::put(path, &text)?;
            written = true;
        }
        if let Some(path) = &self.series {
            if campaign.memory.is_empty() {
                return Err(Failure::request(
                    "--series: no memory series was made in this campaign; `widthwise compare --memory` makes one",
                ));
            }
            let mut text = Vec::new();
            csv_memory::write(&campaign, &mut text).map_err(Failure::machine)?;
            output::put(path, &text)?;
            written = true;
        }
        if !written {
            let options = terminal::Options {
                width: output::width(),
                all_metrics: self.all_metrics,
                palette: Palette::coloured(),
                why: None,
                report: None,
            };
            anstream::print!("{}", terminal::render(&campaign, &options));
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

    /// A campaign of `scale`.
    fn scaling(&self, archive: &Archive, margin: Option<f64>) -> Result<(), Failure> {
        let presented = LoadedScaling::new(archive, margin)?;
        let report = presented.report();
        for (flag, path) in [("--markdown", &self.markdown), ("--series", &self.series)] {
            if path.is_some() {
                return Err(Failure::request(format!(
                    "{flag}: this is a campaign of `widthwise scale`, which is shown on the terminal, as --html, --json and --csv"
                )));
            }
        }
        let mut written = false;
        if let Some(path) = &self.html {
            output::put(path, scale::html(&report).as_bytes())?;
            written = true;
        }
        if let Some(path) = &self.json {
            let text = scale::json(&report).map_err(Failure::machine)?;
            output::put(path, format!("{text}\n").as_bytes())?;
            written = true;
        }
        if let Some(path) = &self.csv {
            let mut text = Vec::new();
            scale::csv(&report, &mut text).map_err(Failure::machine)?;
            output::put(path, &text)?;
            written = true;
        }
        if !written {
            anstream::print!("{}", scale::terminal(&report, &Palette::coloured(), output::width(), None));
        }
        Ok(())
    }

    /// Refuses a folder in place of a file, before anything is read. Where the file is optional, the folder is most likely
    /// the campaign.
    fn check_outputs(&self) -> Result<(), Failure> {
        let outputs = [
            ("--html ", "out.html", &self.html),
            ("--markdown=", "out.md", &self.markdown),
            ("--json=", "out.json", &self.json),
            ("--csv=", "out.csv", &self.csv),
            ("--series=", "series.csv", &self.series),
        ];
        for (flag, file, path) in outputs {
            if let Some(path) = path.as_deref().filter(|path| path.is_dir()) {
                let folder = path.display();
                return Err(Failure::request(format!(
                    "{}: {folder} is a folder, and a file is to be written: name one ({flag}{file}). A \
                     campaign stands by itself: widthwise report {folder} {flag}{file}",
                    flag.trim_end_matches([' ', '='])
                )));
            }
        }
        Ok(())
    }
}
