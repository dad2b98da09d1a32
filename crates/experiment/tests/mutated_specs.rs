//! Reading any spec file ends in a request or in an error of one line: here in every test run, and under `fuzz/`
//! without a time limit.

use crate::asked::facts;
use proptest::prelude::*;
use widthwise_experiment::{spec, spec_text};

/// A spec file with every key there is; what each mutation starts from.
const EVERY_KEY: &str = include_str!("every_key.toml");

/// Pieces that may break a parser in the wrong place.
const SPLINTERS: [&str; 32] = [
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "{{",
    "${",
    "\"",
    "'",
    "'''",
    "\"\"\"",
    "\\",
    "\n",
    "\r\n",
    "=",
    "-",
    "-1",
    "0",
    "1e999",
    "nan",
    "18446744073709551616",
    "0-4294967295",
    "9h9h",
    "99999999999999999999h",
    "%",
    "\u{0}",
    "\\u0000",
    "é🦀",
    "all",
    "[program.binaries]\nx = \"a\"\n",
    "[[variant]]\n",
];

fn checked(text: &str) -> Result<(), TestCaseError> {
    match spec::parse(text, "fuzz/widthwise.toml") {
        Ok(request) => {
            let written = spec_text(&request);
            let reread = spec::parse(&written, "kept.toml");
            prop_assert_eq!(reread.as_ref(), Ok(&request), "{}", written);
            if let Err(error) = request.resolve(&facts()) {
                one_clear_line(&error.to_string())?;
            }
        }
        Err(error) => {
            let line = error.to_string();
            prop_assert!(line.starts_with("fuzz/widthwise.toml:"), "{}", line);
            one_clear_line(&line)?;
        }
    }
    Ok(())
}

fn one_clear_line(line: &str) -> Result<(), TestCaseError> {
    prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
    Ok(())
}

/// The character boundary at or before a share of the text.
fn boundary(text: &str, share: prop::sample::Index) -> usize {
    let mut at = share.index(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn a_spec_file_with_holes_and_splinters_is_read_or_refused(
        wounds in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, prop::sample::select(&SPLINTERS[..])), 1..4),
    ) {
        let mut text = EVERY_KEY.to_owned();
        for (place, hole, splinter) in wounds {
            let start = boundary(&text, place);
            let mut end = (start + hole).min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            text.replace_range(start..end, splinter);
        }
        checked(&text)?;
    }

    #[test]
    fn a_spec_file_whose_lines_are_shuffled_is_read_or_refused(
        lines in Just(EVERY_KEY.lines().collect::<Vec<_>>()).prop_shuffle(),
        kept in any::<prop::sample::Index>(),
    ) {
        checked(&lines[..kept.index(lines.len())].join("\n"))?;
    }

    #[test]
    fn lines_of_known_keys_with_any_value_are_read_or_refused(
        sections in prop::collection::vec((
            prop::sample::select(&["[program]", "[axes]", "[run]", "[measure]", "[output]", "[flags.a]", "[env.a]", "[[exclude]]", "[[variant]]"][..]),
            prop::sample::select(EVERY_KEY.lines().filter_map(|line| line.split(" = ").next()).collect::<Vec<_>>()),
            prop::sample::select(&["\"\"", "\"x32\"", "\"1%\"", "\"5m\"", "0", "-1", "0.5", "inf", "true", "[]", "[\"x32\", \"x32\"]", "{}", "{ a = 1 }", "\"{build}\"", "\"{binary}\"", "\"{nothing}\"", "1979-05-27"][..]),
        ), 1..4),
    ) {
        let text: Vec<String> = sections.iter().map(|(section, key, value)| format!("{section}\n{key} = {value}\n")).collect();
        checked(&text.concat())?;
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        checked(&text)?;
    }
}

#[test]
fn the_file_with_every_key_is_valid() {
    let request = spec::parse(EVERY_KEY, "every_key.toml").expect("no mistakes");
    assert_eq!(spec::parse(&spec_text(&request), "kept.toml").as_ref(), Ok(&request));
    let experiment = request.resolve(&facts()).expect("no mistakes");
    assert_eq!(experiment.variants.len(), 3 * 2 * 3 * 2 * 2 * 2 - 2 * 2 * 2 - 2 * 2);
}
