//! `widthwise doctor`: what can be built, run and counted here, and the commands that fix the rest.

mod noise;

use std::path::PathBuf;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use widthwise_experiment::duration;
use widthwise_machine::doctor;
use widthwise_machine::doctor_text::{lines, Mark, Widths};

use crate::failure::Failure;
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
    /// The result as JSON
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Measure the noise of this machine for this time: the smallest difference in CPU time that it can detect
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "20s", value_parser = time)]
    noise: Option<Duration>,
    /// The program of the noise test
    #[arg(long, hide = true)]
    spin: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|kind_of_error| kind_of_error.to_string())
}

impl Doctor {
    /// Examines the machine and prints what was found.
    pub fn run(&self) -> Result<(), Failure> {
        if self.spin {
            noise::spin();
            return Ok(());
        }
        output::check(&[("--json", &self.json)])?;
        let examine = || {
            let mut diagnosis = doctor::examine();
            if let Some(time) = self.noise {
                diagnosis.noise_floor = noise::floor(time)?;
            }
            anyhow::Ok(diagnosis)
        };
        let diagnosis = interrupt::while_examining(examine)?.map_err(Failure::machine)?;
        let text = match &self.json {
            None => table(&diagnosis),
            Some(path) => {
                let text = serde_json::to_string_pretty(&diagnosis).map_err(Failure::machine)? + "\n";
                return output::put(path, text.as_bytes());
            }
        };
        output::print(&text)
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
