//! Campaigns that hardly began: every format reports it, and none fails.

use std::error::Error;

use crate::campaign::{laid, Laid, BASELINE, SLOW, UNSUPPORTED, UNSUPPORTED_REASON};
use widthwise_experiment::outcome::Ending;
use widthwise_experiment::VariantStatus;
use widthwise_report::terminal::Options;
use widthwise_report::{csv, html, markdown, report_text, terminal, Report};

fn every_format(laid: &Laid) -> Result<Vec<(&'static str, String)>, Box<dyn Error>> {
    let campaign = laid.comparison();
    let mut rows = Vec::new();
    csv::write(&campaign, &mut rows)?;
    let all_metrics = Options { all_metrics: true, width: 60, ..Options::default() };
    Ok(vec![
        ("terminal", terminal::render(&campaign, &Options::default())),
        ("terminal, all metrics", terminal::render(&campaign, &all_metrics)),
        ("html", html::render(&campaign)),
        ("markdown", markdown::render(&campaign)),
        ("json", Report::Comparison(Box::new(campaign.clone())).json()?),
        ("csv", String::from_utf8(rows)?),
    ])
}

/// Text as a reader sees it: without escapes and line ends.
fn flat(text: &str) -> String {
    // The text between backticks is code in a page.
    let plain =
        text.replace(['\\', '"', '`'], "").replace("&quot;", "").replace("<code>", "").replace("</code>", "");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_reason_of_a_variant_that_could_not_start_is_in_every_format() -> Result<(), Box<dyn Error>> {
    for rounds in [0, 1, 12] {
        for (format, text) in every_format(&laid(rounds))? {
            assert!(
                flat(&text).contains(&flat(UNSUPPORTED_REASON)),
                "{format} with {rounds} rounds:\n{text}"
            );
        }
    }
    Ok(())
}

#[test]
fn every_format_shows_the_verdicts() -> Result<(), Box<dyn Error>> {
    for rounds in [0, 1, 5, 12] {
        let mut judged = laid(rounds);
        judged.judge_in_earnest();
        for (format, text) in every_format(&judged)? {
            assert!(
                flat(&text).contains(&flat(UNSUPPORTED_REASON)),
                "{format} with {rounds} rounds:\n{text}"
            );
            if rounds == 12 && format != "csv" {
                // i386 needs 38 % more CPU time and 15 % less memory here, clearly.
                let reported = if format == "json" { "\"verdict\": \"higher\"" } else { "+3" };
                assert!(text.contains(reported), "{format}:\n{text}");
            }
        }
    }
    Ok(())
}

#[test]
fn known_results_come_before_unknown_ones() {
    let mut judged = laid(12);
    judged.judge_in_earnest();
    let output = report_text::answer(&judged.comparison());
    let of = |name: &str| output.iter().position(|sentence| sentence.contains(name));
    // The variant that could not start precedes the slow one in the experiment.
    assert!(of(SLOW) < of(UNSUPPORTED) && of(SLOW).is_some(), "{output:?}");
    let promise = report_text::control(&judged.comparison()).unwrap_or_default();
    assert!(promise.contains("Holm"), "{promise}");
    assert!(
        !output.iter().any(|sentence| sentence.contains("Holm")),
        "the promise is printed once: {output:?}"
    );
}

#[test]
fn a_campaign_without_a_timed_round_is_reported_as_such() -> Result<(), Box<dyn Error>> {
    for (format, text) in every_format(&laid(0))? {
        if !["json", "csv"].contains(&format) {
            assert!(flat(&text).contains("No timed round was completed"), "{format}:\n{text}");
        }
    }
    Ok(())
}

#[test]
fn an_empty_campaign_has_a_report() -> Result<(), Box<dyn Error>> {
    let mut nothing = laid(0);
    nothing.rounds.clear();
    nothing.runs.clear();
    nothing.statuses.clear();
    nothing.differences.clear();
    nothing.warnings.clear();
    nothing.experiment.metrics.clear();
    nothing.experiment.variants.clear();
    nothing.judge();
    for (format, text) in every_format(&nothing)? {
        assert!(!text.is_empty(), "{format}");
        assert!(!text.contains("NaN"), "{format}");
    }
    Ok(())
}

#[test]
fn an_experiment_without_metrics_still_shows_its_variants() -> Result<(), Box<dyn Error>> {
    let mut bare = laid(3);
    bare.experiment.metrics.clear();
    for run in &mut bare.runs {
        run.sample.clear();
    }
    bare.judge();
    for (format, text) in every_format(&bare)? {
        for variant in &bare.experiment.variants {
            assert!(text.contains(&variant.name), "{format} has no {}", variant.name);
        }
    }
    Ok(())
}

#[test]
fn the_control_of_an_unsupported_baseline_has_the_reason() -> Result<(), Box<dyn Error>> {
    let mut headless = laid(3);
    headless.statuses.insert(BASELINE.to_owned(), VariantStatus::Unsupported("it does not link".to_owned()));
    headless.runs.retain(|run| !run.variant.starts_with(BASELINE));
    headless.judge();
    for (format, text) in every_format(&headless)? {
        let reported = flat(&text).matches("it does not link").count();
        // The Markdown lists reasons once for each variant of the experiment.
        let least = if format == "markdown" { 1 } else { 2 };
        assert!(reported >= least, "{format} tells it {reported} times:\n{text}");
    }
    Ok(())
}

#[test]
fn a_campaign_of_failed_runs_shows_their_endings() -> Result<(), Box<dyn Error>> {
    let mut failed = laid(3);
    for run in &mut failed.runs {
        run.ending = Ending::Signal { signal: 11 };
        run.sample.clear();
        run.output_digest = None;
    }
    failed.judge();
    for (format, text) in every_format(&failed)? {
        let reported = match format {
            "json" => text.contains("\"signal\": 11"),
            "csv" => text.contains("signal 11"),
            _ => text.contains("killed by signal 11"),
        };
        assert!(reported, "{format}:\n{text}");
    }
    Ok(())
}

#[test]
fn an_amount_without_one_of_the_baselines_is_shown_itself() -> Result<(), Box<dyn Error>> {
    let mut laid = laid(12);
    let control = laid.experiment.control();
    for run in &mut laid.runs {
        if [BASELINE, &control].contains(&run.variant.as_str()) {
            run.sample.remove("max_rss");
        } else if let Some(reading) = run.sample.get_mut("max_rss") {
            reading.value = 123_000_000.0;
        }
    }
    laid.judge_in_earnest();
    for (format, text) in every_format(&laid)? {
        let is_table = ["terminal", "html", "markdown"].contains(&format);
        assert!(!is_table || flat(&text).contains("123 MB"), "{format}:\n{text}");
    }
    Ok(())
}
