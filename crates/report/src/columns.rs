//! Which metrics a reader sees first.

use widthwise_experiment::metric::Family;
use widthwise_experiment::{Experiment, Metric};

/// The leading metrics, in reading order. `--all-metrics` and the HTML show the others.
const FIRST: [&str; 6] =
    ["cpu", "wall", "instructions_user", "instructions_kernel", "max_rss", "page_faults"];
/// So many of them are shown before what the user requested by name; a narrow terminal has no room for the last ones.
const BEFORE_REQUESTED: usize = 1;

/// The metrics of the experiment in reading order, divided into leading ones and others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns {
    /// The leading metrics, and those that the user requested by name (they are not measured by default).
    pub leading: Vec<Metric>,
    /// The rest, in the experiment's order.
    pub others: Vec<Metric>,
}

impl Columns {
    /// The columns of that experiment.
    pub fn of(experiment: &Experiment) -> Columns {
        // These have tables of their own.
        let is_apart = |metric: &Metric| {
            matches!(metric.family, Family::Series | Family::InstructionClass | Family::CacheModel)
        };
        let metrics: Vec<Metric> =
            experiment.metrics.iter().copied().filter(|metric| !is_apart(metric)).collect();
        let find = |name: &str| metrics.iter().copied().find(|metric| metric.name == name);
        let is_first = |metric: &Metric| FIRST.contains(&metric.name);
        let requested = metrics.iter().copied().filter(|m| !is_first(m) && !m.default);
        let (before, behind) = FIRST.split_at(BEFORE_REQUESTED);
        let of = |names: &[&str]| names.iter().filter_map(|name| find(name)).collect::<Vec<Metric>>();
        let leading: Vec<Metric> = of(before).into_iter().chain(requested).chain(of(behind)).collect();
        let (leading, others) = if leading.is_empty() {
            (metrics, Vec::new())
        } else {
            let others = metrics.iter().copied().filter(|m| m.default && !is_first(m)).collect();
            (leading, others)
        };
        Columns { leading, others }
    }

    /// All of them, in reading order.
    pub fn all(&self) -> Vec<Metric> {
        self.leading.iter().chain(&self.others).copied().collect()
    }
}
