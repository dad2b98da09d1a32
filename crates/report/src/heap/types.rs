//! The types of heap blocks: a table, sentences on what has a type and a cause, and JSON.

use serde_json::{json, Value};
use unicode_width::UnicodeWidthStr;
use widthwise_anatomy::heap::types::{
    AllocatorPart, AllocatorRule, Amount, Cause, Part, Side, TypeRow, TypedHeap, TypedPair,
};
use widthwise_anatomy::Certainty;

use super::differences::FLOOR;
use super::quantities::{not_quite, number};
use super::{bytes, change, each, percent, short_type, signed, Explanation};
use crate::format::counted;
use crate::sanitize;
use crate::text::{paragraph, Palette};

const COLUMNS: usize = 6;

impl Explanation<'_> {
    /// The table of types, with a sentence before and after it; where no type is known, what is missing.
    pub(crate) fn types_text(&self, width: usize, palette: &Palette) -> String {
        let Some(types) = self.types.filter(|_| self.b.is_none() || !self.sides_are_incomplete()) else {
            return String::new();
        };
        let rows = types.by_type();
        let shown = self.shown(&rows);
        if rows.iter().all(|row| row.ty.is_none()) {
            return types.remarks.iter().map(|line| paragraph(line, width, palette.faint)).collect();
        }
        let mut text = String::from("\n");
        text += &paragraph(&self.typed_sentence(types), width, Default::default());
        text += &self.types_table(&shown, palette, width);
        for sentence in self.allocator_sentence(types, &rows).iter().chain(&types.remarks) {
            text += &paragraph(sentence, width, Default::default());
        }
        text
    }

    fn sides_are_incomplete(&self) -> bool {
        std::iter::once(self.a).chain(self.b).any(|side| !side.incomplete.is_empty())
    }

    /// `Typed: 91 % of heap bytes`, and how much of the difference has causes.
    fn typed_sentence(&self, types: &TypedHeap) -> String {
        let share = |side| not_quite(types.typed_share(side).unwrap_or(0.0));
        let (a, b) = (share(Side::A), share(Side::B));
        let typed = match self.b {
            None => format!("Typed: {a} of the bytes at the peak."),
            Some(_) if a == b => format!("Typed: {a} of heap bytes in both."),
            Some(b_side) => format!("Typed: {a} of heap bytes in {}, {b} in {}.", self.a.name, b_side.name),
        };
        let explained = types.explained();
        match (self.b, explained.share()) {
            (Some(_), Some(share)) => {
                format!(
                    "{typed} Causes of certainty medium or high: {} of the sites' differences; {} are not explained.",
                    not_quite(share),
                    signed(i128::from(explained.unexplained)).replace('+', "")
                )
            }
            _ => typed,
        }
    }

    fn shown<'r>(&self, rows: &'r [TypeRow]) -> Shown<'r> {
        let mut shown = Shown::default();
        for row in rows {
            match self.b {
                None if row.a.values.peak_bytes > 0 => shown.clear.push(row),
                Some(_) if (row.difference().unsigned_abs() as f64) >= FLOOR => shown.clear.push(row),
                Some(_) if row.difference() != 0 => shown.small.push(row),
                _ => {}
            }
        }
        shown
    }

    fn types_table(&self, shown: &Shown, palette: &Palette, width: usize) -> String {
        let mut lines: Vec<([String; COLUMNS], Vec<String>)> = vec![(self.heading(), Vec::new())];
        for row in shown.clear.iter().take(self.top) {
            lines.push((self.cells(row), self.below(row)));
        }
        let hidden = &shown.clear[shown.clear.len().min(self.top)..];
        for (rows, what) in [
            (hidden, format!("{} (--top)", counted(hidden.len(), "other type"))),
            (
                &shown.small[..],
                format!(
                    "{}, less than 1 KiB{}",
                    counted(shown.small.len(), "other type"),
                    if shown.small.len() == 1 { "" } else { " each" }
                ),
            ),
        ] {
            if !rows.is_empty() {
                let sum = rows.iter().map(|row| self.amount(row)).sum();
                let none = String::new;
                lines.push((
                    [self.shown_amount(sum), self.share(sum), none(), none(), none(), what],
                    Vec::new(),
                ));
            }
        }
        let widths: Vec<usize> = (0..COLUMNS - 1)
            .map(|column| lines.iter().map(|(cells, _)| cells[column].width()).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for (index, (cells, below)) in lines.iter().enumerate() {
            let mut line = String::from("  ");
            for (cell, width) in cells.iter().zip(&widths).filter(|(_, width)| **width > 0) {
                line += &format!("{}{cell}   ", " ".repeat(width - cell.width()));
            }
            let indent = line.width();
            line += &cells[COLUMNS - 1];
            let style = if index == 0 { palette.faint } else { Default::default() };
            text += &format!("{style}{}{style:#}\n", line.trim_end());
            let faint = palette.faint;
            for line in
                below.iter().flat_map(|line| crate::text::wrapped(line, width.saturating_sub(indent).max(40)))
            {
                text += &format!("{}{faint}{line}{faint:#}\n", " ".repeat(indent));
            }
        }
        text
    }

    fn heading(&self) -> [String; COLUMNS] {
        let first = if self.b.is_some() { "difference" } else { "at peak" };
        let share = if self.has_shares() { "share" } else { "" };
        [first, share, "objects", "bytes each", "certainty", "type, where"].map(str::to_owned)
    }

    fn has_shares(&self) -> bool {
        self.differences().is_none_or(|differences| differences.peak_heap.is_clear())
    }

    fn amount(&self, row: &TypeRow) -> i128 {
        match self.b {
            Some(_) => i128::from(row.difference()),
            None => i128::from(row.a.values.peak_bytes),
        }
    }

    fn shown_amount(&self, value: i128) -> String {
        match self.b {
            Some(_) => signed(value),
            None => bytes(value as u64),
        }
    }

    fn share(&self, value: i128) -> String {
        match self.b {
            _ if !self.has_shares() => String::new(),
            Some(b) => percent(-(value as f64), self.a.peak_bytes as f64 - b.peak_bytes as f64),
            None => percent(value as f64, self.a.peak_bytes as f64),
        }
    }

    fn cells(&self, row: &TypeRow) -> [String; COLUMNS] {
        let both = |of: &dyn Fn(&Amount) -> Option<u64>| {
            let text = |amount: &Amount| {
                (amount.values.peak_count > 0).then(|| of(amount).map_or("?".to_owned(), number))
            };
            change(text(&row.a), self.b.map(|_| text(&row.b)))
        };
        let objects = match row.ty {
            Some(_) => both(&|amount| amount.objects.or(Some(amount.values.peak_count))),
            None => both(&|amount| Some(amount.values.peak_count)),
        };
        let size = |amount: &Amount| {
            let values = &amount.values;
            let mean = || {
                values
                    .peak_bytes
                    .checked_div(values.peak_count)
                    .filter(|each| each * values.peak_count == values.peak_bytes)
            };
            amount.size.or_else(|| row.ty.as_ref().and_then(|_| mean()))
        };
        let each = match &row.ty {
            // The blocks have other sizes than their objects.
            Some(ty) if ty.behind.is_some() => each(&row.a.values, self.b.map(|_| &row.b.values)),
            Some(_) => both(&size),
            None => String::new(),
        };
        let amount = self.amount(row);
        let certainty = row.ty.as_ref().map_or("", |_| row.certainty.name());
        [
            self.shown_amount(amount),
            self.share(amount),
            objects,
            each,
            certainty.to_owned(),
            self.described_type(row),
        ]
    }

    fn described_type(&self, row: &TypeRow) -> String {
        let place = sanitize::line(&row.site.location());
        let more = match row.sites {
            0 | 1 => String::new(),
            sites => format!(" and {}", counted(sites - 1, "other site")),
        };
        match &row.ty {
            Some(ty) => format!("{}  {place}{more}", short_type(ty)),
            None => format!("blocks without a known type  {place}{more}"),
        }
    }

    /// The causes in words.
    fn below(&self, row: &TypeRow) -> Vec<String> {
        if self.b.is_none() {
            return Vec::new();
        }
        let cause = |(name, amount): &(String, i64)| format!("{} {name}", signed(i128::from(*amount)));
        let causes: Vec<String> = row.causes().iter().map(cause).collect();
        let text = sanitize::line(&causes.join(", "));
        if text.is_empty() {
            Vec::new()
        } else {
            vec![text]
        }
    }

    /// What the allocator uses beside the requested bytes, and its rule for the type that differs most.
    fn allocator_sentence(&self, types: &TypedHeap, rows: &[TypeRow]) -> Option<String> {
        self.b?;
        let mut parts = types.allocator();
        let difference: i64 = parts.iter().map(AllocatorPart::bytes).sum();
        if parts.is_empty() || (difference.unsigned_abs() as f64) < FLOOR {
            return None;
        }
        parts.sort_by_key(|part| part.rule);
        let of = |part: &AllocatorPart| {
            let (change, rule) = (signed(i128::from(part.bytes())), part.rule);
            format!("{change} {rule} ({} → {})", bytes(part.a), bytes(part.b))
        };
        let each: Vec<String> = parts.iter().map(of).collect();
        let rules: Vec<(String, bool)> = rows.iter().filter_map(rule_of).collect();
        let example = rules.iter().find(|(_, is_rule)| *is_rule).or(rules.first());
        let example = example.map_or(String::new(), |(rule, _)| format!("; {rule}"));
        Some(format!(
            "Beside the requested bytes, the allocator's chunks differ by {}: {}{example}.",
            signed(i128::from(difference)),
            each.join(", ")
        ))
    }

    /// As JSON.
    pub(super) fn types_json(&self) -> Value {
        let Some(types) = self.types else { return Value::Null };
        let explained = types.explained();
        json!({
            "typed_share": {
                "a": types.typed_share(Side::A),
                "b": self.b.and_then(|_| types.typed_share(Side::B)),
            },
            "explained": self.b.map(|_| json!({
                "difference": explained.difference,
                "unexplained": explained.unexplained,
                "share": explained.share(),
            })),
            "types": types.by_type().iter().map(|row| self.type_json(row)).collect::<Vec<_>>(),
            "sites": types.pairs.iter().map(|pair| self.pair_json(pair)).collect::<Vec<_>>(),
            "allocator": allocator_json(&types.allocator()),
            "remarks": types.remarks,
        })
    }

    fn type_json(&self, row: &TypeRow) -> Value {
        json!({
            "type": row.ty.as_ref().map(ToString::to_string),
            "name": row.ty.as_ref().map(|ty| &ty.name),
            "container": row.ty.as_ref().and_then(|ty| ty.container.as_ref()),
            "is_array": row.ty.as_ref().map(|ty| ty.is_array),
            "behind": row.ty.as_ref().and_then(|ty| ty.behind.as_ref()),
            "where": row.site.location(),
            "function": row.site.function,
            "sites": row.sites,
            "certainty": row.certainty.name(),
            "source": row.source.name(),
            "a": amount_json(&row.a),
            "b": self.b.map(|_| amount_json(&row.b)),
            "difference": self.b.map(|_| row.difference()),
            "parts": row.parts.iter().map(part_json).collect::<Vec<_>>(),
            "allocator": allocator_json(&row.allocator),
        })
    }

    fn pair_json(&self, pair: &TypedPair) -> Value {
        json!({
            "type": pair.ty.as_ref().map(ToString::to_string),
            "name": pair.ty.as_ref().map(|ty| &ty.name),
            "container": pair.ty.as_ref().and_then(|ty| ty.container.as_ref()),
            "is_array": pair.ty.as_ref().map(|ty| ty.is_array),
            "behind": pair.ty.as_ref().and_then(|ty| ty.behind.as_ref()),
            "function": pair.site.function,
            "where": pair.site.location(),
            "certainty": pair.certainty.name(),
            "source": pair.source.name(),
            "candidates": pair.candidates,
            "a": amount_json(&pair.a),
            "b": self.b.map(|_| amount_json(&pair.b)),
            "parts": pair.parts.iter().map(part_json).collect::<Vec<_>>(),
        })
    }
}

/// Types, by whether they are shown.
#[derive(Default)]
struct Shown<'r> {
    clear: Vec<&'r TypeRow>,
    /// They differ by less than the smallest difference that is reported.
    small: Vec<&'r TypeRow>,
}

/// `72 + 8 → 80 bytes, and 40 + 4 → 48`: how the allocator rounds the blocks of a type that are all of one size, `72 → 80` where it has no
/// header before them or that is not known. Else the mean of the chunks, and that it is one: glibc gives a block the rest of a chunk that is
/// too small for another one.
fn rule_of(row: &TypeRow) -> Option<(String, bool)> {
    let one = |amount: &Amount, header: u64| {
        // A mean may be the size of no block.
        let (values, size) = (&amount.values, amount.values.sizes.only()?);
        need(size, header, values.peak_chunk_bytes, values.peak_count)
    };
    if row.allocator.is_empty() {
        return None;
    }
    let headers = row.allocator.iter().find(|part| part.rule == AllocatorRule::Header);
    let [of_a, of_b] = headers.map_or([0, 0], |part| [part.a, part.b]);
    let header = |sum: u64, amount: &Amount| sum.checked_div(amount.values.peak_count);
    let (a, a_is_rule) = one(&row.a, header(of_a, &row.a)?)?;
    let (b, b_is_rule) = one(&row.b, header(of_b, &row.b)?)?;
    let name = short_type(row.ty.as_ref()?);
    let is_rule = a_is_rule && b_is_rule;
    let mean = if is_rule { "" } else { " in the mean" };
    Some((format!("a block of {name} needs {a} bytes, and {b}{mean}"), is_rule))
}

/// What a block needs of chunks of so many bytes in all, and whether all of them may have that size: chunks are multiples of 16 bytes,
/// small ones of 8, and no larger than needed, unless they are whole pages or of an allocator's size classes (at most four bits).
fn need(size: u64, header: u64, chunk_bytes: u64, count: u64) -> Option<(String, bool)> {
    const ALIGNMENT: u64 = 16;
    const SMALL: u64 = 64;
    const PAGE: u64 = 4096;
    let chunk = chunk_bytes.checked_add(count / 2)?.checked_div(count)?;
    let over = chunk.saturating_sub(size.saturating_add(header));
    let is_multiple = chunk % ALIGNMENT == 0 || chunk <= SMALL && chunk % (ALIGNMENT / 2) == 0;
    let is_class =
        chunk % PAGE == 0 || chunk.checked_shr(chunk.trailing_zeros()).is_none_or(|bits| bits < 16);
    let is_rule =
        count == 1 || chunk_bytes.is_multiple_of(count) && is_multiple && (over < ALIGNMENT || is_class);
    let with_header = if header == 0 { String::new() } else { format!(" + {header}") };
    Some((format!("{size}{with_header} → {chunk}"), is_rule))
}

fn amount_json(amount: &Amount) -> Value {
    json!({
        "bytes": amount.values.peak_bytes,
        "blocks": amount.values.peak_count,
        "chunk_bytes": amount.values.peak_chunk_bytes,
        "objects": amount.objects,
        "size": amount.size,
        "elements_behind": amount.elements_behind,
    })
}

fn part_json(part: &Part) -> Value {
    let nested = match &part.cause {
        Cause::Layout { nested, .. } => nested.as_deref(),
        _ => None,
    };
    json!({
        "cause": part.cause.to_string(),
        "nested": nested,
        "bytes": part.bytes,
        "certainty": part.certainty.name(),
        "is_explained": part.cause.is_named() && part.certainty > Certainty::Low,
    })
}

fn allocator_json(parts: &[AllocatorPart]) -> Vec<Value> {
    let part = |part: &AllocatorPart| json!({ "rule": part.rule.to_string(), "a": part.a, "b": part.b });
    parts.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::need;

    #[test]
    fn the_mean_of_chunks_of_several_sizes_is_no_rule() {
        for (size, header, chunk_bytes, count) in [
            (72, 8, 80 * 10, 10),
            (40, 4, 48 * 3, 3),
            (1, 8, 32 * 9, 9),
            (17, 7, 24 * 9, 9),
            (72_704, 8, 72_720, 1),
            (200_000, 8, 200_704 * 2, 2),
            (600, 8, 640 * 5, 5),
        ] {
            let chunk = chunk_bytes / count;
            assert_eq!(
                need(size, header, chunk_bytes, count),
                Some((format!("{size} + {header} → {chunk}"), true))
            );
        }
        // Some are of 8192 bytes, others of 8208 or 8224.
        for (count, larger, mean) in [(100, 6 * 16, 8193), (2, 16, 8200), (2, 32, 8208)] {
            let found = need(8176, 8, 8192 * count + larger, count);
            assert_eq!(found, Some((format!("8176 + 8 → {mean}"), false)));
        }
        assert_eq!(need(8176, 8, 0, 0), None);
        assert_eq!(need(10_240_000, 0, 10_485_760, 1), Some(("10240000 → 10485760".to_owned(), true)));
    }
}
