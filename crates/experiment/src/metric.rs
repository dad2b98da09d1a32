//! Metrics, one row each: a name, a unit, a direction and a source.

use std::fmt;

use crate::units::Unit;

/// Which way a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Less of it is better: time, memory, faults.
    LowerIsBetter,
    /// Neither way is better by itself: the number of processes.
    Neutral,
}

/// Where a metric's numbers come from, as a family; the archive keeps the exact source of each reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// The kernel's accounting at the process's exit: costs the program nothing.
    Accounting,
    /// Performance counters (`perf_event_open(2)`), where the machine has them.
    Counter,
    /// The memory of the process tree, read while the program runs, in separate runs, because reading perturbs.
    Series,
    /// The x32 runtime's own figures, where it replaces the kernel's x32 support.
    Runtime,
}

/// One row of [`METRICS`].
#[derive(Debug, PartialEq)]
pub struct MetricRow {
    /// The name in spec files, on the command line, in JSON and in the archive.
    pub name: &'static str,
    /// The name in a column head.
    pub title: &'static str,
    /// The noun of a sentence: "x32 uses 15 % less **peak memory**".
    pub noun: &'static str,
    /// What its numbers count.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// Where it comes from.
    pub family: Family,
    /// Measured by default.
    pub default: bool,
    /// One sentence: what is counted, and over which processes.
    pub about: &'static str,
}

/// A row of [`METRICS`].
pub type Metric = &'static MetricRow;

use Direction::{LowerIsBetter, Neutral};
use Family::{Accounting, Counter, Runtime, Series};
use Unit::{Bytes, Count, Nanoseconds};

macro_rules! metrics {
    ($($name:literal $title:literal $noun:literal $unit:ident $direction:ident $family:ident $default:literal $about:literal;)*) => {
        &[$(MetricRow { name: $name, title: $title, noun: $noun, unit: $unit, direction: $direction,
                        family: $family, default: $default, about: $about }),*]
    };
}

/// Every metric. The order is the order of columns in reports.
#[rustfmt::skip]
pub static METRICS: &[MetricRow] = metrics![
    "cpu"                  "CPU time"             "CPU time"             Nanoseconds LowerIsBetter Accounting true  "user and system time of the whole process tree (wait4's rusage); precise, whatever the tick";
    "wall"                 "wall time"            "wall time"            Nanoseconds LowerIsBetter Accounting true  "from execve to the end of the program, CLOCK_MONOTONIC";
    "user"                 "user time"            "user time"            Nanoseconds LowerIsBetter Accounting true  "time in user mode, whole process tree; the kernel splits user from system by its tick";
    "system"               "system time"          "system time"          Nanoseconds LowerIsBetter Accounting true  "time in the kernel, whole process tree; the kernel splits user from system by its tick";
    "max_rss"        "max RSS"              "peak memory"          Bytes       LowerIsBetter Accounting true  "VmHWM of the largest process of the tree";
    "max_rss_sum"    "sum of max RSS"       "memory summed over processes" Bytes LowerIsBetter Accounting false "VmHWM summed over every process of the tree; pages they share count once for each";
    "peak_virtual"         "peak virtual"         "peak address space"   Bytes       LowerIsBetter Accounting true  "VmPeak of the largest process of the tree";
    "page_faults"          "page faults"          "page faults"          Count       LowerIsBetter Accounting true  "minor and major faults of the whole process tree";
    "minor_faults"         "minor faults"         "minor faults"         Count       LowerIsBetter Accounting true  "page faults that needed no disk, whole process tree";
    "major_faults"         "major faults"         "major faults"         Count       LowerIsBetter Accounting true  "page faults that waited for a disk, whole process tree";
    "voluntary_switches"   "voluntary switches"   "voluntary switches"   Count       LowerIsBetter Accounting true  "context switches because the program waited, whole process tree";
    "involuntary_switches" "involuntary switches" "involuntary switches" Count       LowerIsBetter Accounting true  "context switches because another task took the core, whole process tree";
    "processes"            "processes"            "processes"            Count       Neutral       Accounting false "processes of the tree, the program itself among them";
    "runtime_cpu"          "x32run CPU time"      "CPU time of x32run itself" Nanoseconds LowerIsBetter Runtime false "the x32 runtime's own CPU time, where it stands in for the kernel: within the CPU time and the wall time";
    "runtime_calls"        "x32run calls"         "calls that x32run translated" Count LowerIsBetter Runtime false "system calls that trapped or that the x32 runtime had to translate, whole process tree";
    "runtime_resident"     "x32run memory"        "memory of x32run itself" Bytes LowerIsBetter Runtime false "the x32 runtime's own resident memory in the process of the peak: left out of the peak";
    "runtime_faults"       "x32run page faults"   "page faults of x32run itself" Count LowerIsBetter Runtime false "the x32 runtime's own page faults, whole process tree: left out of the page faults";
    "cycles"               "cycles"               "cycles"               Count       LowerIsBetter Counter    false "core cycles in user mode";
    "instructions"         "instructions"         "instructions"         Count       LowerIsBetter Counter    false "instructions retired in user mode";
    "stalled_cycles"       "stalled cycles"       "stalled cycles"       Count       LowerIsBetter Counter    false "core cycles in user mode in which the front end issued nothing";
    "branches"             "branches"             "branches"             Count       LowerIsBetter Counter    false "branch instructions retired in user mode";
    "branch_misses"        "branch misses"        "branch misses"        Count       LowerIsBetter Counter    false "mispredicted branches in user mode";
    "cache_references"     "cache references"     "cache references"     Count       LowerIsBetter Counter    false "last-level cache references in user mode";
    "cache_misses"         "cache misses"         "cache misses"         Count       LowerIsBetter Counter    false "last-level cache misses in user mode";
    "dtlb_misses"          "dTLB misses"          "data-TLB misses"      Count       LowerIsBetter Counter    false "data-TLB read misses in user mode";
    "task_clock"           "task clock"           "task clock"           Nanoseconds LowerIsBetter Counter    false "the kernel's software clock of the tasks: time on a core";
    "cpu_migrations"       "migrations"           "migrations"           Count       LowerIsBetter Counter    false "moves from one CPU to another";
    "tree_peak"            "tree peak"            "memory at its peak"   Bytes       LowerIsBetter Series     false "the highest resident memory of the whole process tree; pages that its processes share count once; between two amounts where the kernel's accounts do not say more";
    "tree_charged"         "tree charged"         "charged memory"       Bytes       LowerIsBetter Series     false "the peak of a control group around the tree, where one can be made: page cache and the kernel's own memory for the tree are in it, pages of files that were cached before are not";
    "tree_mean"            "tree mean"            "memory over time"     Bytes       LowerIsBetter Series     false "the mean over time of the whole tree's resident memory; pages that its processes share count once";
    "tree_pss"             "tree PSS"             "proportional memory"  Bytes       LowerIsBetter Series     false "the highest sum of PSS over the tree: each page divided by the number of all its users, those outside the tree too";
    "tree_anonymous"       "tree anonymous"       "anonymous memory"     Bytes       LowerIsBetter Series     false "the highest resident memory of the tree that no file stands behind";
    "tree_allocated"       "tree allocated"       "heap and mmapped memory" Bytes    LowerIsBetter Series     false "the highest resident memory of heap and mmapped blocks together: what an allocator has from the system";
    "tree_heap"            "tree heap"            "heap memory"          Bytes       LowerIsBetter Series     false "the highest resident memory of the tree's heaps, as brk grows them";
    "tree_mmapped"         "tree mmapped"         "mmapped memory"       Bytes       LowerIsBetter Series     false "the highest resident memory of the tree's anonymous mappings, stacks left out";
    "tree_stacks"          "tree stacks"          "stack memory"         Bytes       LowerIsBetter Series     false "the highest resident memory of the tree's stacks, of all threads";
    "tree_libraries"       "tree libraries"       "memory of libraries"  Bytes       LowerIsBetter Series     false "the highest resident memory of the tree's shared libraries, text and data";
    "tree_page_tables"     "tree page tables"     "page tables"          Bytes       LowerIsBetter Series     false "the highest sum of page tables (VmPTE) over the tree; the kernel's memory, and in no other figure";
];

/// The counters that valgrind's cachegrind can emulate where the machine has none.
const EMULATED: [&str; 5] = ["instructions", "branches", "branch_misses", "cache_references", "cache_misses"];

impl MetricRow {
    /// Whether an emulation can count it where the machine cannot.
    pub fn can_be_emulated(&self) -> bool {
        EMULATED.contains(&self.name)
    }
}

/// The metric of that name, if there is one.
pub fn find(name: &str) -> Option<Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// The metrics of the memory series.
pub fn series() -> Vec<Metric> {
    METRICS.iter().filter(|metric| metric.family == Family::Series).collect()
}

/// The x32 runtime's own metrics.
pub fn runtime() -> impl Iterator<Item = Metric> {
    METRICS.iter().filter(|metric| metric.family == Family::Runtime)
}

/// The default metrics.
pub fn defaults() -> Vec<Metric> {
    METRICS.iter().filter(|metric| metric.default).collect()
}

/// Metrics that depend on the scheduling of runs that share a CPU: concurrent runs do not have them.
pub const NOT_CONCURRENT: [&str; 2] = ["wall", "involuntary_switches"];

impl fmt::Display for MetricRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
