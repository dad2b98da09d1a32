//! After the last run a signal ends all further work at once: reading logs, judging, rendering. No file is
//! left incomplete, and no run is lost.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::laboratory::{signal, until, Laboratory};
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

/// A build may take minutes. The shell of its command, `make` and the compiler end with the campaign.
#[test]
fn sigterm_during_a_build_ends_its_processes_too() {
    let lab = Laboratory::new();
    let project = lab.path("project");
    std::fs::create_dir(&project).unwrap();
    let begun = lab.path("begun");
    let makefile = format!("all:\n\techo $$$$ >{}; sleep 600; true\n", begun.display());
    std::fs::write(project.join("Makefile"), makefile).unwrap();
    let child =
        started(lab.command("compare ./project --abi x86-64 --build make --run {build}/none --rounds 1"));
    let pid = || std::fs::read_to_string(&begun).ok().and_then(|text| text.trim().parse::<i32>().ok());
    until("a recipe of the build that runs", || pid().is_some());
    let mut child = child;
    let stderr = child.stderr.take().unwrap();
    let (status, printed) = terminated(child, stderr);
    assert_eq!(status.code(), Some(130), "{printed}");
    assert!(printed.contains("interrupted while building: no run was made"), "{printed}");
    let recipe = pid().unwrap();
    until("the end of the recipe", || !Path::new(&format!("/proc/{recipe}")).exists());
}
