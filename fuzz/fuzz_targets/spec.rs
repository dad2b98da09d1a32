//! Whatever a spec file holds, reading it ends in a request or in an error; a request resolves or is refused, and is
//! the same after it was written out and read again.
//!
//! `cargo +nightly fuzz run spec` keeps what it finds under `fuzz/corpus/spec`. A good first seed is
//! `crates/experiment/tests/every_key.toml`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_experiment::{spec, spec_text, Facts};

fuzz_target!(|text: &str| {
    let request = match spec::parse(text, "fuzz/widthwise.toml") {
        Ok(request) => request,
        Err(error) => {
            let line = error.to_string();
            assert!(line.starts_with("fuzz/widthwise.toml:"), "an error without its line: {line}");
            assert!(!line.chars().any(char::is_control), "an error over several lines: {line:?}");
            return;
        }
    };
    let written = spec_text(&request);
    assert_eq!(spec::parse(&written, "kept.toml").as_ref(), Ok(&request), "{written}");
    let facts = Facts {
        compilers: vec!["gcc-12".to_owned(), "clang-14".to_owned()],
        default_seed: 1,
        folder: "experiments/lua".into(),
    };
    if let Ok(experiment) = request.resolve(&facts) {
        assert!(experiment.variants.iter().any(|variant| variant.name == experiment.baseline));
    }
});
