//! Unchanged projects with their own build systems; cached builds; stored logs.

use std::path::PathBuf;

use crate::laboratory;
use crate::laboratory::outcomes::skipped;
use crate::laboratory::{unfolded, variant, Laboratory};

/// Builds a project for two ABIs, runs it, and checks the binaries.
fn works_in_both(project: &str, build: &str, run: &str) {
    let lab = Laboratory::new();
    lab.project(project);
    let report = lab.compare_json(&format!(
        "./{project} --build '{build}' --run '{run}' --abi x86-64,i386 --flags '-O2 -DCHOSEN' --rounds 1"
    ));
    let name = run.rsplit('/').next().unwrap();
    let mut widths = Vec::new();
    for variant_name in ["x86-64/-O2 -DCHOSEN", "i386/-O2 -DCHOSEN"] {
        assert_eq!(variant(&report, variant_name)["status"], "ready");
        assert_eq!(lab.answer(variant_name), "64\n");
    }
    for tree in trees(&lab) {
        let file = tree.join(run.trim_start_matches("{build}/"));
        let header = std::fs::read(&file).unwrap();
        widths.push(header[4]);
        let log = std::fs::read_to_string(tree.with_file_name("log")).unwrap();
        assert!(!log.is_empty(), "{name} was built in silence");
    }
    widths.sort_unstable();
    // ELFCLASS32 and ELFCLASS64, elf(5).
    assert_eq!(widths, [1, 2], "{project} was not built for two ABIs");
    // The source's own folder is unchanged.
    let mut names: Vec<_> =
        std::fs::read_dir(lab.path(project)).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    let mut before: Vec<_> = std::fs::read_dir(laboratory::here("projects").join(project))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    before.sort();
    assert_eq!(names, before, "the build touched its source");
}

/// The folders of builds.
fn trees(lab: &Laboratory) -> Vec<PathBuf> {
    let mut trees: Vec<PathBuf> = std::fs::read_dir(lab.path(".widthwise/builds"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("tree"))
        .collect();
    trees.sort();
    trees
}

#[test]
fn plain_make_works_unchanged() {
    works_in_both("make", "make", "{build}/program");
}

#[test]
fn a_configure_script_works_unchanged() {
    works_in_both("configure", "./configure --host=\"$HOST_TRIPLET\" && make", "{build}/program");
}

#[test]
fn cmake_works_unchanged() {
    works_in_both("cmake", "cmake -S . -B out && cmake --build out --verbose", "{build}/out/program");
}

#[test]
fn meson_works_unchanged() {
    works_in_both("meson", "meson setup out && ninja -v -C out", "{build}/out/program");
}

#[test]
fn flags_and_width_reach_every_command_and_the_log_shows_it() {
    let lab = Laboratory::new();
    lab.project("make");
    let arguments =
        ["./make", "--build", "make", "--run", "{build}/program", "--abi", "i386", "--flags", "-O1 -g0"];
    let printed = lab.compare(&[&arguments[..], &["--rounds", "1"]].concat());
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let log = lab.build_log("i386/-O1 -g0");
    let commands: Vec<&str> = log.lines().filter(|line| line.contains("-m32")).collect();
    // Two files are compiled, and one program is linked.
    assert_eq!(commands.len(), 3, "{log}");
    assert!(commands.iter().all(|command| command.contains("-O1 -g0")), "{log}");
}

#[test]
fn builds_of_different_options_that_make_the_same_file_are_reported() {
    let lab = Laboratory::new();
    lab.write("ignoring/Makefile", "prog: main.c\n\tcc -O2 -o prog main.c\n");
    lab.write("ignoring/main.c", "int main(void) { return 0; }\n");
    let words = "./ignoring --build make --run {build}/prog --rounds 1 --warmup 0 --abi x86-64";
    let of_options = lab.compare(&format!("{words} --flags -O2 --flags -O3"));
    let fact = "x86-64/-O2 and x86-64/-O3 are the same file, byte for byte: does the build use $CFLAGS";
    assert!(
        unfolded(&of_options.stdout).contains(&format!("warning: {fact} (C++: $CXXFLAGS)?")),
        "{of_options:?}"
    );
    let page = std::fs::read_to_string(lab.path(".widthwise/latest/report.html")).unwrap();
    assert!(page.contains(fact));
    let report = lab.compare_json(&format!("{words} --flags -O2 --flags -O3 --thp system,never"));
    let warnings = report["warnings"].to_string();
    assert_eq!(warnings.matches("byte for byte").count(), 1, "{warnings}");
    assert!(warnings.contains("x86-64/-O2/system and x86-64/-O3/system are the same file"), "{warnings}");
    // Variants that share a build are one file by design.
    let report = lab.compare_json(&format!("{words} --thp system,never"));
    assert!(!report["warnings"].to_string().contains("byte for byte"), "{report}");
    // Widthwise passes all options of a single file.
    let report =
        lab.compare_json("ignoring/main.c --rounds 1 --warmup 0 --abi x86-64 --flags -O2 --flags '-O2 -g0'");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("what differs in their builds does not change this program"), "{warnings}");
}

#[test]
fn a_second_campaign_builds_nothing_and_a_changed_source_is_rebuilt() {
    let lab = Laboratory::new();
    lab.project("make");
    let arguments =
        ["./make", "--build", "make", "--run", "{build}/program", "--abi", "x86-64,i386", "--rounds", "1"];
    let built = |printed: &laboratory::CommandOutput| {
        printed.stderr.lines().filter(|line| line.contains("  built ")).count()
    };

    let first = lab.compare(&arguments);
    assert_eq!((first.status, built(&first)), (Some(0), 2), "{first:?}");
    let cached = |lab: &Laboratory| laboratory::count(&lab.archive(), "SELECT sum(cached) FROM build");
    assert_eq!(cached(&lab), 0);

    let second = lab.compare(&arguments);
    assert_eq!((second.status, built(&second)), (Some(0), 0), "{second:?}");
    assert_eq!(cached(&lab), 2);
    // Its log is that of the first build, and is kept with this campaign, too.
    assert!(lab.build_log("i386").contains("-m32"));
    assert_eq!(trees(&lab).len(), 2);

    lab.write(
        "make/words.c",
        "unsigned long words(unsigned long bytes) { return bytes / 2 / sizeof(void *); }\n",
    );
    let third = lab.compare(&arguments);
    assert_eq!((third.status, built(&third)), (Some(0), 2), "{third:?}");
    assert_eq!(lab.answer("i386"), "32\n");

    let flags = lab.compare(&[&arguments[..], &["--flags", "-O3"]].concat());
    assert_eq!((flags.status, built(&flags)), (Some(0), 2), "{flags:?}");
}

#[test]
fn a_single_file_is_rebuilt_when_what_it_includes_changes() {
    let lab = Laboratory::new();
    lab.write(
        "program.c",
        "#include <stdio.h>\n#include \"ker nel.h\"\nint main(void) { puts(KERNEL); return 0; }\n",
    );
    let header = |answer: &str| lab.write("ker nel.h", &format!("#define KERNEL \"{answer}\"\n"));
    let compare = || {
        let printed = lab.compare("program.c --abi x86-64,i386 --flags -O1 --flags pgo --rounds 1");
        assert_eq!(printed.status, Some(0), "{printed:?}");
        (laboratory::count(&lab.archive(), "SELECT sum(cached) FROM build"), lab.answer("x86-64/-O1"))
    };
    header("first");
    assert_eq!(compare(), (0, "first\n".to_owned()));
    assert_eq!(compare(), (4, "first\n".to_owned()));
    let first = trees(&lab);
    header("second");
    lab.widthwise("compare --resume .widthwise/latest --rounds 2")
        .refuses(2, &["cannot be resumed", "program of x86-64/-O1: its content changed"]);
    assert_eq!(compare(), (4, "second\n".to_owned()));
    // The earlier programs are where they were, for campaigns that measure them.
    let both = trees(&lab);
    assert_eq!((first.len(), both.len()), (4, 8));
    assert!(first.iter().all(|tree| both.contains(tree) && std::fs::read_dir(tree).unwrap().count() == 1));
    header("first");
    assert_eq!(compare(), (4, "first\n".to_owned()));
    assert_eq!(trees(&lab).len(), 8);
}

#[test]
fn an_interrupted_build_begins_again_from_the_source() {
    let lab = Laboratory::new();
    lab.project("make");
    let arguments =
        ["./make", "--build", "make", "--run", "{build}/program", "--abi", "x86-64", "--rounds", "1"];
    assert_eq!(lab.compare(&arguments).status, Some(0));
    let folder = trees(&lab)[0].parent().unwrap().to_owned();
    std::fs::remove_file(folder.join("done")).unwrap();
    std::fs::write(folder.join("tree/program"), "half a program").unwrap();
    let printed = lab.compare(&arguments);
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert!(printed.stderr.contains("built x86-64"), "{printed:?}");
}

#[test]
fn a_build_that_ignores_the_compiler_is_detected() {
    let lab = Laboratory::new();
    lab.project("make");
    let printed =
        lab.compare("./make --build 'make CC=gcc' --run {build}/program --abi x86-64,i386 --rounds 1");
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(unfolded(&printed.stdout).contains("is built for x86-64, not i386"), "{printed:?}");
}

#[test]
fn a_campaign_inside_the_source_is_not_copied_into_its_builds() {
    for archive in [".widthwise", "results"] {
        let lab = Laboratory::new();
        lab.project("make");
        let run = |rule: &str| {
            let mut command = lab.command(&format!("compare --archive {archive} {rule}"));
            laboratory::output_of(command.current_dir(lab.path("make")))
        };
        let begin = ". --build make --run {build}/program --abi x86-64 --cpus any --rounds 6";
        let first = run(begin);
        assert_eq!(first.status, Some(0), "{first:?}");
        let second = run(begin);
        assert_eq!(second.status, Some(0), "{second:?}");
        assert!(
            !second.stderr.contains("built"),
            "a campaign was taken for a change of the source: {second:?}"
        );
        let third = run(&format!("--resume {archive}/latest --rounds 8"));
        assert_eq!(third.status, Some(0), "{third:?}");
        for build in std::fs::read_dir(lab.path("make").join(archive).join("builds")).unwrap() {
            assert!(!build.unwrap().path().join("tree").join(archive).exists());
        }
    }
}

/// A project whose build starts a program that it built: a generator, and a compiler test as in configure.
fn with_helpers() -> Laboratory {
    let lab = Laboratory::new();
    lab.write("project/gen.c", "#include <stdio.h>\nint main(void) { puts(\"#define N 3\"); return 0; }\n");
    let main =
        "#include <stdio.h>\n#include \"table.h\"\nint main(void) { printf(\"%d\\n\", N); return 0; }\n";
    lab.write("project/main.c", main);
    let rules = "prog: main.c table.h\n\t$(CC) -o prog main.c\ntable.h: gen\n\t./gen > table.h\ngen: gen.c\n\t$(CC) -o gen gen.c\n";
    lab.write("project/Makefile", rules);
    lab
}

#[test]
fn a_failed_x32_build_that_starts_its_own_program_names_the_fix() {
    let lab = with_helpers();
    lab.gcc("-mx32 -idirafter/usr/include/x86_64-linux-gnu -o gen project/gen.c");
    if std::process::Command::new(lab.path("gen")).output().is_ok() {
        return skipped("this kernel starts x32 programs by itself");
    }
    for (build, line) in [
        ("make", "./gen: Exec format error"),
        ("make table.h || true; touch table.h; $CC -o prog main.c", "./gen: Exec format error"),
        ("$CC -o gen gen.c; ./gen >table.h 2>/dev/null; $CC -o prog main.c", "a program that it started could not be executed"),
        ("$CC -o conftest gen.c; ./conftest >table.h 2>/dev/null || { echo 'configure: error: cannot run C compiled programs.'; exit 1; }; make",
         "configure: error: cannot run C compiled programs."),
    ] {
        let lab = with_helpers();
        let words = ["project", "--abi", "x86-64,x32", "--rounds", "1", "--warmup", "0", "--build", build, "--run", "{build}/prog"];
        let printed = lab.compare(&words);
        let shown = unfolded(&printed.stdout);
        assert!(shown.contains(line) && shown.contains("`widthwise exec --register`, as root"), "{build}: {printed:?}");
    }
}
