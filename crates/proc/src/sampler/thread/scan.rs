//! Pagemap scans: when one is due, and what it finds.

use std::collections::BTreeMap;

use widthwise_experiment::memory::{Amounts, Reading, Totals};

use super::{is_gone, least_change, SamplerThread};
use crate::clock::thread_cpu;
use crate::sampler::overhead_budget::OverheadBudget;

const COST_OF_BYTE: f64 = 0.0025;

impl SamplerThread {
    /// When a pagemap scan of a tree of one process is due: whenever its size has changed.
    pub(super) fn pagemap_scan_due(&self, budget: &OverheadBudget) -> u64 {
        let mut all = self.tree.values();
        let (Some(last), Some(only), None) = (self.size_scanned, all.next(), all.next()) else {
            return u64::MAX;
        };
        if only.resident == 0 || self.size.abs_diff(last) < least_change(last) {
            return u64::MAX;
        }
        let cost = budget.cost() + self.size.saturating_sub(last) as f64 * COST_OF_BYTE;
        budget.ready(self.worth(cost))
    }

    /// Scans the memory of the only process; returns how long that took.
    pub(super) fn pagemap_scan(&mut self, at_ns: u64) -> u64 {
        let began = thread_cpu();
        let Some(only) = self.tree.values_mut().next() else { return 0 };
        let Some(texts) = self.texts.first_mut() else { return 0 };
        let found = only.scan(texts, &mut self.pagemap, self.watch.runtime.as_ref());
        let took = thread_cpu() - began;
        let scan = match found {
            Ok(Some(scan)) => scan,
            // Too fragmented to be worth it, or a kernel before 6.7.
            Ok(None) => return self.without_pagemap_scans(took),
            Err(error) if is_gone(&error) => return took,
            Err(_) => return self.without_pagemap_scans(took),
        };
        self.size_scanned = Some(self.size);
        let Some((size, found)) =
            only.pagemap_scan(texts, scan, self.watch.runtime.as_ref(), self.watch.recorder.as_ref())
        else {
            return took;
        };
        let mut parts: BTreeMap<usize, Amounts> = BTreeMap::new();
        for (part, amounts) in found {
            let sum = parts.entry(self.index_of(part)).or_default();
            *sum = sum.plus(amounts);
        }
        let sum = parts.values().fold(Amounts::default(), |sum, amounts| sum.plus(*amounts));
        let anonymous = size.resident.saturating_sub(size.shared);
        let tree = Totals { amounts: Amounts { anonymous, ..sum }, ..Totals::default() };
        self.seen.series.pagemap_scans_made += 1;
        let parts = parts.into_iter().collect();
        self.keep(Reading { at_ns, full: false, tree, processes: Vec::new(), parts });
        took
    }

    fn without_pagemap_scans(&mut self, took: u64) -> u64 {
        self.size_scanned = None;
        took
    }
}
