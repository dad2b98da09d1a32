//! The instructions of both variants: by class, by function, and what position-independent code and prefixes cost.

use anstyle::Style;
use serde_json::{json, Value};
use widthwise_anatomy::code::compare::Pair;
use widthwise_anatomy::code::{Class, Counts};
use widthwise_experiment::units::{thousands, Unit};

use super::table::{self, Column};
use crate::explanation::model::{Measured, Part, Section};
use crate::format::counted;
use crate::text::{paragraph, Palette};
use widthwise_anatomy::Certainty;

/// The instructions of both variants' programs: first the baseline's, then the variant's.
pub struct Code {
    /// The names of the architectures.
    pub architectures: [String; 2],
    /// The sums.
    pub totals: [Counts; 2],
    /// Bytes of code sections that were not decoded.
    pub undecoded: [u64; 2],
    /// All functions, the largest difference first.
    pub pairs: Vec<Pair>,
    /// Functions that the text shows.
    pub top: usize,
    /// Whether the functions of both are known.
    pub are_functions_known: bool,
    /// What is withheld, and why.
    pub remarks: Vec<String>,
}

/// Figures beside the classes: the JSON's name, the words, and the count.
type Figure = (&'static str, &'static str, fn(&Counts) -> u64);

/// The figure that is known of functions only.
const PROLOGUES: &str = "prologues";

const FIGURES: [Figure; 11] = [
    ("bytes", "bytes", |counts| counts.bytes),
    ("nop_bytes", "bytes of nops", |counts| counts.nop_bytes),
    (PROLOGUES, "functions that set up a frame", |counts| counts.prologues),
    ("stack_stores", "stores of registers to the stack", |counts| counts.stack_stores),
    ("stack_loads", "loads of registers from the stack", |counts| counts.stack_loads),
    ("rex", "REX prefixes (one byte each)", |counts| counts.rex),
    ("address_size", "address-size prefixes (one byte each)", |counts| counts.address_size),
    ("wide_constants", "constants of 64 bits (movabs)", |counts| counts.wide_constants),
    ("pc_relative", "operands relative to the instruction pointer", |counts| counts.pc_relative),
    ("got_loads", "operands in the global offset table", |counts| counts.got_loads),
    ("plt_calls", "calls through the procedure linkage table", |counts| counts.plt_calls),
];
const PC_THUNKS: Figure = ("pc_thunks", "calls that get the instruction pointer", |counts| counts.pc_thunks);

fn figures() -> impl Iterator<Item = Figure> {
    FIGURES.into_iter().chain([PC_THUNKS])
}

/// A class for readers.
fn noun(class: Class) -> &'static str {
    match class {
        Class::Integer => "integer arithmetic and register moves",
        Class::Branch => "branches, calls and returns",
        Class::LoadStore => "loads and stores",
        Class::Stack => "stack (push, pop, stack pointer)",
        Class::Nop => "nops (padding, endbr, bti)",
        Class::X87 => "x87 and MMX",
        Class::SseScalarSingle => "SSE, scalar single",
        Class::SsePackedSingle => "SSE, packed single",
        Class::SseScalarDouble => "SSE, scalar double",
        Class::SsePackedDouble => "SSE, packed double",
        Class::SseInteger => "SSE, integers and whole registers",
        Class::Avx => "AVX",
        Class::Avx512 => "AVX-512",
        Class::Float => "floating point and vectors",
        Class::Invalid => "bytes that are no instruction",
    }
}

/// Bytes an instruction, with two digits; a dash where there is none.
fn mean(counts: &Counts) -> String {
    match counts.instructions {
        0 => "–".to_owned(),
        instructions => format!("{:.2}", counts.bytes as f64 / instructions as f64),
    }
}

fn signed(value: i64) -> String {
    let sign = if value > 0 { "+" } else { "" };
    format!("{sign}{}", thousands(value))
}

fn counts(counts: &Counts) -> Value {
    let classes = Class::ALL.iter().map(|class| (class.name().to_owned(), Value::from(counts.of(*class))));
    let mut value = json!({
        "instructions": counts.instructions,
        "without_padding": counts.without_padding(),
        "classes": classes.collect::<serde_json::Map<_, _>>(),
    });
    for (name, _, of) in figures() {
        value[name] = of(counts).into();
    }
    value
}

impl Section for Code {
    fn name(&self) -> &'static str {
        "code"
    }

    fn measured(&self) -> Vec<Measured> {
        let [baseline, variant] = self.totals.map(|total| total.instructions as i64);
        vec![Measured::counted("static_instructions", Unit::Count, [baseline, variant])]
    }

    fn parts(&self) -> Vec<Part> {
        let measured = self.measured()[0];
        let part = |class: &Class| {
            let amount = self.totals[1].of(*class) as i64 - self.totals[0].of(*class) as i64;
            measured.part(noun(*class), "executable sections", amount, Certainty::High)
        };
        Class::ALL.iter().map(part).collect()
    }

    fn text(&self, width: usize, palette: &Palette) -> String {
        let (strong, faint) = (palette.strong, palette.faint);
        let [a, b] = &self.totals;
        let mut text = format!("{strong}Code{strong:#}\n");
        let summary = format!(
            "{} → {} instructions, {} → {} without nops; {} → {} bytes an instruction ({} and {})",
            thousands(a.instructions as i64),
            thousands(b.instructions as i64),
            thousands(a.without_padding() as i64),
            thousands(b.without_padding() as i64),
            mean(a),
            mean(b),
            self.architectures[0],
            self.architectures[1]
        );
        for line in std::iter::once(&summary).chain(&self.remarks) {
            text += &paragraph(line, width, Style::new());
        }
        let of_classes = Class::ALL.iter().map(|class| (noun(*class), a.of(*class), b.of(*class)));
        let is_known = |(name, ..): &Figure| self.are_functions_known || *name != PROLOGUES;
        let of_figures = figures().filter(is_known).map(|(_, words, of)| (words, of(a), of(b)));
        let rows: Vec<Vec<String>> = of_classes
            .chain(of_figures)
            .filter(|(_, a, b)| (*a, *b) != (0, 0))
            .map(|(words, a, b)| {
                let number = |value: u64| thousands(value as i64);
                vec![signed(b as i64 - a as i64), number(a), number(b), words.to_owned()]
            })
            .collect();
        let columns = [
            Column::number("difference"),
            Column::number("baseline"),
            Column::number("variant"),
            Column::text("what"),
        ];
        text.push_str(&table::lines(&columns, &rows, width, palette));
        let differing = || self.pairs.iter().filter(|pair| pair.difference() != 0);
        let rows: Vec<Vec<String>> = differing()
            .take(self.top)
            .map(|pair| {
                let [a, b] = &pair.counts;
                let arrow = |a: u64, b: u64| format!("{} → {}", thousands(a as i64), thousands(b as i64));
                let name = if pair.name.is_empty() { "(no symbol)".to_owned() } else { pair.name.clone() };
                vec![
                    signed(pair.difference()),
                    arrow(a.instructions, b.instructions),
                    arrow(a.bytes, b.bytes),
                    name,
                ]
            })
            .collect();
        if !rows.is_empty() {
            text.push_str(&format!("  {faint}the functions that differ most{faint:#}\n"));
        }
        let columns = [
            Column::number("difference"),
            Column::number("instructions"),
            Column::number("bytes"),
            Column::text("function"),
        ];
        text.push_str(&table::lines(&columns, &rows, width, palette));
        let all = differing().count();
        if all > self.top {
            text.push_str(&format!(
                "  {faint}and {}; --top N and --json show more{faint:#}\n",
                counted(all - self.top, "other function")
            ));
        }
        text
    }

    fn json(&self) -> Value {
        let side = |side: usize| {
            let mut value = counts(&self.totals[side]);
            value["architecture"] = self.architectures[side].as_str().into();
            value["undecoded_bytes"] = self.undecoded[side].into();
            if !self.are_functions_known {
                value[PROLOGUES] = Value::Null;
            }
            value
        };
        let function = |pair: &Pair| {
            let side = |side: usize| {
                let mut value = counts(&pair.counts[side]);
                value["copies"] = pair.copies[side].into();
                value
            };
            json!({"name": pair.name, "difference": pair.difference(), "baseline": side(0), "variant": side(1)})
        };
        json!({
            "baseline": side(0),
            "variant": side(1),
            "functions": self.pairs.iter().map(function).collect::<Vec<_>>(),
            "remarks": self.remarks,
        })
    }
}
