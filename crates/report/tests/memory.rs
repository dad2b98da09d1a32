//! Memory over time in every format.

use crate::campaign;
use crate::campaign::{laid, Laid, BASELINE, SLOW};
use widthwise_experiment::memory::{Amounts, Class, Mark, Part};
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
    assert!(below.contains("near the peak ") && !below.contains("  at the peak  "), "{below}");
    assert!(below.contains("share of its own peak   83 % or more "), "{below}");
    assert!(below.contains("41.3 MB … 49.6 MB"), "the bounds of the peak: {below}");
    let far = text(6, 2.0);
    assert!(!far.contains("heap (brk)"), "{far}");
    let open = text(6, f64::INFINITY);
    assert!(open.contains("at least 41.3 MB") && !open.contains("heap (brk)"), "{open}");
}

/// A series of six rounds in which the slow variant's readings saw that share of its peak, and the baseline's saw all of
/// theirs.
fn slow_read_at(share: f64) -> Laid {
    let mut laid = laid(8);
    laid.read_memory(6, 1.0, "libc.so.6", "fit");
    for run in laid.runs.iter_mut().filter(|run| run.variant == SLOW) {
        if let Some(peak) = run.sample.get_mut("tree_peak") {
            peak.value /= share;
        }
    }
    laid.judge_in_earnest();
    laid
}

#[test]
fn a_reduction_is_printed_only_where_both_readings_saw_their_own_peaks() {
    let shown = |laid: &Laid| terminal::render(&laid.comparison(), &terminal::Options::default());
    let near = shown(&slow_read_at(0.96));
    assert!(near.contains("at the peak ") && near.contains("24.0 MB  40.0 %"), "{near}");
    assert!(!near.contains("share of its own peak"), "{near}");
    let laid = slow_read_at(0.82);
    let below = shown(&laid);
    let row = |title: &str| {
        let line = below.lines().find(|line| line.trim_start().starts_with(title));
        line.unwrap_or_else(|| panic!("{title}: {below}")).trim().to_owned()
    };
    assert!(row("near the peak").ends_with("reduction"), "{below}");
    let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert_eq!(words(row("share of its own peak")), "share of its own peak 100 % 82 %");
    assert_eq!(words(row("heap (brk)")), "heap (brk) 40.0 MB 24.0 MB");
    assert_eq!(words(row("in all, resident")), "in all, resident 41.3 MB 25.3 MB");
    assert!(row("mean over time").ends_with(" %"), "the mean is of the whole run: {below}");
    assert!(words(below.clone()).contains("less than 95 % of its own peak"), "{below}");
    let note = markdown::render(&laid.comparison());
    assert!(note.contains("| share of its own peak | 100 % | 82 % |"), "{note}");
    assert!(note.contains("| heap (brk) | 40.0 MB | 24.0 MB |"), "{note}");
    let page = html::render(&laid.comparison());
    let page = page.replace('\u{a0}', " ");
    assert!(page.contains("share of its own peak</th><td>100 %</td><td>82 %</td>"));
    assert_eq!(page.matches("<small>reduction ").count(), 1, "of the mean over time alone");
}

#[test]
fn explain_compares_no_amounts_of_a_reading_below_its_peak() {
    let palette = widthwise_report::text::Palette::plain();
    let laid = slow_read_at(0.82);
    let campaign = laid.comparison();
    let text = widthwise_report::memory::difference::terminal(&campaign, BASELINE, Some(SLOW), 500, &palette);
    let text = text.expect("two series");
    let moment = format!("at 100 % of {BASELINE}'s peak and at 82 % of {SLOW}'s");
    assert!(text.contains(&moment) && text.contains("less memory at its peak"), "{text}");
    assert!(text.contains("41.3 MB and 25.3 MB") && !text.contains("share"), "{text}");
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

/// As six rounds of [`read`], and the runs of the slow variant have so many bytes of the x32 runtime beside those of the program.
fn through_runtime(missed: f64, bytes: u64) -> Laid {
    let mut laid = laid(8);
    laid.read_memory(6, missed, "libc.so.6", "fit");
    let own = Amounts { resident: bytes, ..Amounts::default() };
    for run in laid.memory.iter_mut().filter(|run| run.variant == SLOW) {
        let series = &mut run.series;
        series.parts.push(Part { class: Class::Runtime, name: String::new() });
        let part = series.parts.len() - 1;
        for reading in &mut series.readings {
            reading.tree.amounts = reading.tree.amounts.plus(own);
            reading.parts.push((part, own));
        }
        for statm_sample in &mut series.statm_samples {
            statm_sample.resident += bytes;
        }
    }
    laid.judge_in_earnest();
    laid
}

#[test]
fn the_x32_runtimes_memory_is_in_no_sum_of_the_programs() {
    let laid = through_runtime(1.0, 5_000_000);
    let text = terminal::render(&laid.comparison(), &terminal::Options::default());
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let sum = lines.iter().position(|line| line.contains("in all, resident")).expect("a sum");
    assert_eq!(lines[sum].trim(), "in all, resident   41.3 MB      25.3 MB  38.7 %");
    assert!(lines[sum + 1].contains("x32run itself") && lines[sum + 1].contains("5.00 MB"), "{text}");
    assert!(text.contains("phases of i386/-O2: load 7.30 MB · fit 25.3 MB"), "{text}");
    // The baseline was read, and has none.
    assert!(lines[sum + 1].contains("x32run itself      0 B "), "{text}");
    assert!(markdown::render(&laid.comparison()).contains("| x32run itself | 0 B | 5.00 MB |"));
    let page = html::render(&laid.comparison());
    let row = page.split_once("x32run itself</th>").expect("a row").1;
    let row: String = row.split_once("</tr>").expect("a row's end").0.replace('\u{a0}', " ");
    assert!(row.contains(">0 B<") && !row.contains('–'), "{row}");
    let peak = |text: &str| page.contains(&format!("peak {}", text.replace(" ", "\u{a0}")));
    assert!(peak("25.3 MB") && !peak("30.3 MB"));
    let difference = widthwise_report::memory::difference::terminal(
        &laid.comparison(),
        BASELINE,
        Some(SLOW),
        500,
        &widthwise_report::text::Palette::plain(),
    );
    let difference = difference.expect("two series");
    assert!(difference.contains("41.3 MB → 25.3 MB") && !difference.contains("x32run"), "{difference}");
}

#[test]
fn the_x32_runtimes_memory_brings_no_reading_nearer_to_the_peak() {
    let laid = through_runtime(1.2, 5_000_000);
    let text = terminal::render(&laid.comparison(), &terminal::Options::default());
    let text = text.split("  ").filter(|part| !part.is_empty()).map(str::trim).collect::<Vec<_>>().join("  ");
    assert!(text.contains("share of its own peak  83 % or more  83 % or more"), "{text}");
    let slow = widthwise_report::memory::portraits(&laid.comparison());
    let slow = slow.iter().find(|portrait| portrait.variant == SLOW).expect("a reading");
    assert!((0.83..0.84).contains(&slow.share), "{}", slow.share);
}

#[test]
fn metrics_of_the_series_that_do_not_fit_are_named_or_shown_on_request() {
    let mut laid = laid(8);
    laid.read_memory(6, 1.0, "libc.so.6", "fit");
    let shown = |all_metrics| {
        let options = terminal::Options { width: 80, all_metrics, ..terminal::Options::default() };
        let text = terminal::render(&laid.comparison(), &options);
        text.split("Memory over time").nth(1).expect("its part").to_owned()
    };
    let few = shown(false);
    let named =
        few.split("also measured:").nth(1).expect("the others").split("(--all-metrics)").next().unwrap();
    assert!(named.contains("tree page tables"), "{few}");
    let all = shown(true);
    assert!(!all.contains("also measured"), "{all}");
    let heads: String = all.lines().filter(|line| line.trim_start().starts_with("variant ")).collect();
    for metric in laid.experiment.metrics.iter().filter(|metric| metric.name.starts_with("tree_")) {
        assert!(heads.contains(metric.title) || metric.name == "tree_charged", "{} {all}", metric.title);
    }
}

#[test]
fn the_control_groups_metric_has_its_reason_and_where_it_is_named_a_column() {
    let mut laid = laid(8);
    laid.read_memory(6, 1.0, "libc.so.6", "fit");
    laid.judge_in_earnest();
    let reason = "no data on tree charged: no control group for memory can be made here";
    let reports = |laid: &Laid| {
        let options = terminal::Options { width: 300, ..terminal::Options::default() };
        let page = html::render(&laid.comparison()).replace('\u{a0}', " ");
        [terminal::render(&laid.comparison(), &options), markdown::render(&laid.comparison()), page]
    };
    let named = |text: &str| text.replace(reason, "").contains("tree charged");
    for text in reports(&laid) {
        assert!(text.contains(reason) && !named(&text), "{text}");
    }
    // As `--metric tree_peak,tree_charged` asks.
    laid.experiment.metrics.retain(|metric| {
        !metric.name.starts_with("tree_") || ["tree_peak", "tree_charged"].contains(&metric.name)
    });
    laid.judge_in_earnest();
    for text in reports(&laid) {
        assert!(text.contains(reason) && named(&text), "{text}");
    }
}

#[test]
fn phases_are_the_same_by_their_names_and_all_of_them_are_listed_or_counted() {
    let mut laid = read("libc.so.6", "fit");
    for run in &mut laid.memory {
        let mark = |at_ns, text: &str| Mark { at_ns, text: text.to_owned() };
        let own: &[(u64, &str)] = match run.variant == SLOW {
            true => &[(1, "load"), (10_000_000, "extra"), (80_000_000, "fit"), (150_000_000, "fit")],
            false => &[(1, "load"), (80_000_000, "fit"), (150_000_000, "fit")],
        };
        run.series.marks = own.iter().map(|(at_ns, text)| mark(*at_ns, text)).collect();
    }
    let table = |laid: &Laid| {
        let page = html::render(&laid.comparison());
        let rest = page.split("aria-label=\"The peak of each phase\"").nth(1).expect("a table");
        rest.split("</section>").next().unwrap().to_owned()
    };
    let text = table(&laid);
    let row = |name: &str, at: usize| {
        let head = format!("<th scope=\"row\">{name}</th>");
        let rest = text.split(&head).nth(at).unwrap_or_else(|| panic!("{name} {at}: {text}"));
        rest.split("</tr>").next().unwrap().to_owned()
    };
    assert!(!row("fit", 1).contains("not there") && !row("fit", 2).contains("not there"), "{text}");
    assert_eq!(row("extra", 1).matches("not there").count(), 1, "{text}");
    for run in &mut laid.memory {
        run.series.marks =
            (0..100).map(|number| Mark { at_ns: number + 1, text: format!("phase {number}") }).collect();
    }
    assert!(table(&laid).contains("40 more phases and their times: in the JSON."));
}

#[test]
fn without_any_series_no_cost_of_reading_is_stated() {
    let mut laid = read("libc.so.6", "fit");
    laid.memory.clear();
    let how = widthwise_report::memory::how(&laid.comparison());
    assert_eq!(how.as_deref(), Some("Memory over time, in 1 round of its own: no run was read."));
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
