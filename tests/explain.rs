//! Claims of `explain`: a difference must be larger than that between recordings of one variant, and the
//! peaks are those of `compare` and of the campaign's page.

use crate::laboratory;
use crate::laboratory::alone::alone;
use crate::laboratory::outcomes::is_lane;
use crate::laboratory::{unfolded, CommandOutput, Laboratory};
use serde_json::Value;

/// Two binaries of `unsteady.c`, the second one built with these options.
pub(super) fn binaries(lab: &Laboratory, options: &str) {
    lab.program("unsteady.c");
    lab.gcc("-g -O1 -fno-builtin -pthread unsteady.c -o one");
    lab.gcc(&format!("-g -O1 -fno-builtin -pthread {options} unsteady.c -o another-one"));
}

/// A campaign of both, in the given mode.
pub(super) fn compared(lab: &Laboratory, mode: &str, words: &str) -> CommandOutput {
    let output = lab.compare(&format!(
        "--binary one=./one --binary other=./another-one --run '{{binary}} {mode}' --warmup 0 \
         --metric cpu,max_rss {words}"
    ));
    assert_eq!(output.status, Some(0), "{mode}: {output:?}");
    output
}

pub(super) fn explained(lab: &Laboratory, words: &str) -> String {
    let output = lab.widthwise(&format!("explain {words}"));
    assert_eq!(output.status, Some(0), "{words}: {output:?}");
    unfolded(&output.stdout)
}

pub(super) fn reported(lab: &Laboratory) -> Value {
    let output = lab.widthwise("explain --heap --json");
    assert_eq!(output.status, Some(0), "{output:?}");
    output.json()
}

/// The words that claim a difference.
const CLAIMS: [&str; 11] = [
    "% less",
    "% more",
    "smaller than",
    "larger than",
    " smaller.",
    " larger.",
    "less peak memory",
    "more peak memory",
    "is due to the allocator",
    "never written to",
    "The system sees something else",
];

fn claims_nothing(text: &str, what: &str) {
    // A remark on one variant: the sampler came too late for its peak, as it may on a busy host.
    let text = text.replace("larger than any reading", "");
    for claim in CLAIMS {
        assert!(!text.contains(claim), "{what}: {claim:?} in {text}");
    }
}

fn verdicts(reported: &Value) -> Vec<(&str, &str)> {
    let all = reported["differences"].as_array().unwrap().iter();
    all.map(|one| (one["quantity"].as_str().unwrap(), one["verdict"].as_str().unwrap())).collect()
}

#[test]
fn one_binary_under_two_names_has_no_difference() {
    let _alone = alone();
    let lab = Laboratory::new();
    binaries(&lab, "");
    // `make test-all` repeats it more often.
    let times = if is_lane("more") { 10 } else { 2 };
    // One random bit decides the heap of `coin`: six recordings of each separate by chance once in two thousand times.
    for (mode, words) in [
        ("fixed", "--heap"),
        ("threads", "--heap"),
        ("addresses", "--heap"),
        ("time", "--heap"),
        ("coin", "--heap=12"),
    ] {
        for time in 1..=times {
            let what = format!("{mode}, the {time}. time");
            compared(&lab, mode, &format!("--rounds 1 {words}"));
            claims_nothing(&explained(&lab, "--heap"), &what);
            claims_nothing(&explained(&lab, "--heap other one"), &what);
            claims_nothing(&explained(&lab, ""), &what);
            let reported = reported(&lab);
            for (quantity, verdict) in verdicts(&reported) {
                assert!(!["lower", "higher"].contains(&verdict), "{what}: {quantity}: {reported:#}");
            }
            let page = lab.read(".widthwise/latest/report.html");
            assert!(!page.contains("other beside one"), "{what}: a difference is drawn");
        }
    }
}

#[test]
fn the_beginning_of_a_variants_name_is_sufficient_if_one_variant_has_it() {
    let lab = Laboratory::new();
    lab.write("one.c", "int main(void) {\n    return 0;\n}\n");
    let campaign = lab.compare("one.c --abi x86-64,i386 --flags '-O1 -g' --rounds 1 --warmup 0 --metric cpu");
    assert_eq!(campaign.status, Some(0), "{campaign:?}");
    let whole = explained(&lab, "--code 'x86-64/-O1 -g' 'i386/-O1 -g'");
    assert_eq!(explained(&lab, "--code x86-64 i386"), whole);
    lab.widthwise("explain --code x86 i386").refuses(2, &["no file or variant \"x86\""]);
}

#[test]
fn a_true_difference_is_reported_with_its_size_and_site() {
    let _alone = alone();
    let lab = Laboratory::new();
    binaries(&lab, "-DMORE=2");
    compared(&lab, "fixed", "--rounds 1 --heap");
    let reported = reported(&lab);
    assert_eq!(
        verdicts(&reported)[..2],
        [("peak_heap", "higher"), ("peak_heap_chunks", "higher")],
        "{reported:#}"
    );
    assert_eq!(
        reported["b"]["peak_bytes"].as_u64().unwrap() - reported["a"]["peak_bytes"].as_u64().unwrap(),
        400_000
    );
    assert_eq!(reported["a"]["recordings"].as_array().unwrap().len(), 6, "{reported:#}");
    let text = explained(&lab, "--heap");
    assert!(
        text.contains("is 400 kB (10 %) larger than one's: 4.00 MB → 4.40 MB, in 4 001 blocks"),
        "{text}"
    );
    assert!(
        text.contains("Each was recorded 6 times, with the same peak heap to the byte each time."),
        "{text}"
    );
    let line = lab.read("unsteady.c").lines().position(|line| line.contains("malloc(size)")).unwrap() + 1;
    assert!(text.contains(&format!("unsteady.c:{line}")), "{text}");
    assert!(lab.read(".widthwise/latest/report.html").contains("other beside one"));
}

#[test]
fn a_difference_is_compared_with_those_between_recordings_of_one_variant() {
    let _alone = alone();
    let lab = Laboratory::new();
    // The heap of threads that come and go differs by tens of per cent from run to run.
    binaries(&lab, "-DMORE=101/100");
    compared(&lab, "threads", "--rounds 1 --heap");
    claims_nothing(&explained(&lab, "--heap"), "a hundredth more");
    binaries(&lab, "-DMORE=20");
    compared(&lab, "threads", "--rounds 1 --heap");
    let reported = reported(&lab);
    assert_eq!(verdicts(&reported)[0], ("peak_heap", "higher"), "{reported:#}");
    let peak = &reported["differences"][0];
    let [low, ratio, high] = ["low", "ratio", "high"].map(|name| peak[name].as_f64().unwrap());
    assert!(1.0 < low && low < ratio && ratio < high, "{peak}");
    assert!(peak["floor"].as_f64().unwrap() > 0.01, "{peak}");
    let text = explained(&lab, "--heap");
    assert!(
        text.contains("larger than one's") && text.contains("peak heaps of one differ by up to"),
        "{text}"
    );
}

#[test]
fn a_recording_too_short_for_a_mean_is_reported_with_its_samples() {
    let _alone = alone();
    let lab = Laboratory::new();
    binaries(&lab, "-DMORE=2");
    // It allocates 4 MB and ends at once.
    compared(&lab, "fixed", "--rounds 1 --heap");
    let reported = reported(&lab);
    let samples = |side: &str| -> Vec<u64> {
        let all = reported[side]["recordings"].as_array().unwrap().iter();
        all.map(|recording| recording["samples"].as_u64().unwrap()).collect()
    };
    let fewest = samples("a").into_iter().min().unwrap();
    let words = format!("too short for a mean over time: {fewest} sample");
    let text = explained(&lab, "--heap");
    assert!(
        text.contains("What the system gives them for the heap is not compared") && text.contains(&words),
        "{text}"
    );
    assert!(!text.contains("on average") && !text.contains("The system sees"), "{text}");
    let alone = explained(&lab, "--heap one");
    assert!(alone.contains(&words) && !alone.contains("on average"), "{alone}");
}

/// Records a command without a campaign, with its logs in this folder.
fn record(lab: &Laboratory, folder: &str, words: &[&str]) {
    static PRELOAD: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let preload = PRELOAD.get_or_init(|| lab.widthwise("explain --preload").stdout.trim().to_owned());
    std::fs::create_dir_all(lab.path(folder)).unwrap();
    let mut command = std::process::Command::new(words[0]);
    command.args(&words[1..]).current_dir(lab.path("."));
    command.env("LD_PRELOAD", preload).env("WIDTHWISE_HEAP_LOG", lab.path(folder).join("log"));
    let output = laboratory::output_of(&mut command);
    assert_eq!((output.status, output.stderr.as_str()), (Some(0), ""), "{words:?}");
}

/// The logs in a folder.
fn logs(lab: &Laboratory, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(lab.path(folder)).unwrap();
    let mut all: Vec<String> = entries.map(|one| one.unwrap().path().to_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

#[test]
fn the_logs_of_a_process_tree_are_one_side_for_any_mix_of_programs() {
    let lab = Laboratory::new();
    lab.write("Makefile", "all: a b c\n%:\n\t@echo $@ | sort | tail -1; sh -c 'ls / >names'\n");
    lab.write(
        "starts.py",
        "import subprocess, sys\nfor i in range(3):\n    subprocess.run(['sh', '-c', 'ls / | sort | wc -l'], stdout=subprocess.DEVNULL)\n\
         subprocess.Popen([sys.executable, '-c', 'pass']).wait()\n",
    );
    // The children execute their program after their parent has ended.
    lab.write(
        "orphans.c",
        "#include <stdlib.h>\n#include <unistd.h>\nint main(int count, char **words) {\n  void *volatile block = malloc(1000);\n\
           if (count > 1) {\n    block = malloc(5000);\n    return block == NULL;\n  }\n  for (int i = 0; i < 3; i++) {\n\
             if (fork() == 0) {\n      while (getppid() == atoi(getenv(\"PARENT\"))) usleep(1000);\n\
             execl(words[0], words[0], \"leaf\", NULL);\n      _exit(9);\n    }\n  }\n  return block == NULL;\n}\n",
    );
    lab.gcc("-g -fno-builtin orphans.c -o orphans");
    // The program replaces the shell and has its number; `cat` waits until the last of them has ended.
    let orphans = "sh -c 'PARENT=$$ exec ./orphans' | cat";
    let programs: [(&str, &[&str]); 4] = [
        ("make", &["make", "-s", "-B", "all"]),
        ("shell", &["sh", "-c", "ls / | sort | tr a b | wc -l; (sleep 0.05; ls >names) & wait"]),
        ("python", &["/usr/bin/python3", "starts.py"]),
        ("orphans", &["sh", "-c", orphans]),
    ];
    for (name, words) in programs {
        let name = &format!("of-{name}");
        record(&lab, name, words);
        record(&lab, "again", words);
        let reported = lab.widthwise(&format!("explain --json --heap {name}")).json();
        assert!(
            reported["a"]["processes"].as_u64().unwrap() > 3 && reported["b"].is_null(),
            "{name}: {reported:#}"
        );
        let root = &reported["a"]["by_process"][0]["process"];
        let mut processes = reported["a"]["by_process"].as_array().unwrap().iter();
        let strangers: Vec<&Value> =
            processes.by_ref().filter(|one| one["parent"].is_null() && one["process"] != *root).collect();
        assert!(name == "of-orphans" || strangers.is_empty(), "{name}: {strangers:#?}");
        let (one, two) = (logs(&lab, name), logs(&lab, "again"));
        // A glob of one tree; of two; a folder beside a file.
        let files = |all: &[String]| all.join(" ");
        let of_one = lab.widthwise(&format!("explain --json --heap {}", files(&one))).json();
        assert_eq!(
            (&of_one["a"]["blocks"], &of_one["b"]),
            (&reported["a"]["blocks"], &Value::Null),
            "{name}"
        );
        let of_two = lab.widthwise(&format!("explain --json --heap {} {}", files(&one), files(&two))).json();
        assert_eq!(of_two["a"]["blocks"], reported["a"]["blocks"], "{name}");
        assert!(of_two["b"]["processes"].as_u64().unwrap() > 3, "{name}: {of_two:#}");
        let mixed = lab.widthwise(&format!("explain --json --heap {name} {}", files(&two))).json();
        assert_eq!(mixed["a"]["blocks"], reported["a"]["blocks"], "{name}");
        assert_eq!(mixed["b"]["blocks"], of_two["b"]["blocks"], "{name}");
        // Peaks of processes that do not exist at the same time do not add up to a peak.
        let text = explained(&lab, &format!("--heap {name}"));
        assert!(text.contains(&format!("The peak heaps of {name}'s processes add up to")), "{text}");
        assert!(text.contains("no moment need have had their sum"), "{text}");
        std::fs::remove_dir_all(lab.path("again")).unwrap();
    }
    let [make, shell, python] = ["of-make", "of-shell", "of-python"].map(|name| logs(&lab, name).join(" "));
    lab.widthwise(&format!("explain --heap {make} {shell} {python}")).refuses(2, &["3 recordings", "folder"]);
    lab.widthwise(&format!("explain --heap {make} x32")).refuses(2, &[]);
}

#[test]
fn single_logs_justify_no_claim_and_folders_of_several_recordings_do() {
    let lab = Laboratory::new();
    binaries(&lab, "-DMORE=2");
    for (program, folder) in [("./one", "before"), ("./another-one", "after")] {
        for _ in 0..2 {
            record(&lab, folder, &[program, "fixed"]);
        }
    }
    let log = |folder: &str| logs(&lab, folder)[0].clone();
    let text = explained(&lab, &format!("--heap {} {}", log("before"), log("after")));
    claims_nothing(&text, "one log of each");
    assert!(
        text.contains("Neither is called smaller; the spread of a variant with one recording is unknown"),
        "{text}"
    );
    let text = explained(&lab, "--heap before after");
    assert!(
        text.contains("after's peak heap") && text.contains("400 kB (10 %) larger than before's"),
        "{text}"
    );
    // A side has one program.
    let mixed = ["before", "after"].map(log);
    std::fs::create_dir(lab.path("both")).unwrap();
    for (number, log) in mixed.iter().enumerate() {
        std::fs::copy(log, lab.path("both").join(number.to_string())).unwrap();
    }
    lab.widthwise("explain --heap both").refuses(2, &["both", "of one and of another-one"]);
    std::fs::create_dir(lab.path("empty")).unwrap();
    lab.widthwise("explain --heap empty before").refuses(2, &["empty is a folder without a log"]);
}

#[test]
fn compare_explain_and_the_page_have_the_same_peaks() {
    let _alone = alone();
    let lab = Laboratory::new();
    binaries(&lab, "-DMORE=2");
    compared(&lab, "fixed", "--rounds 6 --heap --memory=1");
    let report = lab.widthwise("report --json").json();
    let reported = reported(&lab);
    for (side, name) in [("a", "one"), ("b", "other")] {
        let variant = laboratory::variant(&report, name);
        let typical = variant["typical"].as_array().unwrap().iter();
        let peak = typical.clone().find(|one| one["metric"] == "max_rss").unwrap();
        assert_eq!(reported["max_rss"][side], peak["value"], "{name}");
    }
    assert_eq!(reported["max_rss"]["verdict"], laboratory::verdict(&report, "other", "max_rss")["verdict"]);
    let page = unfolded(&lab.read(".widthwise/latest/report.html"));
    let text = explained(&lab, "--heap");
    for (name, peak) in [("one", "4.00 MB"), ("other", "4.40 MB")] {
        assert!(page.contains(&format!("<th scope=\"row\">{name}</th><td>{peak}</td>")), "{name}: {page}");
        assert!(text.contains(peak), "{text}");
    }
    // `explain` and `compare` describe max RSS in the same words.
    let says = reported["max_rss"]["says"].as_str().unwrap();
    assert!(text.contains(says), "{says}: {text}");
    assert!(
        explained(&lab, "").contains(says) || reported["max_rss"]["verdict"] == "no_difference",
        "{says}"
    );
}
