//! Text on a terminal: its styles, and its lines.

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::sanitize;

/// The smallest width: on narrower terminals lines exceed the edge.
pub(crate) const NARROWEST: usize = 40;

/// The style of each kind of text.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Palette {
    /// The program, the baseline's row.
    pub strong: Style,
    /// Column heads, notes.
    pub faint: Style,
    /// A verdict `lower`.
    pub lower: Style,
    /// A verdict `higher`.
    pub higher: Style,
    /// Warnings.
    pub warning: Style,
}

impl Palette {
    /// No escape codes: for files, pipes and `NO_COLOR`.
    pub fn plain() -> Palette {
        Palette::default()
    }

    /// The sixteen colours of every terminal theme; blue and yellow, which are distinct under red-green
    /// blindness (the sign shows the direction too).
    pub fn coloured() -> Palette {
        Palette {
            strong: Style::new().bold(),
            faint: Style::new().dimmed(),
            lower: AnsiColor::Cyan.on_default(),
            higher: AnsiColor::Yellow.on_default(),
            warning: AnsiColor::Magenta.on_default().bold(),
        }
    }
}

/// The text in lines of at most that width, broken at spaces; a number and its `%` stay together.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let glued = text.replace(" %", "\u{a0}%");
    for word in glued.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| line.replace("\u{a0}%", " %")).collect()
}

/// The text, made harmless, in indented lines.
pub(crate) fn paragraph(text: &str, width: usize, style: Style) -> String {
    let lines = wrapped(&sanitize::line(text), width.max(NARROWEST) - 2);
    lines.iter().map(|line| format!("  {style}{line}{style:#}\n")).collect()
}

/// A text in this many columns, with an ellipsis if it is longer.
pub(crate) fn clipped(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_truncated_with_an_ellipsis() {
        assert_eq!(clipped("abcdef", 4), "abc…");
        assert_eq!(clipped("abc", 4), "abc");
    }
}
