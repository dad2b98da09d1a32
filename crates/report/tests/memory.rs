//! Memory over time in every format.

use crate::campaign;
use crate::campaign::{laid, Laid, BASELINE, SLOW};
use widthwise_experiment::model::Variant;
use widthwise_experiment::outcome::{Ending, Run};
use widthwise_report::{csv_memory, html, markdown, terminal, MemoryRun, Report};

fn read(library: &str, phase: &str) -> Laid {
    let mut laid = laid(8);
    laid.read_memory(1, 1.0, library, phase);
    laid
}

/// The report of a campaign with that many rounds of the series; the readings missed that much of the peak.
fn text(rounds: u32, missed: f64) -> String {
    let mut laid = laid(8);
    laid.read_memory(rounds, missed, "libc.so.6", "fit");
    laid.judge_in_earnest();
    terminal::render(&laid.comparison(), &terminal::Options::default())
}

#[test]
fn a_reduction_is_printed_only_where_the_runs_resolve_a_difference() {
    let line = "heap (brk)         40.0 MB      24.0 MB";
    assert!(text(6, 1.0).contains(&format!("{line}  40.0 %")));
    let once = text(1, 1.0);
    assert!(once.contains(line) && !once.contains("40.0 %"), "one round resolves no difference: {once}");
}

#[test]
fn the_series_of_a_run_that_failed_describes_nothing() {
    let mut laid = laid(8);
    laid.read_memory(6, 1.0, "libc.so.6", "fit");
    for run in laid.runs.iter_mut().filter(|run| run.variant == SLOW && run.sample.contains_key("tree_peak"))
    {
        run.ending = Ending::Timeout { limit_ns: 1 };
    }
    laid.judge_in_earnest();
    let text = terminal::render(&laid.comparison(), &terminal::Options::default());
    assert!(text.contains("40.0 MB") && !text.contains("24.0 MB"), "{text}");
}

#[test]
fn only_readings_near_the_peak_describe_the_peak() {
    assert!(text(6, 1.0).contains("at the peak "));
    let below = text(6, 1.2);
    assert!(below.contains("at 83 % or more of the peak ") && !below.contains("  at the peak  "), "{below}");
    assert!(below.contains("41.3 MB … 49.6 MB"), "the bounds of the peak: {below}");
    let far = text(6, 2.0);
    assert!(!far.contains("heap (brk)"), "{far}");
    let open = text(6, f64::INFINITY);
    assert!(open.contains("at least 41.3 MB") && !open.contains("heap (brk)"), "{open}");
}

#[test]
fn the_terminal_shows_what_memory_is_for_and_a_variants_savings() {
    let text = text(6, 1.0);
    for line in [
        "Memory over time, in 6 rounds of their own: a statm sample every 5 ms, a pagemap scan every 0.1 s",
        // (40 - 24) / 40.
        "heap (brk)         40.0 MB      24.0 MB  40.0 %",
        "in all, resident   41.3 MB      25.3 MB  38.7 %",
        "phases of i386/-O2: load 7.30 MB · fit 25.3 MB",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    assert!(!text.contains("x32run itself"), "an empty class has no line");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let without = terminal::render(&laid(8).comparison(), &terminal::Options::default());
    assert!(!without.contains("Memory over time"));
}

#[test]
fn the_page_draws_every_variant_on_one_scale_with_its_phases() {
    let laid = read("libc.so.6", "fit");
    let page = html::render(&laid.comparison());
    assert_eq!(page.matches("class=\"plot stack\"").count(), 2);
    assert!(page.contains("href=\"#memory\""));
    // The tops of areas of equal bytes are at the same height in both: here the library's, below the heap.
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
    assert!(!html::render(&campaign::laid(8).comparison()).contains("id=\"memory\""));
}

#[test]
fn names_of_libraries_and_phases_stay_text() {
    let evil = "</title><script>alert(1)</script>\u{202e}\u{7}";
    let laid = read(evil, evil);
    let page = html::render(&laid.comparison());
    assert!(!page.contains("<script") && !page.contains('\u{202e}') && !page.contains('\u{7}'));
    let text = terminal::render(&laid.comparison(), &terminal::Options::default());
    assert!(!text.contains('\u{202e}') && !text.contains('\u{7}'));
    assert!(Report::Comparison(Box::new(laid.comparison())).json().is_ok());
    let note = markdown::render(&laid.comparison());
    assert!(!note.contains("\u{7}") && note.contains("| heap (brk) | 40.0 MB | 24.0 MB |"), "{note}");
}

#[test]
fn the_csv_has_a_row_for_every_moment_part_and_process() {
    let mut bytes = Vec::new();
    csv_memory::write(&read("libc.so.6", "fit").comparison(), &mut bytes).unwrap();
    let mut table = csv::Reader::from_reader(&bytes[..]);
    assert_eq!(table.headers().unwrap(), &csv_memory::HEAD[..]);
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    // For each run: three moments with the tree and two parts, two of them with a process, and three statm
    // samples.
    assert_eq!(rows.len(), 3 * (3 * 3 + 2 + 3));
    let column = |name: &str| csv_memory::HEAD.iter().position(|head| *head == name).unwrap();
    let pagemap_scan = rows
        .iter()
        .find(|row| &row[column("reading")] == "pagemap-scan" && &row[column("variant")] == SLOW)
        .unwrap();
    assert_eq!((&pagemap_scan[column("phase")], &pagemap_scan[column("resident")]), ("fit", "25300000"));
    assert_eq!(&pagemap_scan[column("pss")], "", "a pagemap scan has no PSS");
}

#[test]
fn a_run_of_an_interrupted_round_represents_no_variant() {
    let mut laid = read("libc.so.6", "fit");
    if let Some(round) = laid.rounds.last_mut() {
        round.kind = widthwise_experiment::outcome::RoundKind::Interrupted;
    }
    let page = html::render(&laid.comparison());
    assert!(!page.contains("class=\"plot stack\""));
    // The JSON still has it.
    assert!(Report::Comparison(Box::new(laid.comparison()))
        .json()
        .unwrap()
        .contains("\"pagemap_scans_made\": 2"));
}

#[test]
fn without_a_clear_peak_explain_shows_amounts_and_no_difference() {
    let mut laid = laid(8);
    laid.read_memory(1, 1.0, "libc.so.6", "sort");
    let shown = |laid: &Laid| {
        let palette = widthwise_report::text::Palette::default();
        let campaign = laid.comparison();
        let text =
            widthwise_report::memory::difference::terminal(&campaign, BASELINE, Some(SLOW), 500, &palette);
        text.expect("two series")
    };
    // One round is too few for a verdict.
    let text = shown(&laid);
    assert!(!text.contains('→') && !text.contains("difference") && !text.contains('−'), "{text}");
    assert!(!text.contains("% less"), "{text}");
    assert!(text.contains("41.3 MB and 25.3 MB"), "{text}");
    let mut laid = campaign::laid(8);
    laid.read_memory(8, 1.0, "libc.so.6", "sort");
    laid.judge_in_earnest();
    let text = shown(&laid);
    assert!(text.contains("less memory at its peak than x86-64/-O2"), "{text}");
    assert!(text.contains("difference") && text.contains("41.3 MB → 25.3 MB"), "{text}");
}

/// As [`read`], with `more` further variants that equal the slow one.
fn read_of_many(more: usize) -> Laid {
    let mut laid = read("libc.so.6", "fit");
    let names: Vec<String> = (0..more).map(|number| format!("variant {number:02}")).collect();
    let slow = laid.experiment.variants.iter().find(|variant| variant.name == SLOW).cloned().unwrap();
    let (runs, memory) = (laid.runs.clone(), laid.memory.clone());
    for name in names {
        laid.experiment.variants.push(Variant { name: name.clone(), ..slow.clone() });
        let of_slow = runs.iter().filter(|run| run.variant == SLOW);
        laid.runs.extend(of_slow.map(|run| Run { variant: name.clone(), ..run.clone() }));
        let of_slow = memory.iter().filter(|run| run.variant == SLOW);
        laid.memory.extend(of_slow.map(|run| MemoryRun { variant: name.clone(), ..run.clone() }));
    }
    laid.judge();
    laid
}

#[test]
fn of_many_variants_a_few_are_shown_and_the_others_are_folded() {
    let laid = read_of_many(60);
    let text = terminal::render(&laid.comparison(), &terminal::Options::default());
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    assert!(text.contains("58 more variants are in the page and in the JSON."), "{text}");
    assert_eq!(text.matches("phases of ").count(), 4, "{text}");
    let page = html::render(&laid.comparison());
    let section =
        page.split("id=\"memory\"").nth(1).and_then(|rest| rest.split("</section>").next()).unwrap();
    let open: String = section
        .split("<details")
        .enumerate()
        .map(|(number, part)| match number {
            0 => part,
            _ => part.rsplit("</details>").next().unwrap_or_default(),
        })
        .collect();
    assert_eq!(open.matches("class=\"plot stack\"").count(), 4);
    assert!(
        section.contains("What memory is for in all 62 variants")
            && section.contains("The other 58 variants")
    );
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}
