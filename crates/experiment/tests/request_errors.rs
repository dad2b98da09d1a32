//! Every error of a request, with its exact message.

use std::path::{Path, PathBuf};

use crate::asked::{facts, resolved, spec};
use widthwise_experiment::{Facts, Located, ProgramSource, Request, SourceLocation};

#[track_caller]
fn refused(text: &str, message: &str) {
    let error = resolved(text).expect_err("this request cannot be carried out");
    assert_eq!(error.to_string(), message);
}

/// The same of a request for a single file.
#[track_caller]
fn refused_file(text: &str, message: &str) {
    refused(&format!("[program]\nsource = \"tree.c\"\n{text}"), message);
}

#[test]
fn the_error_of_an_empty_request_lists_the_choices() {
    refused("", "no program; name a source file, a folder, debian:PACKAGE, or finished binaries");
}

#[test]
fn values_without_a_default_are_required() {
    refused(
        "[program]\nsource = \"lua-5.4\"\nrun = \"{build}/lua\"\n",
        "lua/widthwise.toml:2: no build command; only a single .c, .cc, .cpp or .cxx file has one by default",
    );
    refused(
        "[program]\nsource = \"debian:sqlite3\"\nrun = \"{build}/x\"\n",
        "lua/widthwise.toml:2: no build command; only a single .c, .cc, .cpp or .cxx file has one by default",
    );
    refused(
        "[program]\nsource = \"lua-5.4\"\nbuild = \"make\"\n",
        "no run command; say how a run is started, such as \"{build}/prog input\"",
    );
    refused_file(
        "run = \" \"\n",
        "lua/widthwise.toml:3: no run command; say how a run is started, such as \"{build}/prog input\"",
    );
}

#[test]
fn a_run_command_must_be_words() {
    refused_file(
        "run = \"{build}/tree 'a\"\n",
        "lua/widthwise.toml:3: the run command has a quotation mark without its partner",
    );
}

#[test]
fn finished_binaries_exclude_a_source_and_build_options() {
    let binaries = "[program.binaries]\nx86-64 = \"./a64\"\n";
    refused(
        &format!("[program]\nbuild = \"make -C {{build}}\"\n{binaries}"),
        "lua/widthwise.toml:2: a build command and finished binaries exclude each other; leave out one of them",
    );
    refused(
        &format!("[program]\nsource = \"a.c\"\n{binaries}"),
        "lua/widthwise.toml:2: a source and finished binaries exclude each other; leave out one of them",
    );
    refused(
        &format!("{binaries}[[variant]]\nabi = \"x32\"\n"),
        "lua/widthwise.toml:3: a list of variants and finished binaries exclude each other; leave out one of them",
    );
    for axis in ["abi = \"x32\"", "compiler = \"gcc-12\"", "flags = \"-O3\""] {
        let name = axis.split(' ').next().unwrap_or_default();
        refused(
            &format!("{binaries}[axes]\n{axis}\n"),
            &format!(
                "lua/widthwise.toml:4: axis \"{name}\" cannot vary over finished binaries; compare a source, or leave \
                 it out"
            ),
        );
    }
}

#[test]
fn a_placeholder_must_have_a_value_for_this_program() {
    refused(
        "[program]\nrun = \"{build}/x\"\n[program.binaries]\nx86-64 = \"./a64\"\n",
        "lua/widthwise.toml:2: {build} means nothing here: finished binaries are not built; write {binary}",
    );
    refused_file(
        "run = \"{binary} x\"\n",
        "lua/widthwise.toml:3: {binary} means nothing here: there are no finished binaries; what was built lies in \
         {build}",
    );
    refused_file(
        "[run]\nsetup = \"touch {binary}\"\n",
        "lua/widthwise.toml:4: {binary} means nothing here: there are no finished binaries; what was built lies in \
         {build}",
    );
}

#[test]
fn placeholders_of_the_command_line_are_checked_too() {
    let mut request = spec("[program]\nsource = \"tree.c\"\n");
    request.program.run = Some(Located::new("{bild}/tree".to_owned(), SourceLocation::Flag("--run")));
    assert_eq!(
        request.resolve(&facts()).unwrap_err().to_string(),
        "--run: unknown placeholder {bild}; did you mean {build}? (for the text itself, write {{bild}})"
    );
    request.program.run = None;
    request.program.build = Some(Located::new("{binary}".to_owned(), SourceLocation::Flag("--build")));
    assert!(request
        .resolve(&facts())
        .unwrap_err()
        .to_string()
        .starts_with("--build: {binary} means nothing in a build"));
}

#[test]
fn an_empty_matrix_names_the_exclude() {
    refused_file(
        "[axes]\nabi = [\"x32\"]\n[[exclude]]\nabi = \"x32\"\n",
        "lua/widthwise.toml:5: nothing is left to compare: every variant is excluded",
    );
}

#[test]
fn a_matrix_with_too_many_variants_is_refused() {
    let many: Vec<String> = (0..400).map(|n| format!("\"-DN={n}\"")).collect();
    refused_file(
        &format!("[axes]\nflags = [{}]\n", many.join(", ")),
        "the axes make 1200 variants; 1000 is the most",
    );
    let list = "[[variant]]\n".repeat(1001);
    refused_file(&list, "lua/widthwise.toml:1003: the axes make 1001 variants; 1000 is the most");
}

#[test]
fn two_variants_cannot_have_one_name() {
    refused_file(
        "[[variant]]\nabi = \"i386\"\n[[variant]]\nabi = \"x32\"\nname = \"i386\"\n",
        "lua/widthwise.toml:5: two variants are called \"i386\"; give one of them a name of its own",
    );
}

#[test]
fn a_variant_cannot_take_the_name_of_the_control() {
    refused_file(
        "[[variant]]\nabi = \"x32\"\n[[variant]]\nname = \"x32 control\"\n",
        "lua/widthwise.toml:6: a variant cannot be called \"x32 control\": that is the baseline's second name in the \
         A/A pair",
    );
    refused(
        "[program.binaries]\na = \"./a\"\n\"a control\" = \"./b\"\n",
        "lua/widthwise.toml:3: a variant cannot be called \"a control\": that is the baseline's second name in the A/A \
         pair",
    );
}

#[test]
fn a_variant_must_have_a_name_that_can_be_shown() {
    refused_file("[[variant]]\nname = \"\"\n", "lua/widthwise.toml:4: variant \"\": it is empty");
    refused_file(
        "[[variant]]\nname = \"a\\nb\"\n",
        "lua/widthwise.toml:4: variant \"a\\nb\": it has a control character, such as the end of a line",
    );
}

#[test]
fn a_programs_name_must_be_a_valid_folder_name() {
    refused_file(
        "name = \"a/b\"\n",
        "lua/widthwise.toml:3: program \"a/b\": it becomes part of a folder's name and cannot contain \"/\"",
    );
    refused_file(
        "name = \"..\"\n",
        "lua/widthwise.toml:3: program \"..\": it cannot begin with \".\" or \"-\"",
    );
}

#[test]
fn a_list_and_a_matrix_exclude_each_other() {
    refused_file(
        "[axes]\nflags = [\"-O2\"]\n[[variant]]\nabi = \"x32\"\n",
        "lua/widthwise.toml:4: axis \"flags\" and a list of variants exclude each other; leave out [axes] or every \
         [[variant]]",
    );
}

#[test]
fn an_unknown_baseline_names_the_nearest_variant() {
    refused_file(
        "[measure]\nbaseline = \"x86_64\"\n",
        "lua/widthwise.toml:4: unknown baseline \"x86_64\"; did you mean \"x86-64\"?",
    );
    refused_file(
        "[measure]\nbaseline = \"arm64\"\n",
        "lua/widthwise.toml:4: unknown baseline \"arm64\"; there is x86-64, x32, i386",
    );
}

#[test]
fn names_from_other_sections_must_be_there() {
    let unknown = "unknown flag set \"tunde\"; did you mean \"tuned\"?; options themselves begin with \"-\"";
    let sets = "[flags.tuned]\ncflags = \"-O3\"\n[env.small]\n";
    refused_file(&format!("{sets}[axes]\nflags = \"tunde\"\n"), &format!("lua/widthwise.toml:7: {unknown}"));
    refused_file(
        &format!("{sets}[[exclude]]\nflags = \"tunde\"\n"),
        &format!("lua/widthwise.toml:7: {unknown}"),
    );
    refused_file(
        "[axes]\nflags = \"O2\"\n",
        "lua/widthwise.toml:4: unknown flag set \"O2\"; there is lto, fast-math, native, pgo; options themselves begin \
         with \"-\"",
    );
    refused_file(
        &format!("{sets}[axes]\nenv = \"smal\"\n"),
        "lua/widthwise.toml:7: unknown environment \"smal\"; did you mean \"small\"?",
    );
    refused_file(
        "[[exclude]]\nenv = \"big\"\n",
        "lua/widthwise.toml:4: unknown environment \"big\"; there is default",
    );
}

#[test]
fn a_compiler_must_be_on_this_machine() {
    refused_file(
        "[axes]\ncompiler = [\"gcc-12\", \"gcc-13\"]\n",
        "lua/widthwise.toml:4: no compiler \"gcc-13\" on this machine; did you mean \"gcc-12\"?",
    );
    refused_file(
        "[axes]\ncompiler = [\"tcc\"]\n",
        "lua/widthwise.toml:4: no compiler \"tcc\" on this machine; there is gcc-12, clang-14",
    );
    for compiler in ["all", "gcc-12"] {
        let request = spec(&format!("[program]\nsource = \"tree.c\"\n[axes]\ncompiler = \"{compiler}\"\n"));
        assert_eq!(
            request.resolve(&Facts::default()).unwrap_err().to_string(),
            "lua/widthwise.toml:4: no compiler on this machine; apt-get install gcc g++"
        );
    }
}

#[test]
fn the_ten_run_estimator_refuses_any_other_stopping_rule() {
    let refused = |rule: &str, key: &str| {
        refused_file(
            &format!("[measure]\nestimator = \"ten-run-trim\"\n{rule}\n"),
            &format!(
                "lua/widthwise.toml:5: \"{key}\" and the estimator \"ten-run-trim\" exclude each other: it needs \
                 exactly 10 rounds"
            ),
        );
    };
    refused("precision = \"1%\"", "precision");
    refused("max_time = \"5m\"", "max_time");
    refused("rounds = 9", "rounds");
}

/// Shares that are none, and how they are named.
const SHARES: [(&str, &str); 4] = [
    ("\"0%\"", "0 %"),
    ("\"100%\"", "100 %"),
    ("2.5", "2.5 (250 %); for 2.5 % write \"2.5%\""),
    ("950.0", "950 (95000 %)"),
];

#[test]
fn stopping_rules_that_never_or_always_hold_are_refused() {
    refused_file("[measure]\nrounds = 0\n", "lua/widthwise.toml:4: \"rounds\" must be at least 1, not 0");
    refused_file(
        "[measure]\nmax_time = \"0s\"\n",
        "lua/widthwise.toml:4: \"max_time\" must be longer than nothing, not 0s",
    );
    refused_file(
        "[run]\ntimeout = \"0s\"\n",
        "lua/widthwise.toml:4: \"timeout\" must be longer than nothing, not 0s",
    );
    for (precision, shown) in SHARES {
        refused_file(
            &format!("[measure]\nprecision = {precision}\n"),
            &format!(
                "lua/widthwise.toml:4: \"precision\" must be more than 0 % and less than 100 %, not {shown}"
            ),
        );
    }
}

#[test]
fn a_confidence_below_one_half_is_refused() {
    refused_file(
        "[measure]\nconfidence = \"5%\"\n",
        "lua/widthwise.toml:4: \"confidence\" must be at least 50 % and less than 100 %, not 5 %",
    );
    refused_file(
        "[measure]\nconfidence = 1.0\n",
        "lua/widthwise.toml:4: \"confidence\" must be at least 50 % and less than 100 %, not 100 %",
    );
    refused_file(
        "[measure]\nconfidence = 95.0\n",
        "lua/widthwise.toml:4: \"confidence\" must be at least 50 % and less than 100 %, not 95 (9500 %); for 95 % write \"95%\"",
    );
    // As a percentage it would be refused, too.
    refused_file(
        "[measure]\nconfidence = 1.5\n",
        "lua/widthwise.toml:4: \"confidence\" must be at least 50 % and less than 100 %, not 1.5 (150 %)",
    );
}

#[test]
fn a_margin_of_equivalence_is_between_0_and_100_per_cent() {
    for (margin, shown) in SHARES {
        refused_file(
            &format!("[measure]\nequal_within = {margin}\n"),
            &format!(
                "lua/widthwise.toml:4: \"equal_within\" must be more than 0 % and less than 100 %, not {shown}"
            ),
        );
    }
}

#[test]
fn a_training_command_needs_a_build_that_trains() {
    for guided in ["", "profile_guided = false\n"] {
        refused_file(
            &format!("[flags.x]\ntrain = \"{{build}}/tree 1\"\n{guided}"),
            "lua/widthwise.toml:4: \"train\" is only used by a profile-guided set; add profile_guided = true",
        );
    }
}

#[test]
fn a_check_that_is_off_has_nothing_to_filter_and_files_replace_stdout() {
    refused_file(
        "[output]\ncheck = \"off\"\nfilter = \"sort\"\n",
        "lua/widthwise.toml:5: \"filter\" and check = \"off\" exclude each other; leave out one of them",
    );
    for check in ["off", "stdout"] {
        refused_file(
            &format!("[output]\ncheck = \"{check}\"\nfiles = [\"out\"]\n"),
            &format!(
                "lua/widthwise.toml:5: \"files\" and check = \"{check}\" exclude each other; leave out one of them"
            ),
        );
    }
}

#[test]
fn errors_of_the_command_line_name_the_flag() {
    let location = SourceLocation::Flag("--axis");
    let mut request = Request::default();
    let mut refused = |text: &str, message: &str| {
        assert_eq!(
            request.add_axis(text, location.clone()).unwrap_err().to_string(),
            format!("--axis: {message}")
        );
    };
    refused("alocator=glibc", "unknown axis \"alocator\"; did you mean \"allocator\"?");
    refused("allocator=glibc,jemaloc", "unknown allocator \"jemaloc\"; did you mean \"jemalloc\"?");
    refused("abi", "\"abi\" has no \"=\"; write it like allocator=glibc,jemalloc");
    refused("thp=always,always", "thp \"always\" is named twice");
    refused("env=", "a value of axis \"env\" is empty; name something or leave it out");

    let location = SourceLocation::Flag("--exclude");
    let mut refused = |text: &str, message: &str| {
        let error = request.add_exclude(text, location.clone()).unwrap_err();
        assert_eq!(error.to_string(), format!("--exclude: {message}"));
    };
    refused("abi=x23", "unknown ABI \"x23\"; did you mean \"x32\"?");
    refused("abi=x32,abi=i386", "axis \"abi\" is named twice");
    refused("abi=x32,compilr=gcc", "unknown axis \"compilr\"; did you mean \"compiler\"?");
    refused("flags=-O2,abi=x32,compilr=gcc", "unknown axis \"compilr\"; did you mean \"compiler\"?");
    let mut other = Request::default();
    other.add_exclude("abi=x32,flags=-Wl,-z,max=1,compiler=gcc-12", location.clone()).unwrap();
    let values: Vec<&str> = other.excludes[0].value.values().map(|value| value.value.as_str()).collect();
    assert!(values.contains(&"-Wl,-z,max=1") && values.contains(&"gcc-12"), "{values:?}");

    let location = SourceLocation::Flag("--binary");
    let mut refused = |text: &str, message: &str| {
        let error = request.add_binary(text, location.clone()).unwrap_err();
        assert_eq!(error.to_string(), format!("--binary: {message}"));
    };
    refused("./a64", "\"./a64\" has no \"=\"; write it like x86-64=./a64");
    refused("=./a64", "binary \"\": it is empty");
    refused("x=", "the path of binary \"x\" is empty; name its file");

    let error = request.set_variable("=1", SourceLocation::Flag("--env")).unwrap_err();
    assert_eq!(error.to_string(), "--env: variable \"\": it is empty");
    let error = request.measure.add_metric("cpuu", SourceLocation::Flag("--metric")).unwrap_err();
    assert_eq!(error.to_string(), "--metric: unknown metric \"cpuu\"; did you mean \"cpu\"?");
}

#[test]
fn late_errors_of_the_command_line_name_the_flag() {
    let mut request = Request::default();
    let path = ProgramSource::Path(PathBuf::from("tree.c"));
    request.program.source = Some(Located::new(path, SourceLocation::Flag("SOURCE")));
    request.measure.baseline = Some(Located::new("x23".to_owned(), SourceLocation::Flag("--baseline")));
    assert_eq!(
        request.resolve(&facts()).unwrap_err().to_string(),
        "--baseline: unknown baseline \"x23\"; did you mean \"x32\"?"
    );
}

#[test]
fn what_no_spec_file_may_hold_is_refused_on_the_command_line_too() {
    let given = |path: &str, flag| Located::new(PathBuf::from(path), SourceLocation::Flag(flag));
    let refused = |typed: Request, message: &str| {
        let request = spec("[program]\nsource = \"tree.c\"\n").overlay(typed);
        let request = request.anchored(Path::new("/here"), Path::new("/here"));
        assert_eq!(request.resolve(&facts()).expect_err("it cannot be carried out").to_string(), message);
    };
    let mut typed = Request::default();
    typed.run.inputs = ["a.txt", "./a.txt"].map(|path| given(path, "--input")).to_vec();
    refused(typed, "--input: file \"/here/./a.txt\" is named twice");
    let mut typed = Request::default();
    typed.output.files = ["out", "out"].map(|path| given(path, "--check-file")).to_vec();
    refused(typed, "--check-file: file \"out\" is named twice");
    let mut typed = Request::default();
    typed.run.stdin = Some(given("", "--stdin"));
    refused(typed, "--stdin: a path of \"stdin\" is empty; name a file or leave it out");
    for status in [256, -1] {
        let mut typed = Request::default();
        typed.run.exit_status = Some(Located::new(status, SourceLocation::Flag("--exit-status")));
        refused(typed, &format!("--exit-status: \"exit_status\" must be from 0 to 255, not {status}"));
    }
}

#[test]
fn two_inputs_of_one_name_are_refused_in_a_fresh_directory_alone() {
    let inputs = "[run]\ninputs = [\"a/data.txt\", \"b/data.txt\"]\n";
    refused_file(
        &format!("{inputs}directory = \"fresh\"\n"),
        "lua/widthwise.toml:4: \"b/data.txt\" and \"a/data.txt\" would have one name in a fresh directory; copy or link it \
         under another name",
    );
    refused_file(
        "[run]\ninputs = [\"..\"]\ndirectory = \"fresh\"\n",
        "lua/widthwise.toml:4: \"..\" has no name to be linked by in a fresh directory; copy or link it under another name",
    );
    assert!(resolved(&format!("[program]\nsource = \"tree.c\"\n{inputs}")).is_ok());
}
