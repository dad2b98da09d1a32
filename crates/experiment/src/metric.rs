//! Metrics, one row each: a name, a unit, a direction and a source.

use std::fmt;

use std::sync::Mutex;

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
    /// Instructions that QEMU executed for the program, in runs of their own.
    Machine,
    /// The same instructions by class: only where that is asked for.
    InstructionClass,
    /// Misses of caches that QEMU's plugin models, in the same runs: only where that is asked for.
    CacheModel,
    /// The x32 runtime's own figures, where it replaces the kernel's x32 support.
    Runtime,
    /// Reported by the program itself, on its standard output.
    Reported,
    /// Instructions of one operation of the micro suite, counted by valgrind in separate runs.
    Operation,
    /// Instructions of one operation of the micro suite, in user space or in the kernel, that QEMU executed: where some variant is on
    /// another kernel.
    MachineOperation,
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
use Family::{Accounting, CacheModel, Counter, InstructionClass, Machine, Runtime, Series};
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
    "cpu"                  "CPU time"             "CPU time"             Nanoseconds LowerIsBetter Accounting true  "user and system time of the whole process tree (wait4's rusage); exact to the microsecond";
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
    "runtime_cpu"          "x32run CPU time"      "CPU time of x32run itself" Nanoseconds LowerIsBetter Runtime false "the x32 runtime's own CPU time, where it runs x32 programs; a part of the CPU time and of the wall time";
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
    "instructions_user"    "user instructions"    "instructions in user space" Count LowerIsBetter Machine  false "instructions that an emulated machine (QEMU) executed in the program and its libraries";
    "instructions_kernel"  "kernel instructions"  "instructions in the kernel" Count LowerIsBetter Machine  false "instructions that an emulated machine (QEMU) executed in the kernel for the program, without those of starting and ending an empty program";
    "instructions_user_integer" "user integer" "integer instructions in user space" Count LowerIsBetter InstructionClass false "integer arithmetic, logic and moves between registers: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_branch" "user branch" "branches in user space" Count LowerIsBetter InstructionClass false "jumps, calls and returns: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_load_store" "user load store" "loads and stores in user space" Count LowerIsBetter InstructionClass false "moves between a register and memory, outside of the stack class: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_stack" "user stack" "stack instructions in user space" Count LowerIsBetter InstructionClass false "push, pop, and changes of the stack pointer: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_nop" "user nop" "nops in user space" Count LowerIsBetter InstructionClass false "instructions that do nothing: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_x87" "user x87" "x87 instructions in user space" Count LowerIsBetter InstructionClass false "x87 and MMX: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_sse_scalar_single" "user sse scalar single" "SSE instructions on one float in user space" Count LowerIsBetter InstructionClass false "SSE, one float: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_sse_packed_single" "user sse packed single" "SSE instructions on packed floats in user space" Count LowerIsBetter InstructionClass false "SSE, packed floats: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_sse_scalar_double" "user sse scalar double" "SSE instructions on one double in user space" Count LowerIsBetter InstructionClass false "SSE, one double: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_sse_packed_double" "user sse packed double" "SSE instructions on packed doubles in user space" Count LowerIsBetter InstructionClass false "SSE, packed doubles: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_sse_integer" "user sse integer" "SSE instructions on integers in user space" Count LowerIsBetter InstructionClass false "SSE on integers, and moves of whole registers: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_avx" "user avx" "AVX instructions in user space" Count LowerIsBetter InstructionClass false "AVX, AVX2 and FMA: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_avx512" "user avx512" "AVX-512 instructions in user space" Count LowerIsBetter InstructionClass false "AVX-512: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_float" "user float" "floating-point and vector instructions in user space" Count LowerIsBetter InstructionClass false "floating point and vectors of processors that are not x86: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_user_invalid" "user invalid" "instructions of unknown class in user space" Count LowerIsBetter InstructionClass false "bytes that the disassembler does not know: a part of instructions_user, counted by the plugin of QEMU";
    "instructions_kernel_integer" "kernel integer" "integer instructions in the kernel" Count LowerIsBetter InstructionClass false "integer arithmetic, logic and moves between registers: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_branch" "kernel branch" "branches in the kernel" Count LowerIsBetter InstructionClass false "jumps, calls and returns: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_load_store" "kernel load store" "loads and stores in the kernel" Count LowerIsBetter InstructionClass false "moves between a register and memory, outside of the stack class: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_stack" "kernel stack" "stack instructions in the kernel" Count LowerIsBetter InstructionClass false "push, pop, and changes of the stack pointer: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_nop" "kernel nop" "nops in the kernel" Count LowerIsBetter InstructionClass false "instructions that do nothing: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_x87" "kernel x87" "x87 instructions in the kernel" Count LowerIsBetter InstructionClass false "x87 and MMX: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_sse_scalar_single" "kernel sse scalar single" "SSE instructions on one float in the kernel" Count LowerIsBetter InstructionClass false "SSE, one float: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_sse_packed_single" "kernel sse packed single" "SSE instructions on packed floats in the kernel" Count LowerIsBetter InstructionClass false "SSE, packed floats: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_sse_scalar_double" "kernel sse scalar double" "SSE instructions on one double in the kernel" Count LowerIsBetter InstructionClass false "SSE, one double: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_sse_packed_double" "kernel sse packed double" "SSE instructions on packed doubles in the kernel" Count LowerIsBetter InstructionClass false "SSE, packed doubles: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_sse_integer" "kernel sse integer" "SSE instructions on integers in the kernel" Count LowerIsBetter InstructionClass false "SSE on integers, and moves of whole registers: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_avx" "kernel avx" "AVX instructions in the kernel" Count LowerIsBetter InstructionClass false "AVX, AVX2 and FMA: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_avx512" "kernel avx512" "AVX-512 instructions in the kernel" Count LowerIsBetter InstructionClass false "AVX-512: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_float" "kernel float" "floating-point and vector instructions in the kernel" Count LowerIsBetter InstructionClass false "floating point and vectors of processors that are not x86: a part of instructions_kernel, counted by the plugin of QEMU";
    "instructions_kernel_invalid" "kernel invalid" "instructions of unknown class in the kernel" Count LowerIsBetter InstructionClass false "bytes that the disassembler does not know: a part of instructions_kernel, counted by the plugin of QEMU";
    "l1i_misses_user" "user L1i misses" "instruction-cache misses in user space" Count LowerIsBetter CacheModel false "fetches of code that miss the first level: of a model in the plugin of QEMU (--cache-model)";
    "l1d_misses_user" "user L1d misses" "data-cache misses in user space" Count LowerIsBetter CacheModel false "accesses to data that miss the first level: of a model in the plugin of QEMU (--cache-model)";
    "ll_misses_user" "user last-level misses" "last-level cache misses in user space" Count LowerIsBetter CacheModel false "misses of the first level that miss the last one too: of a model in the plugin of QEMU (--cache-model)";
    "itlb_misses_user" "user iTLB misses" "instruction-TLB misses in user space" Count LowerIsBetter CacheModel false "fetches of code whose page is not in the TLB: of a model in the plugin of QEMU (--cache-model)";
    "dtlb_misses_user" "user dTLB misses" "data-TLB misses in user space" Count LowerIsBetter CacheModel false "accesses to data whose page is not in the TLB: of a model in the plugin of QEMU (--cache-model)";
    "l1i_misses_kernel" "kernel L1i misses" "instruction-cache misses in the kernel" Count LowerIsBetter CacheModel false "fetches of code that miss the first level: of a model in the plugin of QEMU (--cache-model)";
    "l1d_misses_kernel" "kernel L1d misses" "data-cache misses in the kernel" Count LowerIsBetter CacheModel false "accesses to data that miss the first level: of a model in the plugin of QEMU (--cache-model)";
    "ll_misses_kernel" "kernel last-level misses" "last-level cache misses in the kernel" Count LowerIsBetter CacheModel false "misses of the first level that miss the last one too: of a model in the plugin of QEMU (--cache-model)";
    "itlb_misses_kernel" "kernel iTLB misses" "instruction-TLB misses in the kernel" Count LowerIsBetter CacheModel false "fetches of code whose page is not in the TLB: of a model in the plugin of QEMU (--cache-model)";
    "dtlb_misses_kernel" "kernel dTLB misses" "data-TLB misses in the kernel" Count LowerIsBetter CacheModel false "accesses to data whose page is not in the TLB: of a model in the plugin of QEMU (--cache-model)";
    "tree_peak"            "tree peak"            "memory at its peak"   Bytes       LowerIsBetter Series     false "the highest resident memory of the whole process tree; pages that its processes share count once; with a lower and an upper bound where it is not known exactly";
    "tree_charged"         "tree charged"         "charged memory"       Bytes       LowerIsBetter Series     false "the peak of a control group around the tree, where one can be made: page cache and the kernel's own memory for the tree are in it, pages of files that were cached before are not";
    "tree_mean"            "tree mean"            "memory over time"     Bytes       LowerIsBetter Series     false "the mean over time of the whole tree's resident memory; pages that its processes share count once";
    "tree_pss"             "tree PSS"             "proportional memory"  Bytes       LowerIsBetter Series     false "the highest sum of PSS over the tree: each page divided by the number of all its users, those outside the tree too";
    "tree_anonymous"       "tree anonymous"       "anonymous memory"     Bytes       LowerIsBetter Series     false "the highest anonymous resident memory of the tree";
    "tree_allocated"       "tree allocated"       "heap and mmapped memory" Bytes    LowerIsBetter Series     false "the highest resident memory of heap and mmapped blocks: what the system has given to an allocator";
    "tree_heap"            "tree heap"            "heap memory"          Bytes       LowerIsBetter Series     false "the highest resident memory of the tree's heaps, as brk grows them";
    "tree_mmapped"         "tree mmapped"         "mmapped memory"       Bytes       LowerIsBetter Series     false "the highest resident memory of the tree's anonymous mappings, stacks left out";
    "tree_stacks"          "tree stacks"          "stack memory"         Bytes       LowerIsBetter Series     false "the highest resident memory of the tree's stacks, of all threads";
    "tree_libraries"       "tree libraries"       "memory of libraries"  Bytes       LowerIsBetter Series     false "the highest resident memory of the tree's shared libraries, text and data";
    "tree_page_tables"     "tree page tables"     "page tables"          Bytes       LowerIsBetter Series     false "the highest sum of page tables (VmPTE) over the tree; the kernel's memory, and in no other figure";
];

/// The counters that valgrind's cachegrind can emulate where the machine has none.
const EMULATED: [&str; 5] = ["instructions", "branches", "branch_misses", "cache_references", "cache_misses"];

impl MetricRow {
    /// Whether timed rounds read it.
    pub fn is_timed(&self) -> bool {
        !self.is_of_machine() && !matches!(self.family, Family::Series | Family::Operation)
    }

    /// Whether the runs on emulated machines yield it, and nothing else does.
    pub fn is_of_machine(&self) -> bool {
        matches!(
            self.family,
            Family::Machine | Family::InstructionClass | Family::CacheModel | Family::MachineOperation
        )
    }

    /// Whether it is of the kernel: no metric of a program of another processor.
    pub fn is_of_kernel(&self) -> bool {
        self.is_of_machine()
            && (self.name.starts_with("instructions_kernel") || self.name.ends_with("_kernel"))
    }

    /// Whether a program on another kernel has it under KVM: its times, and what it reports itself.
    pub fn is_under_kvm(&self) -> bool {
        self.family == Family::Reported || UNDER_KVM.contains(&self.name)
    }

    /// Whether an emulation can count it where the machine cannot.
    pub fn can_be_emulated(&self) -> bool {
        EMULATED.contains(&self.name) || self.family == Family::Operation
    }
}

/// The metric of that name, if there is one: a row of [`METRICS`], or one that [`reported`] made.
pub fn find(name: &str) -> Option<Metric> {
    let known = METRICS.iter().find(|metric| metric.name == name);
    known.or_else(|| named().iter().rev().copied().find(|metric| metric.name == name))
}

/// Every metric: the rows of [`METRICS`], and those that [`reported`] made.
pub fn all() -> Vec<Metric> {
    METRICS.iter().chain(named().iter().copied()).collect()
}

/// Metrics whose names come from a request. Each is made once and kept for ever, so that a metric is the same address
/// everywhere: a process reads few requests, and the same ones again and again.
static NAMED: Mutex<Vec<Metric>> = Mutex::new(Vec::new());

fn named() -> std::sync::MutexGuard<'static, Vec<Metric>> {
    NAMED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The metric that a program reports under that name; `noun` is the noun of a sentence.
pub fn reported(name: &str, unit: Unit, noun: &str) -> Metric {
    let about = "reported by the program itself, on its standard output";
    kept(name, noun, unit, Family::Reported, about)
}

/// The instructions of one operation whose time is the metric `name`.
pub fn operation_instructions(name: &str, noun: &str) -> Metric {
    let about = "instructions of one operation in user mode: the difference of two loops of n and 2 n iterations, by valgrind's \
                 callgrind";
    kept(
        &format!("{name}.instructions"),
        &format!("instructions for {noun}"),
        Unit::Count,
        Family::Operation,
        about,
    )
}

/// The instructions of one operation whose time is the metric `name`, in user space and in the kernel.
pub fn operation_on_machine(name: &str, noun: &str) -> [Metric; 2] {
    let [user, kernel] = [
        "instructions of one operation in user space, of all processes that take part: the difference of loops of n and 2 n \
         iterations, by the plugin of QEMU",
        "instructions of one operation in the kernel, without ticks of its clock: the difference of loops of n and 2 n iterations, \
         by the plugin of QEMU",
    ];
    [("user", user), ("kernel", kernel)].map(|(side, about)| {
        kept(
            &format!("{name}.instructions_{side}"),
            &format!("{side} instructions for {noun}"),
            Unit::Count,
            Family::MachineOperation,
            about,
        )
    })
}

fn kept(name: &str, noun: &str, unit: Unit, family: Family, about: &'static str) -> Metric {
    let mut all = named();
    let is_same = |metric: &&Metric| {
        metric.name == name && metric.noun == noun && metric.unit == unit && metric.family == family
    };
    if let Some(metric) = all.iter().find(is_same) {
        return metric;
    }
    let forever = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let name = forever(name);
    let metric = Box::leak(Box::new(MetricRow {
        name,
        title: name,
        noun: forever(noun),
        unit,
        direction: LowerIsBetter,
        family,
        default: false,
        about,
    }));
    all.push(metric);
    metric
}

/// The metric of the memory series that a run's control group has, which not every machine allows.
pub const OF_GROUP: &str = "tree_charged";

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

/// What an emulated machine yields of a program: the plugin's counts, and the guest kernel's accounts that do not depend on
/// time.
pub const ON_MACHINE: [&str; 6] =
    ["instructions_user", "instructions_kernel", "page_faults", "minor_faults", "major_faults", "max_rss"];

/// The times of a program on another kernel that runs under KVM.
const UNDER_KVM: [&str; 4] = ["cpu", "wall", "user", "system"];

/// Metrics that depend on the scheduling of runs that share a CPU: concurrent runs do not have them.
pub const NOT_CONCURRENT: [&str; 2] = ["wall", "involuntary_switches"];

impl fmt::Display for MetricRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
