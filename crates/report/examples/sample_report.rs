//! Writes a report of an invented campaign; the file's extension gives the format:
//! `cargo run -p widthwise-report --example sample_report -- out.html [timed rounds | hostile]`.
//! Prints the terminal's table.

#[path = "../tests/campaign/mod.rs"]
mod campaign;

use std::error::Error;
use std::fs;

use widthwise_report::{csv, html, markdown, terminal, Report};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: sample_report OUT.html|.md|.json|.csv [ROUNDS|hostile]";
    let path = arguments.next().ok_or(usage)?;
    let mut laid = match arguments.next().as_deref() {
        Some("hostile") => campaign::hostile(),
        Some(rounds) => campaign::laid(rounds.parse()?),
        None => campaign::laid(42),
    };
    if laid.rounds.len() < 200 {
        laid.judge_in_earnest();
    }
    let campaign = laid.comparison();
    match path.rsplit('.').next() {
        Some("html") => fs::write(&path, html::render(&campaign))?,
        Some("md") => fs::write(&path, markdown::render(&campaign))?,
        Some("json") => fs::write(&path, Report::Comparison(Box::new(campaign.clone())).json()?)?,
        Some("csv") => csv::write(&campaign, fs::File::create(&path)?)?,
        _ => return Err(usage.into()),
    }
    let palette = widthwise_report::text::Palette::coloured();
    let options = terminal::Options { report: Some(path), palette, ..terminal::Options::default() };
    print!("{}", terminal::render(&campaign, &options));
    Ok(())
}
