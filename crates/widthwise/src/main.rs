//! What do pointer width, compiler, kernel and placement cost this program?

mod arguments;
mod beginning;
mod compare;
mod doctor;
mod exec;
mod explain;
mod failure;
mod interrupt;
mod output;
mod preparation;
mod presentation;
mod progress;
mod report;
mod scale;

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
    /// Build every variant, run them interleaved, and say what each costs
    Compare(Box<compare::Compare>),
    /// Say what can be built, run and counted here, and what mends the rest
    Doctor(doctor::Doctor),
    /// Say why two variants differ: which lines of the program ask for the memory
    Explain(explain::Explain),
    /// Say how throughput and memory grow with processes: children, jobs or threads, on cores and SMT siblings
    Scale(Box<scale::Scale>),
    /// Start an x32 program on a kernel without x32
    Exec(exec::Exec),
    /// Render a campaign again: terminal, HTML, Markdown, JSON, CSV
    Report(report::Report),
}

fn main() -> std::process::ExitCode {
    let line = CommandLine::parse();
    let done = match line.verb {
        Verb::Compare(compare) => compare.run(),
        Verb::Doctor(doctor) => doctor.run().map_err(failure::Failure::machine),
        Verb::Exec(exec) => exec.run(),
        Verb::Explain(explain) => explain.run(),
        Verb::Report(report) => report.run(),
        Verb::Scale(scale) => scale.run(),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}
