//! Text that stays text in Markdown: escaped, in code spans, in fenced blocks.

use crate::{diff, sanitize};

/// The most diff lines to show: a comment in a pull request should not contain a whole file.
const DIFF_LINES: usize = 40;

/// Escapes every character that Markdown, its tables or HTML could interpret (CommonMark 2.4: any ASCII
/// punctuation may be escaped).
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '&' => shown.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '@' => {
                shown.push('\\');
                shown.push(c);
            }
            c => shown.push(c),
        }
    }
    shown
}

/// One line of text, which Markdown does not interpret.
pub fn harmless(text: &str) -> String {
    escaped(&sanitize::line(text))
}

/// A sentence whose parts between backticks are code. Where backticks are not in pairs, such as in a name from outside, all are text.
pub fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // The quotes of GNU's messages, `a' and `b', are no pair.
    let is_code = |part: &&str| !part.is_empty() && part.trim() == *part;
    let is_paired = parts.len() % 2 == 1 && parts.iter().skip(1).step_by(2).all(is_code);
    if !is_paired {
        return escaped(text);
    }
    let shown =
        parts.iter().enumerate().map(|(place, part)| if place % 2 == 1 { code(part) } else { escaped(part) });
    shown.collect()
}

/// A code span with a longer fence than any run of backticks inside (CommonMark 6.1).
pub fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// A code block of a diff, likewise (CommonMark 4.5), truncated if it is too long for a comment.
pub fn fenced(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let shown = diff::shortened(text, DIFF_LINES).join("\n");
    format!("{fence}diff\n{shown}\n{fence}")
}

/// A block of text, whose lines and columns stay.
pub fn text_block(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}text\n{text}\n{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_run_of_backticks_inside() {
        assert_eq!(code("a ``b`` c"), "```a ``b`` c```");
        assert!(fenced("````\nevil").starts_with("`````diff\n"));
    }

    #[test]
    fn code_in_a_sentence_is_code_and_what_is_beside_and_inside_it_stays_harmless() {
        assert_eq!(prose("a_b: `--cpus any` needs <none>"), "a\\_b: `--cpus any` needs &lt;none&gt;");
        assert_eq!(prose("`ps -e`; `</a> @b`"), "`ps -e`; `</a> @b`");
        assert_eq!(prose("\\`a`"), "\\\\`a`");
        assert_eq!(prose("cannot rename `a' to `b'"), "cannot rename \\`a' to \\`b'");
        for text in ["a`b", "a`b: `--cpus any`", "``", "` `", "```sh", "a``b`c`"] {
            assert_eq!(prose(text), escaped(text));
        }
    }

    #[test]
    fn table_signs_and_markup_are_escaped() {
        assert_eq!(escaped("a|b <i> *c*"), "a\\|b &lt;i&gt; \\*c\\*");
    }
}
