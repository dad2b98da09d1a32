//! Tables of an explanation on the terminal: numbers at the right, the last text cut to the width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::sanitize;
use crate::text::Palette;

/// The head of a column.
pub struct Column {
    name: &'static str,
    is_number: bool,
}

impl Column {
    /// Numbers, at the right.
    pub fn number(name: &'static str) -> Column {
        Column { name, is_number: true }
    }

    /// Text, at the left.
    pub fn text(name: &'static str) -> Column {
        Column { name, is_number: false }
    }
}

/// The lines of a table; nothing for one without rows. The last column gets what the others leave.
pub fn lines(columns: &[Column], rows: &[Vec<String>], width: usize, palette: &Palette) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| sanitize::line(cell)).collect()).collect();
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            rows.iter().map(|row| row[at].width()).max().unwrap_or(0).max(column.name.width())
        })
        .collect();
    let line = |cells: Vec<&str>| {
        let mut text = String::from("  ");
        for (at, cell) in cells.iter().enumerate() {
            let used = text.width();
            let is_last = at + 1 == cells.len();
            let cell =
                if is_last { cut(cell, width.saturating_sub(used).max(12)) } else { (*cell).to_owned() };
            let room = " ".repeat(widths[at].saturating_sub(cell.width()));
            match (columns[at].is_number, is_last) {
                (true, _) => text.push_str(&format!("{room}{cell}  ")),
                (false, false) => text.push_str(&format!("{cell}{room}  ")),
                (false, true) => text.push_str(&cell),
            }
        }
        text.trim_end().to_owned()
    };
    let faint = palette.faint;
    let mut text = format!("{faint}{}{faint:#}\n", line(columns.iter().map(|column| column.name).collect()));
    for row in &rows {
        text.push_str(&line(row.iter().map(String::as_str).collect()));
        text.push('\n');
    }
    text
}

/// The text, or its beginning and a mark.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < width
    };
    text.chars().take_while(fits).chain(std::iter::once('…')).collect()
}
