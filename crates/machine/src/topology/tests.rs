use proptest::prelude::*;

use std::collections::BTreeSet;

use super::*;
use crate::cpulist::Cpu;

const XML_4X2: &str = include_str!("../../tests/fixtures/hwloc-4-cores-smt.xml");
const XML_HYBRID: &str = include_str!("../../tests/fixtures/hwloc-hybrid.xml");
const XML_2: &str = include_str!("../../tests/fixtures/hwloc-2-cores.xml");
const TREE_OFFLINE: &str = include_str!("../../tests/fixtures/sysfs-one-offline.txt");
const TREE_CPUSET: &str = include_str!("../../tests/fixtures/sysfs-cpuset.txt");
const TREE_HYBRID: &str = include_str!("../../tests/fixtures/sysfs-hybrid.txt");

/// Unfolds a recorded tree: one file a line, `path: text`, where `[0-3]` in a path stands for each of them and `{}`
/// in the text for the number.
fn unfold(recording: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for line in recording.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (path, content) = line.split_once(": ").unwrap();
        let names: Vec<(String, String)> = match path.split_once('[') {
            None => vec![(path.to_string(), content.to_string())],
            Some((before, rest)) => {
                let (range, after) = rest.split_once(']').unwrap();
                crate::cpulist::read_list(range)
                    .unwrap()
                    .into_iter()
                    .map(|n| (format!("{before}{n}{after}"), content.replace("{}", &n.to_string())))
                    .collect()
            }
        };
        for (name, content) in names {
            let file = root.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content + "\n").unwrap();
        }
    }
    root
}

pub(crate) fn from_tree(recording: &str) -> Topology {
    Topology::from_sysfs(unfold(recording).path())
}

fn set(cpus: &[Cpu]) -> BTreeSet<Cpu> {
    cpus.iter().copied().collect()
}

fn choose(topology: &Topology, busy: &[Cpu], locked: &[Cpu]) -> Option<Cpu> {
    choose_core(topology, &set(busy), &set(locked))
}

#[test]
fn hwloc_reports_cores_siblings_caches_and_nodes() {
    let topology = Topology::from_hwloc_xml(XML_4X2).unwrap();
    assert_eq!((topology.packages, topology.cores.len(), topology.threads_per_core()), (1, 4, 2));
    assert_eq!(topology.siblings(2), set(&[3]));
    assert_eq!(topology.allowed, set(&[0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(
        topology.last_level_caches(),
        [&Cache { level: 3, size: 16 << 20, cpus: set(&[0, 1, 2, 3, 4, 5, 6, 7]) }]
    );
    assert_eq!(topology.nodes.len(), 1);
    assert!(!topology.is_hybrid());
}

#[test]
fn without_sys_each_cpu_that_is_online_and_allowed_may_be_used() {
    let recording = "proc/self/status: Cpus_allowed_list:\t1-127\n";
    let root = unfold(recording);
    std::fs::write(root.path().join("proc/stat"), "cpu  9 0\ncpu0 3 0\ncpu1 3 0\ncpu2 3 0\nintr 5\n")
        .unwrap();
    let topology = Topology::from_sysfs(root.path());
    assert_eq!((topology.cores.len(), topology.packages), (3, 1));
    assert_eq!(topology.allowed, set(&[1, 2]));
    assert_eq!(choose(&topology, &[], &[]), Some(1));
}

#[test]
fn hwloc_distinguishes_two_kinds_of_core() {
    let topology = Topology::from_hwloc_xml(XML_HYBRID).unwrap();
    let kind = |cpu| topology.core_of(cpu).unwrap().kind;
    assert!(topology.is_hybrid());
    assert_eq!(
        (kind(0), kind(3), kind(4)),
        (CoreKind::Performance, CoreKind::Performance, CoreKind::Efficiency)
    );
}

#[test]
fn text_that_is_not_hwloc_xml_is_refused() {
    for text in
        ["", "<topology version=\"1.0\"></topology>", "<topology version=\"2.0\"></topology>", "<object"]
    {
        assert!(Topology::from_hwloc_xml(text).is_err(), "{text}");
    }
    assert!(Topology::from_hwloc_xml(&XML_2.replace("0x00000003", "many")).is_err());
}

proptest! {
    #[test]
    fn no_damage_to_hwlocs_xml_makes_it_panic(at in 0usize..4000, length in 0usize..40, with in "[<>=\"0-9a-f/&;]{0,8}") {
        let mut damaged = XML_HYBRID.to_string();
        let start = at.min(damaged.len());
        let end = (start + length).min(damaged.len());
        damaged.replace_range(start..end, &with);
        if let Ok(topology) = Topology::from_hwloc_xml(&damaged) {
            let _ = choose(&topology, &[], &[]);
        }
    }
}

#[test]
fn hwloc_and_sysfs_agree_about_one_machine() {
    let hwloc = Topology::from_hwloc_xml(XML_2).unwrap();
    let read = from_tree(include_str!("../../tests/fixtures/sysfs-2-cores.txt"));
    assert_eq!((hwloc.packages, &hwloc.cores, &hwloc.nodes), (read.packages, &read.cores, &read.nodes));
    assert_eq!((&hwloc.allowed, &hwloc.offline), (&read.allowed, &read.offline));
    let sorted = |topology: &Topology| {
        let mut caches: Vec<_> = topology.caches.iter().map(|c| (c.level, c.size, c.cpus.clone())).collect();
        caches.sort();
        caches
    };
    assert_eq!(sorted(&hwloc), sorted(&read));
}

#[test]
fn a_cpu_that_is_switched_off_is_no_sibling() {
    let topology = from_tree(TREE_OFFLINE);
    assert_eq!(topology.offline, set(&[3]));
    assert_eq!(topology.online(), set(&[0, 1, 2]));
    assert_eq!(topology.siblings(1), set(&[]));
    assert_eq!(topology.siblings(0), set(&[2]));
    assert_eq!(choose(&topology, &[], &[]), Some(1));
}

#[test]
fn a_limited_process_measures_where_it_may() {
    let topology = from_tree(TREE_CPUSET);
    assert_eq!(topology.allowed, set(&[0, 5]));
    assert_eq!(choose(&topology, &[], &[]), Some(5));
    // CPU 1 is not ours, and is the sibling of 5: what runs there disturbs all the same.
    assert_eq!(choose(&topology, &[1], &[]), Some(0));
}

#[test]
fn without_smt_the_core_of_cpu_0_is_left_to_interrupts() {
    let topology = Topology::from_hwloc_xml(XML_2).unwrap();
    assert_eq!(choose(&topology, &[], &[]), Some(1));
    assert_eq!(choose(&topology, &[1], &[]), Some(0));
    assert_eq!(choose(&topology, &[0, 1], &[]), Some(1));
}

#[test]
fn an_idle_core_is_better_than_an_idle_cpu_beside_a_busy_one() {
    let topology = Topology::from_hwloc_xml(XML_4X2).unwrap();
    assert_eq!(choose(&topology, &[], &[]), Some(2));
    assert_eq!(choose(&topology, &[3], &[]), Some(4));
    assert_eq!(choose(&topology, &[3, 4, 6], &[]), Some(0));
    assert_eq!(choose(&topology, &[0, 2, 4, 6], &[]), Some(3));
}

#[test]
fn a_lock_covers_the_whole_core_and_no_core_is_left_if_all_are_locked() {
    let topology = Topology::from_hwloc_xml(XML_4X2).unwrap();
    assert_eq!(choose(&topology, &[], &[2]), Some(4));
    assert_eq!(choose(&topology, &[4, 5], &[3, 7]), Some(0));
    assert_eq!(choose(&topology, &[], &[0, 3, 4, 7]), None);
}

#[test]
fn on_a_hybrid_only_the_fastest_cores_are_taken() {
    for topology in [Topology::from_hwloc_xml(XML_HYBRID).unwrap(), from_tree(TREE_HYBRID)] {
        assert_eq!(choose(&topology, &[], &[]), Some(2));
        assert_eq!(choose(&topology, &[0, 1, 2, 3], &[]), Some(2));
        // Both fast cores are taken: better to wait than to measure on another machine.
        assert_eq!(choose(&topology, &[], &[0, 2]), None);
        // A process that may use slow cores only measures there.
        let limited = Topology { allowed: set(&[5, 6]), ..topology };
        assert_eq!(choose(&limited, &[5], &[]), Some(6));
    }
}

#[test]
fn a_favoured_core_does_not_make_the_others_slow() {
    assert!(!sysfs::is_slower(972, 1024));
    assert!(sysfs::is_slower(512, 1024));
}

#[test]
fn an_empty_tree_is_an_empty_machine() {
    let root = tempfile::tempdir().unwrap();
    let topology = Topology::from_sysfs(root.path());
    assert_eq!(topology.cores, []);
    assert_eq!(choose(&topology, &[], &[]), None);
}

#[test]
fn this_machine_has_a_core_to_measure_on() {
    let topology = Topology::here();
    let chosen = choose(&topology, &[], &[]).unwrap();
    assert!(topology.allowed.contains(&chosen));
}
