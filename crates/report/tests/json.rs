//! The JSON conforms to `docs/schema/report-3.json`.

use std::error::Error;

use crate::campaign::{hostile, laid, repository, DIFFERENT, UNSUPPORTED};
use crate::schema::{complaints, REPORT};
use serde_json::Value;
use widthwise_experiment::outcome::Ending;
use widthwise_report::{Comparison, Report};

/// The JSON of a comparison.
fn render(comparison: &Comparison) -> Result<String, serde_json::Error> {
    Report::Comparison(Box::new(comparison.clone())).json()
}

#[test]
fn every_campaign_conforms_to_the_schema() -> Result<(), Box<dyn Error>> {
    let mut ended = laid(8);
    let endings = [
        Ending::Exit { status: 3 },
        Ending::Signal { signal: 11 },
        Ending::Timeout { limit_ns: 1 },
        Ending::OutputLimit { limit_bytes: 1 },
        Ending::SpawnFailed { reason: "r".to_owned() },
        Ending::HookFailed { reason: "r".to_owned() },
    ];
    for (run, ending) in ended.runs.iter_mut().zip(endings) {
        run.ending = ending;
    }
    let mut judged = laid(12);
    judged.judge_in_earnest();
    let mut read = laid(4);
    read.read_memory(1, 1.2, "libc.so.6", "fit");
    for laid in [laid(12), laid(0), laid(1), hostile(), ended, judged, read] {
        let instance: Value = serde_json::from_str(&render(&laid.comparison())?)?;
        assert_eq!(complaints(REPORT, &instance), Vec::<String>::new());
    }
    Ok(())
}

#[test]
fn the_schema_rejects_missing_and_new_fields_and_a_withheld_verdict_without_reason(
) -> Result<(), Box<dyn Error>> {
    let good: Value = serde_json::from_str(&render(&laid(4).comparison())?)?;
    let withheld = |verdict: &Value| verdict["verdict"] == "withheld";
    let at =
        good["verdicts"].as_array().and_then(|all| all.iter().position(withheld)).ok_or("none withheld")?;
    for (pointer, key) in [
        ("", "machine"),
        ("/verdicts/0", "floor"),
        ("/runs/0", "ending"),
        (&format!("/verdicts/{at}"), "reason"),
    ] {
        let mut bad = good.clone();
        bad.pointer_mut(pointer).and_then(Value::as_object_mut).ok_or("no such object")?.remove(key);
        assert!(!complaints(REPORT, &bad).is_empty(), "{pointer}/{key} may go unnoticed");
    }
    let mut bad = good.clone();
    bad["verdicts"][0]["surprise"] = Value::from(1);
    assert!(!complaints(REPORT, &bad).is_empty());
    Ok(())
}

#[test]
fn the_fields_of_the_design_exist() -> Result<(), Box<dyn Error>> {
    let report: Value = serde_json::from_str(&render(&laid(12).comparison())?)?;
    assert_eq!((&report["schema"], &report["kind"]), (&3.into(), &"comparison".into()));
    assert!(report["machine"].is_object());
    let verdict = &report["verdicts"][0];
    for field in
        ["metric", "unit", "variant", "baseline", "ratio", "low", "high", "confidence", "floor", "verdict"]
    {
        assert!(verdict.get(field).is_some(), "{field}");
    }
    Ok(())
}

#[test]
fn unsupported_variants_and_variants_with_other_output_have_a_reason() -> Result<(), Box<dyn Error>> {
    let report: Value = serde_json::from_str(&render(&laid(12).comparison())?)?;
    let named = |list: &str, key: &str, name: &str| -> Vec<Value> {
        let all = report[list].as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|entry| entry[key] == name).collect()
    };
    for (name, status, word) in
        [(UNSUPPORTED, "unsupported", "no_data"), (DIFFERENT, "output_mismatch", "withheld")]
    {
        let variants = named("variants", "name", name);
        assert_eq!(variants.len(), 1);
        assert_eq!(variants[0]["status"], status);
        assert!(variants[0]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
        let verdicts = named("verdicts", "variant", name);
        assert!(!verdicts.is_empty());
        assert!(verdicts.iter().all(|verdict| verdict["verdict"] == word && verdict["reason"].is_string()));
    }
    Ok(())
}

#[test]
fn every_sample_is_exact() -> Result<(), Box<dyn Error>> {
    let laid = laid(12);
    let report: Value = serde_json::from_str(&render(&laid.comparison())?)?;
    let runs = report["runs"].as_array().ok_or("no runs")?;
    assert_eq!(runs.len(), laid.runs.len());
    for (shown, run) in runs.iter().zip(&laid.runs) {
        for (name, reading) in &run.sample {
            assert_eq!(shown["sample"][name]["value"].as_f64(), Some(reading.value));
        }
    }
    Ok(())
}

#[test]
fn the_page_about_the_json_names_every_field_at_the_top() -> Result<(), Box<dyn Error>> {
    let page = std::fs::read_to_string(repository("docs/json.md"))?;
    let report: Value = serde_json::from_str(&render(&laid(1).comparison())?)?;
    for field in report.as_object().ok_or("not an object")?.keys() {
        assert!(page.contains(&format!("| `{field}")), "{field} is not in docs/json.md");
    }
    Ok(())
}
