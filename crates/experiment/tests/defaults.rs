//! The defaults of an experiment.

use std::path::PathBuf;
use std::time::Duration;

use crate::asked::{experiment, facts, flag, spec};
use widthwise_experiment::metric;
use widthwise_experiment::model::{Build, Cpus, Directory, Estimator, Origin, Stopping};
use widthwise_experiment::source::Language;
use widthwise_experiment::{placeholder, Facts, Located, ProgramSource, Request, SourceLocation};

const FILE: &str = "[program]\nsource = \"tree.c\"\n";

#[test]
fn a_single_file_has_default_build_and_run_commands() {
    let program = experiment(FILE).program;
    assert_eq!(program.name, "tree");
    assert_eq!(program.run, "{build}/tree");
    let build = Build::Compile { language: Language::C, output: "tree".to_owned() };
    assert_eq!(build.text(), "$CC $CFLAGS -pthread -o {build}/tree {source} $LDFLAGS -lm");
    assert_eq!(program.origin, Origin::Source { path: "lua/tree.c".into(), build });
    for extension in ["cc", "cpp", "cxx"] {
        let program = experiment(&format!("[program]\nsource = \"deep tree.{extension}\"\n")).program;
        let Origin::Source { build, .. } = program.origin else { panic!("{program:?}") };
        assert_eq!(build, Build::Compile { language: Language::Cxx, output: "deep tree".to_owned() });
        assert_eq!(program.run, "{build}/'deep tree'");
        assert_eq!(program.name, "deep tree");
    }
}

#[test]
fn a_program_is_named_after_its_source() {
    let name = |source: &str| {
        experiment(&format!("[program]\nsource = \"{source}\"\nbuild = \"make\"\nrun = \"./x\"\n"))
            .program
            .name
    };
    assert_eq!(name("../lua-5.4/"), "lua-5.4");
    assert_eq!(name("debian:sqlite3=3.40.1-2"), "sqlite3");
    assert_eq!(name("."), "lua", "the spec file's own folder");
    assert_eq!(name(".."), "program", "a folder whose name only the file system knows");
    assert_eq!(experiment("[program.binaries]\nz = \"bin/a64\"\na = \"bin/b\"\n").program.name, "a64");
    assert_eq!(experiment(&format!("{FILE}name = \"mine\"\n")).program.name, "mine");
}

#[test]
fn a_debian_package_keeps_its_version() {
    let text = "[program]\nsource = \"debian:sqlite3=3.40.1-2\"\nbuild = \"make\"\nrun = \"{build}/x\"\n";
    assert_eq!(
        experiment(text).program.origin,
        Origin::Debian {
            package: "sqlite3".to_owned(),
            version: Some("3.40.1-2".to_owned()),
            build: Build::Shell("make".to_owned())
        }
    );
}

#[test]
fn finished_binaries_run_as_they_are() {
    let program = experiment("[program.binaries]\nx86-64 = \"./a64\"\n").program;
    assert_eq!(program.run, "{binary}");
    let Origin::Binaries { files } = program.origin else { panic!("{program:?}") };
    assert_eq!(files.into_iter().collect::<Vec<_>>(), [("x86-64".to_owned(), PathBuf::from("lua/./a64"))]);
}

#[test]
fn arguments_reach_the_program_unchanged() {
    let words = ["100000", "two words", "it's", "{build}", "{{abi}}", "${HOME}", "", "*"];
    let mut request = spec(FILE);
    request.program.arguments =
        Some(Located::new(words.map(str::to_owned).to_vec(), SourceLocation::Flag("--")));
    let run = request.resolve(&facts()).expect("a request without mistakes").program.run;
    assert!(run.starts_with("{build}/tree 100000 'two words' "), "{run}");
    // The run command is cut into words first and filled in after: a value with spaces stays one word.
    let values = [("build", "a b".to_owned()), ("abi", "x32".to_owned())].into();
    let words_of_run = shell_words::split(&run).expect("words");
    let filled: Vec<String> = words_of_run.iter().map(|word| placeholder::fill(word, &values)).collect();
    assert_eq!(filled[0], "a b/tree");
    assert_eq!(filled[1..], words);
}

#[test]
fn the_users_stopping_rule_replaces_the_default() {
    let stopping = |text: &str| experiment(&format!("{FILE}[measure]\n{text}\n")).stopping;
    let minutes = |minutes: u64| Some(Duration::from_secs(60 * minutes));
    assert_eq!(stopping(""), Stopping { rounds: Some(100), precision: Some(0.01), max_time: minutes(5) });
    assert_eq!(stopping("rounds = 30"), Stopping { rounds: Some(30), precision: None, max_time: None });
    assert_eq!(
        stopping("precision = \"0.5%\""),
        Stopping { rounds: None, precision: Some(0.005), max_time: None }
    );
    assert_eq!(
        stopping("max_time = \"2m\"\nprecision = 0.02"),
        Stopping { rounds: None, precision: Some(0.02), max_time: minutes(2) }
    );
    let ten = Stopping { rounds: Some(10), precision: None, max_time: None };
    assert_eq!(stopping("estimator = \"ten-run-trim\""), ten);
    assert_eq!(stopping("estimator = \"ten-run-trim\"\nrounds = 10"), ten);
}

#[test]
fn absent_values_have_their_defaults() {
    let experiment = experiment(FILE);
    assert_eq!(experiment.warmup, 1);
    assert_eq!(experiment.judging.confidence, 0.95);
    assert_eq!(experiment.judging.equal_within, 0.01);
    assert_eq!(experiment.judging.estimator, Estimator::Paired);
    assert_eq!(experiment.seed, 7);
    assert_eq!(experiment.launch.timeout, Some(Duration::from_secs(600)));
    assert_eq!(experiment.launch.cpus, Cpus::Auto);
    assert_eq!(experiment.launch.exit_status, None);
    assert!(!experiment.launch.no_aslr);
    assert!(!experiment.check.off && !experiment.check.allow_different);
    assert_eq!(experiment.metrics, metric::defaults());
}

#[test]
fn given_values_are_kept() {
    let experiment = experiment(&format!(
        "{FILE}[run]\nstdin = \"in.txt\"\ndirectory = \"fresh\"\ninputs = [\"a\", \"/b\"]\n\
         environment = {{ K = \"v\" }}\nsetup = \"true\"\nteardown = \"rm -f {{work}}/x\"\ntimeout = \"250ms\"\n\
         exit_status = 3\ncpus = \"0,2-3\"\nno_aslr = true\n\
         [measure]\nwarmup = 0\nconfidence = \"99%\"\nequal_within = \"0.5%\"\nseed = 18446744073709551615\n\
         [output]\nfiles = [\"out.txt\"]\nfilter = \"awk '{{print}}'\"\nallow_different = true\n"
    ));
    let launch = experiment.launch;
    assert_eq!(launch.stdin, Some("lua/in.txt".into()));
    assert_eq!(launch.directory, Directory::Fresh);
    assert_eq!(launch.inputs, [PathBuf::from("lua/a"), PathBuf::from("/b")]);
    assert_eq!(launch.environment.get("K").map(String::as_str), Some("v"));
    assert_eq!(launch.setup.as_deref(), Some("true"));
    assert_eq!(launch.teardown.as_deref(), Some("rm -f {work}/x"));
    assert_eq!(launch.timeout, Some(Duration::from_millis(250)));
    assert_eq!(launch.exit_status, Some(3));
    assert_eq!(launch.cpus, Cpus::List(vec![0, 2, 3]));
    assert!(launch.no_aslr);
    assert_eq!((experiment.warmup, experiment.judging.confidence, experiment.seed), (0, 0.99, u64::MAX));
    assert_eq!(experiment.judging.equal_within, 0.005);
    assert_eq!(experiment.check.files, [PathBuf::from("out.txt")], "relative to the working directory");
    assert_eq!(
        experiment.check.filter.as_deref(),
        Some("awk '{print}'"),
        "a filter is shell text and no more"
    );
    assert!(experiment.check.allow_different);
}

#[test]
fn metrics_come_in_the_order_of_the_columns() {
    let names = |metrics: &str| -> Vec<&str> {
        let text = format!("{FILE}[measure]\nmetrics = {metrics}\n");
        experiment(&text).metrics.into_iter().map(|metric| metric.name).collect()
    };
    assert_eq!(names("[\"max_rss\", \"cpu\"]"), ["cpu", "max_rss"]);
    let comparable = metric::METRICS
        .iter()
        .filter(|metric| metric.family != metric::Family::Runtime && !metric.is_of_machine());
    assert_eq!(names("\"all\"").len(), comparable.count());
    let more = names("[\"instructions\", \"default\", \"cpu\"]");
    assert_eq!(more.len(), metric::defaults().len() + 1);
    assert_eq!(more.last(), Some(&"instructions"));
}

#[test]
fn here_is_the_spec_files_folder_or_the_working_directory() {
    let directory = |request: &Request| request.resolve(&facts()).expect("no mistakes").launch.directory;
    assert_eq!(directory(&spec(FILE)), Directory::Path("lua".into()));
    assert_eq!(
        directory(&spec(&format!("{FILE}[run]\ndirectory = \"here\"\n"))),
        Directory::Path("lua".into())
    );
    assert_eq!(
        directory(&spec(&format!("{FILE}[run]\ndirectory = \"a\"\n"))),
        Directory::Path("lua/a".into())
    );

    let mut typed = Request::default();
    typed.program.source = Some(Located::new(ProgramSource::Path("tree.c".into()), flag()));
    assert_eq!(directory(&typed), Directory::Here);
    typed.run.directory = Some(Located::new(Directory::Path("a".into()), flag()));
    assert_eq!(directory(&typed), Directory::Path("a".into()));

    let beside = Facts { folder: PathBuf::new(), ..facts() };
    assert_eq!(spec(FILE).resolve(&beside).expect("no mistakes").launch.directory, Directory::Here);
}

#[test]
fn paths_of_the_command_line_begin_in_the_working_directory() {
    let mut request = spec(FILE);
    request.run.stdin = Some(Located::new("in.txt".into(), SourceLocation::Flag("--stdin")));
    assert_eq!(request.resolve(&facts()).expect("no mistakes").launch.stdin, Some("in.txt".into()));
}
