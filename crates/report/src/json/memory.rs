//! Memory over time as JSON: one object for each run, with columns. `docs/schema/report-3.json` describes
//! each.

use serde::Serialize;
use widthwise_experiment::memory::{Amounts, Series, Totals};

use crate::comparison::Comparison;
use crate::comparison::MemoryRun;

/// One run.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)] // Each field is described in docs/schema/report-3.json, which a test holds against these.
pub struct MemoryNote {
    pub variant: String,
    pub round: u32,
    pub wall_ns: u64,
    pub spent_ns: u64,
    pub statm_samples_made: u64,
    pub pagemap_scans_made: u64,
    pub readings_made: u64,
    pub processes: Vec<ProcessNote>,
    pub marks: Vec<MarkNote>,
    pub at_ns: Vec<u64>,
    pub full: Vec<bool>,
    pub tree: TotalsNote,
    pub parts: Vec<PartNote>,
    pub statm_samples: StatmSamplesNote,
}

/// A process, and its own figures in the readings in which it existed.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct ProcessNote {
    pub pid: u32,
    pub parent: u32,
    pub name: String,
    pub began_ns: u64,
    pub ended_ns: u64,
    pub at_ns: Vec<u64>,
    pub totals: TotalsNote,
}

/// A mark.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct MarkNote {
    pub at_ns: u64,
    pub text: String,
}

/// Columns of bytes.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs)]
pub struct TotalsNote {
    pub resident: Vec<u64>,
    pub pss: Vec<Option<u64>>,
    pub anonymous: Vec<u64>,
    pub file: Vec<Option<u64>>,
    pub shared: Vec<Option<u64>>,
    pub swap: Vec<Option<u64>>,
    pub virtual_bytes: Vec<u64>,
    pub page_tables: Vec<Option<u64>>,
    pub huge: Vec<Option<u64>>,
}

/// Columns of bytes of one class, or of one library.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct PartNote {
    pub class: &'static str,
    pub name: String,
    pub resident: Vec<u64>,
    pub pss: Vec<Option<u64>>,
    pub anonymous: Vec<Option<u64>>,
    pub swap: Vec<Option<u64>>,
    pub virtual_bytes: Vec<u64>,
}

/// Columns of statm samples.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct StatmSamplesNote {
    pub at_ns: Vec<u64>,
    pub process: Vec<usize>,
    pub resident: Vec<u64>,
    pub anonymous: Vec<u64>,
    pub virtual_bytes: Vec<u64>,
}

/// Every run whose memory was read.
pub fn notes(comparison: &Comparison) -> Vec<MemoryNote> {
    comparison.memory.iter().map(note).collect()
}

fn note(run: &MemoryRun) -> MemoryNote {
    let series = &run.series;
    MemoryNote {
        variant: run.variant.clone(),
        round: run.round,
        wall_ns: series.wall_ns,
        spent_ns: series.spent_ns,
        statm_samples_made: series.statm_samples_made,
        pagemap_scans_made: series.pagemap_scans_made,
        readings_made: series.readings_made,
        processes: (0..series.processes.len()).map(|index| process(series, index)).collect(),
        marks: series
            .marks
            .iter()
            .map(|mark| MarkNote { at_ns: mark.at_ns, text: mark.text.clone() })
            .collect(),
        at_ns: series.readings.iter().map(|reading| reading.at_ns).collect(),
        full: series.readings.iter().map(|reading| reading.full).collect(),
        tree: totals(series.readings.iter().map(|reading| (reading.full, &reading.tree))),
        parts: (0..series.parts.len()).map(|index| part(series, index)).collect(),
        statm_samples: StatmSamplesNote {
            at_ns: series.statm_samples.iter().map(|statm_sample| statm_sample.at_ns).collect(),
            process: series.statm_samples.iter().map(|statm_sample| statm_sample.process).collect(),
            resident: series.statm_samples.iter().map(|statm_sample| statm_sample.resident).collect(),
            anonymous: series.statm_samples.iter().map(|statm_sample| statm_sample.anonymous).collect(),
            virtual_bytes: series
                .statm_samples
                .iter()
                .map(|statm_sample| statm_sample.virtual_bytes)
                .collect(),
        },
    }
}

fn process(series: &Series, index: usize) -> ProcessNote {
    let process = &series.processes[index];
    let own = || {
        let of = move |reading: &'_ widthwise_experiment::memory::Reading| {
            reading
                .processes
                .iter()
                .find(|(other, _)| *other == index)
                .map(|(_, totals)| (reading.at_ns, *totals))
        };
        series.readings.iter().filter_map(of)
    };
    let figures: Vec<Totals> = own().map(|(_, totals)| totals).collect();
    ProcessNote {
        pid: process.pid,
        parent: process.parent,
        name: process.name.clone(),
        began_ns: process.began_ns,
        ended_ns: process.ended_ns,
        at_ns: own().map(|(at, _)| at).collect(),
        totals: totals(figures.iter().map(|totals| (true, totals))),
    }
}

fn totals<'a>(rows: impl Iterator<Item = (bool, &'a Totals)>) -> TotalsNote {
    let mut note = TotalsNote::default();
    for (full, totals) in rows {
        let known = |bytes| full.then_some(bytes);
        note.resident.push(totals.amounts.resident);
        note.pss.push(known(totals.amounts.pss));
        note.anonymous.push(totals.amounts.anonymous);
        note.file.push(known(totals.file));
        note.shared.push(known(totals.shared));
        note.swap.push(known(totals.amounts.swap));
        note.virtual_bytes.push(totals.amounts.virtual_bytes);
        note.page_tables.push(known(totals.page_tables));
        note.huge.push(known(totals.huge));
    }
    note
}

/// A part that is missing in a reading has no memory there.
fn part(series: &Series, index: usize) -> PartNote {
    let rows: Vec<(bool, Amounts)> = series
        .readings
        .iter()
        .map(|reading| {
            let own = reading.parts.iter().find(|(part, _)| *part == index);
            (reading.full, own.map(|(_, amounts)| *amounts).unwrap_or_default())
        })
        .collect();
    let column = |of: fn(&Amounts) -> u64| rows.iter().map(|(_, amounts)| of(amounts)).collect();
    let known =
        |of: fn(&Amounts) -> u64| rows.iter().map(|(full, amounts)| full.then(|| of(amounts))).collect();
    let part = &series.parts[index];
    PartNote {
        class: part.class.name(),
        name: part.name.clone(),
        resident: column(|amounts| amounts.resident),
        pss: known(|amounts| amounts.pss),
        anonymous: known(|amounts| amounts.anonymous),
        swap: known(|amounts| amounts.swap),
        virtual_bytes: column(|amounts| amounts.virtual_bytes),
    }
}
