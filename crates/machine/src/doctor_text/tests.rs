use super::*;
use crate::doctor::tests::lacking;
use crate::doctor::NoiseFloor;
use crate::unavailable::Unavailable;

fn about<'a>(lines: &'a [Line], word: &str) -> &'a Line {
    lines.iter().find(|line| line.word == word).unwrap()
}

#[test]
fn the_diagnosis_reads_as_a_table() {
    let mut diagnosis = lacking();
    let entry = |what: &str, fix: &str| Missing {
        what: what.into(),
        unavailable: Unavailable { reason: "not here".into(), fix: Some(fix.into()) },
    };
    diagnosis.missing = vec![
        entry("clang-14 for i386", "apt-get install gcc-12-multilib libc6-dev-i386"),
        entry("QEMU", "apt-get install qemu-system-x86"),
        entry("starting x32", "boot another kernel"),
        Missing {
            what: "valgrind for x32".into(),
            unavailable: Unavailable::permanent("it ended without a word"),
        },
    ];
    let golden = include_str!("../../tests/fixtures/doctor.txt");
    assert_eq!(render(&diagnosis), golden, "\n{}", render(&diagnosis));
}

#[test]
fn marks_distinguish_available_from_missing() {
    let lines = lines(&lacking());
    let mark = |word| about(&lines, word).mark;
    assert_eq!((mark("x86-64"), mark("x32"), mark("i386")), (Mark::Good, Mark::Lacking, Mark::Lacking));
    assert_eq!((mark("LTO"), mark("PGO")), (Mark::Good, Mark::Lacking));
    assert_eq!((mark("noise"), mark("topology")), (Mark::Good, Mark::Info));
}

#[test]
fn an_abi_with_one_language_says_which() {
    let mut diagnosis = lacking();
    diagnosis.abilities.retain(|ability| ability.compiler == "gcc-12");
    for ability in diagnosis.abilities.iter_mut().filter(|a| a.abi == "i386" && a.language == Language::Cxx) {
        ability.builds = Err(Unavailable::permanent("g++ 12.2.0 is not here"));
    }
    let lines = lines(&diagnosis);
    assert_eq!(about(&lines, "i386").detail, "gcc-12 (C only); gcc-12 C++: g++ 12.2.0 is not here");
    assert_eq!(about(&lines, "i386").state, "builds, runs");
}

#[test]
fn without_a_compiler_the_reason_is_the_missing_compiler() {
    let mut diagnosis = lacking();
    diagnosis.machine.compilers.clear();
    diagnosis.abilities.clear();
    diagnosis.techniques.clear();
    let lines = lines(&diagnosis);
    let x86_64 = about(&lines, "x86-64");
    assert_eq!((x86_64.state.as_str(), x86_64.detail.as_str()), ("does not build", "there is no compiler"));
    assert!(lines.iter().all(|line| line.word != "LTO"));
}

#[test]
fn a_measured_floor_or_why_there_is_none_is_shown_before_all_other_noise() {
    let mut diagnosis = lacking();
    diagnosis.no_noise_floor = Some("1 round is too few".to_owned());
    let detail = about(&lines(&diagnosis), "noise").detail.clone();
    assert!(detail.starts_with("no A/A floor (1 round is too few), steal 0.3 %"), "{detail}");
    diagnosis.noise_floor = Some(NoiseFloor { metric: "cpu".into(), share: 0.009, seconds: 60.0 });
    let lines = lines(&diagnosis);
    assert!(about(&lines, "noise").detail.starts_with("A/A floor 0.9 % cpu (60 s test), steal 0.3 %"));
}

#[test]
fn names_from_firmware_do_not_move_the_cursor() {
    let text = render(&lacking());
    assert!(text.contains("Some ?[31mCPU"));
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn sizes_are_in_powers_of_two() {
    assert_eq!(binary(32 << 20), "32 MiB");
    assert_eq!(binary((1 << 20) + (1 << 18)), "1.2 MiB");
    assert_eq!(binary(25_274_000_000), "23.5 GiB");
    assert_eq!(binary(512), "512 B");
}
