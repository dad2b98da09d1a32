//! What a machine is made of: packages, cores, SMT siblings, caches, memory nodes. Pure.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::cpulist::Cpu;

/// What the machine is made of, as far as this process can see it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Topology {
    /// The source.
    pub source: Source,
    /// Number of packages (sockets).
    pub packages: usize,
    /// Every core with a CPU that is online.
    pub cores: Vec<Core>,
    /// Every data or unified cache.
    pub caches: Vec<Cache>,
    /// Memory nodes.
    pub nodes: Vec<Node>,
    /// CPUs that are there and switched off.
    pub offline: BTreeSet<Cpu>,
    /// CPUs that this process may use (its affinity, which a cpuset limits).
    pub allowed: BTreeSet<Cpu>,
}

/// The source of the topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// hwloc, through `lstopo`.
    Hwloc,
    /// `/sys/devices/system/cpu`.
    #[default]
    Sysfs,
}

/// One core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// The package it is in, counted from 0.
    pub package: usize,
    /// Its CPUs that are online: SMT siblings of one another.
    pub cpus: BTreeSet<Cpu>,
    /// Which kind of core.
    pub kind: CoreKind,
}

/// Which kind of core, on a machine that mixes kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CoreKind {
    /// The fastest kind; the only one, on most machines.
    Performance,
    /// A slower one.
    Efficiency,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1, 2, 3, …
    pub level: u8,
    /// In bytes.
    pub size: u64,
    /// The CPUs that share it.
    pub cpus: BTreeSet<Cpu>,
}

/// One memory node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// The CPUs that are near it.
    pub cpus: BTreeSet<Cpu>,
}

impl Topology {
    /// Every CPU that is online.
    pub fn online(&self) -> BTreeSet<Cpu> {
        self.cores.iter().flat_map(|core| core.cpus.iter().copied()).collect()
    }

    /// The core a CPU belongs to.
    pub fn core_of(&self, cpu: Cpu) -> Option<&Core> {
        self.cores.iter().find(|core| core.cpus.contains(&cpu))
    }

    /// The other CPUs of a CPU's core.
    pub fn siblings(&self, cpu: Cpu) -> BTreeSet<Cpu> {
        let mut siblings = self.core_of(cpu).map(|core| core.cpus.clone()).unwrap_or_default();
        siblings.remove(&cpu);
        siblings
    }

    /// The largest number of CPUs in one core: 1 without SMT.
    pub fn threads_per_core(&self) -> usize {
        self.cores.iter().map(|core| core.cpus.len()).max().unwrap_or(0)
    }

    /// Whether it mixes kinds of core.
    pub fn is_hybrid(&self) -> bool {
        self.cores.iter().any(|core| core.kind == CoreKind::Efficiency)
            && self.cores.iter().any(|core| core.kind == CoreKind::Performance)
    }

    /// The caches of the highest level.
    pub fn last_level_caches(&self) -> Vec<&Cache> {
        let highest = self.caches.iter().map(|cache| cache.level).max();
        self.caches.iter().filter(|cache| Some(cache.level) == highest).collect()
    }
}
