//! The topology from `/sys/devices/system/cpu` (`Documentation/ABI/stable/sysfs-devices-system-cpu`).

use std::collections::BTreeSet;
use std::path::Path;

use crate::cpulist::{read_list, Cpu};
use crate::sysfs::{number, size, text};
use crate::topology::model::{Cache, Core, CoreKind, Node, Source, Topology};

/// Reads the tree under `root`. Without `/sys`, as in some sandboxes, each CPU counts as a core.
pub(super) fn read(root: &Path) -> Topology {
    let cpus_folder = root.join("sys/devices/system/cpu");
    let list = |name: &str| text(cpus_folder.join(name)).and_then(|text| read_list(&text));
    let online = list("online").or_else(|| online_cpus(root)).unwrap_or_default();
    let mut packages: Vec<u32> = Vec::new();
    let mut cores: Vec<Core> = Vec::new();
    let mut caches: Vec<Cache> = Vec::new();
    let slow = slow_cpus(root, &online);

    for &cpu in &online {
        let folder = cpus_folder.join(format!("cpu{cpu}"));
        // core_cpus_list since Linux 5.3, thread_siblings_list before.
        let siblings = ["core_cpus_list", "thread_siblings_list"]
            .iter()
            .find_map(|name| read_list(&text(folder.join("topology").join(name))?))
            .filter(|siblings| siblings.contains(&cpu))
            .unwrap_or_else(|| BTreeSet::from([cpu]));
        let package: u32 = number(folder.join("topology/physical_package_id")).unwrap_or(0);
        let package = packages.iter().position(|seen| *seen == package).unwrap_or_else(|| {
            packages.push(package);
            packages.len() - 1
        });
        if !cores.iter().any(|core| core.cpus.contains(&cpu)) {
            let kind = if slow.contains(&cpu) { CoreKind::Efficiency } else { CoreKind::Performance };
            cores.push(Core { package, cpus: siblings.intersection(&online).copied().collect(), kind });
        }
        for cache in caches_of(&folder, &online) {
            if !caches.contains(&cache) {
                caches.push(cache);
            }
        }
    }
    // In a virtual machine `offline` also lists every CPU that might be plugged in some day.
    let present = list("present").unwrap_or_default();
    let allowed = allowed_cpus(root).unwrap_or_else(|| online.clone());
    Topology {
        source: Source::Sysfs,
        packages: packages.len(),
        cores,
        caches,
        nodes: nodes(root),
        offline: present.difference(&online).copied().collect(),
        allowed: allowed.intersection(&online).copied().collect(),
    }
}

/// Whether a CPU of that capacity is of a slower kind. Kernels since 6.12 also give the favoured cores of one kind a
/// slightly larger capacity (arch/x86/kernel/itmt.c and intel_pstate), which does not make the others slow.
pub(super) fn is_slower(capacity: u64, fastest: u64) -> bool {
    capacity.saturating_mul(5) < fastest.saturating_mul(4)
}

/// CPUs of the slower kind: Intel's second kind has a counter unit of its own; elsewhere the capacity decides.
fn slow_cpus(root: &Path, online: &BTreeSet<Cpu>) -> BTreeSet<Cpu> {
    if let Some(atoms) = text(root.join("sys/devices/cpu_atom/cpus")).and_then(|text| read_list(&text)) {
        return atoms;
    }
    let capacity =
        |cpu: &Cpu| number::<u64>(root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity")));
    let fastest = online.iter().filter_map(capacity).max().unwrap_or(0);
    online.iter().copied().filter(|cpu| capacity(cpu).is_some_and(|c| is_slower(c, fastest))).collect()
}

fn caches_of(folder: &Path, online: &BTreeSet<Cpu>) -> Vec<Cache> {
    // index0, index1, … without a gap (drivers/base/cacheinfo.c).
    (0..16)
        .map(|index| folder.join(format!("cache/index{index}")))
        .take_while(|index| index.is_dir())
        .filter(|index| text(index.join("type")).as_deref() != Some("Instruction"))
        .filter_map(|index| {
            let shared = read_list(&text(index.join("shared_cpu_list"))?)?;
            Some(Cache {
                level: number(index.join("level"))?,
                size: size(&text(index.join("size"))?)?,
                cpus: shared.intersection(online).copied().collect(),
            })
        })
        .collect()
}

fn nodes(root: &Path) -> Vec<Node> {
    let Ok(entries) = std::fs::read_dir(root.join("sys/devices/system/node")) else { return Vec::new() };
    let mut nodes: Vec<Node> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            Some(Node { number, cpus: read_list(&text(entry.path().join("cpulist"))?)? })
        })
        .collect();
    nodes.sort_by_key(|node| node.number);
    nodes
}

/// The CPUs of which `/proc/stat` has a line: those that are online (fs/proc/stat.c).
fn online_cpus(root: &Path) -> Option<BTreeSet<Cpu>> {
    let stat = text(root.join("proc/stat"))?;
    let number = |line: &str| line.split_whitespace().next()?.strip_prefix("cpu")?.parse().ok();
    Some(stat.lines().filter_map(number).collect())
}

/// This process's affinity, which its cpuset limits.
fn allowed_cpus(root: &Path) -> Option<BTreeSet<Cpu>> {
    let status = text(root.join("proc/self/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    read_list(line)
}
