//! The machine as the report draws it, with the CPUs of a placement marked.

use std::collections::{BTreeMap, BTreeSet};

use widthwise_machine::placement::{last_cache, module};
use widthwise_machine::topology::{Core, CoreKind};
use widthwise_machine::{cpulist, Placement, Topology};
use widthwise_report::topology::{Cpu, Group, Machine, Module, Package};

/// Where things stand in the picture: package, node, last-level cache and module, each by its lowest CPU.
type Place = (u32, u32, u32, u32);

/// The picture. A CPU with one process is marked `*`, one with several `*2`, `*3`, …
pub fn picture(topology: &Topology, placement: &Placement) -> Machine {
    let mut processes: BTreeMap<u32, usize> = BTreeMap::new();
    placement.cpus.iter().for_each(|cpu| *processes.entry(*cpu).or_default() += 1);
    let mut cores: Vec<(Place, &Core)> =
        topology.cores.iter().filter_map(|core| Some((place(topology, core)?, core))).collect();
    cores.sort_by_key(|(place, core)| (*place, core.cpus.first().copied()));
    let drawn = |core: &Core| -> Vec<Cpu> {
        let one = |number: &u32| Cpu {
            number: *number,
            busy: processes.get(number).map(|n| if *n == 1 { "*".to_owned() } else { format!("*{n}") }),
            allowed: topology.allowed.contains(number),
        };
        core.cpus.iter().map(one).collect()
    };
    let names = package_names(&cores);
    let mut packages: Vec<Package> = Vec::new();
    for rows in cores.chunk_by(|a, b| (a.0 .0, a.0 .1) == (b.0 .0, b.0 .1)) {
        let groups = rows.chunk_by(|a, b| a.0 .2 == b.0 .2).map(|group| Group {
            name: cache_name(group.first().and_then(|(_, core)| last_cache(topology, *core.cpus.first()?))),
            modules: group
                .chunk_by(|a, b| a.0 .3 == b.0 .3)
                .filter_map(|cores| {
                    let first = cores.first()?.1;
                    let shared = module(topology, *first.cpus.first()?);
                    Some(Module {
                        shares: shared.map(|cache| cache_name(Some(cache))),
                        kind: topology.is_hybrid().then(|| kind_name(first.kind).to_owned()),
                        cores: cores.iter().map(|(_, core)| drawn(core)).collect(),
                    })
                })
                .collect(),
        });
        let name = rows.first().and_then(|(place, _)| names.get(&(place.0, place.1)));
        packages.push(Package { name: name.cloned().unwrap_or_default(), groups: groups.collect() });
    }
    Machine { packages, offline: cpulist::list(&topology.offline) }
}

fn place(topology: &Topology, core: &Core) -> Option<Place> {
    let first = *core.cpus.first()?;
    let beside = topology.cores.iter().filter(|other| other.package == core.package);
    let package = beside.filter_map(|other| other.cpus.first().copied()).min()?;
    let node = topology.nodes.iter().find(|node| node.cpus.contains(&first));
    let lowest = |cpus: Option<&BTreeSet<u32>>| cpus.and_then(|cpus| cpus.first().copied());
    Some((
        package,
        lowest(node.map(|node| &node.cpus)).unwrap_or(package),
        lowest(last_cache(topology, first).map(|cache| &cache.cpus)).unwrap_or(package),
        lowest(module(topology, first).map(|cache| &cache.cpus)).unwrap_or(first),
    ))
}

/// `package 0`, and `package 0 node 1` where a package has several memory nodes; counted in the order of the picture.
fn package_names(cores: &[(Place, &Core)]) -> BTreeMap<(u32, u32), String> {
    let mut nodes: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (place, _) in cores {
        nodes.entry(place.0).or_default().insert(place.1);
    }
    let mut names = BTreeMap::new();
    let mut before = 0;
    for (number, (package, nodes)) in nodes.iter().enumerate() {
        for (node_number, node) in nodes.iter().enumerate() {
            let name = match nodes.len() {
                1 => format!("package {number}"),
                _ => format!("package {number} node {}", before + node_number),
            };
            names.insert((*package, *node), name);
        }
        before += nodes.len();
    }
    names
}

fn cache_name(cache: Option<&widthwise_machine::topology::Cache>) -> String {
    cache.map_or_else(String::new, |cache| format!("L{}", cache.level))
}

fn kind_name(kind: CoreKind) -> &'static str {
    match kind {
        CoreKind::Performance => "P",
        CoreKind::Efficiency => "E",
    }
}

#[cfg(test)]
mod tests {
    use widthwise_machine::placement::{place, Kinds, Policy};
    use widthwise_machine::topology::{Cache, Node};
    use widthwise_report::topology::text;

    use super::*;

    fn cache(level: u8, cpus: impl IntoIterator<Item = u32>) -> Cache {
        Cache { level, size: 1 << 20, cpus: cpus.into_iter().collect() }
    }

    fn core(package: usize, kind: CoreKind, cpus: impl IntoIterator<Item = u32>) -> Core {
        Core { package, cpus: cpus.into_iter().collect(), kind }
    }

    fn shown(topology: &Topology, policy: Policy, kinds: Kinds, processes: usize) -> Vec<String> {
        let placement = place(topology, &policy, kinds, processes).unwrap();
        text(&picture(topology, &placement), 110).lines().map(str::to_owned).collect()
    }

    /// Two packages of two cores with SMT, siblings n and n+4; one core of the second is withheld.
    fn server() -> Topology {
        let packages = [[0, 1, 4, 5], [2, 3, 6, 7]];
        Topology {
            packages: 2,
            cores: (0..4).map(|n| core(n as usize / 2, CoreKind::Performance, [n, n + 4])).collect(),
            caches: packages.into_iter().map(|cpus| cache(3, cpus)).collect(),
            nodes: packages
                .iter()
                .zip(0..)
                .map(|(cpus, number)| Node { number, cpus: (*cpus).into() })
                .collect(),
            allowed: BTreeSet::from([0, 1, 2, 4, 5, 6]),
            ..Topology::default()
        }
    }

    #[test]
    fn each_package_is_a_line_with_its_busy_cpus_marked() {
        let lines = shown(&server(), Policy::Spread, Kinds::All, 3);
        assert_eq!(lines[..2], ["package 0  L3 [ (0* 4 ) (1* 5 ) ]", "package 1  L3 [ (2* 6 ) (3- 7-) ]"]);
        let lines = shown(&server(), Policy::List(vec![6]), Kinds::All, 2);
        assert_eq!(lines[1], "package 1  L3 [ (2   6*2) (3-  7- ) ]");
    }

    #[test]
    fn a_package_with_two_nodes_is_two_lines() {
        let mut topology = server();
        topology.cores.iter_mut().for_each(|core| core.package = 0);
        let lines = shown(&topology, Policy::Node, Kinds::All, 2);
        assert_eq!(
            lines[..2],
            ["package 0 node 0  L3 [ (0* 4 ) (1* 5 ) ]", "package 0 node 1  L3 [ (2  6 ) (3- 7-) ]"]
        );
    }

    #[test]
    fn a_hybrid_shows_its_kinds_and_clusters() {
        let mut cores = vec![core(0, CoreKind::Performance, [0, 1])];
        cores.extend((2..6).map(|n| core(0, CoreKind::Efficiency, [n])));
        let topology = Topology {
            packages: 1,
            cores,
            caches: vec![cache(2, [0, 1]), cache(2, 2..6), cache(3, 0..6)],
            allowed: (0..6).collect(),
            offline: BTreeSet::from([6, 7]),
            ..Topology::default()
        };
        let lines = shown(&topology, Policy::Module, Kinds::Efficiency, 3);
        assert_eq!(lines[..2], ["package 0  L3 [ P (0  1 ) E {(2*) (3*) (4*) (5 )} ]", "offline: 6-7"]);
    }
}
