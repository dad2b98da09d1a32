//! Kernels: any bytes are a bzImage whose compressed kernel lies in the file, or an error. A good first seed is a
//! kernel of `/boot`, cut off after 4096 bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_machine::bzimage::{has_direct_entry, read_bytes, Compression};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(image) = read_bytes(bytes) {
        assert!(image.payload.end <= bytes.len());
        let _ = Compression::of(&bytes[image.payload]);
    }
    let _ = has_direct_entry(bytes);
});
