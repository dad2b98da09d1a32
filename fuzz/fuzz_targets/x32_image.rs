//! The x32 runtime's reading of a program: whatever a file holds, it is refused, or what the loader maps by is true.
#![no_main]

use libfuzzer_sys::fuzz_target;

extern "C" {
    fn x32_image(bytes: *const u8, size: usize) -> i32;
}

fuzz_target!(|bytes: &[u8]| {
    // SAFETY: the C code reads `size` bytes and keeps nothing.
    unsafe { x32_image(bytes.as_ptr(), bytes.len()) };
});
