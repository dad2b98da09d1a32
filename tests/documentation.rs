//! Runs the commands of the documentation, line by line.
//!
//! Three things differ from what a reader does. Lines with `make` and `cargo` are only checked, since they would
//! repeat these tests, or the benchmarks. Every `compare` and `scale` has a time limit of a fifth of a second, in place of
//! its own if it has one, one round of memory, one recording of the heap, and one operation of the micro suite. Programs are given
//! a tenth of their work, and hyperfine two runs. The duration of campaigns is not tested.
//!
//! `make test` types the commands of the README, and `make test-all` those of the other pages: what fetches or builds packages in the
//! part `documentation`, all others in the part `more`.

use std::path::PathBuf;
use std::process::Command;

use crate::laboratory::fixture::Fixture;
use crate::laboratory::outcomes::{is_lane, retried, skipped};
use crate::laboratory::{here, output_of, repository, CommandOutput, Laboratory};

/// A block of code in a page.
struct Block {
    page: String,
    line: usize,
    text: String,
}

/// The pages of a folder of the repository.
fn pages(folder: &str) -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(repository().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

/// The blocks of that language.
fn blocks(page: &PathBuf, language: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Option<Block>> = None;
    for (at, line) in std::fs::read_to_string(page).unwrap().lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(word)) => {
                let page = page.file_name().unwrap().to_str().unwrap().to_owned();
                open = Some((word == language).then_some(Block { page, line: at + 1, text: String::new() }));
            }
            (Some(_), Some(_)) => blocks.extend(open.take().flatten()),
            (Some(Some(block)), None) => block.text += &format!("{line}\n"),
            _ => {}
        }
    }
    blocks
}

/// The commands of a block: one for each line, unless it continues on the next.
fn commands(text: &str) -> Vec<String> {
    let mut commands = vec![String::new()];
    for line in text.lines() {
        let command = commands.last_mut().unwrap();
        command.push_str(line);
        if line.ends_with('\\') || line.ends_with('|') {
            command.push('\n');
        } else {
            commands.push(String::new());
        }
    }
    commands.retain(|command| !command.trim().is_empty() && !command.starts_with('#'));
    commands
}

/// The command with little time, and little work for the programs.
fn hurried(command: &str) -> String {
    let mut words: Vec<String> = command.split(' ').map(with_less_work).collect();
    if let Some(at) = words.iter().position(|word| word == "--max-time") {
        words.drain(at..at + 2);
    }
    if words[0] == "hyperfine" {
        if let Some(at) = words.iter().position(|word| word == "--runs") {
            words[at + 1] = "2".to_owned();
        }
    }
    let verbs = ["widthwise compare", "widthwise scale"];
    if verbs.iter().any(|verb| command.contains(verb)) {
        words.iter_mut().for_each(once);
    }
    let mut hurried = words.join(" ");
    if command.contains("widthwise scale") && !command.contains("--memory") && !command.contains("--resume") {
        hurried = hurried.replace("widthwise scale", "widthwise scale --memory=1");
    }
    for verb in verbs {
        hurried = hurried.replace(verb, &format!("{verb} --max-time 200ms"));
    }
    hurried
}

/// What a campaign does several times is done once.
fn once(word: &mut String) {
    if let Some(option @ ("--memory" | "--heap")) = word.split('=').next() {
        *word = format!("{option}=1");
    }
}

/// A tenth of a number of five digits or more, a fifth of mebibytes, before a quote as well; other words as they are.
fn with_less_work(word: &str) -> String {
    let end = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let (digits, rest) = word.split_at(end);
    let unit = rest.trim_end_matches('\'');
    match digits.parse::<u64>() {
        Ok(work) if work >= 10_000 && unit.is_empty() => format!("{}{rest}", work / 10),
        Ok(work) if work >= 50 && unit == "M" => format!("{}{rest}", work / 5),
        _ => word.to_owned(),
    }
}

/// A laboratory with every file that the documentation names.
fn library() -> Laboratory {
    static LIBRARY: Fixture = Fixture::new();
    let lab = Laboratory::new();
    lab.copy(&LIBRARY.folder(&lab, fill).join("."), "");
    lab
}

fn fill(lab: &Laboratory) {
    std::fs::create_dir(lab.path("bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_widthwise"), lab.path("bin/widthwise")).unwrap();
    lab.write(
        "tree.cpp",
        "#include <cstdio>\n#include <cstdlib>\n#include <map>\n\
         int main(int, char **arguments) {\n  std::map<unsigned, unsigned> tree;\n  unsigned key = 1;\n\
         for (long n = atol(arguments[1]); n > 0; n--) tree[key = key * 1664525 + 1013904223]++;\n\
         printf(\"%zu nodes\\n\", tree.size());\n}\n",
    );
    lab.gcc("-x c++ -O2 -g tree.cpp -o a64 -lstdc++");
    lab.gcc("-x c++ -O2 -g -m32 tree.cpp -o a32 -lstdc++");
    lab.write("program.c", "int main(void) { return sizeof(void *) != 4; }\n");
    lab.gcc("-mx32 -idirafter /usr/include/x86_64-linux-gnu program.c -o program");
    for program in [
        "bench/programs/chase.c",
        "bench/programs/loop.c",
        "bench/programs/nothing.c",
        "bench/programs/start.c",
        "bench/programs/parent.c",
        "tests/programs/allocate.c",
    ] {
        let source = repository().join(program);
        let name = source.file_stem().unwrap().to_str().unwrap();
        lab.gcc(&["-O2", source.to_str().unwrap(), "-o", name]);
    }
    let workers = repository().join("tests/programs/workers.c");
    let header = repository().join("runtime/marks");
    lab.gcc(&format!("-O2 -I{} {} -o workers -pthread", header.display(), workers.display()));
    lab.write("text", "what gzip and sort read\n");
    // The slowed programs need a calibration; here it is sufficient that they run.
    for copy in ["loop-copy", "loop-slowed-1010", "loop-slowed-1030"] {
        lab.copy(&lab.path("loop"), copy);
    }
    // The program of the heap recorder's section, and the scripts that start it under each recorder.
    let trees = repository().join("bench/programs/trees.cc");
    lab.gcc(&format!("-O2 -g {} -o trees -lstdc++", trees.display()));
    for name in ["alone", "without-stacks", "with-stacks", "heaptrack"] {
        lab.script(name, "#!/bin/sh\nexec ./trees 1\n");
    }
    // Its other program, a compiler, would read for half a minute; here it is sufficient that it runs.
    let compiler = Command::new("g++").arg("-print-prog-name=cc1plus").output().unwrap().stdout;
    let compiler = String::from_utf8(compiler).unwrap();
    std::os::unix::fs::symlink(compiler.trim(), lab.path("cc1plus")).unwrap();
    lab.write("unit.ii", "int main() { return 0; }\n");
    // The simulation library's model and its peer's take half a minute; here it is sufficient that they run.
    for name in ["mm1", "mm1-simpy"] {
        lab.script(name, "#!/bin/sh\nexec ./nothing\n");
    }
    // The window library's program fills gigabytes; `make test-all PARTS=bench-quick` runs it.
    for abi in ["x86-64", "i386"] {
        lab.script(&format!("measure-{abi}"), "#!/bin/sh\nexec ./nothing\n");
    }
    // As `make bench` builds them for both ABIs.
    let x32 = "-mx32 -idirafter /usr/include/x86_64-linux-gnu";
    for (abi, options) in [("x86-64", ""), ("x32", x32)] {
        for (source, more) in [
            ("calls.c", "-pthread"),
            ("every_call.c", ""),
            ("nothing.c", "-static"),
            ("hello.cc", "-lstdc++"),
            ("storm.cc", "-lstdc++"),
        ] {
            let name = source.split('.').next().unwrap();
            let source = repository().join("bench/programs").join(source);
            lab.gcc(&format!("-O2 {options} {} {more} -o {name}-{abi}", source.display()));
        }
    }
    lab.copy(&lab.path("nothing-x32"), "measure-x32");
    let runtime = widthwise_x32run::place_in(&lab.path("bin")).unwrap();
    std::os::unix::fs::symlink(runtime, lab.path("bin/x32run")).unwrap();
    lab.copy(&repository().join("experiments"), "experiments");
    std::fs::create_dir(lab.path("workloads")).unwrap();
    lab.copy(&repository().join("workloads/reco"), "workloads/reco");
    lab.copy(&repository().join("experiments/lua/binary-trees.lua"), "bench.lua");
    for project in ["make", "configure", "cmake", "meson"] {
        lab.copy(&here("projects").join(project), &format!("{project}-project"));
    }
}

fn run(lab: &Laboratory, command: &str) -> CommandOutput {
    let path = format!("{}:{}", lab.path("bin").display(), std::env::var("PATH").unwrap());
    output_of(Command::new("sh").args(["-e", "-c", command]).current_dir(lab.path("")).env("PATH", path))
}

/// Prepares what the command needs.
fn prepare(lab: &Laboratory, command: &str) {
    if command.contains("./lua-5.4") && !lab.path("lua-5.4").exists() {
        // Upstream's source: Debian's without Debian's patches.
        let fetch = "widthwise compare debian:lua5.4 --build true --run true --abi x86-64 --rounds 6 --cpus any\n\
                     cp -r .widthwise/debian/sources/lua5.4/*/ lua-5.4\ncd lua-5.4\n\
                     for name in $(tac debian/patches/series); do patch -s -R -p1 <debian/patches/$name; done";
        let printed = asking_mirrors(|| run(lab, fetch));
        assert_eq!(printed.status, Some(0), "{printed:?}");
    }
    // A campaign that a page uses as its example.
    if let Some((_, rest)) = command.split_once(".widthwise/2") {
        let folder = format!(".widthwise/2{}", rest.split([' ', '/', '\'']).next().unwrap());
        if !lab.path(&folder).exists() {
            let campaign = "widthwise compare --cpus any --binary x86-64=./a64 --binary i386=./a32 --run '{binary} 1000' --rounds 6";
            let printed = run(lab, &format!("{campaign}\ncp -r .widthwise/latest/ {folder}"));
            assert_eq!(printed.status, Some(0), "{printed:?}");
        }
    }
}

/// Runs a command that uses Debian's mirrors, and repeats it once if these failed, which is reported and counted. Any other
/// failure is a failure.
fn asking_mirrors(attempt: impl Fn() -> CommandOutput) -> CommandOutput {
    let first = attempt();
    match network_failure(&first) {
        Some(reason) => {
            retried(&format!("Debian's mirrors: {reason}"));
            attempt()
        }
        None => first,
    }
}

/// The line about a server that failed or could not be reached, if there is one.
fn network_failure(printed: &CommandOutput) -> Option<String> {
    let signs = [
        "Failed to fetch",
        "Temporary failure",
        "Could not connect",
        "Mirror sync in progress",
        "Hash Sum mismatch",
    ];
    let lines = printed.stderr.lines().chain(printed.stdout.lines());
    let mut found = lines.filter(|line| signs.iter().any(|sign| line.contains(sign)));
    (printed.status != Some(0)).then(|| found.next().map(str::to_owned)).flatten()
}

/// Whether a command fetches and builds a package, or builds and measures a real program's folder: minutes together.
fn takes_minutes(command: &str) -> bool {
    ["debian:", "experiments/", "./lua-5.4", "workloads/reco"].iter().any(|what| command.contains(what))
}

/// Runs every command of these pages that is `wanted`, and fails with a list of those that fail.
fn typed(pages: Vec<PathBuf>, wanted: fn(&str) -> bool) {
    let lab = library();
    let mut failures = Vec::new();
    let mut count = 0;
    for block in pages.iter().flat_map(|page| blocks(page, "sh")) {
        for command in commands(&block.text).into_iter().filter(|command| wanted(command)) {
            count += 1;
            let began = std::time::Instant::now();
            let words: Vec<&str> = command
                .split('#')
                .next()
                .unwrap()
                .split_whitespace()
                .take_while(|word| *word != "--")
                .collect();
            let printed = if words[0] == "make" {
                output_of(Command::new("make").arg("-n").args(&words[1..]).current_dir(repository()))
            } else if words[0] == "cargo" {
                let package = words.iter().skip_while(|word| **word != "--package").nth(1).unwrap();
                output_of(Command::new("cargo").args(["pkgid", package]).current_dir(repository()))
            } else {
                prepare(&lab, &command);
                let attempt = || run(&lab, &hurried(&command));
                if takes_minutes(&command) {
                    asking_mirrors(attempt)
                } else {
                    attempt()
                }
            };
            // Shown by `--show-output`: which commands take this test's time.
            println!("{:.1} s: {command}", began.elapsed().as_secs_f64());
            if printed.status != Some(0) {
                failures.push(format!(
                    "{}:{}: {command}\n{}\n{}",
                    block.page, block.line, printed.stderr, printed.stdout
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(count > 0, "there is nothing to type");
}

/// The page whose commands are half of all.
const BENCHMARKS: &str = "benchmarks.md";

#[test]
fn the_commands_of_the_readme_work() {
    typed(vec![repository().join("README.md")], |command| !takes_minutes(command));
}

/// `make bench` runs them, on tools that `make test` does not install.
#[test]
fn the_commands_of_the_benchmarks_work() {
    if !is_lane("documentation") {
        return skipped("minutes, and tools of `make bench`: `make test-all PARTS=documentation` runs them");
    }
    typed(vec![repository().join("docs").join(BENCHMARKS)], |command| !takes_minutes(command));
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn the_commands_of_the_documentation_work() {
    let others = pages("docs").into_iter().filter(|page| !page.ends_with(BENCHMARKS));
    typed(others.collect(), |command| !takes_minutes(command));
}

#[test]
fn the_commands_of_the_documentation_that_take_minutes_work() {
    if !is_lane("documentation") {
        return skipped("minutes: `make test-all PARTS=documentation` fetches and builds packages");
    }
    let readme = vec![repository().join("README.md")];
    typed([readme, pages("docs")].concat(), takes_minutes);
}

#[test]
fn the_queries_of_the_documentation_work() {
    let lab = library();
    let printed = lab.compare("--binary x86-64=./a64 --binary i386=./a32 --run '{binary} 1000' --rounds 6");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let archive = lab.archive();
    let mut asked = 0;
    for block in pages("docs").iter().flat_map(|page| blocks(page, "sql")) {
        let mut statement = archive
            .prepare(&block.text)
            .unwrap_or_else(|error| panic!("{}:{}: {error}", block.page, block.line));
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            row.get_ref(0).unwrap();
        }
        asked += 1;
    }
    assert!(asked >= 3, "only {asked} questions");
}

/// A campaign has other runs, too: to warm up, with one event and half of them, of memory, and of an interrupted round.
#[test]
fn the_query_for_elapsed_times_averages_the_runs_that_the_report_uses() {
    let lab = Laboratory::new();
    let workers = repository().join("tests/programs/workers.c");
    let header = repository().join("runtime/marks");
    lab.gcc(&format!("-O2 -I{} {} -o workers -pthread", header.display(), workers.display()));
    let words = "scale --binary w=./workers --run '{binary} fork {processes} {events} event=3000' --processes 1,2 --events 8 \
                 --rounds 3 --warmup 1 --memory=1";
    assert_eq!(lab.widthwise(words).status, Some(0));
    // Of a campaign that was killed in its last timed round.
    let killed =
        "UPDATE round SET finished = 0 WHERE number = (SELECT max(number) FROM round WHERE kind = 'timed')";
    let archive = rusqlite::Connection::open(lab.campaign().join("campaign.sqlite")).unwrap();
    assert_eq!(archive.execute(killed, []).unwrap(), 1);
    drop(archive);
    let page = repository().join("docs/scale.md");
    let all: Vec<String> = blocks(&page, "sh").iter().flat_map(|block| commands(&block.text)).collect();
    let query = all.iter().find(|command| command.contains("avg(elapsed_ns)")).expect("the query");
    let printed = run(&lab, query);
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let report = lab.widthwise("report --json").json();
    let kinds: Vec<&str> =
        report["rounds"].as_array().unwrap().iter().filter_map(|round| round["kind"].as_str()).collect();
    assert!(
        ["warmup", "timed", "memory", "interrupted"].iter().all(|kind| kinds.contains(kind)),
        "{kinds:?}"
    );
    let runs = report["runs"].as_array().unwrap();
    let mut cells = 0;
    for line in printed.stdout.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [variant, mode, placement, processes, seconds] = fields[..] else { panic!("{line}") };
        let is_used = |run: &&serde_json::Value| {
            let cell = &run["cell"];
            let is_of_cell =
                cell["variant"] == variant && cell["mode"] == mode && cell["placement"] == placement;
            let round = run["round"].as_u64().unwrap() as usize;
            is_of_cell
                && cell["processes"].as_u64() == processes.parse().ok()
                && run["purpose"] == "timed"
                && kinds[round] == "timed"
        };
        let used: Vec<f64> =
            runs.iter().filter(is_used).map(|run| run["elapsed_ns"].as_f64().unwrap() / 1e9).collect();
        let mean = used.iter().sum::<f64>() / used.len() as f64;
        assert_eq!(used.len(), 2, "{line}");
        assert!((seconds.parse::<f64>().unwrap() / mean - 1.0).abs() < 1e-9, "{line}: {used:?}");
        cells += 1;
    }
    // One child and two, and one as the A/A control.
    assert_eq!(cells, 3, "{printed:?}");
}

#[test]
fn the_links_of_the_documentation_lead_to_files() {
    let mut missing = Vec::new();
    for page in pages(".").into_iter().chain(pages("docs")) {
        let text = std::fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            if !file.is_empty() && !file.contains("://") && !page.with_file_name(file).exists() {
                missing.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
}

/// A program's seccomp filter has to allow them.
#[test]
fn the_documentation_lists_every_system_call_of_the_heap_recorder() {
    // In place of the program's own call of the function.
    const OF_HOOKS: [&str; 6] = ["close_range", "dup2", "dup3", "execveat", "exit_group", "mprotect"];
    let page = std::fs::read_to_string(repository().join("docs/heap.md")).unwrap();
    let listed = page.split_once("the recorder's system calls:").expect("the list").1;
    let listed = listed.split_once("Strict mode").expect("its end").0;
    let listed: Vec<&str> = listed.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let mut found = 0;
    for file in std::fs::read_dir(repository().join("runtime/heap")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for behind in text.split("SYS_").skip(1) {
            let call = behind.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap();
            assert!(listed.contains(&call) || OF_HOOKS.contains(&call), "{call} is not in docs/heap.md");
            found += 1;
        }
    }
    assert!(found > 20, "{found}");
}

#[test]
fn the_flags_in_the_documentation_exist() {
    let lab = Laboratory::new();
    let help = |verb: &str| {
        let printed = lab.widthwise(&[verb, "--help"]);
        assert_eq!(printed.status, Some(0), "{printed:?}");
        printed.stdout
    };
    let flags = |text: &str| -> Vec<String> {
        let of_a_flag = |c: char| c.is_ascii_lowercase() || c == '-';
        text.split("--")
            .skip(1)
            .map(|rest| rest.split(|c| !of_a_flag(c)).next().unwrap().trim_end_matches('-').to_owned())
            .filter(|name| !name.is_empty())
            .collect()
    };
    let known = flags(&(help("compare") + &help("report") + &help("doctor")));
    let page = std::fs::read_to_string(repository().join("docs/compare.md")).unwrap();
    // Flags of other programs are in code blocks and in quotes.
    let prose: String = page.split("```").step_by(2).collect();
    for flag in prose.split('`').skip(1).step_by(2).filter(|code| code.starts_with("--")).flat_map(flags) {
        assert!(known.contains(&flag), "docs/compare.md names --{flag}, which there is not");
    }
}

#[test]
fn only_a_failed_mirror_is_retried() {
    let tries = |status: i32, stderr: &str| {
        let printed =
            CommandOutput { status: Some(status), stdout: String::new(), stderr: stderr.to_owned() };
        network_failure(&printed).is_some()
    };
    assert!(tries(1, "error: Failed to fetch http://x/y  Hash Sum mismatch"));
    assert!(!tries(0, "warning: Failed to fetch http://x/y"));
    assert!(!tries(1, "error: the build failed"));
}

#[test]
fn hurrying_changes_only_time_limits_and_work() {
    assert_eq!(hurried("widthwise doctor"), "widthwise doctor");
    assert_eq!(hurried("widthwise compare a.c -- 1"), "widthwise compare --max-time 200ms a.c -- 1");
    assert_eq!(
        hurried("widthwise compare a.c --max-time 1m --precision 2%"),
        "widthwise compare --max-time 200ms a.c --precision 2%"
    );
    assert_eq!(
        hurried("widthwise scale --memory=6 --run '{binary} 400000 --conditions 50M' .widthwise/20261121"),
        "widthwise scale --max-time 200ms --memory=1 --run '{binary} 40000 --conditions 10M' .widthwise/20261121"
    );
    assert_eq!(hurried("widthwise scale a.c"), "widthwise scale --max-time 200ms --memory=1 a.c");
    assert_eq!(
        hurried("widthwise compare micro:all --memory --heap=4 --rounds 400"),
        "widthwise compare --max-time 200ms micro:all --memory=1 --heap=1 --rounds 400"
    );
    assert_eq!(hurried("widthwise explain --heap"), "widthwise explain --heap");
    assert_eq!(hurried("hyperfine -N --runs 30 './loop 62354000'"), "hyperfine -N --runs 2 './loop 6235400'");
    assert_eq!(commands("# x\na \\\n b\n\nc |\n d\n"), ["a \\\n b", "c |\n d"]);
}
