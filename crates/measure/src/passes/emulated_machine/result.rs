//! What a run on an emulated machine yields.

use std::collections::BTreeMap;
use std::path::PathBuf;

use widthwise_experiment::outcome::{Ending, Reading};

/// The program's own figures and outputs, and nothing of the emulator.
#[derive(Debug)]
pub struct MachineRun {
    /// How the program ended.
    pub ending: Ending,
    /// What was counted and read.
    pub sample: BTreeMap<&'static str, Reading>,
    /// Why something was not counted: sentences whose subject is the variant.
    pub remarks: Vec<String>,
    /// The file with its standard output.
    pub stdout: PathBuf,
    /// The file with its standard error.
    pub stderr: PathBuf,
}
