//! A request written as a spec file.

use std::fmt::Write;
use std::path::Path;

use crate::cache_model::CacheModel;
use crate::location::Located;
use crate::model::{Cpus, Directory, Estimator};
use crate::percentage;
use crate::point::Point;
use crate::request::{Check, MetricWord, Request};
use crate::schedule::Order;
use crate::source::ProgramSource;
use crate::{bytes, duration};

/// Writes a request as a spec file that [`crate::spec::parse`] reads as an equal one.
///
/// Paths are written as given: [`Request::anchored`] makes them valid in another folder.
pub fn spec_text(request: &Request) -> String {
    let mut page = Page::default();
    program(&mut page, request);
    axes(&mut page, request);
    run(&mut page, request);
    measure(&mut page, request);
    output(&mut page, request);
    page.text
}

fn program(page: &mut Page, request: &Request) {
    let program = &request.program;
    page.section("[program]");
    page.optional("name", &program.name, |name| quoted(name));
    page.optional("source", &program.source, |source: &ProgramSource| quoted(&source.to_string()));
    page.optional("build", &program.build, |build| long_text(build));
    page.optional("run", &program.run, |run| long_text(run));
    page.optional("arguments", &program.arguments, |words| list(words.iter().map(String::as_str)));
    page.section("[program.binaries]");
    for binary in &program.binaries {
        page.pair(&key(&binary.name.value), &path(&binary.file.value));
    }
}

fn axes(page: &mut Page, request: &Request) {
    page.section("[axes]");
    for (axis, values) in &request.axes {
        page.list(axis.name(), values, |value| value.clone());
    }
    for (name, set) in &request.flag_sets {
        page.forced_section(&format!("[flags.{}]", key(name)));
        let set = &set.value;
        page.optional("cflags", &set.cflags, |flags| quoted(flags));
        page.optional("cxxflags", &set.cxxflags, |flags| quoted(flags));
        page.optional("ldflags", &set.ldflags, |flags| quoted(flags));
        page.optional("profile_guided", &set.profile_guided, bool::to_string);
        page.optional("train", &set.train, |train| long_text(train));
    }
    for (name, set) in &request.env_sets {
        page.forced_section(&format!("[env.{}]", key(name)));
        for (name, located) in &set.value {
            page.pair(&key(name), &quoted(&located.value));
        }
    }
    for exclude in &request.excludes {
        page.forced_section("[[exclude]]");
        point(page, &exclude.value);
    }
    for variant in &request.variants {
        page.forced_section("[[variant]]");
        page.optional("name", &variant.value.name, |name| quoted(name));
        point(page, &variant.value.point);
    }
}

fn point(page: &mut Page, point: &Point) {
    for (axis, value) in point {
        page.pair(axis.name(), &quoted(&value.value));
    }
}

fn run(page: &mut Page, request: &Request) {
    let run = &request.run;
    page.section("[run]");
    page.optional("stdin", &run.stdin, |file| path(file));
    page.optional("directory", &run.directory, |directory| match directory {
        Directory::Here => quoted("here"),
        Directory::Fresh => quoted("fresh"),
        Directory::Path(folder) => path(folder),
    });
    page.list("inputs", &run.inputs, |file| bytes::text(file));
    if !run.environment.is_empty() {
        let pairs: Vec<String> = run
            .environment
            .iter()
            .map(|(name, located)| format!("{} = {}", key(name), quoted(&located.value)))
            .collect();
        page.pair("environment", &format!("{{ {} }}", pairs.join(", ")));
    }
    page.optional("setup", &run.setup, |command| long_text(command));
    page.optional("teardown", &run.teardown, |command| long_text(command));
    page.optional("timeout", &run.timeout, |time| quoted(&duration::text(*time)));
    page.optional("boot_timeout", &run.boot_timeout, |time| quoted(&duration::text(*time)));
    page.optional("exit_status", &run.exit_status, i32::to_string);
    page.optional("cpus", &run.cpus, |cpus: &Cpus| quoted(&cpus.to_string()));
    page.optional("no_aslr", &run.no_aslr, bool::to_string);
    page.optional("concurrent", &run.concurrent, bool::to_string);
    page.optional("exit_stop", &run.exit_stop, bool::to_string);
}

fn measure(page: &mut Page, request: &Request) {
    let measure = &request.measure;
    page.section("[measure]");
    page.list("metrics", &measure.metrics, |word: &MetricWord| word.name().to_owned());
    page.optional("rounds", &measure.rounds, u32::to_string);
    page.optional("precision", &measure.precision, fraction);
    page.optional("max_time", &measure.max_time, |time| quoted(&duration::text(*time)));
    page.optional("warmup", &measure.warmup, u32::to_string);
    page.optional("memory", &measure.memory, u32::to_string);
    page.optional("confidence", &measure.confidence, fraction);
    page.optional("equal_within", &measure.equal_within, fraction);
    page.optional("instruction_classes", &measure.instruction_classes, bool::to_string);
    page.optional("cache_model", &measure.cache_model, |model: &CacheModel| quoted(model.name()));
    page.optional("kvm", &measure.kvm, bool::to_string);
    page.optional("estimator", &measure.estimator, |estimator: &Estimator| quoted(estimator.name()));
    page.optional("order", &measure.order, |order: &Order| quoted(order.name()));
    page.optional("randomize_layout", &measure.randomize_layout, u32::to_string);
    page.optional("seed", &measure.seed, u64::to_string);
    page.optional("baseline", &measure.baseline, |name| quoted(name));
    page.section("[measure.reports]");
    for report in &measure.reports {
        page.pair(&key(&report.value.name), &quoted(&report.value.text()));
    }
}

fn output(page: &mut Page, request: &Request) {
    let output = &request.output;
    page.section("[output]");
    page.optional("check", &output.check, |check: &Check| quoted(check.name()));
    page.list("files", &output.files, |file| bytes::text(file));
    page.optional("filter", &output.filter, |command| long_text(command));
    page.optional("allow_different", &output.allow_different, bool::to_string);
}

/// The file under construction; a section's head is written before its first entry.
#[derive(Default)]
struct Page {
    text: String,
    waiting: Option<String>,
}

impl Page {
    fn section(&mut self, head: &str) {
        self.waiting = Some(head.to_owned());
    }

    /// A section that means something even when it is empty.
    fn forced_section(&mut self, head: &str) {
        self.section(head);
        self.head();
    }

    fn head(&mut self) {
        if let Some(head) = self.waiting.take() {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(&head);
            self.text.push('\n');
        }
    }

    fn pair(&mut self, key: &str, value: &str) {
        self.head();
        self.text.push_str(&format!("{key} = {value}\n"));
    }

    fn optional<T>(&mut self, key: &str, located: &Option<Located<T>>, text: impl FnOnce(&T) -> String) {
        if let Some(located) = located {
            self.pair(key, &text(&located.value));
        }
    }

    fn list<T>(&mut self, key: &str, values: &[Located<T>], text: impl Fn(&T) -> String) {
        if !values.is_empty() {
            let texts: Vec<String> = values.iter().map(|located| text(&located.value)).collect();
            self.pair(key, &list(texts.iter().map(String::as_str)));
        }
    }
}

fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let items: Vec<String> = texts.map(quoted).collect();
    format!("[{}]", items.join(", "))
}

fn path(path: &Path) -> String {
    quoted(&bytes::text(path))
}

fn fraction(value: &f64) -> String {
    // `{:?}` is the shortest text that reads as the same number, and always has a point or an exponent.
    percentage::text(*value).map(|text| quoted(&text)).unwrap_or_else(|| format!("{value:?}"))
}

/// A key, bare where TOML allows it.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// A basic string (TOML 1.0, "String").
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // Writing to a String cannot fail.
            c if c.is_control() => drop(write!(quoted, "\\u{:04X}", u32::from(c))),
            c if bytes::byte(c).is_some() => drop(write!(quoted, "\\U{:08X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A command: over several lines as it was written, where a literal string can hold it.
fn long_text(text: &str) -> String {
    let plain = |c: char| c == '\n' || c == '\t' || !(c.is_control() || bytes::byte(c).is_some());
    if text.contains('\n') && text.chars().all(plain) && !text.contains("'''") {
        format!("'''\n{text}'''")
    } else {
        quoted(text)
    }
}
