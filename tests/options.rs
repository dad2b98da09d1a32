//! Rules of all options, from the command line. Tests beside the parser check each option
//! (`crates/widthwise/src/options.rs`).

use crate::laboratory::Laboratory;

fn with_work() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("work.c");
    lab
}

#[test]
fn a_list_may_be_given_at_once_and_in_parts() {
    let lab = with_work();
    let names = |words: &str| -> Vec<String> {
        let report = lab.compare_json(&format!("work.c --rounds 1 --warmup 0 {words} -- 1"));
        let all = report["variants"].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("--abi x86-64 --abi i386"), names("--abi x86-64,i386"));
    assert_eq!(
        names("--abi x86-64 --thp system --allocator glibc --thp never --metric cpu --metric wall"),
        names("--abi x86-64 --thp=system,never --allocator glibc --metric cpu,wall")
    );
    lab.compare("work.c --abi x86-64 --abi i386,x86-64").refuses(2, &["--abi", "\"x86-64\" is named twice"]);
    lab.compare("work.c --rounds 1 --rounds 2").refuses(2, &["--rounds"]);
}

#[test]
fn an_optional_value_without_an_equals_sign_is_refused_with_a_correction() {
    let lab = with_work();
    for (words, hint) in [
        ("compare work.c --json out.json", "the value of --json follows an equals sign: --json=out.json"),
        ("compare --json out.json", "--json=out.json"),
        ("compare work.c --memory 6", "--memory=6"),
        ("compare work.c --heap 3 -- 1", "--heap=3"),
        ("scale work.c --json out.json", "--json=out.json"),
        ("explain --json out.json", "--json=out.json"),
        ("report --csv out.csv", "--csv=out.csv"),
        ("report . --json out.json", "--json=out.json"),
        ("doctor --noise 5s", "--noise=5s"),
        ("doctor --json out.json", "--json=out.json"),
    ] {
        let output = lab.widthwise(words);
        assert_eq!(output.status, Some(2), "{words}: {output:?}");
        assert!(output.stderr.contains(hint), "{words}: {output:?}");
    }
    assert!(!lab.path(".widthwise").exists(), "something was measured");
}

#[test]
fn the_series_is_named_as_a_format_of_report_and_no_option_is_a_value() {
    let lab = with_work();
    for (words, hint) in [
        ("compare work.c --series", "`widthwise report --series=FILE` writes this format"),
        ("scale work.c --cpus 0", "unexpected argument '--cpus'"),
        ("scale work.c --processes -1", "invalid value '-1' for '--processes <N,…>'"),
        ("compare work.c --rounds -1", "invalid value '-1' for '--rounds <N>'"),
        ("scale work.c --concurrent", "unexpected argument '--concurrent'"),
        ("compare work.c --alocator glibc", "a similar argument exists: '--allocator'"),
    ] {
        let output = lab.widthwise(words);
        output.refuses(2, &[hint]);
        assert!(!output.stderr.contains("as a value"), "{words}: {output:?}");
    }
    assert!(lab.widthwise("exec --stast ./work").stderr.contains("use '-- --stast'"));
}

#[test]
fn a_campaign_writes_the_formats_that_report_writes_of_it() {
    let lab = with_work();
    let all = "--html=out.html --markdown=out.md --json=out.json --csv=out.csv";
    let formats = ["html", "markdown", "json", "csv"];
    for words in ["compare work.c --cpus any --abi x86-64", "scale work.c --abi x86-64 --processes 1"] {
        let measured = lab.widthwise(&format!("{words} --rounds 1 --warmup 0 {all} -- 1"));
        assert_eq!(measured.status, Some(0), "{measured:?}");
        assert!(measured.stdout.contains("report.html"), "the terminal's text is missing: {measured:?}");
        for (format, file) in formats.iter().zip(["out.html", "out.md", "out.json", "out.csv"]) {
            let written = lab.read(file);
            assert!(!written.is_empty());
            assert_eq!(lab.widthwise(&format!("report --{format}")).stdout, written, "{words} --{format}");
        }
    }
    let two = lab.widthwise("compare work.c --csv --markdown=-");
    two.refuses(2, &["--markdown and --csv both write to standard output"]);
}

#[test]
fn json_goes_to_a_file_beside_the_report_or_to_standard_output() {
    let lab = with_work();
    let words = "compare work.c --cpus any --abi x86-64 --rounds 1 --warmup 0";
    let output = lab.widthwise(&format!("{words} --json=out.json -- 1"));
    assert!(output.stdout.contains("baseline") && lab.read("out.json").starts_with('{'), "{output:?}");
    assert_eq!(lab.widthwise(&format!("{words} --json -- 1")).json()["schema"], 3);
}

#[test]
fn the_help_of_scale_has_no_option_that_it_refuses() {
    let lab = Laboratory::new();
    let [compare, scale] = ["compare", "scale"].map(|verb| lab.widthwise(&[verb, "--help"]).stdout);
    for option in ["--kernel", "--kvm", "--instruction-classes", "--cache-model"] {
        let has = |help: &str| help.lines().any(|line| line.trim_start().starts_with(option));
        assert!(has(&compare) && !has(&scale), "{option}");
    }
}

#[test]
fn options_that_would_have_no_effect_are_refused() {
    let lab = with_work();
    for (words, flags) in [
        ("explain --preload --heap", "--preload"),
        ("explain --link-options x32 --top 3", "--link-options"),
        ("exec --register --trace", "--register"),
        ("exec --unregister --stats", "--unregister"),
    ] {
        lab.widthwise(words).refuses(2, &[flags, "cannot be used with"]);
    }
    lab.widthwise("report --html=out --csv=out").refuses(2, &["--html and --csv both write to one file"]);
    lab.compare("work.c --stdin .").refuses(2, &["--stdin: ", "is a folder"]);
    let passes = "work.c --abi x86-64 --kernel debian:amd64,host --functions";
    lab.compare(passes)
        .refuses(2, &["--functions: the count by function needs a baseline", "--baseline x86-64/host"]);
}
