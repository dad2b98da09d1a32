//! Placement of N processes: an order of the CPUs for each policy, in which processes get them.
//!
//! innocente-2012 puts two processes on two cores, then on the two halves of one core (SandyBridge) or module
//! (Bulldozer), and the two figures differ by what the halves share. So the orders differ in what is shared first.
//! Everything here is a pure function of a [`Topology`]; nothing is pinned.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::cpulist::{self, Cpu};
use crate::topology::{Cache, CoreKind, Topology};

/// Which CPUs processes are given, and in which order.
///
/// Each policy continues until every CPU has a process: they differ in the order. Within a policy the lowest CPU number
/// comes first, package by package, except for `spread`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Policy {
    /// `cores`: a core of its own for each process, and of cores that share a module one at first; SMT siblings only
    /// when every core has a process.
    #[default]
    Cores,
    /// `siblings`: the SMT siblings of one core, then those of the next. Without SMT the same as `cores`.
    Siblings,
    /// `module`: the cores of one module, its SMT siblings after them, then the next module. A module is a group of
    /// cores that share a cache below the last level: a Bulldozer module, a cluster of efficiency cores. A core that
    /// shares none is a module by itself.
    Module,
    /// `l3`: every core under one last-level cache (a CCX), their SMT siblings after them, then the next one.
    L3,
    /// `node`: every core of one NUMA node, their SMT siblings after them, then the next node.
    Node,
    /// `spread`: as far apart as possible: in turn on each package, and there in turn on each node, last-level cache,
    /// module and core; SMT siblings only when every core has a process.
    Spread,
    /// `0,2-3`: these CPUs, in this order.
    List(Vec<Cpu>),
}

/// The policies that have a name, as users write them.
pub static POLICIES: &[(&str, Policy)] = &[
    ("cores", Policy::Cores),
    ("siblings", Policy::Siblings),
    ("module", Policy::Module),
    ("l3", Policy::L3),
    ("node", Policy::Node),
    ("spread", Policy::Spread),
];

/// Which kinds of core are used, on a machine that mixes kinds. On any other machine every core is a performance core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kinds {
    /// The fastest kind only: two kinds are two machines.
    #[default]
    Performance,
    /// The slower kind only.
    Efficiency,
    /// Both: performance cores first, then efficiency cores, then the SMT siblings of the former.
    All,
}

/// Where each process goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The CPU of each process, in the order they are started.
    pub cpus: Vec<Cpu>,
    /// Remarks for the user, one line each.
    pub remarks: Vec<String>,
}

/// Why processes cannot be placed as requested, each with the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// Neither a policy nor a list.
    #[error("unknown placement {0:?}: it is one of cores, siblings, module, l3, node, spread, or a list of CPUs such as 0,2-3")]
    UnknownPolicy(String),
    /// No kind of core.
    #[error("unknown kind of core {0:?}: it is one of performance, efficiency, all")]
    UnknownKinds(String),
    /// A list without a CPU.
    #[error("the list of CPUs is empty: name at least one, such as 0 or 0,2-3")]
    EmptyList,
    /// One CPU twice in a list.
    #[error("CPU {0} is listed twice: list it once; with more processes than CPUs the list repeats")]
    ListedTwice(Cpu),
    /// The machine has no such CPU.
    #[error("this machine has no CPU {cpu}: its CPUs are {online}")]
    NoSuchCpu {
        /// The one that was asked for.
        cpu: Cpu,
        /// Those that are online, as a list.
        online: String,
    },
    /// The CPU is switched off.
    #[error("CPU {0} is offline: leave it out, or switch it on (as root: echo 1 > /sys/devices/system/cpu/cpu{0}/online)")]
    Offline(Cpu),
    /// A cpuset or an affinity withholds the CPU.
    #[error("CPU {cpu} may not be used here: choose among {allowed}, or widen the cpuset or affinity this was started in")]
    Forbidden {
        /// The one that was asked for.
        cpu: Cpu,
        /// Those that may be used, as a list.
        allowed: String,
    },
    /// No CPU at all.
    #[error("no CPU may be used here: widen the cpuset or affinity this was started in")]
    NoCpu,
    /// There are no slower cores.
    #[error("this machine has no efficiency cores: ask for performance cores, or for all")]
    NoEfficiencyCores,
    /// There are, and none may be used.
    #[error("none of the efficiency cores may be used here: ask for performance cores, or widen the cpuset or affinity this was started in")]
    EfficiencyForbidden,
    /// Only slower cores may be used.
    #[error("none of the performance cores may be used here: ask for efficiency cores, or widen the cpuset or affinity this was started in")]
    PerformanceForbidden,
    /// Nothing to place.
    #[error("no process to place: ask for at least 1")]
    NoProcesses,
}

impl Placement {
    /// The largest number of processes that share one CPU: 1 unless there are more processes than CPUs.
    pub fn most_on_one_cpu(&self) -> usize {
        let mut counts: BTreeMap<Cpu, usize> = BTreeMap::new();
        self.cpus.iter().for_each(|cpu| *counts.entry(*cpu).or_default() += 1);
        counts.into_values().max().unwrap_or(0)
    }

    /// The CPUs that have a process.
    pub fn used(&self) -> BTreeSet<Cpu> {
        self.cpus.iter().copied().collect()
    }
}

/// Assigns processes in the policy's order of the CPUs; if there are more processes than CPUs, the order repeats. The
/// places of N processes are the first N of those of N + 1.
///
/// `kinds` does not limit [`Policy::List`]: a list names its CPUs explicitly.
pub fn place(
    topology: &Topology,
    policy: &Policy,
    kinds: Kinds,
    processes: usize,
) -> Result<Placement, PlacementError> {
    if processes == 0 {
        return Err(PlacementError::NoProcesses);
    }
    let (order, mut remarks) = match policy {
        Policy::List(list) => (listed(topology, list)?, mixed(topology, list)),
        policy => {
            let seats = seats(topology, kinds)?;
            let remarks = remarks(topology, policy, kinds, &seats);
            (ordered(seats, policy), remarks)
        }
    };
    if processes > order.len() {
        let most = processes.div_ceil(order.len());
        let cpus = if order.len() == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", order.len()) };
        remarks.push(format!("{processes} processes on {cpus}: up to {most} take turns on one"));
    }
    Ok(Placement { cpus: order.iter().copied().cycle().take(processes).collect(), remarks })
}

/// Numbers of processes worth measuring: 1, 2, 4, … as far as there are CPUs, the number of cores and the number of
/// CPUs, ascending. Empty where no core of that kind may be used.
pub fn steps(topology: &Topology, kinds: Kinds) -> Vec<usize> {
    let Ok(seats) = seats(topology, kinds) else { return Vec::new() };
    let cores = seats.iter().filter(|seat| seat.thread == 0).count();
    let powers = std::iter::successors(Some(1_usize), |n| n.checked_mul(2));
    let mut steps: BTreeSet<usize> = powers.take_while(|n| *n <= seats.len()).collect();
    steps.extend([cores, seats.len()]);
    steps.into_iter().collect()
}

/// A CPU that may be used, and what it is part of. Groups are numbered by their lowest CPU that is online, so that
/// hwloc and `/sys`, which list them in different orders, give the same placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seat {
    cpu: Cpu,
    kind: CoreKind,
    package: Cpu,
    node: Cpu,
    /// Last-level cache.
    cache: Cpu,
    module: Cpu,
    core: Cpu,
    /// Which of the core's usable CPUs it is, from 0.
    thread: usize,
    /// Which of the module's usable cores its core is, from 0.
    in_module: usize,
}

/// Every CPU of those kinds that may be used.
fn seats(topology: &Topology, kinds: Kinds) -> Result<Vec<Seat>, PlacementError> {
    let all = every_seat(topology);
    if all.is_empty() {
        return Err(PlacementError::NoCpu);
    }
    let of = |kind: CoreKind| -> Vec<Seat> { all.iter().copied().filter(|seat| seat.kind == kind).collect() };
    let chosen = match kinds {
        Kinds::All => return Ok(all),
        Kinds::Performance => of(CoreKind::Performance),
        Kinds::Efficiency => of(CoreKind::Efficiency),
    };
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    Err(match kinds {
        Kinds::Efficiency if topology.cores.iter().all(|core| core.kind == CoreKind::Performance) => {
            PlacementError::NoEfficiencyCores
        }
        Kinds::Efficiency => PlacementError::EfficiencyForbidden,
        Kinds::Performance | Kinds::All => PlacementError::PerformanceForbidden,
    })
}

fn every_seat(topology: &Topology) -> Vec<Seat> {
    let mut seats = Vec::new();
    let mut cores: Vec<_> = topology.cores.iter().filter(|core| !core.cpus.is_empty()).collect();
    cores.sort_by_key(|core| core.cpus.first());
    let mut in_modules: BTreeMap<Cpu, usize> = BTreeMap::new();
    for core in cores {
        let usable: Vec<Cpu> = core.cpus.intersection(&topology.allowed).copied().collect();
        let Some(first) = core.cpus.first().copied().filter(|_| !usable.is_empty()) else { continue };
        let package = topology.cores.iter().filter(|other| other.package == core.package);
        let package = package.filter_map(|other| other.cpus.first().copied()).min().unwrap_or(first);
        let module = lowest(module(topology, first)).unwrap_or(first);
        let rank = in_modules.entry(module).or_default();
        let in_module = *rank;
        *rank += 1;
        for (thread, cpu) in usable.into_iter().enumerate() {
            // Memory of two sorts has two nodes near the same CPUs: the first of them stands for both.
            let node = topology.nodes.iter().find(|node| node.cpus.contains(&cpu));
            seats.push(Seat {
                cpu,
                kind: core.kind,
                package,
                node: node.and_then(|node| node.cpus.first().copied()).unwrap_or(0),
                cache: lowest(last_cache(topology, first)).unwrap_or(package),
                module,
                core: first,
                thread,
                in_module,
            });
        }
    }
    seats
}

/// The last cache a CPU has. Cores without the machine's last level (Meteor Lake's low-power cores have no L3) have one
/// below it.
pub fn last_cache(topology: &Topology, cpu: Cpu) -> Option<&Cache> {
    let caches = topology.caches.iter().filter(|cache| cache.cpus.contains(&cpu));
    caches.max_by_key(|cache| cache.level)
}

/// The nearest cache below the last level that a CPU's core shares with other cores: what makes a module.
pub fn module(topology: &Topology, cpu: Cpu) -> Option<&Cache> {
    let core = topology.core_of(cpu)?;
    let last = last_cache(topology, cpu)?.level;
    let shared = topology.caches.iter().filter(|cache| {
        cache.level < last
            && cache.cpus.contains(&cpu)
            && cache.cpus.iter().any(|other| !core.cpus.contains(other))
    });
    shared.min_by_key(|cache| cache.level)
}

fn lowest(cache: Option<&Cache>) -> Option<Cpu> {
    cache.and_then(|cache| cache.cpus.first().copied())
}

fn ordered(mut seats: Vec<Seat>, policy: &Policy) -> Vec<Cpu> {
    match policy {
        Policy::Cores => {
            seats.sort_by_key(|s| (s.thread, s.kind, s.in_module, s.package, s.node, s.cache, s.core));
        }
        Policy::Siblings => {
            seats.sort_by_key(|s| (s.kind, s.in_module, s.package, s.node, s.cache, s.core, s.thread));
        }
        Policy::Module => {
            seats.sort_by_key(|s| (s.kind, s.package, s.node, s.cache, s.module, s.thread, s.core));
        }
        Policy::L3 => {
            seats.sort_by_key(|s| (s.package, s.cache, s.thread, s.kind, s.in_module, s.node, s.core));
        }
        Policy::Node => {
            seats.sort_by_key(|s| (s.node, s.thread, s.kind, s.in_module, s.package, s.cache, s.core));
        }
        Policy::Spread => return spread(seats),
        // A list is its own order.
        Policy::List(list) => return list.clone(),
    }
    seats.into_iter().map(|seat| seat.cpu).collect()
}

/// First threads before second ones, fast cores before slow ones; among those, every level in turn.
fn spread(mut seats: Vec<Seat>) -> Vec<Cpu> {
    const LEVELS: [fn(&Seat) -> Cpu; 5] =
        [|seat| seat.package, |seat| seat.node, |seat| seat.cache, |seat| seat.module, |seat| seat.core];
    seats.sort_by_key(|seat| (seat.thread, seat.kind, seat.cpu));
    seats
        .chunk_by(|a, b| (a.thread, a.kind) == (b.thread, b.kind))
        .flat_map(|alike| in_turn(alike.to_vec(), &LEVELS))
        .map(|seat| seat.cpu)
        .collect()
}

/// One of each group of the first level in turn, and so on inside of each.
fn in_turn(seats: Vec<Seat>, levels: &[fn(&Seat) -> Cpu]) -> Vec<Seat> {
    let Some((level, inner)) = levels.split_first() else { return seats };
    let mut groups: BTreeMap<Cpu, Vec<Seat>> = BTreeMap::new();
    seats.into_iter().for_each(|seat| groups.entry(level(&seat)).or_default().push(seat));
    let groups: Vec<Vec<Seat>> = groups.into_values().map(|group| in_turn(group, inner)).collect();
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|turn| groups.iter().filter_map(move |group| group.get(turn)).copied()).collect()
}

/// Remarks on a policy for groups that this machine does not have.
fn remarks(topology: &Topology, policy: &Policy, kinds: Kinds, seats: &[Seat]) -> Vec<String> {
    let groups = |level: fn(&Seat) -> Cpu| seats.iter().map(level).collect::<BTreeSet<Cpu>>().len();
    let siblings = seats.iter().any(|seat| seat.thread > 0);
    let mut remarks = Vec::new();
    let remark = match policy {
        Policy::Siblings if !siblings => Some("no SMT siblings here: the same as cores"),
        Policy::Module if seats.iter().all(|seat| seat.in_module == 0) => {
            Some("no modules here (no cores share a cache below the last level): each core is one")
        }
        Policy::L3 if groups(|seat| seat.cache) == 1 => {
            Some("only one last-level cache here: the same as cores")
        }
        Policy::Node if groups(|seat| seat.node) == 1 => Some("only one NUMA node here: the same as cores"),
        _ => None,
    };
    remarks.extend(remark.map(str::to_owned));
    if topology.is_hybrid() && kinds != Kinds::All {
        let (left_out, name) = match kinds {
            Kinds::Efficiency => (CoreKind::Performance, "performance"),
            Kinds::Performance | Kinds::All => (CoreKind::Efficiency, "efficiency"),
        };
        let cpus = topology.cores.iter().filter(|core| core.kind == left_out).flat_map(|core| &core.cpus);
        let cpus: BTreeSet<Cpu> = cpus.copied().collect();
        remarks.push(format!("the {name} cores (CPUs {}) are left out", cpulist::list(&cpus)));
    }
    remarks
}

/// A list whose CPUs can all be used.
fn listed(topology: &Topology, list: &[Cpu]) -> Result<Vec<Cpu>, PlacementError> {
    if list.is_empty() {
        return Err(PlacementError::EmptyList);
    }
    let online = topology.online();
    let mut seen = BTreeSet::new();
    for &cpu in list {
        if topology.offline.contains(&cpu) {
            return Err(PlacementError::Offline(cpu));
        }
        if !online.contains(&cpu) {
            return Err(PlacementError::NoSuchCpu { cpu, online: cpulist::list(&online) });
        }
        if !topology.allowed.contains(&cpu) {
            return Err(PlacementError::Forbidden { cpu, allowed: cpulist::list(&topology.allowed) });
        }
        if !seen.insert(cpu) {
            return Err(PlacementError::ListedTwice(cpu));
        }
    }
    Ok(list.to_vec())
}

fn mixed(topology: &Topology, list: &[Cpu]) -> Vec<String> {
    let kinds: BTreeSet<CoreKind> =
        list.iter().filter_map(|cpu| topology.core_of(*cpu)).map(|core| core.kind).collect();
    let remark = "the list mixes performance and efficiency cores: processes will not be alike";
    if kinds.len() > 1 {
        vec![remark.to_owned()]
    } else {
        Vec::new()
    }
}

impl FromStr for Policy {
    type Err = PlacementError;

    fn from_str(text: &str) -> Result<Policy, PlacementError> {
        let text = text.trim();
        if let Some((_, policy)) = POLICIES.iter().find(|(name, _)| *name == text) {
            return Ok(policy.clone());
        }
        let (mut list, mut seen) = (Vec::new(), BTreeSet::new());
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let cpus = cpulist::read_list(part)
                .ok_or_else(|| PlacementError::UnknownPolicy(text.chars().take(80).collect()))?;
            for cpu in cpus {
                if !seen.insert(cpu) {
                    return Err(PlacementError::ListedTwice(cpu));
                }
                list.push(cpu);
            }
        }
        if list.is_empty() {
            return Err(PlacementError::EmptyList);
        }
        Ok(Policy::List(list))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Policy::List(list) = self {
            // Runs of neighbours are written as ranges, and the order stays.
            let runs = list.chunk_by(|a, b| a.checked_add(1) == Some(*b));
            let words: Vec<String> =
                runs.map(|run| cpulist::list(&run.iter().copied().collect::<BTreeSet<Cpu>>())).collect();
            return f.write_str(&words.join(","));
        }
        let name = POLICIES.iter().find(|(_, policy)| policy == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl TryFrom<String> for Policy {
    type Error = PlacementError;

    fn try_from(text: String) -> Result<Policy, PlacementError> {
        text.parse()
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> String {
        policy.to_string()
    }
}

impl FromStr for Kinds {
    type Err = PlacementError;

    fn from_str(text: &str) -> Result<Kinds, PlacementError> {
        match text.trim() {
            "performance" => Ok(Kinds::Performance),
            "efficiency" => Ok(Kinds::Efficiency),
            "all" => Ok(Kinds::All),
            other => Err(PlacementError::UnknownKinds(other.chars().take(80).collect())),
        }
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kinds::Performance => "performance",
            Kinds::Efficiency => "efficiency",
            Kinds::All => "all",
        })
    }
}

#[cfg(test)]
mod tests;
