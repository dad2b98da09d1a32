//! Makes untrusted text harmless: characters that move a cursor, ring a bell or reverse a line become
//! visible, and so do bytes that are not UTF-8.

use widthwise_experiment::bytes;
use widthwise_experiment::names::misleads;

/// The text on one line: control characters, line ends and direction marks become escapes.
pub fn line(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        push(&mut shown, c);
        shown
    })
}

/// The text with its lines: like [`line()`], but line ends stay, and a tab becomes four spaces.
pub fn block(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        match c {
            '\n' => shown.push('\n'),
            '\t' => shown.push_str("    "),
            c => push(&mut shown, c),
        }
    }
    shown
}

fn push(shown: &mut String, c: char) {
    match c {
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        c if bytes::byte(c).is_some() => shown.push_str(&bytes::shown(c.encode_utf8(&mut [0; 4]))),
        c if c.is_control() => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
        c if misleads(c) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        c => shown.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_sequence_becomes_readable_and_harmless() {
        assert_eq!(line("a\u{1b}[31mred\u{7}"), "a\\x1b[31mred\\x07");
        assert_eq!(line("csi\u{9b}2J"), "csi\\x9b2J");
    }

    #[test]
    fn a_block_has_lines_and_a_line_does_not() {
        assert_eq!(block("one\r\n\ttwo\u{1b}"), "one\n    two\\x1b");
        assert_eq!(line("one\ntwo"), "one\\ntwo");
    }

    #[test]
    fn a_direction_override_is_shown_and_a_narrow_space_is_unchanged() {
        assert_eq!(line("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(line("3\u{202f}214"), "3\u{202f}214");
    }
}
