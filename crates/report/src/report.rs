//! A report on any kind of campaign, and the formats that every kind has.

use std::io::Write;

use crate::comparison::Comparison;
use crate::scale::{self, Scaling};
use crate::{csv, html, json, markdown, terminal};

/// A report, by the kind of its campaign.
#[derive(Debug)]
pub enum Report<'a> {
    /// Variants against a baseline.
    Comparison(Box<Comparison<'a>>),
    /// Throughput and memory by number of processes.
    Scaling(Box<Scaling<'a>>),
}

impl Report<'_> {
    /// The text of a terminal.
    pub fn terminal(&self, options: &terminal::Options) -> String {
        match self {
            Report::Comparison(comparison) => terminal::render(comparison, options),
            Report::Scaling(scaling) => {
                scale::terminal(scaling, &options.palette, options.width, options.report.as_deref())
            }
        }
    }

    /// One self-contained page.
    pub fn html(&self) -> String {
        match self {
            Report::Comparison(comparison) => html::render(comparison),
            Report::Scaling(scaling) => scale::html(scaling),
        }
    }

    /// Markdown, with a final line end.
    pub fn markdown(&self) -> String {
        match self {
            Report::Comparison(comparison) => markdown::render(comparison),
            Report::Scaling(scaling) => scale::markdown(scaling),
        }
    }

    /// One JSON object without a final line end; `docs/schema/report-3.json` describes it.
    ///
    /// # Errors
    /// A number that JSON cannot represent; there is none.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        match self {
            Report::Comparison(comparison) => {
                serde_json::to_string_pretty(&json::comparison::envelope(comparison))
            }
            Report::Scaling(scaling) => serde_json::to_string_pretty(&json::scaling::envelope(scaling)),
        }
    }

    /// The raw data as a table: a row for each reading, or for each member of a run.
    ///
    /// # Errors
    /// The writer's.
    pub fn csv(&self, to: &mut impl Write) -> Result<(), ::csv::Error> {
        match self {
            Report::Comparison(comparison) => csv::write(comparison, to),
            Report::Scaling(scaling) => scale::csv(scaling, to),
        }
    }
}
