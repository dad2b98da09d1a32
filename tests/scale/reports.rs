//! Every format of the report of a scaling campaign.

use super::{estimate, lab, row, scale, table};
use crate::laboratory;
use crate::laboratory::unfolded;
use crate::laboratory::Laboratory;
use crate::schema::{complaints, REPORT};
use serde_json::Value;

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
        assert_eq!(complaints(REPORT, &report), [""; 0], "{options}");
        // The schema refuses unknown fields; otherwise this test could not fail.
        let mut other = report.clone();
        other["runs"][0]["unknown"] = 1.into();
        let found = complaints(REPORT, &other);
        assert!(found.iter().any(|complaint| complaint.starts_with("/runs/0: ")), "{options}: {found:?}");
    }
    let words =
        "scale --binary a=/bin/true --binary b=/bin/false --processes 1,2 --rounds 6 --warmup 0 --json";
    assert_eq!(complaints(REPORT, &lab.widthwise(words).json()), [""; 0]);
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
    let made = lab.widthwise("report --html=out.html --csv=out.csv --json=out.json --markdown=out.md");
    assert_eq!(made.status, Some(0), "{made:?}");
    let json: Value = serde_json::from_str(&lab.read("out.json")).unwrap();
    assert_eq!(complaints(REPORT, &json), [""; 0]);
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
    assert!(html.contains(">MB<") && !html.contains("MiB"), "the chart has another unit than the tables");
    // The command can be typed again, and the spec and the seed are there.
    let command =
        "--run '{build}/workers fork {processes} {events} event=2000 own=4 hold=80' --processes 1,2";
    assert!(html.contains(command) && html.contains("Seed <code>") && html.contains("[program]"), "{html}");
    let text = unfolded(&output.stdout);
    assert!(text.contains(" hold "), "{text}");
    shows_the_tables_in_markdown(&lab.read("out.md"), &json);
    // A busy machine has no best throughput.
    assert!(!text.contains("best measured throughput") || text.contains(" events/s with "), "{text}");
    assert!(!text.contains("−0.0 %") && !text.contains("+0.0 %"), "{text}");
    let figure = &row(table(&json, "x86-64", "fork"), 2)["elapsed"];
    let (low, high) = (figure["low"].as_f64().unwrap(), figure["high"].as_f64().unwrap());
    assert!(low <= estimate(figure) && estimate(figure) <= high);
    assert_eq!(html, lab.read(".widthwise/latest/report.html"));
}

/// A table for each of the JSON's, with a row for each number of processes, all of one width.
fn shows_the_tables_in_markdown(markdown: &str, json: &Value) {
    let blocks: Vec<&str> = markdown.split("\n\n").collect();
    for table in json["tables"].as_array().unwrap() {
        let [variant, mode, placement] =
            ["variant", "mode", "placement"].map(|field| table[field].as_str().unwrap());
        let title = format!("**{variant} · {mode} · {placement}**");
        let place = blocks.iter().position(|block| *block == title).expect("a title");
        let lines: Vec<&str> = blocks[place + 1].lines().collect();
        assert_eq!(lines.len(), 2 + table["rows"].as_array().unwrap().len(), "{markdown}");
        let bars = |line: &str| line.matches('|').count();
        assert!(lines.iter().all(|line| bars(line) == bars(lines[0]) && bars(line) > 6), "{markdown}");
    }
    let sentences = blocks.iter().find(|block| block.starts_with("- ")).expect("sentences");
    assert!(sentences.contains("Detection floor") && sentences.contains(" hold "), "{markdown}");
}

#[test]
fn one_process_is_singular() {
    let lab = Laboratory::new();
    lab.write("short.c", "int main(void) { return 0; }\n");
    // Sooner or later it is not seen.
    let words =
        "scale short.c --abi x86-64 --mode fork --processes 1 --run {build}/short --rounds 50 --memory=0";
    let output = lab.widthwise(words);
    assert_eq!(output.status, Some(1), "{output:?}");
    assert!(output.stderr.contains("1 child was asked for and none was seen"), "{output:?}");
    // Its own memory is most of it: the C library's share depends on how many processes use that.
    let options = "--processes 1,2 --rounds 1 --warmup 0 --memory-limit 5M --events 4";
    let text = unfolded(&scale(&self::lab(), "x86-64", "alone 1 {events} own=3 hold=200", options).stdout);
    assert!(text.contains(" hold 1 job of x86-64"), "{text}");
}
