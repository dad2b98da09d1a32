//! A program on another kernel: a whole machine under `qemu-system-x86_64`, whose first process is runtime/guest/init.c.
//!
//! A machine that counts is made so that two boots do the same: one processor whose clock is the number of executed
//! instructions, no source of random numbers, fixed addresses, and no file but those of the initramfs. A machine under KVM
//! has this processor, its clock, and addresses that change with each boot.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use widthwise_experiment::bytes;
use widthwise_experiment::outcome::{Ending, Reading, Source};
use widthwise_machine::elf;

use crate::kernel_image::KernelImage;
use crate::passes::emulated_machine::counts::{CountFile, Counts, Executed};
use crate::passes::emulated_machine::operations::Operations;
use crate::passes::emulated_machine::options::{put_misses, ClassCounts, Options};
use crate::passes::emulated_machine::packing::{self, LargeFile};
use crate::passes::emulated_machine::plugin::Plugin;
use crate::passes::emulated_machine::report::{Outcome, Report, Times};
use crate::passes::emulated_machine::result::MachineRun;
use crate::run::ending;
use crate::run::launch_spec::LaunchSpec;
use crate::run::limits::Limits;
use crate::run::result::{RunError, RunResult};
use crate::run::runner::Runner;
use widthwise_proc::meminfo;

/// The exit status with which runtime/guest/init.c ends the machine: 2 * EXIT_VALUE + 1.
const ENDED: i32 = 99;
/// The memory of a machine with a program and inputs of usual size.
const MEMORY_MIB: u32 = 2048;
/// No source of random numbers. On a processor with ERMS, 64-bit kernels and C libraries copy and clear by single bytes, each of
/// which would count as an instruction.
pub(super) const PROCESSOR: &str = "max,-rdrand,-rdseed,-erms,-fsrm";
/// The machine type keeps its devices in later versions of QEMU. Later ones hand a random seed to the kernel.
const MACHINE: &str = "-nodefaults -no-user-config -display none -no-reboot -M pc-i440fx-7.1 -smp 1";
/// Time is the number of executed instructions.
const COUNTED: &str = "-accel tcg -rtc base=2026-01-01,clock=vm -icount shift=0,sleep=off -cpu";
const TIMED: &str = "-accel kvm -cpu host";
/// Without self-tests of the kernel's cryptography (3 of the 686 kernel's 4.6 thousand million instructions) and the search for
/// ISA cards.
const COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1 rdinit=/init cryptomgr.notests noisapnp";
/// The same addresses in each boot.
const FIXED_ADDRESSES: &str = "nokaslr norandmaps";
/// The markers of runtime/guest/init.c.
const EMPTY: (u64, u64) = (1, 2);
const PROGRAM: (u64, u64) = (3, 4);

/// What executes the instructions of a machine.
#[derive(Debug, Clone, Copy)]
pub(super) enum Accelerator<'a> {
    /// QEMU translates them, and its plugin counts them.
    Tcg {
        /// The plugin.
        plugin: &'a Plugin,
        /// What it counts beside the plain instructions.
        options: &'a Options<'a>,
    },
    /// This processor: the program is timed.
    Kvm {
        /// The operations of the micro suite, which time themselves.
        operations: Option<&'a Operations>,
    },
}

impl<'a> Accelerator<'a> {
    fn operations(self) -> Option<&'a Operations> {
        match self {
            Accelerator::Tcg { options, .. } => options.operations.as_ref(),
            Accelerator::Kvm { operations } => operations,
        }
    }
}

/// Boots machines.
pub(super) struct Guests<'a> {
    accelerator: Accelerator<'a>,
    folder: PathBuf,
    /// The folder of campaigns.
    campaigns: PathBuf,
    /// The archives that were made, by what is in them.
    packed: BTreeMap<PathBuf, Result<Archive, String>>,
}

/// An initramfs, and what goes with it.
#[derive(Debug, Clone)]
struct Archive {
    file: PathBuf,
    large: Vec<LargeFile>,
    /// The memory of the machine.
    memory_mib: u32,
    remarks: Vec<String>,
}

impl<'a> Guests<'a> {
    /// `campaign`: its folder, which is in that of all campaigns; `folder`: for files.
    pub fn new(accelerator: Accelerator<'a>, campaign: &Path, folder: &Path) -> Guests<'a> {
        let campaigns = campaign.parent().unwrap_or(campaign);
        let campaigns = std::fs::canonicalize(campaigns).unwrap_or_else(|_| campaigns.to_owned());
        Guests { accelerator, folder: folder.join("guest"), campaigns, packed: BTreeMap::new() }
    }

    /// One run: one boot.
    pub fn run(
        &mut self,
        start: &LaunchSpec,
        kernel: &KernelImage,
        runner: &mut Runner,
        cpus: &[u32],
        limits: Limits,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(RunResult, MachineRun), RunError> {
        let scratch = |path: &Path| {
            let path = path.to_owned();
            move |error| RunError::Scratch { path, error }
        };
        std::fs::create_dir_all(&self.folder).map_err(scratch(&self.folder))?;
        let place = |name: &str| self.folder.join(name);
        let files = Files {
            report: place("report"),
            console: place("console"),
            counts: place("counts"),
            stdout: place("stdout"),
            stderr: place("stderr"),
        };
        for file in [&files.report, &files.console, &files.counts, &files.stdout, &files.stderr] {
            std::fs::write(file, "").map_err(scratch(file))?;
        }
        let refused = |reason: String| {
            let ending = Ending::SpawnFailed { reason };
            (RunResult::failed(ending.clone()), files.run(ending))
        };
        let archive = match self.archive(start, kernel) {
            Ok(archive) => archive,
            Err(reason) => return Ok(refused(reason)),
        };
        let machine = self.machine(start, kernel, &archive, &files);
        let watch = Watch::begin(&files.report, limits);
        // The watch has one limit for the boot and one for the program.
        let timeout = limits.boot + limits.timeout * 2;
        let result = runner
            .run(&machine, 0, cpus, Limits { timeout, ..limits }, &|| watch.is_overdue() || cancelled())?;
        let mut run = match (result.ending.clone(), watch.overdue.get()) {
            (Ending::Done, _) => {
                let memory = archive.memory_mib;
                files.read(start, kernel, memory, self.accelerator).unwrap_or_else(|ending| files.run(ending))
            }
            (_, Some(Phase::Boot)) => {
                let limit = limits.boot.as_secs_f64();
                let how = format!("did not start its first process within {limit} s (--boot-timeout)");
                files.run(files.no_program(&how, kernel))
            }
            (_, Some(Phase::Program)) => {
                files.run(Ending::Timeout { limit_ns: limits.timeout.as_nanos() as u64 })
            }
            (Ending::Exit { status: 0 }, None) => files.run(files.no_program("ended early", kernel)),
            (Ending::Exit { status }, None) => {
                let text = last_line(&runner.stderr());
                files.run(Ending::SpawnFailed {
                    reason: format!("qemu-system-x86_64 ended with status {status}: {text}"),
                })
            }
            (other, None) => files.run(other),
        };
        run.remarks.extend(archive.remarks);
        Ok((result, run))
    }

    /// The initramfs of a program, made once.
    fn archive(&mut self, start: &LaunchSpec, kernel: &KernelImage) -> Result<Archive, String> {
        let most = if kernel.is_64_bit { packing::MOST_BYTES_64 } else { packing::MOST_BYTES_32 };
        let abi = abi_of(start)?;
        let mut digest = blake3::Hasher::new();
        let started = self.accelerator.operations().map(|asked| asked.started(start)).unwrap_or_default();
        digest.update(format!("{most} {start:?} {started:?}").as_bytes());
        let file = self.folder.join(format!("initramfs-{}", &digest.finalize().to_hex()[..16]));
        let campaigns = &self.campaigns;
        let made = self.packed.entry(file.clone()).or_insert_with(|| {
            let packed = packing::pack(start, abi, &started, campaigns, (most, most_large(kernel)))?;
            let write = || {
                let mut to = BufWriter::new(std::fs::File::create(&file)?);
                packed.files.write(&mut to)?;
                to.flush()
            };
            write().map_err(|error| {
                let _ = std::fs::remove_file(&file);
                format!("no room for the files of the emulated machine: {}: {error}", file.display())
            })?;
            // The archive and what is unpacked from it, beyond what every machine has room for. The first file system has half of the
            // memory.
            let large: u64 = packed.large.iter().map(|large| large.bytes).sum();
            let more = (packed.files.bytes().saturating_sub(packing::MOST_BYTES_32) + large) * 2;
            let memory_mib = MEMORY_MIB + more.div_ceil(1 << 20) as u32;
            Ok(Archive { file, large: packed.large, memory_mib, remarks: packed.remarks })
        });
        made.clone()
    }

    fn machine(
        &self,
        start: &LaunchSpec,
        kernel: &KernelImage,
        archive: &Archive,
        files: &Files,
    ) -> LaunchSpec {
        let named = |before: &str, path: &Path| {
            let mut word = OsString::from(before);
            word.push(path);
            word
        };
        let mut arguments: Vec<OsString> = vec!["qemu-system-x86_64".into()];
        arguments.extend(MACHINE.split(' ').map(OsString::from));
        let processor: Vec<&str> = match self.accelerator {
            Accelerator::Tcg { .. } => COUNTED.split(' ').chain([PROCESSOR]).collect(),
            Accelerator::Kvm { .. } => TIMED.split(' ').collect(),
        };
        arguments.extend(processor.into_iter().map(OsString::from));
        arguments.extend(["-m".into(), archive.memory_mib.to_string().into()]);
        arguments.extend(["-kernel".into(), kernel.file.clone().into()]);
        arguments.extend(["-initrd".into(), archive.file.clone().into()]);
        for (number, large) in archive.large.iter().enumerate() {
            // A comma in a value is written twice.
            let file = bytes::text(&large.from).replace(',', ",,");
            let option = bytes::os(&format!("name=opt/widthwise/{number},file={file}"));
            arguments.extend(["-fw_cfg".into(), option]);
        }
        let mut words = format!("{COMMAND_LINE} {}", kernel.command_line);
        if let Accelerator::Tcg { .. } = self.accelerator {
            words = format!("{words} {FIXED_ADDRESSES}");
        }
        arguments.extend(["-append".into(), words.trim().into()]);
        arguments.extend(["-serial".into(), named("file:", &files.console)]);
        arguments.extend(["-chardev".into(), named("file,id=report,path=", &files.report)]);
        arguments.extend(["-device", "isa-debugcon,iobase=0xe9,chardev=report"].map(OsString::from));
        arguments.extend(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"].map(OsString::from));
        if let Accelerator::Tcg { plugin, options } = self.accelerator {
            arguments.extend(["-plugin".into(), plugin.option(&files.counts, Some(kernel.split), options)]);
        }
        LaunchSpec {
            file: kernel.emulator.clone(),
            runtime: None,
            arguments,
            environment: std::env::vars_os().collect(),
            directory: self.folder.clone(),
            fresh: false,
            stdin: "/dev/null".into(),
            no_aslr: false,
            exit_status: ENDED,
            ..start.clone()
        }
    }
}

/// How many bytes the large files of a machine may have: they are in QEMU's memory and in the machine's, which beside them has what
/// every machine has.
fn most_large(kernel: &KernelImage) -> u64 {
    /// A 32-bit kernel describes each page of memory in the first 896 MiB.
    const MOST_32: u64 = 4 << 30;
    let available = meminfo::available().unwrap_or(u64::MAX / 4);
    let here = available.saturating_sub(u64::from(MEMORY_MIB) << 20) / 2;
    if kernel.is_64_bit {
        here
    } else {
        here.min(MOST_32)
    }
}

/// What a machine is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The kernel starts.
    Boot,
    /// The first process runs, and then the program.
    Program,
}

/// Watches a machine: each phase has its own limit.
struct Watch<'a> {
    report: &'a Path,
    limits: Limits,
    /// The phase, and when it began.
    phase: Cell<(Phase, Instant)>,
    /// The phase that lasts longer than its limit.
    overdue: Cell<Option<Phase>>,
}

impl Watch<'_> {
    fn begin(report: &Path, limits: Limits) -> Watch<'_> {
        let phase = Cell::new((Phase::Boot, Instant::now()));
        Watch { report, limits, phase, overdue: Cell::new(None) }
    }

    fn is_overdue(&self) -> bool {
        let (mut phase, mut began) = self.phase.get();
        // The first line of the report is written when the first process starts.
        if phase == Phase::Boot && std::fs::metadata(self.report).is_ok_and(|data| data.len() > 0) {
            (phase, began) = (Phase::Program, Instant::now());
            self.phase.set((phase, began));
        }
        let limit = match phase {
            Phase::Boot => self.limits.boot,
            Phase::Program => self.limits.timeout,
        };
        if began.elapsed() > limit {
            self.overdue.set(Some(phase));
        }
        self.overdue.get().is_some()
    }
}

/// The ABI of the program, or of the interpreter of a script.
fn abi_of(start: &LaunchSpec) -> Result<&'static str, String> {
    match elf::read(&start.file) {
        Ok(facts) => facts
            .abi()
            .map(|abi| abi.name)
            .ok_or_else(|| format!("{} is of an unknown ABI", start.file.display())),
        // A script: only the cost of starting an empty program depends on it.
        Err(elf::ElfError::NotElf { .. }) => Ok("x86-64"),
        Err(error) => Err(error.to_string()),
    }
}

fn last_line(file: &Path) -> String {
    ending::last_line(file).unwrap_or_else(|| "no message".to_owned())
}

/// What a machine writes.
struct Files {
    report: PathBuf,
    console: PathBuf,
    counts: PathBuf,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Files {
    fn run(&self, ending: Ending) -> MachineRun {
        MachineRun {
            ending,
            sample: BTreeMap::new(),
            remarks: Vec::new(),
            stdout: self.stdout.clone(),
            stderr: self.stderr.clone(),
        }
    }

    /// The kernel did not reach the program; its console's last line about that.
    fn no_program(&self, how: &str, kernel: &KernelImage) -> Ending {
        let console = std::fs::read(&self.console).unwrap_or_default();
        let console = String::from_utf8_lossy(&console).into_owned();
        let lines = || console.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = lines().find(|line| line.contains("Kernel panic")).or_else(|| lines().next_back());
        let line = line.map_or("its console is empty".to_owned(), |line| format!("its console: {line}"));
        Ending::SpawnFailed { reason: format!("the kernel {} {how}; {line}", kernel.name) }
    }

    /// The run of a machine that ended as it should.
    fn read(
        &self,
        start: &LaunchSpec,
        kernel: &KernelImage,
        memory: u32,
        accelerator: Accelerator,
    ) -> Result<MachineRun, Ending> {
        let failed = |reason: String| Ending::SpawnFailed { reason };
        let bytes = std::fs::read(&self.report).map_err(|error| failed(error.to_string()))?;
        let report =
            Report::parse(&bytes).map_err(|error| failed(format!("the machine's report: {error}")))?;
        let report = match report {
            Outcome::Ran(report) => report,
            Outcome::Refused { step, error, .. } => {
                return Err(failed(refusal(&step, error, start, kernel)));
            }
        };
        for (file, content) in [(&self.stdout, &report.stdout), (&self.stderr, &report.stderr)] {
            std::fs::write(file, content).map_err(|error| failed(error.to_string()))?;
        }
        if report.oom > 0 {
            return Err(failed(format!("the emulated machine's {memory} MiB of memory do not suffice")));
        }
        let mut sample = BTreeMap::new();
        let mut remarks = Vec::new();
        match accelerator {
            Accelerator::Tcg { options, .. } => {
                remarks = self
                    .put_counted(&mut sample, &report, start, kernel, options)
                    .map_err(|reason| failed(format!("not counted: {reason}")))?;
            }
            Accelerator::Kvm { .. } => put_times(&mut sample, &report.times),
        }
        let ending = match report.ending {
            (false, status) if status == start.exit_status => Ending::Done,
            (false, status) => Ending::Exit { status },
            (true, signal) => Ending::Signal { signal },
        };
        Ok(MachineRun { sample, remarks, ..self.run(ending) })
    }

    /// What was counted of a program, and the accounts of its kernel that do not depend on time; what a reader must know of it.
    fn put_counted(
        &self,
        sample: &mut BTreeMap<&'static str, Reading>,
        report: &Report,
        start: &LaunchSpec,
        kernel: &KernelImage,
        options: &Options,
    ) -> Result<Vec<String>, String> {
        let text = std::fs::read(&self.counts).map_err(|error| error.to_string())?;
        let file = CountFile::parse(&String::from_utf8_lossy(&text))?;
        put_counts(sample, &file, start, kernel, options)?;
        let remarks = match &options.operations {
            Some(operations) => operations.put(sample, &report.stdout, &file, false)?,
            None => Vec::new(),
        };
        let accounts = [
            ("max_rss", report.peak_kib * 1024),
            ("page_faults", report.minor + report.major),
            ("minor_faults", report.minor),
            ("major_faults", report.major),
        ];
        for (name, value) in accounts {
            sample.insert(name, Reading::whole(value as f64, Source::Guest));
        }
        Ok(remarks)
    }
}

/// The times of a program under KVM.
fn put_times(sample: &mut BTreeMap<&'static str, Reading>, times: &Times) {
    let Times { wall, user, system } = *times;
    for (name, time) in [("cpu", user + system), ("wall", wall), ("user", user), ("system", system)] {
        sample.insert(name, Reading::whole(time.as_nanos() as f64, Source::Kvm));
    }
}

/// A kind of code's count of one instruction.
type CountOf = fn(&Executed) -> u64;

/// What the plugin has counted of the program, without what it has counted of the empty one.
fn put_counts(
    sample: &mut BTreeMap<&'static str, Reading>,
    file: &CountFile,
    start: &LaunchSpec,
    kernel: &KernelImage,
    options: &Options,
) -> Result<(), String> {
    let (program, empty) = (file.between(PROGRAM.0, PROGRAM.1)?, file.between(EMPTY.0, EMPTY.1)?);
    let own = |all: u64, empty: u64| all.checked_sub(empty).ok_or("an empty program counts more");
    let counts = Counts { user: own(program.user, empty.user)?, kernel: own(program.kernel, empty.kernel)? };
    for (name, count) in [("instructions_user", counts.user), ("instructions_kernel", counts.kernel)] {
        sample.insert(name, Reading::whole(count as f64, Source::Qemu));
    }
    if options.caches.is_some() {
        let misses = |(from, to): (u64, u64)| file.misses(from, to);
        put_misses(sample, misses(PROGRAM)?, misses(EMPTY)?);
    }
    if let Some(classify) = options.classify {
        let kernel_abi = if kernel.is_64_bit { "x86-64" } else { "i386" };
        let sides: [(_, _, _, CountOf); 2] = [
            ("user", abi_of(start)?, counts.user, |one| one.counts.user),
            ("kernel", kernel_abi, counts.kernel, |one| one.counts.kernel),
        ];
        for (side, abi, all, count) in sides {
            let mut classes = ClassCounts::new(classify, abi);
            classes.add(file.executed(PROGRAM.1), count, 1)?;
            classes.add(file.executed(EMPTY.1), count, -1)?;
            classes.put(sample, side, all)?;
        }
    }
    Ok(())
}

/// Why a program was not started.
fn refusal(step: &str, error: i32, start: &LaunchSpec, kernel: &KernelImage) -> String {
    let abi = elf::read(&start.file).ok().and_then(|facts| facts.abi()).map_or("such", |abi| abi.name);
    let message = std::io::Error::from_raw_os_error(error);
    match (step, error) {
        ("input", libc::ENOENT) => {
            "one of its input files has another size than when the campaign began".to_owned()
        }
        ("input", _) => format!(
            "its input files could not be copied into the machine with the kernel {}: {message}",
            kernel.name
        ),
        ("execve", libc::ENOEXEC) => format!("the kernel {} does not start {abi} programs", kernel.name),
        _ => format!("on the kernel {} the program could not be started: {step}: {message}", kernel.name),
    }
}
