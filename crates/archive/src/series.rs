//! Memory series: written with their run, and read back.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{params, Connection, Row};
use widthwise_experiment::memory::{
    Amounts, Class, Mark, Part, Process, Reading, Series, StatmSample, Totals,
};

use crate::database::bounded;
use crate::database::Fault;

/// The process number of the whole tree.
const TREE: i64 = -1;

/// Writes the series of the run of that id.
pub(crate) fn write(connection: &Connection, run: i64, series: &Series) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO memory_series (run, wall_ns, spent_ns, statm_samples, pagemap_scans, smaps_snapshots) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            run,
            bounded(series.wall_ns),
            bounded(series.spent_ns),
            bounded(series.statm_samples_made),
            bounded(series.pagemap_scans_made),
            bounded(series.readings_made)
        ])?;
    let mut add = connection.prepare_cached(
        "INSERT INTO memory_process (run, process, pid, parent, name, began_ns, ended_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (number, process) in (0i64..).zip(&series.processes) {
        let Process { pid, parent, name, began_ns, ended_ns } = process;
        add.execute(params![run, number, pid, parent, name, bounded(*began_ns), bounded(*ended_ns)])?;
    }
    // Two statm samples of one process at one moment are stored once.
    let mut add = connection.prepare_cached(
        "INSERT OR IGNORE INTO statm_sample (run, at_ns, process, resident, anonymous, virtual)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for statm_sample in &series.statm_samples {
        add.execute(params![
            run,
            bounded(statm_sample.at_ns),
            bounded(statm_sample.process as u64),
            bounded(statm_sample.resident),
            bounded(statm_sample.anonymous),
            bounded(statm_sample.virtual_bytes)
        ])?;
    }
    for reading in &series.readings {
        write_reading(connection, run, series, reading)?;
    }
    let mut add =
        connection.prepare_cached("INSERT INTO mark (run, number, at_ns, text) VALUES (?1, ?2, ?3, ?4)")?;
    for (number, mark) in (0i64..).zip(&series.marks) {
        add.execute(params![run, number, bounded(mark.at_ns), mark.text])?;
    }
    Ok(())
}

fn write_reading(
    connection: &Connection,
    run: i64,
    series: &Series,
    reading: &Reading,
) -> rusqlite::Result<()> {
    let at = bounded(reading.at_ns);
    let known = |bytes| reading.full.then_some(bounded(bytes));
    let mut add = connection.prepare_cached(
        "INSERT INTO memory_snapshot (run, at_ns, process, resident, pss, anonymous, file, shared, swap, virtual,
           page_tables, huge)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    let own = reading.processes.iter().map(|(process, totals)| (bounded(*process as u64), totals));
    for (process, totals) in own.chain([(TREE, &reading.tree)]) {
        let amounts = totals.amounts;
        add.execute(params![
            run,
            at,
            process,
            bounded(amounts.resident),
            known(amounts.pss),
            bounded(amounts.anonymous),
            known(totals.file),
            known(totals.shared),
            known(amounts.swap),
            bounded(amounts.virtual_bytes),
            known(totals.page_tables),
            known(totals.huge)
        ])?;
    }
    let mut add = connection.prepare_cached(
        "INSERT INTO memory_part (run, at_ns, class, name, resident, pss, anonymous, swap, virtual)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for (part, amounts) in &reading.parts {
        let Some(Part { class, name }) = series.parts.get(*part) else { continue };
        add.execute(params![
            run,
            at,
            class.name(),
            name,
            bounded(amounts.resident),
            known(amounts.pss),
            known(amounts.anonymous),
            known(amounts.swap),
            bounded(amounts.virtual_bytes)
        ])?;
    }
    Ok(())
}

/// Every series, by the id of its run.
pub(crate) fn read(connection: &Connection) -> Result<BTreeMap<i64, Series>, Fault> {
    let mut all = BTreeMap::new();
    each(
        connection,
        "SELECT run, wall_ns, spent_ns, statm_samples, pagemap_scans, smaps_snapshots FROM memory_series",
        |row| {
            let series = Series {
                wall_ns: row.get(1)?,
                spent_ns: row.get(2)?,
                statm_samples_made: row.get(3)?,
                pagemap_scans_made: row.get(4)?,
                readings_made: row.get(5)?,
                ..Series::default()
            };
            all.insert(row.get(0)?, series);
            Ok(())
        },
    )?;
    let columns = "SELECT run, process, pid, parent, name, began_ns, ended_ns FROM memory_process ORDER BY run, process";
    each(connection, columns, |row| {
        let series = of(&mut all, row)?;
        // Statm samples and snapshots refer to them by number.
        if row.get::<_, i64>(1)? != series.processes.len() as i64 {
            return Err(Fault::Content("the processes of a memory series are not all there".to_owned()));
        }
        series.processes.push(Process {
            pid: row.get(2)?,
            parent: row.get(3)?,
            name: row.get(4)?,
            began_ns: row.get(5)?,
            ended_ns: row.get(6)?,
        });
        Ok(())
    })?;
    let columns =
        "SELECT run, at_ns, process, resident, anonymous, virtual FROM statm_sample ORDER BY run, at_ns, process";
    each(connection, columns, |row| {
        let series = of(&mut all, row)?;
        let process = process(series, row.get(2)?)?;
        series.statm_samples.push(StatmSample {
            at_ns: row.get(1)?,
            process,
            resident: row.get(3)?,
            anonymous: row.get(4)?,
            virtual_bytes: row.get(5)?,
        });
        Ok(())
    })?;
    // The tree's row comes first.
    let columns =
        "SELECT run, at_ns, process, resident, pss, anonymous, file, shared, swap, virtual, page_tables, huge
                     FROM memory_snapshot ORDER BY run, at_ns, process";
    each(connection, columns, |row| {
        let series = of(&mut all, row)?;
        let at_ns: u64 = row.get(1)?;
        let totals = totals(row)?;
        match row.get(2)? {
            TREE => {
                let full = row.get::<_, Option<u64>>(4)?.is_some();
                series.readings.push(Reading { at_ns, full, tree: totals, ..Reading::default() });
            }
            number => {
                let process = process(series, number)?;
                let reading = series.readings.last_mut().filter(|reading| reading.at_ns == at_ns);
                let Some(reading) = reading else {
                    return Err(Fault::Content("a memory series has no sum of its processes".to_owned()));
                };
                reading.processes.push((process, totals));
            }
        }
        Ok(())
    })?;
    read_parts(connection, &mut all)?;
    each(connection, "SELECT run, at_ns, text FROM mark ORDER BY run, number", |row| {
        let series = of(&mut all, row)?;
        series.marks.push(Mark { at_ns: row.get(1)?, text: row.get(2)? });
        Ok(())
    })?;
    Ok(all)
}

fn read_parts(connection: &Connection, all: &mut BTreeMap<i64, Series>) -> Result<(), Fault> {
    // The current snapshot's position, and the parts by name.
    let mut place = (i64::MIN, 0usize);
    let mut indices: HashMap<Part, usize> = HashMap::new();
    let columns = "SELECT run, at_ns, class, name, resident, pss, anonymous, swap, virtual
                     FROM memory_part ORDER BY run, at_ns, class, name";
    each(connection, columns, |row| {
        let run: i64 = row.get(0)?;
        let at_ns: u64 = row.get(1)?;
        if run != place.0 {
            place = (run, 0);
            indices.clear();
        }
        let series = of(all, row)?;
        let word: String = row.get(2)?;
        // A class added by a later widthwise is read as something else.
        let class = Class::find(&word).unwrap_or(Class::Other);
        let part = Part { class, name: row.get(3)? };
        let index = *indices.entry(part).or_insert_with_key(|part| {
            series.parts.push(part.clone());
            series.parts.len() - 1
        });
        while series.readings.get(place.1).is_some_and(|reading| reading.at_ns < at_ns) {
            place.1 += 1;
        }
        let Some(reading) = series.readings.get_mut(place.1).filter(|reading| reading.at_ns == at_ns) else {
            return Err(Fault::Content(
                "a memory series has parts of a reading that it does not have".to_owned(),
            ));
        };
        let amounts = Amounts {
            resident: row.get(4)?,
            pss: known(row, 5)?,
            anonymous: known(row, 6)?,
            swap: known(row, 7)?,
            virtual_bytes: row.get(8)?,
        };
        match reading.parts.iter_mut().find(|(part, _)| *part == index) {
            Some((_, sum)) => *sum = sum.plus(amounts),
            None => reading.parts.push((index, amounts)),
        }
        Ok(())
    })
}

fn totals(row: &Row<'_>) -> rusqlite::Result<Totals> {
    Ok(Totals {
        amounts: Amounts {
            resident: row.get(3)?,
            pss: known(row, 4)?,
            anonymous: row.get(5)?,
            swap: known(row, 8)?,
            virtual_bytes: row.get(9)?,
        },
        file: known(row, 6)?,
        shared: known(row, 7)?,
        page_tables: known(row, 10)?,
        huge: known(row, 11)?,
    })
}

/// What a pagemap scan does not measure is 0 in its snapshot.
fn known(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, Option<u64>>(column)?.unwrap_or_default())
}

fn of<'a>(all: &'a mut BTreeMap<i64, Series>, row: &Row<'_>) -> Result<&'a mut Series, Fault> {
    let missing = || Fault::Content("it has a part of a memory series that it does not have".to_owned());
    all.get_mut(&row.get(0)?).ok_or_else(missing)
}

fn process(series: &Series, number: i64) -> Result<usize, Fault> {
    let known = usize::try_from(number).ok().filter(|number| *number < series.processes.len());
    known
        .ok_or_else(|| Fault::Content("a memory series speaks of a process that it does not have".to_owned()))
}

fn each(
    connection: &Connection,
    question: &str,
    mut take: impl FnMut(&Row<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut statement = connection.prepare(question)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        take(row)?;
    }
    Ok(())
}
