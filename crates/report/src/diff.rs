//! The lines of an output's diff that a short report shows.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::format::counted;
use crate::sanitize;
use crate::text::clipped;

/// How the last line of a diff begins, which names the first line that differs.
const NOTE: &str = "(the first difference is in line ";

/// The first `most` lines of a diff and its note. Lines of one output that replace those of the other have room for
/// both: a long run of them is shortened.
pub fn shortened(diff: &str, most: usize) -> Vec<String> {
    let diff = sanitize::block(diff);
    let mut lines: Vec<&str> = diff.lines().collect();
    let note = lines.pop_if(|line| line.starts_with(NOTE));
    let fits = lines.len() <= most;
    let (mut shown, mut count, mut left_out) = (Vec::new(), 0, 0);
    // Where the lines end that have room.
    let mut end = lines.len();
    for (i, line) in lines.iter().enumerate() {
        let is_removed = |line: &&&str| line.starts_with(['-', '\\']);
        if i >= 2 && line.starts_with('-') && !lines[i - 1].starts_with(['-', '\\']) {
            let removed = lines[i..].iter().take_while(is_removed).count();
            let is_replaced = lines.get(i + removed).is_some_and(|line| line.starts_with('+'));
            let room = most.saturating_sub(count);
            end = if is_replaced { i + room.div_ceil(2) } else { lines.len() };
        } else if !is_removed(&line) {
            end = lines.len();
        }
        if !fits && (count >= most || i >= end) {
            left_out += 1;
            continue;
        }
        push_rest(&mut shown, &mut left_out);
        shown.push((*line).to_owned());
        count += 1;
    }
    push_rest(&mut shown, &mut left_out);
    shown.extend(note.map(str::to_owned));
    shown
}

fn sign(line: &str) -> Option<char> {
    line.chars().next()
}

fn push_rest(shown: &mut Vec<String>, left_out: &mut usize) {
    if *left_out > 0 {
        shown.push(format!("… {}", counted(*left_out, "more line")));
    }
    *left_out = 0;
}

/// The lines in this many columns. A line that replaces another is cut so that the first character in which they differ
/// is seen.
pub fn clipped_lines(lines: &[String], width: usize) -> Vec<String> {
    let mut clipped_lines: Vec<String> = lines.iter().map(|line| clipped(line, width)).collect();
    let run = |from: usize, wanted: char| {
        lines[from..].iter().take_while(|line| sign(line) == Some(wanted)).count()
    };
    let mut at = 2.min(lines.len());
    while at < lines.len() {
        let old = run(at, '-');
        // What is left out, and that an end is missing, is said between them.
        let between = lines[at + old..].iter().take_while(|line| line.starts_with(['…', '\\'])).count();
        let second = at + old + between;
        let new = run(second, '+');
        for pair in 0..old.min(new) {
            let [a, b] = [at + pair, second + pair];
            if lines[a].width().max(lines[b].width()) > width {
                let from = first_shown(&lines[a][1..], &lines[b][1..], width);
                for i in [a, b] {
                    clipped_lines[i] = cut(&lines[i], from, width);
                }
            }
        }
        at = second + new.max(usize::from(old + between == 0));
    }
    clipped_lines
}

/// The first column to show of two lines: 0, or one from which their first difference is in the middle.
fn first_shown(a: &str, b: &str, width: usize) -> usize {
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b);
    let column: usize = same.map(|(c, _)| c.width().unwrap_or(0)).sum();
    if column + width / 4 < width {
        0
    } else {
        column - width / 2
    }
}

/// A line with its sign, from a column.
fn cut(line: &str, from: usize, width: usize) -> String {
    if from == 0 {
        return clipped(line, width);
    }
    let mut column = 0;
    let rest: String = line[1..]
        .chars()
        .skip_while(|c| {
            column += c.width().unwrap_or(0);
            column <= from
        })
        .collect();
    clipped(&format!("{}…{rest}", &line[..1]), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_replace_each_other_are_cut_where_they_differ() {
        let same = "a".repeat(300);
        let lines = ["--- x", "+++ y", "@@ -1 +1 @@", &format!("-{same}8"), &format!("+{same}4")];
        let clipped = clipped_lines(&lines.map(str::to_owned), 40);
        assert!(clipped[3].starts_with("-…aaa") && clipped[3].ends_with("a8"), "{clipped:?}");
        assert!(clipped[4].starts_with("+…aaa") && clipped[4].ends_with("a4"), "{clipped:?}");
        assert!(clipped.iter().all(|line| line.width() <= 40), "{clipped:?}");
    }

    #[test]
    fn both_sides_and_the_place_of_a_long_difference_are_shown() {
        let side = |sign: &str| (0..9).map(|n| format!("{sign}{n}\n")).collect::<String>();
        let note = "(the first difference is in line 1)";
        let diff = format!("--- x\n+++ y\n@@ -1,9 +1,9 @@\n{}{}{note}", side("-"), side("+"));
        let shown = shortened(&diff, 12);
        assert_eq!(shown[3..9], ["-0", "-1", "-2", "-3", "-4", "… 4 more lines"]);
        assert_eq!(shown[9..], ["+0", "+1", "+2", "+3", "… 5 more lines", note]);
    }
}
