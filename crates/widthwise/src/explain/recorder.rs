//! The heap recorder for programs without a campaign: to be preloaded, or linked.

use widthwise_machine::{abi, compiler};
use widthwise_measure::passes::heap::recorder::Recorder;

use crate::failure::Failure;
use crate::output;

/// Prints the value of LD_PRELOAD that records any program.
pub fn print_preload() -> Result<(), Failure> {
    output::print(&format!("{}\n", recorder()?.preload()))
}

/// Prints the linker options that link the recorder into a static program of this ABI.
pub fn print_link_options(name: &str) -> Result<(), Failure> {
    let recorder = recorder()?;
    let abi = abi::find(name).ok_or_else(|| {
        let names: Vec<&str> = abi::ABIS.iter().map(|abi| abi.name).collect();
        Failure::request(format!(
            "--link-options {name}: there is no such ABI; there are {}",
            names.join(", ")
        ))
    })?;
    let Some(words) = recorder.link_options(abi) else {
        let reason = recorder.missing.iter().find(|(missing, _)| *missing == abi.name);
        let reason = reason.map_or("", |(_, reason)| reason.as_str());
        return Err(Failure::machine(format!("the recorder could not be built for {name}: {reason}")));
    };
    output::print(&format!("{words}\n"))
}

fn recorder() -> Result<Recorder, Failure> {
    let compilers = compiler::discover_for(&[]);
    let compiler = compiler::default(&compilers).ok_or_else(|| {
        Failure::machine(
            "the heap recorder is built by a C compiler, and there is none; apt-get install gcc libc6-dev",
        )
    })?;
    Recorder::place(compiler).map_err(Failure::machine)
}
