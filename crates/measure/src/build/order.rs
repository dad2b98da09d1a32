//! What is to be built, and what came of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thiserror::Error;
use widthwise_experiment::model::Variant;
use widthwise_machine::abi::AbiRow;
use widthwise_machine::compiler::Compiler;

use crate::build::source::Source;
use crate::build::toolchain::{self, Stage};
use crate::program::RunCommand;

/// What is to be built.
#[derive(Debug, Clone)]
pub struct Order<'a> {
    /// The variant.
    pub variant: &'a Variant,
    /// Its ABI's row.
    pub abi: &'static AbiRow,
    /// Its compiler.
    pub compiler: &'a Compiler,
    /// The source.
    pub source: &'a Source,
    /// The training run of a profile-guided build.
    pub training: Option<Training>,
    /// A short safe name for the folder: equal for variants that share a build.
    pub slug: String,
    /// The linker script of its layout; the linker's own layout if absent.
    pub layout: Option<&'a Path>,
    /// The number of jobs that `{jobs}` stands for.
    pub jobs: usize,
}

impl Order<'_> {
    /// The variables of the build's environment, by name.
    pub(crate) fn variables(&self, stage: Stage) -> BTreeMap<&'static str, String> {
        toolchain::variables(self.variant, self.abi, self.compiler, self.layout, stage)
    }
}

/// How a profile-guided build is trained.
#[derive(Debug, Clone, PartialEq)]
pub enum Training {
    /// The user's own command: text for `sh -e`, in the build folder.
    Shell(String),
    /// The run command, in the conditions of a run.
    Run(RunCommand),
}

/// A finished build.
#[derive(Debug, Clone)]
pub struct Built {
    /// The build folder: `{build}`.
    pub tree: PathBuf,
    /// What the command printed.
    pub log: PathBuf,
    /// How long the build took.
    pub seconds: f64,
    /// The build was cached.
    pub cached: bool,
    /// CFLAGS, or CXXFLAGS where they differ: for reports.
    pub flags: String,
}

/// A build that failed.
#[derive(Debug, Clone, Error)]
pub enum BuildError {
    /// The command failed.
    #[error("build failed ({how}): {line}{fix}")]
    Failed {
        /// `exit 2`, `signal 9`.
        how: String,
        /// The most informative line of the log.
        line: String,
        /// What would fix it, where that is known, as the end of a sentence.
        fix: String,
        /// The whole log.
        log: PathBuf,
    },
    /// The training of a profile-guided build failed.
    #[error("its profile-guided build has no profile: {0}")]
    Training(String),
    /// A file or folder of ours could not be used.
    #[error("{}: {error}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: String,
    },
}
