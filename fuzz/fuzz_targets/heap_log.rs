//! Heap logs: whatever stands in one, it is read as far as it makes sense, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_anatomy::heap::{History, Log};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(log) = Log::read(bytes) {
        let _ = History::of(&log, &[&log]);
    }
});
