//! Folded stacks: a line for each stack, its frames from the outermost inwards with `;` between them, a space, a number.
//!
//! Described where it comes from: <https://github.com/brendangregg/FlameGraph>, "2. Fold stacks". Its readers split at every `;`
//! and at every end of a line, so that a name with one of these has it written as an escape here: `\x3b`, `\n`, `\r`, and `\\`
//! for the backslash itself; ` (` in the name of a file ends with `\x28`, since it begins the file.

use std::fmt::Write;

use thiserror::Error;

use widthwise_heap_log::profile::{Column, Frame, Gathering, Profile, Values};

/// Stands for a stack of which nothing is known.
const NO_STACK: &str = "[no stack]";

/// A text that is not folded stacks.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum FoldedError {
    /// A line does not end with a space and a number.
    #[error("line {line}: should end with a space and a whole number, and ends with \"{end}\"")]
    NoNumber {
        /// Counted from 1.
        line: usize,
        /// Its end.
        end: String,
    },
    /// A line is not UTF-8.
    #[error("line {line}: is not UTF-8")]
    NotText {
        /// Counted from 1.
        line: usize,
    },
}

/// Whether frames are written with their source lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceLines {
    /// `function (file:line)`; stacks that differ in lines only stay apart.
    Shown,
    /// `function`; stacks that differ in lines only become one.
    Hidden,
}

/// A profile's stacks, with the chosen column's number each; those with 0 are left out.
pub fn write(profile: &Profile, column: Column, lines_shown: SourceLines) -> String {
    let names: Vec<String> = profile.frames.iter().map(|frame| name(frame, lines_shown)).collect();
    // By its text: stacks that differ only in hidden lines are one.
    let mut lines: Vec<(String, u64)> = Vec::new();
    let mut known = rustc_hash::FxHashMap::default();
    for sample in &profile.samples {
        let value = column.of(&sample.values);
        if value == 0 {
            continue;
        }
        let stack: Vec<&str> =
            sample.stack.iter().filter_map(|frame| names.get(*frame as usize)).map(String::as_str).collect();
        let stack = if stack.is_empty() { NO_STACK.to_owned() } else { stack.join(";") };
        let index = *known.entry(stack.clone()).or_insert_with(|| {
            lines.push((stack, 0));
            lines.len() - 1
        });
        lines[index].1 = lines[index].1.saturating_add(value);
    }
    let mut text = String::new();
    for (stack, value) in lines {
        let _ = writeln!(text, "{stack} {value}");
    }
    text
}

fn name(frame: &Frame, lines_shown: SourceLines) -> String {
    let mut name = escaped(&frame.function);
    if let (SourceLines::Shown, Some(file)) = (lines_shown, &frame.file) {
        let _ = write!(name, " ({}:{})", escaped(file).replace(" (", " \\x28"), frame.line.unwrap_or(0));
    }
    name
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ';' => escaped.push_str("\\x3b"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\\' => escaped.push_str("\\\\"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Other escapes stay as they are: other writers use none.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let escape = &rest[at..];
        let (c, length) = [("\\x3b", ';'), ("\\x28", '('), ("\\n", '\n'), ("\\r", '\r'), ("\\\\", '\\')]
            .into_iter()
            .find(|(written, _)| escape.starts_with(written))
            .map_or(('\\', 1), |(written, c)| (c, written.len()));
        plain.push(c);
        rest = &escape[length..];
    }
    plain.push_str(rest);
    plain
}

/// Reads folded stacks into one column of a profile. Empty lines are skipped.
pub fn read(bytes: &[u8], column: Column) -> Result<Profile, FoldedError> {
    let mut gathering = Gathering::default();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        let line = std::str::from_utf8(line).map_err(|_| FoldedError::NotText { line: number })?;
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.trim().is_empty() {
            continue;
        }
        let no_number = || FoldedError::NoNumber {
            line: number,
            end: line.chars().skip(line.chars().count().saturating_sub(24)).collect(),
        };
        let (stack, value) = line.trim_end().rsplit_once([' ', '\t']).ok_or_else(no_number)?;
        let value: u64 = value.parse().map_err(|_| no_number())?;
        let mut values = Values::default();
        *column.value_mut(&mut values) = value;
        let stack = match stack.trim_end() {
            NO_STACK => Vec::new(),
            stack => stack.split(';').map(|name| gathering.frame(frame(name))).collect(),
        };
        gathering.sample(stack, &values);
    }
    Ok(gathering.profile())
}

fn frame(name: &str) -> Frame {
    let location = name.strip_suffix(')').and_then(|open| {
        let (function, location) = open.rsplit_once(" (")?;
        let (file, line) = location.rsplit_once(':')?;
        let line: u32 = line.parse().ok()?;
        Some((function, file, line)).filter(|_| !file.is_empty())
    });
    let (function, file, line) = match location {
        Some((function, file, line)) => {
            (function, Some(unescaped(file)), Some(line).filter(|line| *line != 0))
        }
        None => (name, None, None),
    };
    Frame { function: unescaped(function), file, line, module: String::new(), inlined: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_frame(function: &str, location: Option<(&str, u32)>) -> Frame {
        Frame {
            function: function.to_owned(),
            file: location.map(|(file, _)| file.to_owned()),
            line: location.map(|(_, line)| line).filter(|line| *line != 0),
            module: String::new(),
            inlined: false,
        }
    }

    fn a_profile(column: Column, frames: &[Frame], stacks: &[(&[u32], u64)]) -> Profile {
        let samples = stacks.iter().map(|(stack, value)| {
            let mut values = Values::default();
            *column.value_mut(&mut values) = *value;
            widthwise_heap_log::profile::Sample { stack: stack.to_vec(), values }
        });
        Profile { frames: frames.to_vec(), samples: samples.collect() }
    }

    #[test]
    fn a_stack_is_a_line_from_the_outermost_frame_inwards() {
        let frames = [a_frame("main", Some(("m.cpp", 7))), a_frame("grow(int, int)", None)];
        let profile = a_profile(Column::PeakBytes, &frames, &[(&[0, 1], 48), (&[0], 16)]);
        assert_eq!(
            write(&profile, Column::PeakBytes, SourceLines::Hidden),
            "main;grow(int, int) 48\nmain 16\n"
        );
        assert_eq!(
            write(&profile, Column::PeakBytes, SourceLines::Shown),
            "main (m.cpp:7);grow(int, int) 48\nmain (m.cpp:7) 16\n"
        );
    }

    #[test]
    fn a_column_holds_only_stacks_that_have_something_in_it() {
        let mut profile = a_profile(Column::AllocCount, &[a_frame("f", None)], &[(&[0], 3)]);
        assert_eq!(write(&profile, Column::LiveBytes, SourceLines::Hidden), "");
        profile.samples[0].values.live_bytes = 9;
        assert_eq!(write(&profile, Column::LiveBytes, SourceLines::Hidden), "f 9\n");
        assert_eq!(write(&profile, Column::AllocCount, SourceLines::Hidden), "f 3\n");
    }

    #[test]
    fn stacks_that_differ_in_hidden_lines_are_added_up() {
        let frames = [a_frame("f", Some(("f.c", 1))), a_frame("f", Some(("f.c", 2)))];
        let profile = a_profile(Column::PeakBytes, &frames, &[(&[0], 1), (&[1], 2)]);
        assert_eq!(write(&profile, Column::PeakBytes, SourceLines::Hidden), "f 3\n");
        assert_eq!(write(&profile, Column::PeakBytes, SourceLines::Shown), "f (f.c:1) 1\nf (f.c:2) 2\n");
    }

    #[test]
    fn names_of_any_content_come_back() {
        let frames = [
            a_frame("a;b", Some(("dir;x\\y (1).c", 3))),
            a_frame("two\nlines\r", Some(("no line.c", 0))),
            a_frame("\\x3b\\n", None),
            a_frame("operator() (int)", None),
        ];
        let profile = a_profile(Column::AllocBytes, &frames, &[(&[0, 1, 2, 3], 5), (&[3], 6), (&[], 7)]);
        let text = write(&profile, Column::AllocBytes, SourceLines::Shown);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert_eq!(text.lines().next().expect("a line").matches(';').count(), 3, "{text}");
        assert_eq!(read(text.as_bytes(), Column::AllocBytes), Ok(profile));
    }

    #[test]
    fn other_writers_files_are_read() {
        let profile =
            read(b"\r\n\nmain;std::f<a, b>(c) 10\r\nmain;C:\\new 2\nmain;C:\\new\t1\n", Column::PeakBytes)
                .expect("folded stacks");
        assert_eq!(profile.sum().peak_bytes, 13);
        assert_eq!(profile.samples.len(), 2);
        assert_eq!(profile.frames[1].function, "std::f<a, b>(c)");
    }

    #[test]
    fn a_line_without_a_number_is_named() {
        let error = read(b"main 1\nmain;f 12k\n", Column::PeakBytes).expect_err("no number");
        assert_eq!(
            error.to_string(),
            "line 2: should end with a space and a whole number, and ends with \"main;f 12k\""
        );
        assert_eq!(
            read(b"f 1\n\xff 2\n", Column::PeakBytes).expect_err("no text"),
            FoldedError::NotText { line: 2 }
        );
        assert!(read(b"f 99999999999999999999\n", Column::PeakBytes).is_err());
    }
}
