//! Code by the function that it comes from: inlined copies count for the function that was copied.

use serde_json::{json, Value};
use widthwise_anatomy::size::inlined::OriginPair;

use crate::explanation::table::{self, Column};
use crate::format::{counted, listed};
use crate::heap::{bytes, signed};
use crate::text::Palette;

/// The sum of all copies, and the functions that differ most; nothing where no copy is known.
pub(super) fn text(pairs: &[OriginPair], top: usize, width: usize, palette: &Palette) -> String {
    let faint = palette.faint;
    let arrow = |a: u64, b: u64| if a == b { bytes(a) } else { format!("{} → {}", bytes(a), bytes(b)) };
    let sum = |side: usize| pairs.iter().map(|pair| pair.sides[side].inlined).sum::<u64>();
    let copies = |side: usize| pairs.iter().map(|pair| pair.sides[side].copies).sum::<u64>();
    if copies(0) + copies(1) == 0 {
        return String::new();
    }
    let row = |pair: &OriginPair| {
        let [a, b] = &pair.sides;
        let count = if a.copies == b.copies {
            a.copies.to_string()
        } else {
            format!("{} → {}", a.copies, b.copies)
        };
        let name = match pair.name.as_str() {
            "" => "(no symbol)",
            "?" => "(functions without a known name)",
            name => name,
        };
        vec![
            signed(i128::from(pair.difference())),
            arrow(a.own, b.own),
            arrow(a.inlined, b.inlined),
            count,
            name.to_owned(),
        ]
    };
    let copied = |pair: &&OriginPair| pair.sides.iter().any(|side| side.copies > 0);
    let rows: Vec<Vec<String>> = pairs.iter().filter(copied).take(top).map(row).collect();
    let columns = [
        Column::number("difference"),
        Column::number("own code"),
        Column::number("its copies"),
        Column::number("copies"),
        Column::text("function"),
    ];
    let head = [
        format!("inlined copies are {} of the code", arrow(sum(0), sum(1))),
        "the functions with copies that differ most".to_owned(),
    ];
    let mut text = format!("  {faint}{}{faint:#}\n", listed(&head).replace(" and ", "; "));
    text.push_str(&table::lines(&columns, &rows, width, palette));
    let all = pairs.iter().filter(copied).count();
    if all > top {
        let others = counted(all - top, "other function");
        text.push_str(&format!("  {faint}and {others}; --top N and --json show more{faint:#}\n"));
    }
    text
}

/// All code by origin; the bytes sum to the executable sections.
pub(super) fn json(pairs: &[OriginPair]) -> Value {
    let origin = |pair: &OriginPair| {
        let side = |side: usize| {
            let of = &pair.sides[side];
            json!({"own": of.own, "inlined": of.inlined, "copies": of.copies})
        };
        let name = if pair.name == "?" { "" } else { &pair.name };
        json!({
            "name": name,
            "kind": if pair.name.is_empty() { "no_symbol" } else if pair.name == "?" { "unknown" } else { "function" },
            "baseline": side(0),
            "variant": side(1),
            "difference": pair.difference(),
        })
    };
    pairs.iter().map(origin).collect()
}
