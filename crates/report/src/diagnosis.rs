//! What `doctor` found, as a page, Markdown and CSV.

use std::io::Write;

use maud::html;

use crate::html::document::{document, POLICY};
use crate::markdown::escape::harmless;
use crate::sanitize;

/// One finding.
#[derive(Debug, Clone, Copy)]
pub struct Finding<'a> {
    /// What it is about: `x32`, `counters`, `missing`.
    pub subject: &'a str,
    /// `good`, `lacking` or `fact`.
    pub mark: &'a str,
    /// Its state in a word or two; for what is missing, what it is.
    pub state: &'a str,
    /// Everything else; for what is missing, the command that adds it.
    pub detail: &'a str,
}

/// One self-contained page.
pub fn html(findings: &[Finding]) -> String {
    let body = html! {
        body {
            header { p class="kicker" { "Widthwise · doctor" } h1 { "What can be built, run and counted here" } }
            main { section {
                div class="scroll" tabindex="0" role="region" aria-label="Findings" {
                    table {
                        thead { tr {
                            th scope="col" { "subject" } th scope="col" { "" } th scope="col" { "state" }
                            th scope="col" { "detail" }
                        } }
                        tbody {
                            @for one in findings {
                                tr {
                                    th scope="row" { (sanitize::line(one.subject)) }
                                    td { (one.mark) }
                                    td { (sanitize::line(one.state)) }
                                    td { (sanitize::line(one.detail)) }
                                }
                            }
                        }
                    }
                }
            } }
            footer { p { "Widthwise " (env!("CARGO_PKG_VERSION")) } }
        }
    };
    document("Doctor", POLICY, &[], &body).into_string()
}

/// A table, with a final line end.
pub fn markdown(findings: &[Finding]) -> String {
    let mut text = "| subject |  | state | detail |\n|---|---|---|---|\n".to_owned();
    for one in findings {
        let cells = [one.subject, one.mark, one.state, one.detail].map(harmless);
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

/// One row for each finding.
///
/// # Errors
/// The writer's.
pub fn csv(findings: &[Finding], out: impl Write) -> Result<(), ::csv::Error> {
    let mut table = ::csv::Writer::from_writer(out);
    table.write_record(["subject", "mark", "state", "detail"])?;
    for one in findings {
        table.write_record([one.subject, one.mark, one.state, one.detail])?;
    }
    table.flush()?;
    Ok(())
}
