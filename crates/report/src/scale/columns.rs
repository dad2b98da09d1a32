//! The columns of a table by number of processes.

use widthwise_verdict::scaling_summary::{EventSource, Row, RowMemory, Table};

use super::figures::{bytes, percent, plain, ranged, seconds};

/// A column's heading, and the content of its cells.
pub(super) type Column<'a> = (String, Box<dyn Fn(&Row) -> String + 'a>);

/// The columns of a table, without those that nothing was measured for.
pub(super) fn columns(table: &Table) -> Vec<Column<'_>> {
    let mut all: Vec<Column> = vec![
        (table.mode.noun().to_owned(), Box::new(|row: &Row| row.processes.to_string())),
        ("CPUs".into(), Box::new(|row: &Row| cpu_list(&row.cpus))),
        ("elapsed".into(), Box::new(|row: &Row| seconds(&row.elapsed))),
        (format!("{}/s", table.work.unit()), Box::new(|row: &Row| plain(&row.throughput))),
        ("speed-up".into(), Box::new(|row: &Row| ranged(&row.speed_up, 2))),
        ("efficiency".into(), Box::new(|row: &Row| percent(&row.efficiency))),
    ];
    let source = table.rows.iter().find_map(|row| row.event.as_ref().ok()).map(|(_, source)| *source);
    if let Some(source) = source {
        let title = match (source, table.work.unit()) {
            (EventSource::ReportedElapsed, _) => "elapsed an event".to_owned(),
            (_, "events") => "CPU an event".to_owned(),
            _ => "CPU a run".to_owned(),
        };
        all.push((title, Box::new(|row: &Row| seconds(&row.event.map(|(figure, _)| figure)))));
    }
    all.push(("parallel time".into(), Box::new(|row: &Row| seconds(&row.parallel_time))));
    if table.rows.iter().any(|row| row.waiting.is_some()) {
        let waited = |row: &Row| row.waiting.as_ref()?.waited;
        let share =
            move |row: &Row| waited(row).map_or("·".into(), |share| format!("{:.1} %", 100.0 * share));
        all.push(("waited".into(), Box::new(share)));
    }
    if table.rows.iter().any(|row| row.clock_normalised.is_ok()) {
        all.push(("clock-normalised".into(), Box::new(|row: &Row| plain(&row.clock_normalised))));
    }
    if table.rows.iter().any(|row| row.ipc.is_ok()) {
        all.push(("IPC".into(), Box::new(|row: &Row| plain(&row.ipc))));
    }
    if table.rows.iter().any(|row| row.stalled_per_instruction.is_ok()) {
        all.push(("stalled/instruction".into(), Box::new(|row: &Row| plain(&row.stalled_per_instruction))));
    }
    if table.rows.iter().any(|row| row.memory.is_some()) {
        let memory = |of: fn(&RowMemory) -> f64| {
            move |row: &Row| row.memory.as_ref().map_or("·".into(), |memory| bytes(of(memory)))
        };
        if table.rows.iter().any(|row| row.memory.as_ref().is_some_and(|memory| memory.tree.is_some())) {
            let tree = |row: &Row| row.memory.as_ref()?.tree;
            all.push((
                "memory of all".into(),
                Box::new(move |row: &Row| tree(row).map_or("·".into(), bytes)),
            ));
        }
        all.push(("PSS of all".into(), Box::new(memory(|memory| memory.pss))));
        all.push(("USS each".into(), Box::new(memory(|memory| memory.member_uss))));
        // The memory use of the rest of the machine is not a figure of the program.
        let system = |row: &Row| match &row.memory {
            Some(memory) if memory.system_is_telling() => bytes(memory.system_anonymous),
            _ => "·".into(),
        };
        if table.rows.iter().any(|row| row.memory.as_ref().is_some_and(|memory| memory.system_is_telling())) {
            all.push(("AnonPages".into(), Box::new(system)));
        }
    }
    all
}

/// `0-3,6`.
fn cpu_list(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for cpu in sorted {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => spans.push((cpu, cpu)),
        }
    }
    let texts: Vec<String> = spans
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    texts.join(",")
}
