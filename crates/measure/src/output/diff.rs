//! How two stored outputs differ: a unified diff around their first difference. Files are compared byte by byte and in
//! pieces, since an output may be larger than the memory, and need not be text.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use similar::{Algorithm, DiffTag};
use widthwise_experiment::names::misleads;

/// Lines around a difference that a diff shows.
const CONTEXT: usize = 3;
/// Lines of an output that a diff covers, from shortly before the first difference.
const WINDOW: usize = 200;
/// Bytes that it covers before the first difference, and in all: a line may be as long as the output.
const BEFORE: u64 = 64 << 10;
const WINDOW_BYTES: u64 = 256 << 10;
/// Lines of a diff that are kept, and characters of a line.
const MOST_DIFF_LINES: usize = 60;
const MOST_CHARACTERS: usize = 400;
const PIECE: u64 = 64 << 10;

/// A unified diff of two stored outputs, starting shortly before the first difference. Its last line names that line. Empty if
/// they are equal.
pub fn difference(baseline: &Path, variant: &Path, names: (&str, &str)) -> std::io::Result<String> {
    let (mut old, mut new) = (File::open(baseline)?, File::open(variant)?);
    let Some(place) = first_difference(&mut old, &mut new)? else { return Ok(String::new()) };
    let (from, first_line) = place.window();
    let begins_in_line = !place.starts.contains(&from);
    let old = Window::read(&mut old, from, begins_in_line)?;
    let new = Window::read(&mut new, from, begins_in_line)?;
    let mut lines = vec![format!("--- {}", names.0), format!("+++ {}", names.1)];
    lines.extend(hunks(&old, &new, first_line));
    lines.truncate(MOST_DIFF_LINES);
    lines.push(format!("(the first difference is in line {})", place.line));
    Ok(lines.join("\n"))
}

/// Where two files first differ.
struct Place {
    at: u64,
    /// From 1.
    line: u64,
    /// Where that line begins, and those of the context before it.
    starts: VecDeque<u64>,
}

impl Place {
    /// Where a window begins, and the number of its first line.
    fn window(&self) -> (u64, u64) {
        let near = self.starts.iter().rev().take_while(|start| self.at - **start <= BEFORE).count();
        match near {
            0 => (self.at - BEFORE, self.line),
            _ => (self.starts[self.starts.len() - near], self.line - (near as u64 - 1)),
        }
    }
}

fn first_difference(old: &mut File, new: &mut File) -> std::io::Result<Option<Place>> {
    let mut place = Place { at: 0, line: 1, starts: VecDeque::from([0]) };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    loop {
        a.clear();
        b.clear();
        old.by_ref().take(PIECE).read_to_end(&mut a)?;
        new.by_ref().take(PIECE).read_to_end(&mut b)?;
        let same = if a == b { a.len() } else { common(&a, &b) };
        for (at, _) in a[..same].iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            place.line += 1;
            if place.starts.len() > CONTEXT {
                place.starts.pop_front();
            }
            place.starts.push_back(place.at + at as u64 + 1);
        }
        place.at += same as u64;
        if same < a.len().max(b.len()) {
            return Ok(Some(place));
        }
        if a.is_empty() {
            return Ok(None);
        }
    }
}

/// How many bytes are the same at the beginning.
fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The lines of an output around the first difference.
struct Window {
    bytes: Vec<u8>,
    begins_in_line: bool,
    /// The output is longer.
    is_cut: bool,
}

impl Window {
    fn read(file: &mut File, from: u64, begins_in_line: bool) -> std::io::Result<Window> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.by_ref().take(WINDOW_BYTES).read_to_end(&mut bytes)?;
        let end = bytes.split_inclusive(|byte| *byte == b'\n').take(WINDOW).map(<[u8]>::len).sum();
        bytes.truncate(end);
        let is_cut = from + (end as u64) < file.metadata()?.len();
        Ok(Window { bytes, begins_in_line, is_cut })
    }

    fn lines(&self) -> Vec<&[u8]> {
        self.bytes.split_inclusive(|byte| *byte == b'\n').collect()
    }
}

fn hunks(old: &Window, new: &Window, first_line: u64) -> Vec<String> {
    let (a, b) = (old.lines(), new.lines());
    let mut ops = similar::capture_diff_slices(Algorithm::Myers, &a, &b);
    // Where a window ends, the other's next lines are not known to be missing.
    let last_equal = ops.iter().rposition(|op| op.tag() == DiffTag::Equal).unwrap_or(0);
    let first_change = ops.iter().position(|op| op.tag() != DiffTag::Equal).unwrap_or(0);
    if (old.is_cut || new.is_cut) && last_equal > first_change {
        ops.truncate(last_equal + 1);
    }
    let is_exact = ops.iter().any(|op| look_alike(&a[op.old_range()], &b[op.new_range()], op.tag()));
    let first = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    // The place of a line's first difference, in bytes: that of the lines of one number, or of the first that differ.
    let pair = |i: usize, j: usize| a.get(i).zip(b.get(j)).map_or(0, |(a, b)| common(a, b));
    let mut shown = Vec::new();
    for group in similar::group_diff_ops(ops, CONTEXT) {
        let (Some(begin), Some(end)) = (group.first(), group.last()) else { continue };
        let range = |begin: Range<usize>, end: Range<usize>| range(begin.start..end.end, first_line);
        shown.push(format!(
            "@@ -{} +{} @@",
            range(begin.old_range(), end.old_range()),
            range(begin.new_range(), end.new_range())
        ));
        for op in &group {
            let place = |i: usize, k: usize| match op.tag() {
                DiffTag::Replace => pair(op.old_range().start + k, op.new_range().start + k),
                _ if i == first => pair(first, first),
                _ => 0,
            };
            if op.tag() == DiffTag::Equal {
                op.old_range().for_each(|i| push(&mut shown, ' ', old, &a, i, 0, is_exact));
                continue;
            }
            for (k, i) in op.old_range().enumerate() {
                push(&mut shown, '-', old, &a, i, place(i, k), is_exact);
            }
            for (k, i) in op.new_range().enumerate() {
                push(&mut shown, '+', new, &b, i, place(i, k), is_exact);
            }
        }
    }
    shown
}

/// The lines of a hunk, as `diff -u` numbers them: an empty range has the number of the line before it.
fn range(lines: Range<usize>, first_line: u64) -> String {
    let start = first_line + lines.start as u64;
    match lines.len() {
        0 => format!("{},0", start - 1),
        1 => start.to_string(),
        count => format!("{start},{count}"),
    }
}

/// Whether lines that replace each other differ in nothing that is seen: spaces at their ends, a backslash in place of
/// an escape, letters that look the same.
fn look_alike(old: &[&[u8]], new: &[&[u8]], tag: DiffTag) -> bool {
    let seen = |line: &[u8]| escaped(line, false).replace('\t', "    ").trim_end().to_owned();
    let plain = |line: &[u8]| line.is_ascii();
    let end = |line: &[u8]| line.ends_with(b"\n");
    tag == DiffTag::Replace
        && old.iter().zip(new).any(|(a, b)| {
            // A line end that is missing is named.
            let differ_in_end = a.strip_suffix(b"\n").unwrap_or(a) == b.strip_suffix(b"\n").unwrap_or(b);
            !(differ_in_end && end(a) != end(b))
                && a != b
                && (seen(a) == seen(b) || letters(a) == letters(b) && !(plain(a) && plain(b)))
        })
}

/// The ASCII characters alone: what differs in others may look the same.
fn letters(line: &[u8]) -> Vec<u8> {
    line.iter().copied().filter(|byte| byte.is_ascii_graphic()).collect()
}

/// Adds a line to a diff: what is no text is escaped, and a long line is cut around `place`.
fn push(
    shown: &mut Vec<String>,
    sign: char,
    of: &Window,
    lines: &[&[u8]],
    i: usize,
    place: usize,
    is_exact: bool,
) {
    let line = lines[i];
    let has_end = line.ends_with(b"\n");
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let before = escaped(&text[..place.min(text.len())], is_exact).chars().count();
    let whole = escaped(text, is_exact);
    let total = whole.chars().count();
    let from = if total > MOST_CHARACTERS { before.saturating_sub(MOST_CHARACTERS / 2) } else { 0 };
    let mut cut: String = whole.chars().skip(from).take(MOST_CHARACTERS).collect();
    if from > 0 || i == 0 && of.begins_in_line {
        cut.insert(0, '…');
    }
    if total > from + MOST_CHARACTERS || !has_end && of.is_cut {
        cut.push('…');
    }
    shown.push(format!("{sign}{cut}"));
    if !has_end && !of.is_cut {
        shown.push("\\ No newline at end of file".to_owned());
    }
}

/// A line with escapes for what is no text. `is_exact`: and for all that may look like something else.
fn escaped(line: &[u8], is_exact: bool) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let words = if is_exact { line.trim_ascii_end().len() } else { line.len() };
    let mut shown = String::with_capacity(line.len());
    for chunk in line[..words].utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\r' => shown.push_str("\\r"),
                '\t' if is_exact => shown.push_str("\\t"),
                '\t' => shown.push('\t'),
                '\\' if is_exact => shown.push_str("\\\\"),
                c if c.is_control() && c.is_ascii() => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
                c if c.is_control() || misleads(c) || is_exact && !c.is_ascii() => {
                    shown.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
                }
                c => shown.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| shown.push_str(&format!("\\x{byte:02x}")));
    }
    for byte in &line[words..] {
        shown.push_str(match byte {
            b'\r' => "\\r",
            b'\t' => "\\t",
            b' ' => "\\x20",
            _ => "\\x0c",
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &[u8], new: &[u8]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&a, old).unwrap();
        std::fs::write(&b, new).unwrap();
        let text = difference(&a, &b, ("x86-64", "i386")).unwrap();
        text.lines().skip(2).map(str::to_owned).collect()
    }

    #[test]
    fn a_diff_shows_the_first_difference_with_its_line() {
        let lines: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let diff = diff(lines.as_bytes(), lines.replace("line 700\n", "LINE 700\n").as_bytes());
        assert_eq!(diff[0], "@@ -698,7 +698,7 @@");
        assert_eq!(&diff[4..6], ["-line 700", "+LINE 700"]);
        assert_eq!(diff.last().unwrap(), "(the first difference is in line 701)");
        assert!(diff.len() == 10, "{diff:?}");
    }

    #[test]
    fn bytes_that_are_not_text_are_compared_and_escaped() {
        let note = "(the first difference is in line 1)";
        assert_eq!(diff(b"\xff\n", b"\xfe\n"), ["@@ -1 +1 @@", "-\\xff", "+\\xfe", note]);
        assert_eq!(
            diff(b"a\n\xff\nb\n", b"a\n\xfe\nc\n"),
            ["@@ -1,3 +1,3 @@", " a", "-\\xff", "-b", "+\\xfe", "+c", "(the first difference is in line 2)"]
        );
    }

    #[test]
    fn differences_that_are_not_seen_are_shown() {
        let pair = |old: &str, new: &str| {
            let diff = diff(old.as_bytes(), new.as_bytes());
            [diff[1].clone(), diff[2].clone()]
        };
        assert_eq!(pair("a\r\n", "a\n"), ["-a\\r", "+a"]);
        assert_eq!(pair("a \n", "a\n"), ["-a\\x20", "+a"]);
        assert_eq!(pair("a\tb\n", "a    b\n"), ["-a\\tb", "+a    b"]);
        assert_eq!(pair("a\\r\n", "a\r\n"), ["-a\\\\r", "+a\\r"]);
        assert_eq!(pair("a\u{a0}b\n", "a b\n"), ["-a\\u{a0}b", "+a b"]);
        let note = "(the first difference is in line 1)";
        assert_eq!(diff(b"a", b"a\n"), ["@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+a", note]);
        assert_eq!(diff(b"", b"a\n"), ["@@ -0,0 +1 @@", "+a", note]);
        assert_eq!(diff(b"a\n", b"a\n"), [""; 0]);
    }

    #[test]
    fn a_long_line_is_cut_around_the_first_difference() {
        for length in [3000, 3 << 20] {
            let text = |end: &str| ["x".repeat(length), end.to_owned(), "y".repeat(length)].concat() + "\n";
            let diff = diff(text("old").as_bytes(), text("new").as_bytes());
            assert!(
                diff[1].starts_with("-…x") && diff[1].contains("xoldy") && diff[1].ends_with("y…"),
                "{diff:?}"
            );
            assert!(
                diff[2].starts_with("+…x") && diff[2].contains("xnewy") && diff[2].ends_with("y…"),
                "{diff:?}"
            );
            assert!(diff.iter().all(|line| line.chars().count() < MOST_CHARACTERS + 4), "{diff:?}");
            assert_eq!(diff.last().unwrap(), "(the first difference is in line 1)");
        }
    }

    #[test]
    fn lines_beyond_a_window_are_not_called_missing() {
        let lines: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let diff = diff(lines.as_bytes(), lines.replace("line 5\n", "").as_bytes());
        assert_eq!(diff.iter().filter(|line| line.starts_with(['-', '+'])).count(), 1, "{diff:?}");
    }

    #[test]
    fn a_difference_far_behind_the_beginning_is_found() {
        let lines = "line\n".repeat(14_000_000);
        let [old, new] = ["8\n", "4\n"].map(|end| format!("{lines}{end}"));
        let diff = diff(old.as_bytes(), new.as_bytes());
        assert_eq!(diff[0], "@@ -13999998,4 +13999998,4 @@");
        assert_eq!(&diff[4..], ["-8", "+4", "(the first difference is in line 14000001)"]);
    }
}
