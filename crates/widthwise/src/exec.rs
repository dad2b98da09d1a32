//! `widthwise exec`: starts an x32 program here, or lets the kernel do it for every x32 file.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;
use widthwise_x32run as x32run;

use crate::failure::Failure;

/// Start an x32 program on a kernel without x32
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "widthwise exec [OPTIONS] PROGRAM [ARGUMENT...]\n       widthwise exec --register | --unregister"
)]
pub struct Exec {
    /// Let the kernel start every x32 file through the runtime, until --unregister or the next boot (as root)
    #[arg(long, conflicts_with = "unregister")]
    register: bool,
    /// Take that back
    #[arg(long)]
    unregister: bool,
    /// Show every system call on standard error
    #[arg(long)]
    trace: bool,
    /// At the end, say how many sites were rewritten and how many calls trapped
    #[arg(long)]
    stats: bool,
    /// The x32 program and its arguments
    #[arg(value_name = "PROGRAM [ARGUMENT...]", trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

impl Exec {
    /// Does not come back where a program was started: the runtime takes this process's place.
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
        let mut command = Command::new(&runtime);
        command.arg0("x32run");
        command.args(self.trace.then_some("--trace")).args(self.stats.then_some("--stats"));
        let error = command.arg("--").arg(program).args(arguments).exec();
        Err(Failure::request(anyhow::Error::new(error).context(runtime.display().to_string())))
    }

    fn tell_kernel(&self) -> Result<(), Failure> {
        if self.register {
            let runtime = x32run::place()
                .context("the runtime cannot be written anywhere")
                .map_err(Failure::request)?;
            x32run::register(&runtime).map_err(Failure::request)?;
            println!("the kernel starts x32 files through {}", runtime.display());
        } else if x32run::unregister().map_err(Failure::request)? {
            println!("the kernel no longer starts x32 files");
        } else {
            println!("nothing was registered");
        }
        Ok(())
    }
}
