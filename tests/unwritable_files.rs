//! Folders, files, disks and streams that cannot be written.

use crate::damaged_campaigns::with_campaign;
use crate::failing_programs::with_programs;
use crate::laboratory;
use crate::laboratory::{count, is_root, open, output_of, Laboratory};
use std::path::Path;
use std::process::Command;

#[test]
fn a_file_in_place_of_the_folder_of_campaigns_is_refused() {
    let lab = with_programs();
    lab.write("file", "");
    lab.widthwise("compare tells.c --archive file")
        .refuses(2, &["file: ", "`--archive` names another folder"]);
    lab.widthwise("compare tells.c --archive /proc/nowhere").refuses(2, &["/proc/nowhere: ", "--archive"]);
}

#[test]
fn a_current_folder_that_was_deleted_is_named() {
    let lab = Laboratory::new();
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" compare /bin/true";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_widthwise")]).current_dir(lab.path(""));
    output_of(&mut shell).refuses(1, &["the current folder: ", "change to one that exists"]);
}

#[test]
fn a_read_only_folder_is_refused_and_reports_can_be_written_elsewhere() {
    let lab = with_campaign();
    let owned = lab.path("owned");
    std::fs::create_dir(&owned).unwrap();
    lab.write(
        "widthwise.toml",
        "[program]\nsource = \"tells.c\"\n[run]\ncpus = \"any\"\n[measure]\nrounds = 6\n",
    );
    // The user `nobody` owns everything except the tested folder.
    let mut command = lab.without_rights("compare widthwise.toml --archive owned");
    forbid(&owned);
    let printed = output_of(&mut command);
    printed.refuses(2, &["owned", "Permission denied", "--archive"]);

    let campaign = lab.campaign();
    forbid(&campaign);
    let report = laboratory::output_of(&mut lab_report(&lab, &["report"]));
    assert_eq!(report.status, Some(0), "{report:?}");
    let inside = format!("{}/out.html", campaign.display());
    laboratory::output_of(&mut lab_report(&lab, &["report", &format!("--html={inside}")]))
        .refuses(2, &["out.html", "Permission denied"]);
    allow(&campaign);
    allow(&owned);
    drop(open(&campaign));
}

/// As the user `nobody`, without changing owners again.
fn lab_report(lab: &Laboratory, arguments: &[&str]) -> Command {
    if !is_root() {
        return lab.command(arguments);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(lab.path("widthwise-of-nobody"))
        .args(arguments)
        .current_dir(lab.path(""));
    command
}

fn mode(path: &Path, mode: &str) {
    assert!(Command::new("chmod").arg(mode).arg(path).status().unwrap().success());
}

/// Removes the write permission of every user.
fn forbid(path: &Path) {
    mode(path, "555");
}

fn allow(path: &Path) {
    mode(path, "755");
}

#[test]
fn a_full_disk_stops_the_campaign_cleanly_and_resume_continues_when_there_is_room() {
    let lab = with_programs();
    lab.gcc("-o sound tells.c");
    lab.write(
        "trial.sh",
        "set -u\nmkdir small\nmount -t tmpfs -o size=4m tmpfs small\n\
         \"$WIDTHWISE\" compare --archive small --cpus any --binary sound=./sound --run '{binary} compiler' --rounds 1 >/dev/null\n\
         free=$(df --output=avail -k small | tail -n 1)\n\
         head -c $(((free - 400) * 1024)) /dev/zero >small/ballast\n\
         \"$WIDTHWISE\" compare --archive small --cpus any --binary sound=./sound --run '{binary} compiler' --rounds 60 \
         >full.out 2>full.err; echo $? >full.status\n\
         cp -r small/latest/ kept; ls -l small small/latest/ >listing\n\
         rm small/ballast\n\
         \"$WIDTHWISE\" compare --resume small/latest >resumed.out 2>resumed.err; echo $? >resumed.status\n\
         cp -r small/latest/ whole\n",
    );
    // A private mount, which ends with the last process that uses it.
    let mut command = Command::new("unshare");
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "sh", "trial.sh"]).env("WIDTHWISE", env!("CARGO_BIN_EXE_widthwise"));
    let trial = output_of(command.current_dir(lab.path("")));
    assert_eq!(trial.status, Some(0), "{trial:?}");

    let full = lab.read("full.err");
    assert_eq!(lab.read("full.status"), "1\n", "{full}");
    assert_eq!(full.lines().filter(|line| line.starts_with("error:")).count(), 1, "{full}");
    assert!(full.contains("the disk is full") && full.contains("--resume "), "{full}");
    assert!(!full.contains("panicked"), "{full}");
    let kept = open(&lab.path("kept"));
    let runs = count(&kept, "SELECT count(*) FROM run");
    assert!(runs > 0, "{}", lab.read("listing"));
    assert!(count(&kept, "SELECT count(*) FROM rounds WHERE kind = 'timed'") < 60);

    assert_eq!(lab.read("resumed.status"), "0\n", "{}", lab.read("resumed.err"));
    let whole = open(&lab.path("whole"));
    assert_eq!(count(&whole, "SELECT count(*) FROM rounds WHERE kind = 'timed'"), 60);
    let question = format!("SELECT count(*) FROM run WHERE id <= {runs}");
    assert_eq!(count(&whole, &question), runs, "runs that had been finished are gone");
}

#[test]
fn a_limit_on_file_sizes_is_named_and_ends_no_campaign_without_a_word() {
    let lab = with_programs();
    lab.gcc("-o sound tells.c");
    let compare =
        "compare --cpus any --binary sound=./sound --run '{binary} compiler' --rounds 400 --warmup 0";
    let limited = |bytes: u64| {
        let script = format!("exec prlimit --fsize={bytes} \"$WIDTHWISE\" {compare}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("WIDTHWISE", env!("CARGO_BIN_EXE_widthwise"));
        output_of(command.current_dir(lab.path("")))
    };
    let begun = limited(8 << 10);
    begun.refuses(1, &["ulimit -f", "no campaign was begun"]);
    let stopped = limited(400 << 10);
    assert_eq!(stopped.status, Some(1), "{stopped:?}");
    for words in ["ulimit -f", "--resume "] {
        assert!(stopped.stderr.contains(words), "{stopped:?}");
    }
    assert!(count(&open(&lab.campaign()), "SELECT count(*) FROM run") > 0);
}

#[test]
fn documents_that_could_not_be_written_are_refused_before_anything_runs() {
    let lab = with_programs();
    lab.gcc("-o sound tells.c");
    let campaign = "compare --binary sound=./sound --run {binary} --rounds 1";
    for (output, words) in [
        ("--json=missing/out.json", "--json: missing/out.json cannot be written: No such file or directory"),
        ("--json=sound/out.json", "--json: sound/out.json cannot be written: Not a directory"),
        ("--json=.", "--json: . is a folder: name a file"),
    ] {
        let refused = lab.widthwise(&format!("{campaign} {output}"));
        assert_eq!(refused.status, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
    assert!(!lab.path(".widthwise").join("latest").exists());

    assert_eq!(lab.widthwise(campaign).status, Some(0));
    for (arguments, words) in [
        ("report --html --csv", "--html and --csv both write to standard output"),
        ("report --html=missing/out.html", "--html: missing/out.html cannot be written"),
        ("explain --json --html=-", "--html and --json both write to standard output"),
        ("doctor --json=missing/out.json", "--json: missing/out.json cannot be written"),
    ] {
        let refused = lab.widthwise(arguments);
        assert_eq!((refused.status, refused.stdout.as_str()), (Some(2), ""), "{arguments}: {refused:?}");
        assert!(refused.stderr.contains(words), "{arguments}: {refused:?}");
    }
}

#[test]
fn a_device_a_pipe_and_the_file_behind_a_link_are_written_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let lab = with_programs();
    lab.gcc("-o sound tells.c");
    lab.widthwise("compare --binary sound=./sound --run {binary} --rounds 1");
    let page = lab.widthwise("report --html").stdout;

    let made = Command::new("mkfifo").arg(lab.path("pipe")).status().unwrap();
    assert!(made.success());
    let reader = std::thread::spawn({
        let pipe = lab.path("pipe");
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let piped = lab.widthwise("report --html=pipe");
    assert_eq!(piped.status, Some(0), "{piped:?}");
    assert!(lab.path("pipe").metadata().unwrap().file_type().is_fifo());
    assert!(reader.join().unwrap() == page, "the pipe has another page");

    let discarded = lab.widthwise("report --html=/dev/null");
    assert_eq!(discarded.status, Some(0), "{discarded:?}");
    assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());

    lab.write("behind.html", "old");
    std::os::unix::fs::symlink("behind.html", lab.path("link.html")).unwrap();
    let linked = lab.widthwise("report --html=link.html");
    assert_eq!(linked.status, Some(0), "{linked:?}");
    assert!(lab.path("link.html").is_symlink());
    assert!(lab.read("behind.html") == page, "the file behind the link has another page");
}

#[test]
fn a_full_standard_output_is_an_error_and_a_full_standard_error_is_none() {
    let lab = with_programs();
    lab.gcc("-o sound tells.c");
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let campaign = "compare --binary sound=./sound --run {binary} --rounds 1";
    for arguments in [campaign, "report", "report --json", "doctor"] {
        let printed = output_of(lab.command(arguments).stdout(full()));
        assert_eq!(printed.status, Some(1), "{arguments}: {printed:?}");
        let message = "error: standard output: No space left on device";
        assert!(
            printed.stderr.lines().last().is_some_and(|line| line.starts_with(message)),
            "{arguments}: {printed:?}"
        );
        assert!(!printed.stderr.contains("panicked"), "{arguments}: {printed:?}");
    }
    // What was measured is shown, and written to the files that have room.
    let lost = lab.widthwise(&format!("{campaign} --html=/dev/full --json=out.json --csv=/dev/full"));
    assert_eq!(lost.status, Some(1), "{lost:?}");
    assert!(lost.stdout.contains("sound  baseline") && lab.path("out.json").exists(), "{lost:?}");
    let full_file = "--html: /dev/full: No space left on device";
    for words in [
        full_file,
        "the campaign is complete, and `widthwise report ",
        " --html=FILE --csv=FILE` renders the campaign",
    ] {
        assert!(lost.stderr.contains(words), "{lost:?}");
    }
    let failed = lab.widthwise("compare --binary false=/bin/false --run {binary} --html=/dev/full");
    assert_eq!(failed.status, Some(1), "{failed:?}");
    assert!(failed.stderr.contains(full_file), "beside a baseline that failed: {failed:?}");
    let rendered = lab.widthwise("report --html=/dev/full");
    assert_eq!(rendered.status, Some(1), "{rendered:?}");
    assert!(rendered.stderr.contains(full_file), "{rendered:?}");
    let silent = output_of(lab.command(campaign).stderr(full()));
    assert_eq!(silent.status, Some(0), "{silent:?}");
    let wrong = output_of(lab.command("compare --rounds none tells.c").stderr(full()));
    assert_eq!(wrong.status, Some(2), "{wrong:?}");
}
