//! The RSS of a heap in a recorded run: its samples, and for how long of the run each is known to be valid.

use widthwise_experiment::memory::{Amounts, Class, Reading, Series};

use crate::passes::heap::recording::{LargestReading, PartBytes, SystemMoment};

/// Two sizes that differ by less than this share are equal.
const SAME: f64 = 0.01;
/// So are two that differ by less than this: the kernel counts resident pages per CPU, in batches (proc(5),
/// statm).
const BATCHES: u64 = 256 << 10;

/// The heap's RSS in the readings of a series.
pub fn moments(series: &Series) -> Vec<SystemMoment> {
    let moment = |(reading, valid_ns): (&Reading, u64)| {
        let of = |class| series.of_class(reading, class).resident;
        SystemMoment {
            at_ns: reading.at_ns,
            heap: of(Class::Heap),
            mmapped: of(Class::Mmapped),
            resident: reading.tree.amounts.resident.saturating_sub(of(Class::Recorder)),
            huge: reading.tree.huge,
            valid_ns: Some(valid_ns),
        }
    };
    series.readings.iter().zip(valid_ns(series)).map(moment).collect()
}

/// Readings of at least this share of the largest one are as large.
const AS_LARGE: f64 = 0.999;

/// The reading with the largest RSS, by use, without the recorder's; none without a reading. The stack of a thread that ran
/// while it was read counts as a mapping: of several readings as large, the one with the fewest bytes of mappings is taken.
pub fn largest(series: &Series) -> Option<LargestReading> {
    let own = |reading: &Reading| {
        reading.tree.amounts.resident.saturating_sub(series.of_class(reading, Class::Recorder).resident)
    };
    let most = series.readings.iter().map(own).max()?;
    let as_large = series.readings.iter().filter(|reading| own(reading) as f64 >= AS_LARGE * most as f64);
    let reading = as_large.min_by_key(|reading| series.of_class(reading, Class::Mmapped).resident)?;
    let part = |(index, amounts): &(usize, Amounts)| {
        let part = series.parts.get(*index)?;
        (part.class != Class::Recorder && amounts.resident > 0).then(|| PartBytes {
            class: part.class.name().to_owned(),
            name: part.name.clone(),
            bytes: amounts.resident,
        })
    };
    let parts = reading.parts.iter().filter_map(part).collect();
    Some(LargestReading { processes: reading.processes.len(), parts })
}

/// How long all readings together are valid.
pub fn held_ns(series: &Series) -> u64 {
    valid_ns(series).iter().sum()
}

/// How long each reading is valid: from its own time until the size of the tree was last seen to be the same.
fn valid_ns(series: &Series) -> Vec<u64> {
    let levels = series.levels();
    let of = |(place, reading): (usize, &Reading)| {
        let size = reading.tree.amounts.resident;
        let tolerance = ((size as f64 * SAME) as u64).max(BATCHES);
        let next = series.readings.get(place + 1).map_or(u64::MAX, |next| next.at_ns);
        let first = levels.partition_point(|level| level.at_ns < reading.at_ns);
        let same = levels[first..]
            .iter()
            .take_while(|level| level.at_ns <= next && level.resident.abs_diff(size) <= tolerance);
        same.last().map_or(0, |last| last.at_ns.saturating_sub(reading.at_ns))
    };
    series.readings.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use widthwise_experiment::memory::{Part, Process, StatmSample, Totals};

    const MB: u64 = 1_000_000;

    fn series(readings: &[(u64, u64)], statm_samples: &[(u64, u64)]) -> Series {
        let reading = |(at_ns, resident): &(u64, u64)| {
            let amounts = Amounts { resident: resident * MB, ..Amounts::default() };
            Reading { at_ns: *at_ns, tree: Totals { amounts, ..Totals::default() }, ..Reading::default() }
        };
        let statm_sample = |(at_ns, resident): &(u64, u64)| StatmSample {
            at_ns: *at_ns,
            process: 0,
            resident: resident * MB,
            anonymous: 0,
            virtual_bytes: 0,
        };
        Series {
            wall_ns: 100,
            processes: vec![Process { pid: 7, parent: 1, name: "x".into(), began_ns: 0, ended_ns: 100 }],
            readings: readings.iter().map(reading).collect(),
            statm_samples: statm_samples.iter().map(statm_sample).collect(),
            ..Series::default()
        }
    }

    #[test]
    fn a_reading_is_valid_while_samples_show_the_same_size() {
        assert_eq!(held_ns(&series(&[(10, 50)], &[(20, 50), (60, 50), (70, 90), (80, 50)])), 50);
        // The next reading is one more sample of the size.
        assert_eq!(held_ns(&series(&[(10, 50), (40, 50), (90, 80)], &[])), 30);
    }

    #[test]
    fn a_moment_has_the_huge_pages_of_its_reading() {
        let mut series = series(&[(10, 50)], &[]);
        series.readings[0].tree.huge = 2 << 20;
        assert_eq!(moments(&series)[0].huge, 2 << 20);
    }

    #[test]
    fn the_largest_reading_has_every_use_but_the_recorder() {
        let part = |class, name: &str| Part { class, name: name.to_owned() };
        let amounts = |resident| Amounts { resident, ..Amounts::default() };
        let reading = |at_ns, heap, recorder| Reading {
            at_ns,
            tree: Totals { amounts: amounts(heap + recorder + 3), ..Totals::default() },
            processes: vec![(0, Totals::default())],
            parts: vec![(0, amounts(heap)), (1, amounts(recorder)), (2, amounts(3))],
            ..Reading::default()
        };
        let series = Series {
            parts: vec![part(Class::Heap, ""), part(Class::Recorder, ""), part(Class::Library, "libc.so.6")],
            // The recorder's memory decides nothing.
            readings: vec![reading(1, 10, 500), reading(2, 90, 5), reading(3, 90, 6)],
            ..Series::default()
        };
        let largest = largest(&series).unwrap();
        let shown: Vec<(&str, &str, u64)> =
            largest.parts.iter().map(|one| (one.class.as_str(), one.name.as_str(), one.bytes)).collect();
        assert_eq!(shown, [("heap", "", 90), ("library", "libc.so.6", 3)]);
        assert_eq!(largest.processes, 1);
    }

    #[test]
    fn a_reading_that_knows_the_stacks_of_all_threads_is_taken_of_two_as_large() {
        let part = |class| Part { class, name: String::new() };
        let amounts = |resident| Amounts { resident, ..Amounts::default() };
        let reading = |mapped, stacks| Reading {
            tree: Totals { amounts: amounts(mapped + stacks), ..Totals::default() },
            parts: vec![(0, amounts(mapped)), (1, amounts(stacks))],
            ..Reading::default()
        };
        let series = Series {
            parts: vec![part(Class::Mmapped), part(Class::Stack)],
            readings: vec![reading(2001, 14_000), reading(1, 16_000), reading(0, 9_000)],
            ..Series::default()
        };
        let largest = largest(&series).unwrap();
        assert_eq!(largest.parts.iter().map(|one| one.bytes).collect::<Vec<_>>(), [1, 16_000]);
    }

    #[test]
    fn a_reading_that_no_sample_confirms_is_valid_for_no_time() {
        assert_eq!(held_ns(&series(&[(10, 50), (60, 90)], &[])), 0);
        assert_eq!(held_ns(&Series::default()), 0);
    }
}
