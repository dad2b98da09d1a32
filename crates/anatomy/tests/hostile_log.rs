//! A heap log is foreign: it may be cut off, mixed up, or made to do harm.

use std::ops::ControlFlow;

use crate::log_writer::{
    block, exec, forget, free, leb, map, module, moved, node, number, protect, Described, LogWriter, CHUNK,
};
use proptest::prelude::*;
use widthwise_anatomy::heap::symbols::profile;
use widthwise_anatomy::heap::{History, LogError, LogFile, Loss, StackId, StackValues, Stacks, Symbols};

fn histories(bytes: &[u8]) -> (Vec<History>, Stacks) {
    let mut stacks = Stacks::default();
    let log = LogFile::read(bytes).unwrap();
    let histories = log.histories(&mut stacks, &mut |_| ControlFlow::Continue(()));
    (histories.continue_value().unwrap(), stacks)
}

/// The history of a process with these streams of one chunk each, and the faults of its file.
fn history(streams: &[Vec<u8>]) -> History {
    let mut log = LogWriter::of_one_process();
    for (stream, records) in streams.iter().enumerate() {
        log.records(0, stream as u32, 0, records);
    }
    histories(&log.file()).0.remove(0)
}

fn faults(log: &LogWriter) -> Vec<String> {
    LogFile::read(&log.file()).unwrap().faults.lines()
}

fn of_stack(history: &History, stack: StackId) -> (u64, u64, u64) {
    let (_, blocks) = history.stacks.iter().find(|(found, _)| *found == stack).unwrap();
    (blocks.count, blocks.peak_count, blocks.live_count)
}

#[test]
fn blocks_come_and_go_and_the_most_there_was_is_known() {
    let history = history(&[[block(8, 0), block(8, 0), vec![3], block(4, 0)].concat()]);
    assert_eq!(history.faults, Vec::<String>::new());
    assert_eq!(history.total, (3, 48));
    assert_eq!((history.peak.count, history.peak.bytes, history.peak.main_bytes), (2, 32, 64));
    assert_eq!((history.end.count, history.end.bytes), (2, 32));
    assert_eq!(of_stack(&history, StackId::NONE), (3, 2, 2));
}

#[test]
fn an_impossible_number_of_spare_bytes_counts_as_none() {
    let of_spare = |spare: u64| {
        let block = [vec![2 | 1 << 3, 16, 7, 0], leb(1000), leb(spare << 2), vec![0]].concat();
        history(&[block]).peak.main_bytes
    };
    assert_eq!(of_spare(24), 1032);
    assert_eq!(of_spare(0u64.wrapping_sub(1000)), 1008);
}

#[test]
fn memory_that_the_program_maps_follows_every_way_of_mapping_over_it_and_of_moving_it() {
    let (private, fixed, anonymous) = (2, 16, 32);
    let own = |records: &[Vec<u8>]| {
        let history = history(&[records.concat()]);
        assert_eq!(history.faults, [] as [String; 0]);
        (history.own_mapped_bytes, history.own_mapped_peak_bytes)
    };
    let memory = || map(0x10000, 0x4000, 3, private | anonymous);
    let file = || map(0x10000, 0x4000, 3, private);
    let move_with = |flags| moved((0x10000, 0x4000), (0x80000, 0x9000), flags);
    assert_eq!(own(&[memory(), move_with(1)]), (0x9000, 0x9000));
    assert_eq!(own(&[memory(), moved((0x10000, 0x4000), (0x10000, 0x1000), 0)]), (0x1000, 0x4000));
    // MREMAP_DONTUNMAP.
    assert_eq!(own(&[memory(), move_with(5)]), (0xd000, 0xd000));
    assert_eq!(own(&[file(), move_with(1)]), (0, 0));
    assert_eq!(own(&[move_with(1)]), (0, 0));
    // Shared memory is not the process's own.
    let shared = || map(0x10000, 0x4000, 3, 1 | anonymous);
    assert_eq!(own(&[shared(), move_with(1), protect(0x80000, 0x4000, 1)]), (0, 0));
    assert_eq!(own(&[memory(), shared()]), (0, 0x4000));
    // Onto other memory.
    let other = map(0x82000, 0x1000, 3, private | anonymous);
    assert_eq!(own(&[file(), other, move_with(3)]), (0, 0x1000));
    // A file over a part of it.
    let over = map(0x11000, 0x1000, 1, private | fixed);
    assert_eq!(own(&[memory(), over]), (0x3000, 0x4000));
    // Addresses that are only reserved, of which a part is used.
    let reserved = || map(0x10000, 8 << 30, 0, private | anonymous);
    let used = map(0x12000, 0x2000, 3, private | fixed | anonymous);
    assert_eq!(own(&[reserved(), used.clone()]), (0x2000, 0x2000));
    assert_eq!(own(&[reserved(), used, reserved()]), (0, 0x2000));
    // The same by mprotect, which changes whole pages.
    let protected = |pages: &[(u64, u64, u64)]| {
        let changes = pages.iter().map(|(address, bytes, protection)| protect(*address, *bytes, *protection));
        own(&[reserved()].into_iter().chain(changes).collect::<Vec<_>>())
    };
    assert_eq!(protected(&[(0x12000, 0x2000, 3), (0x14000, 1, 1)]), (0x3000, 0x3000));
    assert_eq!(
        protected(&[(0x12000, 0x2000, 3), (0x16000, 0x1000, 3), (0x11000, 0x8000, 3)]),
        (0x8000, 0x8000)
    );
    assert_eq!(
        protected(&[(0x12000, 0x4000, 3), (0x13000, 0x1000, 0), (0x13000, 0x9000, 0)]),
        (0x1000, 0x4000)
    );
    assert_eq!(own(&[memory(), protect(0x12000, 0x9000, 0), protect(0x90000, 0x1000, 3)]), (0x2000, 0x4000));
    assert_eq!(own(&[reserved(), protect(0x10000, 0x4000, 3), move_with(1)]), (0x9000, 0x9000));
    assert_eq!(own(&[file(), protect(0x10000, 0x4000, 3)]), (0, 0));
}

#[test]
fn the_events_of_two_threads_are_put_in_order_by_their_numbers() {
    // Thread 0 has the events 0 and 3, thread 1 the events 1 and 2: it takes over the address of the first block.
    let one = [block(8, 0), vec![3 | 0x40, 2]].concat();
    let gap = vec![2 | 1 << 3 | 0x40, 1, 16, 7, 0, 16, 32, 0];
    let other = [gap, vec![3]].concat();
    let history = history(&[one, other]);
    // The second thread's block has the address of the first one, which had not gone yet: that release was not seen, and
    // the free that remains belongs to no block.
    assert_eq!((history.total.0, history.strangers, history.end.count), (2, 1, 0), "{history:?}");
}

#[test]
fn a_stream_that_lacks_a_chunk_is_read_up_to_there_and_that_is_said() {
    let mut log = LogWriter::of_one_process();
    for (stream, index) in [(0, 0), (0, 2), (1, 1)] {
        log.records(0, stream, index, &block(8, 0));
    }
    assert_eq!(histories(&log.file()).0[0].total.0, 1);
    assert_eq!(faults(&log).len(), 2, "{:?}", faults(&log));
}

#[test]
fn of_a_chunk_and_its_unfinished_copy_the_chunk_counts_and_of_a_whole_copy_the_copy() {
    let of = |index: u32, count: usize| {
        let mut log = LogWriter::default();
        log.records(0, 0, index, &vec![block(8, 0); count].concat());
        log.chunks.remove(0)
    };
    let full = of(0, 3);
    let mut flushed = full.clone();
    flushed[16] = 1;
    for (chunks, total) in [
        (vec![full.clone(), of(0, 1)], 3),
        (vec![full.clone(), vec![0; CHUNK]], 3),
        (vec![full.clone(), full.clone()], 3),
        (vec![flushed, full.clone()], 3),
        (vec![of(1, 5), full], 8),
    ] {
        let mut log = LogWriter::of_one_process();
        log.chunks.extend(chunks);
        let history = histories(&log.file()).0.remove(0);
        assert_eq!((history.total.0, history.faults, faults(&log)), (total, vec![], vec![]));
    }
}

#[test]
fn what_no_recorder_writes_ends_its_stream_and_is_said() {
    for records in [
        vec![5],
        vec![1, 9],
        vec![4, 99],
        vec![4, 1, 77, 2],
        vec![4, 7, 1, 1, 7, 0, 0],
        vec![4, 10, 1, 3, 0],
        vec![4, 10, 1, 0, 200, 200, 4],
        vec![0x7f; 20],
    ] {
        let history = history(&[[block(8, 0), records.clone(), block(8, 0)].concat()]);
        assert_eq!(history.total.0, 1, "{records:?}");
        assert_eq!(history.faults.len(), 1, "{records:?}");
    }
}

#[test]
fn a_log_of_another_version_is_refused_in_one_line() {
    let mut bytes = LogWriter::of_one_process().file();
    bytes[8] = 2;
    let error = LogFile::read(&bytes).unwrap_err();
    assert_eq!(error, LogError::Version(2));
    assert_eq!(
        error.to_string(),
        "is a heap log of version 2, and this program reads version 3: read it with the widthwise that recorded it"
    );
    bytes[8] = 3;
    bytes[16] = 1;
    assert!(matches!(LogFile::read(&bytes), Err(LogError::Absurd { offset: 16, .. })));
}

#[test]
fn what_lies_beyond_the_claimed_chunks_is_not_looked_at() {
    let mut log = LogWriter::of_one_process();
    log.records(0, 0, 0, &block(8, 0));
    let used = log.file().len();
    log.records(0, 1, 0, &[5]);
    let mut bytes = log.file();
    bytes[20] = 2;
    assert_eq!(LogFile::used_bytes(&bytes), Ok(used as u64));
    assert_eq!(histories(&bytes).0[0].total.0, 1);
    assert!(LogFile::read(&bytes).unwrap().faults.is_empty());
}

#[test]
fn a_file_that_is_cut_off_or_claims_what_is_not_there_is_read_up_to_there_and_that_is_said() {
    let mut log = LogWriter::of_one_process();
    log.records(0, 0, 0, &block(8, 0));
    let mut bytes = log.file();
    bytes[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
    // The reserve says that no more than 16 Mi chunks can be there.
    assert_eq!(
        LogFile::read(&bytes).unwrap().faults.lines(),
        ["the file is cut off at byte 135168: its header says 1099511566336 bytes"]
    );
    assert_eq!(histories(&bytes).0[0].total.0, 1);
    bytes.truncate(4096 + CHUNK + 40);
    assert_eq!(histories(&bytes).0[0].total.0, 1);
    bytes.truncate(4096 + 50);
    assert_eq!(LogFile::read(&bytes).unwrap().faults.lines().len(), 2);
    bytes.truncate(4095);
    assert_eq!(LogFile::read(&bytes).unwrap_err(), LogError::NoHeader(4095));
}

#[test]
fn what_a_log_says_of_its_processes_is_read() {
    let mut log = LogWriter::default();
    let first = log.process(&Described {
        lost: [0, 3, 0, 5, 0, 0, 0, 9],
        anonymous: 777,
        state: 1 | 8,
        ..Described::default()
    });
    let child =
        Described { process: 101, parent: first, parent_number: 100, inherited: 4, ..Described::default() };
    log.process(&child);
    let bytes = log.file();
    let read = LogFile::read(&bytes).unwrap();
    let [first, child] = [&read.processes[0].header, &read.processes[1].header];
    assert_eq!(
        (first.process, first.parent, first.anonymous_bytes, first.lost.total()),
        (100, None, 777, 17)
    );
    assert_eq!(
        first.lost.by_reason().collect::<Vec<_>>(),
        [(Loss::FileLimit, 3), (Loss::Memory, 5), (Loss::Other, 9)]
    );
    assert_eq!((first.word, first.machine, first.program.as_str()), (8, 62, "/srv/program"));
    assert!(first.ended && first.own_malloc && !first.glibc && !first.has_stacks);
    assert_eq!((child.process, child.parent, child.parent_number, child.inherited), (101, Some(0), 100, 4));
}

#[test]
fn a_process_that_is_its_own_ancestor_has_no_parent() {
    let mut log = LogWriter::default();
    for (process, parent) in [(100, 1), (101, 0), (102, 2), (103, 77)] {
        log.process(&Described { process, parent, ..Described::default() });
        let chunk = log.chunks.len() as u32 - 1;
        log.records(chunk, 0, 0, &free(3));
    }
    let bytes = log.file();
    let read = LogFile::read(&bytes).unwrap();
    let parents: Vec<Option<usize>> = read.processes.iter().map(|process| process.header.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(1), None]);
    assert_eq!(read.faults.lines().len(), 2, "{:?}", read.faults);
    assert_eq!(histories(&bytes).0.len(), 4);
}

#[test]
fn chunks_of_no_process_are_not_read_and_no_more_faults_are_kept_than_a_reader_wants() {
    let mut log = LogWriter::of_one_process();
    for stream in 0..50 {
        log.records(9999, stream, 0, &block(8, 0));
    }
    let faults = faults(&log);
    assert_eq!((faults.len(), faults[20].as_str()), (21, "and 30 faults more"));
    assert_eq!(histories(&log.file()).0[0].total.0, 0);
}

#[test]
fn a_child_frees_what_its_parent_had_at_the_fork_and_an_unknown_free_is_reported() {
    let mut log = LogWriter::default();
    let first = log.process(&Described::default());
    // At 8 units, 16 and 24; that at 24 comes after the fork, and that at 8 goes after it.
    log.records(first, 0, 0, &[block(8, 0), block(8, 0), block(8, 0), free(-16)].concat());
    let child = log.process(&Described { process: 101, parent: first, inherited: 2, ..Described::default() });
    // Its own block, at 40; then those at 40, 8, 24, and 8 again.
    let own = [number(2), block(40, 0), free(0), free(-32), free(16), free(-16)].concat();
    log.records(child, 0, 0, &own);
    // It gives back what its grandparent had, at 16, and what its parent gave back before the fork, at 8.
    let grandchild =
        log.process(&Described { process: 102, parent: child, inherited: 5, ..Described::default() });
    log.records(grandchild, 0, 0, &[free(16), free(-8)].concat());
    let (histories, _) = histories(&log.file());
    let strangers: Vec<u64> = histories.iter().map(|history| history.strangers).collect();
    assert_eq!(strangers, [0, 2, 1]);
    let sums: Vec<_> = histories.iter().map(|history| (history.total.0, history.end.count)).collect();
    assert_eq!(sums, [(3, 2), (1, 0), (0, 0)]);
}

#[test]
fn reading_stops_on_request() {
    let mut log = LogWriter::of_one_process();
    log.stream(0, 0, (0..100_000).map(|_| block(1, 0)));
    let bytes = log.file();
    let read = LogFile::read(&bytes).unwrap();
    let mut reported = 0;
    let whole = read.histories(&mut Stacks::default(), &mut |bytes| {
        reported += bytes;
        ControlFlow::Continue(())
    });
    assert!(whole.is_continue());
    assert_eq!((reported, read.record_bytes), (11 * CHUNK as u64, 11 * CHUNK as u64));
    let mut calls = 0;
    let cut = read.histories(&mut Stacks::default(), &mut |_| {
        calls += 1;
        if calls == 2 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert!(cut.is_break());
    assert_eq!(calls, 2);
}

#[test]
fn programs_that_are_executed_are_told_in_the_order_of_the_events() {
    let one = [block(8, 0), block(8, 0), exec(7, 0, "/bin/b"), exec(7, 1, "/bin/b")].concat();
    let other = [exec(8, 2, "/bin/a"), number(5), block(9, 0)].concat();
    let execs = history(&[one, other]).execs;
    let reported: Vec<(u32, &str, u64)> =
        execs.iter().map(|exec| (exec.process, exec.path.as_str(), exec.number)).collect();
    assert_eq!(reported, [(8, "/bin/a", 0), (7, "/bin/b", 2), (7, "/bin/b", 2)]);
}

#[test]
fn a_chain_of_deep_stacks_takes_no_more_than_a_multiple_of_its_log() {
    // Each stack is in the one before it, and has a block: all of their calls would be the square of their number.
    let stacks = 20_000;
    let mut log = LogWriter::of_one_process();
    log.stream(0, 0, (0..stacks).flat_map(|outer| [node(outer, 1), block(1, outer + 1)]));
    let mut symbols = Symbols::default();
    let (mut histories, stacks) = histories(&log.file());
    let mut values = StackValues::default();
    values.add(&mut histories[0]);
    let profile = profile(&stacks, values, &mut symbols);
    let calls: usize = profile.samples.iter().map(|sample| sample.stack.len()).sum();
    assert!(calls <= 16 << 20, "{calls}");
    assert_eq!(profile.sum().count, 20_000);
}

#[test]
fn overlapping_modules_and_a_fork_for_every_chunk_take_one_step_each() {
    let mut log = LogWriter::of_one_process();
    let modules = (0..30_000u64).map(|low| module(0, low, low + (low % 7) * 1000, "/m"));
    log.stream(0, 0, modules.flat_map(|module| [module, node(0, 1), block(1, 1)]));
    let mut parent = 0;
    for process in 0..300 {
        parent = log.process(&Described { process, parent, inherited: u64::MAX, ..Described::default() });
        log.records(parent, 0, 0, &[free(5), free(1), forget(9)].concat());
    }
    let (histories, stacks) = histories(&log.file());
    assert_eq!((histories.len(), stacks.modules()), (301, 1));
    assert_eq!(histories[0].total.0, 30_000);
    assert!(histories.iter().all(|history| history.faults.is_empty()));
}

proptest! {
    #[test]
    fn no_content_harms(
        records in prop::collection::vec(any::<u8>(), 0..600),
        head in prop::collection::vec(any::<u8>(), 0..140),
        parent in 0u32..4,
        cut in 0usize..350_000,
    ) {
        let mut log = LogWriter::of_one_process();
        log.records(0, 0, 0, &records);
        log.records(0, 1, 0, &[block(3, 0), records.clone()].concat());
        let child = log.process(&Described { parent, inherited: 3, ..Described::default() });
        log.records(child, 0, 0, &records);
        let chunk = log.chunks[child as usize].len().min(head.len());
        log.chunks[child as usize][4..][..chunk].copy_from_slice(&head[..chunk]);
        let mut bytes = log.file();
        bytes.truncate(cut.max(4096));
        let (mut histories, stacks) = histories(&bytes);
        let mut values = StackValues::default();
        for history in &mut histories {
            values.add(history);
        }
        for index in 0..stacks.len() {
            let _ = stacks.call(StackId(index as u32));
        }
        let profile = profile(&stacks, values, &mut Symbols::default());
        prop_assert!(profile.samples.len() <= stacks.len());
    }
}
