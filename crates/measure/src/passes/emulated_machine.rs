//! Runs on emulated machines: programs on another kernel (`qemu-system-x86_64`), and programs of another processor
//! (`qemu-user`). A plugin of QEMU counts what is executed; nothing is timed but under KVM ([`timed`]). Rounds of their own:
//! two, and more only where some figure changes from round to round.

mod counts;
mod guest;
mod initramfs;
pub mod operations;
pub mod options;
mod packing;
mod plugin;
mod report;
mod result;
pub mod timed;
mod user;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use widthwise_experiment::outcome::Ending;
use widthwise_experiment::schedule::Slot;
use widthwise_experiment::Role;
use widthwise_machine::compiler::Compiler;

use crate::comparison::{emulated, CampaignObserver};
use crate::executor::sequential::SequentialExecutor;
use crate::executor::RunFiles;
use crate::output::earlier::Earlier;
use crate::passes::emulated_machine::guest::{Accelerator, Guests};
use crate::passes::emulated_machine::operations::Operations;
use crate::passes::emulated_machine::options::Options;
use crate::passes::emulated_machine::plugin::Plugin;
use crate::passes::emulated_machine::user::Users;
use crate::plan::{Machine, Plan};
use crate::rounds::{End, RoundsError};
use crate::run::result::{RunError, RunResult};
use crate::run::runner::Runner;

/// So many rounds show whether the figures are the same each time.
const FEWEST: u32 = 2;

/// What is run on emulated machines.
#[derive(Debug)]
pub struct EmulatedMachine<'a> {
    /// The campaign; its participants are those that an emulated machine can run, the baseline and the control among them.
    pub plan: &'a Plan,
    /// The number of the first round.
    pub first_round: u32,
    /// So many rounds are made where figures change from round to round.
    pub most_rounds: u32,
    /// What builds the plugin.
    pub compiler: &'a Compiler,
    /// What is counted beside the plain instructions.
    pub options: Options<'a>,
}

/// Makes the rounds.
///
/// # Errors
/// Those of running the programs and of building the plugin, and those of the observer.
pub fn count<W: CampaignObserver>(
    machine: &EmulatedMachine,
    runner: &mut Runner,
    observer: &mut W,
) -> Result<End, RoundsError<W::Error>> {
    let plugin = Plugin::place(machine.compiler).map_err(|error| RunError::Tool(error.to_string()))?;
    let folder = scratch(machine.plan)?;
    let seen: RefCell<BTreeMap<usize, Vec<Vec<f64>>>> = RefCell::default();
    let accelerator = Accelerator::Tcg { plugin: &plugin, options: &machine.options };
    let mut machines = Machines {
        plan: machine.plan,
        runner,
        guests: Guests::new(accelerator, &machine.plan.folder, &folder),
        users: Users::new(&plugin, &machine.options, &folder),
        operations: &machine.options.operations,
        seen: &seen,
    };
    let run = |slot: Slot, cancelled: &dyn Fn() -> bool| machines.run(slot, cancelled);
    let mut executor = SequentialExecutor::new(run);
    let is_enough = |made| made >= FEWEST && seen.borrow().values().all(|own| all_equal(own));
    let rounds = machine.most_rounds.max(FEWEST);
    emulated(machine.plan, machine.first_round, rounds, &mut executor, observer, is_enough)
}

/// The folder for files of emulated machines.
fn scratch(plan: &Plan) -> Result<PathBuf, RunError> {
    let folder = plan.folder.join("scratch").join("machine");
    std::fs::create_dir_all(&folder).map_err(|error| RunError::Scratch { path: folder.clone(), error })?;
    Ok(folder)
}

fn all_equal(figures: &[Vec<f64>]) -> bool {
    figures.windows(2).all(|pair| pair[0] == pair[1])
}

/// Makes each run on its participant's machine.
struct Machines<'a> {
    plan: &'a Plan,
    runner: &'a mut Runner,
    guests: Guests<'a>,
    users: Users<'a>,
    operations: &'a Option<Operations>,
    /// The figures of each participant's runs so far.
    seen: &'a RefCell<BTreeMap<usize, Vec<Vec<f64>>>>,
}

impl Machines<'_> {
    fn run(
        &mut self,
        slot: Slot,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(RunResult, Option<RunFiles>), RunError> {
        let participant = &self.plan.participants[slot.participant];
        let limits = self.plan.limits;
        let is_user = !matches!(participant.machine, Machine::Guest(_));
        let asked = self.operations.as_ref().map(|asked| asked.asked(&participant.start, is_user));
        let start = asked.as_ref().unwrap_or(&participant.start);
        let (mut result, run) = match &participant.machine {
            Machine::Guest(kernel) => self.guests.run(start, kernel, self.runner, &[], limits, cancelled)?,
            machine => self.users.run(start, machine, self.runner, limits, cancelled)?,
        };
        let mut seen = self.seen.borrow_mut();
        if run.ending == Ending::Done {
            // The whole run of the micro suite depends on where the clock ticks.
            let is_judged =
                |name: &str| self.operations.as_ref().is_none_or(|operations| operations.has(name));
            let judged = run.sample.iter().filter(|(name, _)| is_judged(name));
            let figures = judged.map(|(_, reading)| reading.value).collect();
            seen.entry(slot.participant).or_default().push(figures);
        } else {
            seen.remove(&slot.participant);
        }
        // The control's are the baseline's.
        let is_repeated = participant.role == Role::Control && run.ending == Ending::Done;
        // Nothing that was seen of QEMU itself is the program's.
        result.ending = run.ending;
        result.sample = run.sample;
        result.processes = None;
        result.remarks = if is_repeated { Vec::new() } else { run.remarks };
        result.account = None;
        Ok((result, Some(RunFiles { stdout: run.stdout, stderr: run.stderr, earlier: Earlier::default() })))
    }
}
