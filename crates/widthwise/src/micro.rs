//! The micro suite: its source, which is embedded, and the request that measures its operations.

pub mod loops;
mod operation;
pub mod working_sets;

use std::path::{Path, PathBuf};

use widthwise_experiment::model::{Experiment, Origin};
use widthwise_experiment::reported_metric::{ReportedMetric, MICRO_PREFIX};
use widthwise_experiment::request::MetricWord;
use widthwise_experiment::units::Unit;
use widthwise_experiment::{bytes, Located, ProgramSource, Request, RequestErrorKind, SourceLocation};

use crate::failure::Failure;
use operation::Operation;

/// The files of the suite.
const FILES: [(&str, &str); 17] = [
    ("Makefile", include_str!("../../../workloads/micro/Makefile")),
    ("arithmetic.c", include_str!("../../../workloads/micro/arithmetic.c")),
    ("calls.c", include_str!("../../../workloads/micro/calls.c")),
    ("counts.c", include_str!("../../../workloads/micro/counts.c")),
    ("counts.h", include_str!("../../../workloads/micro/counts.h")),
    ("library.c", include_str!("../../../workloads/micro/library.c")),
    ("library.h", include_str!("../../../workloads/micro/library.h")),
    ("memory.c", include_str!("../../../workloads/micro/memory.c")),
    ("micro.c", include_str!("../../../workloads/micro/micro.c")),
    ("nothing.c", include_str!("../../../workloads/micro/nothing.c")),
    ("operation.h", include_str!("../../../workloads/micro/operation.h")),
    ("operations.def", operation::TABLE),
    ("processes.c", include_str!("../../../workloads/micro/processes.c")),
    ("strings.c", include_str!("../../../workloads/micro/strings.c")),
    ("system.c", include_str!("../../../workloads/micro/system.c")),
    ("valgrind.h", include_str!("../../../workloads/micro/valgrind.h")),
    ("version", concat!(env!("CARGO_PKG_VERSION"), "\n")),
];

/// What the name of the folder of its source begins with; a digest of the files follows.
const FOLDER: &str = "micro-";

/// Completes a request for `micro:…`: source, build, run and metrics. Any other request stays as it is. The source is
/// written to a folder of its own in `root`, the folder of campaigns.
///
/// # Errors
/// An unknown operation, an option that cannot be, a folder that cannot be written.
pub fn complete(request: &mut Request, root: &Path) -> Result<(), Failure> {
    let Some(Located { value: ProgramSource::Micro { operations }, location }) = &request.program.source
    else {
        return Ok(());
    };
    let (asked, location) = (operations.clone(), location.clone());
    let operations = chosen(&asked, &location)?;
    check(request)?;
    let is_all = asked.iter().any(|name| name == "all");
    let words: Vec<&str> =
        if is_all { vec!["all"] } else { operations.iter().map(|operation| operation.name).collect() };
    let located = |text: String| Located::new(text, location.clone());
    let program = &mut request.program;
    program.name.get_or_insert_with(|| located("micro".to_owned()));
    program.build = Some(located("make".to_owned()));
    program.run = Some(located(format!("{{build}}/micro {}", words.join(" "))));
    program.source = Some(Located::new(ProgramSource::Path(written(root)?), location.clone()));
    let is_instructions = |word: &Located<MetricWord>| word.value.name() == "instructions";
    let instructions = request.measure.metrics.iter().any(is_instructions);
    request.measure.metrics.retain(|word| !is_instructions(word));
    request.measure.reports = operations
        .into_iter()
        .map(|operation| {
            let report = ReportedMetric {
                name: format!("{MICRO_PREFIX}{}", operation.name),
                unit: Unit::Nanoseconds,
                noun: Some(format!("time for {}", operation.noun)),
                instructions,
                on_machines: true,
            };
            Located::new(report, location.clone())
        })
        .collect();
    Ok(())
}

/// Whether an experiment measures the suite.
pub fn is_measured(experiment: &Experiment) -> bool {
    let Origin::Source { path, .. } = &experiment.program.origin else { return false };
    let name = path.file_name().map(bytes::text).unwrap_or_default();
    name.starts_with(FOLDER) && experiment.program.run.starts_with("{build}/micro ")
}

/// The operations of these names, in the table's order.
fn chosen(names: &[String], location: &SourceLocation) -> Result<Vec<Operation>, Failure> {
    let all = operation::all();
    let wrong = |kind_of_error: RequestErrorKind| Failure::request(location.wrong(kind_of_error));
    if names.iter().any(|name| name == "all") {
        return match names.len() {
            1 => Ok(all.into_iter().filter(Operation::is_row).collect()),
            _ => Err(wrong(RequestErrorKind::NotAlone { what: "operation" })),
        };
    }
    for (place, name) in names.iter().enumerate() {
        if !all.iter().any(|operation| operation.name == name) {
            let rows = all.iter().filter(|operation| operation.is_row());
            let known = rows.map(|operation| operation.name.to_owned()).chain(["all".to_owned()]);
            let (what, name) = ("operation of the micro suite", name.clone());
            return Err(wrong(RequestErrorKind::Unknown { what, name, known: known.collect() }));
        }
        if names[..place].contains(name) {
            return Err(wrong(RequestErrorKind::Twice { what: "operation", name: name.clone() }));
        }
    }
    Ok(all.into_iter().filter(|operation| names.iter().any(|name| name == operation.name)).collect())
}

/// Refuses what has no meaning for the suite.
fn check(request: &Request) -> Result<(), Failure> {
    let program = &request.program;
    let commands = [("a build command", &program.build), ("a run command", &program.run)];
    for (what, command) in commands {
        if let Some(command) = command {
            return Err(Failure::request(format!(
                "{}: the micro suite has {what} of its own; its options go after `--`",
                command.location
            )));
        }
    }
    if let Some(concurrent) = request.run.concurrent.as_ref().filter(|concurrent| concurrent.value) {
        return Err(Failure::request(format!(
            "{}: the micro suite takes wall-clock times, which runs that share a CPU do not have",
            concurrent.location
        )));
    }
    if let Some(Located { value, location }) = &program.arguments {
        check_options(value).map_err(|error| Failure::request(format!("{location}: {error}")))?;
    }
    if let Some(report) = request.measure.reports.first() {
        return Err(Failure::request(format!(
            "{}: the micro suite reports its own metrics; it has no {:?}",
            report.location, report.value.name
        )));
    }
    Ok(())
}

/// The suite's options that may follow `--` and have a number (workloads/micro/micro.c).
const NUMBERED: [&str; 2] = ["--repetitions", "--time"];
/// The largest number: `MOST_REPETITIONS` there.
const MOST: u32 = 1000;
/// Those that have none.
const PLAIN: [&str; 1] = ["--samples"];

/// Refuses words after `--` that the suite would not take.
fn check_options(words: &[String]) -> Result<(), String> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if PLAIN.contains(&word.as_str()) {
            continue;
        }
        if !NUMBERED.contains(&word.as_str()) {
            return Err(if word.starts_with('-') {
                let numbered = NUMBERED.map(|name| format!("{name} N")).join(", ");
                format!(
                    "{word:?} is no option that compare takes for the micro suite; there is {numbered}, {}",
                    PLAIN.join(", ")
                )
            } else {
                format!("{word:?} is no option of the micro suite; operations follow micro:, as in micro:getpid,strcpy")
            });
        }
        let is_number = |word: &String| word.parse::<u32>().is_ok_and(|number| (1..=MOST).contains(&number));
        if !words.next().is_some_and(is_number) {
            return Err(format!("{word} of the micro suite needs a number from 1 to {MOST}"));
        }
    }
    Ok(())
}

/// The folder with the suite's source, written unless it is there.
fn written(root: &Path) -> Result<PathBuf, Failure> {
    let mut hasher = blake3::Hasher::new();
    for (name, text) in FILES {
        hasher.update(name.as_bytes()).update(&[0]).update(text.as_bytes()).update(&[0]);
    }
    let folder = root.join(format!("{FOLDER}{}", &hasher.finalize().to_hex()[..12]));
    let is_there = |(name, text): &(&str, &str)| {
        std::fs::read(folder.join(name)).is_ok_and(|found| found == text.as_bytes())
    };
    if FILES.iter().all(is_there) {
        return Ok(folder);
    }
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(&folder)?;
        for (name, text) in FILES {
            // Another campaign may be reading: a file is whole from the moment it has its name.
            let unfinished = folder.join(format!(".{name}-{}", std::process::id()));
            std::fs::write(&unfinished, text)?;
            std::fs::rename(&unfinished, folder.join(name))?;
        }
        Ok(())
    };
    write().map_err(|error| {
        Failure::request(format!("{}: {error}; `--archive` names another folder", folder.display()))
    })?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(text: &str) -> Result<Request, String> {
        let root = tempfile::tempdir().unwrap();
        let source = ProgramSource::parse(text).map_err(|error| error.to_string())?;
        let mut request = Request::default();
        request.program.source = Some(Located::new(source, SourceLocation::Flag("program")));
        complete(&mut request, root.path()).map_err(|failure| failure.message().to_owned())?;
        Ok(request)
    }

    #[test]
    fn every_file_of_the_suite_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/micro");
        let names =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.chain(["version".to_owned()]).collect();
        names.sort();
        assert_eq!(names, FILES.map(|(name, _)| name));
    }

    #[test]
    fn operations_run_and_become_metrics_in_the_tables_order() {
        let request = requested("micro:getpid,mul8").unwrap();
        let reports: Vec<String> =
            request.measure.reports.iter().map(|report| report.value.name.clone()).collect();
        assert_eq!(reports, ["micro.mul8", "micro.getpid"]);
        assert_eq!(request.program.run.unwrap().value, "{build}/micro mul8 getpid");
        assert!(requested("micro:all").unwrap().measure.reports.len() >= 40);
    }

    #[test]
    fn an_unknown_operation_is_refused_with_the_one_that_was_meant() {
        let refused = |text| requested(text).unwrap_err();
        assert!(refused("micro:getpit").contains("did you mean \"getpid\"?"), "{}", refused("micro:getpit"));
        assert!(refused("micro:all,getpid").contains("operation"), "{}", refused("micro:all,getpid"));
        assert!(refused("micro:mul8,mul8").contains("mul8"), "{}", refused("micro:mul8,mul8"));
        assert!(refused("micro:").contains("micro:all"), "{}", refused("micro:"));
    }
}
