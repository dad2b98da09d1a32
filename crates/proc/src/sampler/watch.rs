//! What the sampler is to watch, and at what cost.

use std::path::PathBuf;

/// The share of the program's time that all readings may take. A program that stopped during each reading
/// would be slowed by this much.
pub const SHARE: f64 = 0.005;

/// What to watch, and how.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// The launcher's process number (`Runner::launcher`): the sampler watches its descendants.
    pub launcher: u32,
    /// The CPUs that the program may use; empty for all. The sampler avoids them where it can.
    pub cpus: Vec<u32>,
    /// What starts x32 programs, where it is used: its own memory is in a class of its own
    /// ([`widthwise_experiment::memory::Class::Runtime`]).
    pub runtime: Option<PathBuf>,
    /// Mappings of files whose paths begin with this are in a class of their own ([`widthwise_experiment::memory::Class::Recorder`]).
    pub recorder: Option<PathBuf>,
    /// A named pipe to make for the program's marks; the program finds its path in [`MARKS`].
    pub marks: Option<PathBuf>,
    /// `memory.stat` of a control group that holds the program and nothing else of size: the tree's anonymous
    /// memory.
    pub group: Option<PathBuf>,
    /// The share of time that readings may take; normally [`SHARE`].
    pub share: f64,
}

/// The environment variable that names the pipe for marks.
pub const MARKS: &str = "WIDTHWISE_MARKS";
