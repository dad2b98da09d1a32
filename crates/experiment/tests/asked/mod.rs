//! Requests for tests, as users make them.

#![allow(dead_code, reason = "each test file uses its own part")]

use widthwise_experiment::{spec, Experiment, Facts, Request, RequestError, SourceLocation};

/// A machine with two compilers.
pub fn facts() -> Facts {
    Facts {
        compilers: vec!["gcc-12".to_owned(), "clang-14".to_owned()],
        default_seed: 7,
        folder: "lua".into(),
    }
}

/// The request of a spec file without mistakes.
#[track_caller]
pub fn spec(text: &str) -> Request {
    spec::parse(text, "lua/widthwise.toml").expect("a spec file without mistakes")
}

pub fn resolved(text: &str) -> Result<Experiment, RequestError> {
    spec(text).resolve(&facts())
}

#[track_caller]
pub fn experiment(text: &str) -> Experiment {
    resolved(text).expect("a request without mistakes")
}

/// The names of a spec file's variants, in order. The program is a single file unless the text names one.
#[track_caller]
pub fn names(text: &str) -> Vec<String> {
    let text = if text.contains("[program") {
        text.to_owned()
    } else {
        format!("{text}\n[program]\nsource = \"tree.c\"\n")
    };
    experiment(&text).variants.into_iter().map(|variant| variant.name).collect()
}

pub fn flag() -> SourceLocation {
    SourceLocation::Flag("--axis")
}
