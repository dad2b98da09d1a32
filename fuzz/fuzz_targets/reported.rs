//! The metrics in a program's output: any bytes yield a reading or a reason for each metric.
#![no_main]

use libfuzzer_sys::fuzz_target;
use widthwise_experiment::metric;
use widthwise_experiment::units::Unit;
use widthwise_measure::run::reported;

fuzz_target!(|bytes: &[u8]| {
    let metrics = [
        metric::reported("a", Unit::Nanoseconds, "a"),
        metric::reported("b.c", Unit::Count, "b.c"),
    ];
    let reported = reported::parse(bytes, &metrics);
    assert_eq!(reported.readings.len() + reported.remarks.len(), metrics.len());
    assert!(reported.readings.values().all(|reading| reading.value >= 0.0 && reading.value.is_finite()));
});
