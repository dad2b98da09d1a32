//! heaptrack's files: any bytes are a recording or an error. A good first seed is the unpacked
//! `crates/anatomy/tests/recordings/heaptrack.steps.1.zst`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_anatomy::import::heaptrack;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(recording) = heaptrack::read(bytes) {
        let sum = recording.profile.sum();
        assert!(sum.peak_count <= sum.count && sum.live_count <= sum.count);
    }
});
