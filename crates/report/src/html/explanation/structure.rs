//! Structures of both ABIs, drawn byte by byte: eight bytes in a row.

use maud::{html, Markup};
use widthwise_anatomy::layout::drawing::{Row, PADDING};
use widthwise_experiment::units::thousands;

use crate::explanation::layout::Drawn;
use crate::heap::short_name;
use crate::sanitize;

/// Bytes in a row.
const ROW: usize = 8;
/// A byte's width and height.
const BYTE: (usize, usize) = (40, 26);
/// Rows of a drawing; larger objects are cut.
const MOST_ROWS: usize = 40;
/// Columns of a letter.
const LETTER: usize = 7;
/// Room for the offsets.
const MARGIN: usize = 34;

/// A stretch of bytes of one row.
struct Cell {
    mark: char,
    row: usize,
    column: usize,
    bytes: usize,
    is_first: bool,
}

/// The section; nothing without a structure.
pub fn section(structures: &[Drawn], names: [&String; 2]) -> Markup {
    html! {
        @if !structures.is_empty() {
            section id="structures" {
                h2 { "Structures, byte by byte" }
                p class="lead" {
                    "Eight bytes in a row. Blue members have another size in the variant, hatched bytes are padding. Those types come "
                    "first that make most of the heap's difference, where the heap was recorded."
                }
                svg class="unseen" aria-hidden="true" {
                    defs {
                        pattern id="padding" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                            rect width="6" height="6" class="ground" {}
                            rect width="2" height="6" class="hatch" {}
                        }
                    }
                }
                @for drawn in structures { (figure(drawn, names)) }
            }
        }
    }
}

fn figure(drawn: &Drawn, names: [&String; 2]) -> Markup {
    let difference = &drawn.difference;
    let place = difference.location.as_ref().map(|place| sanitize::line(&place.to_string()));
    let sides = [
        (names[0], difference.baseline_size, &drawn.drawing.baseline_bytes, true),
        (names[1], difference.variant_size, &drawn.drawing.variant_bytes, false),
    ];
    html! {
        figure class="structure" {
            figcaption {
                strong { (sanitize::line(&short_name(&difference.name))) }
                span {
                    (thousands(difference.baseline_size as i64)) " → " (thousands(difference.variant_size as i64)) " bytes"
                    @if let Some(objects) = difference.objects.filter(|objects| *objects > 0) {
                        " × " (thousands(objects as i64)) " objects at the peak"
                    }
                    @if let Some(place) = place { ", " (place) }
                }
            }
            div class="sides" {
                @for (name, size, bytes, is_baseline) in sides {
                    div {
                        p { (name) ", " (thousands(size as i64)) " bytes" }
                        (side(name, bytes, &drawn.drawing.rows, is_baseline))
                    }
                }
            }
        }
    }
}

fn side(name: &str, bytes: &str, rows: &[Row], is_baseline: bool) -> Markup {
    let marks: Vec<char> = bytes.chars().collect();
    if marks.is_empty() {
        return html! { p class="none" { "too large to be drawn" } };
    }
    let cells = cells(&marks);
    let lines = marks.len().div_ceil(ROW).min(MOST_ROWS);
    let (width, height) = (MARGIN + ROW * BYTE.0, lines * BYTE.1);
    html! {
        svg class="bytes" role="img" viewBox={ "0 0 " (width) " " (height) } style={ "max-width:" (width) "px" } {
            title { (label(name, rows, is_baseline)) }
            @for line in 0..lines {
                text class="offset" x=(MARGIN - 6) y=(line * BYTE.1 + 17) { (line * ROW) }
            }
            @for cell in cells.iter().filter(|cell| cell.row < lines) { (drawn(cell, rows)) }
        }
        @if marks.len() > lines * ROW {
            p class="none" { "and " (marks.len() - lines * ROW) " more bytes" }
        }
    }
}

/// Runs of equal marks, broken at the ends of rows.
fn cells(marks: &[char]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut before = None;
    for (at, mark) in marks.iter().enumerate() {
        let (row, column) = (at / ROW, at % ROW);
        match cells.last_mut() {
            Some(cell) if cell.mark == *mark && cell.row == row => cell.bytes += 1,
            _ => cells.push(Cell { mark: *mark, row, column, bytes: 1, is_first: before != Some(*mark) }),
        }
        before = Some(*mark);
    }
    cells
}

fn drawn(cell: &Cell, rows: &[Row]) -> Markup {
    let of = rows.iter().find(|row| row.mark == cell.mark && cell.mark != PADDING);
    let class = match of {
        None => "padding",
        Some(row) if !row.causes.is_empty() => "changed",
        Some(_) => "member",
    };
    let (x, y) = (MARGIN + cell.column * BYTE.0, cell.row * BYTE.1);
    let width = cell.bytes * BYTE.0;
    let letters = (width - 8) / LETTER;
    let name = of.filter(|_| cell.is_first).map(|row| cut(&sanitize::line(&row.name), letters));
    html! {
        rect class=(class) x=(x) y=(y + 1) width=(width - 2) height=(BYTE.1 - 2) rx="2" {}
        @if let Some(name) = name { text x=(x + 5) y=(y + 17) { (name) } }
    }
}

fn cut(name: &str, letters: usize) -> String {
    match name.chars().count() <= letters {
        true => name.to_owned(),
        false => name.chars().take(letters.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// For screen readers: each member with its place.
fn label(name: &str, rows: &[Row], is_baseline: bool) -> String {
    let member = |row: &Row| {
        let place = if is_baseline { row.baseline.as_ref() } else { row.variant.as_ref() }?;
        Some(format!("{} at {}, {} bytes", sanitize::line(&row.name), place.offset, place.size))
    };
    format!("{name}: {}", rows.iter().filter_map(member).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_spans_rows_is_named_once() {
        let marks: Vec<char> = "aaaaaaaaaaaab...".chars().collect();
        let cells = cells(&marks);
        let shown: Vec<(char, usize, usize, usize, bool)> =
            cells.iter().map(|cell| (cell.mark, cell.row, cell.column, cell.bytes, cell.is_first)).collect();
        assert_eq!(
            shown,
            [('a', 0, 0, 8, true), ('a', 1, 0, 4, false), ('b', 1, 4, 1, true), ('.', 1, 5, 3, true)]
        );
    }
}
