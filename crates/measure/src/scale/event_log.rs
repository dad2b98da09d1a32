//! The events that a program reports: lines of a log that match a pattern, or marks on a pipe.

use regex::Regex;
use thiserror::Error;
use widthwise_experiment::memory::Mark;
use widthwise_experiment::scale::ReportedEvents;

/// CMSSW's lines: the first of each pair is elapsed, the second CPU time.
pub const CMS: &str = "cms";
const CMS_LINE: &str = r"Avg event:\s+(?P<alternating>[0-9.eE+-]+)";

/// How a program reports events.
#[derive(Debug, Clone)]
pub enum EventLog {
    /// As lines of standard output, standard error and these files.
    Lines {
        /// What a line looks like.
        pattern: Pattern,
        /// Files, as a pattern of names relative to the working directory.
        files: Option<String>,
    },
    /// As lines on the pipe whose path is in `WIDTHWISE_MARKS`: `event`, or `event` and a word that names the
    /// reporting task.
    Marks,
}

/// A pattern that finds events in text.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
}

/// A pattern that is invalid.
#[derive(Debug, Error)]
pub enum PatternError {
    /// It is not a regular expression.
    #[error("no regular expression: {0}")]
    Syntax(String),
    /// It has an unknown group.
    #[error("the group \"{0}\" is unknown: the groups are events, elapsed and cpu (seconds)")]
    Group(String),
}

impl Pattern {
    /// A regular expression whose groups `elapsed` and `cpu` are seconds per event and `events` their number;
    /// a group without a name is `elapsed`. The word `cms` stands for the lines of CMSSW.
    ///
    /// # Errors
    /// The text is not a regular expression, or has other groups.
    pub fn new(text: &str) -> Result<Pattern, PatternError> {
        let source = if text == CMS { CMS_LINE } else { text };
        let regex = Regex::new(source).map_err(|error| {
            // The last line is the error; those before show where it is.
            PatternError::Syntax(error.to_string().lines().last().unwrap_or_default().trim().to_owned())
        })?;
        let known = ["events", "elapsed", "cpu", "alternating"];
        match regex.capture_names().flatten().find(|name| !known.contains(name)) {
            Some(name) => Err(PatternError::Group(name.to_owned())),
            None => Ok(Pattern { regex }),
        }
    }

    /// The events in the text; none if no line matches.
    pub fn reported(&self, text: &str) -> Option<ReportedEvents> {
        let mut sums = Sums::default();
        for (place, found) in self.regex.captures_iter(text).enumerate() {
            let number = |name: &str| found.name(name).and_then(|group| group.as_str().parse::<f64>().ok());
            let named = self.regex.capture_names().flatten().next().is_some();
            let unnamed = || found.get(1).and_then(|group| group.as_str().parse::<f64>().ok());
            let events = number("events").unwrap_or(1.0).max(0.0);
            let alternating = number("alternating");
            let elapsed = match (alternating, place % 2) {
                (Some(value), 0) => Some(value),
                _ => number("elapsed").or_else(|| if named { None } else { unnamed() }),
            };
            let cpu = if place % 2 == 1 { alternating } else { None }.or_else(|| number("cpu"));
            let counts = alternating.is_none() || place % 2 == 0;
            sums.add(if counts { events } else { 0.0 }, events, elapsed, cpu);
        }
        sums.reported()
    }
}

/// Sums over lines, each weighted by its events.
#[derive(Debug, Default)]
struct Sums {
    lines: u64,
    events: f64,
    elapsed: (f64, f64),
    cpu: (f64, f64),
}

impl Sums {
    fn add(&mut self, counted: f64, weight: f64, elapsed: Option<f64>, cpu: Option<f64>) {
        self.lines += 1;
        self.events += counted;
        for (sum, value) in [(&mut self.elapsed, elapsed), (&mut self.cpu, cpu)] {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                sum.0 += weight * value;
                sum.1 += weight;
            }
        }
    }

    fn reported(&self) -> Option<ReportedEvents> {
        let mean = |(sum, weight): (f64, f64)| (weight > 0.0).then(|| sum / weight);
        (self.lines > 0).then(|| ReportedEvents {
            events: self.events as u64,
            elapsed_s: mean(self.elapsed),
            cpu_s: mean(self.cpu),
        })
    }
}

/// The combined report of several tasks, each weighted by its events.
pub fn combined(all: &[ReportedEvents]) -> Option<ReportedEvents> {
    let mut sums = Sums::default();
    for reported in all {
        let events = reported.events as f64;
        sums.add(events, events, reported.elapsed_s, reported.cpu_s);
    }
    sums.reported()
}

/// The events in marks, by the word that names the reporting task: the time of an event is that between two
/// marks of one task.
pub fn of_marks(marks: &[Mark]) -> Vec<(String, ReportedEvents)> {
    let mut by_name: Vec<(String, Vec<u64>)> = Vec::new();
    for mark in marks {
        let mut words = mark.text.split_whitespace();
        if words.next() != Some("event") {
            continue;
        }
        let name = words.next().unwrap_or_default().to_owned();
        match by_name.iter_mut().find(|(known, _)| *known == name) {
            Some((_, times)) => times.push(mark.at_ns),
            None => by_name.push((name, vec![mark.at_ns])),
        }
    }
    by_name
        .into_iter()
        .map(|(name, times)| {
            let between = times.len().saturating_sub(1) as f64;
            let lasted = times.last().zip(times.first()).map_or(0.0, |(last, first)| (last - first) as f64);
            let elapsed_s = (between > 0.0).then(|| lasted / between / 1e9);
            (name, ReportedEvents { events: times.len() as u64, elapsed_s, cpu_s: None })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_cmssw_have_elapsed_and_cpu_time_in_turn() {
        let text = "- Avg event:   2.0\n- Avg event:   1.5\n- Avg event:   4.0\n- Avg event:   2.5\n";
        let reported = Pattern::new(CMS).unwrap().reported(text).unwrap();
        assert_eq!(reported, ReportedEvents { events: 2, elapsed_s: Some(3.0), cpu_s: Some(2.0) });
    }

    #[test]
    fn groups_name_a_number_and_events_weigh() {
        let pattern = Pattern::new(r"n=(?P<events>\d+) cpu=(?P<cpu>[\d.]+)").unwrap();
        let reported = pattern.reported("n=1 cpu=1.0\nn=3 cpu=2.0\n").unwrap();
        assert_eq!(reported, ReportedEvents { events: 4, elapsed_s: None, cpu_s: Some(1.75) });
        let reported = Pattern::new(r"took (\S+) s").unwrap().reported("took 0.5 s\ntook 1.5 s").unwrap();
        assert_eq!(reported, ReportedEvents { events: 2, elapsed_s: Some(1.0), cpu_s: None });
        assert_eq!(pattern.reported("nothing"), None);
    }

    #[test]
    fn an_invalid_pattern_is_an_error() {
        assert!(Pattern::new("(").unwrap_err().to_string().contains("unclosed group"));
        assert!(Pattern::new("(?P<speed>x)").unwrap_err().to_string().contains("\"speed\""));
    }

    #[test]
    fn marks_are_events_of_the_task_that_they_name() {
        let mark = |at_ns, text: &str| Mark { at_ns, text: text.into() };
        let marks =
            [mark(0, "load"), mark(10, "event 7"), mark(15, "event 8"), mark(2_000_000_010, "event 7")];
        let reported = of_marks(&marks);
        assert_eq!(
            reported[0],
            ("7".into(), ReportedEvents { events: 2, elapsed_s: Some(2.0), cpu_s: None })
        );
        assert_eq!(reported[1], ("8".into(), ReportedEvents { events: 1, elapsed_s: None, cpu_s: None }));
    }
}
