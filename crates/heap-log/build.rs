//! Generates the layout of the heap log from the header that the recorder (`runtime/heap`) is compiled with.

use std::path::Path;

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("Cargo sets CARGO_MANIFEST_DIR");
    widthwise_layout::generate(&Path::new(&folder).join("../../runtime/heap/log.h"));
}
