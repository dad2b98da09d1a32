//! The benchmarks themselves, with so few runs that they mean nothing: they must not rot.

#[path = "../../tests/laboratory/outcomes.rs"]
mod outcomes;

use std::path::Path;
use std::process::Command;

const TITLES: &[&str] = &[
    "Noise of a run",
    "False alarms",
    "Planted slowdowns",
    "Coverage of the intervals",
    "Cost of a run",
    "Peak memory",
    "x32",
    "x32 calls",
    "x32 calls in instructions",
    "Other kernels",
    "Heap recorder",
    "Anatomy",
    "Explained heap differences",
    "Scale",
    "Micro suite",
    "Simulation",
    "Window",
    "peringer-2007",
];

#[test]
fn every_claim_can_be_measured_and_a_quick_look_is_not_written_down() {
    if !outcomes::is_lane("bench-quick") {
        return outcomes::skipped("minutes: `make test-all PARTS=bench-quick` takes this quick look");
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/benchmarks.md");
    let before = std::fs::read(&page).ok();
    let bench = Path::new(env!("CARGO_BIN_EXE_widthwise-bench"));
    let mut command = Command::new(bench);
    command.arg("--quick");
    // In a build of the whole workspace it lies beside this one; otherwise the bench has it built.
    let widthwise = bench.with_file_name("widthwise");
    if widthwise.exists() {
        command.arg("--widthwise").arg(widthwise);
    }
    let printed = command.output().unwrap();
    let text = String::from_utf8_lossy(&printed.stdout);
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    assert!(text.starts_with("**Quick: these numbers mean nothing.**"), "{text}");
    let sections: Vec<&str> = text.split("\n## ").skip(1).collect();
    assert_eq!(sections.len(), TITLES.len(), "{text}");
    for (section, title) in sections.iter().zip(TITLES) {
        assert!(section.starts_with(title), "{title}: {section}");
        for part in ["Threshold: ", "Measured on ", "```sh\ncargo run --release ", "\n| --- | ---: |"] {
            assert!(section.contains(part), "{title} has no {part:?}: {section}");
        }
        assert!(
            section.contains("\n**Passed:** ") ^ section.contains("\n**Failed:** "),
            "{title}: {section}"
        );
        let mut words = section.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        assert!(!words.any(|word| ["NaN", "inf"].contains(&word)), "{title}: {section}");
    }
    assert_eq!(std::fs::read(&page).ok(), before, "a quick look was written to docs/benchmarks.md");
}
