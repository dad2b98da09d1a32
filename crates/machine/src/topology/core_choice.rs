//! Which core to measure on. Pure.

use std::collections::BTreeSet;

use crate::cpulist::Cpu;
use crate::topology::model::{Core, Topology};

/// The CPU to measure on, or `None` if every core this process may use is locked (then the caller waits).
///
/// `locked` are the CPUs on which another campaign measures: their whole cores are out of the question, since SMT
/// siblings share execution units and first-level caches. `busy` are the CPUs on which something else runs. In order
/// of weight:
/// 1. on a machine that mixes kinds of core, only the fastest kind (two kinds are two machines);
/// 2. a core on which nothing runs, rather than an idle CPU with a busy sibling, rather than a busy CPU;
/// 3. not the core of CPU 0, where most machines handle their interrupts;
/// 4. the lowest number, so that a campaign that is resumed lands where it was.
pub fn choose_core(topology: &Topology, busy: &BTreeSet<Cpu>, locked: &BTreeSet<Cpu>) -> Option<Cpu> {
    let allowed = |core: &&Core| core.cpus.iter().any(|cpu| topology.allowed.contains(cpu));
    let best_kind = topology.cores.iter().filter(allowed).map(|core| core.kind).min()?;
    topology
        .cores
        .iter()
        .filter(|core| core.kind == best_kind && core.cpus.is_disjoint(locked))
        .flat_map(|core| core.cpus.iter().map(move |cpu| (core, *cpu)))
        .filter(|(_, cpu)| topology.allowed.contains(cpu))
        .min_by_key(|(core, cpu)| {
            let noise = if busy.contains(cpu) { 2 } else { u8::from(!core.cpus.is_disjoint(busy)) };
            (noise, core.cpus.contains(&0), *cpu)
        })
        .map(|(_, cpu)| cpu)
}
