//! The memory series of a run, and the metrics computed from it.
//!
//! Times are nanoseconds since the program's `execve`, amounts are bytes. There are three kinds of readings. A *statm
//! sample* (`/proc/PID/statm`) has the size of one process; it is cheap and frequent. A *pagemap scan*
//! (`/proc/PID/pagemap`) divides the memory of a tree of one process by use, and costs some ten times as much. An
//! *smaps snapshot* (`/proc/PID/smaps` of every process of the tree, one after the other) adds shared and swapped
//! memory, and costs ten times that.

mod mean;

pub use mean::Mean;

use crate::metric::{self, Metric};
use crate::outcome::{Reading as Figure, Source};

/// The least share of the peak that a series must have seen to represent a program.
pub const NEAR_PEAK: f64 = 0.8;
/// The least share of the peak at which a reading counts as one of the peak.
pub const AT_PEAK: f64 = 0.95;

/// A mean over time whose bounds are farther apart than this share of it is no one number.
const NARROW: f64 = 0.02;

/// The use of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The `brk(2)` heap: `[heap]`.
    Heap,
    /// Other anonymous memory: large blocks and further arenas of an allocator, mmap of the program's own.
    Mmapped,
    /// Stacks, of the first thread and of the others.
    Stack,
    /// The program file, what is not writable and unchanged of it.
    ProgramText,
    /// The program file's variables, with those that begin as zeros.
    ProgramData,
    /// A shared library or the dynamic linker, text and data; each has a part of its own.
    Library,
    /// A mapped file that is neither.
    File,
    /// Shared memory: System V, POSIX, memfd, shared anonymous mappings.
    Shared,
    /// The x32 runtime itself.
    Runtime,
    /// The preloaded heap recorder.
    Recorder,
    /// The kernel's own: vDSO and the like.
    Other,
}

impl Class {
    /// All, in the order in which they are stacked and listed.
    pub const ALL: [Class; 11] = [
        Class::Heap,
        Class::Mmapped,
        Class::Stack,
        Class::ProgramData,
        Class::ProgramText,
        Class::Library,
        Class::File,
        Class::Shared,
        Class::Runtime,
        Class::Recorder,
        Class::Other,
    ];

    /// The name in the archive, JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Class::Heap => "heap",
            Class::Mmapped => "mmapped",
            Class::Stack => "stack",
            Class::ProgramText => "program-text",
            Class::ProgramData => "program-data",
            Class::Library => "library",
            Class::File => "file",
            Class::Shared => "shared",
            Class::Runtime => "runtime",
            Class::Recorder => "recorder",
            Class::Other => "other",
        }
    }

    /// The name in reports, of all mappings of the class together.
    pub fn title(self) -> &'static str {
        match self {
            Class::Heap => "heap (brk)",
            Class::Mmapped => "mmapped blocks",
            Class::Stack => "stacks",
            Class::ProgramText => "program text",
            Class::ProgramData => "program data",
            Class::Library => "libraries",
            Class::File => "mapped files",
            Class::Shared => "shared memory",
            Class::Runtime => "x32run itself",
            Class::Recorder => "heap recorder",
            Class::Other => "other",
        }
    }

    /// The class of that name, if there is one.
    pub fn find(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// A class, or one library of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part {
    /// What it is for.
    pub class: Class,
    /// The library's file name (`libc.so.6`); empty for classes without parts.
    pub name: String,
}

/// Bytes of some mappings at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Address space.
    pub virtual_bytes: u64,
    /// Resident. Of a tree: pages that its processes share count once.
    pub resident: u64,
    /// Proportional set size: each page divided by the number of all its users, those outside the tree among them.
    pub pss: u64,
    /// Of the resident: pages without a file.
    pub anonymous: u64,
    /// Swapped out.
    pub swap: u64,
}

impl Amounts {
    /// The sum of both.
    pub fn plus(self, other: Amounts) -> Amounts {
        Amounts {
            virtual_bytes: self.virtual_bytes.saturating_add(other.virtual_bytes),
            resident: self.resident.saturating_add(other.resident),
            pss: self.pss.saturating_add(other.pss),
            anonymous: self.anonymous.saturating_add(other.anonymous),
            swap: self.swap.saturating_add(other.swap),
        }
    }
}

/// The figures of one process, or of the tree, at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// As in its parts.
    pub amounts: Amounts,
    /// Resident pages of files, shared memory left out.
    pub file: u64,
    /// Resident pages of shared memory.
    pub shared: u64,
    /// Page tables; they are the kernel's, and in no other figure.
    pub page_tables: u64,
    /// Huge pages: transparent ones are resident memory; those of hugetlbfs are in no other figure.
    pub huge: u64,
}

/// A process of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent's number, when it was first seen.
    pub parent: u32,
    /// Its command name, as it was last seen.
    pub name: String,
    /// When it began, to a tick of the kernel's clock (10 ms): not later than it did. Of the first process: when it was first seen.
    pub began_ns: u64,
    /// When it was found to be gone.
    pub ended_ns: u64,
}

/// A statm sample of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatmSample {
    /// When.
    pub at_ns: u64,
    /// Index of the process.
    pub process: usize,
    /// Resident bytes.
    pub resident: u64,
    /// Of these: pages without a file.
    pub anonymous: u64,
    /// Address space.
    pub virtual_bytes: u64,
}

/// An smaps snapshot or a pagemap scan of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// When it began.
    pub at_ns: u64,
    /// Whether it is an smaps snapshot. A pagemap scan has the tree's resident and anonymous memory and address space,
    /// and the parts' resident memory and address space; the other figures are 0 and meaningless.
    pub full: bool,
    /// The whole tree.
    pub tree: Totals,
    /// Each process, by index.
    pub processes: Vec<(usize, Totals)>,
    /// The whole tree by what the memory is for: index of the part, amounts. They add up to `tree.amounts`.
    pub parts: Vec<(usize, Amounts)>,
}

/// A line that the program wrote, which begins a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// When it was received.
    pub at_ns: u64,
    /// The line.
    pub text: String,
}

/// The memory of one run over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// From the program's `execve` to its end.
    pub wall_ns: u64,
    /// How long the sampler was reading: an upper bound of its delay of the program.
    pub spent_ns: u64,
    /// How many statm samples were made; not all are kept.
    pub statm_samples_made: u64,
    /// How many pagemap scans were made; not all are kept.
    pub pagemap_scans_made: u64,
    /// How many smaps snapshots were made; not all are kept.
    pub readings_made: u64,
    /// Every process that was seen.
    pub processes: Vec<Process>,
    /// Every part that was seen.
    pub parts: Vec<Part>,
    /// In the order of time.
    pub statm_samples: Vec<StatmSample>,
    /// In the order of time.
    pub readings: Vec<Reading>,
    /// In the order of time.
    pub marks: Vec<Mark>,
}

/// The resident memory of the tree at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// When.
    pub at_ns: u64,
    /// Bytes; pages that processes share count once.
    pub resident: u64,
    /// Of these: pages without a file.
    pub anonymous: u64,
}

impl Series {
    /// The share of the run during which the sampler was reading.
    pub fn cost(&self) -> f64 {
        if self.wall_ns == 0 {
            0.0
        } else {
            self.spent_ns as f64 / self.wall_ns as f64
        }
    }

    /// The tree's resident memory over time: every scan and snapshot, and the statm samples at moments when the tree
    /// was one process. (A statm sample does not show what several processes share.)
    pub fn levels(&self) -> Vec<Level> {
        let of_readings = self.readings.iter().map(|reading| Level {
            at_ns: reading.at_ns,
            resident: reading.tree.amounts.resident,
            anonymous: reading.tree.amounts.anonymous,
        });
        let of_glances = self.statm_samples.iter().filter(|statm_sample| self.is_alone(statm_sample)).map(
            |statm_sample| Level {
                at_ns: statm_sample.at_ns,
                resident: statm_sample.resident,
                anonymous: statm_sample.anonymous,
            },
        );
        let mut levels: Vec<Level> = of_readings.chain(of_glances).collect();
        levels.sort_by_key(|level| level.at_ns);
        levels
    }

    /// Whether the tree was one process at that moment.
    fn is_alone(&self, statm_sample: &StatmSample) -> bool {
        let others = self.processes.iter().enumerate().filter(|(index, _)| *index != statm_sample.process);
        others
            .clone()
            .all(|(_, other)| statm_sample.at_ns < other.began_ns || statm_sample.at_ns >= other.ended_ns)
    }

    /// The bytes of a class in a reading.
    pub fn of_class(&self, reading: &Reading, class: Class) -> Amounts {
        let own =
            reading.parts.iter().filter(|(part, _)| self.parts.get(*part).is_some_and(|p| p.class == class));
        own.fold(Amounts::default(), |sum, (_, amounts)| sum.plus(*amounts))
    }

    /// The reading in which the tree was largest; the first of several.
    pub fn peak(&self) -> Option<&Reading> {
        self.readings.iter().rev().max_by_key(|reading| reading.tree.amounts.resident)
    }

    /// As above, of the smaps snapshots only.
    pub fn full_peak(&self) -> Option<&Reading> {
        let full = self.readings.iter().rev().filter(|reading| reading.full);
        full.max_by_key(|reading| reading.tree.amounts.resident)
    }

    /// The levels without the x32 runtime's own memory. A statm sample does not show it: then the value of the reading
    /// before, or else of the first one, is used.
    fn programs_levels(&self) -> Vec<Level> {
        let own: Vec<(u64, Amounts)> = self
            .readings
            .iter()
            .map(|reading| (reading.at_ns, self.of_class(reading, Class::Runtime)))
            .collect();
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
            "tree_pss" => self.most_in_full(|reading| {
                reading.tree.amounts.pss.saturating_sub(self.of_class(reading, Class::Runtime).pss)
            }),
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

/// The reduction as rauschmayr-2013 defines it: `(memory of the baseline - memory of the variant) / memory of the
/// baseline`, a fraction, negative where the variant needs more. Absent where the baseline has none.
pub fn reduction(baseline: f64, variant: f64) -> Option<f64> {
    (baseline > 0.0).then(|| (baseline - variant) / baseline)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn every_metric_of_the_family_has_a_figure() {
        let own = metric::METRICS.iter().filter(|metric| metric.family == metric::Family::Series);
        // That one is the control group's.
        for metric in own.filter(|metric| metric.name != "tree_charged") {
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
