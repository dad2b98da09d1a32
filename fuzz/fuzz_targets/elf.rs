//! ELF headers: a file is an ABI's or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_machine::elf;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(facts) = elf::read_bytes(bytes) {
        let _ = (facts.abi(), facts.is_dynamic());
    }
});
