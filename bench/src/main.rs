//! What Widthwise claims, each claim measured beside its peer in one run; written to `docs/benchmarks.md`.

mod anatomy;
mod background_load;
mod calibration;
mod campaign;
mod cost;
mod coverage;
mod document;
mod explained;
mod false_alarms;
mod heap;
mod hyperfine;
mod kernels;
#[path = "../../tests/x32/machine.rs"]
mod machine;
mod micro;
mod noise;
mod peak;
mod peringer;
mod planted;
mod proportion;
mod ratio;
mod scale;
mod section;
mod simulation;
mod surroundings;
mod welch;
mod window;
mod work_directory;
mod x32;
mod x32_calls;
mod x32_kernel;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, ValueEnum};

use crate::document::Document;
use crate::section::Section;
use crate::surroundings::Surroundings;
use crate::work_directory::WorkDirectory;

/// Measures every claim beside its peer, and writes docs/benchmarks.md.
#[derive(Debug, Parser)]
#[command(name = "widthwise-bench", max_term_width = 110)]
struct CommandLine {
    /// The claims to measure; the others keep their text [default: all]
    claims: Vec<Claim>,
    /// So few runs that the numbers mean nothing: shows that everything works, on standard output
    #[arg(long)]
    quick: bool,
    /// A `widthwise` that is built already [default: this repository's, built if need be]
    #[arg(long, value_name = "FILE")]
    widthwise: Option<PathBuf>,
    /// Seed of the background load and of the campaigns
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// What is claimed, in the order of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Claim {
    Noise,
    FalseAlarms,
    Planted,
    Coverage,
    Cost,
    Peak,
    X32,
    X32Calls,
    X32Kernel,
    Kernels,
    Heap,
    Anatomy,
    Explained,
    Scale,
    Micro,
    Simulation,
    Window,
    #[value(name = "peringer-2007")]
    Peringer,
}

impl Claim {
    fn title(self) -> &'static str {
        match self {
            Claim::Noise => "Noise of a run",
            Claim::FalseAlarms => "False alarms",
            Claim::Planted => "Planted slowdowns",
            Claim::Coverage => "Coverage of the intervals",
            Claim::Cost => "Cost of a run",
            Claim::Peak => "Peak memory",
            Claim::X32 => "x32",
            Claim::X32Calls => "x32 calls",
            Claim::X32Kernel => "x32 calls in instructions",
            Claim::Kernels => "Other kernels",
            Claim::Heap => "Heap recorder",
            Claim::Anatomy => "Anatomy",
            Claim::Explained => "Explained heap differences",
            Claim::Scale => "Scale",
            Claim::Micro => "Micro suite",
            Claim::Simulation => "Simulation",
            Claim::Window => "Window",
            Claim::Peringer => "peringer-2007",
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    fn measure(self, work_directory: &WorkDirectory) -> anyhow::Result<Section> {
        match self {
            Claim::Noise => noise::measure(work_directory),
            Claim::FalseAlarms => false_alarms::measure(work_directory),
            Claim::Planted => planted::measure(work_directory),
            Claim::Coverage => coverage::measure(work_directory),
            Claim::Cost => cost::measure(work_directory),
            Claim::Peak => peak::measure(work_directory),
            Claim::X32 => x32::measure(work_directory),
            Claim::X32Calls => x32_calls::measure(work_directory),
            Claim::X32Kernel => x32_kernel::measure(work_directory),
            Claim::Kernels => kernels::measure(work_directory),
            Claim::Heap => heap::measure(work_directory),
            Claim::Anatomy => anatomy::measure(work_directory),
            Claim::Explained => explained::measure(work_directory),
            Claim::Scale => scale::measure(work_directory),
            Claim::Micro => micro::measure(work_directory),
            Claim::Simulation => simulation::measure(work_directory),
            Claim::Window => window::measure(work_directory),
            Claim::Peringer => peringer::measure(work_directory),
        }
    }
}

fn main() -> ExitCode {
    match measure(CommandLine::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(line: CommandLine) -> anyhow::Result<()> {
    let mut claims = if line.claims.is_empty() { Claim::value_variants().to_vec() } else { line.claims };
    claims.sort();
    claims.dedup();
    let work_directory = WorkDirectory::open(line.widthwise, line.quick, line.seed)?;
    let titles: Vec<_> = Claim::value_variants().iter().map(|claim| claim.title()).collect();
    let path = work_directory.repository().join("docs/benchmarks.md");
    let mut document = if line.quick { Document::empty(&titles) } else { Document::read(&path, &titles)? };
    for claim in claims {
        eprintln!("{}", claim.title());
        let surroundings = Surroundings::now();
        let section = claim.measure(&work_directory).with_context(|| claim.name())?;
        document.put(claim.title(), &section.text(&claim.name(), &surroundings));
        // After each: an hour's work is not lost with the last of it.
        if !line.quick {
            document.write(&path)?;
        }
    }
    if line.quick {
        print!("**Quick: these numbers mean nothing.**\n\n{}", document.text());
    }
    Ok(())
}
