//! The code of a file: any bytes are an error, or instructions that sum to the decoded bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_anatomy::code;
use widthwise_anatomy::elf::Elf;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(elf) = Elf::read(bytes) {
        if let Ok(code) = code::read(&elf, &elf.named()) {
            let total = code.total();
            assert!(total.instructions <= total.bytes && total.nop_bytes <= total.bytes);
        }
    }
});
