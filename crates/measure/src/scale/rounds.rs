//! Rounds of a scaling campaign: each slot once, in a random order. A slot is a cell with the purpose of its run.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use widthwise_experiment::outcome::{Ending, RoundKind};
use widthwise_experiment::scale::GroupRun;

use crate::executor::sequential::SequentialExecutor;
use crate::executor::Outcome;
use crate::noise_window::Window;
use crate::rounds::{self, End, RoundObserver, RoundPlan, RoundsError};
use crate::run::limits::Limits;
use crate::run::page_cache;
use crate::scale::group_run::run_group;
use crate::scale::group_spec::GroupSpec;
use crate::scale::launcher_pool::LauncherPool;
use widthwise_experiment::schedule::{Order, Schedule, Slot as Turn};

impl Outcome for GroupRun {
    fn ending(&self) -> &Ending {
        // A run whose members failed is a failure, however its processes ended.
        const FAILED: &Ending = &Ending::Exit { status: 1 };
        if self.ending == Ending::Done && self.failure.is_some() {
            FAILED
        } else {
            &self.ending
        }
    }

    fn busy(&self) -> Duration {
        Duration::from_nanos(self.cpu_ns + self.load_cpu_ns)
    }
}

/// One run of each round.
#[derive(Debug)]
pub struct Slot<'a> {
    /// What the run is made of; the schedule sets its padding.
    pub spec: GroupSpec<'a>,
    /// Its cell failed before, or its purpose did, and is excluded.
    pub out: bool,
}

/// Rounds of one kind.
#[derive(Debug)]
pub struct ScalingRounds<'a> {
    /// Every run of a round.
    pub slots: Vec<Slot<'a>>,
    /// Seed of the random orders.
    pub seed: u64,
    /// The number of the first round.
    pub first_round: u32,
    /// How many rounds there are; without a number the observer decides.
    pub most: Option<u32>,
    /// What the rounds are for.
    pub kind: RoundKind,
    /// Where outputs go.
    pub scratch: &'a Path,
    /// Limits of a run.
    pub limits: Limits,
}

/// Makes the rounds. A cell that fails is excluded, with all its slots; of a purpose beside it only that slot.
///
/// # Errors
/// Those of running the programs, and those of the observer.
pub fn measure<O: RoundObserver<GroupRun>>(
    mut work: ScalingRounds,
    pool: &mut LauncherPool,
    observer: &mut O,
) -> Result<End, RoundsError<O::Error>> {
    let slots = &work.slots;
    page_cache::read_anew(slots.iter().map(|slot| slot.spec.start.file.as_path()));
    let leader = |slot: &Slot| {
        let is_leader = |one: &Slot| one.spec.cell == slot.spec.cell && !one.spec.purpose.is_auxiliary();
        slots.iter().position(is_leader).unwrap_or(usize::MAX)
    };
    let plan = RoundPlan {
        schedule: Schedule {
            seed: work.seed,
            participants: slots.len(),
            order: Order::Random,
            layouts: 1,
            rounds_a_layout: 1,
        },
        first_round: work.first_round,
        warmup: 0,
        kind: work.kind,
        most: work.most,
        most_failures: 1,
        needed: Vec::new(),
        leaders: slots.iter().map(leader).collect(),
        cancel_at: 2,
        out: (0..slots.len()).filter(|place| slots[*place].out).collect(),
    };
    let window = Window::open(&measured_cpus(&work.slots), pool.launchers());
    let executor = SequentialExecutor::new(|turn: Turn, cancelled: &dyn Fn() -> bool| {
        let spec = &mut work.slots[turn.participant].spec;
        spec.padding = turn.padding;
        Ok((run_group(spec, pool, work.scratch, work.limits, cancelled)?, None))
    });
    let mut executor = executor.with_noise(window);
    rounds::make(&plan, &mut executor, observer)
}

/// The CPUs on which the noise of a round is read: those of all its cells, and with load every one, since load is on the others.
/// None are all of the machine.
fn measured_cpus(slots: &[Slot]) -> Vec<u32> {
    let of = |slot: &Slot| if slot.spec.load.is_some() { slot.spec.allowed } else { slot.spec.cpus }.to_vec();
    let all: Vec<Vec<u32>> = slots.iter().map(of).collect();
    if all.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    BTreeSet::from_iter(all.into_iter().flatten()).into_iter().collect()
}
