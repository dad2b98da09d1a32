//! `report`: renders a campaign from its archive.

use std::path::PathBuf;

use clap::Args;
use widthwise_archive::Archive;
use widthwise_experiment::request::Request;
use widthwise_experiment::{percentage, Located, SourceLocation};
use widthwise_report::text::Palette;
use widthwise_report::{csv_memory, markdown, terminal, Report as Rendered};

use crate::explain::excerpts;
use crate::failure::Failure;
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
    /// HTML: one self-contained page (`-`: standard output)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
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
        let mut loaded = LoadedReport::new(&archive, margin)?;
        if self.html.is_some() {
            loaded = loaded.with_heap(&archive);
            if let Rendered::Comparison(comparison) = loaded.report() {
                let excerpts = excerpts::of(&archive, &comparison, None)?;
                let inner_loops = micro::loops::of_campaign(&archive, &comparison);
                drop(comparison);
                loaded = loaded.with_explanations(excerpts).with_inner_loops(inner_loops);
            }
        }
        let report = loaded.report();
        self.check_formats(&report)?;
        let mut written = false;
        if let Some(path) = &self.html {
            output::put(path, report.html().as_bytes())?;
            written = true;
        }
        if let (Some(path), Rendered::Comparison(comparison)) = (&self.markdown, &report) {
            output::put(path, markdown::render(comparison).as_bytes())?;
            written = true;
        }
        if let Some(path) = &self.json {
            let text = report.json().map_err(Failure::machine)?;
            output::put(path, format!("{text}\n").as_bytes())?;
            written = true;
        }
        if let Some(path) = &self.csv {
            let mut text = Vec::new();
            report.csv(&mut text).map_err(Failure::machine)?;
            output::put(path, &text)?;
            written = true;
        }
        if let (Some(path), Rendered::Comparison(comparison)) = (&self.series, &report) {
            let mut text = Vec::new();
            csv_memory::write(comparison, &mut text).map_err(Failure::machine)?;
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

    /// Refuses the formats that the campaign cannot be rendered in, before any file is written.
    fn check_formats(&self, report: &Rendered) -> Result<(), Failure> {
        match report {
            Rendered::Comparison(comparison) if self.series.is_some() && comparison.memory.is_empty() => {
                Err(Failure::request(
                    "--series: no memory series was made in this campaign; `widthwise compare --memory` makes one",
                ))
            }
            Rendered::Comparison(_) => Ok(()),
            Rendered::Scaling(_) => {
                let flags = [("--markdown", &self.markdown), ("--series", &self.series)];
                match flags.iter().find(|(_, path)| path.is_some()) {
                    Some((flag, _)) => Err(Failure::request(format!(
                        "{flag}: this is a campaign of `widthwise scale`, which is shown on the terminal, as --html, --json and \
                         --csv"
                    ))),
                    None => Ok(()),
                }
            }
        }
    }

    /// Refuses a folder in place of a file, before anything is read. Where the file is optional, the folder is most likely
    /// the campaign.
    fn check_outputs(&self) -> Result<(), Failure> {
        let outputs = [
            ("--html=", "out.html", &self.html),
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
        output::check(&outputs.map(|(flag, _, path)| (flag.trim_end_matches('='), path)))
    }
}
