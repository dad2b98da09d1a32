//! The heap: as text and JSON, and in a campaign's page with flame graphs and their script.

use serde_json::Value;

use crate::campaign::{heap_side, laid, BASELINE, DIFFERENT, SLOW, UNSUPPORTED};
use widthwise_report::heap::{Explanation, RssSummary, Side};
use widthwise_report::html::flame::{script_source, SCRIPT};
use widthwise_report::html::render;
use widthwise_report::text::Palette;

const PROMISE: &str = "fill(unsigned long)";

fn page(function: &str) -> String {
    let mut laid = laid(8);
    laid.record_heaps(function);
    render(&laid.comparison())
}

#[test]
fn the_baseline_is_drawn_alone_and_every_variant_beside_it() {
    let page = page(PROMISE);
    let section = page.split("<section id=\"heap\">").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(page.contains("<a href=\"#heap\">"));
    assert_eq!(section.matches("<figure class=\"flame\">").count(), 3);
    for title in
        [BASELINE.to_owned(), format!("{SLOW} beside {BASELINE}"), format!("{DIFFERENT} beside {BASELINE}")]
    {
        assert!(section.contains(&format!("<h3>{title}</h3>")), "{title}");
    }
    // 30.1 kB and 20.1 kB, 10 kB less.
    assert!(section.contains("▼ fill −33 %"), "{section}");
    assert!(section.contains(&format!("{UNSUPPORTED}: it left no log")), "{section}");
}

#[test]
fn a_variant_that_differs_by_no_more_than_recordings_do_is_drawn_alone() {
    let mut laid = laid(8);
    laid.record_heaps(PROMISE);
    for one in laid.heap.iter_mut().filter(|one| one.variant == BASELINE) {
        let Ok(heap) = &mut one.heap else { panic!("the baseline was recorded") };
        for (recording, peak_bytes) in heap.side.recordings.iter_mut().zip([10_100, 30_100, 50_100]) {
            recording.peak_bytes = peak_bytes;
        }
    }
    let page = render(&laid.comparison());
    let section = page.split("<section id=\"heap\">").nth(1).unwrap().split("</section>").next().unwrap();
    assert_eq!(section.matches("<figure class=\"flame\">").count(), 3);
    assert!(!section.contains(" beside ") || section.matches(" beside ").count() == 1, "the heading alone");
    assert!(!section.contains("−33 %"), "{section}");
    let row = |variant: &str| {
        let start = format!("<th scope=\"row\">{variant}</th>");
        let rest = section.split(&start).nth(1).unwrap_or_else(|| panic!("no {variant}: {section}"));
        rest.split("</tr>").next().unwrap().to_owned()
    };
    assert!(row(BASELINE).starts_with("<td>30.1 kB</td>"), "{}", row(BASELINE));
    assert!(row(SLOW).starts_with("<td>20.1 kB</td>") && row(SLOW).contains("inconclusive"), "{}", row(SLOW));
}

#[test]
fn a_variant_that_was_recorded_once_is_not_called_smaller() {
    let mut laid = laid(8);
    laid.record_heaps(PROMISE);
    for heap in laid.heap.iter_mut().filter_map(|one| one.heap.as_mut().ok()) {
        heap.side.recordings.truncate(1);
    }
    let page = render(&laid.comparison());
    let words = "withheld: the spread of a variant with one recording is unknown";
    assert!(page.contains(words) && !page.contains("▼ fill −33 %"));
}

#[test]
fn a_page_with_a_flame_graph_allows_only_its_script() {
    let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{1b}[31m\u{202e}";
    for function in [PROMISE, hostile] {
        let page = page(function);
        assert_eq!(page.matches("<script").count(), 1, "only its own");
        assert!(page.contains(&format!("<script>{SCRIPT}</script>")), "complete, as its hash requires");
        let policy = page.split("http-equiv=\"Content-Security-Policy\" content=\"").nth(1).unwrap();
        let policy = policy.split('"').next().unwrap().replace("&#39;", "'");
        let scripts: Vec<&str> = policy.split("; ").filter(|rule| rule.starts_with("script-src")).collect();
        assert_eq!(scripts, [format!("script-src {}", script_source())], "{policy}");
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        for forbidden in
            ["<link", "<iframe", "<img", "@import", "url(", "http://", "https://", "\u{1b}", "\u{202e}"]
        {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }
}

#[test]
fn a_page_without_a_recording_has_no_section_and_no_script() {
    let mut laid = laid(8);
    assert!(!render(&laid.comparison()).contains("id=\"heap\""));
    laid.record_heaps(PROMISE);
    for one in &mut laid.heap {
        one.heap = Err("the logs are gone from here".to_owned());
    }
    let page = render(&laid.comparison());
    assert_eq!(page.matches("the logs are gone from here").count(), 1, "printed once for all");
    assert!(!page.contains("<script") && !page.contains("script-src"));
}

#[test]
fn many_variants_with_large_heaps_make_a_page_of_limited_size() {
    let mut laid = laid(8);
    laid.record_heaps(PROMISE);
    let stack = |n: usize| {
        let calls: Vec<String> = (0..8)
            .map(|depth| format!("space::f_{}<int>(long) (f.cpp:{depth})", (n * 31 + depth * 7) % 97))
            .collect();
        format!("{} 64\n", calls.join(";"))
    };
    let folded: String = (0..20_000).map(stack).collect();
    let column = widthwise_anatomy::heap::Column::PeakBytes;
    let profile = widthwise_anatomy::import::folded::read(folded.as_bytes(), column).unwrap();
    let mut first = laid.heap[0].clone();
    if let Ok(heap) = &mut first.heap {
        heap.profile = profile;
    }
    laid.heap = (0..12)
        .map(|n| {
            let variant = if n == 0 { BASELINE.to_owned() } else { format!("variant {n}") };
            widthwise_report::heap::Recorded { variant, ..first.clone() }
        })
        .collect();
    let page = render(&laid.comparison());
    assert_eq!(page.matches("<figure class=\"flame\">").count(), 4);
    assert!(page.contains("variant 4") && page.contains("widthwise explain --heap A B --html=FILE"));
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
}

/// The heap of two variants whose RSS was read in three recordings each: bytes that were resident, and the allocator's for what was requested.
fn explained(resident: [[u64; 3]; 2], live: [[u64; 3]; 2]) -> (String, Value) {
    let side = |name: &str, resident: [u64; 3], live: [u64; 3]| {
        let mut side = heap_side(name, 5_000_000, String::new());
        for (recording, (resident_bytes, live_bytes)) in
            side.recordings.iter_mut().zip(resident.into_iter().zip(live))
        {
            let (asked_bytes, samples, held) = (live_bytes, 700, 0.93);
            recording.system = Some(RssSummary {
                resident_bytes,
                live_bytes,
                asked_bytes,
                samples,
                held,
                ..RssSummary::default()
            });
        }
        Side { system: RssSummary::mean(&side.recordings), ..side }
    };
    let (a, b) = (side("wide", resident[0], live[0]), side("narrow", resident[1], live[1]));
    let explanation = Explanation {
        program: "arena",
        a: &a,
        b: Some(&b),
        pairs: &[],
        site_peaks: &[],
        types: None,
        max_rss: None,
        wrappers: &[],
        top: 20,
        equal_within: 0.01,
    };
    let text = explanation.terminal(110, &Palette::plain());
    let text = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    (text, serde_json::from_str(&explanation.json().unwrap()).unwrap())
}

#[test]
fn a_mean_of_rss_is_called_lower_in_the_text_if_it_is_in_the_json() {
    let verdict = |json: &Value| {
        let all = json["differences"].as_array().unwrap();
        all.iter().find(|one| one["quantity"] == "mean_resident").unwrap()["verdict"].clone()
    };
    let live = [[5_115_111, 5_238_149, 5_149_519], [2_930_000, 2_860_000, 2_940_000]];
    // RSS differs beyond the recordings' spread. Whether it does by another factor than the heap is within it.
    let (text, json) =
        explained([[4_528_569, 4_585_288, 4_578_822], [2_532_531, 2_518_190, 2_574_765]], live);
    assert_eq!(verdict(&json), "lower", "{json:#}");
    assert!(text.contains("the system gives 44 % less for the heap (4.56 MB → 2.54 MB)"), "{text}");
    assert!(text.contains("do not establish whether both differ by the same factor"), "{text}");
    assert!(!text.contains("do not establish a difference"), "{text}");
    let (text, json) =
        explained([[4_528_569, 3_185_288, 4_978_822], [2_532_531, 4_118_190, 2_074_765]], live);
    assert_eq!(verdict(&json), "inconclusive", "{json:#}");
    assert!(text.contains("these recordings do not establish a difference"), "{text}");
}
