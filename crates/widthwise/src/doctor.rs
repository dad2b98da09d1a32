//! `widthwise doctor`: what can be built, run and counted here, and the commands that fix the rest.

mod noise;

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use widthwise_experiment::duration;
use widthwise_machine::doctor;
use widthwise_machine::doctor_text::{lines, Line, Mark, Widths};
use widthwise_report::diagnosis::{self, Finding};

use crate::failure::Failure;
use crate::formats::{Document, Formats};
use crate::{interrupt, output};

const EXAMPLES: &str = "\
Examples:
  widthwise doctor
  widthwise doctor --noise=1m
  widthwise doctor --json=diagnosis.json";

/// Show what can be built, run and counted here, the commands that fix what is missing, and how noisy the machine is
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    #[command(flatten)]
    formats: Formats,
    /// Measure the noise of this machine for this time: the smallest difference in CPU time that it can detect
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "20s", value_parser = time)]
    noise: Option<Duration>,
    /// The program of the noise test
    #[arg(long, hide = true)]
    spin: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(time) if time.is_zero() => Err("it must be longer than nothing".to_owned()),
        time => time.map_err(|kind_of_error| kind_of_error.to_string()),
    }
}

impl Doctor {
    /// Examines the machine and prints what was found.
    pub fn run(&self) -> Result<(), Failure> {
        if self.spin {
            noise::spin();
            return Ok(());
        }
        self.formats.check()?;
        let examine = || {
            let mut diagnosis = doctor::examine();
            if let Some(time) = self.noise {
                match noise::floor(time)? {
                    Ok(floor) => diagnosis.noise_floor = Some(floor),
                    Err(reason) => diagnosis.no_noise_floor = Some(reason),
                }
            }
            anyhow::Ok(diagnosis)
        };
        let diagnosis = interrupt::while_examining(examine)?.map_err(Failure::machine)?;
        let written = self.formats.write(&Found { diagnosis: &diagnosis, lines: &lines(&diagnosis) });
        // What took long to find is not lost with a file that could not be written.
        if !self.formats.is_any() || written.is_err() && !self.formats.is_on_stdout() {
            output::print(&table(&diagnosis))?;
        }
        Ok(written?)
    }
}

/// The diagnosis, and its lines.
struct Found<'a> {
    diagnosis: &'a doctor::Diagnosis,
    lines: &'a [Line],
}

impl Found<'_> {
    fn findings(&self) -> Vec<Finding<'_>> {
        let mark = |line: &Line| match line.mark {
            Mark::Good => "good",
            Mark::Lacking => "lacking",
            Mark::Info => "fact",
        };
        let lines = self.lines.iter();
        lines
            .map(|line| Finding {
                subject: &line.word,
                mark: mark(line),
                state: &line.state,
                detail: &line.detail,
            })
            .collect()
    }
}

impl Document for Found<'_> {
    fn html(&self) -> String {
        diagnosis::html(&self.findings())
    }

    fn markdown(&self) -> String {
        diagnosis::markdown(&self.findings())
    }

    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self.diagnosis)
    }

    fn csv(&self, to: &mut Vec<u8>) -> Result<(), Failure> {
        diagnosis::csv(&self.findings(), to).map_err(Failure::machine)
    }
}

fn table(diagnosis: &doctor::Diagnosis) -> String {
    let lines = lines(diagnosis);
    let widths = Widths::of(&lines);
    let mut text = String::new();
    for line in &lines {
        let style = style(line.mark);
        let (word, state) = (widths.word(line), widths.state(line));
        text += &format!("  {word}{style}{state}{style:#}{}\n", line.detail);
    }
    text
}

fn style(mark: Mark) -> Style {
    match mark {
        Mark::Good => AnsiColor::Green.on_default(),
        Mark::Lacking => AnsiColor::Yellow.on_default(),
        Mark::Info => Style::new(),
    }
}
