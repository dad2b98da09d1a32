use super::*;
use crate::explanation::Explanation;

fn counts(instructions: u64, misses: u64, faults: u64) -> Counts {
    Counts {
        instructions,
        first_level_misses: 2 * misses,
        last_level_misses: misses,
        branch_misses: 0,
        page_faults: faults,
    }
}

fn row(kind: RowKind, module: Module, name: &str, sides: [Counts; 2], spread: Counts) -> Row {
    let place =
        (kind == RowKind::Function).then(|| Place { file: "src/tree.cpp".to_owned(), line: Some(27) });
    Row { kind, module, name: name.to_owned(), place, sides, spread, is_in: [true; 2] }
}

fn time(direction: i64) -> Time<'static> {
    let find = [counts(900, 60, 5), counts(880, 29, 5)];
    let libc = [counts(50, 40, 0), counts(66, 33, 0)];
    let loader = [counts(50, 0, 10), counts(50, 0, 7)];
    Time {
        names: ["x86-64", "x32"],
        rows: vec![
            row(RowKind::Function, Module::Program, "find(int)", find, Counts::default()),
            row(RowKind::Rest, Module::Other("libc".into()), "", libc, counts(0, 7, 0)),
            row(RowKind::Loader, Module::Loader, "", loader, Counts::default()),
        ],
        recordings: [2, 2],
        tools: [Counts::default(), counts(5, 0, 0)],
        caches: [(); 2].map(|()| vec!["I1 32 KiB 8-way".to_owned(), "LL 32 MiB 16-way".to_owned()]),
        through_runtime: [false; 2],
        without_page_faults: None,
        verdict: CpuTime {
            direction,
            says: "x32 takes 5 % less CPU time than x86-64".to_owned(),
            counters: vec!["x32 has 9 % fewer cycles".to_owned()],
        },
        top: 10,
        remarks: Vec::new(),
    }
}

fn plain(time: Time<'_>, width: usize) -> String {
    time.text(width, &Palette::plain())
        .replace('\u{202f}', " ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn the_sentence_names_the_function_with_the_largest_share() {
    let text = plain(time(-1), 200);
    let sentence = "x32 executes 0.4 % fewer instructions than x86-64, 2.0 points of them in find (tree.cpp:27); has 38 % fewer last-level \
                    cache misses, 31 points of them in find (tree.cpp:27); has as many branch mispredictions; has 20 % fewer \
                    page faults, 20 points of them in the loader: start-up and symbols.";
    assert!(text.contains(sentence), "{text}");
    let mut same = time(-1);
    same.rows.clear();
    let text = plain(same, 200);
    assert!(text.contains("x32 executes as many instructions as x86-64; has as many"), "{text}");
    assert!(text.contains("emulated processor"), "{text}");
    assert!(text.contains("The emulated caches: I1 32 KiB 8-way, LL 32 MiB 16-way."), "{text}");
}

#[test]
fn recordings_with_different_emulated_caches_are_named() {
    let mut time = time(-1);
    time.caches[1].pop();
    let text = plain(time, 200);
    assert!(text.contains("those of x32 I1 32 KiB 8-way: cache misses are not compared."), "{text}");
    assert!(!text.contains("fewer last-level cache misses"), "{text}");
}

#[test]
fn counts_are_interpreted_only_where_the_cpu_time_differs() {
    let text = plain(time(-1), 200);
    assert!(
        text.contains("In the same direction: instructions, last-level cache misses and page faults."),
        "{text}"
    );
    assert!(text.contains("Hardware counter: x32 has 9 % fewer cycles."), "{text}");
    assert!(!text.contains("explain nothing"), "{text}");
    let text = plain(time(1), 200);
    assert!(text.contains("None of these counts differs in the direction of the CPU time."), "{text}");
    let text = plain(time(0), 200);
    assert!(text.contains("not known to differ: x32 takes"), "{text}");
    assert!(text.contains("these counts explain nothing of it yet"), "{text}");
    assert!(!text.contains("Hardware counter") && !text.contains("direction"), "{text}");
}

#[test]
fn parts_and_what_is_not_explained_sum_to_each_difference() {
    let explanation = Explanation {
        variant: "x32",
        baseline: "x86-64",
        sections: vec![Box::new(time(0))],
        remarks: Vec::new(),
        details: None,
    };
    let parts = explanation.parts();
    for rest in explanation.unexplained() {
        let sum: i64 = parts.iter().filter(|part| part.metric == rest.metric).map(|part| part.amount).sum();
        assert_eq!(sum + rest.amount, rest.variant - rest.baseline, "{}", rest.metric);
    }
    // The misses of libc differ by no more than recordings of one variant do.
    let misses = explanation.unexplained().into_iter().find(|rest| rest.metric == "cache_misses");
    assert_eq!(misses.map(|rest| rest.amount), Some(-7));
    assert_eq!(
        parts.iter().filter(|part| part.metric == "instructions").map(|part| part.amount).sum::<i64>(),
        -4
    );
}

#[test]
fn page_faults_that_were_not_recorded_are_missing_and_not_zero() {
    let time = Time { without_page_faults: Some("no perf events".to_owned()), ..time(0) };
    assert!(time.measured().iter().all(|measured| measured.metric != "page_faults"));
    assert_eq!(time.json()["baseline"]["page_faults"], Value::Null);
    assert!(plain(time, 200).contains("Page faults by function are missing: no perf events."));
}

#[test]
fn misses_that_the_x32_runtime_may_have_changed_are_withheld() {
    let with_runtime = |misses| Time {
        through_runtime: [false, true],
        tools: [Counts::default(), counts(5, misses, 0)],
        ..time(0)
    };
    // The programs differ by 38 misses.
    let time = with_runtime(38);
    assert!(time.measured().iter().all(|measured| measured.metric != "cache_misses"));
    assert_eq!(time.json()["rows"][0]["baseline"]["last_level_misses"], Value::Null);
    assert!(plain(time, 200).contains("withheld: the x32 runtime has 38 of its own"));
    // So are branch mispredictions, which differ by 1 here.
    let mut time = with_runtime(0);
    time.rows[0].sides[1].branch_misses += 1;
    time.tools[1].branch_misses = 1;
    assert!(time.measured().iter().all(|measured| measured.metric != "branch_misses"));
    assert_eq!(time.json()["rows"][0]["baseline"]["branch_misses"], Value::Null);
    assert!(plain(time, 200).contains("Branch mispredictions are withheld: the x32 runtime has 1 of its own"));
    // A row has a part only if it differs by more than that.
    let parts = with_runtime(20).parts();
    let misses: Vec<(&str, i64, Certainty)> = parts
        .iter()
        .filter(|part| part.metric == "cache_misses")
        .map(|part| (part.cause.as_str(), part.amount, part.certainty))
        .collect();
    assert_eq!(misses, [("find (tree.cpp:27)", -31, Certainty::Medium)]);
}
