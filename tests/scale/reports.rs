//! Every format of the report of a scaling campaign.

use super::{estimate, lab, row, scale, table};
use crate::laboratory;
use serde_json::Value;

/// The errors of a report by `docs/schema/report-3.json`.
fn complaints(report: &Value) -> Vec<String> {
    let schema = std::fs::read_to_string(laboratory::repository().join("docs/schema/report-3.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn the_json_matches_its_schema_for_failures_output_mismatches_and_short_campaigns_too() {
    let lab = lab();
    let reported = "fork {processes} {events} event=2000";
    for options in [
        "--processes 1 --rounds 1 --warmup 0 --memory=0 --events 4",
        "--processes 1,2 --rounds 2 --warmup 1 --memory=1 --events 8 --placement cores --placement 0",
        "--processes 1 --rounds 1 --warmup 0 --memory=0 --events 1 --timeout 1ms",
    ] {
        scale(&lab, "x86-64", reported, options);
        let report = lab.widthwise("report --json").json();
        assert_eq!(complaints(&report), [""; 0], "{options}");
        // The schema refuses unknown fields; otherwise this test could not fail.
        let mut other = report.clone();
        other["runs"][0]["unknown"] = 1.into();
        let found = complaints(&other);
        assert!(found.iter().any(|complaint| complaint.starts_with("/runs/0: ")), "{options}: {found:?}");
    }
    let words =
        "scale --binary a=/bin/true --binary b=/bin/false --processes 1,2 --rounds 6 --warmup 0 --json";
    assert_eq!(complaints(&lab.widthwise(words).json()), [""; 0]);
}

#[test]
fn every_format_shows_the_same_campaign() {
    let lab = lab();
    let output = scale(
        &lab,
        "x86-64,i386",
        "fork {processes} {events} event=2000 own=4 hold=80",
        "--processes 1,2 --events 8 --rounds 6 --warmup 0 --memory=1",
    );
    assert_eq!(output.status, Some(0), "{output:?}");
    assert!(output.stdout.contains("speed-up") && output.stdout.contains("Detection floor"), "{output:?}");
    let made = lab.widthwise("report --html=out.html --csv=out.csv --json=out.json");
    assert_eq!(made.status, Some(0), "{made:?}");
    let json: Value = serde_json::from_str(&lab.read("out.json")).unwrap();
    assert_eq!(complaints(&json), [""; 0]);
    let runs = json["runs"].as_array().unwrap();
    let members: usize = runs.iter().map(|a| a["members"].as_array().unwrap().len()).sum();
    let mut csv = csv::Reader::from_reader(lab.read("out.csv").into_bytes().leak() as &[u8]);
    let page = std::fs::read_to_string(laboratory::repository().join("docs/csv.md")).unwrap();
    for column in csv.headers().unwrap() {
        assert!(page.contains(&format!("`{column}`")), "{column} is not in docs/csv.md");
    }
    assert_eq!(csv.records().count(), members);
    let html = lab.read("out.html");
    assert!(html.contains("Memory over time") && !html.contains("<script"));
    let figure = &row(table(&json, "x86-64", "fork"), 2)["elapsed"];
    let (low, high) = (figure["low"].as_f64().unwrap(), figure["high"].as_f64().unwrap());
    assert!(low <= estimate(figure) && estimate(figure) <= high);
    assert_eq!(html, lab.read(".widthwise/latest/report.html"));
}
