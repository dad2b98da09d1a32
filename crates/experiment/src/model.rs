//! The experiment: the complete definition of a campaign.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::abi::Abi;
use crate::cache_model::CacheModel;
use crate::kernel::Kernel;
use crate::metric::{self, Family, Metric};
use crate::role::{control_of, Role};
use crate::schedule::Order;
use crate::source::Language;

/// The measured program.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// A short name for reports and folders: `sqlite3`, `tree`, `lua-5.4`.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// How a run is started, before placeholders are filled in: split into words as a shell would, and started
    /// without a shell.
    pub run: String,
}

/// Where the program comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// A C or C++ file, or a folder, built for each variant in the variant's build folder, which begins as a copy of
    /// `path` (of a folder; of a file: empty).
    Source {
        /// The file or folder.
        path: PathBuf,
        /// How it is built. A single file determines it by its name.
        build: Build,
    },
    /// A Debian source package, fetched without touching the system's apt configuration.
    Debian {
        /// The source package's name.
        package: String,
        /// The version asked for; the newest if absent.
        version: Option<String>,
        /// How it is built.
        build: Build,
    },
    /// Finished binaries: one for each value of the first column of the matrix.
    Binaries {
        /// Variant name (`x86-64`, or any name the user chose) to file.
        files: BTreeMap<String, PathBuf>,
    },
}

/// How a variant is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Build {
    /// The user's command, before placeholders are filled in: text for `sh -e`.
    Shell(String),
    /// One file by one call of the compiler, without a shell.
    Compile {
        /// What the file is written in.
        language: Language,
        /// The program's name in the build folder.
        output: String,
    },
}

impl Build {
    /// The command as a shell would be given it: for reports.
    pub fn text(&self) -> String {
        match self {
            Build::Shell(text) => text.clone(),
            Build::Compile { language, output } => {
                let (compiler, options) = language.variables();
                let output = shell_words::quote(output);
                format!("${compiler} ${options} -pthread -o {{build}}/{output} {{source}} $LDFLAGS -lm")
            }
        }
    }
}

/// One point in the matrix of the axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Its stable name: the values of the axes that the experiment names, joined by `/`.
    pub name: String,
    /// Pointer width and calling convention. For finished binaries with another name: absent until the file is read.
    pub abi: Option<Abi>,
    /// The compiler's name (`gcc-12`), or absent for finished binaries and for the machine's default.
    pub compiler: Option<String>,
    /// The compiler options.
    pub flags: FlagSet,
    /// `glibc` (nothing preloaded), `jemalloc`, `mimalloc`, `tcmalloc`.
    pub allocator: String,
    /// Transparent huge pages.
    pub thp: Thp,
    /// Environment variables of the program, from the `env` axis; over those of [`Launch::environment`].
    pub environment: BTreeMap<String, String>,
    /// The kernel it runs on.
    pub kernel: Kernel,
    /// The finished binary, where there is one.
    pub binary: Option<PathBuf>,
}

impl Variant {
    /// Whether it runs on an emulated machine, whose time is no time.
    pub fn is_emulated(&self) -> bool {
        self.kernel.is_emulated() || self.abi.is_some_and(|abi| abi.is_foreign)
    }
}

/// A named set of compiler options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagSet {
    /// Its name: the options themselves (`-O2`), or a word (`lto`, `pgo`, one from the spec file).
    pub name: String,
    /// For CFLAGS.
    pub cflags: String,
    /// For CXXFLAGS.
    pub cxxflags: String,
    /// For LDFLAGS.
    pub ldflags: String,
    /// Profile-guided: the build is made twice, with a training run between.
    pub profile_guided: bool,
    /// The training command of a profile-guided build; the run command if absent.
    pub train: Option<String>,
}

/// The program's setting of transparent huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thp {
    /// The system's setting.
    System,
    /// Everywhere (needs the right to write the system's setting; it is put back after each run).
    Always,
    /// Where the program asks with `madvise(2)` (likewise).
    Madvise,
    /// Nowhere (`PR_SET_THP_DISABLE`).
    Never,
}

/// How a run is launched; the same for every variant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Launch {
    /// The program's standard input; `/dev/null` if absent.
    pub stdin: Option<PathBuf>,
    /// The working directory.
    pub directory: Directory,
    /// Files the program reads: part of the program's identity (a change is noticed on resume), and linked into a
    /// fresh working directory.
    pub inputs: Vec<PathBuf>,
    /// Environment variables for every variant.
    pub environment: BTreeMap<String, String>,
    /// A shell command before each run, not timed.
    pub setup: Option<String>,
    /// A shell command after each run, not timed.
    pub teardown: Option<String>,
    /// A run that lasts longer is killed.
    pub timeout: Option<Duration>,
    /// An emulated machine whose kernel has not started its first process after so long is ended.
    pub boot_timeout: Option<Duration>,
    /// The exit status that counts as success; 0 if absent.
    pub exit_status: Option<i32>,
    /// Which CPUs a run may use.
    pub cpus: Cpus,
    /// Address space layout randomisation is switched off for the program.
    pub no_aslr: bool,
    /// The runs of a round are made at the same time, on one CPU.
    pub concurrent: bool,
    /// Each process is stopped at its exit, and its peaks are read there.
    pub exit_stop: bool,
}

/// The working directory of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Directory {
    /// The user's working directory, or the spec file's folder.
    #[default]
    Here,
    /// A folder made anew for each run, with links to the input files; removed after it.
    Fresh,
    /// A named folder.
    Path(PathBuf),
}

/// Which CPUs a run may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cpus {
    /// One core whose SMT siblings are idle, the same for the whole round.
    #[default]
    Auto,
    /// Any CPU, chosen by the kernel.
    Any,
    /// These.
    List(Vec<u32>),
}

/// How a variant's output is compared with the baseline's.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OutputCheck {
    /// Files the program writes, compared instead of its standard output; relative to the working directory.
    pub files: Vec<PathBuf>,
    /// A shell command that each output is piped through before it is compared.
    pub filter: Option<String>,
    /// A variant with a different output is compared nevertheless, and the report states it.
    pub allow_different: bool,
    /// Nothing is compared, and the report states it.
    pub off: bool,
    /// The program reports metrics on its standard output: these lines are not compared.
    pub without_metrics: bool,
}

/// The stopping rule: the first condition that holds ends the campaign.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stopping {
    /// The number of timed rounds.
    pub rounds: Option<u32>,
    /// When every verdict on the deciding metrics is known to this half-width, as a fraction (0.01 for 1 %).
    pub precision: Option<f64>,
    /// The time limit of the rounds.
    pub max_time: Option<Duration>,
}

/// How samples become verdicts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judging {
    /// Confidence of the intervals and of the family of verdicts, 0.95 by default.
    pub confidence: f64,
    /// Two variants are equivalent where the whole interval lies inside this margin, a fraction (0.01 for ±1 %, the
    /// default): between 1 / (1 + margin) and 1 + margin times the baseline's figure.
    pub equal_within: f64,
    /// What is averaged.
    pub estimator: Estimator,
}

/// What is averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimator {
    /// The robust mean of the paired log-ratios, with a BCa bootstrap interval.
    Paired,
    /// peringer-2007's: ten runs, the two slowest and the two fastest left out, the ratio of the averages of six.
    TenRunTrim,
}

/// A program, its variants, its metrics and its stopping rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// What is measured.
    pub program: Program,
    /// Every variant, in the order of the tables.
    pub variants: Vec<Variant>,
    /// The name of the variant the others are compared with.
    pub baseline: String,
    /// The metrics, in the order of the columns.
    pub metrics: Vec<Metric>,
    /// How a run is launched.
    pub launch: Launch,
    /// How outputs are compared.
    pub check: OutputCheck,
    /// When to stop.
    pub stopping: Stopping,
    /// Rounds before the timed ones.
    pub warmup: u32,
    /// Rounds after the timed ones in which memory is read over time; 0 for none.
    pub memory: u32,
    /// How samples become verdicts.
    pub judging: Judging,
    /// The order of the runs of a round.
    pub order: Order,
    /// The caches of emulated machines, where a metric of theirs is measured.
    pub cache_model: CacheModel,
    /// Programs on other kernels are timed, under KVM.
    pub kvm: bool,
    /// How many layouts of each variant are built, and as many of the A/A control: at least 2. 0: one, which the linker
    /// chooses.
    pub layouts: u32,
    /// Seed of the random order, of the paddings and of the bootstrap.
    pub seed: u64,
}

impl Experiment {
    /// The name of the A/A control: the baseline measured a second time, which sets the detection floor.
    pub fn control(&self) -> String {
        control_of(&self.baseline)
    }

    /// The metrics of the memory series that it asks for.
    pub fn series(&self) -> Vec<Metric> {
        self.metrics.iter().copied().filter(|metric| metric.family == Family::Series).collect()
    }

    /// Whether the control group's is the only one of these: without such a group, rounds yield nothing that was asked for.
    pub fn needs_group(&self) -> bool {
        matches!(self.series()[..], [only] if only.name == metric::OF_GROUP)
    }

    /// Whether a variant of it runs on an emulated machine.
    pub fn has_emulated(&self) -> bool {
        self.variants.iter().any(Variant::is_emulated)
    }

    /// Whether the variant of that name, or the A/A control, runs on an emulated machine.
    pub fn is_emulated(&self, name: &str) -> bool {
        let name = if name == self.control() { &self.baseline } else { name };
        self.variants.iter().any(|variant| variant.name == name && variant.is_emulated())
    }

    /// Whether the variant of that name, or the A/A control, has times: it runs natively, or on another kernel under KVM.
    pub fn is_timed(&self, name: &str) -> bool {
        !self.is_emulated(name) || (self.kvm && self.is_on_kernel(name))
    }

    /// Whether the variant of that name, or the A/A control, runs on a kernel that is booted for it.
    pub fn is_on_kernel(&self, name: &str) -> bool {
        let name = if name == self.control() { &self.baseline } else { name };
        self.variants.iter().any(|variant| variant.name == name && variant.kernel.is_emulated())
    }

    /// The role of the variant of that name.
    pub fn role(&self, variant: &str) -> Role {
        if variant == self.baseline {
            Role::Baseline
        } else if variant == self.control() {
            Role::Control
        } else {
            Role::Variant
        }
    }

    /// The metrics whose intervals decide when `--precision` is reached: those that the program reports, if there are any;
    /// otherwise CPU time (instructions where every variant is emulated) and peak memory where they are measured, all that are of timed
    /// rounds otherwise. Under KVM it is CPU time: all else is counted in rounds of its own. (User time depends on the tick and switches on other programs:
    /// their intervals might never be narrow enough.)
    pub fn deciding(&self) -> Vec<Metric> {
        let of = |family: Family| -> Vec<Metric> {
            self.metrics.iter().copied().filter(|metric| metric.family == family).collect()
        };
        let reported = of(Family::Reported);
        if !reported.is_empty() {
            return reported;
        }
        let timed = |metric: &Metric| metric.is_timed();
        let is_emulated = self.variants.iter().all(Variant::is_emulated);
        let is_chosen = |metric: &Metric| match metric.name {
            "cpu" => true,
            _ if self.kvm => false,
            "max_rss" => true,
            "instructions_user" | "instructions_kernel" => is_emulated,
            _ => false,
        };
        let chosen: Vec<Metric> = self.metrics.iter().copied().filter(is_chosen).collect();
        if chosen.is_empty() {
            self.metrics.iter().copied().filter(timed).collect()
        } else {
            chosen
        }
    }
}
