//! What reports on scaling campaigns say of their comparisons.

use serde_json::Value;
use widthwise_experiment::outcome::RoundKind;
use widthwise_experiment::scale::{CpuWait, GroupRun, Memory, Moment, Plan, Purpose};
use widthwise_report::scale::{csv, html, markdown, terminal, Scaling};
use widthwise_report::text::Palette;
use widthwise_report::Report;
use widthwise_verdict::scaling_summary::{summarise, Question};

use crate::campaign::laid;

/// A timed round of one job of a variant.
fn run(variant: &str, round: u32, elapsed_ns: u64) -> GroupRun {
    let member = r#"{"pid":1,"cpu":0,"began_ns":0,"ended_ns":0,"cpu_ns":0,"exact":true,"max_rss":null,"reported":null}"#;
    let text = format!(
        r#"{{"round":{round},"position":0,
            "cell":{{"variant":"{variant}","mode":"jobs","placement":"cores","processes":1}},"purpose":"timed",
            "events":20,"ending":{{"ended":"done"}},"failure":null,"elapsed_ns":{elapsed_ns},"spread_ns":0,
            "cpu_ns":{elapsed_ns},"before_fork":null,"members":[{member}],"counters":{{}},"memory":null,
            "output_digest":null,"remarks":[]}}"#
    );
    serde_json::from_str(&text).unwrap()
}

/// The terminal's text and the JSON of these runs of the variants `a` and `b`.
fn reports(runs: &[GroupRun]) -> (String, Value) {
    with_scaling(runs, |scaling| {
        let text = terminal(&scaling, &Palette::default(), 1000, None);
        (text, serde_json::from_str(&Report::Scaling(Box::new(scaling)).json().unwrap()).unwrap())
    })
}

fn with_scaling<T>(runs: &[GroupRun], shown: impl FnOnce(Scaling) -> T) -> T {
    with_counts(&[1], runs, shown)
}

/// The same, of a campaign with these numbers of jobs.
fn with_counts<T>(counts: &[usize], runs: &[GroupRun], shown: impl FnOnce(Scaling) -> T) -> T {
    let plan: Plan = serde_json::from_value(serde_json::json!({
        "counts": counts, "modes": ["jobs"], "placements": ["cores"], "kinds": "all", "events": 20, "events_each": false,
        "memory_rounds": 0, "sequential": false, "load": null, "jobs_run": null, "event_pattern": null,
        "event_files": null, "event_marks": false, "memory_limit": 0
    }))
    .unwrap();
    let variants = ["a".to_owned(), "b".to_owned()];
    let summary = summarise(
        Question {
            plan: &plan,
            variants: &variants,
            placements: &[("cores".to_owned(), (0..counts.len() as u32).collect())],
            cores: &[],
            confidence: 0.95,
            seed: 1,
            memory: 0,
        },
        runs,
    );
    let laid = laid(1);
    shown(Scaling {
        campaign: laid.comparison().campaign,
        plan: &plan,
        variants: &variants,
        pictures: Vec::new(),
        drawings: Vec::new(),
        has_siblings: false,
        memory: 0,
        runs,
        summary: &summary,
    })
}

/// Eight rounds in which `b` is twice as fast as `a`, and the A/A control has so many.
fn rounds(of_control: u32) -> Vec<GroupRun> {
    let of_round = |round: u32| {
        let noise = |factor: u32| u64::from(round * factor % 7) * 1000;
        let control = (round < of_control).then(|| run("a control", round, 20_000_000 + noise(5)));
        [run("a", round, 20_000_000 + noise(3)), run("b", round, 10_000_000 + noise(4))]
            .into_iter()
            .chain(control)
    };
    (0..8).flat_map(of_round).collect()
}

#[test]
fn without_an_a_a_interval_no_throughput_is_higher() {
    let (text, json) = reports(&rounds(8));
    assert_eq!(json["verdicts"][0]["verdict"], "higher", "{json:#}");
    assert!(text.contains("Detection floor:") && !text.contains("withheld"), "{text}");
    for (of_control, why) in [(2, "too few rounds for an interval"), (0, "nothing was measured")] {
        let (text, json) = reports(&rounds(of_control));
        let verdict = &json["verdicts"][0];
        let reason = format!("there is no floor, because of the A/A pair: {why}");
        assert_eq!((&verdict["verdict"], &verdict["reason"]), (&"withheld".into(), &reason.as_str().into()));
        assert!(text.contains(&format!("(withheld: {reason})")), "{text}");
        assert!(!text.contains("Detection floor:"), "{text}");
    }
}

#[test]
fn an_output_that_changes_withholds_the_verdicts_that_rest_on_it() {
    for (variant, reason, sentence) in [
        (
            "b",
            "the variant's output differs from the baseline's",
            "b's output differs from that of a (1 job)",
        ),
        ("a", "the baseline's output changes from run to run", "a's output changes from run to run (1 job)"),
        (
            "a control",
            "there is no floor, because of the A/A pair: its output differs",
            "a control's output differs from that of a (1 job)",
        ),
    ] {
        let mut runs = rounds(8);
        for run in &mut runs {
            let is_other = run.cell.variant == variant && run.round == 7;
            run.output_digest = Some(if is_other { "another" } else { "one" }.to_owned());
        }
        let (text, json) = reports(&runs);
        let verdict = &json["verdicts"][0];
        assert_eq!((&verdict["verdict"], &verdict["reason"]), (&"withheld".into(), &reason.into()));
        assert!(text.contains(sentence), "{text}");
    }
}

#[test]
fn the_failure_of_a_cell_is_the_reason_of_its_withheld_verdict() {
    let mut runs = rounds(8);
    let last = runs.iter_mut().rfind(|run| run.cell.variant == "b").unwrap();
    last.failure = Some("killed by signal 11".to_owned());
    let verdict = &reports(&runs).1["verdicts"][0];
    assert_eq!(verdict["verdict"], "withheld");
    assert_eq!(verdict["reason"], "with 1, 1 of 8 runs failed: killed by signal 11");
}

/// A reader who keeps the sound rows has those that the report uses.
#[test]
fn the_csv_marks_runs_of_an_interrupted_round() {
    let kinds: Vec<(u32, RoundKind)> =
        laid(1).rounds.iter().map(|round| (round.number, round.kind)).collect();
    let runs: Vec<GroupRun> = kinds.iter().map(|(number, _)| run("a", *number, 20_000_000)).collect();
    let mut bytes = Vec::new();
    with_scaling(&runs, |scaling| csv(&scaling, &mut bytes).unwrap());
    let mut table = ::csv::Reader::from_reader(&bytes[..]);
    let head = table.headers().unwrap().clone();
    let rows: Vec<::csv::StringRecord> = table.records().map(Result::unwrap).collect();
    let field = |row: usize, name: &str| rows[row][head.iter().position(|h| h == name).unwrap()].to_owned();
    assert_eq!(rows.len(), kinds.len());
    for (row, (number, kind)) in kinds.iter().enumerate() {
        let counts = *kind != RoundKind::Interrupted;
        let found = ["round", "kind", "sound"].map(|name| field(row, name));
        assert_eq!(found, [number.to_string(), kind.name().to_owned(), counts.to_string()]);
    }
    assert!(kinds.iter().any(|(_, kind)| *kind == RoundKind::Interrupted));
}

#[test]
fn a_law_that_was_not_fitted_to_one_of_several_tables_has_its_name() {
    let mut runs = rounds(8);
    let sentences = |runs: &[GroupRun]| {
        let text = with_counts(&[1, 2], runs, |scaling| terminal(&scaling, &Palette::default(), 1000, None));
        let lines = text.lines().map(|line| line.trim().to_owned());
        lines.filter(|line| line.contains("was not fitted")).collect::<Vec<_>>()
    };
    // With one number of jobs, neither law of both.
    let found = sentences(&runs);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("Amdahl's law") && found[1].starts_with("The universal"), "{found:?}");
    for round in 0..8 {
        let mut two = run("a", round, 20_000_000 + u64::from(round * 2 % 7) * 1000);
        two.cell.processes = 2;
        two.members.push(two.members[0].clone());
        runs.push(two);
    }
    let found = sentences(&runs);
    assert!(found.contains(&format!("b, jobs, cores: {}", found_of("Amdahl's law", 2, 1))), "{found:?}");
    assert!(
        found.iter().all(|line| line.starts_with("a, jobs, cores: ") || line.starts_with("b, jobs, cores: ")),
        "{found:?}"
    );
}

fn found_of(law: &str, needed: u32, found: u32) -> String {
    format!("{law} was not fitted: {needed} different numbers of processes are needed, and there is {found} (on CPUs of their own).")
}

/// What is withheld, and of which time it is said that it does not change.
#[test]
fn a_time_that_does_not_depend_on_the_events_is_named_with_what_is_withheld() {
    let sentence = |elapsed: bool, cpu: bool| {
        let mut runs = rounds(8);
        for round in 0..8 {
            let all = run("a", round, 20_000_000 + u64::from(round * 3 % 7) * 1000);
            let mut one = all.clone();
            (one.purpose, one.events) = (Purpose::OneEvent, Some(1));
            one.elapsed_ns = if elapsed { all.elapsed_ns } else { 1_000_000 };
            one.cpu_ns = if cpu { all.cpu_ns } else { 1_000_000 };
            runs.push(one);
        }
        let text = reports(&runs).0;
        let found = text.lines().find(|line| line.contains("not depend on the number of events"));
        found.unwrap_or_else(|| panic!("{text}")).trim().to_owned()
    };
    let both = sentence(true, true);
    assert!(both.starts_with("a, jobs, cores: Withheld: elapsed and CPU time do not"), "{both}");
    let elapsed = sentence(true, false);
    assert!(
        elapsed.contains("Events/s and what rests on it are withheld: elapsed time does not"),
        "{elapsed}"
    );
    assert!(!elapsed.contains("CPU"), "{elapsed}");
    let cpu = sentence(false, true);
    assert!(cpu.contains("CPU an event is withheld, and nothing else: CPU time does not"), "{cpu}");
    assert!(cpu.contains("but does not take as long") && !cpu.contains("takes as long"), "{cpu}");
}

/// The runs with one event may have lost their CPUs where the timed ones had them.
#[test]
fn a_withheld_sequential_part_has_its_reason() {
    let mut runs = rounds(8);
    for round in 0..8 {
        let mut short = run("a", round, 2_000_000);
        short.purpose = Purpose::OneEvent;
        short.events = Some(1);
        short.cpu_ns = 1_000_000;
        short.cpu_wait = Some(CpuWait {
            waited_ns: Some(1_000_000),
            longest_ns: Some(1_000_000),
            others_ns: 1_000_000,
            cpus: 1,
            wanting: 1,
            ..CpuWait::default()
        });
        runs.push(short);
    }
    let reason = "with 1, for 50 % of their time the tasks lacked a CPU that other programs had";
    let (text, json) = reports(&runs);
    assert_eq!(json["tables"][0]["rows"][0]["parallel_time"]["reason"], reason);
    assert!(json["tables"][0]["rows"][0]["throughput"]["estimate"].is_f64(), "{json}");
    let sentence = format!(
        "sequential part withheld, and each parallel time with it: in the runs that estimate it, {reason}."
    );
    assert!(text.contains(&sentence), "{text}");
    assert_eq!(text.matches(reason).count(), 1, "{text}");
}

#[test]
fn the_page_says_whether_processes_were_frozen_while_memory_was_read() {
    for (frozen, text) in [
        (true, "together, while they were frozen. The line"),
        (false, "together, read one after the other while some or all continued. The line"),
    ] {
        let mut runs = rounds(8);
        let mut memory = run("a", 8, 20_000_000);
        memory.purpose = Purpose::Memory;
        let moments =
            [1_000, 2_000].map(|at_ns| Moment { at_ns, members: 1, pss: 1_000_000, ..Moment::default() });
        memory.memory = Some(Memory {
            moments: moments.to_vec(),
            frozen,
            highest: Some(0),
            members: Vec::new(),
            system_drift: 0,
            copy_on_write: Vec::new(),
        });
        runs.push(memory);
        let page = with_scaling(&runs, |scaling| html(&scaling));
        assert!(page.contains(text), "{page}");
    }
}

#[test]
fn the_page_has_the_memory_of_the_largest_cell_that_was_read() {
    let mut runs = rounds(8);
    for (processes, failure) in [(1, None), (2, None), (4, Some("killed"))] {
        let mut memory = run("a", 8, 20_000_000);
        memory.purpose = Purpose::Memory;
        memory.cell.processes = processes;
        memory.failure = failure.map(str::to_owned);
        memory.members = vec![memory.members[0].clone(); if processes == 2 { 65 } else { processes }];
        let moments =
            [1_000, 2_000].map(|at_ns| Moment { at_ns, members: 1, pss: 1_000_000, ..Moment::default() });
        memory.memory = Some(Memory { moments: moments.to_vec(), frozen: true, ..Memory::default() });
        runs.push(memory);
    }
    let page = with_scaling(&runs, |scaling| html(&scaling));
    let section =
        page.split("<section id=\"memory\">").nth(1).expect("memory").split("</section>").next().unwrap();
    assert!(section.contains("<h3>a, 2 jobs, cores, round 8</h3>"), "{section}");
    assert_eq!(section.matches("<h3>").count(), 1, "{section}");
    assert!(section.contains("the PSS of each (of the first 64); dots"), "{section}");
}

#[test]
fn memory_is_compared_by_the_process_tree_and_the_x32_runtimes_own_is_stated() {
    let mut runs = rounds(8);
    for (variant, pss, runtime) in [("a", 20_050_000, 0), ("b", 21_300_000, 250_000)] {
        let mut memory = run(variant, 8, 20_000_000);
        memory.purpose = Purpose::Memory;
        let moment =
            Moment { at_ns: 1_000, members: 1, pss, tree: Some(21_000_000), runtime, ..Moment::default() };
        memory.memory =
            Some(Memory { moments: vec![moment], frozen: true, highest: Some(0), ..Memory::default() });
        runs.push(memory);
    }
    let (text, json) = reports(&runs);
    assert_eq!(json["verdicts"][0]["memory_ratio"], 1.0, "{json:#}");
    assert!(text.contains("memory 0.0 %") && text.contains("memory of all"), "{text}");
    let sentence = "b: the memory of all leaves out the x32 runtime's own, at most 250 kB; PSS, USS and AnonPages include it.";
    assert!(text.contains(sentence) && !text.contains("a: the memory"), "{text}");
}

#[test]
fn markup_in_a_reason_is_escaped_in_the_markdown_of_a_scaling_campaign() {
    let mut runs = rounds(8);
    for run in runs.iter_mut().filter(|run| run.cell.variant == "b") {
        run.failure = Some("<script>|*x*\n# head".to_owned());
    }
    let text = with_scaling(&runs, |scaling| markdown(&scaling));
    assert!(text.contains("&lt;script&gt;\\|\\*x\\*"), "{text}");
    assert!(!text.contains("<script>") && !text.contains("\n# head"), "{text}");
}
