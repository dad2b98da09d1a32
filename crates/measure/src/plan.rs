//! What a comparison is made of: the participants of every round, and how their runs are made.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use widthwise_experiment::model::OutputCheck;
use widthwise_experiment::outcome::RoundKind;
use widthwise_experiment::schedule::{Order, Schedule};
use widthwise_experiment::Role;

use crate::kernel_image::KernelImage;
use crate::run::launch_spec::LaunchSpec;
use crate::run::limits::Limits;

/// A variant that is measured in every round.
#[derive(Debug, Clone)]
pub struct Participant {
    /// The variant's name; the A/A control has one of its own.
    pub name: String,
    /// A safe name for its files.
    pub slug: String,
    /// What it is for.
    pub role: Role,
    /// How it is started: the first of its layouts.
    pub start: LaunchSpec,
    /// How its further layouts are started.
    pub further_layouts: Vec<LaunchSpec>,
    /// Where it runs.
    pub machine: Machine,
}

impl Participant {
    /// How its layout of that number, from 0, is started.
    pub fn layout(&self, number: u32) -> &LaunchSpec {
        let further = (number as usize).checked_sub(1).and_then(|place| self.further_layouts.get(place));
        further.unwrap_or(&self.start)
    }
}

/// Where a participant's runs are made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Machine {
    /// On this machine and its kernel.
    #[default]
    Native,
    /// Under an emulator of its processor, on this machine's kernel.
    User {
        /// The ABI of the program.
        abi: &'static str,
        /// `qemu-ppc64`.
        emulator: PathBuf,
        /// The root folder of its libraries; none for this machine's own.
        sysroot: Option<PathBuf>,
    },
    /// On another kernel, in an emulated machine.
    Guest(KernelImage),
}

/// What a comparison is made of, when everything is ready to start.
#[derive(Debug)]
pub struct Plan {
    /// All of them; the first is the baseline.
    pub participants: Vec<Participant>,
    /// Seed of the orders and paddings.
    pub seed: u64,
    /// Where the variants run in a round.
    pub order: Order,
    /// How many layouts each participant has; 0 if only one.
    pub layouts: u32,
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

impl Plan {
    /// The order of the runs. In timed rounds a layout is kept for two rounds: in the balanced order a drift cancels within it.
    pub fn schedule(&self, kind: RoundKind) -> Schedule {
        Schedule {
            seed: self.seed,
            participants: self.participants.len(),
            order: self.order,
            layouts: self.layouts,
            rounds_a_layout: if kind == RoundKind::Timed { 2 } else { 1 },
        }
    }
}

pub(crate) fn since(epoch: SystemTime, moment: SystemTime) -> u64 {
    moment.duration_since(epoch).map_or(0, |age| age.as_nanos() as u64)
}

/// A campaign's first moment.
pub fn epoch(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}
