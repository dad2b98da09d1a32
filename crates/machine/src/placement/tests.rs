use std::sync::OnceLock;

use proptest::prelude::*;

use super::*;
use crate::topology::tests::from_tree;

const SANDYBRIDGE: &str = include_str!("../../tests/fixtures/sysfs-sandybridge.txt");
const BULLDOZER: &str = include_str!("../../tests/fixtures/sysfs-bulldozer.txt");
const BULLDOZER_XML: &str = include_str!("../../tests/fixtures/hwloc-bulldozer.xml");
const TWO_PACKAGES: &str = include_str!("../../tests/fixtures/sysfs-two-packages.txt");
const HYBRID: &str = include_str!("../../tests/fixtures/sysfs-hybrid-clusters.txt");
const ONE_OFFLINE: &str = include_str!("../../tests/fixtures/sysfs-one-offline.txt");
const CONTAINER: &str = include_str!("../../tests/fixtures/sysfs-cpuset.txt");

fn bulldozer_of_hwloc() -> Topology {
    Topology::from_hwloc_xml(BULLDOZER_XML).unwrap()
}

fn cpus(topology: &Topology, policy: &str, kinds: Kinds, processes: usize) -> String {
    let placement = place(topology, &policy.parse().unwrap(), kinds, processes).unwrap();
    // As a list in the order of the processes.
    Policy::List(placement.cpus).to_string()
}

fn fast(topology: &Topology, policy: &str, processes: usize) -> String {
    cpus(topology, policy, Kinds::Performance, processes)
}

fn remarks_of(topology: &Topology, policy: &str) -> Vec<String> {
    place(topology, &policy.parse().unwrap(), Kinds::Performance, 1).unwrap().remarks
}

fn refusal(topology: &Topology, policy: &str, kinds: Kinds) -> String {
    place(topology, &policy.parse().unwrap(), kinds, 2).unwrap_err().to_string()
}

#[test]
fn sandybridges_cores_come_before_its_siblings() {
    let machine = from_tree(SANDYBRIDGE);
    // innocente-2012's rows: 2 on 2 cores, 2 on 1 core, 4 on 4, 4 on 2, 8 on 4.
    assert_eq!(fast(&machine, "cores", 2), "0-1");
    assert_eq!(fast(&machine, "siblings", 2), "0,4");
    assert_eq!(fast(&machine, "cores", 4), "0-3");
    assert_eq!(fast(&machine, "siblings", 4), "0,4,1,5");
    assert_eq!(fast(&machine, "cores", 8), "0-7");
    assert_eq!(remarks_of(&machine, "siblings"), [] as [&str; 0]);
}

#[test]
fn bulldozers_modules_are_found_however_the_halves_are_called() {
    for machine in [from_tree(BULLDOZER), bulldozer_of_hwloc()] {
        assert_eq!(fast(&machine, "cores", 8), "0,2,4,6,1,3,5,7");
        assert_eq!(fast(&machine, "module", 4), "0-3");
        assert_eq!(fast(&machine, "spread", 4), "0,2,4,6");
    }
}

#[test]
fn without_smt_siblings_equals_cores_with_a_remark() {
    let machine = bulldozer_of_hwloc();
    assert_eq!(fast(&machine, "siblings", 8), fast(&machine, "cores", 8));
    assert_eq!(remarks_of(&machine, "siblings"), ["no SMT siblings here: the same as cores"]);
    // Where siblings exist and none may be used, there are none either.
    let withheld = Topology { allowed: BTreeSet::from([0, 1, 6]), ..from_tree(SANDYBRIDGE) };
    assert_eq!(fast(&withheld, "siblings", 3), "0-1,6");
    assert_eq!(remarks_of(&withheld, "siblings"), ["no SMT siblings here: the same as cores"]);
}

#[test]
fn a_server_is_filled_package_by_package_or_spread_over_both() {
    let machine = from_tree(TWO_PACKAGES);
    assert_eq!(fast(&machine, "cores", 32), "0-31");
    assert_eq!(fast(&machine, "spread", 5), "0,8,1,9,2");
    // Every core before any sibling.
    assert!(fast(&machine, "spread", 18).ends_with(",7,15-16,24"));
    assert_eq!(fast(&machine, "node", 18), "0-7,16-23,8-9");
    assert_eq!(fast(&machine, "l3", 18), "0-7,16-23,8-9");
    assert_eq!(fast(&machine, "siblings", 5), "0,16,1,17,2");
    assert_eq!(remarks_of(&machine, "node"), [] as [&str; 0]);
}

#[test]
fn spread_leaves_no_core_idle_while_it_doubles_up_elsewhere() {
    let mut machine = from_tree(TWO_PACKAGES);
    // One core of package 0 with both threads, four of package 1.
    machine.allowed = BTreeSet::from([0, 16, 8, 9, 10, 11, 24]);
    assert_eq!(fast(&machine, "spread", 7), "0,8-11,16,24");
}

#[test]
fn a_hybrids_kinds_are_kept_apart_unless_both_are_asked_for() {
    let machine = from_tree(HYBRID);
    assert_eq!(fast(&machine, "cores", 12), "0,2,4,6,8,10,1,3,5,7,9,11");
    assert_eq!(cpus(&machine, "cores", Kinds::Efficiency, 8), "12,16,13,17,14,18,15,19");
    assert_eq!(cpus(&machine, "module", Kinds::Efficiency, 5), "12-16");
    assert_eq!(cpus(&machine, "spread", Kinds::Efficiency, 3), "12,16,13");
    assert_eq!(cpus(&machine, "cores", Kinds::All, 20), "0,2,4,6,8,10,12,16,13,17,14,18,15,19,1,3,5,7,9,11");
    assert_eq!(remarks_of(&machine, "cores"), ["the efficiency cores (CPUs 12-19) are left out"]);
    let listed = place(&machine, &Policy::List(vec![0, 12]), Kinds::Performance, 2).unwrap();
    assert_eq!(listed.cpus, [0, 12]);
    assert_eq!(listed.remarks.len(), 1, "{listed:?}");
}

#[test]
fn an_absent_or_forbidden_kind_is_refused_with_the_fix() {
    assert_eq!(
        refusal(&from_tree(SANDYBRIDGE), "cores", Kinds::Efficiency),
        "this machine has no efficiency cores: ask for performance cores, or for all"
    );
    let slow_only = Topology { allowed: BTreeSet::from([13, 14]), ..from_tree(HYBRID) };
    assert!(refusal(&slow_only, "cores", Kinds::Performance).contains("ask for efficiency cores"));
    let fast_only = Topology { allowed: BTreeSet::from([2, 3]), ..from_tree(HYBRID) };
    assert!(refusal(&fast_only, "cores", Kinds::Efficiency).contains("may be used here"));
    let nothing = Topology { allowed: BTreeSet::new(), ..from_tree(HYBRID) };
    assert!(refusal(&nothing, "cores", Kinds::All).starts_with("no CPU may be used here"));
    assert_eq!(steps(&nothing, Kinds::All), [] as [usize; 0]);
}

#[test]
fn an_offline_cpu_is_skipped_and_refused_in_a_list() {
    let machine = from_tree(ONE_OFFLINE);
    assert_eq!(fast(&machine, "cores", 3), "0-2");
    assert_eq!(fast(&machine, "siblings", 3), "0,2,1");
    let refused = refusal(&machine, "0,3", Kinds::Performance);
    assert!(refused.contains("CPU 3 is offline") && refused.contains("cpu3/online"), "{refused}");
}

#[test]
fn a_container_uses_only_its_own_cpus() {
    let machine = from_tree(CONTAINER);
    for policy in ["cores", "siblings", "module", "l3", "node", "spread"] {
        assert_eq!(fast(&machine, policy, 2), "0,5", "{policy}");
    }
    assert!(refusal(&machine, "0-1", Kinds::All).starts_with("CPU 1 may not be used here: choose among 0,5,"));
    assert_eq!(refusal(&machine, "5,64", Kinds::All), "this machine has no CPU 64: its CPUs are 0-7");
}

#[test]
fn more_processes_than_cpus_repeat_the_order_with_a_remark() {
    let machine = from_tree(CONTAINER);
    let placement = place(&machine, &Policy::Cores, Kinds::All, 5).unwrap();
    assert_eq!(placement.cpus, [0, 5, 0, 5, 0]);
    assert_eq!(placement.most_on_one_cpu(), 3);
    assert_eq!(placement.remarks, ["5 processes on 2 CPUs: up to 3 take turns on one"]);
    assert_eq!(place(&machine, &Policy::Cores, Kinds::All, 2).unwrap().most_on_one_cpu(), 1);
    assert_eq!(place(&machine, &Policy::Cores, Kinds::All, 0), Err(PlacementError::NoProcesses));
}

#[test]
fn a_list_keeps_its_order_and_invalid_lists_have_specific_errors() {
    let machine = from_tree(SANDYBRIDGE);
    assert_eq!(fast(&machine, "6,0-2", 3), "6,0-1");
    let error = |text: &str| text.parse::<Policy>().unwrap_err();
    assert_eq!(error(""), PlacementError::EmptyList);
    assert_eq!(error(" , "), PlacementError::EmptyList);
    assert_eq!(error("0-3,2"), PlacementError::ListedTwice(2));
    assert_eq!(error("3-1"), PlacementError::UnknownPolicy("3-1".into()));
    assert_eq!(error("corse"), PlacementError::UnknownPolicy("corse".into()));
    // A list that was made by a program, and not read.
    let made = |list: &[Cpu]| place(&machine, &Policy::List(list.to_vec()), Kinds::All, 1).unwrap_err();
    assert_eq!(made(&[]), PlacementError::EmptyList);
    assert_eq!(made(&[1, 1]), PlacementError::ListedTwice(1));
}

#[test]
fn steps_double_and_do_not_miss_the_cores() {
    assert_eq!(steps(&from_tree(SANDYBRIDGE), Kinds::Performance), [1, 2, 4, 8]);
    assert_eq!(steps(&from_tree(HYBRID), Kinds::Performance), [1, 2, 4, 6, 8, 12]);
    assert_eq!(steps(&from_tree(HYBRID), Kinds::Efficiency), [1, 2, 4, 8]);
    assert_eq!(steps(&from_tree(HYBRID), Kinds::All), [1, 2, 4, 8, 14, 16, 20]);
    assert_eq!(steps(&from_tree(ONE_OFFLINE), Kinds::Performance), [1, 2, 3]);
    assert_eq!(steps(&from_tree(CONTAINER), Kinds::Performance), [1, 2]);
}

#[test]
fn every_name_is_parsed_back_and_is_the_same_in_json() {
    for (name, policy) in POLICIES {
        assert_eq!((name.parse().as_ref(), policy.to_string().as_str()), (Ok(policy), *name));
    }
    for kinds in [Kinds::Performance, Kinds::Efficiency, Kinds::All] {
        assert_eq!(kinds.to_string().parse(), Ok(kinds));
        assert_eq!(serde_json::to_string(&kinds).unwrap(), format!("\"{kinds}\""));
    }
    let list = Policy::List(vec![6, 0, 1]);
    assert_eq!(serde_json::to_string(&list).unwrap(), "\"6,0-1\"");
    assert_eq!(serde_json::from_str::<Policy>("\"6,0-1\"").unwrap(), list);
}

/// Unfolding a recorded tree takes longer than all that is tested with it.
fn machine(number: usize) -> Topology {
    static MACHINES: OnceLock<Vec<Topology>> = OnceLock::new();
    let trees = [SANDYBRIDGE, BULLDOZER, TWO_PACKAGES, HYBRID, ONE_OFFLINE, CONTAINER];
    let unfolded = || trees.into_iter().map(from_tree).chain([bulldozer_of_hwloc()]).collect();
    MACHINES.get_or_init(unfolded)[number].clone()
}

proptest! {
    #[test]
    fn placements_grow_by_one_and_use_every_allowed_cpu_once_before_any_twice(
        number in 0usize..7, policy in 0usize..6, kinds in 0usize..3, withheld in proptest::collection::btree_set(0u32..32, 0..20)
    ) {
        let mut topology = machine(number);
        topology.allowed.retain(|cpu| !withheld.contains(cpu));
        let policy = &POLICIES[policy].1;
        let kinds = [Kinds::Performance, Kinds::Efficiency, Kinds::All][kinds];
        let Some(&usable) = steps(&topology, kinds).last() else {
            prop_assert!(place(&topology, policy, kinds, 1).is_err());
            return Ok(());
        };
        let once = place(&topology, policy, kinds, usable).unwrap();
        prop_assert_eq!(once.used().len(), usable);
        prop_assert!(once.used().is_subset(&topology.allowed));
        for n in 1..usable + 3 {
            let fewer = place(&topology, policy, kinds, n).unwrap();
            let more = place(&topology, policy, kinds, n + 1).unwrap();
            prop_assert_eq!(&fewer.cpus[..], &more.cpus[..n]);
            prop_assert_eq!(fewer.most_on_one_cpu(), n.div_ceil(usable));
        }
        // Neither chance nor the order in which hwloc or the kernel lists things decides.
        topology.cores.reverse();
        topology.caches.reverse();
        topology.nodes.reverse();
        prop_assert_eq!(place(&topology, policy, kinds, usable).unwrap(), once);
    }

    #[test]
    fn a_written_list_is_parsed_back_in_its_order(list in proptest::sample::subsequence((0u32..40).collect::<Vec<_>>(), 1..20).prop_shuffle()) {
        let policy = Policy::List(list);
        prop_assert_eq!(policy.to_string().parse(), Ok(policy));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,40}") {
        let _ = (text.parse::<Policy>(), text.parse::<Kinds>());
    }
}
