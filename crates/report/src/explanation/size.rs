//! The size of both variants' files: causes that sum to the difference, and every row.

mod inlined;
mod units;
mod waste;

use anstyle::Style;
use serde_json::{json, Value};
use widthwise_anatomy::size::by_unit::UnitPair;
use widthwise_anatomy::size::cause::{causes, Cause};
use widthwise_anatomy::size::difference::{Amount, Pair};
use widthwise_anatomy::size::inlined::OriginPair;
use widthwise_anatomy::size::waste::WastePair;
use widthwise_anatomy::size::{Berkeley, RowKind};
use widthwise_experiment::units::Unit;

use super::table::{self, Column};
use crate::explanation::model::{Measured, Part, Section};
use crate::format::{counted, listed};
use crate::heap::{bytes, signed};
use crate::text::{paragraph, Palette};
use widthwise_anatomy::Certainty;

/// The size of both variants' files: first the baseline's, then the variant's.
pub struct Size {
    /// The program, and the libraries that it brings, with their sizes.
    pub files: [Vec<(String, u64)>; 2],
    /// As `size` prints them, of all files together.
    pub berkeley: [Berkeley; 2],
    /// All rows, the largest difference first.
    pub pairs: Vec<Pair>,
    /// The program's file by compile unit; empty where one has no debug information.
    pub units: Vec<UnitPair>,
    /// The program's code by the function that it comes from; empty where one has no debug information.
    pub origins: Vec<OriginPair>,
    /// What the programs could do without; empty where the symbols of one are not known.
    pub waste: Vec<WastePair>,
    /// Whether the symbols of both are known.
    pub are_symbols_known: bool,
    /// Rows that the text shows.
    pub top: usize,
    /// What is withheld, and why.
    pub remarks: Vec<String>,
}

impl Size {
    fn totals(&self) -> [i64; 2] {
        self.files.each_ref().map(|files| files.iter().map(|(_, size)| *size as i64).sum())
    }

    fn causes(&self) -> Vec<Cause> {
        causes(&self.pairs)
    }

    /// Rows with a difference.
    fn differing(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.difference() != 0)
    }
}

impl Section for Size {
    fn name(&self) -> &'static str {
        "size"
    }

    fn measured(&self) -> Vec<Measured> {
        vec![Measured::counted("file_size", Unit::Bytes, self.totals())]
    }

    fn parts(&self) -> Vec<Part> {
        let measured = self.measured()[0];
        let known = self.causes().into_iter().filter(|cause| !cause.reason.is_empty());
        known
            .map(|cause| {
                let certainty = if cause.is_counted { Certainty::High } else { Certainty::Medium };
                measured.part(cause.reason, cause.place, cause.bytes, certainty)
            })
            .collect()
    }

    fn text(&self, width: usize, palette: &Palette) -> String {
        let strong = palette.strong;
        let mut text = format!("{strong}Size{strong:#}\n");
        let names = ["text", "data", "bss"];
        let sums = self.berkeley.map(|sums| [sums.text, sums.data, sums.bss]);
        let sums: Vec<String> = (0..3)
            .map(|at| format!("{} {} → {}", names[at], bytes(sums[0][at]), bytes(sums[1][at])))
            .collect();
        text.push_str(&format!("  {}\n", listed(&sums)));
        let brought: Vec<String> =
            self.files[1].iter().skip(1).map(|(name, size)| format!("{name} ({})", bytes(*size))).collect();
        if !brought.is_empty() {
            let line = format!("with the libraries that it brings: {}", listed(&brought));
            text += &paragraph(&line, width, Style::new());
        }
        for remark in &self.remarks {
            text += &paragraph(remark, width, Style::new());
        }
        let rows = self.causes().into_iter().map(|cause| {
            let reason = if cause.reason.is_empty() { "not explained".to_owned() } else { cause.reason };
            vec![signed(i128::from(cause.bytes)), reason, cause.place]
        });
        let columns = [Column::number("difference"), Column::text("reason"), Column::text("where")];
        text.push_str(&table::lines(&columns, &rows.collect::<Vec<_>>(), width, palette));
        text.push_str(&self.differing_rows(width, palette));
        text.push_str(&units::text(&self.units, self.top, width, palette));
        text.push_str(&inlined::text(&self.origins, self.top, width, palette));
        text.push_str(&waste::text(&self.waste, self.paddings(), self.top, width, palette));
        text
    }

    fn json(&self) -> Value {
        let side = |side: usize| {
            let Berkeley { text, data, bss } = self.berkeley[side];
            let files: Vec<Value> =
                self.files[side].iter().map(|(name, size)| json!({"name": name, "bytes": size})).collect();
            json!({"total": self.totals()[side], "text": text, "data": data, "bss": bss, "files": files})
        };
        let amount = |amount: Amount| json!({"bytes": amount.bytes, "count": amount.count});
        let row = |pair: &Pair| {
            json!({
                "file": pair.file, "section": pair.section, "kind": kind(pair.kind), "name": pair.shown_name(),
                "baseline": amount(pair.sides[0]), "variant": amount(pair.sides[1]), "difference": pair.difference(),
            })
        };
        json!({
            "baseline": side(0),
            "variant": side(1),
            "units": units::json(&self.units),
            "inlined": inlined::json(&self.origins),
            "waste": waste::json(&self.waste),
            "rows": self.pairs.iter().map(row).collect::<Vec<_>>(),
            "remarks": self.remarks,
        })
    }
}

impl Size {
    /// Bytes of padding inside sections, and between them, of both sides. What is inside lies between symbols.
    fn paddings(&self) -> [[u64; 2]; 2] {
        let inside = Some(RowKind::PaddingInside).filter(|_| self.are_symbols_known);
        [inside, Some(RowKind::PaddingBetween)].map(|kind| {
            let of_kind = || self.pairs.iter().filter(|pair| Some(pair.kind) == kind);
            [0, 1].map(|side| of_kind().map(|pair| pair.sides[side].bytes).sum())
        })
    }

    /// The table of the rows that differ most.
    fn differing_rows(&self, width: usize, palette: &Palette) -> String {
        let faint = palette.faint;
        let all = self.differing().count();
        if all == 0 {
            return String::new();
        }
        let mut text = format!("  {faint}the rows that differ most{faint:#}\n");
        let rows: Vec<Vec<String>> = self.differing().take(self.top).map(row).collect();
        let columns = [
            Column::number("difference"),
            Column::number("bytes"),
            Column::number("count"),
            Column::text("section"),
            Column::text("symbol"),
        ];
        text.push_str(&table::lines(&columns, &rows, width, palette));
        if all > self.top {
            text.push_str(&format!(
                "  {faint}and {}; --top N and --json show more{faint:#}\n",
                counted(all - self.top, "other row")
            ));
        }
        text
    }
}

fn kind(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Headers => "headers",
        RowKind::Symbol => "symbol",
        RowKind::Relocations => "relocations",
        RowKind::Section => "section",
        RowKind::Unnamed => "unnamed",
        RowKind::PaddingInside => "padding_inside",
        RowKind::PaddingBetween => "padding_between",
        RowKind::Uncovered => "uncovered",
    }
}

/// A row of the terminal's table.
fn row(pair: &Pair) -> Vec<String> {
    let [a, b] = pair.sides;
    let arrow = |a: String, b: String| if a == b { a } else { format!("{a} → {b}") };
    let name = match pair.kind {
        RowKind::Symbol | RowKind::Relocations | RowKind::Headers => pair.shown_name(),
        RowKind::Section => "(whole)".to_owned(),
        RowKind::Unnamed => "(no symbol)".to_owned(),
        RowKind::PaddingInside | RowKind::PaddingBetween => "(padding)".to_owned(),
        RowKind::Uncovered => "(covered by no section)".to_owned(),
    };
    let section = match pair.file.as_str() {
        "" => pair.section.clone(),
        file => format!("{file} {}", pair.section),
    };
    let counts = arrow(a.count.to_string(), b.count.to_string());
    vec![signed(i128::from(pair.difference())), arrow(bytes(a.bytes), bytes(b.bytes)), counts, section, name]
}
