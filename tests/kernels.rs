//! Other kernels and other processors, from the command line: real boots of Debian's kernel, and real programs under QEMU.

use crate::laboratory::outcomes::{is_lane, skipped};
use crate::laboratory::{names, repository, unfolded, variant, verdict, Laboratory};
use rusqlite::Connection;

/// Debian's kernel, as `packaging/install.sh test` fetches it.
pub fn kernel() -> Option<String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), Into::into);
    let files = std::fs::read_dir(target.join("x32-kernel/boot")).into_iter().flatten().flatten();
    files.map(|entry| entry.path().display().to_string()).filter(|path| path.contains("vmlinuz-")).max()
}

/// The figures of a variant in the rounds on emulated machines, in their order.
pub fn figures(archive: &Connection, variant: &str, metric: &str) -> Vec<f64> {
    let question =
        "SELECT value FROM samples WHERE variant = ?1 AND metric = ?2 AND kind = 'emulated' ORDER BY round";
    let mut statement = archive.prepare(question).unwrap();
    statement.query_map([variant, metric], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Calls of getpid: 10 000 and 20 000, in the environment sets `once` and `dual`. It prints the last byte of a file that is there or not.
const CALLS: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
    int main(void) {\n  FILE *file = fopen(\"inputs/large\", \"rb\");\n  \
    if (file != NULL && fseek(file, -1, SEEK_END) == 0) putchar(fgetc(file));\n  long n = atol(getenv(\"CALLS\"));\n  for (long i = 0; i < n; i++) syscall(SYS_getpid);\n\
    printf(\"done\\n\");\n  return 0;\n}\n";

/// Compares programs that make so many calls on Debian's kernel: the figures of each, and of the control. Instructions are
/// counted by class, and the misses of caches; the plain counts with these are those without them (machine_counters.rs).
fn on_kernel(lab: &Laboratory, kernel: &str, sets: &[(&str, u32)]) -> (serde_json::Value, Vec<String>) {
    lab.write("calls.c", CALLS);
    // Larger than what travels in the initramfs.
    std::fs::create_dir(lab.path("inputs")).unwrap();
    let large = std::fs::File::create(lab.path("inputs/large")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&large, b"x", 17 << 20).unwrap();
    let mut arguments =
        vec!["calls.c".to_owned(), "--abi".into(), "x86-64".into(), "--kernel".into(), kernel.into()];
    arguments.extend(["--input".into(), "inputs".into()]);
    for (name, calls) in sets {
        arguments.extend(["--set".into(), format!("env.{name}.CALLS = \"{calls}\"")]);
    }
    let all: Vec<&str> = sets.iter().map(|(name, _)| *name).collect();
    arguments.extend(["--env".into(), all.join(",")]);
    arguments.extend(["--instruction-classes".into(), "--cache-model=sandy-bridge".into()]);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let report = lab.compare_json(&words);
    let named = |part: &str, is_control: bool| {
        let mut all = names(&report).into_iter();
        all.find(|name| name.contains(part) && name.ends_with("control") == is_control).unwrap().to_owned()
    };
    let mut found: Vec<String> = sets.iter().map(|(name, _)| named(name, false)).collect();
    found.push(named(sets[0].0, true));
    (report, found)
}

/// By class the counts sum to all, and caches miss in the program and in the kernel.
fn classes_sum_and_caches_miss(archive: &Connection, variant: &str) {
    for side in ["user", "kernel"] {
        let of_class = |metric: &&widthwise_experiment::Metric| {
            metric.name.starts_with(&format!("instructions_{side}_"))
        };
        let classes: Vec<_> =
            widthwise_experiment::metric::all().into_iter().filter(|m| of_class(&m)).collect();
        let sum: f64 = classes.iter().map(|metric| figures(archive, variant, metric.name)[0]).sum();
        assert_eq!(sum, figures(archive, variant, &format!("instructions_{side}"))[0], "{side}");
        for cache in ["l1i", "l1d", "ll", "itlb", "dtlb"] {
            let misses = figures(archive, variant, &format!("{cache}_misses_{side}"));
            assert!(
                misses.len() == 2 && misses[0] == misses[1] && misses[0] > 0.0,
                "{cache} {side}: {misses:?}"
            );
        }
    }
}

#[test]
fn counts_on_another_kernel_are_the_same_in_every_boot() {
    if !is_lane("kernels") {
        return skipped("four boots: `make test-all PARTS=kernels`");
    }
    let Some(kernel) = kernel() else { return skipped("no kernel: packaging/install.sh test fetches one") };
    let lab = Laboratory::new();
    let (report, all) = on_kernel(&lab, &kernel, &[("once", 10_000)]);
    let archive = lab.archive();
    for metric in ["instructions_user", "instructions_kernel", "page_faults", "max_rss"] {
        let [own, control] = [0, 1].map(|place| figures(&archive, &all[place], metric));
        assert!(own.len() == 2 && own[0] == own[1], "{metric}: two boots are equal: {own:?}");
        assert_eq!(own, control, "{metric}: the control is the baseline");
    }
    classes_sum_and_caches_miss(&archive, &all[0]);
    assert_eq!(lab.answer(&all[0]), "xdone\n", "a folder of inputs is there, with a large file");
    // 17 instructions in the program for each call, and those of its start.
    let user = figures(&archive, &all[0], "instructions_user")[0];
    assert!((170_000.0..1e6).contains(&user), "{user}");
    let found = verdict(&report, &all[1], "instructions_user");
    assert_eq!((found["source"].as_str(), found["floor"].as_f64()), (Some("qemu"), Some(0.0)), "{found}");
    assert_eq!(verdict(&report, &all[1], "max_rss")["source"], "guest");
    // Nothing is timed.
    let timed: u32 =
        archive.query_row("SELECT count(*) FROM rounds WHERE kind = 'timed'", [], |row| row.get(0)).unwrap();
    assert_eq!(timed, 0);
}

#[test]
fn twice_the_calls_are_exactly_twice_the_instructions_of_the_loop() {
    if !is_lane("kernels") {
        return skipped("six boots: `make test-all PARTS=kernels`");
    }
    let Some(kernel) = kernel() else { return skipped("no kernel: packaging/install.sh test fetches one") };
    let lab = Laboratory::new();
    let (report, all) = on_kernel(&lab, &kernel, &[("once", 10_000), ("dual", 20_000)]);
    let archive = lab.archive();
    for metric in ["instructions_user", "instructions_kernel"] {
        let [once, dual] = [0, 1].map(|place| figures(&archive, &all[place], metric)[0]);
        // Ticks of the kernel's clock come into a longer run more often.
        let each = (dual - once) / 10_000.0;
        let is_whole = (each - each.round()).abs() < if metric == "instructions_user" { 0.01 } else { 5.0 };
        assert!(is_whole && each >= 10.0, "{metric}: {each} for each call");
    }
    let found = verdict(&report, &all[1], "instructions_user");
    assert_eq!(found["verdict"], "higher", "{found}");
    assert_eq!(found["low"], found["high"], "an exact ratio: {found}");
}

#[test]
fn programs_of_other_processors_have_exact_counts_and_no_time() {
    let lab = Laboratory::new();
    lab.write("calls.c", CALLS);
    let report = lab.compare_json(&[
        "calls.c",
        "--abi",
        "x86-64,ppc64,ppc",
        "--set-env",
        "CALLS=1000",
        "--rounds",
        "1",
        "--warmup",
        "0",
    ]);
    for abi in ["ppc64", "ppc"] {
        if let Some(reason) = variant(&report, abi)["reason"].as_str() {
            return skipped(&format!("no cross compiler: {reason}"));
        }
        let found = verdict(&report, abi, "instructions_user");
        assert_eq!((found["source"].as_str(), &found["low"]), (Some("qemu"), &found["high"]), "{found}");
        let time = verdict(&report, abi, "cpu");
        assert_eq!(time["verdict"], "no_data", "{time}");
        assert_eq!(time["reason"], "not measured on an emulated machine", "{time}");
        let counted = figures(&lab.archive(), abi, "instructions_user");
        assert!(
            counted.len() == 2 && counted[0] == counted[1] && counted[0] > 10_000.0,
            "{abi}: {counted:?}"
        );
        assert_eq!(lab.answer(abi), "done\n");
    }
}

#[test]
fn what_cannot_be_booted_is_one_error_with_its_file() {
    let lab = Laboratory::new();
    lab.write("calls.c", CALLS);
    lab.write("bzImage", "no kernel");
    let wrong = lab.widthwise("compare calls.c --abi x86-64 --kernel ./bzImage");
    assert_eq!(wrong.status, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("bzImage is no bzImage"), "{wrong:?}");
    let unknown = lab.widthwise("compare calls.c --kernel debian:686");
    assert_eq!(unknown.status, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("did you mean \"debian:686-pae\"?"), "{unknown:?}");
    let time = lab.widthwise("compare calls.c --kernel debian:amd64 --metric cpu");
    assert!(time.stderr.contains("is not measured on an emulated machine"), "{time:?}");
    let foreign = lab.widthwise("compare calls.c --abi ppc64 --kernel debian:amd64");
    let reason = "the kernel debian:amd64 does not start ppc64 programs";
    assert!(foreign.status == Some(1) && unfolded(&foreign.stdout).contains(reason), "{foreign:?}");
    let scaled = lab.widthwise("scale calls.c --abi ppc64");
    assert!(scaled.stderr.contains("scale measures times"), "{scaled:?}");
}

#[test]
fn an_input_of_hundreds_of_mebibytes_travels_to_a_64_bit_kernel_and_counts_stay_exact() {
    if !is_lane("kernels") {
        return skipped("four boots with a large input: `make test-all PARTS=kernels`");
    }
    let Some(kernel) = kernel() else { return skipped("no kernel: packaging/install.sh test fetches one") };
    let lab = Laboratory::new();
    std::fs::File::create(lab.path("large")).unwrap().set_len(400 << 20).unwrap();
    lab.write(
        "size.c",
        "#include <stdio.h>\n#include <sys/stat.h>\nint main(int count, char **words) {\n  struct stat data;\n  \
         if (count < 2 || stat(words[1], &data) != 0)\n    return 1;\n  printf(\"%ld\\n\", (long)data.st_size);\n  return 0;\n}\n",
    );
    let report = lab.compare_json(&format!("size.c --abi x86-64 --kernel {kernel} --input large -- large"));
    let own = names(&report)[0].to_owned();
    let counts = figures(&lab.archive(), &own, "instructions_kernel");
    assert!(counts.len() == 2 && counts[0] == counts[1], "{counts:?} {report}");
    assert_eq!(lab.answer(&own), format!("{}\n", 400 << 20));
}

/// johansson-2006, 4.1 and 5.1.
#[test]
fn power_pc_code_has_the_shape_of_the_papers_listing() {
    let lab = Laboratory::new();
    lab.copy(&repository().join("experiments/johansson-2006/call.c"), "call.c");
    for (name, triplet) in [("call64", "powerpc64-linux-gnu"), ("call32", "powerpc-linux-gnu")] {
        let mut compiler = std::process::Command::new(format!("{triplet}-gcc"));
        match compiler.args(["-O2", "-g", "-o", name, "call.c"]).current_dir(lab.path("")).status() {
            Ok(status) => assert!(status.success(), "{triplet}"),
            Err(error) => return skipped(&format!("no {triplet}-gcc: {error}")),
        }
    }
    let listing = |function: &str| {
        let explained = lab.widthwise(&format!("explain ./call64 ./call32 --function {function}"));
        assert_eq!(explained.status, Some(0), "{explained:?}");
        explained.stdout
    };
    let call = listing("call");
    assert!(
        call.contains("./call64: 14 instructions") && call.contains("./call32: 9 instructions"),
        "{call}"
    );
    assert!(
        call.contains("stdu r1, -0x70(r1)") && call.contains("stwu r1, -0x10(r1)"),
        "frames of 112 and 16: {call}"
    );
    // Five for the constant and the return.
    let constant = listing("constant");
    assert!(constant.contains("./call64: 6 instructions"), "{constant}");
}

/// trent-2003: three programs on two kernels, of which the 32-bit one starts only one.
#[test]
fn the_matrix_of_program_width_and_kernel_width_has_two_unsupported_cells() {
    if !is_lane("kernels") {
        return skipped(
            "minutes: `make test-all PARTS=kernels` fetches Debian's kernels of both widths and boots them",
        );
    }
    let lab = Laboratory::new();
    lab.copy(&repository().join("experiments/trent-2003"), "trent-2003");
    let report = lab.compare_json("trent-2003/widthwise.toml");
    let [wide, narrow] = ["debian:amd64+x32", "debian:686-pae"];
    for abi in ["x86-64", "x32"] {
        let refused = variant(&report, &format!("{abi}/{narrow}"));
        assert_eq!(refused["status"], "unsupported", "{refused}");
        assert!(refused["reason"].as_str().unwrap().contains("32-bit kernel"), "{refused}");
    }
    let archive = lab.archive();
    let one = |abi: &str, kernel: &str, metric: &str| {
        let all = figures(&archive, &format!("{abi}/{kernel}"), metric);
        assert!(all.len() == 2 && all[0] == all[1], "{abi} {kernel} {metric}: {all:?}");
        all[0]
    };
    for abi in ["x86-64", "x32", "i386"] {
        // 100 000 calls, each some instructions in the program and more in the kernel.
        assert!(one(abi, wide, "instructions_user") > 1e6, "{abi}");
        assert!(one(abi, wide, "instructions_kernel") > 1e6, "{abi}");
    }
    // What a program does itself does not depend on the kernel's width, but for the way into it.
    let [on_wide, on_narrow] = [wide, narrow].map(|kernel| one("i386", kernel, "instructions_user"));
    assert!((on_narrow / on_wide - 1.0).abs() < 0.2, "{on_wide} {on_narrow}");
}

/// Sleeps, and computes for a moment.
const SLEEPS: &str =
    "#include <unistd.h>\nint main(void) { volatile int x = 0; for (int i = 0; i < 3000000; i++) x += i;\n\
    usleep(80000); return 0; }\n";

#[test]
fn programs_on_another_kernel_are_timed_under_kvm_or_it_is_refused_with_the_reason() {
    let lab = Laboratory::new();
    lab.write("sleeps.c", SLEEPS);
    lab.widthwise("compare sleeps.c --abi x86-64 --kvm")
        .refuses(2, &["--kvm: ", "baseline", "--kernel debian:amd64"]);
    let diagnosis = lab.widthwise("doctor --json").json();
    let why = diagnosis["qemu"]["kvm"]["no"]["reason"].as_str();
    let Some(kernel) = kernel().filter(|_| why.is_none()) else {
        let why = why.unwrap_or("`packaging/install.sh test` fetches the kernel");
        std::fs::write(lab.path("bzImage"), "").unwrap();
        let words = "compare sleeps.c --abi x86-64 --kernel ./bzImage --kvm";
        lab.widthwise(words).refuses(2, &["--kvm: nothing can be timed under KVM here: ", why]);
        return skipped(&format!("no times under KVM: {why}"));
    };
    let report = lab
        .compare_json(&*format!("sleeps.c --abi x86-64,i386 --kernel {kernel} --kvm --rounds 6 --warmup 0"));
    for metric in ["cpu", "wall"] {
        let verdict =
            report["verdicts"].as_array().unwrap().iter().find(|verdict| verdict["metric"] == metric);
        assert_eq!(verdict.unwrap()["source"], "kvm", "{report:#}");
    }
    let archive = lab.archive();
    let question = "SELECT min(value) FROM samples WHERE metric = ?1 AND kind = 'timed' AND source = 'kvm'";
    let fewest = |metric: &str| archive.query_row(question, [metric], |row| row.get::<_, f64>(0)).unwrap();
    assert!(fewest("wall") > fewest("cpu") + 80e6, "{} {}", fewest("wall"), fewest("cpu"));
    assert!(fewest("cpu") > 0.0);
}
