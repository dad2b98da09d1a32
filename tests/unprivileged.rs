//! Without privileges: available metrics are measured, and unavailable ones have a reason and a fix.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use crate::laboratory::outcomes::skipped;
use crate::laboratory::{output_of, variant, verdict, Laboratory};
use serde_json::Value;

/// A campaign of the user `nobody`, in a folder of that user.
fn as_nobody(lab: &Laboratory, arguments: &[&str]) -> Value {
    let arguments =
        [&["compare", "--json", "--cpus", "any", "--abi", "x86-64,i386", "--rounds", "6"], arguments]
            .concat();
    let output = output_of(&mut lab.without_rights(&arguments));
    assert_eq!(output.status, Some(0), "{output:?}");
    output.json()
}

/// The typical reading of a variant, in its metric's unit.
fn typical(report: &Value, name: &str, metric: &str) -> f64 {
    let readings = variant(report, name)["typical"].as_array().unwrap();
    let reading = readings.iter().find(|reading| reading["metric"] == metric);
    reading.unwrap_or_else(|| panic!("no {metric} of {name}: {readings:?}"))["value"].as_f64().unwrap()
}

#[test]
fn times_and_peak_memory_need_no_privileges_and_other_metrics_have_a_reason() {
    let lab = Laboratory::new();
    lab.program("allocate.c");
    let report = as_nobody(&lab, &["--metric", "default,tree_charged", "allocate.c", "--", "0"]);
    // A program that allocates nothing: its peak is its own, not that of the process that started it.
    for name in ["x86-64", "i386"] {
        let peak = typical(&report, name, "max_rss");
        assert!((200e3..4e6).contains(&peak), "{name}: {peak}");
        assert!(typical(&report, name, "cpu") > 0.0);
    }
    let source = &report["runs"][0]["sample"]["max_rss"]["source"];
    assert_eq!(source, "rusage");
    let missing = verdict(&report, "i386", "peak_virtual");
    assert_eq!(missing["verdict"], "no_data", "{missing}");
    assert!(missing["reason"].is_string(), "{missing}");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("CAP_NET_ADMIN") && warnings.contains("--exit-stop"), "{warnings}");

    // No rounds are made for a metric that they cannot give, and every report has its column and the reason.
    let charged = verdict(&report, "i386", "tree_charged");
    assert_eq!(charged["reason"], "no round of memory over time was made", "{charged}");
    assert!(report["memory"].as_array().unwrap().is_empty(), "{report}");
    for format in ["--all-metrics", "--markdown", "--html"] {
        let shown = lab.widthwise(&["report", format]).stdout;
        let shown = shown.replace('\u{a0}', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        for words in
            ["no data on tree charged: no round of memory", "no control group for memory could be made"]
        {
            assert!(shown.contains(words), "{format}: {shown}");
        }
        assert!(shown.matches("tree charged").count() > 1, "{format}: {shown}");
    }
}

#[test]
fn peak_memory_without_privileges_grows_with_the_program() {
    let lab = Laboratory::new();
    lab.program("allocate.c");
    let small = typical(&as_nobody(&lab, &["allocate.c", "--", "0"]), "x86-64", "max_rss");
    let large = typical(&as_nobody(&lab, &["allocate.c", "--", "64"]), "x86-64", "max_rss");
    let grown = (large - small) / f64::from(1 << 20);
    assert!((63.0..65.0).contains(&grown), "64 MiB measured as {grown}");
}

#[test]
fn exit_stop_gives_peak_address_space_without_privileges() {
    let lab = Laboratory::new();
    lab.program("reserve.c");
    let report = as_nobody(&lab, &["--exit-stop", "reserve.c", "--", "512"]);
    let mebibytes = typical(&report, "x86-64", "peak_virtual") / f64::from(1 << 20);
    assert!((512.0..530.0).contains(&mebibytes), "512 MiB measured as {mebibytes}");
    assert_eq!(verdict(&report, "x86-64 control", "peak_virtual")["verdict"], "no_difference");
    assert_eq!(report["runs"][0]["sample"]["peak_virtual"]["source"], "exit-stop");
    assert!(report["warnings"]
        .to_string()
        .contains("page faults, context switches and times are not those of a free run"));
}

/// Whether the kernel gives a process nothing of a file's capabilities (execve(2)).
fn ignores_capabilities(file: &Path) -> bool {
    let path = CString::new(file.as_os_str().as_bytes()).unwrap();
    // SAFETY: zeros are a value of the structure, which the call only fills in; the path outlives it. prctl(2) only reads.
    unsafe {
        let mut system: libc::statvfs = std::mem::zeroed();
        assert_eq!(libc::statvfs(path.as_ptr(), &mut system), 0, "{}", std::io::Error::last_os_error());
        system.f_flag & libc::ST_NOSUID != 0 || libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
    }
}

/// As `doctor` advises for taskstats.
#[test]
fn capabilities_of_the_file_take_nothing_from_a_programs_environment() {
    let lab = Laboratory::new();
    lab.script("tells", "#!/bin/sh\necho \"$LD_LIBRARY_PATH $TMPDIR\"\n");
    let temporary = lab.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = lab.without_rights("compare ./tells --cpus any --rounds 1 --warmup 0");
    let set = Command::new("setcap").arg("cap_net_admin+ep").arg(lab.path("widthwise-of-nobody")).status();
    if !set.is_ok_and(|status| status.success()) {
        return skipped("capabilities cannot be given to a file here");
    }
    if ignores_capabilities(&lab.path("widthwise-of-nobody")) {
        return skipped(
            "the file system of temporary files is mounted nosuid, or this process has no_new_privs",
        );
    }
    let output = output_of(command.env("LD_LIBRARY_PATH", "/nowhere").env("TMPDIR", &temporary));
    if output.stderr.contains("failed to execute") {
        return skipped("this container has no CAP_NET_ADMIN to give");
    }
    assert_eq!(output.status, Some(0), "{output:?}");
    assert_eq!(lab.answer("tells"), format!("/nowhere {}\n", temporary.display()));
}

#[test]
fn an_unprivileged_users_campaign_belongs_to_that_user_and_can_be_resumed() {
    use std::os::unix::fs::MetadataExt;
    let lab = Laboratory::new();
    lab.program("tells.c");
    as_nobody(&lab, &["tells.c", "--", "compiler"]);
    let owner = std::fs::metadata(lab.campaign().join("campaign.sqlite")).unwrap().uid();
    assert_ne!(owner, 0);
    let output = output_of(&mut lab.without_rights("compare --resume .widthwise/latest --rounds 8"));
    assert_eq!(output.status, Some(0), "{output:?}");
}

#[test]
fn without_privileges_the_peak_of_a_tree_has_only_a_lower_bound() {
    let lab = Laboratory::new();
    lab.program("generations.c");
    let peak = |arguments: &[&str]| {
        let report =
            as_nobody(&lab, &[&["--metric", "cpu", "--memory=1", "generations.c", "--"], arguments].concat());
        let runs = report["runs"].as_array().unwrap().clone();
        let run = runs.into_iter().find(|run| !run["sample"]["tree_peak"].is_null()).unwrap();
        run["sample"]["tree_peak"].clone()
    };
    let mebibytes = |peak: &Value| peak["value"].as_f64().unwrap() / f64::from(1 << 20);
    let alone = peak(&["chain", "30", "40", "1"]);
    assert!((40.0..45.0).contains(&mebibytes(&alone)) && alone.get("upper").is_none(), "{alone}");
    let tree = peak(&["third", "30", "5"]);
    assert!((30.0..46.0).contains(&mebibytes(&tree)) && tree["upper"].is_null(), "{tree}");
    assert!(tree.get("upper").is_some(), "nothing says how high it was: {tree}");
}

/// Four children hold 32 MiB each at the same time. Of the peak, the kernel tells nobody more than that of one.
#[test]
fn without_privileges_the_peak_of_a_tree_is_not_below_its_mean() {
    let lab = Laboratory::new();
    lab.program("staggered.c");
    let words = "--metric cpu --memory=1 staggered.c -- 4 32 600 0 /dev/null together";
    let report = as_nobody(&lab, &words.split(' ').collect::<Vec<_>>());
    let runs = report["runs"].as_array().unwrap().iter().map(|run| &run["sample"]);
    let runs: Vec<&Value> = runs.filter(|sample| !sample["tree_peak"].is_null()).collect();
    assert!(!runs.is_empty(), "{report}");
    for sample in runs {
        let low = |metric: &str| sample[metric]["value"].as_f64().unwrap() / f64::from(1 << 20);
        assert!(low("tree_peak") >= low("tree_mean") && low("tree_peak") > 40.0, "{sample}");
    }
}
