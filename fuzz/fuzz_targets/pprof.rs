//! pprof files: any bytes are a profile or an error, and a profile is the same after it was written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_anatomy::import::pprof;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(profile) = pprof::read(bytes) {
        let again = pprof::read(&pprof::write(&profile)).expect("what was written");
        assert_eq!(again.samples.len(), profile.samples.len());
    }
});
