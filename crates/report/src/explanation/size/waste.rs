//! Bytes that the programs could do without.

use serde_json::{json, Value};
use widthwise_anatomy::size::waste::{WasteKind, WastePair};

use crate::explanation::table::{self, Column};
use crate::heap::bytes;
use crate::text::Palette;

const KINDS: [WasteKind; 3] =
    [WasteKind::NeverOverridden, WasteKind::PointerTemplates, WasteKind::DuplicateConstants];

fn noun(kind: WasteKind) -> &'static str {
    match kind {
        WasteKind::NeverOverridden => "virtual functions that nothing overrides (table entries)",
        WasteKind::PointerTemplates => "templates that differ in a pointer's type",
        WasteKind::DuplicateConstants => "constants that are there more than once",
    }
}

fn name(kind: WasteKind) -> &'static str {
    match kind {
        WasteKind::NeverOverridden => "never_overridden",
        WasteKind::PointerTemplates => "pointer_templates",
        WasteKind::DuplicateConstants => "duplicate_constants",
    }
}

/// The largest of each kind; `paddings` are bytes of padding inside and between sections, of both sides.
pub(super) fn text(
    pairs: &[WastePair],
    paddings: [[u64; 2]; 2],
    top: usize,
    width: usize,
    palette: &Palette,
) -> String {
    let faint = palette.faint;
    let arrow = |a: u64, b: u64| if a == b { bytes(a) } else { format!("{} → {}", bytes(a), bytes(b)) };
    let count = |a: u64, b: u64| if a == b { a.to_string() } else { format!("{a} → {b}") };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for kind in KINDS {
        let of_kind: Vec<&WastePair> = pairs.iter().filter(|pair| pair.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let sum = |side: usize, of: fn(&(u64, u64)) -> u64| {
            of_kind.iter().map(|pair| of(&pair.sides[side])).sum::<u64>()
        };
        let total = |of| (sum(0, of), sum(1, of));
        let ((bytes_a, bytes_b), (count_a, count_b)) = (total(|side| side.1), total(|side| side.0));
        rows.push(vec![arrow(bytes_a, bytes_b), count(count_a, count_b), noun(kind).to_owned()]);
        for pair in of_kind.iter().take(top.div_ceil(KINDS.len())) {
            let [a, b] = pair.sides;
            rows.push(vec![arrow(a.1, b.1), count(a.0, b.0), format!("  {}", pair.name)]);
        }
    }
    for (words, [a, b]) in
        ["padding between functions and between data", "padding between sections"].iter().zip(paddings)
    {
        if a + b > 0 {
            rows.push(vec![arrow(a, b), String::new(), (*words).to_owned()]);
        }
    }
    let columns = [Column::number("bytes"), Column::number("count"), Column::text("what could be spared")];
    match rows.is_empty() {
        true => String::new(),
        false => format!("  {faint}waste{faint:#}\n{}", table::lines(&columns, &rows, width, palette)),
    }
}

/// All of it.
pub(super) fn json(pairs: &[WastePair]) -> Value {
    let waste = |pair: &WastePair| {
        let side = |(count, bytes): (u64, u64)| json!({"count": count, "bytes": bytes});
        json!({
            "kind": name(pair.kind),
            "name": pair.name,
            "baseline": side(pair.sides[0]),
            "variant": side(pair.sides[1]),
        })
    };
    pairs.iter().map(waste).collect()
}
