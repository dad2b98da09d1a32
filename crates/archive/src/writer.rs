//! Writing a campaign as it is measured: rounds, runs, and what is known about the variants.

use std::time::{Duration, Instant};

use rusqlite::params;
use widthwise_experiment::memory::Series;
use widthwise_experiment::outcome::{Ending, Round, RoundKind, Run};
use widthwise_experiment::VariantStatus;

use crate::database::{bounded, note, set_elapsed, Archive};
use crate::error::ArchiveError;
use crate::folder::NewSpec;
use crate::round_layout;
use crate::series;

/// How one variant was built.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildNote {
    /// The variant's name.
    pub variant: String,
    /// The compiler, with its version.
    pub compiler: String,
    /// The options it was given.
    pub cflags: String,
    /// Size of the binary, where there is one.
    pub binary_bytes: Option<u64>,
    /// Digest of the binary, where there is one.
    pub digest: Option<String>,
    /// The log: its path, relative to the campaign's folder where it lies in it.
    pub log: String,
    /// How long the build took.
    pub seconds: f64,
    /// Whether it was reused from an earlier campaign.
    pub cached: bool,
}

/// The processes of one command name in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessNote {
    /// The variant's name.
    pub variant: String,
    /// The command name (`comm`).
    pub comm: String,
    /// How many there were.
    pub count: u64,
    /// Peak resident memory of the largest of them.
    pub max_rss_bytes: f64,
    /// CPU time of all of them.
    pub cpu_ns: f64,
    /// Where these numbers came from.
    pub source: String,
}

/// How long the log becomes before a checkpoint. A checkpoint waits milliseconds for the disk, so it is made between rounds,
/// where it affects all variants alike.
const CHECKPOINT_BYTES: u64 = 8 << 20;

/// What a transaction adds to the log besides long texts: some eight pages.
const RUN_BYTES: u64 = 32 << 10;

impl Archive {
    /// From here on writes are committed together by [`Archive::commit`], which is many times cheaper. Otherwise each
    /// call commits what it writes.
    pub fn begin_batch(&mut self) {
        if let Some(writer) = &mut self.writer {
            writer.batches = true;
        }
    }

    /// Commits the writes of the batch: when this returns, they survive `kill -9`.
    pub fn commit(&mut self) -> Result<(), ArchiveError> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        let kept = self.connection.execute_batch("COMMIT");
        kept.map_err(|error| self.given_up(error))
    }

    /// Commits the writes of the batch; from here on each call commits what it writes.
    pub fn end_batch(&mut self) -> Result<(), ArchiveError> {
        if let Some(writer) = &mut self.writer {
            writer.batches = false;
        }
        self.commit()
    }

    /// Adds the session's row. A resumed campaign may still be refused after it was opened: that is no session.
    pub(crate) fn begin_session(&mut self) -> Result<(), ArchiveError> {
        if self.writer()?.session.is_some() {
            return Ok(());
        }
        self.write(|transaction, writer| {
            transaction.execute("INSERT INTO session (began) VALUES (?1)", params![writer.began]).map(drop)
        })?;
        let session = self.connection.last_insert_rowid();
        // In a batch, too: later writes of this session may be rolled back, and its row is not added again.
        self.commit()?;
        if let Some(writer) = &mut self.writer {
            writer.session = Some(session);
        }
        Ok(())
    }

    /// Begins a round of `planned` runs. Its number must be [`Archive::next_round`] or higher.
    pub fn begin_round(
        &mut self,
        number: u32,
        kind: RoundKind,
        planned: u32,
        cpu: Option<u32>,
    ) -> Result<(), ArchiveError> {
        let next = self.next_round;
        let after = number.checked_add(1);
        let Some(after) = after.filter(|_| number >= next) else {
            return Err(self.out_of_turn(format!("round {number} was begun before; the next one is {next}")));
        };
        self.checkpoint()?;
        self.begin_session()?;
        self.write(|transaction, writer| {
            transaction
                .prepare_cached(
                    "INSERT INTO round (number, session, kind, planned, cpu) VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![number, writer.session, kind.name(), planned, cpu])
                .map(drop)
        })?;
        self.next_round = after;
        if let Some(writer) = &mut self.writer {
            writer.since.get_or_insert_with(Instant::now);
            writer.round = Some(number);
        }
        Ok(())
    }

    /// Changes the number of runs of the open round, where some that were planned are not to be made.
    pub fn set_planned(&mut self, number: u32, planned: u32) -> Result<(), ArchiveError> {
        self.check_round(number)?;
        self.write(|transaction, _| {
            let set = "UPDATE round SET planned = ?2 WHERE number = ?1";
            transaction.prepare_cached(set)?.execute(params![number, planned]).map(drop)
        })
    }

    /// Adds a run that has ended to the open round. When this returns, or after [`Archive::commit`] if runs are
    /// [written in a batch](Archive::begin_batch), the run survives `kill -9`.
    pub fn add_run(&mut self, run: &Run, processes: &[ProcessNote]) -> Result<(), ArchiveError> {
        self.add_sampled_run(run, processes, None)
    }

    /// As [`Archive::add_run`], with the run's memory series: both are stored, or neither.
    pub fn add_sampled_run(
        &mut self,
        run: &Run,
        processes: &[ProcessNote],
        series: Option<&Series>,
    ) -> Result<(), ArchiveError> {
        self.check_round(run.round)?;
        let writer = self.writer()?;
        if let Some(name) = run.sample.keys().find(|name| !writer.metrics.contains_key(**name)) {
            return Err(self.unknown("metric", name));
        }
        let variant = self.id_of(&run.variant)?;
        self.write(|transaction, writer| {
            let (number, reason) = details(&run.ending);
            transaction
                .prepare_cached(
                    "INSERT INTO run (round, variant, position, began_ns, ended, number, reason, output_digest)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                )?
                .execute(params![
                    run.round,
                    variant,
                    run.position,
                    bounded(run.began_ns),
                    run.ending.name(),
                    number,
                    reason,
                    run.output_digest
                ])?;
            let id = transaction.last_insert_rowid();
            let mut bound = None;
            if run.sample.values().any(|reading| reading.upper.is_some()) {
                bound = Some(
                    transaction
                        .prepare_cached("INSERT INTO bound (run, metric, upper) VALUES (?1, ?2, ?3)")?,
                );
            }
            let mut add = transaction.prepare_cached(
                "INSERT INTO reading (run, metric, value, source, coverage) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            for (name, reading) in &run.sample {
                if !(reading.value.is_finite() && reading.coverage.is_finite()) {
                    // Not a measurement; SQLite has no NaN either. Missing is missing.
                    let words = format!(
                        "{}: {name} was not a number in some runs, and is missing there",
                        run.variant
                    );
                    note(transaction, &words)?;
                    continue;
                }
                let metric = writer.metrics.get(*name);
                add.execute(params![id, metric, reading.value, reading.source.name(), reading.coverage])?;
                if let (Some(bound), Some(upper)) = (&mut bound, reading.upper) {
                    bound.execute(params![id, metric, Some(upper).filter(|upper| upper.is_finite())])?;
                }
            }
            let mut add = transaction.prepare_cached(
                "INSERT INTO process (run, comm, count, max_rss_bytes, cpu_ns, source)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?;
            for process in processes {
                add.execute(params![
                    id,
                    process.comm,
                    bounded(process.count),
                    process.max_rss_bytes,
                    process.cpu_ns,
                    process.source
                ])?;
            }
            series.map_or(Ok(()), |series| series::write(transaction, id, series))
        })?;
        self.count_in_log(0);
        Ok(())
    }

    /// Counts a run that was added, with so many bytes of text.
    pub(crate) fn count_in_log(&mut self, text: usize) {
        if let Some(writer) = &mut self.writer {
            writer.in_log = writer.in_log.saturating_add(RUN_BYTES).saturating_add(text as u64);
        }
    }

    /// Ends the open round: from now on it has the kind `round.kind`. With fewer runs than planned it is interrupted in
    /// any case, because verdicts need complete blocks.
    pub fn end_round(&mut self, round: &Round) -> Result<(), ArchiveError> {
        if self.writer()?.round != Some(round.number) {
            let what = format!("round {} was ended, but it is not the one that was begun", round.number);
            return Err(self.out_of_turn(what));
        }
        self.write(|transaction, writer| {
            transaction
                .prepare_cached(
                    "UPDATE round SET finished = 1, cpu = ?2, steal = ?3, pressure = ?4, others = ?5, throttled = ?6,
                       others_ns = ?8, kind = CASE WHEN (SELECT count(*) FROM run WHERE run.round = ?1)
                         + (SELECT count(*) FROM group_run WHERE group_run.round = ?1) < planned
                              THEN 'interrupted' ELSE ?7 END
                     WHERE number = ?1",
                )?
                .execute(params![
                    round.number,
                    round.cpu,
                    round.noise.steal,
                    round.noise.pressure,
                    round.noise.others,
                    bounded(round.noise.throttled),
                    round.kind.name(),
                    round.noise.others_ns
                ])?;
            if let Some(layout) = round.layout {
                round_layout::write(transaction, round.number, layout)?;
            }
            match writer.since {
                Some(since) => set_elapsed(transaction, writer.session, since.elapsed()),
                None => Ok(()),
            }
        })?;
        if let Some(writer) = &mut self.writer {
            writer.round = None;
        }
        Ok(())
    }

    /// Makes a checkpoint if the log is long.
    fn checkpoint(&mut self) -> Result<(), ArchiveError> {
        if self.writer()?.in_log >= CHECKPOINT_BYTES {
            self.commit()?;
            // Waits for no reader. If it fails, for want of room above all, the log is as good, and grows on.
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            if let Some(writer) = &mut self.writer {
                writer.in_log = 0;
            }
        }
        Ok(())
    }

    /// Sets the status of a variant; the last one counts.
    pub fn set_status(&mut self, variant: &str, status: &VariantStatus) -> Result<(), ArchiveError> {
        let id = self.id_of(variant)?;
        self.write(|transaction, _| {
            let add = "INSERT OR REPLACE INTO variant_status (variant, status, reason) VALUES (?1, ?2, ?3)";
            transaction
                .execute(add, params![id, status.name(), status.reason().unwrap_or_default()])
                .map(drop)
        })
    }

    /// Stores how a variant was built, replacing earlier values.
    pub fn set_build(&mut self, build: &BuildNote) -> Result<(), ArchiveError> {
        let id = self.id_of(&build.variant)?;
        self.write(|transaction, _| {
            let add = "INSERT OR REPLACE INTO build
                         (variant, compiler, cflags, binary_bytes, digest, log, seconds, cached)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
            let bytes = build.binary_bytes.map(bounded);
            let row = params![
                id,
                build.compiler,
                build.cflags,
                bytes,
                build.digest,
                build.log,
                build.seconds,
                build.cached
            ];
            transaction.execute(add, row).map(drop)
        })
    }

    /// Stores how a variant's output differs from the baseline's, replacing an earlier value.
    pub fn set_difference(&mut self, variant: &str, diff: &str) -> Result<(), ArchiveError> {
        let id = self.id_of(variant)?;
        self.write(|transaction, _| {
            let add = "INSERT OR REPLACE INTO output_difference (variant, diff) VALUES (?1, ?2)";
            transaction.execute(add, params![id, diff]).map(drop)
        })
    }

    /// Stores a warning; equal warnings are stored once.
    pub fn warn(&mut self, text: &str) -> Result<(), ArchiveError> {
        self.write(|transaction, _| note(transaction, text))
    }

    /// Replaces the spec by one that differs only in its stopping rule and its rounds of the memory series, which may change
    /// when a campaign is resumed. If it cannot be written, the campaign keeps the earlier one. If only the file cannot get its name, [`Archive::resume`] writes
    /// it again.
    pub fn set_spec(&mut self, spec: &str) -> Result<(), ArchiveError> {
        let file = NewSpec::write(&self.folder, spec)?;
        self.write(|transaction, _| {
            transaction.execute("UPDATE campaign SET spec = ?1", params![spec]).map(drop)
        })?;
        self.metadata.spec = spec.to_owned();
        file.replace()
    }

    /// Stores why this session ended and how long it took. A campaign's time is the sum over its sessions; a killed one
    /// counts up to its last finished round. From here on each call commits.
    pub fn set_stopped(&mut self, why: &str, elapsed: Duration) -> Result<(), ArchiveError> {
        self.end_batch()?;
        self.begin_session()?;
        self.write(|transaction, writer| {
            transaction
                .execute("UPDATE session SET stopped = ?2 WHERE id = ?1", params![writer.session, why])?;
            set_elapsed(transaction, writer.session, elapsed)
        })
    }
}

/// The number and the reason of an ending for its row.
fn details(ending: &Ending) -> (Option<i64>, Option<&str>) {
    match ending {
        Ending::Done => (None, None),
        Ending::Exit { status } => (Some(i64::from(*status)), None),
        Ending::Signal { signal } => (Some(i64::from(*signal)), None),
        Ending::Timeout { limit_ns } => (Some(bounded(*limit_ns)), None),
        Ending::OutputLimit { limit_bytes } => (Some(bounded(*limit_bytes)), None),
        Ending::SpawnFailed { reason } | Ending::HookFailed { reason } => (None, Some(reason.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metadata, VariantRow};
    use widthwise_experiment::outcome::{Noise, Reading, Source};

    /// SQLite's own "database or disk is full"; the tests of the whole crate meet the kernel's.
    #[test]
    fn a_run_that_finds_no_room_is_not_half_kept() {
        let parent = tempfile::tempdir().unwrap();
        let metadata = Metadata {
            created: "2026-11-21T00:00:00Z".into(),
            widthwise: "0".into(),
            command: Vec::new(),
            program: "tree".into(),
            program_version: String::new(),
            spec: String::new(),
            seed: 0,
            machine: serde_json::Value::Null,
            fingerprint: Default::default(),
            scaling: None,
            variants: vec![VariantRow::new("x32", widthwise_experiment::Role::Baseline)],
        };
        let mut archive = Archive::create(parent.path(), &metadata).unwrap();
        let pages: i64 = archive.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        archive.connection.pragma_update(None, "max_page_count", pages + 4).unwrap();
        let mut kept = 0;
        let error = loop {
            let mut add = || {
                archive.begin_round(kept, RoundKind::Timed, 1, None)?;
                let sample = [("cpu", Reading::whole(1e6, Source::Clock))].into();
                let run = Run {
                    variant: "x32".into(),
                    round: kept,
                    position: 0,
                    began_ns: 0,
                    ending: Ending::Done,
                    sample,
                    output_digest: Some("0".repeat(1000)),
                };
                archive.add_run(&run, &[])?;
                kept += 1;
                let round = Round {
                    number: run.round,
                    kind: RoundKind::Timed,
                    cpu: None,
                    noise: Noise::default(),
                    layout: None,
                };
                archive.end_round(&round)
            };
            if let Err(error) = add() {
                break error;
            }
        };
        assert!(matches!(&error, ArchiveError::Full { path } if path == archive.folder()), "{error}");
        let samples = archive.load().unwrap();
        assert!(kept > 0 && samples.runs.len() == kept as usize);
        assert!(samples.runs.iter().all(|run| run.sample.len() == 1));
    }
}
