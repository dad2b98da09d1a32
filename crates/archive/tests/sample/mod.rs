//! A small campaign with known numbers, for the tests and for the writer process.

#![allow(dead_code)]

use std::collections::BTreeMap;

use widthwise_archive::{Metadata, ProcessNote, VariantRow};
use widthwise_experiment::outcome::{Ending, Noise, Reading, Round, RoundKind, Run, Source};
use widthwise_experiment::Role;

/// The variants of the sample, in their order.
pub const VARIANTS: [&str; 3] = ["x86-64/-O2", "x32/-O2", "x86-64/-O2 control"];

/// The metadata of the sample.
pub fn metadata() -> Metadata {
    Metadata {
        created: "2026-11-21T10:20:30+01:00".into(),
        widthwise: "0.1.0".into(),
        command: vec!["widthwise".into(), "compare".into(), "tree.cpp".into(), "--".into(), "100 000".into()],
        program: "tree".into(),
        program_version: "3.40.1".into(),
        spec: "[program]\nname = \"tree\"\n".into(),
        seed: u64::MAX - 5,
        machine: serde_json::json!({ "kernel": "6.1", "cores": [0, 1] }),
        fingerprint: BTreeMap::from([
            ("source".into(), "0f1e2d3c4b5a69788796a5b4c3d2e1f0".into()),
            ("compiler gcc-12".into(), "12.2.0".into()),
            ("input bench.lua".into(), "00112233445566778899aabbccddeeff".into()),
        ]),
        scaling: None,
        variants: vec![
            VariantRow::new(VARIANTS[0], Role::Baseline),
            VariantRow::new(VARIANTS[1], Role::Variant),
            VariantRow::new(VARIANTS[2], Role::Control),
        ],
    }
}

/// A run that ended well, with as many readings as a real one has.
pub fn run(round: u32, position: u32, variant: &str) -> Run {
    let time = |value: f64| Reading::whole(value, Source::Taskstats);
    let cpu = 1e6 * (100.0 + f64::from(round)) * if variant.starts_with("x32") { 0.5 } else { 1.0 };
    Run {
        variant: variant.into(),
        round,
        position,
        began_ns: u64::from(round) * 1_000_000 + u64::from(position),
        ending: Ending::Done,
        sample: BTreeMap::from([
            ("cpu", time(cpu)),
            ("wall", Reading::whole(cpu * 1.1, Source::Clock)),
            ("user", time(cpu * 0.9)),
            ("system", time(cpu * 0.1)),
            ("max_rss", Reading::whole(13.9e6, Source::ExitStop)),
            ("peak_virtual", Reading::whole(99.5e6, Source::ExitStop)),
            ("page_faults", Reading::whole(3214.0, Source::Rusage)),
            ("minor_faults", Reading::whole(3210.0, Source::Rusage)),
            ("major_faults", Reading::whole(4.0, Source::Rusage)),
            ("voluntary_switches", Reading::whole(2.0, Source::Rusage)),
            ("involuntary_switches", Reading::whole(0.0, Source::Rusage)),
            ("cycles", Reading { value: 12345.0, source: Source::Hardware, coverage: 0.75, upper: None }),
        ]),
        output_digest: Some("5d41402abc4b2a76".into()),
    }
}

/// The processes of such a run: the program, and two of a kind that it starts.
pub fn processes(variant: &str) -> Vec<ProcessNote> {
    let note = |comm: &str, count, max_rss_bytes| ProcessNote {
        variant: variant.into(),
        comm: comm.into(),
        count,
        max_rss_bytes,
        cpu_ns: 5e6,
        source: "taskstats".into(),
    };
    vec![note("tree", 1, 13.9e6), note("leaf", 2, 1.5e6)]
}

/// The end of a timed round.
pub fn timed(number: u32) -> Round {
    let noise = Noise {
        steal: 0.004,
        pressure: Some(0.125),
        others: 0.01,
        others_ns: Some(12_000_000),
        throttled: 3,
    };
    Round { number, kind: RoundKind::Timed, cpu: Some(1), noise, layout: None }
}
