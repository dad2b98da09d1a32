//! A plugin host opens and closes the same three libraries again and again, each time somewhere else: its log tells of one
//! load of each, however many there were.

use std::ops::ControlFlow;

use crate::log_writer::{block, forget, free, module, node, LogWriter};
use widthwise_anatomy::heap::{History, LogFile, StackId, Stacks};

const HOST: u64 = 0x40_0000;
const PLUGIN_BYTES: u64 = 0x3000;

/// What a host records that loads plugins: each in a place of its own, a block by each, and the block is given back.
///
/// `forgets`: each closing of a library forgets stacks and modules; else the next library replaces those that it overlaps.
fn records(loads: u64, forgets: bool) -> impl Iterator<Item = Vec<u8>> {
    let host = module(HOST, HOST, HOST + 0x1000, "/srv/host");
    let first = (!forgets).then(|| [host.clone(), node(0, HOST as i64 + 16)].concat());
    let mut nodes = u64::from(!forgets);
    let mut last = HOST + 16;
    first.into_iter().chain((0..loads).flat_map(move |load| {
        // 1999 places, of which neighbours overlap.
        let low = 0x7f00_0000_0000 + (load * 7 % 1999) * 0x1000;
        let mut records = Vec::new();
        if forgets {
            records.push(forget((2 * load).wrapping_sub(1)));
            records.push(host.clone());
            records.push(node(0, HOST as i64 + 16));
            (nodes, last) = (1, HOST + 16);
        }
        records.push(module(low, low, low + PLUGIN_BYTES, &format!("/srv/plugin-{}.so", load % 3)));
        let calls = [low + 0x100, low + 0x200 + load % 2];
        for (outer, call) in [1, nodes + 1].into_iter().zip(calls) {
            records.push(node(outer, call.wrapping_sub(last) as i64));
            last = call;
        }
        nodes += 2;
        records.push(if load == 0 || forgets { block(3, nodes) } else { block(0, nodes) });
        records.push(free(0));
        records
    }))
}

fn read(log: &LogWriter) -> (History, Stacks) {
    let bytes = log.file();
    let file = LogFile::read(&bytes).unwrap();
    assert!(file.faults.is_empty(), "{:?}", file.faults);
    let mut stacks = Stacks::default();
    let mut read_bytes = 0;
    let histories = file.histories(&mut stacks, &mut |bytes| {
        read_bytes += bytes;
        ControlFlow::Continue(())
    });
    assert_eq!(read_bytes, file.record_bytes, "each chunk is read once");
    let history = histories.continue_value().unwrap().remove(0);
    assert_eq!(history.faults, Vec::<String>::new());
    (history, stacks)
}

fn host(loads: u64, forgets: bool) -> (History, Stacks) {
    let mut log = LogWriter::of_one_process();
    log.stream(0, 0, records(loads, forgets));
    read(&log)
}

/// The object files and addresses of a stack's calls, the innermost first.
fn calls(stacks: &Stacks, stack: StackId) -> Vec<(String, u64)> {
    let mut calls = Vec::new();
    let mut at = stack;
    while let Some((code, outer)) = stacks.call(at) {
        let path = code.module.and_then(|module| stacks.path(module));
        calls.push((path.unwrap_or("none").to_owned(), code.address));
        at = outer;
    }
    calls
}

#[test]
fn twenty_thousand_loads_of_three_plugins_have_the_stacks_of_six() {
    for forgets in [false, true] {
        let (few, few_stacks) = host(6, forgets);
        let (many, many_stacks) = host(20_000, forgets);
        assert_eq!((few.total.0, many.total.0, many.strangers), (6, 20_000, 0), "forgets: {forgets}");
        assert_eq!((few_stacks.modules(), many_stacks.modules()), (4, 4), "forgets: {forgets}");
        // The host's call, one of each plugin, and two of each within that.
        assert_eq!((few_stacks.len(), many_stacks.len()), (2 + 10, 2 + 10), "forgets: {forgets}");
        assert_eq!(many.stacks.len(), 6, "forgets: {forgets}");
        let mut all: Vec<_> =
            many.stacks.iter().map(|(stack, blocks)| (calls(&many_stacks, *stack), blocks.count)).collect();
        all.sort();
        for (index, (calls, count)) in all.iter().enumerate() {
            let plugin = format!("/srv/plugin-{}.so", index / 2);
            let expected =
                [(plugin.clone(), 0x200 + index as u64 % 2), (plugin, 0x100), ("/srv/host".to_owned(), 16)];
            assert_eq!(calls, &expected, "forgets: {forgets}");
            assert!((3333..=3334).contains(count), "forgets: {forgets}: {count}");
        }
    }
}

#[test]
fn each_of_twenty_thousand_libraries_that_stay_loaded_is_found_by_its_addresses() {
    let loads = 20_000u64;
    let mut last = 0;
    let low = |load: u64| 0x1000_0000 + load * 0x1000;
    let load = (0..loads).map(|load| module(low(load), low(load), low(load + 1), &format!("/lib/{load}")));
    let calls = (0..loads).flat_map(|call| {
        // Not in the order in which they were loaded.
        let address = low(call * 7 % loads) + 0xfff;
        let distance = address as i64 - last;
        last = address as i64;
        [node(0, distance), block(1, call + 1)]
    });
    let mut log = LogWriter::of_one_process();
    log.stream(0, 0, load.chain(calls));
    let (history, stacks) = read(&log);
    assert_eq!((stacks.modules(), history.stacks.len()), (20_000, 20_000));
    for (index, (stack, blocks)) in (0..loads).zip(&history.stacks) {
        assert_eq!(self::calls(&stacks, *stack), [(format!("/lib/{}", index * 7 % loads), 0xfff)]);
        assert_eq!(blocks.count, 1);
    }
}
