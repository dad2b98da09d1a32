//! The HTML file: self-contained, complete, and safe against hostile names.

use crate::campaign::{hostile, laid, HOSTILE_REASON, SLOW, UNSUPPORTED, UNSUPPORTED_REASON};
use widthwise_report::format;
use widthwise_report::html::render;

/// The tags and the unescaped text between them; enough of a parser for maud's output.
fn tags(html: &str) -> Vec<String> {
    let outside_style = match (html.find("<style>"), html.find("</style>")) {
        (Some(from), Some(to)) => format!("{}{}", &html[..from], &html[to..]),
        _ => html.to_owned(),
    };
    let mut tags = Vec::new();
    let mut rest = outside_style.as_str();
    while let Some(from) = rest.find('<') {
        // maud escapes `<` and `>` in attribute values too, so the next `>` ends the tag.
        let Some(to) = rest[from..].find('>') else { break };
        tags.push(rest[from + 1..from + to].to_owned());
        rest = &rest[from + to + 1..];
    }
    tags
}

#[test]
fn names_with_markup_stay_text() {
    let html = render(&hostile().comparison());
    for tag in tags(&html) {
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default();
        let written_by_us = !["script", "img", "b", "i", "u", "iframe"].contains(&name);
        assert!(written_by_us, "a foreign tag came through: <{tag}>");
        let attributes: String = tag.split('"').step_by(2).collect();
        assert!(!attributes.contains(" on"), "an event handler came through: <{tag}>");
    }
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "the name itself is readable");
    assert!(!html.contains("<h1>x</h1>"));
}

#[test]
fn no_control_character_and_no_direction_override_is_in_the_file() {
    let html = render(&hostile().comparison());
    let raw: Vec<char> = html.chars().filter(|c| c.is_control() && *c != '\n').collect();
    assert!(raw.is_empty(), "{raw:?}");
    assert!(!html.contains('\u{202e}'));
}

#[test]
fn the_file_loads_nothing_and_runs_nothing() {
    let html = render(&laid(12).comparison());
    assert!(html.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'"));
    for forbidden in
        ["<script", "<link", "<iframe", "<img", " src=", "@import", "url(", "http://", "https://"]
    {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn every_tag_that_is_opened_is_closed_in_order() {
    const VOID: [&str; 3] = ["meta", "!DOCTYPE", "br"];
    for laid in [laid(12), hostile()] {
        let mut open: Vec<String> = Vec::new();
        for tag in tags(&render(&laid.comparison())) {
            let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default().to_owned();
            if VOID.contains(&name.as_str()) {
                continue;
            }
            if tag.starts_with('/') {
                // The style sheet was skipped up to its end tag.
                if name != "style" {
                    assert_eq!(open.pop().as_deref(), Some(name.as_str()));
                }
            } else {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}

#[test]
fn numbers_in_drawings_are_numbers() {
    for rounds in [0, 1, 2, 12] {
        let mut laid = laid(rounds);
        for run in laid.runs.iter_mut().filter(|run| run.round % 3 == 0) {
            for (name, value) in [("cpu", f64::NAN), ("wall", f64::INFINITY), ("page_faults", 0.0)] {
                run.sample.entry(name).and_modify(|reading| reading.value = value);
            }
        }
        let html = render(&laid.comparison());
        let drawings: String =
            html.split("<svg").skip(1).filter_map(|rest| rest.split("</svg>").next()).collect();
        assert!(!drawings.is_empty() || rounds == 0);
        for word in ["NaN", "inf"] {
            assert!(!drawings.contains(word), "{word} with {rounds} rounds");
        }
    }
}

#[test]
fn every_timed_sample_is_a_dot() {
    let laid = laid(30);
    let html = render(&laid.comparison());
    let strip = html.split("class=\"plot strip\"").nth(1).and_then(|rest| rest.split("</svg>").next());
    let strip = strip.expect("the first strip is there");
    let paths = |class: &str| {
        let path = strip.split(&format!("class=\"{class}\" d=\"")).nth(1);
        path.and_then(|rest| rest.split('"').next()).map_or(0, |path| path.matches('M').count())
    };
    assert_eq!(paths("dots") + paths("edge"), 30);
}

#[test]
fn a_thousand_rounds_are_downsampled_and_make_a_small_file() {
    let html = render(&laid(1000).comparison());
    assert!(html.contains("At most 400 evenly spaced dots a variant are drawn"));
    let all = format::counted(1000, "run");
    assert!(html.contains(&all), "counts are of all runs, not of the dots");
    let megabytes = html.len() as f64 / 1e6;
    assert!(megabytes < 3.0, "{megabytes} MB");
}

#[test]
fn a_variant_that_could_not_start_is_in_every_table_and_chart_with_its_reason() {
    let html = render(&laid(12).comparison());
    // The text between backticks is code.
    let (before, rest) = UNSUPPORTED_REASON.split_once('`').expect("a command in it");
    let reason = format!("{before}<code>{}", rest.replacen('`', "</code>", 1)).replace('"', "&quot;");
    // The verdict tables, the forests, and the charts of the runs.
    assert!(html.matches(&reason).count() >= 10, "{}", html.matches(&reason).count());
    assert!(html.contains(&format!("<span class=\"variant\">{UNSUPPORTED}</span>")));
    let hostile = render(&hostile().comparison());
    let shown = HOSTILE_REASON.replace('\u{1b}', "\\x1b").replace('\u{9b}', "\\x9b");
    assert!(hostile.contains(&shown.replace('<', "&lt;").replace('>', "&gt;")));
}

#[test]
fn drawings_have_descriptions_with_their_numbers() {
    let html = render(&laid(12).comparison());
    let drawings: Vec<&str> = html.split("<svg").skip(1).collect();
    let reported = drawings.iter().filter(|svg| svg.starts_with(" class=\"plot")).all(|svg| {
        let head = svg.split('>').next().unwrap_or_default();
        head.contains("role=\"img\"") && svg.contains("><title>")
    });
    assert!(reported);
    assert!(html.contains(&format!("<title>{SLOW}: +3")));
}

/// The rows of the first picture of differences.
fn forest(html: &str) -> Vec<&str> {
    let forests =
        html.split("<figure class=\"forest\">").nth(1).and_then(|rest| rest.split("</figure>").next());
    forests.unwrap_or_default().split("<div class=\"row\">").collect()
}

#[test]
fn a_withheld_verdict_has_no_interval_drawn() {
    let html = render(&laid(12).comparison());
    let rows = forest(&html);
    let row = rows.iter().find(|row| row.contains("fast-math")).expect("its row is kept");
    assert!(!row.contains("<svg") && row.contains("withheld"), "{row}");
}

#[test]
fn the_control_of_a_forest_has_its_figures_once() {
    let html = render(&laid(12).comparison());
    let rows = forest(&html);
    let own = rows.iter().find(|row| row.contains("A/A</span> <span class=\"quiet\">"));
    let figures =
        own.and_then(|row| row.split("class=\"quiet\">").nth(1)).unwrap_or_else(|| panic!("{rows:?}"));
    assert!(figures.contains('…') || figures.contains('±'), "{figures}");
}
