//! What the timed rounds say of the CPU time of two variants: counts are interpreted only where it differs.

use crate::campaign::{laid, BASELINE, DIFFERENT, SLOW};
use widthwise_experiment::outcome::Source;
use widthwise_verdict::Word;

#[test]
fn the_direction_is_that_of_the_second_variant_and_only_a_verdict_has_one() {
    let mut laid = laid(42);
    let word = |laid: &mut crate::campaign::Laid, word: Word| {
        let verdicts = &mut laid.judgement.verdicts;
        let cpu = verdicts.iter_mut().find(|one| one.variant == SLOW && one.metric.name == "cpu");
        cpu.expect("a verdict").word = word;
    };
    for (given, there, back) in [
        (Word::Higher, 1, -1),
        (Word::Lower, -1, 1),
        (Word::Inconclusive, 0, 0),
        (Word::NoDifference, 0, 0),
        (Word::Withheld, 0, 0),
    ] {
        word(&mut laid, given);
        let comparison = laid.comparison();
        let [found, reversed] = [(BASELINE, SLOW), (SLOW, BASELINE)].map(|(a, b)| comparison.cpu_time(a, b));
        assert_eq!((found.direction, reversed.direction), (there, back), "{given}");
        assert!(found.says.contains(SLOW), "{}", found.says);
    }
    // The campaign compares neither with the other.
    let none = laid.comparison().cpu_time(SLOW, DIFFERENT);
    assert_eq!(none.direction, 0);
    assert_eq!(none.says, "the campaign has no verdict on these two");
}

#[test]
fn only_hardware_counters_with_a_verdict_are_listed() {
    let mut laid = laid(42);
    let set = |laid: &mut crate::campaign::Laid, source, word| {
        let verdicts = &mut laid.judgement.verdicts;
        let other = verdicts.iter_mut().find(|one| one.variant == SLOW && one.metric.name == "wall");
        let other = other.expect("a verdict");
        (other.source, other.word) = (Some(source), word);
    };
    set(&mut laid, Source::Hardware, Word::Higher);
    assert_eq!(laid.comparison().cpu_time(BASELINE, SLOW).counters.len(), 1);
    set(&mut laid, Source::Hardware, Word::Inconclusive);
    assert!(laid.comparison().cpu_time(BASELINE, SLOW).counters.is_empty());
    set(&mut laid, Source::Emulated, Word::Higher);
    assert!(laid.comparison().cpu_time(BASELINE, SLOW).counters.is_empty());
}
