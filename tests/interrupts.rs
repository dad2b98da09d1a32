//! After the last run a signal ends all further work at once: reading logs, judging, rendering. No file is
//! left incomplete, and no run is lost.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::laboratory::{self, signal, until, Laboratory};
use crate::log_writer::{block, free, LogWriter, CHUNK};

/// Chunks of a log that takes far longer to read than a test waits.
const CHUNKS: u32 = 10_000;
/// The time that an end may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const TERM: i32 = libc::SIGTERM;

/// Packs a log of one process with this number of equal chunks, which allocate and free blocks.
fn packed_log(path: &Path) {
    let mut records = block(1, 0);
    let again = [free(0), vec![1 | 1 << 3, 0, 7]].concat();
    while records.len() + again.len() <= CHUNK - 32 {
        records.extend(&again);
    }
    let mut log = LogWriter::of_one_process();
    log.records(0, 0, 0, &records);
    let mut file = log.file();
    file[20..24].copy_from_slice(&(CHUNKS + 1).to_le_bytes());
    let chunk = file.split_off(4096 + CHUNK);
    let mut packed = zstd::Encoder::new(std::fs::File::create(path).unwrap(), 1).unwrap();
    packed.write_all(&file).unwrap();
    for index in 0..CHUNKS {
        let mut chunk = chunk.clone();
        chunk[12..16].copy_from_slice(&index.to_le_bytes());
        packed.write_all(&chunk).unwrap();
    }
    packed.finish().unwrap();
}

/// A campaign whose baseline has a recording that takes long to read.
fn campaign() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("nap.c");
    let printed = lab.compare("nap.c --abi x86-64,i386 --rounds 1 -- 1 1");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let slug: String = lab
        .archive()
        .query_row("SELECT slug FROM variant WHERE role = 'baseline'", [], |row| row.get(0))
        .unwrap();
    let folder = lab.campaign().join("heap").join(slug);
    std::fs::create_dir_all(&folder).unwrap();
    packed_log(&folder.join("log.wwheap.zst"));
    let note = r#"{"refused": null, "remarks": [], "began_ns": 0, "wall_ns": 0, "system": []}"#;
    std::fs::write(folder.join("recording.json"), note).unwrap();
    lab
}

fn started(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the command reports that it reads or unpacks a log, then sends SIGTERM. Returns its status, and the
/// rest of its standard error.
fn terminated_while_reading(command: Command) -> (ExitStatus, String) {
    let mut child = started(command);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !(line.starts_with("unpacking ") || line.starts_with("reading ")) {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended before it read the log for a second");
    }
    terminated(child, stderr)
}

fn terminated(mut child: Child, mut stderr: impl Read) -> (ExitStatus, String) {
    let sent = Instant::now();
    signal(&child, TERM);
    let mut ended = child.try_wait().unwrap();
    while ended.is_none() && sent.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
        ended = child.try_wait().unwrap();
    }
    if ended.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    (ended.unwrap_or_else(|| panic!("it did not end in {PATIENCE:?}: {rest}")), rest)
}

/// Every file below a folder whose name marks it as incomplete, or is empty.
fn left_over(folder: &Path) -> Vec<String> {
    let listed =
        Command::new("find").arg(folder).args(["-name", "*.partial", "-o", "-name", ".tmp*"]).output();
    String::from_utf8(listed.unwrap().stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn sigterm_ends_explain_and_report_while_they_read_a_log() {
    let lab = campaign();
    let log = std::fs::read_dir(lab.campaign().join("heap")).unwrap().next().unwrap().unwrap().path();
    let log = log.join("log.wwheap.zst");
    for words in [
        vec!["explain", log.to_str().unwrap(), "--html=out.html"],
        vec!["explain", "--heap", "x86-64", "--html=out.html"],
        vec!["report", "--html=out.html"],
    ] {
        let (status, rest) = terminated_while_reading(lab.command(&words));
        assert_eq!(status.signal(), Some(TERM), "{words:?}: {status:?}: {rest}");
        assert!(!lab.path("out.html").exists(), "{words:?}");
        assert_eq!(left_over(&lab.path(".")), Vec::<String>::new(), "{words:?}");
    }
}

#[test]
fn sigterm_ends_compare_while_it_reads_a_log_for_the_page() {
    let lab = campaign();
    let page = lab.campaign().join("report.html");
    std::fs::write(&page, "the page of before").unwrap();
    let (status, rest) = terminated_while_reading(lab.command("compare --resume .widthwise/latest"));
    assert_eq!(status.code(), Some(130), "{status:?}: {rest}");
    let reported: Vec<&str> = rest.lines().filter(|line| line.contains("interrupted")).collect();
    assert_eq!(reported.len(), 1, "{rest}");
    let name = lab.campaign().file_name().unwrap().to_str().unwrap().to_owned();
    assert!(reported[0].contains("`widthwise report ") && reported[0].contains(&name), "{rest}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "the page of before");
    assert_eq!(left_over(&lab.path(".")), Vec::<String>::new());
}

#[test]
fn sigterm_ends_scale_while_it_summarises_a_long_campaign() {
    let lab = Laboratory::new();
    lab.program("nap.c");
    let printed = lab.widthwise(
        "scale nap.c --abi x86-64 --run '{build}/nap 1 1' --mode jobs --processes 1 --rounds 2 --warmup 0",
    );
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let folder = lab.campaign();
    // Its runs, fourteen thousand times.
    let archive = rusqlite::Connection::open(folder.join("campaign.sqlite")).unwrap();
    archive
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 15000)
             INSERT INTO round (number, session, kind, planned, finished)
             SELECT i, session, kind, planned, 1 FROM round, n WHERE number = (SELECT max(round) FROM group_run WHERE purpose = 'timed');
             WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 15000)
             INSERT INTO group_run (round, position, purpose, variant, mode, placement, members, sound, elapsed_ns, cpu_ns,
                                  record)
             SELECT i, position, purpose, variant, mode, placement, members, sound, elapsed_ns, cpu_ns,
                    json_set(record, '$.round', i)
             FROM group_run, n WHERE group_run.round = (SELECT max(round) FROM group_run WHERE purpose = 'timed' AND round < 1000)",
        )
        .unwrap();
    drop(archive);
    let page = folder.join("report.html");
    std::fs::write(&page, "the page of before").unwrap();
    let mut child = started(lab.command("scale --resume .widthwise/latest"));
    let stderr = child.stderr.take().unwrap();
    // During the builds, which come before, a signal ends the campaign without a report.
    until("a campaign that is measured or summarised", || has_launcher(&child));
    let (status, rest) = terminated(child, stderr);
    assert_eq!(status.code(), Some(130), "{status:?}: {rest}");
    assert!(rest.contains("`widthwise report "), "{rest}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "the page of before");
    assert_eq!(left_over(&lab.path(".")), Vec::<String>::new());
}

/// Whether a process has started what starts its runs, after the builds.
fn has_launcher(child: &Child) -> bool {
    let pid = child.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let name = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    children.split_whitespace().any(|child| name(child).trim() == "ww-launcher")
}

/// Builds may take minutes. The shells of their commands, `make` and the compilers end with the campaign.
#[test]
fn sigterm_during_builds_ends_the_processes_of_all_of_them() {
    let lab = Laboratory::new();
    let project = lab.path("project");
    std::fs::create_dir(&project).unwrap();
    let begun = |abi: &str| lab.path(&format!("begun-{abi}"));
    let makefile = format!("all:\n\techo $$$$ >{}; sleep 600; true\n", begun("$(ABI)").display());
    std::fs::write(project.join("Makefile"), makefile).unwrap();
    let child = started(lab.command(
        "compare ./project --abi x86-64,i386 --jobs 2 --build 'make ABI={abi}' --run {build}/none --rounds 1",
    ));
    let pid = |abi| std::fs::read_to_string(begun(abi)).ok().and_then(|text| text.trim().parse::<i32>().ok());
    let recipes = || Some([pid("x86-64")?, pid("i386")?]);
    until("recipes of both builds that run", || recipes().is_some());
    let recipes = recipes().unwrap();
    let mut child = child;
    let stderr = child.stderr.take().unwrap();
    let (status, printed) = terminated(child, stderr);
    assert_eq!(status.code(), Some(130), "{printed}");
    assert!(printed.contains("interrupted while building: no run was made"), "{printed}");
    until("the end of the recipes", || {
        recipes.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    });
}

/// A comparison whose option of this name has a command that waits in its first run until the test lets it go, and in
/// a process group of its own.
struct Waiting {
    lab: Laboratory,
    child: Child,
}

impl Waiting {
    fn of(option: &str, shell: &[&str]) -> Waiting {
        let lab = Laboratory::new();
        lab.program("nap.c");
        let (begun, go) = (lab.path("begun"), lab.path("go"));
        let text = format!(
            "echo $$ >{0}.text; [ -e {1} ] || {{ mv {0}.text {0}; until [ -e {1} ]; do sleep 0.02; done; }}; cat",
            begun.display(),
            go.display()
        );
        let words = ["compare", "nap.c", "--abi", "x86-64", "--rounds", "4", option, &text, "--", "1", "1"];
        let campaign = lab.command(words.as_slice());
        let mut command = match shell {
            [] => campaign,
            [shell, words @ ..] => {
                let mut command = Command::new(shell);
                command.args(words).arg(campaign.get_program()).args(campaign.get_args());
                command.current_dir(campaign.get_current_dir().unwrap());
                command
            }
        };
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = started(command);
        until("a command that waits", || begun.exists());
        Waiting { lab, child }
    }

    /// As the terminal and the shell do.
    fn signal_group(&self, number: i32) {
        // SAFETY: no pointers; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(-(self.child.id() as i32), number) }, 0);
    }

    fn ended(self) -> (Laboratory, Option<i32>, String) {
        let output = self.child.wait_with_output().unwrap();
        (self.lab, output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn the_first_ctrl_c_leaves_setup_and_filter_running_and_the_campaign_can_be_resumed() {
    for option in ["--setup", "--teardown", "--filter"] {
        let waiting = Waiting::of(option, &[]);
        waiting.signal_group(libc::SIGINT);
        waiting.lab.write("go", "");
        let (lab, status, printed) = waiting.ended();
        assert_eq!(status, Some(130), "{option}: {printed}");
        let failed =
            "SELECT (SELECT count(*) FROM run WHERE ended <> 'done') + (SELECT count(*) FROM variant_status)";
        assert_eq!(laboratory::count(&lab.archive(), failed), 0, "{option}: {printed}");
        let resumed = lab.widthwise("compare --resume .widthwise/latest");
        assert_eq!(resumed.status, Some(0), "{option}: {resumed:?}");
    }
}

#[test]
fn the_second_ctrl_c_ends_setup_and_filter_which_are_no_failures() {
    for option in ["--setup", "--filter"] {
        let waiting = Waiting::of(option, &[]);
        let command = waiting.lab.read("begun").trim().parse::<i32>().unwrap();
        waiting.signal_group(libc::SIGINT);
        // Two that arrive together are one.
        let heard = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", waiting.child.id())).unwrap();
            let pending = status.lines().filter(|line| line.contains("Pnd:"));
            pending
                .flat_map(str::split_whitespace)
                .all(|word| word.trim_matches('0').is_empty() || word.ends_with(':'))
        };
        until("a signal that was heard", heard);
        waiting.signal_group(libc::SIGINT);
        until("the end of the command", || !Path::new(&format!("/proc/{command}")).exists());
        let (lab, status, printed) = waiting.ended();
        assert_eq!(status, Some(130), "{option}: {printed}");
        lab.write("go", "");
        let resumed = lab.widthwise("compare --resume .widthwise/latest");
        assert_eq!(resumed.status, Some(0), "{option}: {resumed:?}");
    }
}

/// As nohup(1) starts it.
#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let waiting = Waiting::of("--setup", &["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"]);
    waiting.signal_group(libc::SIGHUP);
    waiting.lab.write("go", "");
    let (_lab, status, printed) = waiting.ended();
    assert_eq!(status, Some(0), "{printed}");
    assert!(!printed.contains("ending after"), "{printed}");
}
