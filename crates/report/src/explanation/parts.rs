//! The table of a metric's parts on the terminal.

use super::table::{self, Column};
use crate::explanation::model::Part;
use crate::format::counted;
use crate::heap;
use crate::text::Palette;

/// A table of parts, the largest first, then the others in one row and what is not explained.
pub fn of_parts(parts: &[Part], top: usize, width: usize, palette: &Palette) -> String {
    let row = |part: &Part| {
        vec![
            heap::signed(part.amount.into()),
            points(part.points),
            part.cause.clone(),
            part.detail.clone(),
            part.certainty.name().to_owned(),
            part.place.clone(),
        ]
    };
    let mut rows: Vec<Vec<String>> = parts.iter().take(top).map(row).collect();
    let others = &parts[parts.len().min(top)..];
    if !others.is_empty() {
        let amount: i64 = others.iter().map(|part| part.amount).sum();
        let sum: f64 = others.iter().map(|part| part.points).sum();
        let what = counted(others.len(), "smaller part") + " (--top N and --json show more)";
        let none = String::new;
        rows.push(vec![heap::signed(amount.into()), points(sum), what, none(), none(), none()]);
    }
    let columns = [
        Column::number("difference"),
        Column::number("points"),
        Column::text("cause"),
        Column::text(""),
        Column::text("certainty"),
        Column::text("where"),
    ];
    table::lines(&columns, &rows, width, palette)
}

/// `−24.1`; what rounds to nothing has no sign.
pub fn points(points: f64) -> String {
    match format!("{points:+.1}").as_str() {
        "-0.0" | "+0.0" => "0.0".to_owned(),
        text => text.replace('-', "−"),
    }
}

#[cfg(test)]
mod tests {
    use super::points;

    #[test]
    fn points_that_round_to_nothing_have_no_sign() {
        assert_eq!([-0.04, 0.04, -0.06, 24.1].map(points), ["0.0", "0.0", "−0.1", "+24.1"]);
    }
}
