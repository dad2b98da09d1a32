//! `doctor`: its findings are true, and what is missing has a fix.

use std::path::Path;

use crate::laboratory;
use crate::laboratory::fixture::Fixture;
use crate::laboratory::{output_of, signal, until, Laboratory};
use serde_json::Value;

/// Its findings here; computed once, since it takes some seconds. With `--json=FILE` nothing else is written.
fn diagnosis(lab: &Laboratory) -> Value {
    let text = std::fs::read_to_string(diagnosed(lab).join("doctor.json")).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The folder with its findings in all formats.
fn diagnosed(lab: &Laboratory) -> &'static Path {
    static DIAGNOSIS: Fixture = Fixture::new();
    DIAGNOSIS.folder(lab, |lab| {
        let formats = "--json=doctor.json --csv=doctor.csv --markdown=doctor.md --html=doctor.html";
        let output = lab.widthwise(&format!("doctor {formats}"));
        assert_eq!((output.status, output.stdout.as_str()), (Some(0), ""), "{output:?}");
    })
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_row_of_each_format_is_a_line_of_the_text() {
    let folder = diagnosed(&Laboratory::new());
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (table, markdown, page) = (read("doctor.csv"), read("doctor.md"), read("doctor.html"));
    let mut table = csv::Reader::from_reader(table.as_bytes());
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    for subject in ["machine", "compilers", "x86-64", "x32", "i386", "counters", "topology", "noise"] {
        let row = rows.iter().find(|row| &row[0] == subject).unwrap_or_else(|| panic!("{subject}: {rows:?}"));
        let line = format!("| {subject} | {} | {} |", &row[1], &row[2]);
        assert!(markdown.contains(&line), "{line}: {markdown}");
        assert!(page.contains(&format!("<th scope=\"row\">{subject}</th><td>{}</td>", &row[1])), "{subject}");
    }
    assert_eq!(markdown.lines().count(), rows.len() + 2);
}

#[test]
fn its_findings_on_each_abi_agree_with_compare() {
    let lab = Laboratory::new();
    let diagnosis = diagnosis(&lab);
    assert_eq!(diagnosis["schema"], 1);
    lab.program("tells.c");
    let report = lab.compare_json("tells.c --rounds 6 -- arguments");
    for abi in ["x86-64", "x32", "i386"] {
        let abilities: Vec<&Value> = diagnosis["abilities"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|ability| ability["abi"] == abi)
            .collect();
        assert!(!abilities.is_empty(), "{abi} is not spoken of");
        let is_default = |ability: &&&Value| {
            ability["compiler"].as_str().unwrap().starts_with("gcc")
                && ability["language"].as_str().unwrap().to_lowercase() == "c"
        };
        let gcc = abilities.iter().find(is_default).unwrap_or_else(|| panic!("{abilities:?}"));
        let starts = gcc["runs"].get("yes").is_some();
        let measured = laboratory::variant(&report, abi)["status"] == "ready";
        assert_eq!(starts, measured, "{abi}: {gcc}");
        if !starts {
            let reason = gcc["runs"]["no"]["reason"].as_str().unwrap();
            assert!(reason.contains(abi) || reason.contains("kernel"), "{reason}");
        }
    }
    let own = &diagnosis["abilities"]
        .as_array()
        .unwrap()
        .iter()
        .find(|ability| ability["abi"] == "x86-64")
        .unwrap();
    assert!(own["builds"].get("yes").is_some() && own["runs"].get("yes").is_some(), "{own}");
}

#[test]
fn valgrind_emulates_counters_for_x32_too() {
    let valgrind = &diagnosis(&Laboratory::new())["valgrind"]["abis"];
    let x32 = valgrind
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["abi"] == "x32")
        .unwrap_or_else(|| panic!("{valgrind}"));
    assert!(x32["runs"].get("yes").is_some(), "{x32}");
}

#[test]
fn everything_missing_has_a_reason_and_a_command_or_null() {
    for missing in diagnosis(&Laboratory::new())["missing"].as_array().unwrap() {
        assert!(!missing["what"].as_str().unwrap().is_empty(), "{missing}");
        assert!(!missing["reason"].as_str().unwrap().is_empty(), "{missing}");
        // Null means that nothing on this machine helps.
        assert!(missing["fix"].is_null() || !missing["fix"].as_str().unwrap().is_empty(), "{missing}");
    }
}

#[test]
fn everything_denied_has_a_reason() {
    fn walk(place: &str, value: &Value) {
        if let Some(no) = value.get("no") {
            assert!(no["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{place}: {value}");
        }
        let inner: Vec<(String, &Value)> = match value {
            Value::Array(values) => {
                values.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect()
            }
            Value::Object(values) => values.iter().map(|(key, value)| (key.clone(), value)).collect(),
            _ => Vec::new(),
        };
        for (key, value) in inner {
            walk(&format!("{place}.{key}"), value);
        }
    }
    walk("", &diagnosis(&Laboratory::new()));
}

#[test]
fn the_text_has_its_lines_and_no_colours_without_a_terminal_and_no_file_is_left() {
    let lab = Laboratory::new();
    let output = output_of(lab.command("doctor").env("TMPDIR", lab.path("")));
    assert_eq!(std::fs::read_dir(lab.path("")).unwrap().count(), 0);
    assert_eq!((output.status, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    for word in [
        "machine",
        "compilers",
        "x86-64",
        "x32",
        "i386",
        "allocators",
        "counters",
        "topology",
        "settings",
        "noise",
    ] {
        let line = output.stdout.lines().find(|line| line.trim_start().starts_with(word));
        assert!(line.is_some(), "{word} has no line in {}", output.stdout);
    }
    let own = output.stdout.lines().find(|line| line.trim_start().starts_with("x86-64")).unwrap();
    assert!(own.contains("builds, runs"), "{own}");
    assert!(!output.stdout.contains('\u{1b}'), "{output:?}");
}

#[test]
fn without_a_compiler_it_names_the_packages_and_without_time_there_is_no_floor() {
    let lab = Laboratory::new();
    std::fs::create_dir(lab.path("empty")).unwrap();
    let refused = lab.widthwise("doctor --noise=0s");
    assert_eq!(refused.status, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("'--noise[=<TIME>]': it must be longer than nothing"), "{refused:?}");
    let output = output_of(lab.command("doctor --json --noise=1ms").env("PATH", lab.path("empty")));
    assert_eq!(output.status, Some(0), "{output:?}");
    assert_eq!(output.json()["noise_floor"], Value::Null);
    assert_eq!(
        output.json()["no_noise_floor"],
        "1 round is too few for an interval: 6 are needed; --noise=TIME takes longer"
    );
    let missing = output.json()["missing"].to_string();
    assert!(missing.contains("apt-get install") && missing.contains("gcc"), "{missing}");
    assert_eq!(output.json()["machine"]["compilers"], serde_json::json!({}));
}

#[test]
fn ctrl_c_ends_what_it_has_started_and_leaves_no_file() {
    let lab = Laboratory::new();
    lab.script(
        "bin/valgrind",
        &format!(
            "#!/bin/sh\necho $$ >{0}.new && mv {0}.new {0}\nexec sleep 600\n",
            lab.path("begun").display()
        ),
    );
    std::fs::create_dir(lab.path("temporary")).unwrap();
    let path = format!("{}:{}", lab.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = lab.command("doctor");
    let doctor = command.env("PATH", path).env("TMPDIR", lab.path("temporary")).spawn().unwrap();
    until("a tool that runs", || lab.path("begun").exists());
    let tool = lab.read("begun").trim().to_owned();
    signal(&doctor, libc::SIGINT);
    let output = doctor.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(!std::path::Path::new("/proc").join(&tool).exists());
    assert_eq!(std::fs::read_dir(lab.path("temporary")).unwrap().count(), 0);
}
