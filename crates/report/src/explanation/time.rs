//! The time of both variants: functions with the counts of an emulated processor and page faults, and what they say of the measured
//! time, if anything.

use anstyle::Style;
use serde_json::{json, Value};
use widthwise_anatomy::time::module::Module;
use widthwise_anatomy::time::{Counts, Place, Row, RowKind};
use widthwise_experiment::units::{thousands, Unit};

use super::table::{self, Column};
use crate::explanation::model::{Measured, Part, Section};
use crate::format::{capitalized, counted, listed};
use crate::heap::short_name;
use crate::text::{paragraph, Palette};
use widthwise_anatomy::Certainty;

/// The functions of both variants.
pub struct Time<'a> {
    /// The names of the baseline and of the variant.
    pub names: [&'a str; 2],
    /// All rows, the largest difference first.
    pub rows: Vec<Row>,
    /// How often each variant was recorded.
    pub recordings: [usize; 2],
    /// What the x32 runtime and valgrind's own library did; in no row.
    pub tools: [Counts; 2],
    /// The emulated caches of each variant's recordings; empty where they are not known.
    pub caches: [Vec<String>; 2],
    /// Whether the x32 runtime ran each variant.
    pub through_runtime: [bool; 2],
    /// Why page faults are in no row, if they are not.
    pub without_page_faults: Option<String>,
    /// What the timed rounds say of the two.
    pub verdict: CpuTime,
    /// Rows that the text shows.
    pub top: usize,
    /// What is left out, and why.
    pub remarks: Vec<String>,
}

/// The campaign's verdict on the CPU time of both variants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuTime {
    /// The variant's CPU time is lower (−1) or higher (1) than the baseline's, by more than the detection floor; 0: it is not known to
    /// differ. Only then counts are interpreted: others fluctuate with every run (rauschmayr-2013, section 4).
    pub direction: i64,
    /// The verdict as a sentence without its full stop, or why there is none.
    pub says: String,
    /// The verdicts on hardware counters, each as a sentence without its full stop.
    pub counters: Vec<String>,
}

/// A metric of the section: its name in the JSON, its words, its count.
#[derive(Clone, Copy)]
struct Kind {
    metric: &'static str,
    words: &'static str,
    count: fn(&Counts) -> u64,
}

impl Kind {
    /// Whether the x32 runtime can change it.
    fn is_shared(&self) -> bool {
        SHARED_WITH_RUNTIME.iter().any(|shared| shared.metric == self.metric)
    }
}

/// The emulated counts that are metrics.
const EMULATED: [Kind; 3] = [
    Kind { metric: "instructions", words: "instructions", count: |counts| counts.instructions },
    SHARED_WITH_RUNTIME[0],
    SHARED_WITH_RUNTIME[1],
];
/// Those that the x32 runtime can change: it uses the emulated caches and branch predictor, too.
const SHARED_WITH_RUNTIME: [Kind; 2] = [
    Kind {
        metric: "cache_misses",
        words: "last-level cache misses",
        count: |counts| counts.last_level_misses,
    },
    Kind { metric: "branch_misses", words: "branch mispredictions", count: |counts| counts.branch_misses },
];
const PAGE_FAULTS: Kind =
    Kind { metric: "page_faults", words: "page faults", count: |counts| counts.page_faults };

/// Cache misses by level, and branch mispredictions: the columns of the table.
const MISSES: [fn(&Counts) -> u64; 3] =
    [|counts| counts.first_level_misses, |counts| counts.last_level_misses, |counts| counts.branch_misses];

impl Time<'_> {
    fn kinds(&self) -> impl Iterator<Item = Kind> + use<'_> {
        let is_withheld = |kind: &Kind| {
            kind.is_shared() && self.are_withheld(kind.count)
                || kind.metric == "cache_misses" && self.have_different_caches()
        };
        let emulated: Vec<Kind> = EMULATED.into_iter().filter(|kind| !is_withheld(kind)).collect();
        emulated.into_iter().chain(self.without_page_faults.is_none().then_some(PAGE_FAULTS))
    }

    /// By how much the x32 runtime may have changed the misses of the program: what it brings into the emulated caches the program
    /// then finds there, and each line that it brings takes the place of one other. The branch predictor's table is shared alike.
    fn doubt(&self, misses: fn(&Counts) -> u64) -> u64 {
        match self.through_runtime.contains(&true) {
            true => self.tools.iter().map(misses).sum(),
            false => 0,
        }
    }

    /// Whether the difference of these misses is within what the x32 runtime may have changed.
    fn are_withheld(&self, misses: fn(&Counts) -> u64) -> bool {
        let [a, b] = [0, 1].map(|side| misses(&self.total(side)));
        let doubt = self.doubt(misses);
        doubt > 0 && a.abs_diff(b) <= doubt
    }

    /// By how much a row must differ to have a part.
    fn floor(&self, kind: &Kind, row: &Row) -> u64 {
        let doubt = if kind.is_shared() { self.doubt(kind.count) } else { 0 };
        (kind.count)(&row.spread).saturating_add(doubt)
    }

    fn total(&self, side: usize) -> Counts {
        self.rows.iter().fold(Counts::default(), |sum, row| sum + row.sides[side])
    }

    fn measure(&self, kind: &Kind) -> Measured {
        let [baseline, variant] =
            [0, 1].map(|side| i64::try_from((kind.count)(&self.total(side))).unwrap_or(i64::MAX));
        Measured::counted(kind.metric, Unit::Count, [baseline, variant])
    }

    /// Rows whose difference is larger than that of recordings of one variant and than what the x32 runtime may have changed, the
    /// largest first.
    fn differing<'r>(&'r self, kind: &Kind) -> Vec<(&'r Row, i64)> {
        let count = kind.count;
        let of = self.rows.iter().map(|row| (row, row.of(count)));
        let mut rows: Vec<(&Row, i64)> =
            of.filter(|(row, difference)| difference.unsigned_abs() > self.floor(kind, row)).collect();
        rows.sort_by_key(|(_, difference)| std::cmp::Reverse(difference.unsigned_abs()));
        rows
    }

    /// `x32 executes 0.4 % fewer instructions than x86-64; has 38 % fewer last-level cache misses, 31 points of them in find
    /// (tree.cpp:27)`.
    fn sentence(&self) -> String {
        let clauses = self.kinds().enumerate().map(|(at, kind)| {
            let measured = self.measure(&kind);
            let verb = if at == 0 { "executes" } else { "has" };
            let difference = measured.difference();
            let baseline =
                |word: &str| if at == 0 { format!(" {word} {}", self.names[0]) } else { String::new() };
            if difference == 0 {
                return format!("{verb} as many {}{}", kind.words, baseline("as"));
            }
            let direction = if difference < 0 { "fewer" } else { "more" };
            let share = match measured.baseline {
                0 => thousands(difference.abs()),
                _ => percent(measured.points(difference).abs()),
            };
            let mut clause = format!("{verb} {share} {direction} {}{}", kind.words, baseline("than"));
            let largest =
                self.differing(&kind).into_iter().find(|(_, of_row)| of_row.signum() == difference.signum());
            if let (Some((row, of_row)), true) = (largest, measured.baseline != 0) {
                let points = measured.points(of_row).abs();
                clause.push_str(&format!(", {} of them in {}", points_of(points), label(row)));
            }
            clause
        });
        let clauses: Vec<String> = clauses.collect();
        format!("{} {}.", self.names[1], clauses.join("; "))
    }

    /// What the counts say of the measured time.
    fn interpretation(&self) -> Vec<String> {
        let CpuTime { direction, says, counters } = &self.verdict;
        if *direction == 0 {
            return vec![format!(
                "The CPU time is not known to differ: {says}. So these counts explain nothing of it yet."
            )];
        }
        let mut sentences = vec![format!("Timed rounds: {says}.")];
        let of = |wanted: i64| {
            let measured = self.kinds().map(|kind| (kind.words, self.measure(&kind).difference().signum()));
            measured.filter(|(_, sign)| *sign == wanted).map(|(words, _)| words).collect::<Vec<_>>()
        };
        let (with, against) = (of(*direction), of(-direction));
        match with.as_slice() {
            [] => sentences.push("None of these counts differs in the direction of the CPU time.".to_owned()),
            with => sentences.push(format!("In the same direction: {}.", listed(with))),
        }
        if !against.is_empty() {
            sentences.push(format!("In the other direction, so no reason for it: {}.", listed(&against)));
        }
        sentences.extend(counters.iter().map(|counter| format!("Hardware counter: {counter}.")));
        sentences
    }

    /// Whether the recordings were made with different emulated caches, as far as these are known.
    fn have_different_caches(&self) -> bool {
        let [own, other] = &self.caches;
        !own.is_empty() && !other.is_empty() && own != other
    }

    /// The emulated caches, in a sentence.
    fn emulated_caches(&self) -> Option<String> {
        let [own, other] = self.caches.each_ref().map(|caches| caches.join(", "));
        if self.have_different_caches() {
            let [a, b] = self.names;
            return Some(format!(
                "The emulated caches of {a} are {own}, those of {b} {other}: cache misses are not compared."
            ));
        }
        (!own.is_empty()).then(|| format!("The emulated caches: {own}."))
    }

    /// What was counted how, and how well it repeats.
    fn method(&self) -> Vec<String> {
        let mut sentences = vec![
            "Instructions, cache misses and branch mispredictions are those of an emulated processor (valgrind): they repeat, \
             and have no time."
                .to_owned(),
        ];
        sentences.extend(self.emulated_caches());
        let repeated = self.rows.iter().fold(Counts::default(), |sum, row| sum + row.spread);
        let unsteady: Vec<&str> =
            self.kinds().filter(|kind| (kind.count)(&repeated) > 0).map(|kind| kind.words).collect();
        if self.recordings.iter().any(|recordings| *recordings < 2) {
            sentences.push("One recording does not show whether the counts repeat.".to_owned());
        } else if unsteady.is_empty() {
            sentences.push("All counts of both recordings are equal.".to_owned());
        } else {
            sentences.push(format!(
                "Recordings of one variant differ in {}: differences that are no larger have no part.",
                listed(&unsteady)
            ));
        }
        if self.through_runtime.contains(&true) {
            sentences.push(
                "The loader of the other ABI also loads valgrind's own library, and the x32 runtime uses the emulated caches \
                 and branch predictor, too."
                    .to_owned(),
            );
        }
        for kind in SHARED_WITH_RUNTIME.iter().filter(|kind| self.are_withheld(kind.count)) {
            sentences.push(format!(
                "{} are withheld: the x32 runtime has {} of its own, and the programs differ by no more.",
                capitalized(kind.words),
                thousands(i64::try_from(self.doubt(kind.count)).unwrap_or(i64::MAX))
            ));
        }
        if let Some(reason) = &self.without_page_faults {
            sentences.push(format!("Page faults by function are missing: {reason}."));
        }
        sentences
    }
}

impl Section for Time<'_> {
    fn name(&self) -> &'static str {
        "time"
    }

    fn is_of_runs(&self) -> bool {
        true
    }

    fn measured(&self) -> Vec<Measured> {
        self.kinds().map(|kind| self.measure(&kind)).collect()
    }

    fn parts(&self) -> Vec<Part> {
        let of_kind = |kind: Kind| {
            let measured = self.measure(&kind);
            let part = |(row, amount): (&Row, i64)| {
                let is_shared = self.through_runtime.contains(&true)
                    && (row.kind == RowKind::Loader
                        || matches!(kind.metric, "cache_misses" | "branch_misses"));
                let certainty = match row.kind {
                    RowKind::Rest => Certainty::Low,
                    _ if is_shared => Certainty::Medium,
                    RowKind::Function | RowKind::Loader => Certainty::High,
                };
                measured.part(label(row), row.module.name(), amount, certainty)
            };
            self.differing(&kind).into_iter().map(part).collect::<Vec<Part>>()
        };
        self.kinds().flat_map(of_kind).collect()
    }

    fn text(&self, width: usize, palette: &Palette) -> String {
        let (strong, faint) = (palette.strong, palette.faint);
        let mut text = format!("{strong}Time, by emulated counts{strong:#}\n");
        let sentences = std::iter::once(self.sentence())
            .chain(self.interpretation())
            .chain(self.method())
            .chain(self.remarks.iter().cloned());
        for line in sentences {
            text += &paragraph(&line, width, Style::new());
        }
        let differs = |row: &&Row| self.kinds().any(|kind| row.of(kind.count) != 0);
        let all = self.rows.iter().filter(differs).count();
        let rows: Vec<Vec<String>> =
            self.rows.iter().filter(differs).take(self.top).map(|row| self.cells(row)).collect();
        let mut columns = vec![
            Column::number("difference"),
            Column::number("instructions"),
            Column::number("L1 misses"),
            Column::number("LL misses"),
            Column::number("mispredicted"),
        ];
        if self.without_page_faults.is_none() {
            columns.push(Column::number("faults"));
        }
        columns.push(Column::text("function"));
        text.push_str(&table::lines(&columns, &rows, width, palette));
        if all > self.top {
            text.push_str(&format!(
                "  {faint}and {}; --top N and --json show more{faint:#}\n",
                counted(all - self.top, "other row")
            ));
        }
        text
    }

    fn json(&self) -> Value {
        let counts = |counts: &Counts| {
            let mut value = json!({"instructions": counts.instructions});
            let names = ["first_level_misses", "last_level_misses", "branch_misses"];
            for (name, misses) in names.into_iter().zip(MISSES) {
                if !self.are_withheld(misses) {
                    value[name] = misses(counts).into();
                }
            }
            if self.without_page_faults.is_none() {
                value["page_faults"] = counts.page_faults.into();
            }
            value
        };
        let row = |row: &Row| {
            let kind = match row.kind {
                RowKind::Function => "function",
                RowKind::Loader => "loader",
                RowKind::Rest => "rest",
            };
            json!({
                "kind": kind,
                "name": label(row),
                "module": row.module.name(),
                "where": row.place.as_ref().map(|place| at(&place.file, place.line)),
                "baseline": row.is_in[0].then(|| counts(&row.sides[0])),
                "variant": row.is_in[1].then(|| counts(&row.sides[1])),
                "spread": counts(&row.spread),
            })
        };
        json!({
            "source": "emulated",
            "baseline": counts(&self.total(0)),
            "variant": counts(&self.total(1)),
            "recordings": self.recordings,
            "tools": { "baseline": self.tools[0].instructions, "variant": self.tools[1].instructions },
            "caches": { "baseline": self.caches[0], "variant": self.caches[1] },
            "page_faults_missing": self.without_page_faults,
            "cpu_time": {
                "differs": self.verdict.direction != 0,
                "says": self.verdict.says,
                "counters": self.verdict.counters,
            },
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "remarks": self.remarks,
        })
    }
}

impl Time<'_> {
    /// A row of the terminal's table: instructions of both, the difference of the other counts.
    fn cells(&self, row: &Row) -> Vec<String> {
        let count = |side: usize| match row.is_in[side] {
            true => thousands(i64::try_from(row.sides[side].instructions).unwrap_or(i64::MAX)),
            false => "–".to_owned(),
        };
        let mut cells = vec![signed(row.difference()), format!("{} → {}", count(0), count(1))];
        cells.extend(MISSES.map(|misses| match self.are_withheld(misses) {
            true => "–".to_owned(),
            false => signed(row.of(misses)),
        }));
        if self.without_page_faults.is_none() {
            cells.push(signed(row.of(|counts| counts.page_faults)));
        }
        let module = match (&row.module, row.kind) {
            (Module::Other(_), RowKind::Function) => format!(" in {}", row.module.name()),
            _ => String::new(),
        };
        cells.push(format!("{}{module}", label(row)));
        cells
    }
}

/// What a row is, for readers: `find (tree.cpp:27)`, `other functions of libc`.
fn label(row: &Row) -> String {
    match (row.kind, &row.module) {
        (RowKind::Function, _) => {
            let name = short_name(&row.name);
            match &row.place {
                Some(Place { file, line }) => {
                    format!("{name} ({})", at(file.rsplit('/').next().unwrap_or(file), *line))
                }
                None => name,
            }
        }
        (RowKind::Loader, _) => "the loader: start-up and symbols".to_owned(),
        (RowKind::Rest, Module::Kernel) => "the kernel, in system calls".to_owned(),
        (RowKind::Rest, Module::Other(library)) => format!("other functions of {library}"),
        (RowKind::Rest, Module::Program) => "code of the program without a name".to_owned(),
        (RowKind::Rest, Module::Stubs) => "stubs of the procedure linkage tables".to_owned(),
        (RowKind::Rest, module) => module.name().to_owned(),
    }
}

/// `tree.cpp:27`, or the file alone.
fn at(file: &str, line: Option<u64>) -> String {
    line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

fn signed(value: i64) -> String {
    let sign = if value > 0 { "+" } else { "" };
    format!("{sign}{}", thousands(value))
}

/// `0.4 %`, `38 %`.
fn percent(value: f64) -> String {
    match value {
        ..0.05 => "less than 0.1 %".to_owned(),
        ..9.95 => format!("{value:.1} %"),
        _ => format!("{value:.0} %"),
    }
}

/// `0.4 points`, `31 points`.
fn points_of(value: f64) -> String {
    percent(value).replace('%', "points")
}

#[cfg(test)]
mod tests;
