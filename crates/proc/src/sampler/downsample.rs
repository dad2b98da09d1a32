//! Downsamples a long series: keeps the highest and the lowest of each stretch.

use widthwise_experiment::memory::{Reading, StatmSample};

/// A series of more than twice as many readings is downsampled to this number; statm samples likewise.
pub const MOST_READINGS: usize = 400;
/// See [`MOST_READINGS`].
pub const MOST_STATM_SAMPLES: usize = 4000;

/// Adds a statm sample; of a stretch of equal samples of a process, only the first and the last stay.
pub fn push_statm_sample(statm_samples: &mut Vec<StatmSample>, new: StatmSample) {
    // The last samples of this process: in a tree of a few processes they are near the end.
    let mut own =
        statm_samples.iter_mut().rev().take(16).filter(|statm_sample| statm_sample.process == new.process);
    let same = |statm_sample: &StatmSample| {
        (statm_sample.resident, statm_sample.anonymous, statm_sample.virtual_bytes)
    };
    if let (Some(last), Some(before)) = (own.next(), own.next()) {
        if same(last) == same(&new) && same(before) == same(&new) {
            last.at_ns = new.at_ns;
            // Downsampling restores the order of time.
            return;
        }
    }
    statm_samples.push(new);
}

/// Adds a reading; of a stretch of equal readings, only the first and the last stay.
pub fn push_reading(readings: &mut Vec<Reading>, new: Reading) {
    let same = |a: &Reading, b: &Reading| {
        a.full == b.full && a.tree == b.tree && a.processes == b.processes && a.parts == b.parts
    };
    let count = readings.len();
    if count >= 2 && same(&readings[count - 1], &new) && same(&readings[count - 2], &new) {
        readings[count - 1].at_ns = new.at_ns;
    } else {
        readings.push(new);
    }
}

/// Downsamples smaps snapshots and pagemap scans separately: data that only snapshots have must not be lost.
pub fn downsampled_readings(readings: &[Reading]) -> Vec<Reading> {
    let (full, pagemap_scans): (Vec<Reading>, Vec<Reading>) =
        readings.iter().cloned().partition(|reading| reading.full);
    let height = |reading: &Reading| reading.tree.amounts.resident;
    let mut all = downsampled(&full, MOST_READINGS / 2, height);
    all.extend(downsampled(&pagemap_scans, MOST_READINGS / 2, height));
    all.sort_by_key(|reading| reading.at_ns);
    all
}

/// About `most` of the items, in order: the lowest and the highest of each stretch.
pub fn downsampled<T: Clone>(items: &[T], most: usize, height: impl Fn(&T) -> u64) -> Vec<T> {
    if items.len() <= most.max(2) {
        return items.to_vec();
    }
    let stretch = (2 * items.len()).div_ceil(most.max(2));
    let mut kept = Vec::with_capacity(most + 2);
    for part in items.chunks(stretch) {
        let heights = || part.iter().enumerate().map(|(at, item)| (height(item), at));
        let (Some((_, low)), Some((_, high))) = (heights().min(), heights().max()) else { continue };
        kept.push(part[low.min(high)].clone());
        if low != high {
            kept.push(part[low.max(high)].clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downsampling_keeps_the_highest_and_the_lowest() {
        let heights: Vec<u64> = (0..10_000).map(|i| if i == 5_555 { 99 } else { 10 + i % 3 }).collect();
        let kept = downsampled(&heights, 400, |height| *height);
        assert!(kept.len() <= 402 && kept.contains(&99) && kept.contains(&10), "{}", kept.len());
        assert_eq!(downsampled(&heights[..100], 400, |height| *height), heights[..100]);
    }

    #[test]
    fn a_process_of_constant_size_needs_no_space() {
        let mut statm_samples = Vec::new();
        for at_ns in 0..1000 {
            for process in 0..2 {
                push_statm_sample(
                    &mut statm_samples,
                    StatmSample { at_ns, process, resident: 1, anonymous: 1, virtual_bytes: 1 },
                );
            }
        }
        assert_eq!(statm_samples.len(), 4);
        assert_eq!(statm_samples.iter().map(|statm_sample| statm_sample.at_ns).max(), Some(999));
    }
}
