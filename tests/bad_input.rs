//! Requests that cannot be carried out are refused: one clear error each, with its place and the fix, before anything is built.

use crate::failing_programs::with_programs;
use crate::laboratory::Laboratory;
use std::process::Command;

#[test]
fn a_misspelt_word_on_the_command_line_is_shown_with_its_flag_and_a_suggestion() {
    let lab = with_programs();
    assert!(std::process::Command::new("mkfifo").arg(lab.path("pipe")).status().unwrap().success());
    for (arguments, words) in [
        (&["--alocator", "glibc"], ["'--alocator'", "'--allocator'"]),
        (
            &["--allocator", "jemaloc"],
            ["--allocator: unknown allocator \"jemaloc\"", "did you mean \"jemalloc\"?"],
        ),
        (&["--abi", "x86_64"], ["--abi: unknown ABI \"x86_64\"", "did you mean \"x86-64\"?"]),
        (&["--metric", "max_rs"], ["--metric: unknown metric", "did you mean \"max_rss\"?"]),
        (&["--exclude", "abbi=x32"], ["--exclude: unknown axis \"abbi\"", "did you mean \"abi\"?"]),
        (&["--run", "{bild}/tells"], ["--run: unknown placeholder {bild}", "did you mean {build}?"]),
        (&["--build", "{binary}"], ["--build: {binary} means nothing in a build command", "{cflags}"]),
        (&["--set", "axis.abi = [\"x32\"]"], ["--set:1: unknown key \"axis\"", "did you mean \"axes\"?"]),
        (&["--flags", "ltoo"], ["--flags: unknown flag set \"ltoo\"", "did you mean \"lto\"?"]),
        (&["--compiler", "gcc-99"], ["--compiler: no compiler \"gcc-99\" on this machine", "gcc-"]),
        (&["--env", "tuned"], ["--env: unknown environment \"tuned\"", "default"]),
        (&["--thp", "sometimes"], ["--thp: unknown setting of thp", "never"]),
        (&["--baseline", "i368"], ["--baseline: unknown baseline \"i368\"", "did you mean \"i386\"?"]),
        (&["--precision", "1x"], ["--precision: \"1x\" is no percentage", "\"1%\""]),
        (&["--precision", "1"], ["--precision: 1 has no \"%\"", "write \"1%\""]),
        (&["--confidence", "95"], ["--confidence: 95 has no \"%\"", "write \"95%\""]),
        (&["--exclude", "abi=x32,compilr=gcc"], ["--exclude: unknown axis \"compilr\"", "\"compiler\"?"]),
        (&["--run", "A=1 {build}/tells"], ["--run: the command begins with 'A=1'", "--set-env 'A=1'\n"]),
        (&["--max-time", "soon"], ["--max-time: \"soon\" is no duration", "\"5m\""]),
        (&["--rounds", "0"], ["--rounds: \"rounds\" must be at least 1", "not 0"]),
        (&["--cpus", "0-x"], ["--cpus: cpus \"0-x\"", "\"any\""]),
        (&["--estimator", "ten"], ["--estimator: unknown estimator", "ten-run-trim"]),
        (&["--set-env", "FOO"], ["--set-env: \"FOO\" has no \"=\"", "MALLOC_ARENA_MAX=1"]),
        (&["--stdin", "nowhere"], ["--stdin: ", "nowhere: No such file or directory"]),
        (&["--stdin", "pipe"], ["pipe is a pipe", "write it to a file first"]),
        (&["--input", "nowhere"], ["--input: ", "nowhere: No such file or directory"]),
        (&["--set-env", "A={bild}/x"], ["--set-env: unknown placeholder {bild}", "did you mean {build}?"]),
        (&["--set-env", "A={jobs}"], ["{jobs} means nothing in a variable of a run", "{work}"]),
        (&["--set", "env.tuned.A = '{binary}'"], ["--set:1: {binary} means nothing here", "{build}"]),
        (&["--run", "'"], ["--run: the run command has a quotation mark", "without its partner"]),
    ] {
        let printed = lab.widthwise(&[&["compare", "tells.c"], &arguments[..]].concat());
        printed.refuses(2, &words);
    }
    // "gcc" alone is the one that the PATH gives, by its full name.
    lab.widthwise(&["compare", "tells.c", "--compiler", "gcc", "--baseline", "arm64/gcc"])
        .refuses(2, &["--baseline: unknown baseline \"arm64/gcc\"", "/gcc-"]);
    assert!(!lab.path(".widthwise").exists(), "a request that was refused has left something behind");
}

#[test]
fn missing_cpus_are_refused_before_any_build() {
    let lab = with_programs();
    lab.write("cpus.toml", "[program]\nsource = \"tells.c\"\n[run]\ncpus = \"0,999\"\n");
    for (words, place) in [
        (&["compare", "tells.c", "--cpus", "999"][..], "--cpus: "),
        (&["compare", "tells.c", "--cpus", "0,999"], "--cpus: "),
        (&["compare", "cpus.toml"], "cpus.toml"),
    ] {
        lab.widthwise(words).refuses(2, &[place, "no CPU 999", "its CPUs are 0"]);
        assert!(!lab.path(".widthwise").exists(), "{words:?}");
    }
}

#[test]
fn a_misspelt_word_in_a_spec_file_is_shown_with_its_line_and_a_suggestion() {
    let lab = with_programs();
    let program = "[program]\nsource = \"tells.c\"\n";
    for (text, words) in [
        (
            "[axes]\nalocator = [\"glibc\"]\n",
            ["spec/widthwise.toml:4: unknown axis \"alocator\"", "did you mean \"allocator\"?"],
        ),
        (
            "[axes]\nabi = [\"x86-64\",\n \"x23\"]\n",
            ["spec/widthwise.toml:5: unknown ABI \"x23\"", "did you mean \"x32\"?"],
        ),
        (
            "[messure]\nrounds = 6\n",
            ["spec/widthwise.toml:3: unknown key \"messure\"", "did you mean \"measure\"?"],
        ),
        (
            "[run]\nrounds = 6\n",
            ["spec/widthwise.toml:4: unknown key \"rounds\" in [run]", "it belongs to [measure]"],
        ),
        (
            "[measure]\nmetrics = [\"cpuu\"]\n",
            ["spec/widthwise.toml:4: unknown metric \"cpuu\"", "did you mean \"cpu\"?"],
        ),
        (
            "[run]\nsetup = \"rm {wrok}\"\n",
            ["spec/widthwise.toml:4: unknown placeholder {wrok}", "did you mean {work}?"],
        ),
        ("[measure]\nrounds = -1\n", ["spec/widthwise.toml:4: \"rounds\" cannot be negative", "-1"]),
        (
            "[measure]\nrounds = \"six\"\n",
            ["spec/widthwise.toml:4: \"rounds\" must be", "must be a whole number, not text"],
        ),
        ("[measure\n", ["spec/widthwise.toml:3", "]"]),
    ] {
        lab.write("spec/widthwise.toml", &format!("{program}{text}"));
        lab.widthwise("compare spec/widthwise.toml").refuses(2, &words);
    }
    assert!(!lab.path(".widthwise").exists());
}

#[test]
fn a_spec_file_of_arbitrary_bytes_is_refused() {
    let lab = with_programs();
    for bytes in [&b"\xff\xfe\x00"[..], b"\0", b"[[[[[[[[", &[b'['; 100_000]] {
        std::fs::write(lab.path("widthwise.toml"), bytes).unwrap();
        lab.widthwise("compare widthwise.toml").refuses(2, &["widthwise.toml"]);
    }
}

#[test]
fn an_incomplete_request_is_refused_with_what_to_add() {
    let lab = with_programs();
    lab.widthwise("compare").refuses(2, &["nothing to measure", "--help"]);
    lab.widthwise("compare .").refuses(2, &["no build command"]);
    lab.widthwise("compare . --build true").refuses(2, &["no run command", "{build}/prog"]);
    lab.widthwise("compare --binary x86-64").refuses(2, &["--binary", "x86-64=./a64"]);
}

#[test]
fn the_long_help_lists_every_metric() {
    let help = Laboratory::new().widthwise("compare --help").stdout;
    let (_, metrics) = help.split_once("\nMetrics").unwrap();
    for word in ["* max_rss ", "  instructions ", "cpu_migrations ", "moves from one CPU to another"] {
        assert!(metrics.contains(word), "{word:?} is not in {metrics:?}");
    }
}

#[test]
fn a_missing_source_is_named() {
    let lab = with_programs();
    lab.widthwise("compare nowhere.c").refuses(2, &["nowhere.c: No such file"]);
    lab.widthwise("compare nowhere.toml").refuses(2, &["nowhere.toml: No such file"]);
    let folder = ["compare", "./nowhere", "--build", "make", "--run", "{build}/x"];
    lab.widthwise(&folder).refuses(2, &["nowhere: No such file"]);
    lab.widthwise("compare ./nowhere").refuses(2, &["nowhere: No such file"]);
    // Nobody writes to the pipe: a command that opens it waits for ever.
    assert!(Command::new("mkfifo").arg(lab.path("pipe.c")).status().unwrap().success());
    lab.widthwise("compare pipe.c").refuses(2, &["pipe.c is a pipe, and neither a source nor a program"]);
    lab.widthwise("compare /bin/true /dev/null").refuses(2, &["/dev/null is a device, and neither"]);
    lab.widthwise("compare --binary a=/bin/true --binary b=./pipe.c --run {binary}")
        .refuses(2, &["--binary: ", "pipe.c is a pipe, not a program"]);
    assert!(!lab.path(".widthwise").exists());
}

#[test]
fn an_empty_matrix_and_a_repeated_variant_name_are_refused() {
    let lab = with_programs();
    lab.widthwise("compare tells.c --abi i386 --exclude abi=i386")
        .refuses(2, &["--exclude: nothing is left to compare"]);
    lab.widthwise("compare tells.c --abi i386,x32,i386").refuses(2, &["--abi: ", "\"i386\" is named twice"]);
    lab.widthwise("compare --binary a=./a --binary a=./b --run {binary}")
        .refuses(2, &["--binary: ", "\"a\" is named twice"]);
    lab.write(
        "widthwise.toml",
        "[program]\nsource = \"tells.c\"\n[[variant]]\nname = \"one\"\n[[variant]]\nabi = \"i386\"\nname = \"one\"\n",
    );
    lab.widthwise("compare widthwise.toml")
        .refuses(2, &["widthwise.toml:5: two variants are called \"one\""]);
    lab.write(
        "widthwise.toml",
        "[program]\nsource = \"tells.c\"\n[[variant]]\nname = \"one\"\n[[variant]]\nname = \"one control\"\n",
    );
    lab.widthwise("compare widthwise.toml").refuses(2, &["\"one control\"", "second name"]);
}
