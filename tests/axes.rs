//! Each axis has its effect, as the program itself sees it.

use crate::laboratory;
use crate::laboratory::{names, output_of, unfolded, variant, verdict, Laboratory};
use std::process::Command;

/// A laboratory with the program that prints how it was started.
fn with_tells() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("tells.c");
    lab
}

#[test]
fn every_compiler_of_this_machine_builds_its_own_variant() {
    let lab = with_tells();
    let words = "tells.c --abi x86-64 --compiler all --allow-different-output --rounds 1";
    // The one that the PATH gives by that name.
    let report = lab.compare_json(&format!("{words} --baseline x86-64/clang -- compiler"));
    let baseline = report["judging"]["baseline"].as_str().unwrap();
    assert!(baseline.starts_with("x86-64/clang-"), "{baseline}");
    let names = names(&report);
    for family in ["gcc", "clang"] {
        let of_family: Vec<_> =
            names.iter().filter(|name| name.contains(family) && !name.ends_with("control")).collect();
        assert!(!of_family.is_empty(), "no variant of {family} in {names:?}");
        for name in of_family {
            assert_eq!(lab.answer(name).trim(), family, "{name}");
            assert!(variant(&report, name)["build"]["compiler"].as_str().unwrap().contains(family), "{name}");
        }
    }
}

#[test]
fn an_unoptimised_program_takes_more_cpu_time() {
    let lab = Laboratory::new();
    lab.program("work.c");
    let report = lab.compare_json("work.c --abi x86-64 --flags -O0 --flags -O2 --rounds 8 -- 40");
    assert_eq!(report["judging"]["baseline"], "x86-64/-O0");
    let faster = verdict(&report, "x86-64/-O2", "cpu");
    assert_eq!(faster["verdict"], "lower", "{faster}");
    assert!(faster["ratio"].as_f64().unwrap() < 0.7, "{faster}");
}

#[test]
fn named_flag_sets_reach_the_compiler() {
    let lab = with_tells();
    let printed = lab.compare(
        "tells.c --abi x86-64 --build 'set -x; $CC $CFLAGS -o {build}/tells {source} $LDFLAGS' \
         --run '{build}/tells optimisation' --flags -O0 --flags fast-math --flags lto --flags native \
         --allow-different-output --rounds 1",
    );
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert_eq!(lab.answer("x86-64/-O0"), "not optimised\n");
    assert_eq!(lab.answer("x86-64/fast-math"), "fast mathematics\n");
    assert_eq!(lab.answer("x86-64/lto"), "optimised\n");
    // Once to compile and once to link.
    assert_eq!(lab.build_log("x86-64/lto").matches("-flto").count(), 2);
    assert!(lab.build_log("x86-64/native").contains("-march=native"));
}

#[test]
fn a_profile_guided_build_is_trained_and_its_profile_is_used() {
    let lab = Laboratory::new();
    lab.program("work.c");
    // The test's own option is last: gcc then warns if it finds no profile.
    let report = lab.compare_json(
        "work.c --abi x86-64,i386 --flags -O2 --flags pgo --rounds 1 --run '{build}/work 5' \
         --build 'set -x; $CC $CFLAGS -Wmissing-profile -o {build}/work {source} $LDFLAGS'",
    );
    for abi in ["x86-64", "i386"] {
        let name = format!("{abi}/pgo");
        assert_eq!(variant(&report, &name)["status"], "ready");
        let log = lab.build_log(&name);
        let used = log.find("-fprofile-use=").unwrap_or_else(|| panic!("{log}"));
        assert!(log.find("-fprofile-generate=").is_some_and(|trained| trained < used), "{log}");
        assert!(!log.contains("missing-profile]"), "{log}");
        assert!(!lab.build_log(&format!("{abi}/-O2")).contains("profile-use"));
    }
    // gcc would have warned.
    let without = output_of(
        Command::new("gcc")
            .args(["-O2", "-fprofile-use=nowhere", "-Wmissing-profile", "-c", "-o", "work.o", "work.c"])
            .current_dir(lab.path("")),
    );
    assert!(without.stderr.contains("missing-profile]"), "{without:?}");
}

#[test]
fn a_profile_guided_build_without_a_profile_is_refused() {
    let lab = Laboratory::new();
    lab.program("work.c");
    let printed = lab.compare(
        "work.c --abi x86-64 --flags -O2 --flags pgo --rounds 1 --run '{build}/work 1' \
         --build '$CC -O2 -o {build}/work {source}'",
    );
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(printed.stdout.contains("does the build pass CFLAGS and LDFLAGS on?"), "{printed:?}");
}

#[test]
fn a_profile_guided_build_is_trained_in_the_conditions_of_a_run() {
    let lab = Laboratory::new();
    lab.write(
        "filter.c",
        "#include <stdio.h>\n#include <stdlib.h>\nint main(void) {\n\
         int is_run = getchar() == 'x' && getenv(\"DATA\") && fopen(\"prepared\", \"r\");\n\
         return is_run ? 7 : 1; }\n",
    );
    lab.write("given", "x\n");
    lab.write("folder/empty", "");
    let arguments =
        "filter.c --abi x86-64 --flags -O2 --flags pgo --rounds 1 --warmup 0 --stdin given --set-env DATA=1 \
                     --exit-status 7 --setup 'echo 1 > prepared' --teardown 'rm prepared'";
    for directory in ["folder", "fresh"] {
        let report = lab.compare_json(&format!("{arguments} --directory {directory}"));
        assert_eq!(variant(&report, "x86-64/pgo")["status"], "ready", "{report}");
    }
    // Another input is another training.
    let built = |printed: &crate::laboratory::CommandOutput| printed.stderr.contains("built x86-64/pgo");
    let again = format!("{arguments} --directory folder");
    assert!(!built(&lab.compare(&again)));
    lab.write("given", "xy\n");
    assert!(built(&lab.compare(&again)));
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_training_run_has_the_time_limit_of_a_run() {
    let lab = Laboratory::new();
    lab.program("work.c");
    // The first run is the training.
    lab.script("run.sh", "#!/bin/sh\ntest -e trained || { touch trained; sleep 1000; }\n");
    let printed = lab.compare(
        "work.c --abi x86-64 --flags -O2 --flags pgo --rounds 1 --warmup 0 --timeout 2s --run ./run.sh \
         --allow-different-output",
    );
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(printed.stderr.contains("the training run lasted longer than its time limit"), "{printed:?}");
    assert_eq!(lab.processes(), "");
}

#[test]
fn a_profile_guided_build_in_a_folder_that_no_option_can_name_is_refused() {
    let lab = Laboratory::new();
    lab.program("work.c");
    let printed = lab.compare(
        "work.c --abi x86-64 --flags -O2 --flags pgo --rounds 1 --warmup 0 --archive 'my campaigns' -- 1",
    );
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(printed.stderr.contains("cannot be part of CFLAGS; `--archive` names another"), "{printed:?}");
}

#[test]
fn a_training_command_replaces_the_run_command() {
    let lab = Laboratory::new();
    lab.program("work.c");
    lab.write(
        "widthwise.toml",
        "[program]\nsource = \"work.c\"\narguments = [\"5\"]\n[axes]\nabi = [\"x86-64\"]\nflags = [\"trained\"]\n\
         [flags.trained]\ncflags = \"-O2\"\nprofile_guided = true\ntrain = \"echo trained >&2; {build}/work 1\"\n",
    );
    let printed = lab.compare("widthwise.toml --rounds 1");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert!(lab.build_log("x86-64/trained").contains("trained"));
}

#[test]
fn a_named_allocator_is_loaded_into_the_program() {
    let lab = with_tells();
    let printed = lab.compare(
        "tells.c --abi x86-64 --allocator glibc,jemalloc --allow-different-output --rounds 1 -- \
         allocator",
    );
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert_eq!(lab.answer("x86-64/glibc"), "glibc\n");
    assert_eq!(lab.answer("x86-64/jemalloc"), "jemalloc\n");
}

#[test]
fn an_allocator_unavailable_for_an_abi_leaves_the_row_with_the_reason() {
    let lab = with_tells();
    let report = lab.compare_json(
        "tells.c --abi x86-64,x32 --allocator glibc,jemalloc --allow-different-output --rounds 1 -- \
         allocator",
    );
    let absent = variant(&report, "x32/jemalloc");
    assert_eq!(absent["status"], "unsupported", "{absent}");
    assert!(
        absent["reason"].as_str().unwrap().contains("no distribution builds jemalloc for x32"),
        "{absent}"
    );
    assert_eq!(verdict(&report, "x32/jemalloc", "cpu")["verdict"], "no_data");
    // A missing feature of the machine is not a failure of the program: without JSON the status is 0, too.
    let printed = lab.compare(
        "tells.c --abi x86-64,x32 --allocator glibc,jemalloc --allow-different-output --rounds 1 -- \
         allocator",
    );
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert!(printed.stdout.contains("x32/jemalloc"), "{printed:?}");
}

#[test]
fn a_static_program_cannot_have_another_allocator_and_the_reason_is_shown() {
    let lab = with_tells();
    let printed = lab.compare(
        "tells.c --abi x86-64 --allocator glibc,jemalloc --flags '-O2 -static' --rounds 1 -- \
         arguments",
    );
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let row = "x86-64/-O2 -static/jemalloc not measured: jemalloc cannot be preloaded: the program is statically linked";
    assert!(unfolded(&printed.stdout).contains(row), "{printed:?}");
}

#[test]
fn thp_never_disables_huge_pages_for_its_variant() {
    let lab = with_tells();
    let printed = lab.compare(
        "tells.c --abi x86-64,i386 --thp system,never --allow-different-output --rounds 6 -- \
         huge-pages",
    );
    assert_eq!(printed.status, Some(0), "{printed:?}");
    // A variant's setting must not persist in later runs.
    assert!(!printed.stderr.contains("changes from run to run"), "{printed:?}");
    for abi in ["x86-64", "i386"] {
        assert_eq!(lab.answer(&format!("{abi}/never")), "never\n");
        assert_eq!(lab.answer(&format!("{abi}/system")), "as the system has it\n");
    }
}

#[test]
fn the_systems_huge_page_setting_is_restored_or_needs_root() {
    let lab = with_tells();
    let setting = || std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let before = setting().ok();
    let report = lab.compare_json("tells.c --abi x86-64 --thp system,always --rounds 6");
    assert_eq!(setting().ok(), before);
    let always = variant(&report, "x86-64/always");
    if always["status"] != "ready" {
        assert!(
            always["reason"].as_str().unwrap().contains("transparent huge pages could not be changed"),
            "{always}"
        );
        assert!(!laboratory::is_root() || before.is_none(), "root may change it: {always}");
    }
}

#[test]
fn each_environment_reaches_only_its_variant() {
    let lab = with_tells();
    lab.write(
        "widthwise.toml",
        "[program]\nsource = \"tells.c\"\narguments = [\"variable\", \"TUNED\"]\n\
         [axes]\nabi = [\"x86-64\"]\nenv = [\"default\", \"tuned\"]\n[env.tuned]\nTUNED = \"well; and $HOME\"\n\
         [output]\nallow_different = true\n",
    );
    let printed = lab.compare("widthwise.toml --rounds 1");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert_eq!(lab.answer("x86-64/default"), "not set\n");
    assert_eq!(lab.answer("x86-64/tuned"), "well; and $HOME\n");

    // A variable for every variant, and a set from the command line.
    let printed = lab.compare(
        "tells.c --abi x86-64 --set-env 'TUNED=for all' --set 'env.other.TUNED = \"otherwise\"' \
         --env default,other --allow-different-output --rounds 1 -- variable TUNED",
    );
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert_eq!(lab.answer("x86-64/default"), "for all\n");
    assert_eq!(lab.answer("x86-64/other"), "otherwise\n");
}

#[test]
fn excluded_combinations_are_not_in_the_matrix() {
    let lab = with_tells();
    let report = lab.compare_json(
        "tells.c --abi x86-64,i386 --flags -O0 --flags -O2 --exclude abi=i386,flags=-O0 --rounds 1",
    );
    assert_eq!(names(&report), ["x86-64/-O0", "x86-64/-O2", "i386/-O2", "x86-64/-O0 control"]);
}

#[test]
fn a_list_of_variants_replaces_the_axes_and_may_have_names() {
    let lab = with_tells();
    lab.write(
        "widthwise.toml",
        "[program]\nsource = \"tells.c\"\narguments = [\"optimisation\"]\n[output]\nallow_different = true\n\
         [[variant]]\nname = \"slow\"\nflags = \"-O0\"\n\
         [[variant]]\nname = \"small words\"\nabi = \"i386\"\nflags = \"-O2\"\n\
         [[variant]]\nabi = \"i386\"\nflags = \"-O0\"\n",
    );
    let report = lab.compare_json("widthwise.toml --baseline 'small words' --rounds 1");
    assert_eq!(names(&report), ["slow", "small words", "i386/-O0", "small words control"]);
    assert_eq!(report["judging"]["baseline"], "small words");
    assert_eq!(lab.answer("slow"), "not optimised\n");
    assert_eq!(lab.answer("small words"), "optimised\n");
}

#[test]
fn addresses_are_random_unless_no_aslr_is_given() {
    let lab = with_tells();
    let random = ["tells.c", "--abi", "x86-64", "--rounds", "1", "--", "addresses"];
    assert_eq!(lab.compare(&random).status, Some(0));
    assert_eq!(lab.answer("x86-64"), "random\n");
    assert_eq!(lab.compare(&[&["--no-aslr"], &random[..]].concat()).status, Some(0));
    assert_eq!(lab.answer("x86-64"), "fixed\n");
}

/// A build command that writes a line for each build, and its program.
const COUNTED: [&str; 4] = [
    "--build",
    "$CC $CFLAGS -o {build}/tells {source}/tells.c; echo >> {source}/../builds",
    "--run",
    "{build}/tells arguments",
];

fn builds_of(lab: &Laboratory, words: &[&str]) -> (laboratory::CommandOutput, usize) {
    let _ = std::fs::remove_file(lab.path("builds"));
    let printed =
        lab.compare(&[&["project", "--rounds", "1", "--warmup", "0"], &COUNTED[..], words].concat()[..]);
    (printed, std::fs::read_to_string(lab.path("builds")).unwrap_or_default().lines().count())
}

fn with_project() -> Laboratory {
    let lab = with_tells();
    std::fs::create_dir(lab.path("project")).unwrap();
    std::fs::rename(lab.path("tells.c"), lab.path("project/tells.c")).unwrap();
    lab
}

#[test]
fn variants_with_equal_build_inputs_share_a_build() {
    let lab = with_project();
    let sets = ["--set", "env.a.A = \"1\"", "--set", "env.b.B = \"1\""];
    let axes = ["--abi", "x86-64,i386", "--thp", "system,never", "--env", "default,a,b"];
    let (printed, builds) = builds_of(&lab, &[&axes[..], &sets].concat());
    assert_eq!((printed.status, builds), (Some(0), 2), "{printed:?}");
    assert!(printed.stderr.contains("built x86-64/system/default (of 6 variants) in "), "{printed:?}");
    // An allocator of one ABI only is not built for the others.
    let (printed, builds) =
        builds_of(&lab, &["--allocator", "glibc,jemalloc", "--flags", "-O1", "--abi", "x86-64,x32"]);
    assert_eq!((printed.status, builds), (Some(0), 2), "{printed:?}");
    // Compiler flags, and a command with the variant's name, make separate builds.
    let (printed, builds) = builds_of(&lab, &["--abi", "x86-64", "--flags", "-O1", "--flags", "-O3"]);
    assert_eq!((printed.status, builds), (Some(0), 1), "one was built before: {printed:?}");
    let build = format!("{}; echo {{variant}} > {{build}}/name", COUNTED[1]);
    let (printed, builds) = builds_of(&lab, &["--abi", "x86-64", "--thp", "system,never"]);
    assert_eq!((printed.status, builds), (Some(0), 0), "both were built before: {printed:?}");
    let words = ["project", "--abi", "x86-64", "--thp", "system,never", "--rounds", "1", "--build", &build];
    let printed = lab.compare(&[&words[..], &COUNTED[2..]].concat()[..]);
    assert_eq!((printed.status, lab.read("builds").lines().count()), (Some(0), 2), "{printed:?}");
}

#[test]
fn a_shared_build_that_fails_is_reported_once_and_shown_in_every_row() {
    let lab = with_project();
    let words = ["--abi", "x86-64,i386", "--thp", "system,never"];
    let build = "test {abi} = x86-64 || { echo no such thing; exit 3; }; $CC -o {build}/tells tells.c";
    let mut all = [&["project", "--rounds", "1"], &words[..], &COUNTED[2..]].concat();
    all.extend(["--build", build]);
    let printed = lab.compare(&all[..]);
    assert_eq!(printed.stderr.matches("no such thing").count(), 1, "{printed:?}");
    assert_eq!(
        unfolded(&printed.stdout).matches("not measured: build failed (exit 3): no such thing").count(),
        2,
        "{printed:?}"
    );
}

#[test]
fn what_no_variant_can_use_here_is_refused_before_any_build() {
    let lab = with_project();
    let (printed, builds) = builds_of(&lab, &["--abi", "x32", "--allocator", "glibc,jemalloc"]);
    printed.refuses(2, &["--allocator: no distribution builds jemalloc for x32"]);
    assert_eq!(builds, 0);
    lab.write("widthwise.toml", "[program]\nsource = \"project\"\nbuild = \"touch built\"\nrun = \"x\"\n[axes]\nabi = \"x32\"\nallocator = \"tcmalloc\"\n");
    lab.compare("widthwise.toml --run {build}/x")
        .refuses(2, &["widthwise.toml:7: no distribution builds tcmalloc for x32"]);
    let words = [&["compare", "--cpus", "any", "project", "--thp", "system,always"], &COUNTED[..]].concat();
    let printed = laboratory::output_of(&mut lab.without_rights(&words[..]));
    printed.refuses(
        2,
        &[
            "--thp: transparent huge pages cannot be changed",
            "as root they can, and `never` needs no privileges",
        ],
    );
    assert!(!lab.path("builds").exists() && !lab.path(".widthwise/builds").exists(), "something was built");
}
