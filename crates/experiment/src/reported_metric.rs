//! Metrics that the measured program reports on its standard output: their declaration, and which names are refused.

use crate::metric::METRICS;
use crate::names::{check_name, misleads};
use crate::request_error::RequestErrorKind;
use crate::units::Unit;

/// What the names of the micro suite's metrics begin with.
pub const MICRO_PREFIX: &str = "micro.";

/// A metric that the program reports.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedMetric {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// The noun of a sentence; the metric's name if absent.
    pub noun: Option<String>,
    /// Its instructions are counted by valgrind as well: of operations of the micro suite alone.
    pub instructions: bool,
    /// Where variants run on other kernels, its instructions are counted in user space and in the kernel: of operations of the micro
    /// suite alone.
    pub on_machines: bool,
}

impl ReportedMetric {
    /// Reads the unit of the metric of that name, then the noun of a sentence: `nanoseconds`, `count requests`. For the micro suite,
    /// `instructions` may be between them if they are counted too, and `machine-instructions` if they are counted on emulated
    /// machines: `nanoseconds instructions time for getpid`.
    pub fn parse<'a>(name: &str, text: &'a str) -> Result<ReportedMetric, RequestErrorKind> {
        check(name)?;
        let (unit, rest) = text.split_once(' ').unwrap_or((text, ""));
        let unit = Unit::find(unit).ok_or_else(|| RequestErrorKind::Unknown {
            what: "unit",
            name: unit.to_owned(),
            known: Unit::ALL.iter().map(|unit| unit.name().to_owned()).collect(),
        })?;
        let is_micro = name.starts_with(MICRO_PREFIX);
        let word = |text: &'a str, word: &str| match text.trim().strip_prefix(word).filter(|_| is_micro) {
            Some(rest) => (true, rest.trim()),
            None => (false, text.trim()),
        };
        let (instructions, rest) = word(rest, "instructions ");
        let (on_machines, noun) = word(rest, "machine-instructions ");
        let noun = (!noun.is_empty()).then(|| noun.to_owned());
        if let Some(noun) = &noun {
            check_name("metric", noun)?;
        }
        Ok(ReportedMetric { name: name.to_owned(), unit, noun, instructions, on_machines })
    }

    /// The text that [`ReportedMetric::parse`] reads.
    pub fn text(&self) -> String {
        let instructions = if self.instructions { Some("instructions") } else { None };
        let on_machines = if self.on_machines { Some("machine-instructions") } else { None };
        let words = [Some(self.unit.name()), instructions, on_machines, self.noun.as_deref()];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Checks the name of a metric that a program reports: one word, which no other metric has.
fn check(name: &str) -> Result<(), RequestErrorKind> {
    check_name("metric", name)?;
    let reason = if name.contains(char::is_whitespace) {
        "it is one word on a line of the program's output"
    } else if name.contains(misleads) {
        "it has an invisible character, or one that changes the direction of text"
    } else if METRICS.iter().any(|metric| metric.name == name) || ["all", "default"].contains(&name) {
        "Widthwise itself has a metric of this name"
    } else {
        return Ok(());
    };
    Err(RequestErrorKind::BadName { what: "metric", name: name.to_owned(), reason })
}
