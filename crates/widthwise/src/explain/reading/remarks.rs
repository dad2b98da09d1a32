//! What a reader must know of logs: what is missing, and why.

use std::path::{Path, PathBuf};

use widthwise_anatomy::elf::separate::DebugFiles;
use widthwise_anatomy::heap::broken::Broken;
use widthwise_anatomy::heap::executed::{without_log, Executing};
use widthwise_anatomy::heap::{Header, Profile};
use widthwise_anatomy::layout;
use widthwise_report::heap::{bytes, share_of};

use super::recorded::Recorded;
use crate::output::short;

/// So many processes have remarks of one kind; the others are counted.
const MOST_PROCESSES: usize = 10;
/// So many programs without a log are named.
const MOST_EXECUTED: usize = 5;
/// So many object files that could not be read are named.
const MOST_UNREAD: usize = 10;

/// Of the processes of a side.
pub fn of(processes: &[Recorded]) -> Vec<String> {
    let mut remarks = Vec::new();
    for remark in [own_malloc, lost, strangers] {
        let lines = processes.iter().filter_map(|process| {
            let text = remark(process)?;
            Some(format!("process {}: {text}", process.header.process))
        });
        remarks.extend(few(lines, MOST_PROCESSES));
    }
    let faults = processes.iter().flat_map(|process| {
        let number = process.header.process;
        process.history.faults.iter().map(move |fault| format!("process {number}: {fault}"))
    });
    remarks.extend(few(faults, MOST_PROCESSES));
    remarks.extend(executed(processes));
    remarks.extend(anonymous(processes));
    remarks
}

/// The first lines, and how many more there are.
fn few(mut lines: impl Iterator<Item = String>, most: usize) -> Vec<String> {
    let mut first: Vec<String> = lines.by_ref().take(most).collect();
    let more = lines.count();
    if more > 0 {
        first.push(format!("and likewise {more} more"));
    }
    first
}

fn own_malloc(process: &Recorded) -> Option<String> {
    let text =
        "the program brings its own malloc, which the recorder cannot intercept: its calls are not recorded";
    process.header.own_malloc.then(|| text.to_owned())
}

/// Why events were not recorded, and what that means.
fn lost(process: &Recorded) -> Option<String> {
    let Header { lost, .. } = &process.header;
    let reasons: Vec<(&str, u64)> = lost.by_reason().map(|(loss, count)| (loss.reason(), count)).collect();
    let why = match reasons.as_slice() {
        [] => return None,
        [(reason, _)] => (*reason).to_owned(),
        several => {
            let each: Vec<String> =
                several.iter().map(|(reason, count)| format!("{reason} ({count})")).collect();
            each.join("; ")
        }
    };
    let total = lost.total();
    let events = if total == 1 { "1 event was".to_owned() } else { format!("{total} events were") };
    Some(format!("{events} not recorded: {why}. So its sums and its peak are lower bounds"))
}

/// Where the recorder could make no file for its memory, nothing tells it from the program's.
fn anonymous(processes: &[Recorded]) -> Option<String> {
    let anonymous: u64 = processes.iter().map(|process| process.header.anonymous_bytes).sum();
    (anonymous > 0)
        .then(|| format!("{} of the recorder's own memory count as the program's RSS", bytes(anonymous)))
}

fn strangers(process: &Recorded) -> Option<String> {
    let strangers = process.history.strangers;
    let blocks = if strangers == 1 { "1 block was".to_owned() } else { format!("{strangers} blocks were") };
    (strangers > 0).then(|| format!("{blocks} released that had come from elsewhere"))
}

/// Programs that were executed and left no log.
fn executed(processes: &[Recorded]) -> Vec<String> {
    let executing: Vec<Executing> = processes
        .iter()
        .map(|process| Executing { header: &process.header, execs: &process.history.execs })
        .collect();
    let lines = without_log(&executing).into_iter().map(|exec| {
        format!(
            "process {} executed {}, which left no log: it is static, set-user-ID, or could not load the recorder",
            exec.process, exec.path
        )
    });
    few(lines, MOST_EXECUTED)
}

/// Stacks that lack their outer calls, where they are of more than 1 % of the blocks.
pub fn ends_early(broken: &Broken, blocks: u64) -> Vec<String> {
    let is_considerable = |some: u64| some > blocks / 100;
    let without = |(name, some): &(String, u64)| {
        format!(
            "the stacks of {} of the blocks end early, in code of {name} that has no unwind tables, so that the callers \
             of that code are not known and are no sites: build it with -fasynchronous-unwind-tables",
            share_of(*some, blocks)
        )
    };
    let found: Vec<&(String, u64)> =
        broken.without_tables.iter().filter(|(_, some)| is_considerable(*some)).collect();
    let others = found.iter().fold(broken.blocks, |others, (_, some)| others.saturating_sub(*some));
    let others = is_considerable(others).then(|| {
        format!(
            "the stacks of {} of the blocks end early, so that their outer callers are not known: the recorder follows at most \
             2048 calls, and stops where it cannot read the stack",
            share_of(others, blocks)
        )
    });
    few(found.into_iter().map(without), MOST_UNREAD).into_iter().chain(others).collect()
}

/// What is missing at the program's own sites: lines, or functions too. Libraries may have both. `path` is the program's file.
pub fn without_names(profile: &Profile, program: &str, path: &Path) -> Option<String> {
    let own = || profile.frames.iter().filter(|frame| frame.module == program);
    if own().next().is_none() || own().any(|frame| frame.line.is_some()) {
        return None;
    }
    // The lines of a unit whose debug information is apart are known with it alone.
    let missing = layout::missing_split(path);
    if !missing.is_empty() {
        return Some(format!("{program}: {}; the lines of its functions are not known", missing.join("; ")));
    }
    if let Some(separate) = DebugFiles::of(path).missing {
        return Some(format!(
            "{program}: its debug information is in {}, which is not found or of another build; the lines of its functions are not known",
            separate.display()
        ));
    }
    Some(match own().any(|frame| !frame.function.starts_with("0x")) {
        true => format!("{program} was built without -g: the lines of its functions are not known"),
        false => format!("{program} is stripped: neither its functions nor their lines are known"),
    })
}

/// The program was written after its recording: a log has code addresses only, and names and types are those of the file that is there now.
pub fn is_newer(program: &Path, logs: &[PathBuf]) -> Option<String> {
    let written = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let recorded = logs.iter().filter_map(|log| written(log)).max()?;
    (written(program)? > recorded).then(|| {
        format!(
            "{} was written after its recording: if it has changed, its functions, lines and types are wrong here; record it again",
            short(program)
        )
    })
}

/// Object files whose debug information could not be read.
pub fn unread(unread: &mut Vec<(String, String)>) -> Vec<String> {
    let lines = unread
        .drain(..)
        .map(|(path, reason)| format!("{path} could not be read, so its functions have no names: {reason}"));
    few(lines, MOST_UNREAD)
}
