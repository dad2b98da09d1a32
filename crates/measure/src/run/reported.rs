//! The metrics that a program reports on its standard output.
//!
//! A line `metric NAME VALUE UNIT` is a reading; a line `no-metric NAME REASON` says why there is none. Other lines are the
//! program's own. The file is untrusted: what cannot be read is a remark, and never a figure.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use widthwise_experiment::metric::Family;
use widthwise_experiment::outcome::{Reading, Source};
use widthwise_experiment::Metric;

/// Lines that begin with one of these words are no output of the program, but its report.
const WORDS: [&str; 2] = ["metric", "no-metric"];
/// A longer output is read up to here.
const MOST_BYTES: u64 = 64 << 20;
/// A longer remark is cut.
const MOST_CHARACTERS: usize = 200;

/// What a program reported.
#[derive(Debug, Default, PartialEq)]
pub struct Reported {
    /// The readings, by metric.
    pub readings: BTreeMap<&'static str, Reading>,
    /// Why metrics are missing, as sentences whose subject is the variant.
    pub remarks: Vec<String>,
}

/// Reads the report in a run's standard output; `metrics` are those of the experiment, of which a program reports some.
pub(crate) fn read(stdout: &Path, metrics: &[Metric]) -> Reported {
    let own: Vec<Metric> =
        metrics.iter().copied().filter(|metric| metric.family == Family::Reported).collect();
    if own.is_empty() {
        return Reported::default();
    }
    match std::fs::File::open(stdout) {
        Ok(file) => parse(BufReader::new(file.take(MOST_BYTES)), &own),
        Err(error) => Reported {
            remarks: vec![format!("has reported nothing: its output cannot be read: {error}")],
            ..Reported::default()
        },
    }
}

/// Reads a report of these metrics.
pub fn parse(output: impl BufRead, metrics: &[Metric]) -> Reported {
    let mut reported = Reported::default();
    // Why a metric has no reading, so that it is said once.
    let mut faults: BTreeMap<&'static str, String> = BTreeMap::new();
    for line in output.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let Some((word, rest)) = line.trim_end().split_once(' ') else { continue };
        let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let Some(metric) = metrics.iter().find(|metric| metric.name == name) else { continue };
        match word {
            "metric" => match value(rest, metric) {
                Ok(_) if reported.readings.contains_key(metric.name) => {
                    faults.insert(metric.name, "it is reported twice".to_owned());
                }
                Ok(value) => {
                    reported.readings.insert(metric.name, Reading::whole(value, Source::Program));
                }
                Err(fault) => drop(faults.insert(metric.name, fault)),
            },
            "no-metric" => drop(faults.insert(metric.name, clipped(rest))),
            _ => {}
        }
    }
    for metric in metrics {
        if let Some(fault) = faults.get(metric.name) {
            reported.readings.remove(metric.name);
            reported.remarks.push(format!("has no {}: {fault}", metric.name));
        } else if !reported.readings.contains_key(metric.name) {
            let line = format!("no line \"metric {} VALUE {}\"", metric.name, metric.unit.name());
            reported.remarks.push(format!("has no {}: its output has {line}", metric.name));
        }
    }
    reported
}

/// `VALUE UNIT`, in the metric's unit.
fn value(text: &str, metric: &Metric) -> Result<f64, String> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    if unit != metric.unit.name() {
        return Err(format!("its unit is {:?}, not {}", clipped(unit), metric.unit.name()));
    }
    let value: f64 = number.parse().map_err(|_| format!("{:?} is no number", clipped(number)))?;
    if !value.is_finite() || value < 0.0 {
        return Err(format!("{:?} is not a finite number of 0 or more", clipped(number)));
    }
    Ok(value)
}

fn clipped(text: &str) -> String {
    text.chars().take(MOST_CHARACTERS).collect()
}

/// An output without the lines of its report.
pub(crate) fn without_report(output: &[u8]) -> Vec<u8> {
    let is_report = |line: &&[u8]| {
        WORDS.iter().any(|word| line.strip_prefix(word.as_bytes()).is_some_and(|rest| rest.starts_with(b" ")))
    };
    output.split_inclusive(|&byte| byte == b'\n').filter(|line| !is_report(line)).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use widthwise_experiment::metric;
    use widthwise_experiment::units::Unit;

    use super::*;

    fn latency() -> Metric {
        metric::reported("test.latency", Unit::Nanoseconds, "latency")
    }

    fn parsed(text: &str) -> Reported {
        parse(text.as_bytes(), &[latency()])
    }

    #[test]
    fn a_line_with_the_metrics_unit_is_a_reading() {
        let reported = parsed("hello\nmetric test.latency 12.5 nanoseconds\nmetric other 1 count\n");
        assert_eq!(reported.readings["test.latency"], Reading::whole(12.5, Source::Program));
        assert!(reported.remarks.is_empty());
    }

    #[test]
    fn a_metric_without_a_reading_has_its_reason() {
        for (text, reason) in [
            ("", "has no line"),
            ("no-metric test.latency fork: no more processes\n", "fork: no more processes"),
            ("metric test.latency 1 bytes\n", "\"bytes\", not nanoseconds"),
            ("metric test.latency x nanoseconds\n", "\"x\" is no number"),
            ("metric test.latency -1 nanoseconds\n", "\"-1\" is not a finite number of 0 or more"),
            ("metric test.latency inf nanoseconds\n", "\"inf\" is not a finite number of 0 or more"),
            ("metric test.latency 1 nanoseconds\nmetric test.latency 2 nanoseconds\n", "reported twice"),
        ] {
            let reported = parsed(text);
            assert!(reported.readings.is_empty(), "{text}");
            assert!(reported.remarks[0].contains(reason), "{text}: {:?}", reported.remarks);
        }
    }

    #[test]
    fn lines_of_a_report_are_no_output() {
        assert_eq!(without_report(b"a\nmetric x 1 count\nno-metric y z\nmetrics\nend"), b"a\nmetrics\nend");
    }

    proptest! {
        #[test]
        fn any_output_yields_a_reading_or_a_reason(bytes: Vec<u8>, prefix in "(metric test.latency )?") {
            let mut output = prefix.into_bytes();
            output.extend(bytes);
            let reported = parse(&output[..], &[latency()]);
            prop_assert_eq!(reported.readings.len() + reported.remarks.len(), 1);
            without_report(&output);
        }
    }
}
