//! The result of a run, and why no run can be made.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use thiserror::Error;
use widthwise_experiment::memory::Series;
use widthwise_experiment::outcome::{Ending, Reading};
use widthwise_x32run::Account;

use crate::run::launcher::LauncherError;
use widthwise_proc::taskstats::Process;

/// The result of a run.
#[derive(Debug)]
pub struct RunResult {
    /// When it began.
    pub began: SystemTime,
    /// The same on CLOCK_MONOTONIC; zero if it never began.
    pub began_at: Duration,
    /// How it ended.
    pub ending: Ending,
    /// Every metric that was read.
    pub sample: BTreeMap<&'static str, Reading>,
    /// All processes of the tree, where taskstats reported them.
    pub processes: Option<Vec<Process>>,
    /// The peak of the largest reaped process, over all its images (`ru_maxrss`), in bytes; 0 where that may
    /// be the launcher's own.
    pub largest: u64,
    /// Without taskstats: the program was one process, without children and orphans, as far as they were
    /// reaped.
    pub childless: bool,
    /// Processes that the program left running still worked when they were killed; what that makes of the figures.
    pub left_over: Option<String>,
    /// What a report should say about this run.
    pub remarks: Vec<String>,
    /// How long the program took.
    pub wall: Duration,
    /// CPU time of the whole tree.
    pub busy: Duration,
    /// Its memory over time, where that was read.
    pub series: Option<Series>,
    /// The x32 runtime's account of its own cost, where it started the program.
    pub account: Option<Account>,
}

impl RunResult {
    /// The result of a run that never began.
    pub(crate) fn failed(ending: Ending) -> RunResult {
        RunResult {
            began: SystemTime::now(),
            began_at: Duration::ZERO,
            ending,
            sample: BTreeMap::new(),
            processes: None,
            largest: 0,
            childless: false,
            left_over: None,
            remarks: Vec::new(),
            wall: Duration::ZERO,
            busy: Duration::ZERO,
            series: None,
            account: None,
        }
    }
}

/// A run could not be made, and no further run would succeed.
#[derive(Debug, Error)]
pub enum RunError {
    /// The launcher failed.
    #[error(transparent)]
    Launcher(#[from] LauncherError),
    /// A file or folder of ours failed.
    #[error("{}: {error}", path.display())]
    Scratch {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A tool of ours could not be made.
    #[error("{0}")]
    Tool(String),
    /// Processes of the program could not be killed.
    #[error("processes that the program left behind could not be killed; see `ps -e`")]
    Escaped,
}
