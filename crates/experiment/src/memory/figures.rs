//! The metrics that are computed from a memory series.

use super::mean::Mean;
use super::{Amounts, Class, Level, Reading, Series};
use crate::metric::{self, Metric};
use crate::outcome::{Reading as Figure, Source};

/// A mean over time whose bounds are farther apart than this share of it is no one number.
const NARROW: f64 = 0.02;

impl Series {
    /// The levels without the x32 runtime's own memory. A statm sample does not show it: then the value of the reading
    /// before, or else of the first one, is used.
    pub fn programs_levels(&self) -> Vec<Level> {
        let own: Vec<(u64, Amounts)> =
            self.readings.iter().map(|reading| (reading.at_ns, self.of_runtime(reading))).collect();
        let mut levels = self.levels();
        for level in &mut levels {
            let before = own.iter().rev().find(|(at_ns, _)| *at_ns <= level.at_ns);
            if let Some((_, own)) = before.or(own.first()) {
                level.resident = level.resident.saturating_sub(own.resident);
                level.anonymous = level.anonymous.saturating_sub(own.anonymous);
            }
        }
        levels
    }

    fn most_in_full(&self, of: impl Fn(&Reading) -> u64) -> Option<f64> {
        let full = self.readings.iter().filter(|reading| reading.full);
        full.map(of).max().map(|most| most as f64)
    }

    /// The largest size of the tree at which the figure of that metric could be read.
    pub fn seen(&self, metric: Metric) -> u64 {
        let read = |full: bool| {
            let own = self.readings.iter().filter(move |reading| reading.full || !full);
            own.map(|reading| reading.tree.amounts.resident).max().unwrap_or(0)
        };
        match metric.name {
            "tree_pss" | "tree_page_tables" => read(true),
            "tree_mean" => self.mean().map_or(0, |mean| mean.largest),
            "tree_anonymous" | "tree_peak" => {
                self.levels().iter().map(|level| level.resident).max().unwrap_or(0)
            }
            _ => read(false),
        }
    }

    /// The figure of a metric of [`Family::Series`](metric::Family::Series), if enough was read: from the readings
    /// alone, without an estimate of what was missed.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        let most = |of: &dyn Fn(&Reading) -> u64| self.readings.iter().map(of).max().map(|most| most as f64);
        let class = |class| most(&|reading| self.of_class(reading, class).resident);
        match metric.name {
            "tree_peak" => {
                self.programs_levels().iter().map(|level| level.resident).max().map(|most| most as f64)
            }
            "tree_mean" => {
                let Mean { low, high, .. } = self.mean()?;
                (high <= (1.0 + NARROW) * low).then_some((low + high) / 2.0)
            }
            "tree_pss" => self.most_in_full(|reading| self.of_program(reading).pss),
            "tree_anonymous" => {
                self.programs_levels().iter().map(|level| level.anonymous).max().map(|most| most as f64)
            }
            "tree_heap" => class(Class::Heap),
            "tree_mmapped" => class(Class::Mmapped),
            "tree_allocated" => most(&|reading| {
                self.of_class(reading, Class::Heap).resident + self.of_class(reading, Class::Mmapped).resident
            }),
            "tree_stacks" => class(Class::Stack),
            "tree_libraries" => class(Class::Library),
            "tree_page_tables" => self.most_in_full(|reading| reading.tree.page_tables),
            _ => None,
        }
    }

    /// The sample of such a run: the requested metrics that could be computed.
    pub fn sample(&self, metrics: &[Metric]) -> std::collections::BTreeMap<&'static str, Figure> {
        let own = metrics.iter().filter(|metric| metric.family == metric::Family::Series);
        let figure = |metric: Metric| match metric.name {
            "tree_mean" => self.mean().map(|mean| Figure::between(mean.low, mean.high, Source::Smaps)),
            _ => self.figure(metric).map(|figure| Figure::whole(figure, Source::Smaps)),
        };
        own.filter_map(|metric| Some((metric.name, figure(*metric)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{reduction, Part, Process, StatmSample, Totals};

    fn reading(at_ns: u64, heap: u64, library: u64) -> Reading {
        let amounts = |resident| Amounts { resident, pss: resident / 2, ..Amounts::default() };
        let (heap, library) = (amounts(heap), amounts(library));
        let tree = Totals { amounts: heap.plus(library), ..Totals::default() };
        Reading { at_ns, full: true, tree, processes: vec![(0, tree)], parts: vec![(0, heap), (1, library)] }
    }

    fn series() -> Series {
        let process =
            |pid, began_ns, ended_ns| Process { pid, parent: 1, name: "x".into(), began_ns, ended_ns };
        let statm_sample = |at_ns, process, resident| StatmSample {
            at_ns,
            process,
            resident,
            anonymous: 0,
            virtual_bytes: 0,
        };
        Series {
            wall_ns: 100,
            spent_ns: 1,
            processes: vec![process(7, 0, 100), process(8, 50, 60)],
            parts: vec![
                Part { class: Class::Heap, name: String::new() },
                Part { class: Class::Library, name: "libc.so.6".into() },
            ],
            statm_samples: vec![statm_sample(20, 0, 40), statm_sample(55, 0, 90), statm_sample(55, 1, 90)],
            readings: vec![reading(10, 10, 20), reading(40, 80, 20), reading(80, 30, 30)],
            ..Series::default()
        }
    }

    fn figure(name: &str) -> Option<f64> {
        series().figure(metric::find(name).unwrap())
    }

    #[test]
    fn a_statm_sample_counts_for_the_tree_only_while_the_tree_is_one_process() {
        assert_eq!(series().levels().iter().map(|l| l.resident).collect::<Vec<_>>(), [30, 40, 100, 60]);
        assert_eq!(figure("tree_peak"), Some(100.0));
    }

    #[test]
    fn the_mean_holds_each_level_until_the_next_and_the_last_until_the_end() {
        // With the second process the tree has at least what it had before, and at most what it has after, and the 90 bytes.
        let area = |while_two: f64| 30.0 * 10.0 + 40.0 * 20.0 + 100.0 * 15.0 + while_two * 25.0 + 60.0 * 20.0;
        let mean = Mean { low: area(100.0) / 90.0, high: area(150.0) / 90.0, largest: 100 };
        assert_eq!(series().mean(), Some(mean));
        assert_eq!(figure("tree_mean"), None, "the bounds are no one number");

        let mut alone = series();
        alone.processes.truncate(1);
        alone.statm_samples.truncate(1);
        let mean = (30.0 * 10.0 + 40.0 * 20.0 + 100.0 * 40.0 + 60.0 * 20.0) / 90.0;
        assert_eq!(alone.mean(), Some(Mean { low: mean, high: mean, largest: 100 }));
        assert_eq!(alone.figure(metric::find("tree_mean").unwrap()), Some(mean));
    }

    #[test]
    fn classes_have_peaks_of_their_own() {
        assert_eq!((figure("tree_heap"), figure("tree_libraries")), (Some(80.0), Some(30.0)));
        assert_eq!(figure("tree_pss"), Some(50.0));
        assert_eq!(Series::default().figure(metric::find("tree_peak").unwrap()), None);
    }

    #[test]
    fn the_x32_runtimes_own_memory_is_in_no_figure() {
        let mut series = series();
        let whole = |series: &Series, name: &str| series.figure(metric::find(name).unwrap());
        let names = ["tree_peak", "tree_pss"];
        let before = (names.map(|name| whole(&series, name).unwrap()), series.mean().map(|mean| mean.low));
        let runtime = Amounts { resident: 12, pss: 10, ..Amounts::default() };
        series.parts.push(Part { class: Class::Runtime, ..series.parts[0].clone() });
        let place = series.parts.len() - 1;
        for reading in &mut series.readings {
            reading.tree.amounts = reading.tree.amounts.plus(runtime);
            reading.parts.push((place, runtime));
        }
        for statm_sample in &mut series.statm_samples {
            statm_sample.resident += runtime.resident;
        }
        let after = (names.map(|name| whole(&series, name).unwrap()), series.mean().map(|mean| mean.low));
        assert_eq!(after, before);
    }

    #[test]
    fn anonymous_memory_in_a_pagemap_scan_is_without_the_x32_runtimes() {
        let mut series = series();
        series.statm_samples.clear();
        series.readings.truncate(2);
        series.parts.push(Part { class: Class::Runtime, ..series.parts[0].clone() });
        let place = series.parts.len() - 1;
        let runtime = |anonymous| Amounts { resident: 12, anonymous, ..Amounts::default() };
        let [snapshot, scan] = &mut series.readings[..] else { panic!("two readings") };
        (snapshot.tree.amounts.anonymous, scan.tree.amounts.anonymous, scan.full) = (30, 60, false);
        snapshot.parts.push((place, runtime(8)));
        scan.parts.push((place, runtime(0)));
        let figure = |series: &Series| series.figure(metric::find("tree_anonymous").unwrap());
        assert_eq!(figure(&series), Some(52.0));
    }

    #[test]
    fn every_metric_of_the_family_has_a_figure() {
        let own = metric::METRICS.iter().filter(|metric| metric.family == metric::Family::Series);
        // That one is the control group's.
        for metric in own.filter(|metric| metric.name != metric::OF_GROUP) {
            assert!(series().sample(&[metric]).contains_key(metric.name), "{metric}");
        }
    }

    #[test]
    fn the_reduction_is_the_papers() {
        assert_eq!(reduction(74.5, 44.7).map(|r| (r * 1000.0).round()), Some(400.0));
        assert_eq!(reduction(10.0, 15.0), Some(-0.5));
        assert_eq!(reduction(0.0, 1.0), None);
    }

    #[test]
    fn class_names_are_parsed_back() {
        assert!(Class::ALL.iter().all(|class| Class::find(class.name()) == Some(*class)));
    }
}
