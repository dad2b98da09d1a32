//! Heap logs: any bytes are read as far as possible, without a panic.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use widthwise_anatomy::heap::executed::{without_log, Executing};
use widthwise_anatomy::heap::{LogFile, StackValues, Stacks};

fuzz_target!(|bytes: &[u8]| {
    let Ok(log) = LogFile::read(bytes) else { return };
    let mut stacks = Stacks::default();
    let read = log.histories(&mut stacks, &mut |_| ControlFlow::Continue(()));
    let ControlFlow::Continue(mut histories) = read else { return };
    let mut values = StackValues::default();
    for history in &mut histories {
        values.add(history);
    }
    let processes = log.processes.iter().zip(&histories);
    let all: Vec<Executing> = processes
        .map(|(process, history)| Executing { header: &process.header, execs: &history.execs })
        .collect();
    let _ = without_log(&all);
});
