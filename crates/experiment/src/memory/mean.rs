//! The mean over time of a process tree's resident memory, as two bounds.
//!
//! A statm sample has the size of one process, and does not say which pages it shares with others. Between two moments at
//! which the tree's size is known, the samples say how each process grew or shrank. That bounds what the tree gained or lost.
//! A page that is copied after a fork leaves the size of every process as it was.

use std::collections::BTreeMap;

use super::{Class, Process, Series};

/// The kernel's counters of a process may be off by so much (percpu_counter_read_positive: 31 pages for each CPU and kind).
const COUNTED: u64 = 256 << 10;
/// Moments of several processes that are evaluated, at most.
const MOST_MOMENTS: u64 = 2000;

/// What is known of the tree's resident memory from one moment on.
#[derive(Debug, Clone, Copy)]
struct Known {
    at_ns: u64,
    low: u64,
    high: u64,
}

/// Bytes of one process.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    resident: u64,
    anonymous: u64,
}

/// What is known of a process that is there.
#[derive(Debug, Clone, Copy)]
enum Presence {
    /// It has begun, and this is the first size that was read, later.
    Unread(Size),
    /// The last size that was read.
    Read(Size),
}

/// The processes that are there at one moment, by index.
type Present = BTreeMap<usize, Presence>;

/// A moment at which the tree's size was read.
struct Anchor {
    at_ns: u64,
    low: u64,
    high: u64,
    present: Present,
}

/// How much the tree may have grown from one moment to a later one.
#[derive(Debug, Clone, Copy, Default)]
struct Growth {
    least: i64,
    most: i64,
}

/// The mean over time of the tree's resident memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// At least so much.
    pub low: f64,
    /// At most so much, if no peak was missed.
    pub high: f64,
    /// The largest size that the tree surely had at one of the moments.
    pub largest: u64,
}

impl Series {
    /// The mean over time, without the x32 runtime's own memory. What is known at a moment holds until the next; of the time
    /// before the first, nothing is known.
    pub fn mean(&self) -> Option<Mean> {
        let known = Tree::of(self).known();
        let end = self.wall_ns.max(known.last()?.at_ns);
        let low = mean(&known, end, |known| known.low)?;
        let high = mean(&known, end, |known| known.high)?.max(low);
        Some(Mean { low, high, largest: known.iter().map(|known| known.low).max()? })
    }
}

/// A series, and what its moments have in common.
struct Tree<'a> {
    series: &'a Series,
    /// The index of each process's parent.
    parents: Vec<Option<usize>>,
    /// The first size of each process that was read.
    first: BTreeMap<usize, Size>,
}

impl Tree<'_> {
    fn of(series: &Series) -> Tree<'_> {
        let by_pid: BTreeMap<u32, usize> =
            series.processes.iter().enumerate().map(|(index, own)| (own.pid, index)).collect();
        let parent = |(index, own): (usize, &Process)| {
            by_pid.get(&own.parent).copied().filter(|parent| *parent != index)
        };
        let mut first = BTreeMap::new();
        for sample in &series.statm_samples {
            let size = Size { resident: sample.resident, anonymous: sample.anonymous };
            first.entry(sample.process).or_insert(size);
        }
        Tree { series, parents: series.processes.iter().enumerate().map(parent).collect(), first }
    }

    /// The tree's size at each moment of a reading or a statm sample, in the order of time.
    fn known(&self) -> Vec<Known> {
        let mut anchors: Vec<Anchor> = Vec::new();
        let mut others = Vec::new();
        self.each_moment(|at_ns, present, read| match (read, present.values().next()) {
            (Some(resident), _) => {
                let unread = unread(present);
                anchors.push(Anchor {
                    at_ns,
                    low: resident,
                    high: resident + unread,
                    present: present.clone(),
                });
            }
            (None, Some(Presence::Read(only))) if present.len() == 1 => {
                let present = present.clone();
                anchors.push(Anchor { at_ns, low: only.resident, high: only.resident, present });
            }
            _ => others.push((at_ns, present.clone())),
        });
        let own = self.runtimes_own();
        let known = |at_ns, low: u64, high: u64| {
            let own = own(at_ns);
            Known { at_ns, low: low.saturating_sub(own), high: high.max(low).saturating_sub(own) }
        };
        let mut all: Vec<Known> =
            anchors.iter().map(|anchor| known(anchor.at_ns, anchor.low, anchor.high)).collect();
        all.extend(others.iter().map(|(at_ns, present)| {
            let (low, high) = self.between(&anchors, *at_ns, present);
            known(*at_ns, low, high)
        }));
        all.sort_by_key(|known| known.at_ns);
        all
    }

    /// The bounds of the tree's size at a moment at which only its processes' sizes are known.
    fn between(&self, anchors: &[Anchor], at_ns: u64, present: &Present) -> (u64, u64) {
        let sizes = || present.values().map(|presence| presence.size().resident);
        let largest = present.values().map(|presence| presence.least().resident).max().unwrap_or(0);
        let (mut low, mut high) = (largest as i64, sizes().sum::<u64>() as i64);
        let mut narrow = |least: i64, most: i64| {
            low = low.max(least);
            high = high.min(most.max(low));
        };
        let next = anchors.partition_point(|anchor| anchor.at_ns <= at_ns);
        // Before the program there was nothing.
        let nothing = Anchor { at_ns: 0, low: 0, high: 0, present: Present::new() };
        let before = next.checked_sub(1).and_then(|place| anchors.get(place)).unwrap_or(&nothing);
        let growth = self.growth(&before.present, present);
        narrow(before.low as i64 + growth.least, before.high as i64 + growth.most);
        if let Some(after) = anchors.get(next) {
            let growth = self.growth(present, &after.present);
            narrow(after.low as i64 - growth.most, after.high as i64 - growth.least);
        }
        (low.max(0) as u64, high.max(low).max(0) as u64)
    }

    /// How much the tree may have grown between two moments, from how its processes did.
    fn growth(&self, from: &Present, to: &Present) -> Growth {
        let mut growth = Growth::default();
        for (index, presence) in to {
            let b = presence.size();
            let inherited = self.inherited(*index, from, to).min(b.anonymous) as i64;
            match (from.get(index), presence) {
                // Pages of its parent are shared at first. What is beyond them is its own.
                (None, Presence::Read(_)) => {
                    growth.least += (b.anonymous as i64 - inherited).max(0);
                    growth.most += b.resident as i64;
                }
                (Some(Presence::Read(a)), _) => {
                    let anonymous = change(a.anonymous, b.anonymous);
                    let files = change(
                        a.resident - a.anonymous.min(a.resident),
                        b.resident - b.anonymous.min(b.resident),
                    );
                    // Anonymous pages that are new are shared with nobody.
                    growth.least += anonymous + files.min(0);
                    growth.most += anonymous.max(0) + files.max(0) + inherited;
                }
                (None | Some(Presence::Unread(_)), _) => growth.most += b.resident as i64,
            }
        }
        for (_, gone) in from.iter().filter(|(index, _)| !to.contains_key(index)) {
            growth.least -= gone.size().resident as i64;
        }
        growth
    }

    /// The most anonymous memory that a process may share with its parent; none of the first process.
    fn inherited(&self, index: usize, from: &Present, to: &Present) -> u64 {
        let Some(parent) = self.parents.get(index).copied().flatten() else { return 0 };
        let of = |present: &Present| present.get(&parent).map_or(0, |presence| presence.size().anonymous);
        of(from).max(of(to))
    }

    /// Calls `visit` with each moment, the processes that are there, and the size of the tree if it is a reading's.
    fn each_moment(&self, mut visit: impl FnMut(u64, &Present, Option<u64>)) {
        let series = self.series;
        let least_step = series.wall_ns / MOST_MOMENTS;
        let mut sizes: BTreeMap<usize, Size> = BTreeMap::new();
        let mut visited = None;
        let mut readings = series.readings.iter().peekable();
        let mut samples = series.statm_samples.iter().peekable();
        loop {
            let next_reading = readings.peek().map(|reading| reading.at_ns);
            let next_sample = samples.peek().map(|sample| sample.at_ns);
            match (next_sample, next_reading) {
                (Some(at_ns), read) if read.is_none_or(|read| at_ns <= read) => {
                    while let Some(sample) = samples.next_if(|sample| sample.at_ns == at_ns) {
                        sizes.insert(
                            sample.process,
                            Size { resident: sample.resident, anonymous: sample.anonymous },
                        );
                    }
                    let present = self.present(&mut sizes, at_ns);
                    let is_late = visited.is_none_or(|visited| at_ns >= visited + least_step);
                    if present.len() == 1 || is_late {
                        visit(at_ns, &present, None);
                        visited = Some(at_ns);
                    }
                }
                (_, Some(at_ns)) => {
                    let Some(reading) = readings.next() else { break };
                    let mut present = self.present(&mut sizes, at_ns);
                    for (process, totals) in &reading.processes {
                        let amounts = totals.amounts;
                        let size = Size { resident: amounts.resident, anonymous: amounts.anonymous };
                        present.insert(*process, Presence::Read(size));
                    }
                    visit(at_ns, &present, Some(reading.tree.amounts.resident));
                }
                _ => break,
            }
        }
    }

    /// The processes that are there at that moment. Sizes of those that have ended are forgotten.
    fn present(&self, sizes: &mut BTreeMap<usize, Size>, at_ns: u64) -> Present {
        let is_there =
            |own: &Process| own.began_ns <= at_ns && (at_ns < own.ended_ns || own.ended_ns <= own.began_ns);
        sizes.retain(|index, _| {
            self.series.processes.get(*index).is_some_and(|own| at_ns < own.ended_ns || is_there(own))
        });
        let mut present: Present =
            sizes.iter().map(|(index, size)| (*index, Presence::Read(*size))).collect();
        for (index, _) in self.series.processes.iter().enumerate().filter(|(_, own)| is_there(own)) {
            if let Some(first) = self.first.get(&index) {
                present.entry(index).or_insert(Presence::Unread(*first));
            }
        }
        present
    }

    /// The x32 runtime's own resident memory in the reading before a moment, or else in the first.
    fn runtimes_own(&self) -> impl Fn(u64) -> u64 {
        let of_runtime = |reading| self.series.of_class(reading, Class::Runtime).resident;
        let own: Vec<(u64, u64)> =
            self.series.readings.iter().map(|reading| (reading.at_ns, of_runtime(reading))).collect();
        move |at_ns| {
            let next = own.partition_point(|(read_ns, _)| *read_ns <= at_ns);
            own.get(next.saturating_sub(1)).map_or(0, |(_, own)| *own)
        }
    }
}

impl Presence {
    /// The size that was read.
    fn size(&self) -> Size {
        match self {
            Presence::Unread(size) | Presence::Read(size) => *size,
        }
    }

    /// What it surely has.
    fn least(&self) -> Size {
        match self {
            Presence::Unread(_) => Size::default(),
            Presence::Read(size) => *size,
        }
    }
}

fn unread(present: &Present) -> u64 {
    let of = |presence: &Presence| presence.size().resident - presence.least().resident;
    present.values().map(of).sum()
}

/// A change about which the kernel's counters may be wrong is none.
fn change(from: u64, to: u64) -> i64 {
    if from.abs_diff(to) <= COUNTED {
        0
    } else {
        to as i64 - from as i64
    }
}

fn mean(known: &[Known], end: u64, of: impl Fn(&Known) -> u64) -> Option<f64> {
    let first = known.first()?.at_ns;
    let ends = known.iter().skip(1).map(|known| known.at_ns).chain([end]);
    let area: f64 = known
        .iter()
        .zip(ends)
        .map(|(known, to)| of(known) as f64 * to.saturating_sub(known.at_ns) as f64)
        .sum();
    Some(if end > first { area / (end - first) as f64 } else { of(known.last()?) as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Amounts, Reading, StatmSample, Totals};

    const MB: u64 = 1_000_000;

    fn bounds(series: &Series) -> (f64, f64) {
        let mean = series.mean().unwrap();
        (mean.low, mean.high)
    }

    fn process(pid: u32, began_ns: u64, ended_ns: u64) -> Process {
        Process { pid, parent: if pid == 10 { 1 } else { 10 }, name: String::new(), began_ns, ended_ns }
    }

    fn sample(at_ns: u64, process: usize, resident: u64) -> StatmSample {
        StatmSample { at_ns, process, resident, anonymous: resident - MB, virtual_bytes: 0 }
    }

    /// A reading of processes with these sizes, which share all but `own` bytes.
    fn reading(at_ns: u64, sizes: &[u64], tree: u64) -> Reading {
        let totals = |resident: u64| {
            let amounts = Amounts { resident, anonymous: resident - MB, ..Amounts::default() };
            Totals { amounts, ..Totals::default() }
        };
        let processes = sizes.iter().enumerate().map(|(index, size)| (index, totals(*size))).collect();
        Reading { at_ns, full: true, tree: totals(tree), processes, parts: Vec::new() }
    }

    /// A parent of 1.1 MB from 0 to 100, and a child from 10 on whose size is read for the first time at 20.
    fn family(of_child: u64) -> Series {
        Series {
            wall_ns: 100,
            processes: vec![process(10, 0, 100), process(11, 10, 100)],
            statm_samples: [0, 20, 40, 60]
                .into_iter()
                .flat_map(|at_ns| {
                    let child = (at_ns >= 20).then(|| sample(at_ns, 1, of_child));
                    [sample(at_ns, 0, MB + MB / 10)].into_iter().chain(child)
                })
                .collect(),
            ..Series::default()
        }
    }

    #[test]
    fn a_tree_that_is_read_late_has_its_size_since_its_processes_have_theirs() {
        let mut series = family(50 * MB);
        series.readings = vec![reading(80, &[MB + MB / 10, 50 * MB], 51 * MB)];
        let (low, high) = bounds(&series);
        // 1.1 MB until 20, and 51 MB after that.
        let truth = (1.1 * 20.0 + 51.0 * 80.0) / 100.0 * MB as f64;
        assert!(low <= truth && truth <= high, "{low} {high} {truth}");
        assert!(low > 0.99 * truth && high < 1.01 * truth, "{low} {high} {truth}");
    }

    #[test]
    fn memory_of_a_process_that_was_found_late_is_in_the_upper_bound_only() {
        let mut series = family(50 * MB);
        series.statm_samples.insert(1, sample(15, 0, MB + MB / 10));
        series.readings = vec![reading(80, &[MB + MB / 10, 50 * MB], 51 * MB)];
        let (low, high) = bounds(&series);
        let between = 5.0 / 100.0 * 50.0 * MB as f64;
        assert!((high - low - between).abs() < 0.01 * high, "{low} {high}");
    }

    #[test]
    fn pages_that_a_child_may_have_copied_are_in_the_upper_bound_only() {
        let mut series = family(50 * MB);
        for sample in &mut series.statm_samples {
            sample.resident = 50 * MB;
            sample.anonymous = 49 * MB;
        }
        // They share everything before 50, and nothing at 80.
        series.readings =
            vec![reading(50, &[50 * MB, 50 * MB], 50 * MB), reading(80, &[50 * MB, 50 * MB], 99 * MB)];
        let (low, high) = bounds(&series);
        let area =
            |copied_at: f64| (50.0 * (copied_at - 0.0) + 99.0 * (100.0 - copied_at)) / 100.0 * MB as f64;
        assert!(low <= area(80.0) && area(60.0) <= high, "{low} {high}");
        assert!(
            low > 0.98 * area(80.0) && high < 1.02 * area(60.0),
            "{low} {high} {} {}",
            area(80.0),
            area(60.0)
        );
    }

    #[test]
    fn without_a_reading_the_mean_is_between_the_largest_process_and_the_sum_of_all() {
        let count = 2000;
        let mut series = Series { wall_ns: 4_000_000, ..Series::default() };
        series.processes.push(process(10, 0, 4_000_000));
        series.processes.extend((0..count).map(|number| process(11 + number, 0, 4_000_000)));
        for at_ns in (0..4_000_000).step_by(100_000) {
            series.statm_samples.extend((0..=count as usize).map(|index| sample(at_ns, index, 2 * MB)));
        }
        let (low, high) = bounds(&series);
        // The children may share all anonymous memory of the parent, 1 MB, and 1 MB of files.
        let (largest, sum) = (2.0 * MB as f64, 2.0 * MB as f64 * f64::from(count + 1));
        assert!(low >= largest && low < 0.6 * sum && high <= sum && high > 0.6 * sum, "{low} {high} {sum}");
    }
}
