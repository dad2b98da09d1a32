//! Memory over time as CSV: one row for each part of an smaps snapshot or pagemap scan, and one for each
//! statm sample.

use std::io::Write;

use widthwise_experiment::memory::{Amounts, Reading, StatmSample};

use crate::comparison::Comparison;
use crate::comparison::MemoryRun;

/// The header row. `docs/csv.md` describes each column.
pub const HEAD: [&str; 13] = [
    "campaign",
    "variant",
    "round",
    "at_ns",
    "phase",
    "reading",
    "process",
    "class",
    "name",
    "resident",
    "pss",
    "anonymous",
    "virtual",
];

/// Writes every reading and statm sample of every run whose memory was read.
pub fn write(comparison: &Comparison, out: impl Write) -> Result<(), ::csv::Error> {
    let mut table = ::csv::Writer::from_writer(out);
    table.write_record(HEAD)?;
    for run in comparison.memory {
        for reading in &run.series.readings {
            write_reading(comparison, run, reading, &mut table)?;
        }
        for statm_sample in &run.series.statm_samples {
            table.write_record(of_statm_sample(comparison, run, statm_sample))?;
        }
    }
    table.flush()?;
    Ok(())
}

fn write_reading(
    comparison: &Comparison,
    run: &MemoryRun,
    reading: &Reading,
    table: &mut ::csv::Writer<impl Write>,
) -> Result<(), ::csv::Error> {
    let kind = if reading.full { "smaps-snapshot" } else { "pagemap-scan" };
    let row = |process: &str, class: &str, name: &str, amounts: &Amounts| {
        let known = |bytes: u64, is_known: bool| if is_known { bytes.to_string() } else { String::new() };
        // Of the whole tree, a pagemap scan has the anonymous memory as well.
        let figures = [
            known(amounts.resident, true),
            known(amounts.pss, reading.full),
            known(amounts.anonymous, reading.full || class == "all"),
            known(amounts.virtual_bytes, true),
        ];
        record(comparison, run, reading.at_ns, kind, [process, class, name], figures)
    };
    table.write_record(row("", "all", "", &reading.tree.amounts))?;
    for (part, amounts) in &reading.parts {
        let Some(part) = run.series.parts.get(*part) else { continue };
        table.write_record(row("", part.class.name(), &part.name, amounts))?;
    }
    for (process, totals) in &reading.processes {
        let Some(process) = run.series.processes.get(*process) else { continue };
        table.write_record(row(&process.pid.to_string(), "all", &process.name, &totals.amounts))?;
    }
    Ok(())
}

fn of_statm_sample(comparison: &Comparison, run: &MemoryRun, statm_sample: &StatmSample) -> [String; 13] {
    let process = run.series.processes.get(statm_sample.process);
    let (pid, name) = process.map_or((String::new(), ""), |process| (process.pid.to_string(), &process.name));
    let figures = [
        statm_sample.resident.to_string(),
        // A statm sample has no PSS.
        String::new(),
        statm_sample.anonymous.to_string(),
        statm_sample.virtual_bytes.to_string(),
    ];
    record(comparison, run, statm_sample.at_ns, "statm-sample", [&pid, "all", name], figures)
}

fn record(
    comparison: &Comparison,
    run: &MemoryRun,
    at_ns: u64,
    kind: &str,
    [process, class, name]: [&str; 3],
    [resident, pss, anonymous, virtual_bytes]: [String; 4],
) -> [String; 13] {
    let phase =
        run.series.marks.iter().rfind(|mark| mark.at_ns <= at_ns).map_or("", |mark| mark.text.as_str());
    [
        comparison.campaign.folder.clone(),
        run.variant.clone(),
        run.round.to_string(),
        at_ns.to_string(),
        phase.to_owned(),
        kind.to_owned(),
        process.to_owned(),
        class.to_owned(),
        name.to_owned(),
        resident,
        pss,
        anonymous,
        virtual_bytes,
    ]
}
