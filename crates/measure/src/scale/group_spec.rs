//! What a run is made of, and the program of each job.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use widthwise_experiment::bytes;
use widthwise_experiment::model::OutputCheck;
use widthwise_experiment::placeholder;
use widthwise_experiment::scale::{Cell, Mode, Purpose, Work};

use crate::run::launch_spec::LaunchSpec;
use crate::scale::event_log::EventLog;
use crate::scale::event_shares::share;

/// What a run is made of.
#[derive(Debug)]
pub struct GroupSpec<'a> {
    /// Which cell.
    pub cell: &'a Cell,
    /// What for.
    pub purpose: Purpose,
    /// The program; the words of [`widthwise_experiment::scale::WORDS`] are still to be filled in.
    pub start: &'a LaunchSpec,
    /// The CPU of each member; empty leaves them to the system.
    pub cpus: &'a [u32],
    /// CPUs that may be used at all: load runs on the others, and so do we.
    pub allowed: &'a [u32],
    /// Events, all members together, where they are known.
    pub events: Option<u64>,
    /// Work, which says how jobs share the events.
    pub work: Work,
    /// The bytes of one more variable.
    pub padding: usize,
    /// A program that runs on each of the other CPUs meanwhile.
    pub load: Option<&'a LaunchSpec>,
    /// What its answer is.
    pub check: &'a OutputCheck,
    /// How the program reports its events.
    pub event_log: Option<&'a EventLog>,
}

/// The program of a job, or of all, with its words filled in.
pub(crate) fn filled(spec: &GroupSpec, index: usize) -> LaunchSpec {
    let cell = spec.cell;
    let is_job = cell.mode == Mode::Jobs;
    let jobs = cell.processes as u64;
    let (events, first) = match spec.events {
        Some(events) if is_job => share(events, jobs, index as u64),
        Some(events) => (events, 0),
        None => (1, 0),
    };
    let words = BTreeMap::from([
        ("processes", if is_job { 1 } else { cell.processes }.to_string()),
        ("index", index.to_string()),
        ("events", events.to_string()),
        ("first", first.to_string()),
    ]);
    let mut start = spec.start.clone();
    let fill = |text: &mut String| *text = placeholder::fill(text, &words);
    let word = |word: &mut OsString| *word = bytes::os(&placeholder::fill(&bytes::text(&*word), &words));
    start.arguments.iter_mut().for_each(word);
    start.environment.values_mut().filter(|value| value.as_bytes().contains(&b'{')).for_each(word);
    start.setup.iter_mut().chain(&mut start.teardown).for_each(fill);
    start
}
