//! massif's files: any bytes are a recording or an error with its line. A good first seed is
//! `crates/anatomy/tests/recordings/massif.out.1`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_anatomy::import::massif;

fuzz_target!(|bytes: &[u8]| {
    match massif::read(bytes) {
        Ok(recording) => assert!(recording.detailed.is_none_or(|point| point.bytes <= recording.peak.bytes)),
        Err(error) => assert!(error.to_string().starts_with("line ")),
    }
});
