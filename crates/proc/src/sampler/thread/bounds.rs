//! Readings for the bounds of the tree's peak (`memory::bounds`): the control group's account and file mappings.

use super::SamplerThread;
use crate::clock::{now, thread_cpu};
use crate::sampler::overhead_budget::OverheadBudget;

const LISTING_COST: f64 = 20e3;

impl SamplerThread {
    /// Reads the control group's account for a tree of several processes, for which there are no pagemap
    /// scans. The file pages of one process, by its last statm sample, are resident in addition to the
    /// anonymous memory.
    pub(super) fn read_account(&mut self, budget: &mut OverheadBudget) {
        let Some(group) = self.group.as_mut().filter(|_| self.tree.len() > 1) else { return };
        if now() < budget.ready(group.cost()) {
            return;
        }
        let began = thread_cpu();
        let found = group.read();
        let took = thread_cpu() - began;
        budget.spend_besides(took);
        group.took(took);
        self.seen.series.spent_ns += took;
        let Some((anonymous, cached)) = found else {
            self.group = None;
            return;
        };
        let of_files =
            self.tree.values_mut().filter_map(|watched| watched.size().map(|size| size.shared)).max();
        let resident = anonymous.saturating_add(of_files.unwrap_or(0));
        self.seen.charged = self.seen.charged.max(Some(resident));
        self.seen.cached = self.seen.cached.max(cached);
    }

    /// Finds how much of their address space processes have files mapped in.
    pub(super) fn list_mappings(&mut self, at_ns: u64, budget: &mut OverheadBudget) {
        let Some(texts) = self.texts.first_mut() else { return };
        for (&pid, watched) in &mut self.tree {
            if at_ns < budget.ready(LISTING_COST) || !watched.is_to_be_listed(at_ns) {
                continue;
            }
            let began = thread_cpu();
            let listed = watched.list(texts, at_ns);
            let took = thread_cpu() - began;
            budget.spend_besides(took);
            self.seen.series.spent_ns += took;
            if listed.is_ok() {
                self.seen.listed.insert(pid);
                for (file, stretch) in texts.mapped_files() {
                    let stretches = self.seen.mapped_files.entry(file).or_default();
                    if !stretches.contains(&stretch) {
                        stretches.push(stretch);
                    }
                }
            }
        }
    }
}
