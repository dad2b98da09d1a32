//! Structures and classes of two programs: which of them differ, why, and what another order of their members saves.

use anstyle::Style;
use serde_json::{json, Value};
use unicode_width::UnicodeWidthStr;
use widthwise_anatomy::layout::drawing::{Drawing, Place, Row};
use widthwise_anatomy::layout::{Cause, Comparison, Order, Share, TypeDifference};
use widthwise_experiment::units::{thousands, Unit};

use crate::explanation::model::{Measured, Part, Section};
use crate::format::counted;
use crate::heap::signed;
use crate::sanitize;
use crate::text::{paragraph, wrapped, Palette};
use widthwise_anatomy::Certainty;

/// Longer names are cut in tables.
const LONGEST_NAME: usize = 100;
/// Bytes in a row of a picture.
const ROW: usize = 8;
/// Columns of a place: its offset and its size.
const PLACE: usize = 16;

/// The layouts of both programs' types.
pub struct Layout<'a> {
    /// The names of the baseline and of the variant.
    pub names: [&'a str; 2],
    /// The types of both that differ, or could be smaller.
    pub comparison: Comparison,
    /// How many types are shown.
    pub top: usize,
    /// What could not be read, and why.
    pub remarks: Vec<String>,
}

/// A type of both programs, drawn.
pub struct Drawn {
    /// The type's sizes and causes.
    pub difference: TypeDifference,
    /// Its members and bytes.
    pub drawing: Drawing,
}

impl Section for Layout<'_> {
    fn name(&self) -> &'static str {
        "layout"
    }

    fn measured(&self) -> Vec<Measured> {
        let all = &self.comparison.differences;
        if all.is_empty() {
            return Vec::new();
        }
        let sum = |size: &dyn Fn(&TypeDifference) -> u64| {
            let size = |of| i64::try_from(size(of)).unwrap_or(i64::MAX);
            all.iter().map(size).fold(0_i64, i64::saturating_add)
        };
        let (baseline, variant) = (sum(&|of| of.baseline_size), sum(&|of| of.variant_size));
        vec![Measured::counted("type_sizes", Unit::Bytes, [baseline, variant])]
    }

    fn parts(&self) -> Vec<Part> {
        let Some(measured) = self.measured().first().copied() else { return Vec::new() };
        let of = |difference: &TypeDifference| {
            let place = place(difference);
            let part = |(cause, bytes): (Cause, i64)| {
                let certainty = match cause {
                    Cause::VirtualBases => Certainty::Medium,
                    _ => Certainty::High,
                };
                measured.part(cause.to_string(), place.clone(), bytes, certainty)
            };
            // Bytes without a known owner are what is not explained.
            let known = difference.causes().into_iter().filter(|(cause, _)| *cause != Cause::Unknown);
            known.map(part).collect::<Vec<_>>()
        };
        self.comparison.differences.iter().flat_map(of).collect()
    }

    fn text(&self, width: usize, palette: &Palette) -> String {
        let (strong, faint) = (palette.strong, palette.faint);
        let differ = self.comparison.differences.len();
        let all = differ + self.comparison.same_size;
        let mut text = format!("{strong}Layout{strong:#}\n");
        let head = format!(
            "{} of {} structures, classes and unions have another size in {} than in {}.",
            thousands(differ as i64),
            thousands(all as i64),
            sanitize::line(self.names[1]),
            sanitize::line(self.names[0]),
        );
        let remarks = self.remarks();
        let weighted = self.is_weighted().then(|| {
            format!(
                "They are ordered by what their objects at the peak of {}'s heap differ by, elements of arrays included.",
                self.names[0]
            )
        });
        for line in std::iter::once(&head).chain(&weighted).chain(&remarks) {
            text += &paragraph(line, width, Style::new());
        }
        if differ > 0 {
            text.push_str(&format!("{faint}  difference  baseline   variant  type{faint:#}\n"));
        }
        for difference in self.comparison.differences.iter().take(self.top) {
            self.push_type(difference, width, palette, &mut text);
        }
        if differ > self.top {
            text.push_str(&format!(
                "  {faint}and {}; --top N and --json show more, --type NAME draws one{faint:#}\n",
                counted(differ - self.top, "other type")
            ));
        }
        self.push_reorderable(width, &mut text);
        text
    }

    fn json(&self) -> Value {
        let order = |order: &Order| {
            json!({
                "members": order.members,
                "baseline_size": order.baseline_size,
                "variant_size": order.variant_size,
                "changes_abi": true,
            })
        };
        let of = |difference: &TypeDifference| {
            let shares: Vec<Value> = difference
                .shares
                .iter()
                .map(|share| json!({"cause": share.cause.to_string(), "nested": share.nested, "bytes": share.bytes}))
                .collect();
            json!({
                "type": difference.name,
                "where": difference.location.as_ref().map(ToString::to_string),
                "baseline_size": difference.baseline_size,
                "variant_size": difference.variant_size,
                "difference": -difference.saved(),
                "objects": difference.objects,
                "difference_at_peak": difference.saved_at_peak().map(|saved| -saved),
                "shares": shares,
                "order": difference.order.as_ref().map(order),
                "order_is_open": difference.is_order_open,
            })
        };
        json!({
            "types": self.comparison.differences.iter().map(of).collect::<Vec<_>>(),
            "same_size": self.comparison.same_size,
            "reorderable": self.comparison.reorderable.iter().map(of).collect::<Vec<_>>(),
            "only_baseline": self.comparison.only_baseline,
            "only_variant": self.comparison.only_variant,
            "ambiguous": self.comparison.ambiguous,
            "remarks": self.remarks,
        })
    }
}

/// Why no order is shown where one may be better.
const ORDER_IS_OPEN: &str = "Whether another order of the members needs less is left open: the debug information does not say in the padding \
    of which bases and members others may begin ([[no_unique_address]]).";

impl Layout<'_> {
    fn push_type(&self, of: &TypeDifference, width: usize, palette: &Palette, text: &mut String) {
        let (strong, faint) = (palette.strong, palette.faint);
        let head = format!(
            "  {:>10}  {:>8}  {:>8}  ",
            signed(i128::from(-of.saved())),
            thousands(of.baseline_size as i64),
            thousands(of.variant_size as i64),
        );
        text.push_str(&format!("{head}{strong}{}{strong:#}\n", place(of)));
        let indent = " ".repeat(head.width());
        let mut lines = vec![sentence(of)];
        if let (Some(objects), Some(saved)) = (of.objects.filter(|objects| *objects > 0), of.saved_at_peak())
        {
            lines.push(format!(
                "{} at the peak: {}",
                counted(objects as usize, "object"),
                signed(-i128::from(saved))
            ));
        }
        lines.extend(of.order.as_ref().map(|order| self.order_sentence(order, of)));
        lines.extend(of.is_order_open.then(|| ORDER_IS_OPEN.to_owned()));
        for line in lines.iter().flat_map(|line| wrapped(line, width.saturating_sub(indent.len()).max(40))) {
            text.push_str(&format!("{indent}{faint}{line}{faint:#}\n"));
        }
    }

    fn order_sentence(&self, order: &Order, of: &TypeDifference) -> String {
        let (a, b) = (sanitize::line(self.names[0]), sanitize::line(self.names[1]));
        let names: Vec<String> = order.members.iter().map(|name| sanitize::line(name)).collect();
        let saved = |now: u64, then: u64| thousands(now.saturating_sub(then) as i64);
        format!(
            "In the order {} an object needs {} bytes less in {a} and {} less in {b}; this changes the ABI.",
            names.join(", "),
            saved(of.baseline_size, order.baseline_size),
            saved(of.variant_size, order.variant_size),
        )
    }

    /// Whether a recording says how many objects there are.
    fn is_weighted(&self) -> bool {
        self.comparison.differences.iter().any(|of| of.objects.is_some_and(|objects| objects > 0))
    }

    /// Types that are of one size in both, and could be smaller.
    fn push_reorderable(&self, width: usize, text: &mut String) {
        let all = &self.comparison.reorderable;
        if all.is_empty() {
            return;
        }
        let need = match all.len() {
            1 => "type of one size needs less with another order of its members",
            _ => "types of one size need less with another order of their members",
        };
        text.push_str(&format!("  {} {need}\n", all.len()));
        for of in all.iter().take(self.top) {
            let Some(order) = &of.order else { continue };
            let sentence = format!("{}: {}", place(of), self.order_sentence(order, of));
            for (number, line) in wrapped(&sentence, width.saturating_sub(6).max(40)).iter().enumerate() {
                text.push_str(&format!("    {}{line}\n", if number == 0 { "" } else { "  " }));
            }
        }
    }

    /// What is withheld, and why.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = self.remarks.clone();
        let of = &self.comparison;
        let alone = |name: &str| [format!("is in {name} alone"), format!("are in {name} alone")];
        let several = [
            "stands for several layouts of one name, and is not compared",
            "stand for several layouts of one name, and are not compared",
        ]
        .map(str::to_owned);
        for (names, [one, more]) in [
            (&of.only_baseline, alone(self.names[0])),
            (&of.only_variant, alone(self.names[1])),
            (&of.ambiguous, several),
        ] {
            match names.as_slice() {
                [] => {}
                [only] => remarks.push(format!("1 type {one}: {}.", cut(only))),
                [first, ..] => remarks.push(format!(
                    "{} types {more}, such as {}.",
                    thousands(names.len() as i64),
                    cut(first)
                )),
            }
        }
        remarks
    }
}

/// The type's name and place, on one line.
fn place(of: &TypeDifference) -> String {
    match &of.location {
        Some(location) => format!("{} ({})", cut(&of.name), sanitize::line(&location.to_string())),
        None => cut(&of.name),
    }
}

/// The parts in words, the largest first.
fn sentence(of: &TypeDifference) -> String {
    let part = |share: &Share| match &share.nested {
        Some(nested) => {
            format!("{:+} {} in {}", share.bytes, sanitize::line(&share.cause.to_string()), cut(nested))
        }
        None => format!("{:+} {}", share.bytes, sanitize::line(&share.cause.to_string())),
    };
    of.shares.iter().map(part).collect::<Vec<_>>().join(", ")
}

fn cut(name: &str) -> String {
    let name = sanitize::line(name);
    if name.chars().count() <= LONGEST_NAME {
        return name;
    }
    let half = LONGEST_NAME / 2 - 1;
    let letters: Vec<char> = name.chars().collect();
    let (start, end) = (&letters[..half], &letters[letters.len() - half..]);
    format!("{}…{}", start.iter().collect::<String>(), end.iter().collect::<String>())
}

/// One type in both ABIs, side by side: a row for each member and each padding, then every byte.
pub fn drawn(names: [&str; 2], of: &TypeDifference, drawing: &Drawing, palette: &Palette) -> String {
    let (strong, faint) = (palette.strong, palette.faint);
    let names = names.map(sanitize::line);
    // Long names stand above the table alone, so that its columns stay narrow.
    let is_long = names.iter().any(|name| name.width() > PLACE);
    let heads = if is_long { ["baseline", "variant"].map(str::to_owned) } else { names.clone() };
    let label = |row: &Row| match row.type_name.as_str() {
        "" => sanitize::line(&row.name),
        ty => format!("{}: {}", sanitize::line(&row.name), cut(ty)),
    };
    let longest = drawing.rows.iter().map(|row| label(row).width()).max().unwrap_or(0).clamp(12, 60);
    let mut text = format!("{strong}{}{strong:#}\n", place(of));
    if is_long {
        text.push_str(&format!("baseline {}, variant {}\n", names[0], names[1]));
    }
    text.push_str(&format!(
        "{faint}    {:longest$}  {:>PLACE$}  {:>PLACE$}{faint:#}\n",
        "", heads[0], heads[1]
    ));
    text.push_str(&format!(
        "{faint}    {:longest$}  {:>9} {:>6}  {:>9} {:>6}{faint:#}\n",
        "", "offset", "size", "offset", "size"
    ));
    for row in &drawing.rows {
        let causes: Vec<String> = row
            .causes
            .iter()
            .map(|(cause, bytes)| match bytes {
                0 => sanitize::line(cause),
                bytes => format!("{bytes:+} {}", sanitize::line(cause)),
            })
            .collect();
        let label = label(row);
        let fill = " ".repeat(longest.saturating_sub(label.width()));
        let (a, b) = (columns(row.baseline.as_ref()), columns(row.variant.as_ref()));
        let line = format!("  {} {label}{fill}  {a}  {b}  {}", row.mark, causes.join(", "));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let (a, b) = (thousands(of.baseline_size as i64), thousands(of.variant_size as i64));
    text.push_str(&format!(
        "    {:longest$}  {a:>PLACE$}  {b:>PLACE$}  {}\n",
        "bytes of an object",
        sentence(of)
    ));
    text.push('\n');
    text.push_str(&strips(&drawing.baseline_bytes, &drawing.variant_bytes, &heads, palette));
    text
}

fn columns(place: Option<&Place>) -> String {
    match place {
        None => " ".repeat(PLACE),
        Some(Place { bits: Some((offset, size)), .. }) => {
            format!("{:>9} {:>6}", format!("{}.{}", offset / 8, offset % 8), format!("{size} bit"))
        }
        Some(place) => format!("{:>9} {:>6}", place.offset, place.size),
    }
}

/// Every byte as its member's letter, eight in a row.
fn strips(a: &str, b: &str, names: &[String; 2], palette: &Palette) -> String {
    let faint = palette.faint;
    if a.is_empty() && b.is_empty() {
        return String::new();
    }
    let rows = |of: &str| -> Vec<String> {
        of.chars().collect::<Vec<char>>().chunks(ROW).map(|row| row.iter().collect()).collect()
    };
    let (a, b) = (rows(a), rows(b));
    let first = names[0].width().max(ROW);
    let mut text = format!("{faint}  {:>8}  {:<first$}  {}{faint:#}\n", "byte", names[0], names[1]);
    for number in 0..a.len().max(b.len()) {
        let of = |rows: &[String]| rows.get(number).cloned().unwrap_or_default();
        let line = format!("  {:>8}  {:<first$}  {}", number * ROW, of(&a), of(&b));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
