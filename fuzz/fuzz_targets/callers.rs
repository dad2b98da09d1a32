//! Functions around allocations: any bytes are a program or nothing, whatever address is asked for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_anatomy::heap::types::callers::{read_bytes, Wanted};
use widthwise_anatomy::heap::types::constructed;

fuzz_target!(|input: (u64, u32, &[u8])| {
    let (address, line, bytes) = input;
    let wanted = [Wanted { address, line: Some(line), frame: 0 }, Wanted { address: 0x1100, line: None, frame: 1 }];
    read_bytes(bytes, &wanted.into_iter().collect());
    constructed::read_bytes(bytes, &[address, 0x1100].into_iter().collect());
});
