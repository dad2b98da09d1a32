//! What the sampler saw of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use widthwise_experiment::memory::Series;

/// What the sampler saw. Times are those of CLOCK_MONOTONIC, until [`Seen::since`] makes a series of them.
#[derive(Debug, Default)]
pub struct Seen {
    pub(super) series: Series,
    /// A process may not be read: its number and the system's reason.
    pub refused: Option<(u32, String)>,
    /// The number of every thread, with that of its process. Of a process that ended before it could be read, the
    /// series has nothing.
    pub tasks: BTreeMap<u32, u32>,
    /// Ranges of files, by device and inode, that processes had mapped; [`Seen::listed`] has the processes
    /// that were read.
    pub mapped_files: BTreeMap<(u64, u64), Vec<Range<u64>>>,
    /// The processes whose mappings were listed.
    pub listed: BTreeSet<u32>,
    /// The most memory that was certainly resident by the control group's account, in bytes.
    pub charged: Option<u64>,
    /// The most page cache that the control group's account showed.
    pub cached: u64,
    /// Lines beyond those that are kept were written to the pipe for marks.
    pub marks_lost: bool,
}

impl Seen {
    /// How many threads the processes of the series had.
    pub fn read_tasks(&self) -> u64 {
        let read: BTreeSet<u32> = self.series.processes.iter().map(|process| process.pid).collect();
        self.tasks.values().filter(|process| read.contains(process)).count() as u64
    }

    /// The series of a program that began at `began` (CLOCK_MONOTONIC) and ran for `wall`: times count from
    /// its start.
    pub fn since(self, began: Duration, wall: Duration) -> Series {
        let (began, wall) = (began.as_nanos() as u64, wall.as_nanos() as u64);
        let mut series = self.series;
        series.wall_ns = wall;
        let from = |at: &mut u64| *at = at.saturating_sub(began);
        series.statm_samples.iter_mut().for_each(|statm_sample| from(&mut statm_sample.at_ns));
        series.readings.iter_mut().for_each(|reading| from(&mut reading.at_ns));
        series.marks.iter_mut().for_each(|mark| from(&mut mark.at_ns));
        series.readings.dedup_by_key(|reading| reading.at_ns);
        for process in &mut series.processes {
            from(&mut process.began_ns);
            // A process that lived until the end is found to be gone a moment later.
            process.ended_ns = process.ended_ns.saturating_sub(began);
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use widthwise_experiment::memory::Process;

    use super::Seen;

    #[test]
    fn threads_of_a_process_that_ended_before_it_was_read_are_not_read_tasks() {
        let mut seen = Seen::default();
        let name = String::new();
        seen.series.processes.push(Process { pid: 10, parent: 1, name, began_ns: 0, ended_ns: 0 });
        seen.tasks.extend([(10, 10), (11, 10), (12, 12)]);
        assert_eq!(seen.read_tasks(), 2);
    }
}
