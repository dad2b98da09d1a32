//! The options of `scale` alone: from flags to numbers of processes, modes and placements, each checked.

use clap::{Args, Parser};
use widthwise_experiment::placeholder;
use widthwise_experiment::scale::{Mode, Plan};
use widthwise_machine::placement::{self, Kinds, Placement, PlacementError, Policy};
use widthwise_machine::topology::Topology;
use widthwise_measure::scale::event_log::{EventLog, Pattern};

use crate::arguments::text;
use crate::failure::Failure;

/// More processes than this are an error.
const MOST_PROCESSES: usize = 4096;
/// Memory of a core, as grids provide it.
const MEMORY_OF_A_CORE: u64 = 2 << 30;

#[derive(Debug, PartialEq, Args)]
pub struct Question {
    /// Numbers of processes: 1,2,4 (default: powers of two up to the CPUs, and the cores)
    #[arg(long, value_name = "N,…", value_delimiter = ',', help_heading = "Scale")]
    processes: Vec<usize>,
    /// fork (the program forks {processes} children), jobs (that number of copies), threads (it starts {processes} threads)
    #[arg(long, value_name = "MODE,…", value_delimiter = ',', help_heading = "Scale")]
    mode: Vec<Mode>,
    /// cores, siblings, module, l3, node, spread, or a list of CPUs such as 0,2-3; once for each list of CPUs
    #[arg(long, value_name = "PLACEMENT", help_heading = "Scale")]
    placement: Vec<String>,
    /// On a machine that mixes kinds of core: performance, efficiency or all
    #[arg(long, value_name = "KINDS", default_value = "performance", help_heading = "Scale")]
    cores: String,
    /// Events of all processes together; {events} in the run command, and {first} for a job's first
    #[arg(long, value_name = "N", help_heading = "Scale")]
    events: Option<u64>,
    /// Each process does the work of a single one (--events, if given), so that the work grows with the number of processes
    #[arg(long, help_heading = "Scale")]
    events_each: bool,
    /// Command of a job, started without a shell, if it is not the run command
    #[arg(long, value_name = "COMMAND", value_parser = text(), help_heading = "Scale")]
    jobs_run: Option<String>,
    /// Shell command that runs on each free CPU, as load
    #[arg(long, value_name = "SH", value_parser = text(), help_heading = "Scale")]
    load: Option<String>,
    /// A regular expression for lines that report events: groups elapsed and cpu (seconds), events; or `cms`
    #[arg(long, value_name = "REGEX", help_heading = "Scale")]
    event_pattern: Option<String>,
    /// Files with such lines besides standard output: a pattern of names; {index} is the job's number
    #[arg(long, value_name = "GLOB", help_heading = "Scale")]
    event_log: Option<String>,
    /// The program reports events by marks: lines `event` or `event CHILD` on the pipe in WIDTHWISE_MARKS
    #[arg(long, conflicts_with = "event_pattern", help_heading = "Scale")]
    event_marks: bool,
    /// Memory for all processes, to compute how many fit: 8G (default: 2G for each core)
    #[arg(long, value_name = "SIZE", help_heading = "Scale")]
    memory_limit: Option<String>,
}

/// The defaults of all options.
#[derive(Parser)]
struct NoOptions {
    #[command(flatten)]
    question: Question,
}

impl Question {
    /// Whether any of its options was given.
    pub fn asks_anything(&self) -> bool {
        *self != NoOptions::parse_from(["scale"]).question
    }

    /// The plan, with defaults for options that were not given. `run` is the run command.
    pub fn plan(&self, topology: &Topology, run: &str, memory: Option<u32>) -> Result<Plan, Failure> {
        let kinds = kinds(&self.cores)?;
        let placements = self.placements()?;
        // One process at least can be placed in each way.
        for name in &placements {
            place(topology, name, &self.cores, 1)?;
        }
        let counts = self.counts(topology, kinds)?;
        let modes = self.modes(run, &counts)?;
        self.check_events(run, &counts)?;
        Ok(Plan {
            counts,
            modes,
            placements,
            kinds: self.cores.clone(),
            events: self.events,
            events_each: self.events_each,
            memory_rounds: memory.unwrap_or(1),
            sequential: self.events.is_some_and(|events| events >= 4),
            load: self.load.clone(),
            jobs_run: self.jobs_run.clone(),
            event_pattern: self.event_pattern.clone(),
            event_files: self.event_log.clone(),
            event_marks: self.event_marks,
            memory_limit: self.memory_limit(topology)?,
        })
    }

    /// The numbers of processes, ascending.
    fn counts(&self, topology: &Topology, kinds: Kinds) -> Result<Vec<usize>, Failure> {
        let mut counts = if self.processes.is_empty() {
            placement::steps(topology, kinds)
        } else {
            self.processes.clone()
        };
        counts.sort_unstable();
        counts.dedup();
        match (counts.first(), counts.last()) {
            (Some(0), _) => Err(Failure::request("--processes: 0 processes do nothing; 1 is the least")),
            (_, Some(most)) if *most > MOST_PROCESSES => {
                Err(Failure::request(format!("--processes: {most} are too many; at most {MOST_PROCESSES}")))
            }
            (None, _) => Err(Failure::request("--processes: no CPU of that kind may be used here")),
            _ => Ok(counts),
        }
    }

    /// The modes, of which the run command must be told the number of processes.
    fn modes(&self, run: &str, counts: &[usize]) -> Result<Vec<Mode>, Failure> {
        let has_number = uses(run, "processes");
        let mut modes = self.mode.clone();
        modes.dedup();
        if modes.is_empty() {
            modes.push(if has_number { Mode::Fork } else { Mode::Jobs });
        }
        let lacking = modes.iter().find(|mode| **mode != Mode::Jobs && !has_number);
        match lacking.filter(|_| counts.iter().any(|count| *count > 1)) {
            Some(mode) => Err(Failure::request(format!(
                "--mode {mode}: the run command `{run}` does not say how many {} to start: put {{processes}} where it \
                 does",
                mode.noun()
            ))),
            None => Ok(modes),
        }
    }

    /// Whether the options about events fit each other, the run command and the numbers of processes.
    fn check_events(&self, run: &str, counts: &[usize]) -> Result<(), Failure> {
        if self.event_log.is_some() && self.event_pattern.is_none() {
            return Err(Failure::request(
                "--event-log: --event-pattern says what a line of an event looks like",
            ));
        }
        if self.events == Some(0) {
            return Err(Failure::request("--events: 0 events take no time; 1 is the least"));
        }
        if self.events.is_some() && !uses(run, "events") {
            return Err(Failure::request(format!(
                "--events: the run command `{run}` does not say how many: put {{events}} where it does"
            )));
        }
        if uses(run, "events") && self.events.is_none() {
            return Err(Failure::request("the run command uses {events}: --events says how many there are"));
        }
        let too_few = |most: &&usize| self.events.is_some_and(|events| events < **most as u64);
        if let Some(most) = counts.last().filter(too_few).filter(|_| !self.events_each) {
            return Err(Failure::request(format!(
                "--events: fewer than one for each of {most} processes; --events {most} is the least"
            )));
        }
        if let Some(text) = &self.event_pattern {
            Pattern::new(text).map_err(|error| Failure::request(format!("--event-pattern: {error}")))?;
        }
        Ok(())
    }

    /// Bytes that the processes may have together.
    fn memory_limit(&self, topology: &Topology) -> Result<u64, Failure> {
        let cores =
            topology.cores.iter().filter(|core| !core.cpus.is_disjoint(&topology.allowed)).count() as u64;
        match &self.memory_limit {
            Some(text) => bytes(text).map_err(|error| Failure::request(format!("--memory-limit: {error}"))),
            None => Ok(MEMORY_OF_A_CORE * cores),
        }
    }

    /// Names may stand in one list; a list of CPUs stands by itself.
    fn placements(&self) -> Result<Vec<String>, Failure> {
        let mut names: Vec<String> = Vec::new();
        for location in &self.placement {
            if location.starts_with(|c: char| c.is_ascii_digit()) {
                names.push(location.clone());
            } else {
                names.extend(location.split(',').map(str::to_owned));
            }
        }
        if names.is_empty() {
            names.push("cores".to_owned());
        }
        let mut seen = std::collections::BTreeSet::new();
        match names.iter().find(|name| !seen.insert(name.as_str())) {
            Some(twice) => Err(Failure::request(format!("--placement: \"{twice}\" twice"))),
            None => Ok(names),
        }
    }
}

/// Whether a run command has a placeholder.
fn uses(run: &str, word: &str) -> bool {
    placeholder::used(run).any(|used| used == word)
}

fn kinds(name: &str) -> Result<Kinds, Failure> {
    name.parse().map_err(|error| Failure::request(format!("--cores: {error}")))
}

/// Places processes by a policy or a list of CPUs, on cores of these kinds.
pub fn place(topology: &Topology, name: &str, cores: &str, processes: usize) -> Result<Placement, Failure> {
    let policy: Policy = name.parse().map_err(|error| Failure::request(format!("--placement: {error}")))?;
    placement::place(topology, &policy, kinds(cores)?, processes).map_err(|error| {
        let option = match error {
            PlacementError::NoEfficiencyCores
            | PlacementError::EfficiencyForbidden
            | PlacementError::PerformanceForbidden => format!("--cores {cores}"),
            _ => format!("--placement {name}"),
        };
        Failure::request(format!("{option}: {error}"))
    })
}

/// How the plan's events are reported.
pub fn event_log(plan: &Plan) -> Result<Option<EventLog>, Failure> {
    if plan.event_marks {
        return Ok(Some(EventLog::Marks));
    }
    let Some(text) = &plan.event_pattern else { return Ok(None) };
    let pattern = Pattern::new(text).map_err(Failure::request)?;
    Ok(Some(EventLog::Lines { pattern, files: plan.event_files.clone() }))
}

/// `500M`, `2G`, `1.5GiB`: powers of 1024, as memory is counted. `MB` and `GB` are powers of 1000, as reports have them.
pub fn bytes(text: &str) -> Result<u64, String> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim();
    let (prefix, base): (&str, f64) = match (unit.strip_suffix("iB"), unit.strip_suffix(['B', 'b'])) {
        (Some(prefix), _) => (prefix, 1024.0),
        (None, Some(prefix)) => (prefix, 1000.0),
        (None, None) => (unit, 1024.0),
    };
    let factor = match prefix {
        "" => 1.0,
        "k" | "K" => base,
        "M" | "m" => base.powi(2),
        "G" | "g" => base.powi(3),
        "T" | "t" => base.powi(4),
        _ => return Err(format!("\"{text}\" is no amount of memory, such as 8G or 500M")),
    };
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 && number * factor < 1e18 => Ok((number * factor) as u64),
        _ => Err(format!("\"{text}\" is no amount of memory, such as 8G or 500M")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_are_powers_of_1024_and_those_with_a_b_of_1000() {
        assert_eq!(bytes("2G"), Ok(2 << 30));
        assert_eq!(bytes("1.5GiB"), Ok(3 << 29));
        assert_eq!(bytes("500M"), Ok(500 << 20));
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("104MB"), Ok(104_000_000));
        assert_eq!(bytes("64B"), Ok(64));
        for wrong in ["", "G", "2X", "-1G", "0", "1e99G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
