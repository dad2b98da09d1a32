//! What the plugin of QEMU counts beside plain instructions: instructions by class, and misses of modelled caches.

use serde_json::Value;

use crate::kernels::{figures, kernel};
use crate::laboratory::outcomes::{is_lane, skipped};
use crate::laboratory::{names, variant, Laboratory};

/// The instructions of each class in one round of tests/programs/classes.c, but for the loop itself.
const OF_A_ROUND: [(&str, f64); 12] = [
    ("stack", 2.0),
    ("nop", 3.0),
    ("x87", 4.0),
    ("sse_scalar_single", 5.0),
    ("sse_packed_single", 6.0),
    ("sse_scalar_double", 7.0),
    ("sse_packed_double", 8.0),
    ("sse_integer", 9.0),
    ("avx", 10.0),
    ("load_store", 11.0),
    ("integer", 12.0),
    ("branch", 13.0),
];

/// The variant whose name has all of these parts, not the control.
fn named(report: &Value, parts: &[&str]) -> String {
    let is_it = |name: &&str| parts.iter().all(|part| name.split('/').any(|word| word == *part));
    let found = names(report).into_iter().find(is_it);
    found.unwrap_or_else(|| panic!("{parts:?} is not in {:?}", names(report))).to_owned()
}

/// Each class has its number, `more` rounds against `once`.
fn has_its_classes(lab: &Laboratory, once: &str, more: &str, rounds: f64) {
    let archive = lab.archive();
    let value = |variant: &str, metric: &str| {
        let all = figures(&archive, variant, metric);
        assert!(all.len() == 2 && all[0] == all[1], "{variant}: {metric} {all:?}");
        all[0]
    };
    let mut sum = 0.0;
    for (class, expected) in OF_A_ROUND {
        let metric = format!("instructions_user_{class}");
        let each = (value(more, &metric) - value(once, &metric)) / rounds;
        // The compiler's loop: at most two instructions that compare and count, one branch, and two accesses to the stack.
        let most = match class {
            "integer" | "load_store" => 3.0,
            "branch" => 1.0,
            _ => 0.0,
        };
        assert!(
            each > expected - 0.01 && each < expected + most + 0.05,
            "{more}: {class}: {each} for each round"
        );
    }
    for metric in widthwise_experiment::metric::METRICS {
        if metric.name.starts_with("instructions_user_") {
            sum += value(more, metric.name);
        }
    }
    assert_eq!(sum, value(more, "instructions_user"), "{more}: the classes sum to all instructions");
    assert_eq!(value(more, "instructions_user_invalid"), 0.0, "{more}");
}

#[test]
fn each_class_of_instructions_has_the_number_that_the_program_executes() {
    let lab = Laboratory::new();
    lab.program("classes.c");
    let report = lab.compare_json(
        "classes.c --abi x86-64,i386,ppc --instruction-classes --rounds 1 --warmup 0 \
         --set 'env.once.ROUNDS=\"1000\"' --set 'env.more.ROUNDS=\"11000\"' --env once,more",
    );
    let reason = variant(&report, &named(&report, &["ppc", "once"]))["reason"].as_str();
    if let Some(reason) = reason.filter(|reason| !reason.starts_with("not counted")) {
        return skipped(&format!("no cross compiler: {reason}"));
    }
    for abi in ["x86-64", "i386"] {
        has_its_classes(&lab, &named(&report, &[abi, "once"]), &named(&report, &[abi, "more"]), 10_000.0);
    }
    // The loop of another processor's program is empty, and its classes sum, too.
    let archive = lab.archive();
    let ppc = named(&report, &["ppc", "more"]);
    let one = |metric: &str| figures(&archive, &ppc, metric)[0];
    let classes =
        widthwise_experiment::metric::METRICS.iter().filter(|m| m.name.starts_with("instructions_user_"));
    assert_eq!(classes.map(|metric| one(metric.name)).sum::<f64>(), one("instructions_user"));
    assert!(one("instructions_user_branch") > 1000.0 && one("instructions_user_load_store") > 1000.0);
}

#[test]
fn counts_beside_plain_instructions_are_refused_without_an_emulated_machine() {
    let lab = Laboratory::new();
    lab.program("classes.c");
    lab.widthwise("compare classes.c --instruction-classes")
        .refuses(2, &["--instruction-classes", "--kernel"]);
    lab.widthwise("compare classes.c --abi x86-64,ppc --cache-model")
        .refuses(2, &["--cache-model", "--kernel"]);
    lab.widthwise("compare classes.c --kernel debian:amd64 --cache-model=pentium")
        .refuses(2, &["unknown cache model \"pentium\"", "bulldozer"]);
}

/// A walk of N lines of 64 bytes in a cache that is smaller misses N times, in N / 64 pages; in a larger one it does not miss. The
/// same holds for code.
#[test]
fn a_walk_of_so_many_lines_misses_so_often_on_an_emulated_kernel() {
    if !is_lane("kernels") {
        return skipped("twelve boots: `make test-all PARTS=kernels`");
    }
    let Some(kernel) = kernel() else { return skipped("no kernel: packaging/install.sh test fetches one") };
    let lab = Laboratory::new();
    lab.program("walk.c");
    // Of many short walks, since a tick of the kernel's clock among them replaces some hundred lines.
    let sets = [("few", 1, 32768, 1), ("many", 11, 32768, 1), ("small", 1, 256, 0), ("again", 1001, 256, 0)];
    let mut words =
        format!("walk.c --abi x86-64 --kernel {kernel} --cache-model=athlon-64 --instruction-classes");
    for (name, passes, lines, code) in sets {
        words += &format!(
            " --set 'env.{name}.PASSES=\"{passes}\"' --set 'env.{name}.LINES=\"{lines}\"' --set 'env.{name}.CODE=\"{code}\"'"
        );
    }
    let report = lab.compare_json(&format!("{words} --env few,many,small,again"));
    let archive = lab.archive();
    let extra = |metric: &str, few: &str, many: &str, more: f64| {
        let value = |set: &str| {
            let all = figures(&archive, &named(&report, &[set]), metric);
            assert!(all.len() == 2 && all[0] == all[1], "{set}: {metric} in two boots: {all:?}");
            all[0]
        };
        (value(many) - value(few)) / more
    };
    let expected = [
        ("l1d_misses_user", 32768.0),
        ("l1i_misses_user", 32768.0),
        ("ll_misses_user", 65536.0),
        ("dtlb_misses_user", 512.0),
        ("itlb_misses_user", 512.0),
    ];
    for (metric, misses) in expected {
        let each = extra(metric, "few", "many", 10.0);
        // The program's own lines and pages are replaced by the walk, and by the kernel's clock.
        assert!(
            (each - misses).abs() <= (misses / 1000.0).max(8.0),
            "{metric}: {each} for each walk, {misses} expected"
        );
        let none = extra(metric, "small", "again", 1000.0);
        assert!(none.abs() <= 1.0, "{metric}: {none} for each walk of what fits");
    }
}

#[test]
fn counts_of_classes_and_caches_change_no_plain_count() {
    if !is_lane("kernels") {
        return skipped("eight boots: `make test-all PARTS=kernels`");
    }
    let Some(kernel) = kernel() else { return skipped("no kernel: packaging/install.sh test fetches one") };
    let lab = Laboratory::new();
    lab.program("walk.c");
    let words = format!(
        "walk.c --abi x86-64 --kernel {kernel} --set-env PASSES=2 --set-env LINES=1000 --set-env CODE=0"
    );
    let counts = |words: &str| {
        let report = lab.compare_json(words);
        let name = names(&report)[0].to_owned();
        ["instructions_user", "instructions_kernel", "page_faults"]
            .map(|metric| figures(&lab.archive(), &name, metric))
    };
    let plain = counts(&words);
    assert!(plain.iter().all(|all| all.len() == 2), "{plain:?}");
    assert_eq!(counts(&format!("{words} --instruction-classes --cache-model=bulldozer")), plain);
}
