//! What a comparison is made of: the participants of every round, and how their runs are made.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use widthwise_experiment::model::OutputCheck;
use widthwise_experiment::Role;

use crate::run::{LaunchSpec, Limits};

/// A variant that is measured in every round.
#[derive(Debug, Clone)]
pub struct Participant {
    /// The variant's name; the A/A control has one of its own.
    pub name: String,
    /// A safe name for its files.
    pub slug: String,
    /// What it is for.
    pub role: Role,
    /// How it is started.
    pub start: LaunchSpec,
}

/// What a comparison is made of, when everything is ready to start.
#[derive(Debug)]
pub struct Plan {
    /// All of them; the first is the baseline.
    pub participants: Vec<Participant>,
    /// Seed of the orders and paddings.
    pub seed: u64,
    /// The number of the first round: not 0 in a campaign that is resumed.
    pub first_round: u32,
    /// How many rounds come before the timed ones.
    pub warmup: u32,
    /// CPUs a run may use; empty for all.
    pub cpus: Vec<u32>,
    /// The runs of a round share one CPU in time slices.
    pub concurrent: bool,
    /// What ends a run.
    pub limits: Limits,
    /// How outputs are compared.
    pub check: OutputCheck,
    /// The campaign's folder, where first outputs are kept.
    pub folder: PathBuf,
    /// The campaign's first moment, for `Run::began_ns`.
    pub epoch: SystemTime,
}

pub(crate) fn since(epoch: SystemTime, moment: SystemTime) -> u64 {
    moment.duration_since(epoch).map_or(0, |age| age.as_nanos() as u64)
}

/// A campaign's first moment.
pub fn epoch(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}
