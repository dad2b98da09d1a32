//! The command line overrides the spec file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::asked::{facts, flag, names, spec};
use widthwise_experiment::model::Directory;
use widthwise_experiment::request::Check;
use widthwise_experiment::{spec_text, Located, Request, SourceLocation};

const WHOLE: &str = r#"
[program]
name = "lua"
source = "lua-5.4"
build = "make"
run = "{build}/lua bench.lua"
arguments = ["1"]
[axes]
abi = ["x86-64", "x32"]
flags = ["-O2", "tuned"]
[flags.tuned]
cflags = "-O3"
[env.small]
A = "1"
[[exclude]]
abi = "x32"
flags = "tuned"
[run]
stdin = "in.txt"
directory = "fresh"
inputs = ["bench.lua"]
environment = { K = "v", L = "w" }
setup = "true"
teardown = "true"
timeout = "60s"
exit_status = 1
cpus = "any"
no_aslr = true
concurrent = false
[measure]
metrics = ["cpu"]
rounds = 30
precision = "1%"
max_time = "5m"
warmup = 2
confidence = "99%"
equal_within = "2%"
estimator = "paired"
seed = 5
baseline = "x32"
[output]
files = ["out.txt"]
filter = "sort"
allow_different = true
"#;

#[test]
fn an_empty_overlay_changes_nothing() {
    assert_eq!(spec(WHOLE).overlay(Request::default()), spec(WHOLE));
}

#[test]
fn a_request_over_an_empty_one_is_unchanged() {
    assert_eq!(Request::default().overlay(spec(WHOLE)), spec(WHOLE));
}

#[test]
fn every_single_value_is_replaced_by_the_later_one() {
    let other = WHOLE
        .replace("\"lua\"", "\"luajit\"")
        .replace("lua-5.4", "jit")
        .replace("make", "ninja")
        .replace("{build}/lua ", "{build}/jit ")
        .replace("[\"1\"]", "[\"2\"]")
        .replace("\"x32\"", "\"i386\"")
        .replace("-O3", "-Os")
        .replace("A = \"1\"", "B = \"2\"")
        .replace("in.txt", "other.txt")
        .replace("\"fresh\"", "\"here\"")
        .replace("[\"bench.lua\"]", "[\"b\", \"c\"]")
        .replace("{ K = \"v\", L = \"w\" }", "{ K = \"z\", L = \"y\" }")
        .replace("\"true\"", "\"false\"")
        .replace("60s", "1s")
        .replace("exit_status = 1", "exit_status = 0")
        .replace("\"any\"", "\"0\"")
        .replace("no_aslr = true", "no_aslr = false")
        .replace("concurrent = false", "concurrent = true")
        .replace("[\"cpu\"]", "[\"wall\"]")
        .replace("rounds = 30", "rounds = 31")
        .replace("\"1%\"", "\"2%\"")
        .replace("5m", "6m")
        .replace("warmup = 2", "warmup = 0")
        .replace("99%", "90%")
        .replace("paired", "ten-run-trim")
        .replace("seed = 5", "seed = 6")
        .replace("out.txt", "out2.txt")
        .replace("\"sort\"", "\"uniq\"")
        .replace("allow_different = true", "allow_different = false");
    let mut other = spec(&other);
    let excludes = std::mem::take(&mut other.excludes);
    assert_eq!(excludes.len(), 1);
    let mut over = spec(WHOLE).overlay(other.clone());
    over.excludes.clear();
    assert_eq!(over, other);
}

#[test]
fn a_value_keeps_its_source_location() {
    let mut typed = Request::default();
    typed.measure.rounds = Some(Located::new(5, SourceLocation::Flag("--rounds")));
    let over = spec(WHOLE).overlay(typed);
    assert_eq!(over.measure.rounds.map(|rounds| rounds.location), Some(SourceLocation::Flag("--rounds")));
    let location = over.measure.max_time.map(|max_time| max_time.location.to_string());
    assert_eq!(location.as_deref(), Some("lua/widthwise.toml:34"));
}

#[test]
fn an_axis_is_replaced_whole_and_the_others_stay() {
    let mut typed = Request::default();
    typed.add_axis("abi=i386", flag()).expect("no mistakes");
    typed.measure.baseline = Some(Located::new("i386/-O2".to_owned(), flag()));
    let over = spec(WHOLE).overlay(typed).resolve(&facts()).expect("no mistakes");
    let names: Vec<&str> = over.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["i386/-O2", "i386/tuned"]);
}

#[test]
fn excludes_and_variables_add_up() {
    let mut typed = Request::default();
    typed
        .add_exclude("abi=x86-64,flags=-O2 -Wl,-O1", SourceLocation::Flag("--exclude"))
        .expect("no mistakes");
    typed.set_variable("M=a=b", SourceLocation::Flag("--env")).expect("no mistakes");
    let over = spec(WHOLE).overlay(typed);
    assert_eq!(over.excludes.len(), 2);
    let flags: Vec<&str> = over.excludes[1].value.values().map(|value| value.value.as_str()).collect();
    assert_eq!(flags, ["x86-64", "-O2 -Wl,-O1"]);
    let variables: Vec<(&str, &str)> =
        over.run.environment.iter().map(|(name, located)| (name.as_str(), located.value.as_str())).collect();
    assert_eq!(variables, [("K", "v"), ("L", "w"), ("M", "a=b")]);
}

#[test]
fn options_with_commas_are_one_value_and_a_repeated_flag_adds_one() {
    let mut typed = spec("[program]\nsource = \"tree.c\"\n");
    typed.add_axis("flags=-O2 -Wl,-O1", flag()).expect("no mistakes");
    typed.add_axis("flags=lto", flag()).expect("no mistakes");
    typed.add_axis("abi=x32", flag()).expect("no mistakes");
    let variants = typed.resolve(&facts()).expect("no mistakes").variants;
    let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["x32/-O2 -Wl,-O1", "x32/lto"]);
}

#[test]
fn an_axis_over_a_list_of_variants_is_refused_by_its_flag() {
    let mut typed = Request::default();
    typed.add_axis("abi=i386", flag()).expect("no mistakes");
    let over = spec("[program]\nsource = \"tree.c\"\n[[variant]]\nabi = \"x32\"\n").overlay(typed);
    assert_eq!(
        over.resolve(&facts()).unwrap_err().to_string(),
        "--axis: axis \"abi\" and a list of variants exclude each other; leave out [axes] or every [[variant]]"
    );
}

#[test]
fn the_kind_of_output_check_is_chosen_whole() {
    let mut off = Request::default();
    off.output.check = Some(Located::new(Check::Off, SourceLocation::Flag("--no-check")));
    let over = spec(WHOLE).overlay(off.clone());
    assert!(over.output.files.is_empty() && over.output.filter.is_none());
    assert!(over.output.allow_different.is_some());

    let mut files = Request::default();
    files.output.files = vec![Located::new("out".into(), SourceLocation::Flag("--output-file"))];
    let over = off.clone().overlay(files);
    assert_eq!(over.output.check, None);
    assert_eq!(over.output.files.len(), 1);

    let mut filter = Request::default();
    filter.output.filter = Some(Located::new("sort".to_owned(), SourceLocation::Flag("--filter")));
    assert_eq!(off.overlay(filter.clone()).output.check, None);
    assert_eq!(spec(WHOLE).overlay(filter).output.files.len(), 1);
}

#[test]
fn an_anchored_request_means_the_same_from_another_folder() {
    let mut typed = spec("[program.binaries]\na = \"a64\"\nb = \"/b\"\n[run]\ninputs = [\"in\"]\n");
    typed.run.stdin = Some(Located::new("typed.txt".into(), SourceLocation::Flag("--stdin")));
    let anchored = typed.anchored(Path::new("/specs/lua"), Path::new("/elsewhere"));
    let files: Vec<_> = anchored.program.binaries.iter().map(|binary| binary.file.value.clone()).collect();
    assert_eq!(files, ["/specs/lua/a64", "/b"].map(PathBuf::from));
    assert_eq!(anchored.run.inputs[0].value, Path::new("/specs/lua/in"));
    assert_eq!(
        anchored.run.stdin.as_ref().map(|path| path.value.clone()),
        Some("/elsewhere/typed.txt".into())
    );
    let directory = anchored.run.directory.as_ref().map(|directory| directory.value.clone());
    assert_eq!(directory, Some(Directory::Path("/specs/lua".into())));

    let kept = spec(&spec_text(&anchored)).resolve(&facts()).expect("no mistakes");
    assert_eq!(kept, anchored.resolve(&facts()).expect("no mistakes"));
}

#[test]
fn a_program_of_a_fresh_directory_is_anchored_at_its_run_commands_location() {
    let run = |run: &str, directory: &str| {
        let text = format!("[program]\nsource = \"src\"\nbuild = \"make\"\nrun = {run:?}\n[run]\ndirectory = {directory:?}\n");
        let anchored = spec(&text).anchored(Path::new("/my specs"), Path::new("/elsewhere"));
        anchored.program.run.map(|run| run.value).unwrap_or_default()
    };
    for (written, words) in [
        ("./x.sh {build}", ["/my specs/./x.sh", "{build}"]),
        (" 'my dir/x.sh' a", ["/my specs/my dir/x.sh", "a"]),
        ("{abi}/x.sh a", ["/my specs/{abi}/x.sh", "a"]),
        ("{build}/x a", ["{build}/x", "a"]),
        ("/bin/x a", ["/bin/x", "a"]),
        ("x ./a", ["x", "./a"]),
    ] {
        assert_eq!(shell_words::split(&run(written, "fresh")).expect("words"), words);
    }
    // Elsewhere it is in the directory of the run.
    assert_eq!(run("./x.sh a", "here"), "./x.sh a");
    assert_eq!(run("./x.sh a", "out"), "./x.sh a");
}

#[test]
fn a_source_is_anchored_at_its_source_location() {
    let folder = "[program]\nsource = \"src\"\nbuild = \"make\"\nrun = \"./x\"\n[run]\ndirectory = \"out\"\n";
    let anchored = spec(folder).anchored(Path::new("/specs"), Path::new("/elsewhere"));
    let text = spec_text(&anchored);
    assert!(
        text.contains("source = \"/specs/src\"") && text.contains("directory = \"/specs/out\""),
        "{text}"
    );
}

#[test]
fn durations_and_names_of_the_overlaid_request_reach_the_experiment() {
    let over = spec(WHOLE).overlay(Request::default());
    let mut over = over;
    over.measure.baseline = None;
    assert_eq!(over.resolve(&facts()).expect("no mistakes").launch.timeout, Some(Duration::from_secs(60)));
    assert_eq!(names(&WHOLE.replace("baseline = \"x32\"", "")), ["x86-64/-O2", "x86-64/tuned", "x32/-O2"]);
}

#[test]
fn a_path_of_a_set_line_is_the_command_lines() {
    let lines = ["run.stdin = \"x\"".to_owned(), "run.setup = 3".to_owned()];
    let typed = widthwise_experiment::spec::parse_set(&lines[..1]).expect("no mistakes");
    let over = spec("[program]\nsource = \"a.c\"\n").overlay(typed);
    let anchored = over.anchored(Path::new("/specs"), Path::new("/here"));
    assert_eq!(anchored.run.stdin.map(|path| path.value), Some("/here/x".into()));
    assert_eq!(
        widthwise_experiment::spec::parse_set(&lines).unwrap_err().to_string(),
        "--set:2: \"setup\" must be text in quotation marks, not a whole number"
    );
}
