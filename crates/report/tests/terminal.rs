//! The terminal's table: the result first, every variant included, everything sanitized.

use crate::campaign;
use crate::campaign::{hostile, laid, DIFFERENT_REASON, UNSUPPORTED};
use widthwise_experiment::metric::reported;
use widthwise_experiment::model::Variant;
use widthwise_experiment::units::Unit;
use widthwise_report::terminal::{render, Options};
use widthwise_report::text::Palette;

fn wide(width: usize) -> Options {
    Options {
        width,
        why: None,
        report: Some(".widthwise/2026-11-21-sqlite3/report.html".to_owned()),
        ..Options::default()
    }
}

#[test]
fn the_table_equals_the_golden_file() {
    let laid = laid(42);
    let text = render(&laid.comparison(), &wide(132));
    let golden = include_str!("golden/terminal.txt");
    // Another crate writes and tests the sentences of the result; the table and its surroundings are tested
    // here.
    let table = |text: &str| text.split("\n\n").take(2).collect::<Vec<_>>().join("\n\n");
    assert_eq!(table(&text), golden.trim_end_matches('\n'), "the whole was:\n{text}");
}

#[test]
fn a_narrow_terminal_gets_fewer_columns_and_a_list_of_the_others() {
    let laid = laid(12);
    let text = render(&laid.comparison(), &wide(80));
    let head = text.lines().find(|line| line.contains("variant ")).unwrap_or_default();
    assert!(head.contains("CPU time") && !head.contains("page faults"), "{head}");
    assert!(text.contains("also measured:") && text.contains("page faults"), "{text}");
    for line in text.lines() {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= 80, "too wide: {line}");
    }
}

#[test]
fn every_metric_is_shown_on_request_in_several_tables() {
    let laid = laid(12);
    let text = render(&laid.comparison(), &Options { all_metrics: true, ..wide(80) });
    for metric in &laid.experiment.metrics {
        let heads = text.lines().filter(|line| line.trim_start().starts_with("variant "));
        assert!(
            heads.into_iter().any(|head| head.contains(metric.title)),
            "{} is not a column",
            metric.title
        );
    }
    assert!(!text.contains("also measured"));
}

#[test]
fn a_plain_palette_writes_no_control_character_and_a_coloured_one_does() {
    let laid = laid(12);
    let control = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
    assert!(!control(&render(&laid.comparison(), &wide(100))));
    let coloured = render(&laid.comparison(), &Options { palette: Palette::coloured(), ..wide(100) });
    assert!(coloured.contains("\u{1b}["));
}

#[test]
fn colours_change_no_text() {
    let laid = laid(12);
    let coloured = render(&laid.comparison(), &Options { palette: Palette::coloured(), ..wide(100) });
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    assert_eq!(plain, render(&laid.comparison(), &wide(100)));
}

#[test]
fn no_control_character_of_a_name_a_reason_a_warning_or_a_diff_reaches_the_terminal() {
    let laid = hostile();
    for width in [40, 80, 200] {
        let text = render(&laid.comparison(), &Options { all_metrics: true, ..wide(width) });
        let raw: Vec<char> = text.chars().filter(|c| c.is_control() && *c != '\n').collect();
        assert!(raw.is_empty(), "{raw:?}");
        assert!(!text.contains('\u{202e}'));
        assert!(text.contains("\\x1b"), "sanitized characters stay visible");
    }
}

#[test]
fn only_our_own_escape_sequences_are_written_with_colours() {
    let laid = hostile();
    let text = render(&laid.comparison(), &Options { palette: Palette::coloured(), ..wide(100) });
    let ours = ["[0m", "[1m", "[2m", "[33m", "[35m", "[36m"];
    for after in text.split('\u{1b}').skip(1) {
        assert!(ours.iter().any(|sequence| after.starts_with(sequence)), "not ours: {:?}", after.get(..6));
    }
}

#[test]
fn a_variant_with_other_output_shows_its_reason_and_the_start_of_its_diff() {
    let laid = laid(12);
    let text = render(&laid.comparison(), &wide(100));
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(DIFFERENT_REASON), "{text}");
    assert!(text.contains("-  avg 40127.338211") && text.contains("… 3 more lines"));
}

#[test]
fn a_variant_that_was_not_measured_is_named_once_where_metrics_are_rows() {
    let mut laid = laid(12);
    laid.experiment.metrics =
        ["a", "b", "c", "d", "e", "f"].map(|name| reported(name, Unit::Count, name)).to_vec();
    let twin = Variant { name: "twin".to_owned(), ..laid.experiment.variants[0].clone() };
    laid.experiment.variants.push(twin);
    let text = render(&laid.comparison(), &wide(100));
    assert_eq!(text.matches(&format!("{UNSUPPORTED} was not measured")).count(), 1, "{text}");
}

#[test]
fn noise_is_shown_with_the_rounds_that_have_it() {
    let laid = laid(42);
    let text = render(&laid.comparison(), &wide(100));
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("Noise: steal 0.4 %, other tasks used CPU 1 for"), "{text}");
    assert!(flat.contains("(in rounds 16–20)"), "{text}");
}

#[test]
fn other_tasks_are_shown_with_their_time_or_else_their_share() {
    let mut laid = laid(42);
    // Like concurrent runs, which have no wall time.
    for run in &mut laid.runs {
        run.sample.remove("wall");
    }
    let output =
        |laid: &campaign::Laid| render(&laid.comparison(), &Options { width: 400, ..Options::default() });
    let share = output(&laid);
    assert!(share.contains("other tasks used CPU 1 for 31 % of the time (in rounds 16–20)"), "{share}");
    for round in &mut laid.rounds {
        // Rounding to ticks is not attributed to others.
        let is_burst = round.noise.others > 0.1;
        round.noise.others_ns =
            Some(if is_burst { 1_180_000_000 } else { [-4_000_000, 4_000_000][round.number as usize % 2] });
    }
    let time = output(&laid);
    assert!(time.contains("other tasks used CPU 1 for 5.9 s (in rounds 16–20)"), "{time}");
    for round in &mut laid.rounds {
        round.noise.others_ns = Some(if round.number == 9 { 30_000_000 } else { 0 });
        round.noise.others = if round.number == 9 { 0.02 } else { 0.0 };
    }
    let ticks = output(&laid);
    assert!(!ticks.contains("other tasks"), "three ticks in 168 runs are noise: {ticks}");
}

#[test]
fn the_time_of_other_tasks_is_that_of_the_rounds_that_are_listed() {
    let mut laid = laid(42);
    for round in &mut laid.rounds {
        let is_burst = round.noise.others > 0.1;
        // Below one per cent of a round, in all of the others.
        round.noise.others_ns = Some(if is_burst { 1_000_000_000 } else { 90_000_000 });
    }
    let text = render(&laid.comparison(), &wide(400));
    assert!(text.contains("other tasks used CPU 1 for 5.0 s (in rounds 16–20)"), "{text}");
}

#[test]
fn diffs_that_are_not_shown_are_counted() {
    let mut laid = laid(12);
    let slow =
        laid.experiment.variants.iter().find(|variant| variant.name == campaign::SLOW).cloned().unwrap();
    for number in 0..6 {
        let name = format!("variant {number}");
        laid.experiment.variants.push(Variant { name: name.clone(), ..slow.clone() });
        laid.differences.insert(name, "-a\n+b\n".to_owned());
    }
    laid.judge();
    let text = render(&laid.comparison(), &wide(100));
    assert_eq!(text.matches(" against x86-64/-O2:").count(), 1, "{text}");
    assert!(text.contains("6 more diffs: in the HTML report and in --markdown"), "{text}");
}

#[test]
fn the_cpu_time_of_all_processes_of_a_name_is_not_called_that_of_the_largest() {
    let laid = laid(12);
    let mut comparison = laid.comparison();
    let of = |comparison: &_| widthwise_report::report_text::processes(comparison)[0].clone();
    assert!(
        of(&comparison).contains("3 processes; the largest is speedtest1, with a peak of up to 11.8 MB"),
        "{}",
        of(&comparison)
    );
    assert!(
        of(&comparison).ends_with(" (the highest of all runs) and 98 % of the CPU time."),
        "{}",
        of(&comparison)
    );
    comparison.processes[2].count = 4;
    assert!(
        of(&comparison).ends_with("; the 4 processes of that name have 98 % of the CPU time."),
        "{}",
        of(&comparison)
    );
}
