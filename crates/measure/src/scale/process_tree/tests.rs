use super::*;

fn snapshot(pid: u32, parent: u32, is_wrapper: bool) -> TaskSnapshot {
    TaskSnapshot { pid, parent, is_launched: parent == 1, is_wrapper, session: Some(10) }
}

#[test]
fn each_child_is_put_on_a_cpu_of_its_own_once() {
    let mut tree = ProcessTree::new(Mode::Fork, 2, &[4, 6]);
    assert!(tree.seen(&[snapshot(10, 1, false)], 5).is_empty());
    let changes = tree.seen(&[snapshot(10, 1, false), snapshot(11, 10, false)], 6);
    assert_eq!(changes, [SetAffinity { pid: 11, cpus: vec![4], first: true }]);
    assert!(tree.has_chosen(&changes[0], &[6]) && !tree.has_chosen(&changes[0], &[4, 6]));
    let all = [snapshot(10, 1, false), snapshot(11, 10, false), snapshot(12, 10, false)];
    assert_eq!(tree.seen(&all, 7), [SetAffinity { pid: 12, cpus: vec![6], first: true }]);
    assert!(tree.is_complete());
    assert!(tree.seen(&all, 8).is_empty());
    tree.parent_had(4);
    assert_eq!(tree.before_fork(1, &[]), Some(BeforeFork { cpu_ns: 4, elapsed_ns: 5 }));
}

#[test]
fn a_parent_has_no_more_cpu_time_at_the_fork_than_time_has_passed() {
    let mut tree = ProcessTree::new(Mode::Fork, 1, &[4]);
    tree.seen(&[snapshot(10, 1, false), snapshot(11, 10, false)], 6);
    // It was read two later.
    tree.parent_had(7);
    assert_eq!(tree.before_fork(1, &[]), Some(BeforeFork { cpu_ns: 5, elapsed_ns: 5 }));
}

#[test]
fn a_shell_that_starts_the_program_is_not_its_parent() {
    let mut tree = ProcessTree::new(Mode::Fork, 1, &[0]);
    let start = [snapshot(10, 1, true), snapshot(11, 10, false)];
    tree.seen(&start, 1);
    let mut all = start.to_vec();
    all.push(snapshot(12, 11, false));
    tree.seen(&all, 2);
    assert_eq!(tree.member_pids(), [12]);
    assert_eq!((tree.parent(), tree.is_childless()), (Some(11), false));
}

#[test]
fn a_task_wrongly_taken_for_a_member_may_run_anywhere_again() {
    // A wrapper program that is not known as one: the program is its only child, until it has children
    // itself.
    let mut tree = ProcessTree::new(Mode::Fork, 2, &[0, 1]);
    let start = [snapshot(10, 1, false), snapshot(11, 10, false)];
    assert_eq!(tree.seen(&start, 1), [SetAffinity { pid: 11, cpus: vec![0], first: true }]);
    let all = [start[0].clone(), start[1].clone(), snapshot(12, 11, false), snapshot(13, 11, false)];
    let mut changes = tree.seen(&all, 2);
    changes.sort_by_key(|put| put.pid);
    let put = |pid, cpus: &[u32], first| SetAffinity { pid, cpus: cpus.to_vec(), first };
    assert_eq!(changes, [put(11, &[0, 1], false), put(12, &[0], true), put(13, &[1], true)]);
    assert_eq!(tree.parent(), Some(11));
}

#[test]
fn a_shell_whose_children_do_the_work_is_the_parent() {
    let mut tree = ProcessTree::new(Mode::Fork, 2, &[0, 1]);
    tree.seen(&[snapshot(10, 1, true), snapshot(11, 10, false)], 1);
    assert!(tree.member_pids().is_empty());
    tree.seen(&[snapshot(12, 10, false)], 2);
    assert_eq!((tree.parent(), tree.member_pids()), (Some(10), vec![11, 12]));
}

#[test]
fn a_second_pool_takes_the_places_of_the_first_and_belongs_to_its_members() {
    for mode in [Mode::Fork, Mode::Threads] {
        let mut tree = ProcessTree::new(mode, 2, &[4, 6]);
        let one = |pid| TaskSnapshot { is_launched: false, ..snapshot(pid, 10, false) };
        let parent = TaskSnapshot { pid: 10, parent: if mode == Mode::Fork { 1 } else { 10 }, ..one(10) };
        tree.seen(&[parent.clone(), one(11), one(12)], 1);
        tree.seen_more(10, &[], &[10], 2);
        let changes = tree.seen_more(10, &[one(13), one(14)], &[10, 13, 14], 3);
        let put = |pid, cpu| SetAffinity { pid, cpus: vec![cpu], first: true };
        assert_eq!(changes, [put(13, 4), put(14, 6)], "{mode:?}");
        let counted = [(10, 100), (11, 1), (12, 2), (13, 30), (14, 40)]
            .map(|(pid, ns)| (pid, Counted { ns, is_exact: pid != 12 }));
        tree.learn(10, &[]);
        let members = tree.members(0, &[], &counted.into());
        let of: Vec<_> = members.iter().map(|m| (m.pid, m.others.clone(), m.cpu, m.cpu_ns)).collect();
        assert_eq!(of, [(13, vec![11], Some(4), 31), (14, vec![12], Some(6), 42)], "{mode:?}");
        assert_eq!(members.iter().map(|m| m.exact).collect::<Vec<_>>(), [true, false], "{mode:?}");
    }
}

#[test]
fn an_orphan_of_an_ended_child_counts_as_a_child_of_the_program() {
    let mut tree = ProcessTree::new(Mode::Fork, 1, &[3]);
    tree.seen(&[snapshot(10, 1, false), snapshot(11, 10, false)], 1);
    let changes = tree.seen(&[snapshot(10, 1, false), snapshot(12, 1, false)], 2);
    assert_eq!(changes, [SetAffinity { pid: 12, cpus: vec![3], first: true }]);
    assert_eq!((tree.parent(), tree.member_pids()), (Some(10), vec![11, 12]));
    // One that was seen while its parent lived; the parent's counted time is not counted twice.
    let mut tree = ProcessTree::new(Mode::Fork, 1, &[3]);
    tree.seen(&[snapshot(10, 1, false), snapshot(11, 10, false), snapshot(12, 11, false)], 1);
    tree.seen(&[snapshot(10, 1, false), snapshot(12, 1, false)], 2);
    assert_eq!(tree.member_pids(), [11, 12]);
    let put = SetAffinity { pid: 12, cpus: vec![4], first: true };
    assert!(!tree.has_chosen(&put, &[3]), "it inherited its parent's");
    let exact = |ns| Counted { ns, is_exact: true };
    let members = tree.members(0, &[], &BTreeMap::from([(11, exact(105)), (12, exact(100))]));
    assert_eq!((members.len(), members[0].pid, members[0].cpu_ns), (1, 12, 105));
    // Of unseen children only the orphans are left.
    let mut tree = ProcessTree::new(Mode::Fork, 2, &[]);
    tree.seen(&[snapshot(10, 1, false), snapshot(12, 1, false), snapshot(13, 1, false)], 1);
    assert_eq!((tree.parent(), tree.member_pids()), (Some(10), vec![12, 13]));
}

#[test]
fn a_daemon_that_sleeps_is_no_child_and_one_that_works_is() {
    let daemon = TaskSnapshot { session: Some(11), ..snapshot(12, 1, false) };
    let all = [snapshot(10, 1, false), snapshot(20, 10, false), daemon];
    let mut tree = ProcessTree::new(Mode::Fork, 1, &[3]);
    tree.seen(&all, 1);
    assert_eq!(tree.member_pids(), [20]);
    tree.judge(&|pid| Some((if pid == 12 { 30_000_000 } else { 0 }, 0)), 60_000_000);
    assert_eq!(tree.member_pids(), [20, 12], "it has worked");
    tree.ended(&[], true);
    assert_eq!(tree.member_pids(), [20], "it slept in the end");
    tree.ended(&[], false);
    assert_eq!(tree.member_pids(), [20, 12], "it worked in the end");
    // In the session of the program it is a child.
    let mut tree = ProcessTree::new(Mode::Fork, 1, &[3]);
    tree.seen(&[snapshot(10, 1, false), snapshot(20, 10, false), snapshot(12, 1, false)], 1);
    tree.ended(&[], true);
    assert_eq!(tree.member_pids(), [20, 12]);
}

#[test]
fn the_first_thread_is_put_on_the_cpu_that_is_left_only_while_it_works() {
    let mut tree = ProcessTree::new(Mode::Threads, 2, &[0, 1]);
    let thread = |pid| snapshot(pid, 10, false);
    tree.seen(&[thread(10), thread(11)], 0);
    let used = |main: u64| move |pid: u32| Some((if pid == 10 { main } else { 0 }, 0));
    assert!(tree.judge(&used(0), 0).is_empty());
    let changes = tree.judge(&used(40_000_000), 50_000_000);
    assert_eq!(changes, [SetAffinity { pid: 10, cpus: vec![1], first: true }]);
    // With another thread there are enough.
    let changes = tree.seen(&[thread(10), thread(11), thread(12)], 60_000_000);
    let put = |pid, cpus: &[u32], first| SetAffinity { pid, cpus: cpus.to_vec(), first };
    assert_eq!(changes, [put(10, &[0, 1], false), put(12, &[1], true)]);
}

#[test]
fn the_process_with_threads_is_the_one_that_works() {
    let mut tree = ProcessTree::new(Mode::Threads, 2, &[]);
    let of = |process: u32, count: u32| {
        (process..process + count).map(move |tid| snapshot(tid, process, false)).collect::<Vec<_>>()
    };
    let all = [of(10, 5), of(20, 3)].concat();
    tree.seen(&all, 1);
    assert_eq!(tree.parent(), Some(10));
    tree.judge(&|pid| Some((if pid >= 20 { 100 } else { 1 }, 0)), 2);
    assert_eq!((tree.parent(), tree.member_pids()), (Some(20), vec![21, 22]));
}

#[test]
fn a_thread_that_inherited_its_affinity_has_not_set_it() {
    let mut tree = ProcessTree::new(Mode::Threads, 2, &[1, 0]);
    let thread = |pid| snapshot(pid, 10, false);
    // A thread inherits the affinity of the thread that starts it.
    tree.seen(&[thread(10), thread(11)], 1);
    let changes = tree.seen(&[thread(10), thread(11), thread(12)], 2);
    let last = changes.iter().find(|put| put.pid == 12).unwrap();
    assert_eq!(last.cpus, [0]);
    assert!(!tree.has_chosen(last, &[1]) && tree.has_chosen(last, &[5]));
}

#[test]
fn the_first_thread_is_a_worker_only_if_there_would_be_too_few_without_it() {
    let threads = |count: u32| (10..10 + count).map(|tid| snapshot(tid, 10, false)).collect::<Vec<_>>();
    let mut tree = ProcessTree::new(Mode::Threads, 2, &[0, 1]);
    tree.seen(&threads(2), 1);
    assert_eq!(tree.member_pids(), [11, 10]);
    tree.seen(&threads(3), 2);
    assert_eq!(tree.member_pids(), [11, 12]);
}

#[test]
fn a_member_is_accounted_with_its_descendants() {
    let mut tree = ProcessTree::new(Mode::Fork, 1, &[]);
    tree.seen(&[snapshot(10, 1, false), snapshot(11, 10, false)], 100);
    let exit = |pid, parent, cpu_ns, status| Exit {
        pid,
        tgid: pid,
        parent,
        comm: String::new(),
        max_rss: 1,
        peak_virtual: 2,
        cpu_ns,
        is_exact: true,
        waited_ns: 0,
        elapsed_ns: 50,
        process_elapsed_ns: 50,
        ended_s: 0,
        major_faults: 0,
        voluntary_switches: 0,
        involuntary_switches: 0,
        minor_faults: 0,
        read_and_written: 0,
        status,
    };
    let exits = [(exit(12, 11, 5, 0), 180), (exit(11, 10, 20, 11), 190), (exit(10, 1, 100, 0), 200)];
    let members = tree.members(90, &exits, &BTreeMap::new());
    assert_eq!((members[0].cpu_ns, members[0].began_ns, members[0].ended_ns), (25, 50, Some(100)));
    assert_eq!(tree.failures(&exits), [(Some(0), 11)]);
    // Of two that were expected one was not seen. It was the first, if it is known at all.
    tree.expected = 2;
    assert_eq!(tree.failures(&exits), [(None, 11)]);
    let [.., root] = &exits;
    let with_unseen = [(exit(9, 10, 1, 0), 170), exits[1].clone(), root.clone()];
    assert_eq!(tree.failures(&with_unseen), [(Some(1), 11)]);
    // One of three was no member.
    let with_another = [&with_unseen[..], &[(exit(8, 10, 1, 0), 160)]].concat();
    assert_eq!(tree.failures(&with_another), [(None, 11)]);
}

#[test]
fn a_process_that_does_not_fork_is_its_own_member() {
    let mut tree = ProcessTree::new(Mode::Fork, 1, &[3]);
    assert_eq!(
        tree.seen(&[snapshot(10, 1, false)], 1),
        [SetAffinity { pid: 10, cpus: vec![3], first: true }]
    );
    assert_eq!(tree.before_fork(0, &[]), None);
    assert!(!tree.is_complete(), "it may still fork");
}

#[test]
fn a_member_that_set_its_own_affinity_is_detected() {
    let mut tree = ProcessTree::new(Mode::Fork, 1, &[3]);
    tree.seen(&[snapshot(10, 1, false)], 1);
    tree.found_on(10, &[3]);
    assert_eq!(tree.members(0, &[], &BTreeMap::new())[0].moved_to, None);
    tree.found_on(10, &[5, 6]);
    assert_eq!(tree.members(0, &[], &BTreeMap::new())[0].moved_to.as_deref(), Some("5,6"));
}
