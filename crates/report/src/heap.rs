//! Why one variant asks for less memory than another: its allocation sites, those that matter first.

mod lives;
mod recorded;

use anstyle::Style;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;
use widthwise_anatomy::heap::discrepancy::Views;
use widthwise_anatomy::heap::site::{Pair, Site};
use widthwise_anatomy::heap::Values;
use widthwise_experiment::units::{Quantity, Unit};

use crate::amounts::counted;
use crate::terminal::{wrapped, Palette};
use crate::visible;

pub use recorded::{Heap, Recorded};

/// Version of the JSON.
const SCHEMA: u32 = 1;
/// No terminal is narrower.
const NARROWEST: usize = 40;
/// Savings that differ by more than this are told to be different.
const PARTED: f64 = 0.05;
/// Of the table.
const COLUMNS: usize = 6;
/// A name longer than this loses its template arguments.
const LONG_NAME: usize = 60;

/// One variant's heap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// The variant, or the log's file.
    pub name: String,
    /// Processes that left a log; each is shown at its own peak.
    pub processes: usize,
    /// Bytes that were asked for, at the peak.
    pub peak_bytes: u64,
    /// Blocks at the peak.
    pub peak_blocks: u64,
    /// What the allocator used for them; 0 where it is not glibc and does not say.
    pub peak_chunk_bytes: u64,
    /// Blocks that were asked for over its life.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks that were never given back.
    pub left_blocks: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Memory, not files, that the program mapped by itself and kept: it is in no other number.
    pub own_mapped_bytes: u64,
    /// The heap as the system sees it beside what the program asks for, where that was read: means over time.
    pub system: Option<SystemView>,
    /// Blocks of at least 128 KiB: how many had a mapping of their own, and how many did not.
    pub large_blocks: (u64, u64),
    /// What a reader must know.
    pub remarks: Vec<String>,
}

/// Both views of a heap. Bytes, means over time but for the peak.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SystemView {
    /// Resident: the heap, and anonymous mappings.
    pub resident_bytes: u64,
    /// The most of it.
    pub peak_resident_bytes: u64,
    /// What the program asked for and had not given back.
    pub asked_bytes: u64,
    /// What the allocator used for that.
    pub live_bytes: u64,
    /// Resident although nobody asked for it.
    pub kept_bytes: u64,
    /// Of these: in the heap that brk grows.
    pub kept_in_heap_bytes: u64,
}

impl SystemView {
    /// Of the two views over a run.
    pub fn of(views: &Views) -> SystemView {
        let mean = &views.mean;
        SystemView {
            resident_bytes: mean.resident,
            peak_resident_bytes: views.peak().resident,
            asked_bytes: mean.asked,
            live_bytes: mean.live,
            kept_bytes: mean.kept(),
            kept_in_heap_bytes: mean.kept_in_heap(),
        }
    }
}

/// What is shown.
#[derive(Debug)]
pub struct Explanation<'a> {
    /// The program.
    pub program: &'a str,
    /// What is explained, or what the other is compared with.
    pub a: &'a Side,
    /// What is compared with it.
    pub b: Option<&'a Side>,
    /// All sites. Where there is no `b`, its values are 0.
    pub pairs: &'a [Pair],
    /// So many are shown.
    pub top: usize,
}

pub(crate) fn bytes(value: u64) -> String {
    Quantity { value: value as f64, unit: Unit::Bytes }.to_string()
}

fn number(value: u64) -> String {
    Quantity { value: value as f64, unit: Unit::Count }.to_string()
}

pub(crate) fn signed(value: i128) -> String {
    let sign = match value {
        0 => "",
        1.. => "+",
        _ => "−",
    };
    format!("{sign}{}", bytes(value.unsigned_abs() as u64))
}

pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole == 0.0 {
        return String::new();
    }
    let share = 100.0 * part / whole;
    let text = if share.abs() < 9.95 { format!("{share:.1} %") } else { format!("{share:.0} %") };
    text.replace('-', "−")
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

/// How long half of the blocks live, in each variant that has any.
fn lived(a: &Values, b: Option<&Values>) -> String {
    match b.map(lives::word) {
        None | Some(None) => lives::word(a).unwrap_or_default(),
        Some(Some(b)) => match lives::word(a) {
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

/// A function or type as a person would say it: `std::string` by its name, without parameters, and without template
/// arguments where those make it long.
pub fn short_name(name: &str) -> String {
    let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
    let tight = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>";
    let name =
        name.replace(string, "std::string").replace(tight, "std::string").replace("std::__cxx11::", "std::");
    let name = without_parameters(&name);
    if name.chars().count() <= LONG_NAME {
        return name;
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

fn without_parameters(name: &str) -> String {
    let mut depth = 0usize;
    for (offset, character) in name.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && offset > 0 => {
                let before = &name[..offset];
                // The call operator, and what stands in a nameless namespace, have brackets in their names.
                let in_name = before.ends_with("operator")
                    || name[offset..].starts_with("(anonymous namespace)")
                    || name[offset..].starts_with("({lambda");
                if !in_name {
                    return before.trim_end().to_owned();
                }
            }
            _ => {}
        }
    }
    name.to_owned()
}

/// What is made, by which function, and where.
fn described(site: &Site) -> String {
    let function = visible::line(&short_name(&site.function));
    let place = visible::line(&site.place());
    match &site.made {
        Some(made) => format!("{}  {function}  {place}", visible::line(&short_name(made))),
        None => format!("{function}  {place}"),
    }
}

impl Explanation<'_> {
    /// For the terminal, `width` columns wide.
    pub fn terminal(&self, width: usize, palette: &Palette) -> String {
        let mut text = String::new();
        let (strong, faint) = (palette.strong, palette.faint);
        let title = match self.b {
            Some(b) => format!("heap of {} and {}", self.a.name, b.name),
            None => format!("heap of {}", self.a.name),
        };
        text += &format!("{strong}{}{strong:#} · {}\n\n", visible::line(self.program), visible::line(&title));
        for sentence in self.sentences() {
            text += &paragraph(&sentence, width, Style::new());
        }
        text.push('\n');
        text += &self.table(palette);
        let remarks: Vec<String> = std::iter::once(self.a)
            .chain(self.b)
            .flat_map(|side| side.remarks.iter().map(move |remark| format!("{}: {remark}", side.name)))
            .collect();
        if !remarks.is_empty() {
            text.push('\n');
        }
        for remark in remarks {
            text += &paragraph(&visible::line(&remark), width, faint);
        }
        text
    }

    /// The answer, in words.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let a = self.a;
        match self.b {
            None => {
                // Other profilers do not tell everything.
                let blocks = match a.peak_blocks {
                    0 => String::new(),
                    blocks => format!(" in {}", counted(blocks as usize, "block")),
                };
                let chunks = match a.peak_chunk_bytes {
                    0 => String::new(),
                    chunks => format!(": the allocator uses {} for them", bytes(chunks)),
                };
                sentences.push(format!(
                    "{} has most memory when it has {}{blocks}{chunks}.",
                    a.name,
                    bytes(a.peak_bytes)
                ));
                if a.blocks > 0 {
                    sentences.push(format!(
                        "Over its life it asks for {} in {}; {} are never given back.",
                        bytes(a.bytes),
                        counted(a.blocks as usize, "block"),
                        bytes(a.left_bytes)
                    ));
                }
            }
            Some(b) => {
                let less = |a: u64, b: u64| match a as i128 - b as i128 {
                    0 => "the same".to_owned(),
                    saving if saving > 0 => {
                        format!("{} ({}) less", bytes(saving as u64), percent(saving as f64, a as f64))
                    }
                    saving => {
                        format!("{} ({}) more", bytes(-saving as u64), percent(-saving as f64, a as f64))
                    }
                };
                sentences.push(
                    format!(
                        "{} asks for {} at its peak than {}: {} → {}, in {} blocks.",
                        b.name,
                        less(a.peak_bytes, b.peak_bytes).replace("the same", "as much"),
                        a.name,
                        bytes(a.peak_bytes),
                        bytes(b.peak_bytes),
                        change(Some(number(a.peak_blocks)), Some(Some(number(b.peak_blocks))))
                    )
                    .replace("as much at its peak than", "as much at its peak as"),
                );
                if a.peak_chunk_bytes > 0 && b.peak_chunk_bytes > 0 {
                    sentences.push(format!(
                        "What the allocator uses for them, its own words and rounding included: {} → {}, {}.",
                        bytes(a.peak_chunk_bytes),
                        bytes(b.peak_chunk_bytes),
                        less(a.peak_chunk_bytes, b.peak_chunk_bytes)
                    ));
                }
            }
        }
        sentences.extend(self.lives());
        sentences.extend(self.discrepancy());
        for side in std::iter::once(a).chain(self.b).filter(|side| side.processes > 1) {
            sentences.push(format!(
                "{}: summed over {} processes, each at its own peak.",
                side.name, side.processes
            ));
        }
        sentences
    }

    /// How long blocks live, over all sites.
    fn lives(&self) -> Option<String> {
        let (mut a, mut b) = (Values::default(), Values::default());
        for pair in self.pairs {
            a.add(&pair.a);
            b.add(&pair.b);
        }
        lives::sentence((&self.a.name, &a), self.b.map(|side| (side.name.as_str(), &b)))
    }

    /// Where the two views of the heap part, and why.
    fn discrepancy(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let (a, b) = (self.a, self.b);
        let Some(view) = &a.system else { return sentences };
        let kept = |side: &Side, view: &SystemView| {
            format!(
                "{}: the system has given {} for the heap on average, and the program asks for {}; {} are kept by the \
                 allocator",
                side.name,
                bytes(view.resident_bytes),
                bytes(view.asked_bytes),
                bytes(view.kept_bytes)
            )
        };
        let Some((b, other)) = b.and_then(|b| Some((b, b.system.as_ref()?))) else {
            sentences.push(format!("{}.", kept(a, view)));
            return sentences;
        };
        if view.resident_bytes == 0 || view.asked_bytes == 0 {
            return sentences;
        }
        let saving = |a: u64, b: u64| (a as f64 - b as f64) / a as f64;
        let system = saving(view.resident_bytes, other.resident_bytes);
        let program = saving(view.asked_bytes, other.asked_bytes);
        // Rounding and words of its own are the allocator's price for what is asked for; what it keeps is another matter.
        let used = if view.live_bytes > 0 { saving(view.live_bytes, other.live_bytes) } else { program };
        let said = |saving: f64| {
            let word = if saving < 0.0 { "more" } else { "less" };
            format!("{} {word}", percent(saving.abs(), 1.0))
        };
        if (system - used).abs() < PARTED {
            let rounding = if (used - program).abs() < PARTED {
                String::new()
            } else {
                format!(", which is {} with the allocator's rounding and words", said(used))
            };
            sentences.push(format!(
                "The system sees the same: on average over the run it gives {} for the heap ({} → {}), and the program asks \
                 for {}{rounding}.",
                said(system),
                bytes(view.resident_bytes),
                bytes(other.resident_bytes),
                said(program)
            ));
            return sentences;
        }
        let rounding = if (used - program).abs() < PARTED {
            String::new()
        } else {
            format!(", {} with the allocator's rounding and words", said(used))
        };
        sentences.push(format!(
            "The system sees something else: on average over the run it gives {} for the heap ({} → {}), but the program \
             asks for {} ({} → {}){rounding}. The rest is the allocator's doing, not the ABI's.",
            said(system),
            bytes(view.resident_bytes),
            bytes(other.resident_bytes),
            said(program),
            bytes(view.asked_bytes),
            bytes(other.asked_bytes),
        ));
        let why = |side: &Side, view: &SystemView| {
            if view.kept_bytes * 100 < view.resident_bytes {
                return format!("{} keeps next to nothing that was given back", side.name);
            }
            format!(
                "{} keeps {} that were given back, {} of them within the heap, of which only the top returns to the system",
                side.name,
                bytes(view.kept_bytes),
                bytes(view.kept_in_heap_bytes)
            )
        };
        sentences.push(format!("{}; {}.", why(a, view), why(b, other)));
        if a.large_blocks.0 * (b.large_blocks.0 + b.large_blocks.1)
            != b.large_blocks.0 * (a.large_blocks.0 + a.large_blocks.1)
        {
            let had = |side: &Side| {
                let (own, others) = side.large_blocks;
                format!("{} of {}'s {}", number(own), side.name, number(own + others))
            };
            sentences.push(format!(
                "Of the blocks of at least 128 KiB, {} and {} had a mapping of their own, which returns to the system at once. \
                 glibc moves that threshold up to the size of what was freed, to 32 MiB at most in LP64 and to 512 KiB in \
                 ILP32 (mallopt(3), M_MMAP_THRESHOLD); --variable MALLOC_MMAP_THRESHOLD_=131072 pins it for all variants.",
                had(a),
                had(b)
            ));
        }
        sentences
    }

    fn table(&self, palette: &Palette) -> String {
        let whole: f64 = match self.b {
            Some(b) => self.a.peak_bytes as f64 - b.peak_bytes as f64,
            None => self.a.peak_bytes as f64,
        };
        let amount = |pair: &Pair| match self.b {
            Some(_) => -pair.saving(),
            None => i128::from(pair.a.peak_bytes),
        };
        let shown_amount = |value: i128| match self.b {
            Some(_) => signed(value),
            None => bytes(value as u64),
        };
        let share = |value: i128| match self.b {
            Some(_) => percent(-(value as f64), whole),
            None => percent(value as f64, whole),
        };
        let is_told = self.pairs.iter().any(|pair| pair.a.lives_are_known() || pair.b.lives_are_known());
        let mut rows: Vec<[String; COLUMNS]> = vec![[
            if self.b.is_some() { "difference" } else { "at peak" }.to_owned(),
            "share".to_owned(),
            "blocks".to_owned(),
            "bytes each".to_owned(),
            if is_told { "half live".to_owned() } else { String::new() },
            "what, by whom, where".to_owned(),
        ]];
        let matters = |pair: &&Pair| match self.b {
            Some(_) => pair.saving() != 0,
            None => pair.a.peak_bytes > 0,
        };
        let all: Vec<&Pair> = self.pairs.iter().filter(matters).collect();
        for pair in all.iter().take(self.top) {
            let b = self.b.map(|_| &pair.b);
            rows.push([
                shown_amount(amount(pair)),
                share(amount(pair)),
                change(Some(number(pair.a.peak_count)), b.map(|b| Some(number(b.peak_count)))),
                each(&pair.a, b),
                if is_told { lived(&pair.a, b) } else { String::new() },
                described(&pair.site),
            ]);
        }
        let rest: Vec<&&Pair> = all.iter().skip(self.top).collect();
        if !rest.is_empty() {
            let sum: i128 = rest.iter().map(|pair| amount(pair)).sum();
            rows.push([
                shown_amount(sum),
                share(sum),
                String::new(),
                String::new(),
                String::new(),
                format!("{} (--top)", counted(rest.len(), "other site")),
            ]);
        }
        if rows.len() == 1 {
            return "  no site differs\n".to_owned();
        }
        let widths: Vec<usize> = (0..COLUMNS - 1)
            .map(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for (index, row) in rows.iter().enumerate() {
            let mut line = String::from("  ");
            for (cell, width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
                let pad = " ".repeat(width - cell.width());
                line += &format!("{pad}{cell}   ");
            }
            // The last column runs over the edge rather than being cut: it is what people copy.
            line += &row[COLUMNS - 1];
            let style = if index == 0 { palette.faint } else { Default::default() };
            text += &format!("{style}{}{style:#}\n", line.trim_end());
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
            peak_blocks: u64,
            peak_chunk_bytes: u64,
            bytes: u64,
            blocks: u64,
            left_bytes: u64,
            left_blocks: u64,
            lives: Option<lives::Told>,
        }
        let numbers = |values: &Values| Numbers {
            peak_bytes: values.peak_bytes,
            peak_blocks: values.peak_count,
            peak_chunk_bytes: values.peak_chunk_bytes,
            bytes: values.bytes,
            blocks: values.count,
            left_bytes: values.live_bytes,
            left_blocks: values.live_count,
            lives: lives::told(values),
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
        serde_json::to_string_pretty(&serde_json::json!({
            "schema": SCHEMA,
            "program": self.program,
            "a": self.a,
            "b": self.b,
            "sites": sites,
        }))
    }
}

pub(crate) fn paragraph(text: &str, width: usize, style: Style) -> String {
    let lines = wrapped(text, width.max(NARROWEST) - 2);
    lines.iter().map(|line| format!("  {style}{line}{style:#}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_said_as_a_person_would_say_them() {
        assert_eq!(short_name("fill(Node&, int)"), "fill");
        assert_eq!(short_name("(anonymous namespace)::grow(int)"), "(anonymous namespace)::grow");
        assert_eq!(short_name("A::operator()(int) const"), "A::operator()");
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
