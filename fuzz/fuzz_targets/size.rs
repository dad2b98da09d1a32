//! The size of a file: any bytes are an error, or rows that sum to their number, by symbol and by compile unit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_anatomy::debug::{self, Sections};
use widthwise_anatomy::elf::Elf;
use widthwise_anatomy::size::{self, inlined, waste};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(elf) = Elf::read(bytes) {
        let _ = elf.dynamic();
        let named = elf.named();
        let sum: u64 = size::read(&elf, &named).rows.iter().map(|row| row.bytes).sum();
        assert_eq!(sum, bytes.len() as u64);
        let sections = Sections::of(&elf);
        let units = debug::read(&sections, 1);
        let rows = size::units(&elf, &named, &sections, &units);
        assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), bytes.len() as u64);
        let _ = inlined::origins(&elf, &named, &units);
        let _ = waste::find(&elf, &named);
    }
});
