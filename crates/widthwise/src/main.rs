//! What do pointer width, compiler, kernel and placement cost this program?

mod arguments;
mod compare;
mod doctor;
mod environment;
mod exec;
mod explain;
mod failure;
mod feasibility;
mod file_capabilities;
mod formats;
mod inherited;
mod interrupt;
mod load_report;
mod machines;
mod measured_core;
mod micro;
mod options;
mod output;
mod preparation;
mod programs;
mod progress;
mod report;
mod runs_of_their_own;
mod scale;
mod session;
mod toolchains;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What do pointer width, compiler, kernel and placement cost this program?
#[derive(Debug, Parser)]
#[command(name = "widthwise", version, max_term_width = 110, disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Build every variant, run them interleaved, and report what each costs
    Compare(Box<compare::Compare>),
    /// Show what can be built, run and counted here, the commands that fix what is missing, and how noisy the machine is
    Doctor(doctor::Doctor),
    /// Explain why two variants differ: memory by cause, size, code, layouts, counts by function
    Explain(explain::Explain),
    /// Measure throughput and memory against the number of processes
    Scale(Box<scale::Scale>),
    /// Start an x32 program on a kernel without x32
    Exec(exec::Exec),
    /// Render a campaign from its archive: terminal, HTML, Markdown, JSON, CSV
    Report(report::Report),
}

fn main() -> ExitCode {
    file_capabilities::restore_environment();
    interrupt::survive_file_size_limit();
    let words: Vec<OsString> = std::env::args_os().collect();
    let line = match options::parse(&words) {
        Ok(line) => line,
        Err(mut error) => {
            options::leave_out_useless_tip(&words, &mut error);
            let _ = error.print();
            let hint =
                options::hint(&words, &error.to_string()).or_else(|| options::format_hint(&words, &error));
            if let Some(hint) = hint.filter(|_| error.use_stderr()) {
                output::note(&format!("\n  {hint}"));
            }
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let done = match line.verb {
        Verb::Compare(compare) => compare.run(),
        Verb::Doctor(doctor) => doctor.run(),
        Verb::Exec(exec) => exec.run(),
        Verb::Explain(explain) => explain.run(),
        Verb::Report(report) => report.run(),
        Verb::Scale(scale) => scale.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let hint = options::hint(&words, failure.message());
            failure.with_hint(hint).print()
        }
    }
}
