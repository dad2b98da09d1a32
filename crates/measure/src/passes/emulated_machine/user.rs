//! A program of another processor, or of this one, under its emulator (qemu-user): the kernel is this machine's own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use widthwise_experiment::outcome::{Ending, Reading, Source};

use crate::passes::emulated_machine::counts::{self, CountFile};
use crate::passes::emulated_machine::guest::PROCESSOR;
use crate::passes::emulated_machine::options::{ClassCounts, Options};
use crate::passes::emulated_machine::plugin::Plugin;
use crate::passes::emulated_machine::result::MachineRun;
use crate::plan::Machine;
use crate::run::launch_spec::LaunchSpec;
use crate::run::limits::Limits;
use crate::run::result::{RunError, RunResult};
use crate::run::runner::Runner;

/// The name of the plugin's file; those of forked processes begin with it.
const COUNTS: &str = "counts";

/// Programs of this machine's own processor have the one of other kernels (guest.rs).
const X86: [&str; 2] = ["x86-64", "i386"];

/// Starts programs under their emulators.
pub(super) struct Users<'a> {
    plugin: &'a Plugin,
    options: &'a Options<'a>,
    folder: PathBuf,
}

impl<'a> Users<'a> {
    pub fn new(plugin: &'a Plugin, options: &'a Options<'a>, folder: &Path) -> Users<'a> {
        Users { plugin, options, folder: folder.join("user") }
    }

    /// One run.
    pub fn run(
        &self,
        start: &LaunchSpec,
        machine: &Machine,
        runner: &mut Runner,
        limits: Limits,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(RunResult, MachineRun), RunError> {
        let ready = match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => std::fs::create_dir_all(&self.folder),
        };
        ready.map_err(|error| RunError::Scratch { path: self.folder.clone(), error })?;
        let start = self.emulated(start, machine);
        let result = runner.run(&start, 0, &[], limits, cancelled)?;
        let mut run = MachineRun {
            ending: result.ending.clone(),
            sample: Default::default(),
            remarks: Vec::new(),
            stdout: runner.stdout(),
            stderr: runner.stderr(),
        };
        if run.ending == Ending::Done {
            match self.counts(machine, &mut run) {
                Ok(()) => {}
                Err(reason) => {
                    run.ending = Ending::SpawnFailed { reason: format!("not counted: {reason}") };
                }
            }
        }
        Ok((result, run))
    }

    /// Reads what the plugin has counted.
    fn counts(&self, machine: &Machine, run: &mut MachineRun) -> Result<(), String> {
        let counted = counts::of_program(&self.folder)?;
        run.sample.insert("instructions_user", Reading::whole(counted.user as f64, Source::Qemu));
        if let (Some(classify), Machine::User { abi, .. }) = (self.options.classify, machine) {
            let mut classes = ClassCounts::new(classify, abi);
            // An ABI without classes keeps its plain count.
            if classes.add(counted.executed.iter(), |one| one.counts.user, 1).is_ok() {
                classes.put(&mut run.sample, "user", counted.user)?;
            }
        }
        if let Some(operations) = &self.options.operations {
            let text =
                |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
            let (output, counts) = (text(&run.stdout)?, text(&self.folder.join(COUNTS))?);
            let file = CountFile::parse(&String::from_utf8_lossy(&counts))?;
            run.remarks = operations.put(&mut run.sample, &output, &file, true)?;
        }
        Ok(())
    }

    /// The same start, with the emulator before it.
    fn emulated(&self, start: &LaunchSpec, machine: &Machine) -> LaunchSpec {
        let Machine::User { abi, emulator, sysroot } = machine else { return start.clone() };
        let mut arguments: Vec<OsString> = vec![emulator.into()];
        if let Some(sysroot) = sysroot {
            arguments.extend(["-L".into(), sysroot.into()]);
        }
        if X86.contains(abi) {
            arguments.extend(["-cpu", PROCESSOR].map(OsString::from));
        }
        // AT_RANDOM is the same in every run.
        arguments.extend(["-seed", "1", "-plugin"].map(OsString::from));
        arguments.push(self.plugin.option(&self.folder.join(COUNTS), None, self.options));
        if let Some(name) = start.arguments.first() {
            arguments.extend(["-0".into(), name.clone()]);
        }
        arguments.push(start.file.clone().into());
        arguments.extend(start.arguments.iter().skip(1).cloned());
        LaunchSpec { file: emulator.clone(), runtime: None, arguments, no_aslr: true, ..start.clone() }
    }
}
