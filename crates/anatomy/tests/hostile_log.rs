//! A heap log is foreign: it may be cut off, mixed up, or made to do harm.

use proptest::prelude::*;
use widthwise_anatomy::heap::{History, Log, StackId};

/// The header of a log without anything in it.
fn header() -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bytes[..8].copy_from_slice(b"\x89WWHEAP\n");
    bytes[8] = 2;
    bytes[10] = 8;
    bytes[12] = 62;
    bytes[20..24].copy_from_slice(&65536u32.to_le_bytes());
    bytes[48] = 16;
    bytes
}

fn chunk(stream: u32, index: u32, records: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0x4b4e_4843, stream, index, 0] {
        bytes.extend(u32::to_le_bytes(word));
    }
    bytes.extend(records);
    bytes.resize(65536, 0);
    bytes
}

fn log(chunks: &[Vec<u8>]) -> Vec<u8> {
    [header(), chunks.concat()].concat()
}

/// A block of 16 bytes, 8 to spare, at 8 * `distance` beyond the address before it.
fn comes(distance: u8) -> Vec<u8> {
    vec![2 | 1 << 3, distance << 1, 7, 0, 16, 8 << 2, 0]
}

#[test]
fn blocks_come_and_go_and_the_most_there_was_is_known() {
    let records = [comes(8), comes(8), vec![3], comes(4)].concat();
    let bytes = log(&[chunk(0, 0, &records)]);
    let history = History::of(&Log::read(&bytes).unwrap(), &[]);
    assert_eq!(history.faults, Vec::<String>::new());
    assert_eq!(history.total, (3, 48));
    assert_eq!((history.peak.count, history.peak.bytes, history.peak.main_bytes), (2, 32, 64));
    assert_eq!((history.end.count, history.end.bytes), (2, 32));
    let blocks = &history.stacks[StackId::NONE.0 as usize];
    assert_eq!((blocks.count, blocks.peak_count, blocks.live_count), (3, 2, 2));
}

#[test]
fn the_events_of_two_threads_are_put_in_order_by_their_numbers() {
    // Thread 0 has the events 0 and 3, thread 1 the events 1 and 2: it takes over the address of the first block.
    let one = [comes(8), vec![3 | 0x40, 2]].concat();
    let gap = vec![2 | 1 << 3 | 0x40, 1, 16, 7, 0, 16, 32, 0];
    let other = [gap, vec![3]].concat();
    let bytes = log(&[chunk(0, 0, &one), chunk(1, 0, &other)]);
    let history = History::of(&Log::read(&bytes).unwrap(), &[]);
    // The second thread's block has the address of the first one, which had not gone yet: that release was not seen, and
    // the release that was is of nobody's block.
    assert_eq!((history.total.0, history.strangers, history.end.count), (2, 1, 0), "{history:?}");
}

#[test]
fn a_stream_that_lacks_a_chunk_is_read_up_to_there_and_that_is_said() {
    let bytes = log(&[chunk(0, 0, &comes(8)), chunk(0, 2, &comes(8)), chunk(1, 1, &comes(8))]);
    let history = History::of(&Log::read(&bytes).unwrap(), &[]);
    assert_eq!(history.total.0, 1);
    assert_eq!(history.faults.len(), 2, "{:?}", history.faults);
}

#[test]
fn of_a_chunk_and_its_unfinished_copy_the_chunk_counts_and_of_a_whole_copy_the_copy() {
    let blocks = |count: usize| vec![comes(8); count].concat();
    let full = chunk(0, 0, &blocks(3));
    let unfinished = chunk(0, 0, &blocks(1));
    let mut put_away = full.clone();
    put_away[12] = 1;
    let next = chunk(0, 1, &blocks(5));
    for (chunks, total) in [
        (vec![full.clone(), unfinished.clone()], 3),
        (vec![full.clone(), vec![0; 65536]], 3),
        (vec![full.clone(), full.clone()], 3),
        (vec![put_away, full.clone()], 3),
        (vec![next, full], 8),
    ] {
        let bytes = log(&chunks);
        let history = History::of(&Log::read(&bytes).unwrap(), &[]);
        assert_eq!((history.total.0, history.faults.len()), (total, 0), "{:?}", history.faults);
    }
}

#[test]
fn what_no_recorder_writes_ends_its_stream_and_is_said() {
    for records in
        [vec![5], vec![1, 9], vec![4, 99], vec![4, 1, 77, 2], vec![4, 7, 1, 1, 0, 0, 0], vec![0x7f; 20]]
    {
        let bytes = log(&[chunk(0, 0, &[comes(8), records.clone()].concat())]);
        let history = History::of(&Log::read(&bytes).unwrap(), &[]);
        assert_eq!(history.total.0, 1, "{records:?}");
        assert_eq!(history.faults.len(), 1, "{records:?}");
    }
}

proptest! {
    #[test]
    fn no_content_harms(records in prop::collection::vec(any::<u8>(), 0..600), cut in 0usize..140_000) {
        let mut bytes = log(&[chunk(0, 0, &records), chunk(1, 0, &records)]);
        bytes.truncate(cut.max(4096));
        let log = Log::read(&bytes).unwrap();
        let history = History::of(&log, &[&log]);
        for index in 0..history.places.len() {
            let _ = history.places.call(StackId(index as u32));
        }
    }
}
