//! Memory over time in every format.

mod campaign;

use campaign::{laid, Laid, SLOW};
use widthwise_report::{csv_memory, html, json, markdown, terminal};

fn read(library: &str, phase: &str) -> Laid {
    let mut laid = laid(8);
    laid.read_memory(library, phase);
    laid
}

#[test]
fn the_terminal_says_what_memory_is_for_and_what_a_variant_saves() {
    let text = terminal::render(&read("libc.so.6", "fit").campaign(), &terminal::Options::default());
    for line in [
        "Memory over time, in 1 round of its own: a glance every 5 ms, a survey every 0.1 s and a full",
        // (40 - 24) / 40.
        "heap (brk)           40.0 MB      24.0 MB  40.0 %",
        "in all, resident     41.3 MB      25.3 MB  38.7 %",
        "phases of i386/-O2: load 7.30 MB · fit 25.3 MB",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    assert!(!text.contains("x32run itself"), "what nobody has is no line");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let without = terminal::render(&laid(8).campaign(), &terminal::Options::default());
    assert!(!without.contains("Memory over time"));
}

#[test]
fn the_page_draws_every_variant_on_one_scale_with_its_phases() {
    let laid = read("libc.so.6", "fit");
    let page = html::render(&laid.campaign());
    assert_eq!(page.matches("class=\"plot stack\"").count(), 2);
    assert!(page.contains("href=\"#memory\""));
    // The top of an area of the same bytes is at the same height in both: here that of the library below the heap's.
    let tops = |class: &str| -> Vec<String> {
        let head = format!("class=\"area {class}\" d=\"");
        let paths = page.split(head.as_str()).skip(1);
        paths.map(|rest| rest.split('"').next().unwrap_or_default().to_owned()).collect()
    };
    let lowest = |path: &String| -> f64 {
        let numbers =
            path.split(['M', 'L', 'z']).filter_map(|point| point.split(' ').nth(1)?.parse::<f64>().ok());
        numbers.fold(f64::INFINITY, f64::min)
    };
    let heaps: Vec<f64> = tops("heap").iter().map(lowest).collect();
    assert_eq!(heaps.len(), 2);
    // 170 units are 1.04 times the tallest, 41.3 MB.
    for (height, bytes) in heaps.iter().zip([40.0, 24.0]) {
        let there = 170.0 * (1.0 - bytes / (41.3 * 1.04));
        assert!((height - there).abs() < 0.2, "{height} {there}");
    }
    assert!(page.contains(">load<") && page.contains(">fit<"));
    assert!(!html::render(&campaign::laid(8).campaign()).contains("id=\"memory\""));
}

#[test]
fn names_of_libraries_and_phases_stay_text() {
    let evil = "</title><script>alert(1)</script>\u{202e}\u{7}";
    let laid = read(evil, evil);
    let page = html::render(&laid.campaign());
    assert!(!page.contains("<script") && !page.contains('\u{202e}') && !page.contains('\u{7}'));
    let text = terminal::render(&laid.campaign(), &terminal::Options::default());
    assert!(!text.contains('\u{202e}') && !text.contains('\u{7}'));
    assert!(json::render(&laid.campaign()).is_ok());
    let note = markdown::render(&laid.campaign());
    assert!(
        !note.contains('\u{7}') && note.contains("| heap (brk) | 40.0 MB | 24.0 MB (40.0 %) |"),
        "{note}"
    );
}

#[test]
fn the_table_has_a_row_for_every_moment_part_and_process() {
    let mut bytes = Vec::new();
    csv_memory::write(&read("libc.so.6", "fit").campaign(), &mut bytes).unwrap();
    let mut table = csv::Reader::from_reader(&bytes[..]);
    assert_eq!(table.headers().unwrap(), &csv_memory::HEAD[..]);
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    // Of each run: three moments with the tree and two parts, two of them with a process, and three glances.
    assert_eq!(rows.len(), 3 * (3 * 3 + 2 + 3));
    let column = |name: &str| csv_memory::HEAD.iter().position(|head| *head == name).unwrap();
    let survey = rows
        .iter()
        .find(|row| &row[column("reading")] == "survey" && &row[column("variant")] == SLOW)
        .unwrap();
    assert_eq!((&survey[column("phase")], &survey[column("resident")]), ("fit", "25300000"));
    assert_eq!(&survey[column("pss")], "", "a survey does not know");
}

#[test]
fn a_run_of_a_round_that_was_cut_off_stands_for_nobody() {
    let mut laid = read("libc.so.6", "fit");
    if let Some(round) = laid.rounds.last_mut() {
        round.kind = widthwise_experiment::outcome::RoundKind::Interrupted;
    }
    let page = html::render(&laid.campaign());
    assert!(!page.contains("class=\"plot stack\""));
    // It is not lost.
    assert!(json::render(&laid.campaign()).unwrap().contains("\"surveys_made\": 2"));
}
