//! `widthwise exec`: starts an x32 program here, or has the kernel start every x32 file.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use widthwise_machine::script;
use widthwise_x32run as x32run;

use crate::failure::Failure;
use crate::inherited;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  widthwise exec ./program input
  widthwise exec --stats ./program
  widthwise exec --argv0 ls ./busybox /
  widthwise exec --register                  # as root: the kernel starts every x32 file";

/// Start an x32 program on a kernel without x32
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "widthwise exec [OPTIONS] PROGRAM [ARGUMENT...]\n       widthwise exec --register | --unregister"
)]
pub struct Exec {
    /// Make the kernel start every x32 file through the runtime, until --unregister or the next boot (as root)
    #[arg(long, conflicts_with = "unregister")]
    register: bool,
    /// Undo --register
    #[arg(long)]
    unregister: bool,
    /// Show every system call on standard error
    #[arg(long, conflicts_with_all = ["register", "unregister"])]
    trace: bool,
    /// Print at the end how many call sites were rewritten and how many calls trapped
    #[arg(long, conflicts_with_all = ["register", "unregister"])]
    stats: bool,
    /// Start the program under gdb, with its symbols
    #[arg(long, conflicts_with_all = ["register", "unregister"])]
    gdb: bool,
    /// The program's own name (its word 0), if it is not PROGRAM: for programs of several names, such as busybox
    #[arg(long, value_name = "NAME", conflicts_with_all = ["register", "unregister"])]
    argv0: Option<OsString>,
    /// The x32 program and its arguments
    #[arg(value_name = "PROGRAM [ARGUMENT...]", trailing_var_arg = true)]
    program: Vec<OsString>,
}

/// `gdb`, on the runtime: the program's own words are still to come.
fn gdb(runtime: &Path) -> Result<Command, Failure> {
    let script = x32run::place_gdb_script()
        .context("no folder for the files that gdb needs is writable")
        .map_err(Failure::request)?;
    let mut command = Command::new("gdb");
    command.args(["-q", "-x"]).arg(script).arg("--args").arg(runtime);
    Ok(command)
}

/// Scripts that may be each other's interpreters, as in the kernel (fs/exec.c, exec_binprm).
const SCRIPTS_NESTED: usize = 5;

/// Whether the runtime starts a file: an x32 program, or a script whose interpreter is one.
fn is_started(file: &Path) -> bool {
    let mut file = file.to_owned();
    for _ in 0..=SCRIPTS_NESTED {
        let may_be_executed = std::fs::metadata(&file)
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0);
        if !may_be_executed {
            return false;
        }
        if x32run::is_x32(&file) {
            return true;
        }
        let Some(interpreter) = script::interpreter(&file) else { return false };
        file = interpreter;
    }
    false
}

impl Exec {
    /// Does not return if a program was started: the runtime replaces this process.
    pub fn run(self) -> Result<(), Failure> {
        if self.register || self.unregister {
            if !self.program.is_empty() {
                return Err(Failure::request(anyhow::anyhow!(
                    "--register and --unregister stand alone: there is no program to start"
                )));
            }
            return self.tell_kernel();
        }
        let Some((program, arguments)) = self.program.split_first() else {
            return Err(Failure::request(anyhow::anyhow!("a program is missing: widthwise exec ./program")));
        };
        let runtime =
            x32run::place().context("the runtime cannot be written anywhere").map_err(Failure::request)?;
        // What is no program for the runtime is not shown to gdb: the runtime alone reports it.
        let in_gdb = self.gdb && is_started(Path::new(program));
        let mut command = if in_gdb { gdb(&runtime)? } else { Command::new(&runtime) };
        if !in_gdb {
            command.arg0("x32run");
        }
        command.args(self.trace.then_some("--trace")).args(self.stats.then_some("--stats"));
        if let Some(name) = &self.argv0 {
            command.arg("--argv0").arg(name);
        }
        inherited::hand_on(&mut command);
        let error = command.arg("--").arg(program).args(arguments).exec();
        let name = command.get_program().to_string_lossy().into_owned();
        Err(Failure::request(match error.kind() {
            ErrorKind::NotFound if in_gdb => anyhow::anyhow!("gdb is not on the PATH; apt-get install gdb"),
            _ => anyhow::Error::new(error).context(name),
        }))
    }

    fn tell_kernel(&self) -> Result<(), Failure> {
        if self.register {
            let runtime = x32run::place()
                .context("the runtime cannot be written anywhere")
                .map_err(Failure::request)?;
            x32run::register(&runtime).map_err(Failure::request)?;
            output::print(&format!("the kernel starts x32 files through {}\n", runtime.display()))
        } else if x32run::unregister().map_err(Failure::request)? {
            output::print("the kernel no longer starts x32 files\n")
        } else {
            output::print("nothing was registered\n")
        }
    }
}
