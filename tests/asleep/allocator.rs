//! Claims of `explain` on the allocator: what the system gives a program beside what it asks for, as means over time.

use crate::explain::{binaries, compared, explained, reported};
use crate::laboratory;
use crate::laboratory::alone::asleep;
use crate::laboratory::outcomes::{is_lane, skipped};
use crate::laboratory::Laboratory;
use serde_json::Value;

/// Recordings per variant. The intervals of 6 are a fifth of those of 3 where the spread is equal: on a busy
/// machine the means of one recording in three differ enough for no claim.
const RECORDINGS: &str = "--heap=6";

/// If other programs kept the sampler from its CPU, no sentence may use its samples: the
/// reason for skipping the rest of a test.
fn too_few_looks(text: &str) -> Option<&'static str> {
    let is_withheld =
        text.contains("What the system gives them for the heap is not compared: changing too fast");
    is_withheld.then_some("other programs had the CPUs: the samples hold for less than 80 % of the run")
}

/// Whether what a program requests, on average over its run, differs by a tenth or more between recordings of one variant.
fn recordings_differ(lab: &Laboratory) -> bool {
    let explained = reported(lab);
    ["a", "b"].iter().any(|side| {
        let recordings = explained[side]["recordings"].as_array().unwrap();
        let asked = |one: &Value| one["system"]["asked_bytes"].as_f64();
        let asked: Vec<f64> = recordings.iter().map(|one| asked(one).expect("a mean")).collect();
        let [least, most] = [f64::min, f64::max].map(|of| asked.iter().copied().reduce(of).unwrap());
        most - least >= 0.1 * most
    })
}

#[test]
fn unwritten_memory_is_not_attributed_to_the_allocator() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    binaries(&lab, "-DHALF");
    compared(&lab, "held", &format!("--rounds 1 {RECORDINGS}"));
    let text = explained(&lab, "--heap");
    assert!(text.contains("one and other have the same peak heap"), "{text}");
    assert!(!text.contains("due to the allocator"), "{text}");
    if let Some(reason) = too_few_looks(&text) {
        return skipped(reason);
    }
    assert!(text.contains("The system sees something else"), "{text}");
    assert!(text.contains("The rest was allocated and never written to"), "{text}");
}

#[test]
fn a_longer_phase_is_not_attributed_to_the_allocator() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    binaries(&lab, "-DSTAY=1200");
    compared(&lab, "phases", &format!("--rounds 1 {RECORDINGS}"));
    let text = explained(&lab, "--heap");
    assert!(!text.contains("is due to the allocator") && !text.contains("never written to"), "{text}");
    if let Some(reason) = too_few_looks(&text) {
        return skipped(reason);
    }
    if recordings_differ(&lab) {
        return skipped("other programs had the CPUs: recordings of one variant differ by a tenth");
    }
    // The means differ, since one holds all of its blocks for longer.
    assert!(text.contains("The system sees something else"), "{text}");
    assert!(text.contains("when each has how much makes the rest"), "{text}");
}

/// rauschmayr-2013, section 3.5: stressEvents showed half the memory as x32, and its heap a few per cent less.
#[test]
fn a_reduction_by_the_allocator_is_distinguished_from_one_by_the_abi() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    lab.copy(&laboratory::repository().join("workloads/stress/events.cpp"), "events.cpp");
    let recorded = |more: &str| {
        let words = format!("events.cpp --abi x86-64,x32 --rounds 1 --warmup 0 {more}");
        let output = lab.compare(&words);
        assert_eq!(output.status, Some(0), "{output:?}");
        explained(&lab, "--heap")
    };
    let text = recorded(RECORDINGS);
    if let Some(reason) = too_few_looks(&text) {
        return skipped(reason);
    }
    let reported = reported(&lab);
    let mean = |side: &str, what: &str| {
        let value = reported.pointer(&format!("/{side}/system/{what}_bytes")).and_then(Value::as_f64);
        value.unwrap_or_else(|| panic!("{side} {what}: {reported:#}"))
    };
    let saving = |what: &str| 1.0 - mean("b", what) / mean("a", what);
    assert!((0.4..0.6).contains(&saving("resident")), "{reported:#}");
    assert!((0.0..0.1).contains(&saving("asked")), "{reported:#}");
    // The baskets are nearly all of it.
    assert!((20e6..30e6).contains(&mean("a", "kept_in_heap")), "{reported:#}");
    assert!(mean("b", "kept") < 1e6, "{reported:#}");
    assert!(text.contains("The system sees something else"), "{text}");
    assert!(text.contains("MALLOC_MMAP_THRESHOLD_=131072"), "{text}");
    if !is_lane("more") {
        return skipped("the other threshold's recordings: `make test-all PARTS=more`");
    }
    // With the threshold pinned RSS and heap agree, as far as the recordings of one variant do.
    let text = recorded("--heap=3 --set-env MALLOC_MMAP_THRESHOLD_=131072");
    if let Some(reason) = too_few_looks(&text) {
        return skipped(reason);
    }
    let is_same = text.contains("The system sees the same");
    let is_undecided = text.contains("these recordings do not establish");
    assert!(is_same || is_undecided, "{text}");
}
