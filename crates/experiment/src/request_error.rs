//! Errors of a request, one row each, with the fix in its text.

use thiserror::Error;

use crate::axis::Axis;
use crate::kernel::Kernel;
use crate::location::SourceLocation;
use crate::placeholder::{self, Stage};
use crate::suggestion::{fix, nearest};

/// A request that cannot be carried out: the error and its source location.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{}{kind_of_error}", place(.location))]
pub struct RequestError {
    /// The line or the flag; absent if something is missing.
    pub location: Option<SourceLocation>,
    /// What is wrong.
    pub kind_of_error: RequestErrorKind,
}

impl RequestError {
    /// Whether a name of that kind is unknown.
    pub fn is_unknown(&self, kind: &str) -> bool {
        matches!(self.kind_of_error, RequestErrorKind::Unknown { what, .. } if what == kind)
    }
}

/// A spec file that cannot be read; its `location` always has a line.
pub type SpecError = RequestError;

fn place(location: &Option<SourceLocation>) -> String {
    location.as_ref().map(|location| format!("{location}: ")).unwrap_or_default()
}

impl SourceLocation {
    /// An error at this location.
    pub fn wrong(&self, kind_of_error: RequestErrorKind) -> RequestError {
        RequestError { location: Some(self.clone()), kind_of_error }
    }
}

impl RequestErrorKind {
    /// An error without a location: something is missing.
    pub(crate) fn nowhere(self) -> RequestError {
        RequestError { location: None, kind_of_error: self }
    }
}

/// What is wrong with a request.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RequestErrorKind {
    /// The file is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key is there twice.
    #[error("{0:?} is given twice; keep one of the two")]
    DuplicateKey(String),
    /// A section has no such key.
    #[error("unknown key {key:?} in {section}{}", fix_key(.key, .belongs_to, .known))]
    UnknownKey {
        /// The key.
        key: String,
        /// The section, in its brackets.
        section: String,
        /// The section's keys.
        known: Vec<&'static str>,
        /// The section that has such a key, if one does.
        belongs_to: Option<&'static str>,
    },
    /// An unknown name of a kind with few names.
    #[error("unknown {what} {name:?}{}", fix(.name, .known))]
    Unknown {
        /// The kind.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A kernel that is neither one of the names nor a path.
    #[error("unknown kernel {name:?}{} (a bzImage is named by a path with a \"/\")", fix(.name, &kernel_names()))]
    UnknownKernel {
        /// The name.
        name: String,
    },
    /// A flag set that is neither built in nor in the spec file.
    #[error("unknown flag set {name:?}{}; options themselves begin with \"-\"", fix(.name, .known))]
    UnknownFlagSet {
        /// The name.
        name: String,
        /// The sets there are.
        known: Vec<String>,
    },
    /// A compiler that this machine does not have.
    #[error("no compiler {name:?} on this machine{}", fix(.name, .known))]
    NoSuchCompiler {
        /// The name.
        name: String,
        /// The compilers there are.
        known: Vec<String>,
    },
    /// A compiler by name, and no compiler at all.
    #[error("no compiler on this machine; apt-get install gcc g++")]
    NoCompilers,
    /// An unknown placeholder.
    #[error("unknown placeholder {{{word}}}{} (for the text itself, write {{{{{word}}}}})", fix_placeholder(.word, *.stage))]
    UnknownPlaceholder {
        /// The word between the braces.
        word: String,
        /// What the command is for.
        stage: Stage,
    },
    /// A placeholder that has no value at that stage.
    #[error("{{{word}}} means nothing in a {}; there is {}", .stage.noun(), braced(*.stage))]
    MisplacedPlaceholder {
        /// The word between the braces.
        word: String,
        /// What the command is for.
        stage: Stage,
    },
    /// A placeholder that this program gives no value.
    #[error("{{{word}}} means nothing here: {reason}")]
    EmptyPlaceholder {
        /// The word between the braces.
        word: String,
        /// Why, and what to write.
        reason: &'static str,
    },
    /// A value of another type.
    #[error("{key:?} must be {wanted}, not {found}")]
    WrongType {
        /// The key.
        key: String,
        /// The expected type.
        wanted: &'static str,
        /// The given value.
        found: &'static str,
    },
    /// A negative count.
    #[error("{key:?} cannot be negative: {value}")]
    Negative {
        /// The key.
        key: String,
        /// The given value.
        value: String,
    },
    /// A number outside its range.
    #[error("{key:?} must be {range}, not {value}")]
    OutOfRange {
        /// The key.
        key: String,
        /// The range, in words.
        range: String,
        /// The given value.
        value: String,
    },
    /// An invalid duration.
    #[error("{text:?} is no duration; write it like \"90s\", \"5m\", \"1h30m\" or \"250ms\"")]
    BadDuration {
        /// The given value.
        text: String,
    },
    /// An invalid percentage.
    #[error("{text:?} is no percentage; write it like \"1%\" or 0.01")]
    BadPercentage {
        /// The given value.
        text: String,
    },
    /// A fraction of 1 or more, which is most likely a percentage.
    #[error("{text} has no \"%\" and would be a fraction, which is less than 1; {}", fix_fraction(.text))]
    NoPercentSign {
        /// The given value.
        text: String,
    },
    /// An invalid list of CPUs.
    #[error("cpus {text:?}: {reason}; write \"auto\", \"any\" or a list like \"0,2-3\"")]
    BadCpus {
        /// The given value.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An invalid source.
    #[error("source {text:?}: {reason}")]
    BadSource {
        /// The given value.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An invalid name.
    #[error("{what} {name:?}: {reason}")]
    BadName {
        /// The kind of name.
        what: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An empty value.
    #[error("{what} is empty; {instead}")]
    Empty {
        /// What is empty.
        what: String,
        /// What to do about it.
        instead: &'static str,
    },
    /// A value that is there twice.
    #[error("{what} {name:?} is named twice")]
    Twice {
        /// Its kind.
        what: &'static str,
        /// The value.
        name: String,
    },
    /// A word that means every value, beside another value.
    #[error("\"all\" means every {what} and stands alone")]
    NotAlone {
        /// What there is all of.
        what: &'static str,
    },
    /// A NUL character, which no argument, path or variable can hold.
    #[error("{key:?} contains a NUL character, which cannot be handed to a program")]
    Nul {
        /// The key.
        key: String,
    },
    /// Something on the command line that has no `=`.
    #[error("{text:?} has no \"=\"; write it like {example}")]
    NoEquals {
        /// The given argument.
        text: String,
        /// An example.
        example: &'static str,
    },

    /// There is nothing to compare.
    #[error("no program; name a source file, a folder, debian:PACKAGE, or finished binaries")]
    NoProgram,
    /// A source without a build command.
    #[error("no build command; only a single .c, .cc, .cpp or .cxx file has one by default")]
    NoBuild,
    /// A program without a run command.
    #[error("no run command; say how a run is started, such as \"{{build}}/prog input\"")]
    NoRun,
    /// Finished binaries, and something to build as well.
    #[error("{what} and finished binaries exclude each other; leave out one of them")]
    BinariesWith {
        /// What there is besides.
        what: &'static str,
    },
    /// An axis that was decided when the binaries were built.
    #[error("axis {:?} cannot vary over finished binaries; compare a source, or leave it out", .axis.name())]
    AxisOfBinaries {
        /// The axis.
        axis: Axis,
    },
    /// A list of variants and a matrix.
    #[error("axis {:?} and a list of variants exclude each other; leave out [axes] or every [[variant]]", .axis.name())]
    AxisWithVariants {
        /// The first axis.
        axis: Axis,
    },
    /// Every point is excluded.
    #[error("nothing is left to compare: every variant is excluded")]
    EmptyMatrix,
    /// A matrix with too many variants.
    #[error("the axes make {points} variants; {most} is the most")]
    TooManyVariants {
        /// How many points there are.
        points: usize,
        /// How many there may be.
        most: usize,
    },
    /// Two variants with one name.
    #[error("two variants are called {name:?}; give one of them a name of its own")]
    TwoVariants {
        /// The name.
        name: String,
    },
    /// A variant with the name of the A/A control.
    #[error("a variant cannot be called {name:?}: that is the baseline's second name in the A/A pair")]
    ControlNameTaken {
        /// The name.
        name: String,
    },
    /// The ten-run estimator with a stopping rule of another kind.
    #[error("{key:?} and the estimator \"ten-run-trim\" exclude each other: it needs exactly 10 rounds")]
    TenRuns {
        /// The key.
        key: &'static str,
    },
    /// A run command that the shell would not accept.
    #[error("the run command has a quotation mark without its partner")]
    UnclosedQuote,
    /// A training command that no build will use.
    #[error("\"train\" is only used by a profile-guided set; add profile_guided = true")]
    TrainUnused,
    /// Something that concurrent runs cannot have.
    #[error("{what} and --concurrent exclude each other: the runs of a round start together and share one CPU, and {why}; {fix}")]
    NotConcurrent {
        /// The given argument.
        what: String,
        /// Why it cannot be.
        why: &'static str,
        /// What to do about it.
        fix: String,
    },
    /// Something that an emulated machine does not have.
    #[error("{what} {why} on an emulated machine; leave it out, or the emulated variants")]
    NotEmulated {
        /// What the user asked for.
        what: String,
        /// Why it cannot be.
        why: &'static str,
    },
    /// A metric, or the key of some, that only an emulated machine has.
    #[error(
        "{metric:?} is counted on an emulated machine alone; name another kernel (--kernel debian:amd64) or an ABI of \
         another processor (--abi ppc64)"
    )]
    OnlyEmulated {
        /// Its name.
        metric: &'static str,
    },
    /// The same, where a program without a kernel does not have it.
    #[error("{metric:?} is counted on another kernel alone; name one (--kernel debian:amd64)")]
    OnlyOnKernel {
        /// Its name.
        metric: &'static str,
    },
    /// Times under KVM beside those of this machine.
    #[error("kvm times programs on other kernels, and compares these times with each other: the baseline {baseline:?} runs on \
             this machine's kernel; name a baseline on another one, as by --kernel debian:amd64,debian:686-pae")]
    KvmBaseline {
        /// Its name.
        baseline: String,
    },
    /// An input that cannot have a link of its own in a fresh directory.
    #[error("{input:?} {}; copy or link it under another name", fresh_name(.other))]
    FreshName {
        /// The input.
        input: String,
        /// Another input of its name.
        other: Option<String>,
    },
    /// A pass over native programs, with a baseline on an emulated machine.
    #[error("{what} needs a baseline on this machine's kernel and processor, and {baseline:?} runs on an emulated machine; {}", fix_baseline(.native))]
    EmulatedBaseline {
        /// The pass.
        what: &'static str,
        /// The baseline.
        baseline: String,
        /// The first variant that could be the baseline.
        native: Option<String>,
    },
    /// Layouts of a program that has only one.
    #[error("\"randomize_layout\" and {what} exclude each other: {why}")]
    NoLayouts {
        /// What excludes layouts.
        what: &'static str,
        /// Why, and the fix.
        why: &'static str,
    },
    /// An output check that is off, or of standard output, beside something that needs another.
    #[error("{key:?} and check = {check:?} exclude each other; leave out one of them")]
    CheckWith {
        /// The key.
        key: &'static str,
        /// The kind of check.
        check: &'static str,
    },
}

fn kernel_names() -> Vec<String> {
    Kernel::names().map(str::to_owned).collect()
}

fn fix_key(key: &str, belongs_to: &Option<&'static str>, known: &[&'static str]) -> String {
    match belongs_to {
        Some(section) => format!("; it belongs to {section}"),
        None => fix(key, known),
    }
}

fn fix_fraction(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(value) if value < 100.0 => format!("write \"{value}%\""),
        _ => "write a percentage like \"1%\", or a fraction like 0.01".to_owned(),
    }
}

fn fresh_name(other: &Option<String>) -> String {
    match other {
        Some(other) => format!("and {other:?} would have one name in a fresh directory"),
        None => "has no name to be linked by in a fresh directory".to_owned(),
    }
}

fn fix_baseline(native: &Option<String>) -> String {
    match native {
        Some(name) => format!("name a native one, as by --baseline {}", shell_words::quote(name)),
        None => "leave it out, or add a native variant".to_owned(),
    }
}

fn fix_placeholder(word: &str, stage: Stage) -> String {
    match nearest(word, placeholder::allowed(stage)) {
        Some(meant) => format!("; did you mean {{{meant}}}?"),
        None => format!("; there is {}", braced(stage)),
    }
}

fn braced(stage: Stage) -> String {
    let words: Vec<String> = placeholder::allowed(stage).map(|word| format!("{{{word}}}")).collect();
    words.join(", ")
}
