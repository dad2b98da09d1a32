//! The formats that a result is written in, besides the text of a terminal.

use std::path::{Path, PathBuf};

use clap::Args;
use widthwise_report::Report;

use crate::failure::Failure;
use crate::output;

/// The files, each with its flag; `-` is standard output.
#[derive(Debug, Args)]
pub struct Formats {
    /// HTML: one self-contained page (`-`: standard output)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    html: Option<PathBuf>,
    /// Markdown
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    markdown: Option<PathBuf>,
    /// JSON (its schema: docs/json.md)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// CSV (its columns: docs/csv.md)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    csv: Option<PathBuf>,
}

/// What has all formats.
pub trait Document {
    /// One self-contained page.
    fn html(&self) -> String;

    /// Markdown, with a final line end.
    fn markdown(&self) -> String;

    /// JSON without a final line end.
    fn json(&self) -> Result<String, serde_json::Error>;

    /// CSV with a header row.
    fn csv(&self, to: &mut Vec<u8>) -> Result<(), Failure>;
}

impl Document for Report<'_> {
    fn html(&self) -> String {
        self.html()
    }

    fn markdown(&self) -> String {
        self.markdown()
    }

    fn json(&self) -> Result<String, serde_json::Error> {
        self.json()
    }

    fn csv(&self, to: &mut Vec<u8>) -> Result<(), Failure> {
        self.csv(to).map_err(Failure::machine)
    }
}

impl Formats {
    /// Each flag, an example of its file, and the file.
    pub fn files(&self) -> [(&'static str, &'static str, &Option<PathBuf>); 4] {
        [
            ("--html", "out.html", &self.html),
            ("--markdown", "out.md", &self.markdown),
            ("--json", "out.json", &self.json),
            ("--csv", "out.csv", &self.csv),
        ]
    }

    /// Refuses, before anything is measured, files that could not be written, and two formats on standard output.
    pub fn check(&self) -> Result<(), Failure> {
        output::check(&self.files().map(|(flag, _, path)| (flag, path)))
    }

    /// Whether the page is asked for.
    pub fn has_page(&self) -> bool {
        self.html.is_some()
    }

    /// Whether any format is asked for.
    pub fn is_any(&self) -> bool {
        self.files().iter().any(|(.., path)| path.is_some())
    }

    /// Whether one goes to standard output, in place of the terminal's text.
    pub fn is_on_stdout(&self) -> bool {
        self.files().iter().any(|(.., path)| output::is_stdout(path))
    }

    /// Writes each format that is asked for, also after one that could not be written.
    pub fn write(&self, document: &impl Document) -> Result<(), Unwritten> {
        let text_of = |flag: &str| -> Result<Vec<u8>, Failure> {
            Ok(match flag {
                "--html" => document.html().into_bytes(),
                "--markdown" => document.markdown().into_bytes(),
                "--json" => (document.json().map_err(Failure::machine)? + "\n").into_bytes(),
                _ => {
                    let mut text = Vec::new();
                    document.csv(&mut text)?;
                    text
                }
            })
        };
        let mut unwritten = Unwritten { flags: Vec::new(), reasons: Vec::new() };
        for (flag, _, path) in self.files() {
            let Some(path) = path else { continue };
            if let Err(failure) = text_of(flag).and_then(|text| output::put(path, &text)) {
                unwritten.flags.push(flag);
                let flag = if path.as_os_str() != "-" { format!("{flag}: ") } else { String::new() };
                unwritten.reasons.push(flag + failure.message());
            }
        }
        if unwritten.flags.is_empty() {
            Ok(())
        } else {
            Err(unwritten)
        }
    }
}

/// Formats that could not be written, because the machine failed.
#[derive(Debug)]
pub struct Unwritten {
    flags: Vec<&'static str>,
    reasons: Vec<String>,
}

impl Unwritten {
    /// The failure of a campaign whose rounds are in its folder, all of them or, interrupted, those so far.
    pub fn of_campaign(self, folder: &Path, is_complete: bool) -> Failure {
        let runs = if is_complete { "the campaign is complete" } else { "the runs so far are kept" };
        let files: Vec<String> = self.flags.iter().map(|flag| format!(" {flag}=FILE")).collect();
        let report = format!("widthwise report {}{}", output::word(folder), files.concat());
        Failure::machine(format!(
            "{}\n       {runs}, and `{report}` renders the campaign",
            self.reasons.join("\n       ")
        ))
    }
}

impl From<Unwritten> for Failure {
    fn from(unwritten: Unwritten) -> Failure {
        Failure::machine(unwritten.reasons.join("\n       "))
    }
}
