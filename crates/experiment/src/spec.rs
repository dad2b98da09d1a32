//! The spec file: `widthwise.toml`.
//!
//! The file is parsed without serde, so that every error has its line, its name and its fix.

mod entry;

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::de::DeTable;

use self::entry::{Entry, Page};
use crate::axis::Axis;
use crate::cache_model::CacheModel;
use crate::flag_set;
use crate::location::Located;
use crate::matrix::DEFAULT_ENV;
use crate::model::{Cpus, Directory, Estimator};
use crate::names::{check_name, check_variable};
use crate::placeholder::Stage;
use crate::point::{self, Point};
use crate::request::{Check, FlagSetRequest, Request, VariantRequest};
use crate::request_error::{RequestErrorKind, SpecError};
use crate::schedule::Order;
use crate::source::ProgramSource;

/// The sections.
const TOP: [&str; 9] = ["program", "axes", "flags", "env", "exclude", "variant", "run", "measure", "output"];

/// The keys of each section.
const SECTIONS: [(&str, &[&str]); 6] = [
    ("[program]", &["name", "source", "build", "run", "arguments", "binaries"]),
    ("[axes]", &["abi", "compiler", "flags", "allocator", "thp", "env", "kernel"]),
    (
        "[run]",
        &[
            "stdin",
            "directory",
            "inputs",
            "environment",
            "setup",
            "teardown",
            "timeout",
            "boot_timeout",
            "exit_status",
            "cpus",
            "no_aslr",
            "concurrent",
            "exit_stop",
        ],
    ),
    (
        "[measure]",
        &[
            "metrics",
            "rounds",
            "precision",
            "max_time",
            "warmup",
            "memory",
            "confidence",
            "equal_within",
            "estimator",
            "instruction_classes",
            "cache_model",
            "kvm",
            "order",
            "randomize_layout",
            "seed",
            "baseline",
            "reports",
        ],
    ),
    ("[output]", &["check", "files", "filter", "allow_different"]),
    ("[flags.NAME]", &["cflags", "cxxflags", "ldflags", "profile_guided", "train"]),
];

/// Reads a spec file. `file_name` is only for the errors.
pub fn parse(text: &str, file_name: &str) -> Result<Request, SpecError> {
    parse_page(&Page::new(text, Some(file_name)))
}

/// Reads lines of a spec file that the command line gives by `--set`. Their relative paths are the command line's.
pub fn parse_set(lines: &[String]) -> Result<Request, SpecError> {
    parse_page(&Page::new(&lines.join("\n"), None))
}

fn parse_page(page: &Page) -> Result<Request, SpecError> {
    let text = page.text();
    let root = DeTable::parse(text).map_err(|error| page.syntax(&error))?;
    let mut request = Request::default();
    for entry in page.entries(root.get_ref()) {
        match entry.key {
            "program" => program(&entry, &mut request)?,
            "axes" => axes(&entry, &mut request)?,
            "flags" => flag_sets(&entry, &mut request)?,
            "env" => env_sets(&entry, &mut request)?,
            "exclude" => excludes(&entry, &mut request)?,
            "variant" => variants(&entry, &mut request)?,
            "run" => run(&entry, &mut request)?,
            "measure" => measure(&entry, &mut request)?,
            "output" => output(&entry, &mut request)?,
            _ => return Err(unknown_key(&entry, "the file", &TOP)),
        }
    }
    Ok(request)
}

fn keys_of(section: &str) -> &'static [&'static str] {
    SECTIONS.iter().find(|(name, _)| *name == section).map(|(_, keys)| *keys).unwrap_or_default()
}

fn unknown_key(entry: &Entry, section: &str, known: &[&'static str]) -> SpecError {
    let belongs_to = SECTIONS.iter().find(|(_, keys)| keys.contains(&entry.key)).map(|(name, _)| *name);
    entry.key_location().wrong(RequestErrorKind::UnknownKey {
        key: entry.key.to_owned(),
        section: section.to_owned(),
        known: known.to_vec(),
        belongs_to,
    })
}

fn program(section: &Entry, request: &mut Request) -> Result<(), SpecError> {
    let program = &mut request.program;
    for entry in section.table()? {
        match entry.key {
            "name" => program.name = Some(entry.text()?),
            "source" => program.source = Some(entry.parsed(ProgramSource::parse)?),
            "build" => program.build = Some(entry.command(Stage::Build)?),
            "run" => program.run = Some(entry.command(Stage::Run)?),
            "arguments" => {
                let words = entry.texts()?.into_iter().map(|text| text.value).collect();
                program.arguments = Some(Located::new(words, entry.location()));
            }
            "binaries" => {
                for binary in entry.table()? {
                    let name = Located::new(binary.key.to_owned(), binary.key_location());
                    program.add_binary(name, binary.path()?)?;
                }
            }
            _ => return Err(unknown_key(&entry, "[program]", keys_of("[program]"))),
        }
    }
    Ok(())
}

fn axes(section: &Entry, request: &mut Request) -> Result<(), SpecError> {
    for entry in section.table()? {
        let axis = axis(&entry)?;
        for value in entry.some_texts()? {
            request.add_axis_value(axis, &value.value, value.location)?;
        }
    }
    Ok(())
}

fn axis(entry: &Entry) -> Result<Axis, SpecError> {
    point::axis(entry.key).map_err(|kind_of_error| entry.key_location().wrong(kind_of_error))
}

fn flag_sets(section: &Entry, request: &mut Request) -> Result<(), SpecError> {
    for entry in section.table()? {
        let name = entry.key;
        let refuse = |reason| {
            entry.key_location().wrong(RequestErrorKind::BadName {
                what: "flag set",
                name: name.to_owned(),
                reason,
            })
        };
        check_name("flag set", name).map_err(|kind_of_error| entry.key_location().wrong(kind_of_error))?;
        if flag_set::is_options(name) {
            return Err(refuse("a name that begins with \"-\" would be taken for options"));
        }
        if flag_set::built_in(name).is_some() {
            return Err(refuse("this name is built in; choose another"));
        }
        let mut set = FlagSetRequest::default();
        for entry in entry.table()? {
            match entry.key {
                "cflags" => set.cflags = Some(entry.text()?),
                "cxxflags" => set.cxxflags = Some(entry.text()?),
                "ldflags" => set.ldflags = Some(entry.text()?),
                "profile_guided" => set.profile_guided = Some(entry.switch()?),
                "train" => set.train = Some(entry.command(Stage::Run)?),
                _ => return Err(unknown_key(&entry, &format!("[flags.{name}]"), keys_of("[flags.NAME]"))),
            }
        }
        request.flag_sets.insert(name.to_owned(), Located::new(set, entry.key_location()));
    }
    Ok(())
}

fn env_sets(section: &Entry, request: &mut Request) -> Result<(), SpecError> {
    for entry in section.table()? {
        let name = entry.key;
        check_name("environment", name).map_err(|kind_of_error| entry.key_location().wrong(kind_of_error))?;
        if name == DEFAULT_ENV {
            return Err(entry.key_location().wrong(RequestErrorKind::BadName {
                what: "environment",
                name: name.to_owned(),
                reason: "this name is built in and sets nothing; choose another",
            }));
        }
        let variables = variables(&entry)?;
        request.env_sets.insert(name.to_owned(), Located::new(variables, entry.key_location()));
    }
    Ok(())
}

fn variables(section: &Entry) -> Result<BTreeMap<String, Located<String>>, SpecError> {
    let mut variables = BTreeMap::new();
    for entry in section.table()? {
        check_variable(entry.key).map_err(|kind_of_error| entry.key_location().wrong(kind_of_error))?;
        variables.insert(entry.key.to_owned(), entry.text()?);
    }
    Ok(variables)
}

/// One value of a point.
fn coordinate(entry: &Entry, point: &mut Point) -> Result<(), SpecError> {
    let axis = axis(entry)?;
    let value = entry.text()?;
    point::check_value(axis, &value.value).map_err(|kind_of_error| value.location.wrong(kind_of_error))?;
    point.insert(axis, value);
    Ok(())
}

fn excludes(section: &Entry, request: &mut Request) -> Result<(), SpecError> {
    for (location, entries) in section.tables()? {
        let mut point = Point::new();
        for entry in entries {
            coordinate(&entry, &mut point)?;
        }
        if point.is_empty() {
            let what = "[[exclude]]".to_owned();
            let instead = "name the axes of the points to leave out, such as abi = \"x32\"";
            return Err(location.wrong(RequestErrorKind::Empty { what, instead }));
        }
        request.excludes.push(Located::new(point, location));
    }
    Ok(())
}

fn variants(section: &Entry, request: &mut Request) -> Result<(), SpecError> {
    for (location, entries) in section.tables()? {
        let mut variant = VariantRequest::default();
        for entry in entries {
            if entry.key == "name" {
                variant.name = Some(entry.text()?);
            } else {
                coordinate(&entry, &mut variant.point)?;
            }
        }
        request.variants.push(Located::new(variant, location));
    }
    Ok(())
}

fn run(section: &Entry, request: &mut Request) -> Result<(), SpecError> {
    let run = &mut request.run;
    for entry in section.table()? {
        match entry.key {
            "stdin" => run.stdin = Some(entry.path()?),
            "directory" => run.directory = Some(directory(entry.path()?)),
            "inputs" => run.inputs = entry.paths()?,
            "environment" => run.environment = variables(&entry)?,
            "setup" => run.setup = Some(entry.command(Stage::Run)?),
            "teardown" => run.teardown = Some(entry.command(Stage::Run)?),
            "timeout" => run.timeout = Some(entry.duration()?),
            "boot_timeout" => run.boot_timeout = Some(entry.duration()?),
            "exit_status" => run.exit_status = Some(entry.whole(0, 255)?),
            "cpus" => run.cpus = Some(entry.parsed(Cpus::parse)?),
            "no_aslr" => run.no_aslr = Some(entry.switch()?),
            "concurrent" => run.concurrent = Some(entry.switch()?),
            "exit_stop" => run.exit_stop = Some(entry.switch()?),
            _ => return Err(unknown_key(&entry, "[run]", keys_of("[run]"))),
        }
    }
    Ok(())
}

fn directory(path: Located<PathBuf>) -> Located<Directory> {
    let directory = match path.value.to_str() {
        Some("here") => Directory::Here,
        Some("fresh") => Directory::Fresh,
        _ => Directory::Path(path.value),
    };
    Located::new(directory, path.location)
}

fn measure(section: &Entry, request: &mut Request) -> Result<(), SpecError> {
    for entry in section.table()? {
        if entry.key == "metrics" {
            for word in entry.some_texts()? {
                request.measure.add_metric(&word.value, word.location)?;
            }
            continue;
        }
        if entry.key == "reports" {
            for report in entry.table()? {
                let text = report.text()?;
                request.measure.add_report(report.key, &text.value, text.location)?;
            }
            continue;
        }
        let measure = &mut request.measure;
        match entry.key {
            "rounds" => measure.rounds = Some(entry.whole(0, u32::MAX)?),
            "precision" => measure.precision = Some(entry.fraction()?),
            "max_time" => measure.max_time = Some(entry.duration()?),
            "warmup" => measure.warmup = Some(entry.whole(0, u32::MAX)?),
            "memory" => measure.memory = Some(entry.whole(0, u32::MAX)?),
            "confidence" => measure.confidence = Some(entry.fraction()?),
            "equal_within" => measure.equal_within = Some(entry.fraction()?),
            "instruction_classes" => measure.instruction_classes = Some(entry.switch()?),
            "kvm" => measure.kvm = Some(entry.switch()?),
            "cache_model" => {
                let all: Vec<CacheModel> = CacheModel::all().collect();
                measure.cache_model = Some(entry.one_of("cache model", &all, CacheModel::name)?)
            }
            "estimator" => {
                measure.estimator = Some(entry.one_of("estimator", &Estimator::ALL, Estimator::name)?)
            }
            "order" => measure.order = Some(entry.one_of("order", &Order::ALL, Order::name)?),
            "randomize_layout" => measure.randomize_layout = Some(entry.whole(0, u32::MAX)?),
            "seed" => measure.seed = Some(entry.whole(0, u64::MAX)?),
            "baseline" => measure.baseline = Some(entry.text()?),
            _ => return Err(unknown_key(&entry, "[measure]", keys_of("[measure]"))),
        }
    }
    Ok(())
}

fn output(section: &Entry, request: &mut Request) -> Result<(), SpecError> {
    let output = &mut request.output;
    for entry in section.table()? {
        match entry.key {
            "check" => output.check = Some(entry.one_of("kind of check", &Check::ALL, Check::name)?),
            "files" => output.files = entry.paths()?,
            "filter" => output.filter = Some(entry.text()?),
            "allow_different" => output.allow_different = Some(entry.switch()?),
            _ => return Err(unknown_key(&entry, "[output]", keys_of("[output]"))),
        }
    }
    Ok(())
}
