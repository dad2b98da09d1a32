//! Reading a campaign back.
//!
//! The file is untrusted: every type is checked, nothing is indexed, and additions of a later widthwise (a metric, a
//! source) are left out with a warning.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rusqlite::{Connection, Row};
use widthwise_experiment::memory::Series;
use widthwise_experiment::metric::{self, Metric};
use widthwise_experiment::outcome::{Ending, Noise, Reading, Round, RoundKind, Run, Source};
use widthwise_experiment::scale::GroupRun;
use widthwise_experiment::VariantStatus;

use crate::database::{Archive, Fault, COUNTED_RUNS};
use crate::error::ArchiveError;
use crate::runtime_calls::RuntimeCalls;
use crate::series;
use crate::writer::{BuildNote, ProcessNote};

/// All data of a campaign so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Samples {
    /// Every round, by number. One that is being measured now is [`RoundKind::Interrupted`] as long as it is not
    /// complete.
    pub rounds: Vec<Round>,
    /// Every run, by round and position; those of interrupted rounds too.
    pub runs: Vec<Run>,
    /// Every group run of a scaling campaign, in order.
    pub group_runs: Vec<GroupRun>,
    /// The memory series of runs, where recorded: round, variant, series; in the order of the runs.
    pub series: Vec<(u32, String, Series)>,
    /// The status of each variant that has one.
    pub statuses: BTreeMap<String, VariantStatus>,
    /// How the variants were built, in their order.
    pub builds: Vec<BuildNote>,
    /// The processes of each variant by command name, over its completed runs of timed rounds: their number per run
    /// (the mean, rounded, at least 1), the highest peak, the mean CPU time per run.
    pub processes: Vec<ProcessNote>,
    /// The calls of each variant that the x32 runtime translated, the most frequent first.
    pub runtime_calls: Vec<RuntimeCalls>,
    /// How outputs differ from the baseline's, by variant.
    pub differences: BTreeMap<String, String>,
    /// Warnings, the oldest first.
    pub warnings: Vec<String>,
    /// Why the last session ended; absent if it was interrupted or is running.
    pub stopped: Option<String>,
    /// The measuring time, over all sessions.
    pub elapsed: Duration,
}

impl Archive {
    /// Reads everything, as it was at one moment.
    pub fn load(&self) -> Result<Samples, ArchiveError> {
        read(&self.connection).map_err(|fault| match fault {
            Fault::Database(error) => self.failed(error),
            Fault::Content(reason) => ArchiveError::Damaged { path: self.file.clone(), reason },
        })
    }
}

fn read(connection: &Connection) -> Result<Samples, Fault> {
    // One transaction keeps the tables consistent while another process adds runs.
    let snapshot = connection.unchecked_transaction()?;
    let names = variant_names(&snapshot)?;
    let mut samples = Samples {
        rounds: rounds(&snapshot)?,
        statuses: statuses(&snapshot, &names)?,
        builds: builds(&snapshot, &names)?,
        processes: processes(&snapshot, &names)?,
        runtime_calls: crate::runtime_calls::read(&snapshot)?,
        differences: differences(&snapshot, &names)?,
        warnings: warnings(&snapshot)?,
        stopped: stopped(&snapshot)?,
        elapsed: elapsed(&snapshot)?,
        group_runs: crate::group_run::read(&snapshot)?,
        ..Samples::default()
    };
    let (mut runs, places) = runs(&snapshot, &names)?;
    let left_out = add_readings(&snapshot, &mut runs, &places)?;
    samples.series = series(&snapshot, &runs, &places)?;
    samples.runs = runs;
    samples.warnings.extend(left_out);
    Ok(samples)
}

/// The series, in the order of their runs.
fn series(
    connection: &Connection,
    runs: &[Run],
    places: &HashMap<i64, usize>,
) -> Result<Vec<(u32, String, Series)>, Fault> {
    let mut found = BTreeMap::new();
    for (id, series) in series::read(connection)? {
        let place = places.get(&id).copied();
        let run = place.and_then(|place| Some((place, runs.get(place)?)));
        let Some((place, run)) = run else {
            return Err(Fault::Content("it has a memory series of a run that it does not have".to_owned()));
        };
        found.insert(place, (run.round, run.variant.clone(), series));
    }
    Ok(found.into_values().collect())
}

type Names = HashMap<i64, String>;

fn variant_names(connection: &Connection) -> Result<Names, Fault> {
    let mut rows = connection.prepare("SELECT id, name FROM variant")?;
    let names = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    Ok(names)
}

fn variant(names: &Names, id: i64) -> Result<String, Fault> {
    names
        .get(&id)
        .cloned()
        .ok_or_else(|| Fault::Content(format!("it speaks of a variant {id} that it does not have")))
}

fn rounds(connection: &Connection) -> Result<Vec<Round>, Fault> {
    let mut statement = connection.prepare(
        "SELECT number, finished, kind, cpu, steal, pressure, others, throttled, others_ns FROM round ORDER BY number",
    )?;
    let mut rows = statement.query([])?;
    let layouts = crate::round_layout::read(connection)?;
    let mut rounds = Vec::new();
    while let Some(row) = rows.next()? {
        let word: String = row.get(2)?;
        let kind = match (row.get(1)?, RoundKind::parse(&word)) {
            (false, _) => RoundKind::Interrupted,
            (true, Some(kind)) => kind,
            (true, None) => {
                return Err(Fault::Content(format!("it has a round of an unknown kind, {word:?}")))
            }
        };
        let noise = Noise {
            steal: row.get::<_, Option<f64>>(4)?.unwrap_or_default(),
            pressure: row.get(5)?,
            others: row.get::<_, Option<f64>>(6)?.unwrap_or_default(),
            others_ns: row.get(8)?,
            throttled: row.get::<_, Option<u64>>(7)?.unwrap_or_default(),
        };
        let number = row.get(0)?;
        let layout = layouts.get(&number).copied();
        rounds.push(Round { number, kind, cpu: row.get(3)?, noise, layout });
    }
    Ok(rounds)
}

/// The runs, and where in the list each row's id stands.
fn runs(connection: &Connection, names: &Names) -> Result<(Vec<Run>, HashMap<i64, usize>), Fault> {
    let mut statement = connection.prepare(
        "SELECT id, variant, round, position, began_ns, ended, number, reason, output_digest
           FROM run ORDER BY round, position, id",
    )?;
    let mut rows = statement.query([])?;
    let mut runs = Vec::new();
    let mut places = HashMap::new();
    while let Some(row) = rows.next()? {
        places.insert(row.get(0)?, runs.len());
        runs.push(Run {
            variant: variant(names, row.get(1)?)?,
            round: row.get(2)?,
            position: row.get(3)?,
            began_ns: row.get(4)?,
            ending: ending(row)?,
            sample: BTreeMap::new(),
            output_digest: row.get(8)?,
        });
    }
    Ok((runs, places))
}

fn ending(row: &Row<'_>) -> Result<Ending, Fault> {
    let word: String = row.get(5)?;
    let found = match word.as_str() {
        "exit" => Ending::Exit { status: row.get(6)? },
        "signal" => Ending::Signal { signal: row.get(6)? },
        "timeout" => Ending::Timeout { limit_ns: row.get(6)? },
        "output-limit" => Ending::OutputLimit { limit_bytes: row.get(6)? },
        "spawn-failed" => Ending::SpawnFailed { reason: row.get(7)? },
        "hook-failed" => Ending::HookFailed { reason: row.get(7)? },
        _ => Ending::Done,
    };
    if found.name() != word {
        return Err(Fault::Content(format!("it has a run with an unknown ending, {word:?}")));
    }
    Ok(found)
}

/// Adds the readings to their runs, and warns of what was left out.
fn add_readings(
    connection: &Connection,
    runs: &mut [Run],
    places: &HashMap<i64, usize>,
) -> Result<BTreeSet<String>, Fault> {
    let metrics = known_metrics(connection)?;
    let bounds = bounds(connection)?;
    let mut left_out = BTreeSet::new();
    let mut statement = connection
        .prepare("SELECT run, metric, value, source, coverage FROM reading ORDER BY run, metric")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let run = places.get(&row.get(0)?).and_then(|place| runs.get_mut(*place));
        let Some(run) = run else {
            return Err(Fault::Content("it has a reading of a run that it does not have".to_owned()));
        };
        let metric = match metrics.get(&row.get(1)?) {
            Some(Ok(metric)) => metric,
            Some(Err(name)) => {
                left_out.insert(format!(
                    "metric {name:?}: this widthwise does not know it; its readings are in the archive, and left out here"
                ));
                continue;
            }
            None => {
                return Err(Fault::Content("it has a reading of a metric that it does not have".to_owned()))
            }
        };
        let word: String = row.get(3)?;
        let Some(source) = Source::find(&word) else {
            left_out.insert(format!(
                "source {word:?} of some readings of {metric}: this widthwise does not know it; they are in the archive, \
                 and left out here"
            ));
            continue;
        };
        let upper = bounds.get(&(row.get(0)?, row.get(1)?)).copied();
        let reading = Reading { value: row.get(2)?, source, coverage: row.get(4)?, upper };
        if !(reading.value.is_finite() && reading.coverage.is_finite()) {
            return Err(Fault::Content(format!(
                "{}, round {}: {metric} is not a number",
                run.variant, run.round
            )));
        }
        run.sample.insert(metric.name, reading);
    }
    Ok(left_out)
}

/// The upper bounds of readings that are only lower bounds, by run and metric.
fn bounds(connection: &Connection) -> Result<HashMap<(i64, i64), f64>, Fault> {
    let mut bounds = HashMap::new();
    let mut statement = connection.prepare("SELECT run, metric, upper FROM bound")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let upper = row.get::<_, Option<f64>>(2)?.unwrap_or(f64::INFINITY);
        bounds.insert((row.get(0)?, row.get(1)?), upper);
    }
    Ok(bounds)
}

/// The metrics of the file by id: ours, or the name of one that is not.
fn known_metrics(connection: &Connection) -> Result<HashMap<i64, Result<Metric, String>>, Fault> {
    let mut statement = connection.prepare("SELECT id, name, unit FROM metric")?;
    let mut rows = statement.query([])?;
    let mut metrics = HashMap::new();
    while let Some(row) = rows.next()? {
        let (name, unit): (String, String) = (row.get(1)?, row.get(2)?);
        // The same name in another unit is another metric.
        let ours = metric::find(&name).filter(|metric| metric.unit.name() == unit);
        metrics.insert(row.get(0)?, ours.ok_or(name));
    }
    Ok(metrics)
}

fn statuses(connection: &Connection, names: &Names) -> Result<BTreeMap<String, VariantStatus>, Fault> {
    let mut statement = connection.prepare("SELECT variant, status, reason FROM variant_status")?;
    let mut rows = statement.query([])?;
    let mut statuses = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (name, reason): (String, String) = (row.get(1)?, row.get(2)?);
        let Some(status) = VariantStatus::parse(&name, &reason) else {
            return Err(Fault::Content(format!("it has a variant of an unknown status, {name:?}")));
        };
        statuses.insert(variant(names, row.get(0)?)?, status);
    }
    Ok(statuses)
}

fn builds(connection: &Connection, names: &Names) -> Result<Vec<BuildNote>, Fault> {
    let mut statement = connection.prepare(
        "SELECT variant, compiler, cflags, binary_bytes, digest, log, seconds, cached FROM build ORDER BY variant",
    )?;
    let mut rows = statement.query([])?;
    let mut builds = Vec::new();
    while let Some(row) = rows.next()? {
        builds.push(BuildNote {
            variant: variant(names, row.get(0)?)?,
            compiler: row.get(1)?,
            cflags: row.get(2)?,
            binary_bytes: row.get(3)?,
            digest: row.get(4)?,
            log: row.get(5)?,
            seconds: row.get(6)?,
            cached: row.get(7)?,
        });
    }
    Ok(builds)
}

fn processes(connection: &Connection, names: &Names) -> Result<Vec<ProcessNote>, Fault> {
    let mut statement = connection.prepare(&format!(
        "{COUNTED_RUNS}
         SELECT counted.variant, comm, sum(1.0 * count) / runs, max(max_rss_bytes), sum(cpu_ns) / runs,
                group_concat(DISTINCT source)
           FROM process JOIN counted ON counted.id = process.run JOIN times ON times.variant = counted.variant
          GROUP BY counted.variant, comm
          ORDER BY counted.variant, max(max_rss_bytes) DESC, comm"
    ))?;
    let mut rows = statement.query([])?;
    let mut processes = Vec::new();
    while let Some(row) = rows.next()? {
        let per_run: f64 = row.get(2)?;
        processes.push(ProcessNote {
            variant: variant(names, row.get(0)?)?,
            comm: row.get(1)?,
            // `as` saturates, and converts NaN to 0.
            count: (per_run.round() as u64).max(1),
            max_rss_bytes: row.get(3)?,
            cpu_ns: row.get(4)?,
            source: row.get(5)?,
        });
    }
    Ok(processes)
}

fn differences(connection: &Connection, names: &Names) -> Result<BTreeMap<String, String>, Fault> {
    let mut statement = connection.prepare("SELECT variant, diff FROM output_difference")?;
    let mut rows = statement.query([])?;
    let mut differences = BTreeMap::new();
    while let Some(row) = rows.next()? {
        differences.insert(variant(names, row.get(0)?)?, row.get(1)?);
    }
    Ok(differences)
}

fn warnings(connection: &Connection) -> Result<Vec<String>, Fault> {
    let mut statement = connection.prepare("SELECT text FROM warning ORDER BY id")?;
    let warnings = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(warnings)
}

fn stopped(connection: &Connection) -> Result<Option<String>, Fault> {
    let mut statement = connection.prepare("SELECT stopped FROM session ORDER BY id DESC LIMIT 1")?;
    let mut rows = statement.query([])?;
    Ok(match rows.next()? {
        Some(row) => row.get(0)?,
        None => None,
    })
}

fn elapsed(connection: &Connection) -> Result<Duration, Fault> {
    let mut statement = connection.prepare("SELECT elapsed_ns FROM session")?;
    let mut rows = statement.query([])?;
    let mut elapsed = Duration::ZERO;
    while let Some(row) = rows.next()? {
        elapsed = elapsed.saturating_add(Duration::from_nanos(row.get(0)?));
    }
    Ok(elapsed)
}
