//! The memory series of a run, and the metrics computed from it.
//!
//! Times are nanoseconds since the program's `execve`, amounts are bytes. There are three kinds of readings. A *statm
//! sample* (`/proc/PID/statm`) has the size of one process; it is cheap and frequent. A *pagemap scan*
//! (`/proc/PID/pagemap`) divides the memory of a tree of one process by use, and costs some ten times as much. An
//! *smaps snapshot* (`/proc/PID/smaps` of every process of the tree, one after the other) adds shared and swapped
//! memory, and costs ten times that.

mod figures;
pub mod mean;

use crate::model::{Cpus, Launch};

/// Below this many nanoseconds, a program is too short where its series has no reading.
pub const BRIEF_NS: u64 = 100_000_000;
/// The least share of the peak that a series must have seen to represent a program.
pub const NEAR_PEAK: f64 = 0.8;
/// The least share of the peak at which a reading counts as one of the peak.
pub const AT_PEAK: f64 = 0.95;

/// By so many bytes for each CPU that a process ran on its resident size in the kernel's accounts may lag, on a machine of up to 16 CPUs:
/// since Linux 6.2 a CPU adds up to 32 pages of each of three kinds before the others see them (`lib/percpu_counter.c`).
pub const RSS_LAG: u64 = rss_lag_of_cpu(1);

/// The same on a machine with so many CPUs (`percpu_counter_batch`: the larger of 32 and twice their number).
pub const fn rss_lag_of_cpu(online: u64) -> u64 {
    let pages = if online > 16 { 2 * online } else { 32 };
    3 * pages * 4096
}

/// By how many bytes the kernel's account of max RSS may lag in runs that are launched so; 0 where it is exact. `release` is the kernel's
/// (`6.18.2-amd64`), `online` how many CPUs the machine has, and `allowed` how many of them it lets a program use. A reading at the exit
/// lags, too: what a program gave back before is in the peak as its account was then.
pub fn rss_lag(launch: &Launch, release: Option<&str>, online: usize, allowed: usize) -> u64 {
    /// With the per-CPU counters of resident sizes.
    const LAGS_SINCE: (u32, u32) = (6, 2);
    if release.and_then(version).is_some_and(|version| version < LAGS_SINCE) {
        return 0;
    }
    let cpus = match &launch.cpus {
        Cpus::Auto => 1,
        Cpus::Any => allowed.max(1),
        Cpus::List(cpus) => cpus.len(),
    };
    rss_lag_of_cpu(online as u64) * cpus as u64
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The use of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The `brk(2)` heap: `[heap]`.
    Heap,
    /// Other anonymous memory: large blocks and further arenas of an allocator, mmap of the program's own.
    Mmapped,
    /// Stacks, of the first thread and of the others.
    Stack,
    /// The program file, what is not writable and unchanged of it: code, constants, relocation records. Its executable mappings and the
    /// others have a part each ([`Part::CODE`], [`Part::CONSTANTS`]).
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
            Class::ProgramText => "program, read-only",
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
    /// The library's file name (`libc.so.6`); of the program file's read-only pages [`Part::CODE`] or [`Part::CONSTANTS`]; empty for
    /// classes without parts.
    pub name: String,
}

impl Part {
    /// The program file's executable mappings that are unchanged.
    pub const CODE: &str = "code";
    /// The program file's other mappings that are not writable and unchanged: constants, relocation records, unwind tables.
    pub const CONSTANTS: &str = "constants";
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

    /// What is left without the other.
    pub fn minus(self, other: Amounts) -> Amounts {
        Amounts {
            virtual_bytes: self.virtual_bytes.saturating_sub(other.virtual_bytes),
            resident: self.resident.saturating_sub(other.resident),
            pss: self.pss.saturating_sub(other.pss),
            anonymous: self.anonymous.saturating_sub(other.anonymous),
            swap: self.swap.saturating_sub(other.swap),
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
        let of_samples = self.statm_samples.iter().filter(|statm_sample| self.is_alone(statm_sample)).map(
            |statm_sample| Level {
                at_ns: statm_sample.at_ns,
                resident: statm_sample.resident,
                anonymous: statm_sample.anonymous,
            },
        );
        let mut levels: Vec<Level> = of_readings.chain(of_samples).collect();
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

    /// The amounts of the tree without the x32 runtime's own.
    pub fn of_program(&self, reading: &Reading) -> Amounts {
        reading.tree.amounts.minus(self.of_runtime(reading))
    }

    /// The x32 runtime's own memory in a reading. A pagemap scan does not show which of it is anonymous: then the value of the snapshot
    /// before, or else of the first one, is used.
    pub(crate) fn of_runtime(&self, reading: &Reading) -> Amounts {
        let own = self.of_class(reading, Class::Runtime);
        if reading.full {
            return own;
        }
        let mut snapshots = self.readings.iter().filter(|snapshot| snapshot.full);
        let before = snapshots.clone().rev().find(|snapshot| snapshot.at_ns <= reading.at_ns);
        let anonymous = before
            .or_else(|| snapshots.next())
            .map_or(0, |snapshot| self.of_class(snapshot, Class::Runtime).anonymous);
        Amounts { anonymous, ..own }
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
}

/// The reduction as rauschmayr-2013 defines it: `(memory of the baseline - memory of the variant) / memory of the
/// baseline`, a fraction, negative where the variant needs more. Absent where the baseline has none.
pub fn reduction(baseline: f64, variant: f64) -> Option<f64> {
    (baseline > 0.0).then(|| (baseline - variant) / baseline)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_of_max_rss_lags_with_the_kernel_and_the_cpus() {
        let lag = |cpus, release, online| {
            rss_lag(&Launch { cpus, ..Launch::default() }, release, online, 8) / RSS_LAG
        };
        for (release, expected) in [
            (Some("5.10.0-30-amd64"), 0),
            (Some("6.1.0-32-amd64"), 0),
            (Some("6.2.0"), 1),
            (Some("6.16.0-rc1"), 1),
            (Some("7.0"), 1),
            (None, 1),
            (Some("unknown"), 1),
        ] {
            assert_eq!(lag(Cpus::Auto, release, 8), expected, "{release:?}");
        }
        assert_eq!(lag(Cpus::Any, Some("6.18"), 16), 8);
        assert_eq!(lag(Cpus::List(vec![1, 3]), Some("6.18"), 2), 2);
        assert_eq!(lag(Cpus::Auto, Some("6.18"), 64), 4, "128 pages of each kind");
    }
}
