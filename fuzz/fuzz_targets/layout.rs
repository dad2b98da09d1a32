//! Layouts: any bytes are a program or an error; a program's types equal themselves, and every byte of an object has one owner.
#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_anatomy::layout::{self, Part, Weights};

fuzz_target!(|bytes: &[u8]| {
    let Ok(layouts) = layout::read_bytes(bytes) else { return };
    for id in &layouts.aggregates {
        let Some(aggregate) = layouts.aggregate(*id) else { continue };
        let segments = layouts.segments(aggregate, aggregate.size, Part::Whole, None);
        let mut end = 0;
        for segment in segments {
            assert_eq!(segment.offset, end);
            end += segment.size;
        }
        assert_eq!(end, aggregate.size);
    }
    let comparison = layout::compare(&layouts, &layouts, &Weights::new());
    assert!(comparison.differences.is_empty());
});
