//! The results of the tables, as sentences.

use widthwise_experiment::scale::Mode;
use widthwise_verdict::scaling::{Best, Cause, Figure, Unfitted};
use widthwise_verdict::scaling_summary::Table;
use widthwise_verdict::wording::margin;
use widthwise_verdict::Word;

use super::comparison::{is_the_same_work, remark, word};
use super::figures::{bytes, ranged, signed, significant, time, with_sign};
use super::model::Scaling;
use super::names::cell_name;
use crate::format::{counted, duration, listed};

/// Less anonymous memory than this is not compared with the system's, in bytes.
const ENOUGH_TO_AGREE: f64 = 64e6;

/// The number of processes that fit is exact up to here.
const MOST_EXACT: u64 = 1000;

/// The extent of the campaign.
pub fn extent(report: &Scaling) -> String {
    let spent: u64 = report.runs.iter().map(|run| run.elapsed_ns).sum();
    format!(
        "{}; {}, which took {} together",
        counted(report.summary.rounds, "timed round"),
        counted(report.summary.runs, "run"),
        duration(std::time::Duration::from_nanos(spent))
    )
}

/// Every sentence, the main result first.
pub fn all(report: &Scaling) -> Vec<String> {
    let mut all = different(report);
    all.extend(withheld(report));
    all.extend(growth(report));
    all.extend(marginal(report));
    all.extend(smt(report));
    all.extend(capacity(report));
    all.extend(comparisons(report));
    all.extend(runtime_memory(report));
    for table in &report.summary.tables {
        all.extend(laws(report, table));
    }
    all.extend(unfitted(report));
    all.extend(unknown_waits(report));
    all.extend(copy_on_write(report));
    all.extend(pages(report));
    all.extend(agreement(report));
    let shares = |mode: &Mode| report.plan.work(*mode) == widthwise_experiment::scale::Work::OnceUnknown;
    if let Some(mode) = report.plan.modes.iter().find(|mode| shares(mode)) {
        all.push(format!(
            "The amount of work was not given: {} are assumed to share that of one run. --events-each states that each does as much, \
             --events how many there are.",
            mode.noun()
        ));
    }
    if let Some(floor) = report.summary.floor.as_ref().ok().filter(|_| report.floor().is_some()) {
        all.push(format!(
            "Detection floor: the A/A difference, of the same cell to itself, is {}; a smaller difference is not \
             reported as one. No difference: none is established, and the whole interval lies within {} (--equal-within).",
            signed(&less_one(floor)),
            margin(report.equal_within())
        ));
    }
    all
}

fn less_one(figure: &Figure) -> Figure {
    let mut figure = *figure;
    figure.estimate -= 1.0;
    if let Some(ends) = &mut figure.bounds {
        ends.low -= 1.0;
        ends.high -= 1.0;
    }
    figure
}

fn of_several(report: &Scaling, table: &Table) -> String {
    if report.summary.tables.len() == 1 {
        String::new()
    } else {
        format!("{}: ", name_of(table))
    }
}

fn name_of(table: &Table) -> String {
    format!("{}, {}, {}", table.variant, table.mode, table.placement)
}

/// The cells whose tasks did not get their CPUs.
fn withheld(report: &Scaling) -> Vec<String> {
    let mut all = Vec::new();
    for table in &report.summary.tables {
        let starved = table.rows.iter().filter_map(|row| row.waiting.as_ref()?.starved(row.processes));
        let starved: Vec<String> = starved.map(|starved| starved.to_string()).collect();
        if !starved.is_empty() {
            all.push(format!("{}Withheld: {}.", of_several(report, table), starved.join("; ")));
        }
    }
    if !all.is_empty() {
        all.push(
            "Withheld figures show how busy the machine was, not how the program scales: measure again when the machine is \
             free, or on other CPUs (--placement)."
                .into(),
        );
    }
    all.extend(constant(report));
    all
}

/// The variants and modes whose time does not depend on the events.
fn constant(report: &Scaling) -> Vec<String> {
    const CAUSE: Unfitted = Unfitted::Withheld(Cause::Constant);
    let mut all = Vec::new();
    for table in &report.summary.tables {
        let elapsed = table.rows.iter().any(|row| row.throughput == Err(CAUSE));
        let cpu = table.rows.iter().any(|row| row.event.as_ref().err() == Some(&CAUSE));
        let sentence = match (elapsed, cpu) {
            (true, true) => {
                "Withheld: elapsed and CPU time do not depend on the number of events; a run with one takes as long, and as much CPU \
                 time, as a run with all. Does the program read {events}, and has the compiler left its work in?"
            }
            (true, false) => {
                "Events/s and what rests on it are withheld: elapsed time does not depend on the number of events; a run with one \
                 takes as long as a run with all. Does something else than the events determine how long the program takes?"
            }
            (false, true) => {
                "CPU an event is withheld, and nothing else: CPU time does not depend on the number of events; a run with one uses as \
                 much as a run with all, but does not take as long. Does the program wait for its events, or do others the work?"
            }
            (false, false) => continue,
        };
        all.push(format!("{}{sentence}", of_several(report, table)));
    }
    all
}

/// The cells for which it is unknown whether tasks got their CPUs, and who else ran there.
fn unknown_waits(report: &Scaling) -> Option<String> {
    let rows = report.summary.tables.iter().flat_map(|table| &table.rows);
    let unknown: Vec<_> = rows
        .filter_map(|row| row.waiting.as_ref().filter(|waiting| waiting.waited.is_none()))
        .filter_map(|waiting| Some((waiting.unknown.as_ref()?, waiting.others)))
        .collect();
    let (reason, _) = unknown.first()?;
    let others = unknown.iter().map(|(_, others)| *others).fold(0.0, f64::max);
    Some(format!(
        "Whether tasks had to wait for their CPUs is not known in {}: {reason}. Other programs used up to {:.0} % of these CPUs.",
        counted(unknown.len(), "cell"),
        100.0 * others
    ))
}

/// The highest measured throughput, and whether it is clearly more than that of the fewest processes.
fn growth(report: &Scaling) -> Vec<String> {
    let mut all = Vec::new();
    for table in report.summary.tables.iter().filter(|table| is_the_same_work(report, &table.variant)) {
        // A cell without its CPUs may be the highest.
        let starved = |throughput| matches!(throughput, Err(Unfitted::Withheld(Cause::Starved(_))));
        if table.rows.iter().any(|row| starved(row.throughput)) {
            continue;
        }
        let best = table
            .rows
            .iter()
            .filter(|row| row.failure.is_none())
            .filter_map(|row| Some((row, row.throughput.ok()?)))
            .max_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
        let Some((row, throughput)) = best else { continue };
        let noun = if row.processes == 1 { table.mode.singular() } else { table.mode.noun() };
        let smallest = table.rows.first().map_or(1, |row| row.processes);
        let gain = match &row.speed_up {
            Ok(figure) if row.processes > smallest => {
                let times = ranged(&row.speed_up, 2);
                match word(report, &row.speed_up) {
                    Word::Higher => format!(", {times} times that of {smallest}"),
                    Word::Withheld if figure.bounds.is_some() => {
                        format!(", {times} times that of {smallest} (without a detection floor, it may be chance)")
                    }
                    _ => format!(", not clearly more than that of {smallest} ({times} times it)"),
                }
            }
            Ok(_) => none_higher(table, row.processes).to_owned(),
            _ => String::new(),
        };
        all.push(format!(
            "{}The highest throughput measured is with {} {noun}: {} {}/s{gain}.",
            of_several(report, table),
            row.processes,
            significant(throughput.estimate),
            table.work.unit(),
        ));
    }
    all
}

/// What is known of the cells with more processes than the fastest.
fn none_higher(table: &Table, fastest: usize) -> &'static str {
    let more = || table.rows.iter().filter(|row| row.processes > fastest);
    let measured = more().filter(|row| row.failure.is_none() && row.throughput.is_ok()).count();
    match more().count() - measured {
        _ if measured == 0 => "",
        0 => "; none with more is higher",
        _ => "; none with more that was measured is higher",
    }
}

/// `Adding one more child costs 310 MB, one more job 865 MB.`
fn marginal(report: &Scaling) -> Vec<String> {
    let mut all = Vec::new();
    for variant in report.variants.iter().filter(|variant| is_the_same_work(report, variant)) {
        let mut costs: Vec<(Mode, String)> = Vec::new();
        for table in report.summary.tables.iter().filter(|table| table.variant == *variant) {
            let is_first = !costs.iter().any(|(mode, _)| *mode == table.mode);
            if let (true, Some(cost), Ok(line)) = (is_first, table.one_more(), &table.marginal) {
                let by_line = bytes(line.slope.estimate);
                let remark = match table.is_line_too_low() {
                    true => format!(
                        " (what each has written for itself; the line through the totals has {by_line})"
                    ),
                    false => String::new(),
                };
                costs.push((
                    table.mode,
                    format!("one more {} {}{remark}", table.mode.singular(), bytes(cost)),
                ));
            }
        }
        if costs.is_empty() {
            continue;
        }
        let words: Vec<String> = costs.into_iter().map(|(_, words)| words).collect();
        let name = if report.variants.len() > 1 { format!("{variant}: ") } else { String::new() };
        all.push(format!("{name}Memory for {}.", listed(&words)));
    }
    all
}

/// What the x32 runtime needs for itself, which is no memory of the program.
fn runtime_memory(report: &Scaling) -> Vec<String> {
    let most = |variant: &String| {
        let own = report.summary.tables.iter().filter(|table| table.variant == *variant);
        let memories = own.flat_map(|table| &table.rows).filter_map(|row| row.memory.as_ref());
        memories.map(|memory| memory.runtime).fold(0.0, f64::max)
    };
    let sentence = |(variant, most): (&String, f64)| {
        format!(
            "{variant}: the memory of all leaves out the x32 runtime's own, at most {}; PSS, USS and AnonPages include it.",
            bytes(most)
        )
    };
    let found = report.variants.iter().map(|variant| (variant, most(variant)));
    found.filter(|(_, most)| *most > 0.0).map(sentence).collect()
}

fn smt(report: &Scaling) -> Vec<String> {
    let mut all = Vec::new();
    for (one, two, found) in &report.summary.smt {
        let word = |name: &str, figure: &Result<Figure, Unfitted>| match figure {
            Ok(figure) => format!("{} by {name}", signed(figure)),
            Err(Unfitted::Withheld(_)) => format!("withheld by {name}"),
            Err(reason) => format!("unknown by {name} ({reason})"),
        };
        all.push(format!(
            "SMT yield ({} against {}): {}, {}, {}.",
            cell_name(two),
            one.processes,
            word("CPU time per event", &found.by_event),
            word("elapsed", &found.by_elapsed),
            word("elapsed less the sequential part", &found.by_elapsed_less_sequential)
        ));
    }
    if report.summary.smt.is_empty() && !report.has_siblings {
        all.push("No SMT siblings here: every CPU is a core of its own, and there is no SMT yield.".into());
    }
    all
}

fn capacity(report: &Scaling) -> Vec<String> {
    let limit = report.plan.memory_limit as f64;
    let mut all = Vec::new();
    let Some(baseline) = report.variants.first() else { return all };
    for mode in &report.plan.modes {
        let of_mode: Vec<_> = report
            .summary
            .capacity
            .iter()
            .filter(|c| c.mode == *mode && is_the_same_work(report, &c.variant))
            .collect();
        let own = of_mode.iter().find(|capacity| capacity.variant == *baseline);
        let mut parts = Vec::new();
        for capacity in &of_mode {
            let more = own
                .filter(|own| own.variant != capacity.variant)
                .and_then(|own| capacity.gain_over(own))
                .map_or(String::new(), |gain| format!(" ({} %)", with_sign(gain, 0)));
            let best = capacity.best.as_ref().map_or(String::new(), |(processes, placement, figure)| {
                format!(
                    ", best measured throughput {} {}/s with {processes} ({placement})",
                    significant(figure.estimate),
                    report.plan.work(*mode).unit()
                )
            });
            let fit = if capacity.fit > MOST_EXACT {
                format!("more than {MOST_EXACT}")
            } else {
                format!("{}", capacity.fit)
            };
            let noun = if capacity.fit == 1 { mode.singular() } else { mode.noun() };
            parts.push(format!("{fit} {noun} of {}{more}{best}", capacity.variant));
        }
        if !parts.is_empty() {
            let beyond = if limit > report.memory as f64 && report.memory > 0 {
                format!(" (this machine has {})", bytes(report.memory as f64))
            } else {
                String::new()
            };
            all.push(format!("{}{beyond} hold {}.", bytes(limit), parts.join("; ")));
        }
    }
    all
}

/// Other variants, modes and placements compared with the first, where they are largest.
fn comparisons(report: &Scaling) -> Vec<String> {
    let most = report.plan.counts.last().copied().unwrap_or(1);
    report
        .summary
        .comparisons
        .iter()
        .filter(|comparison| comparison.cell.processes == most)
        .filter(|comparison| {
            [&comparison.cell, &comparison.baseline]
                .iter()
                .all(|cell| is_the_same_work(report, &cell.variant))
        })
        .map(|comparison| {
            let mut parts = Vec::new();
            if let Err(Unfitted::Withheld(_)) = &comparison.throughput {
                parts.push("throughput withheld".to_owned());
            }
            if let Ok(figure) = &comparison.throughput {
                let remark = remark(report, figure, word(report, &comparison.throughput));
                parts.push(format!("throughput {}{remark}", signed(&less_one(figure))));
            }
            if let Some(memory) = &comparison.memory {
                parts.push(format!("memory {}", signed(&less_one(memory))));
            }
            format!(
                "{} beside {}: {}.",
                cell_name(&comparison.cell),
                cell_name(&comparison.baseline),
                parts.join(", ")
            )
        })
        .collect()
}

/// Why no estimate of the sequential part may be used. These runs are not all those of a row, which may have its figures.
fn withheld_start(table: &Table) -> Option<Cause> {
    let found = &table.sequential;
    let reasons =
        [found.regression.as_ref().err(), found.at_fork.as_ref().err(), found.one_event.as_ref().err()];
    reasons.into_iter().flatten().find_map(|reason| match reason {
        Unfitted::Withheld(cause) => Some(*cause),
        _ => None,
    })
}

/// The laws fitted to a table, and its sequential part.
fn laws(report: &Scaling, table: &Table) -> Option<String> {
    let mut parts = Vec::new();
    let sequential = &table.sequential;
    let with_range = |figure: &Figure| match figure.bounds {
        Some(ends) => format!("{} ({} … {})", time(figure.estimate), time(ends.low), time(ends.high)),
        None => time(figure.estimate),
    };
    let mut estimates = Vec::new();
    if let Ok(figure) = &sequential.one_event {
        estimates.push(format!("{} with one event", with_range(figure)));
    }
    if let Ok(figure) = &sequential.at_fork {
        let cpu = sequential.cpu_at_fork.as_ref();
        let cpu = cpu.map_or(String::new(), |cpu| format!(" ({} of it on a CPU)", time(cpu.estimate)));
        estimates.push(format!("{} until the first {}{cpu}", with_range(figure), table.mode.singular()));
    }
    if let Ok(line) = &sequential.regression {
        estimates.push(format!("{} by regression over events", with_range(&line.intercept)));
    }
    // It is the same for every placement of a variant and mode.
    let is_first = report
        .summary
        .tables
        .iter()
        .find(|other| other.variant == table.variant && other.mode == table.mode)
        .is_some_and(|first| first.placement == table.placement);
    if is_first && !estimates.is_empty() {
        let subtracted = time(sequential.chosen());
        parts.push(format!("sequential part {}; parallel time is less {subtracted}", listed(&estimates)));
    } else if let Some(cause) = withheld_start(table).filter(|_| is_first) {
        parts.push(format!(
            "sequential part withheld, and each parallel time with it: in the runs that estimate it, {cause}"
        ));
    }
    if let Ok(law) = &table.amdahl {
        parts.push(format!(
            "Amdahl's serial fraction {}{}",
            ranged(&Ok(law.serial), 4),
            within(law.steps, 2, law.residual)
        ));
    }
    if let Ok(law) = &table.universal {
        let best = match &law.best {
            Best::At { processes, throughput, beyond } => format!(
                "highest at {} {} with {} {}/s{}",
                ranged(&Ok(*processes), 1),
                table.mode.noun(),
                significant(throughput.estimate),
                table.work.unit(),
                if *beyond { ", beyond what was measured" } else { "" }
            ),
            Best::NoneWithinReach => "no highest point within reach".to_owned(),
        };
        parts.push(format!(
            "universal scalability law: contention {}, coherency {}{}, {best}",
            ranged(&Ok(law.contention), 4),
            ranged(&Ok(law.coherency), 5),
            within(law.steps, 3, law.residual)
        ));
    }
    let name = of_several(report, table);
    let text = parts.join("; ");
    let mut letters = text.chars();
    let first = letters.next()?;
    Some(if name.is_empty() {
        format!("{}{}.", first.to_uppercase(), letters.as_str())
    } else {
        format!("{name}{text}.")
    })
}

/// The distance of a law from the measurements; with as many steps as parameters it fits all of them exactly.
fn within(steps: usize, parameters: usize, residual: f64) -> String {
    if steps > parameters {
        format!(" (fits within {:.1} %)", 100.0 * residual)
    } else {
        String::new()
    }
}

/// Why there is no fit, once for all tables.
fn unfitted(report: &Scaling) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    let measured = |table: &&Table| table.rows.iter().any(|row| row.runs > 0);
    let tables: Vec<&Table> = report.summary.tables.iter().filter(measured).collect();
    for table in &tables {
        for (law, reason) in [
            ("Amdahl's law", table.amdahl.as_ref().err()),
            ("The universal scalability law", table.universal.as_ref().err()),
        ] {
            // The reason for a withheld figure has its own sentence.
            let reason = reason.filter(|reason| !matches!(reason, Unfitted::Withheld(_)));
            let Some(reason) = reason else { continue };
            let text = format!("{law} was not fitted: {reason} (on CPUs of their own).");
            let name = name_of(table);
            match reasons.iter_mut().find(|(known, _)| *known == text) {
                Some((_, names)) => names.push(name),
                None => reasons.push((text, vec![name])),
            }
        }
    }
    let sentence = |(text, names): (String, Vec<String>)| match names.len() == tables.len() {
        true => text,
        false => format!("{}: {text}", names.join("; ")),
    };
    reasons.into_iter().map(sentence).collect()
}

/// The causes of pages that children no longer share.
fn copy_on_write(report: &Scaling) -> Vec<String> {
    let mut all = Vec::new();
    for table in report.summary.tables.iter().filter(|table| table.mode == Mode::Fork) {
        let Some(row) = table
            .rows
            .iter()
            .rev()
            .find(|row| row.memory.as_ref().is_some_and(|m| !m.copy_on_write.is_empty()))
        else {
            continue;
        };
        let Some(memory) = &row.memory else { continue };
        let count = row.processes.max(1) as f64;
        let at_fork: u64 = memory.copy_on_write.iter().map(|part| part.at_fork).sum();
        let sum = |of: fn(&widthwise_experiment::scale::CopyOnWriteBreakdown) -> u64| {
            memory.copy_on_write.iter().map(of).sum::<u64>() as f64 / count
        };
        const NAMED: usize = 4;
        let with_copies: Vec<_> = memory.copy_on_write.iter().filter(|part| part.copied > 0).collect();
        let mut copied: Vec<String> = with_copies
            .iter()
            .take(NAMED)
            .map(|part| format!("{} {}", part.part, bytes(part.copied as f64 / count)))
            .collect();
        let others: u64 = with_copies.iter().skip(NAMED).map(|part| part.copied).sum();
        if others > 0 {
            copied.push(format!("others {}", bytes(others as f64 / count)));
        }
        let unused = at_fork as f64 - sum(|part| part.shared) - sum(|part| part.copied);
        let unused = match unused > 0.01 * at_fork as f64 {
            true => format!(", and has not used {}", bytes(unused)),
            false => String::new(),
        };
        all.push(format!(
            "{}Of the {} that the parent had at the fork a child still shares {} and has copied {}{}{unused}; {} are its own.",
            of_several(report, table),
            bytes(at_fork as f64),
            bytes(sum(|part| part.shared)),
            bytes(sum(|part| part.copied)),
            if copied.is_empty() { String::new() } else { format!(" ({})", copied.join(", ")) },
            bytes(sum(|part| part.own)),
        ));
    }
    all
}

/// Whether the sums agree with the system's.
fn agreement(report: &Scaling) -> Option<String> {
    let mut worst: Option<(f64, String)> = None;
    let mut drift = 0.0_f64;
    let mut anonymous = 0;
    for table in &report.summary.tables {
        for row in &table.rows {
            let Some(memory) = &row.memory else { continue };
            // The rest of the machine varies by megabytes.
            if memory.anonymous < ENOUGH_TO_AGREE {
                continue;
            }
            if !memory.system_is_telling() {
                anonymous += 1;
                continue;
            }
            drift = drift.max(memory.system_drift);
            let off = memory.anonymous / memory.system_anonymous.max(1.0) - 1.0;
            if worst.as_ref().is_none_or(|(known, _)| off.abs() > known.abs()) {
                let noun = if row.processes == 1 { table.mode.singular() } else { table.mode.noun() };
                worst = Some((off, format!("{} {noun} of {}", row.processes, table.variant)));
            }
        }
    }
    if worst.is_none() && anonymous > 0 {
        return Some(
            "Sums of anonymous memory were not compared with the system's AnonPages: the rest of the machine changed too much."
                .into(),
        );
    }
    worst.map(|(off, cell)| {
        format!(
            "Sums of anonymous memory over processes are within {:.1} % of the system's AnonPages (furthest: {cell}; the rest \
             of the machine changed by up to {} meanwhile).",
            100.0 * off.abs(),
            bytes(drift)
        )
    })
}

/// Huge pages, and pages merged by KSM, if there are any.
fn pages(report: &Scaling) -> Vec<String> {
    let mut all = Vec::new();
    for table in &report.summary.tables {
        let Some((row, memory)) = table.rows.iter().rev().find_map(|row| Some((row, row.memory.as_ref()?)))
        else {
            continue;
        };
        let mut parts = Vec::new();
        if memory.huge > 0.0 {
            parts.push(format!(
                "{} in huge pages (the system's AnonHugePages grew by {})",
                bytes(memory.huge),
                bytes(memory.system_huge)
            ));
        }
        if memory.merged > 0.0 {
            parts.push(format!("{} merged by KSM", bytes(memory.merged)));
        }
        if !parts.is_empty() {
            all.push(format!(
                "{}With {} {}: {}.",
                of_several(report, table),
                row.processes,
                table.mode.noun(),
                listed(&parts)
            ));
        }
    }
    all
}

fn different(report: &Scaling) -> Vec<String> {
    report
        .summary
        .different
        .iter()
        .map(|(variant, cell)| {
            let noun = if cell.processes == 1 { cell.mode.singular() } else { cell.mode.noun() };
            let place = format!("{} {noun}", cell.processes);
            match report.variants.first() {
                Some(baseline) if baseline == variant => format!(
                    "{variant}'s output changes from run to run ({place}): nothing is concluded from its figures. --filter \
                     leaves out what may change, --check off compares nothing."
                ),
                baseline => format!(
                    "{variant}'s output differs from that of {} ({place}): it is not the same work, and nothing is concluded from its figures.",
                    baseline.map_or("the baseline", String::as_str),
                ),
            }
        })
        .collect()
}
