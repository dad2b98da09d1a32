//! Why one variant requests less memory than another: its allocation sites, the most important first.

mod csv;
mod differences;
mod lifetimes;
mod markdown;
mod quantities;
mod recorded;
mod sentences;
mod side;
mod table;
mod types;

use anstyle::Style;
use serde::Serialize;
use widthwise_anatomy::function_name::without_parameters;
use widthwise_anatomy::heap::site::Site;
use widthwise_anatomy::heap::types::HeapType;
use widthwise_anatomy::heap::wrappers::Wrapper;
use widthwise_anatomy::heap::Values;
use widthwise_experiment::units::{Quantity, Unit};

use crate::sanitize;
use crate::text::{paragraph, Palette};

pub use differences::{Differences, Explanation, Judged, SitePeaks};
pub use quantities::{bytes, share_of};
pub(crate) use quantities::{not_quite, percent, signed};
pub use recorded::{Heap, Recorded};
pub use side::{typical, ProcessSums, RecordingSums, RssSummary, Side};

/// Version of the JSON.
const SCHEMA: u32 = 2;
/// A name longer than this loses its template arguments.
const LONG_NAME: usize = 60;

/// Whether a profile has bytes and no blocks, as massif's: then their number is not known.
fn is_uncounted(peak_bytes: u64, peak_blocks: u64) -> bool {
    peak_bytes > 0 && peak_blocks == 0
}

/// What the allocator uses for the blocks at the peak; none if the profile does not have it, as heaptrack's.
fn known_chunks(peak_bytes: u64, chunk_bytes: u64) -> Option<u64> {
    (chunk_bytes > 0 || peak_bytes == 0).then_some(chunk_bytes)
}

/// `72 → 48` bytes a block; one number where both are the same.
fn each(a: &Values, b: Option<&Values>) -> String {
    let mean = |values: &Values| {
        (values.peak_count > 0).then(|| {
            let mean = values.peak_bytes as f64 / values.peak_count as f64;
            if values.peak_bytes.is_multiple_of(values.peak_count) || mean >= 1000.0 {
                Quantity { value: mean.round(), unit: Unit::Count }.to_string()
            } else {
                format!("{mean:.1}")
            }
        })
    };
    change(mean(a), b.map(mean))
}

/// The median lifetime of the blocks, in each variant that has any.
fn median_lifetimes(a: &Values, b: Option<&Values>) -> String {
    match b.map(lifetimes::word) {
        None | Some(None) => lifetimes::word(a).unwrap_or_default(),
        Some(Some(b)) => match lifetimes::word(a) {
            None => b,
            Some(a) => change(Some(a), Some(Some(b))),
        },
    }
}

fn change(a: Option<String>, b: Option<Option<String>>) -> String {
    let none = || "none".to_owned();
    match (a, b) {
        (a, None) => a.unwrap_or_else(none),
        (Some(a), Some(Some(b))) if a == b => a,
        (a, Some(b)) => format!("{} → {}", a.unwrap_or_else(none), b.unwrap_or_else(none)),
    }
}

/// A readable name of a function or type: `std::string`, no parameters, and no template arguments where those
/// make it long.
pub fn short_name(name: &str) -> String {
    let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
    let tight = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>";
    let name =
        name.replace(string, "std::string").replace(tight, "std::string").replace("std::__cxx11::", "std::");
    let name = without_parameters(&name);
    if name.chars().count() <= LONG_NAME {
        return name.to_owned();
    }
    let mut short = String::new();
    let mut depth = 0usize;
    for character in name.chars() {
        match character {
            '<' => {
                if depth == 0 {
                    short.push_str("<…>");
                }
                depth += 1;
            }
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => short.push(character),
            _ => {}
        }
    }
    short
}

/// A type in words, with short names.
pub fn short_type(ty: &HeapType) -> String {
    sanitize::line(&ty.with_names(short_name))
}

/// The created type, the function that creates it, and its source location.
fn described(site: &Site) -> String {
    let function = sanitize::line(&short_name(&site.function));
    let place = sanitize::line(&site.location());
    match &site.made {
        Some(made) => format!("{}  {function}  {place}", sanitize::line(&short_name(made))),
        None => format!("{function}  {place}"),
    }
}

impl Explanation<'_> {
    /// What a reader must know of the sides, with their names.
    pub fn remarks(&self) -> Vec<String> {
        let sides = std::iter::once(self.a).chain(self.b);
        sides
            .flat_map(|side| side.remarks.iter().map(move |remark| format!("{}: {remark}", side.name)))
            .collect()
    }

    /// For the terminal, `width` columns wide.
    pub fn terminal(&self, width: usize, palette: &Palette) -> String {
        let mut text = String::new();
        let (strong, faint) = (palette.strong, palette.faint);
        let title = match self.b {
            Some(b) => format!("heap of {} and {}", self.a.name, b.name),
            None => format!("heap of {}", self.a.name),
        };
        text +=
            &format!("{strong}{}{strong:#} · {}\n\n", sanitize::line(self.program), sanitize::line(&title));
        for sentence in self.sentences() {
            text += &paragraph(&sentence, width, Style::new());
        }
        text.push('\n');
        text += &self.table(palette);
        text += &self.types_text(width, palette);
        let remarks = self.remarks();
        if !remarks.is_empty() {
            text.push('\n');
        }
        for remark in remarks {
            text += &paragraph(&remark, width, faint);
        }
        text
    }

    /// As JSON: all sites.
    ///
    /// # Errors
    /// None that numbers and texts could cause.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        #[derive(Serialize)]
        struct Numbers {
            peak_bytes: u64,
            peak_blocks: Option<u64>,
            peak_chunk_bytes: Option<u64>,
            bytes: Option<u64>,
            blocks: Option<u64>,
            left_bytes: Option<u64>,
            left_blocks: Option<u64>,
            lifetimes: Option<lifetimes::Lifetimes>,
        }
        let numbers = |values: &Values| {
            let known = |number: u64| (!is_uncounted(values.peak_bytes, values.peak_count)).then_some(number);
            Numbers {
                peak_bytes: values.peak_bytes,
                peak_blocks: known(values.peak_count),
                peak_chunk_bytes: known_chunks(values.peak_bytes, values.peak_chunk_bytes),
                bytes: known(values.bytes),
                blocks: known(values.count),
                left_bytes: known(values.live_bytes),
                left_blocks: known(values.live_count),
                lifetimes: lifetimes::lifetimes(values),
            }
        };
        let side = |side: &Side| -> Result<serde_json::Value, serde_json::Error> {
            let mut json = serde_json::to_value(side)?;
            if is_uncounted(side.peak_bytes, side.peak_blocks) {
                for key in ["peak_blocks", "bytes", "blocks", "left_bytes", "left_blocks"] {
                    json[key] = serde_json::Value::Null;
                }
            }
            json["peak_chunk_bytes"] = known_chunks(side.peak_bytes, side.peak_chunk_bytes).into();
            for (at, one) in side.recordings.iter().enumerate() {
                json["recordings"][at]["peak_chunk_bytes"] =
                    known_chunks(one.peak_bytes, one.peak_chunk_bytes).into();
            }
            Ok(json)
        };
        let sites: Vec<serde_json::Value> = self
            .pairs
            .iter()
            .map(|pair| {
                serde_json::json!({
                    "function": pair.site.function,
                    "file": pair.site.file,
                    "line": pair.site.line,
                    "module": pair.site.module,
                    "made": pair.site.made,
                    "a": numbers(&pair.a),
                    "b": self.b.map(|_| numbers(&pair.b)),
                })
            })
            .collect();
        let wrapper = |one: &Wrapper| serde_json::json!({ "function": one.function, "share": one.share, "is_site": !one.is_thin });
        let wrappers: Vec<serde_json::Value> = self.wrappers.iter().map(wrapper).collect();
        serde_json::to_string_pretty(&serde_json::json!({
            "schema": SCHEMA,
            "program": self.program,
            "wrappers": wrappers,
            "a": side(self.a)?,
            "b": self.b.map(side).transpose()?,
            "differences": self.differences().map(|differences| differences.all()).unwrap_or_default(),
            "max_rss": self.max_rss,
            "sites": sites,
            "types": self.types_json(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_to_a_readable_form() {
        assert_eq!(short_name("fill(Node&, int)"), "fill");
        assert_eq!(short_name("(anonymous namespace)::grow(int)"), "(anonymous namespace)::grow");
        assert_eq!(short_name("A::operator()(int) const"), "A::operator()");
        assert_eq!(
            short_name("lam::{lambda(int)#1}::operator()(int) const"),
            "lam::{lambda(int)#1}::operator()"
        );
        assert_eq!(short_name("f_local()::L"), "f_local()::L");
        assert_eq!(short_name("int (*)(char)"), "int (*)(char)");
        assert_eq!(
            short_name(
                "std::list<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >"
            ),
            "std::list<std::string >"
        );
        let long = format!("std::map<{}>::insert(int)", "int, ".repeat(30));
        assert_eq!(short_name(&long), "std::map<…>::insert");
    }
}
