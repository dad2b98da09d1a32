//! Folded stacks: any text is a profile or an error with its line; writing and reading a profile returns the same profile.
#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_anatomy::heap::Column;
use widthwise_anatomy::import::folded::{self, SourceLines};
use widthwise_anatomy::names;

fuzz_target!(|bytes: &[u8]| {
    match folded::read(bytes, Column::PeakBytes) {
        Ok(profile) => {
            for frame in &profile.frames {
                let _ = names::key(&frame.function);
            }
            let written = folded::write(&profile, Column::PeakBytes, SourceLines::Shown);
            let again = folded::read(written.as_bytes(), Column::PeakBytes).expect("what was written");
            assert_eq!(folded::write(&again, Column::PeakBytes, SourceLines::Shown), written);
        }
        Err(error) => assert!(error.to_string().starts_with("line ")),
    }
});
