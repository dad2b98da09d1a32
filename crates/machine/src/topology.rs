//! Packages, cores, SMT siblings, caches, memory nodes, kinds of core; and which core to measure on.

use std::path::Path;
use std::sync::OnceLock;

mod core_choice;
mod hwloc;
mod model;
mod sysfs;

pub use core_choice::choose_core;
pub use model::{Cache, Core, CoreKind, Node, Source, Topology};

impl Topology {
    /// The topology of this machine: from hwloc where it is installed, from `/sys` otherwise.
    pub fn here() -> Topology {
        let root = Path::new("/");
        let fallback = Topology::from_sysfs(root);
        // What is built into the machine stays the same; which CPUs are allowed may change.
        static BY_HWLOC: OnceLock<Option<Topology>> = OnceLock::new();
        match BY_HWLOC.get_or_init(hwloc::ask) {
            Some(found) if !found.cores.is_empty() => {
                Topology { allowed: fallback.allowed, offline: fallback.offline, ..found.clone() }
            }
            _ => fallback,
        }
    }

    /// The topology that the tree under `root` describes (`root/sys`, `root/proc/self/status`).
    pub fn from_sysfs(root: &Path) -> Topology {
        sysfs::read(root)
    }

    /// The topology in hwloc's XML (`lstopo --disallowed --of xml`), with every CPU allowed that the XML allows.
    pub fn from_hwloc_xml(xml: &str) -> Result<Topology, String> {
        hwloc::parse(xml)
    }
}

#[cfg(test)]
pub(crate) mod tests;
