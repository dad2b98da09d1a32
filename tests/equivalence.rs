//! No difference, inconclusive, and comparisons without a ratio, from the command line.

use crate::laboratory::{unfolded, verdict, Laboratory};
use serde_json::Value;

/// Two programs that reserve 64 MiB, and one that reserves a random amount in each run, for the same task.
fn with_three_programs() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("reserve.c");
    lab.gcc("-O1 -static reserve.c -o reserve");
    for name in ["a", "b"] {
        lab.script(name, "#!/bin/sh\nexec ./reserve 64\n");
    }
    lab.script(
        "unsteady",
        "#!/bin/sh\nread n <count\necho $((n + 1)) >count\nexec ./reserve $((44 + n * 23 % 41))\n",
    );
    lab.write("count", "0\n");
    lab
}

const ALL: &str =
    "--binary a=./a --binary b=./b --binary unsteady=./unsteady --run {binary} --metric peak_virtual \
                   --rounds 12 --seed 1";

#[test]
fn equal_programs_have_no_difference_and_a_varying_one_is_inconclusive_in_every_format() {
    let lab = with_three_programs();
    let report = lab.compare_json(ALL);
    assert_eq!(report["judging"]["equal_within"], 0.01);
    let equal = verdict(&report, "b", "peak_virtual");
    assert_eq!(equal["verdict"], "no_difference", "{equal}");
    let open = verdict(&report, "unsteady", "peak_virtual");
    assert_eq!(open["verdict"], "inconclusive", "{open}");
    assert!(open["low"].as_f64().unwrap() < 0.99 || open["high"].as_f64().unwrap() > 1.01, "{open}");
    assert!(open["reason"].as_str().unwrap().ends_with("reaches beyond ±1 %"), "{open}");

    let terminal = unfolded(&lab.widthwise("report").stdout);
    let markdown = unfolded(&lab.widthwise("report --markdown").stdout);
    for text in [&terminal, &markdown] {
        assert!(
            text.contains("t is inconclusive whether unsteady uses less or more peak address space"),
            "{text}"
        );
        assert!(text.contains("as much peak address space"), "{text}");
        assert!(text.contains("lies within ±1 % (--equal-within)"), "{text}");
    }
    assert!(terminal.contains("b no difference") && terminal.contains("unsteady inconclusive"), "{terminal}");
    assert!(terminal.contains("a control A/A "), "{terminal}");
    let page = lab.widthwise("report --html=-").stdout.replace('\u{a0}', " ");
    for part in ["class=\"inconclusive\">inconclusive<", "class=\"no_difference\">no difference<", "±1 %"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn the_margin_is_recorded_and_a_report_can_use_another() {
    let lab = with_three_programs();
    let output = |text: &str| -> Value { lab.widthwise(text).json() };
    // With this margin, a variation of a third is equivalent.
    let report = lab.compare_json(format!("{ALL} --equal-within 90%").as_str());
    let word = |report: &Value| verdict(report, "unsteady", "peak_virtual")["verdict"].clone();
    assert_eq!(
        (report["judging"]["equal_within"].as_f64(), word(&report)),
        (Some(0.9), "no_difference".into())
    );
    // The archive has it; a report alone can use another.
    assert_eq!(output("report --json")["judging"]["equal_within"], 0.9);
    let again = output("report --json --equal-within 0.5%");
    assert_eq!(
        (again["judging"]["equal_within"].as_f64(), word(&again)),
        (Some(0.005), "inconclusive".into())
    );
    assert_eq!(
        verdict(&again, "unsteady", "peak_virtual")["low"],
        verdict(&report, "unsteady", "peak_virtual")["low"]
    );
    // In a spec file it is a key of [measure].
    lab.write(
        "widthwise.toml",
        "[measure]\nequal_within = \"2%\"\nrounds = 6\nmetrics = [\"peak_virtual\"]\n\
        [program]\nrun = \"{binary}\"\nbinaries = { a = \"a\", b = \"b\" }\n",
    );
    let report = lab.compare_json("widthwise.toml");
    assert_eq!(report["judging"]["equal_within"], 0.02);
}

#[test]
fn an_invalid_margin_is_refused_with_an_example() {
    let lab = with_three_programs();
    let of = |shown: &str| format!("must be more than 0 % and less than 100 %, not {shown} %");
    for (margin, words) in [
        ("0%", of("0")),
        ("100%", of("100")),
        ("1.5", "1.5 has no \"%\" and would be a fraction, which is less than 1; write \"1.5%\"".to_owned()),
        ("-1%", "\"-1%\" is no percentage; write it like \"1%\" or 0.01".to_owned()),
        ("much", "\"much\" is no percentage; write it like \"1%\" or 0.01".to_owned()),
    ] {
        lab.compare(&["--binary", "a=./a", "--run", "{binary}", "--equal-within", margin])
            .refuses(2, &["--equal-within: ", &words]);
        // A report is refused before its campaign is read.
        lab.widthwise(&["report", "--equal-within", margin]).refuses(2, &["--equal-within: ", &words]);
    }
}

#[test]
fn with_a_baseline_of_zero_the_difference_has_an_interval_and_no_ratio() {
    let lab = Laboratory::new();
    lab.program("major_faults.c");
    lab.gcc("-O1 major_faults.c -o none");
    lab.gcc("-O1 -DLEAST=10 -DMOST=14 major_faults.c -o some");
    // A file system in memory reads nothing from disk: this folder is where the build is.
    let pages = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let pages = pages.path().to_str().unwrap();
    let made = std::process::Command::new(lab.path("none")).args([pages, "make"]).status().unwrap();
    assert!(made.success());
    let report = lab.compare_json(&[
        "--binary",
        "none=./none",
        "--binary",
        "some=./some",
        "--run",
        &format!("{{binary}} {pages}"),
        "--metric",
        "major_faults",
        "--rounds",
        "10",
    ]);
    let found = verdict(&report, "some", "major_faults");
    assert_eq!(
        (&found["verdict"], &found["ratio"], &found["floor"]),
        (&"higher".into(), &Value::Null, &Value::Null),
        "{found}"
    );
    assert_eq!((&found["baseline_mean"], &found["difference_floor"]), (&0.0.into(), &0.0.into()), "{found}");
    let [low, difference, high] = ["low", "difference", "high"].map(|name| found[name].as_f64().unwrap());
    // Each run reads 10 to 14 pages. The interval is as wide as ten rounds make it.
    assert!(0.0 < low && low <= difference && difference <= high, "{found}");
    assert!((10.0..=14.0).contains(&difference), "{found}");
    let control = verdict(&report, "none control", "major_faults");
    assert_eq!(
        (&control["verdict"], &control["difference"]),
        (&"no_difference".into(), &0.0.into()),
        "{control}"
    );

    let page = lab.widthwise("report --html=-").stdout;
    let texts = [
        ("terminal", lab.widthwise("report").stdout),
        ("markdown", lab.widthwise("report --markdown").stdout.replace('\\', "")),
        ("page", page.clone()),
    ];
    for (format, text) in texts {
        let text = unfolded(&text.replace('\u{a0}', " "));
        assert!(text.contains("0 → 1") && text.contains(": +1"), "{format}: {text}");
        assert!(text.contains("more major faults (0 → 1"), "{format}: {text}");
        assert!(!text.contains('×'), "{format}: {text}");
    }
    assert!(page.contains("no ratio, and means of all runs: some run counted 0"), "{page}");
}
