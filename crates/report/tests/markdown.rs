//! The Markdown: tables stay tables, and names stay text.

use crate::campaign::{hostile, laid, HOSTILE_REASON, UNSUPPORTED, UNSUPPORTED_REASON};
use widthwise_experiment::metric;
use widthwise_experiment::units::Unit;
use widthwise_report::markdown::render;

/// The cells of a table row, split at unescaped bars.
fn cells(row: &str) -> usize {
    let bars = row.char_indices().filter(|(i, c)| *c == '|' && (*i == 0 || !row[..*i].ends_with('\\')));
    bars.count().saturating_sub(1)
}

#[test]
fn every_row_of_a_table_has_as_many_cells_as_its_heading() {
    for laid in [laid(12), hostile()] {
        let text = render(&laid.comparison());
        let mut head = None;
        for line in text.lines() {
            if !line.starts_with("| ") {
                head = None;
                continue;
            }
            assert_eq!(cells(line), *head.get_or_insert(cells(line)), "{line}");
        }
    }
}

#[test]
fn markup_in_names_is_escaped_and_a_diff_cannot_leave_its_fence() {
    let text = render(&hostile().comparison());
    assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    // Outside the fence, where everything is code, the only tags are our own fold's.
    let (mut fence, mut outside) = (None, String::new());
    for line in text.lines() {
        let ticks = line.chars().take_while(|c| *c == '`').count();
        match fence {
            Some(length) if ticks >= length && line.len() == ticks => fence = None,
            Some(_) => {}
            None if ticks >= 3 => fence = Some(ticks),
            None => outside.push_str(&format!("{line}\n")),
        }
    }
    assert_eq!(fence, None, "every fence is closed");
    for tag in outside.split('<').skip(1) {
        let ours = ["details>", "summary>", "/summary>", "/details>"].iter().any(|own| tag.starts_with(own));
        let code = tag.starts_with("b>'"); // inside the code span of the command
        assert!(ours || code, "<{tag}");
    }
    assert!(!outside.contains("**bold**"));
}

#[test]
fn no_control_character_is_written() {
    let text = render(&hostile().comparison());
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
}

#[test]
fn a_variant_that_could_not_start_is_listed_with_its_reason() {
    let text = render(&laid(12).comparison());
    let reason = UNSUPPORTED_REASON.replace('`', "\\`").replace('_', "\\_");
    assert!(text.contains(&format!("**{UNSUPPORTED}** was not measured: {reason}")), "{text}");
    assert!(text.lines().any(|line| line.starts_with(&format!("| {UNSUPPORTED} | no data |"))));
    let hostile = render(&hostile().comparison());
    assert!(hostile.contains("no x32 \\\\x1b"), "{HOSTILE_REASON:?} is shown, harmless");
}

#[test]
fn names_of_metrics_are_escaped_in_the_heads_of_tables() {
    let mut laid = laid(12);
    laid.experiment.metrics.push(metric::reported("p99|<u>us", Unit::Count, "p99"));
    laid.judge();
    let text = render(&laid.comparison());
    assert!(text.contains("p99\\|&lt;u&gt;us") && !text.contains("<u>"), "{text}");
}
