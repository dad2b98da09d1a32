//! The processes of the tree: finds them, and takes their statm samples.

use widthwise_experiment::memory::{Process, StatmSample};

use super::{least_change, SamplerThread};
use crate::clock::now;
use crate::descendants;
use crate::process::ProcessHandle;
use crate::sampler::downsample::{downsampled, push_statm_sample, MOST_STATM_SAMPLES};

/// The series leaves out processes beyond this number.
const MOST_PROCESSES: usize = 4096;

impl SamplerThread {
    /// Finds the processes of the tree.
    pub(super) fn find_tree(&mut self) {
        let began = now();
        let tasks = &mut self.seen.tasks;
        let found = descendants::descendants_and(self.watch.launcher, |task, process| {
            tasks.insert(task, process);
        });
        let at = now();
        for (&pid, &parent) in &found {
            if self.tree.contains_key(&pid) || self.seen.series.processes.len() >= MOST_PROCESSES {
                continue;
            }
            // The launcher's child has the launcher's memory until it executes the program.
            let program = descendants::program(pid);
            if program.is_none() || program == self.launcher_file {
                continue;
            }
            let index = self.seen.series.processes.len();
            if let Ok(watched) = ProcessHandle::open(pid, index) {
                // It was not there at the last search. The first process is the launcher's copy before.
                let made = descendants::made_at(pid).filter(|_| !self.tree.is_empty()).unwrap_or(at);
                let began_ns = made.max(self.searched_ns).min(at);
                let process = Process { pid, parent, name: String::new(), began_ns, ended_ns: at };
                self.seen.series.processes.push(process);
                self.tree.insert(pid, watched);
                self.changed = true;
            }
        }
        self.searched_ns = began;
    }

    /// Evaluates the statm samples: how large every process was.
    pub(super) fn evaluate_statm_samples(&mut self, at_ns: u64) {
        let mut size = 0;
        let mut gone = Vec::new();
        for (&pid, watched) in &mut self.tree {
            match watched.size() {
                Some(found) => {
                    size += found.resident;
                    let statm_sample = StatmSample {
                        at_ns,
                        process: watched.index,
                        resident: found.resident,
                        anonymous: found.resident.saturating_sub(found.shared),
                        virtual_bytes: found.virtual_bytes,
                    };
                    push_statm_sample(&mut self.seen.series.statm_samples, statm_sample);
                    self.seen.series.statm_samples_made += 1;
                }
                None => gone.push(pid),
            }
        }
        self.forget(&gone, at_ns);
        self.settled = size.abs_diff(self.size) < least_change(self.size);
        self.size = size;
        self.changed |= size.abs_diff(self.size_read) >= least_change(self.size_read);
        if self.seen.series.statm_samples.len() > 8 * MOST_STATM_SAMPLES {
            let statm_samples = std::mem::take(&mut self.seen.series.statm_samples);
            self.seen.series.statm_samples =
                downsampled(&statm_samples, 4 * MOST_STATM_SAMPLES, |statm_sample| statm_sample.resident);
        }
    }

    pub(super) fn forget(&mut self, gone: &[u32], at_ns: u64) {
        for pid in gone {
            if let Some(watched) = self.tree.remove(pid) {
                self.seen.series.processes[watched.index].ended_ns = at_ns;
                self.changed = true;
            }
        }
    }
}
