//! The program's file by compile unit.

use serde_json::{json, Value};
use widthwise_anatomy::size::by_unit::UnitPair;

use crate::explanation::table::{self, Column};
use crate::format::counted;
use crate::heap::{bytes, signed};
use crate::text::Palette;

/// The table of the units that differ most; nothing where there is no unit.
pub(super) fn text(pairs: &[UnitPair], top: usize, width: usize, palette: &Palette) -> String {
    let faint = palette.faint;
    if pairs.iter().all(|pair| pair.unit.is_empty()) {
        return String::new();
    }
    let of = |pair: &UnitPair, side: usize, is_debug: bool| -> u64 {
        let is_wanted = |section: &str| section.starts_with(".debug") == is_debug;
        pair.sections.iter().filter(|(section, _)| is_wanted(section)).map(|(_, sides)| sides[side]).sum()
    };
    let arrow = |a: u64, b: u64| if a == b { bytes(a) } else { format!("{} → {}", bytes(a), bytes(b)) };
    // Compressed debug information belongs to no unit.
    let has_debug =
        pairs.iter().any(|pair| !pair.unit.is_empty() && of(pair, 0, true) + of(pair, 1, true) > 0);
    let row = |pair: &UnitPair| {
        let name = if pair.unit.is_empty() { "(no unit, or several)" } else { &pair.unit };
        let code = arrow(of(pair, 0, false), of(pair, 1, false));
        let mut cells = vec![signed(i128::from(pair.difference())), code, name.to_owned()];
        if has_debug {
            cells.insert(2, arrow(of(pair, 0, true), of(pair, 1, true)));
        }
        cells
    };
    let rows: Vec<Vec<String>> = pairs.iter().take(top).map(row).collect();
    let mut columns =
        vec![Column::number("difference"), Column::number("code and data"), Column::text("compile unit")];
    if has_debug {
        columns.insert(2, Column::number("debug information"));
    }
    let mut text = format!("  {faint}the program's file by compile unit{faint:#}\n");
    text.push_str(&table::lines(&columns, &rows, width, palette));
    if pairs.len() > top {
        let others = counted(pairs.len() - top, "other unit");
        text.push_str(&format!("  {faint}and {others}; --top N and --json show more{faint:#}\n"));
    }
    text
}

/// All units with their sections.
pub(super) fn json(pairs: &[UnitPair]) -> Value {
    let unit = |pair: &UnitPair| {
        let section = |(section, [baseline, variant]): &(String, [u64; 2])| json!({"section": section, "baseline": baseline, "variant": variant});
        json!({
            "unit": pair.unit,
            "baseline": pair.bytes(0),
            "variant": pair.bytes(1),
            "difference": pair.difference(),
            "sections": pair.sections.iter().map(section).collect::<Vec<_>>(),
        })
    };
    pairs.iter().map(unit).collect()
}
