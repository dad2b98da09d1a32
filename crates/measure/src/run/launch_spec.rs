//! A variant ready to start: file, words, environment, directory, setup and teardown.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use widthwise_experiment::model::Thp;

/// A variant ready to start, with all placeholders filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchSpec {
    /// The file to execute, absolute.
    pub file: PathBuf,
    /// What starts it where the kernel cannot: the x32 runtime.
    pub runtime: Option<PathBuf>,
    /// The command line, its first word as the user wrote it.
    pub arguments: Vec<OsString>,
    /// The whole environment, without the padding.
    pub environment: BTreeMap<OsString, OsString>,
    /// Working directory, absolute.
    pub directory: PathBuf,
    /// The directory is created before each run, with links to the inputs, and removed after it.
    pub fresh: bool,
    /// Files and folders that the program reads, absolute: they travel to another kernel.
    pub inputs: Vec<PathBuf>,
    /// Standard input.
    pub stdin: PathBuf,
    /// `sh -e` text before the run.
    pub setup: Option<String>,
    /// `sh -e` text after the run.
    pub teardown: Option<String>,
    /// Transparent huge pages.
    pub thp: Thp,
    /// No address space layout randomisation.
    pub no_aslr: bool,
    /// The exit status that counts as success.
    pub exit_status: i32,
}

impl LaunchSpec {
    /// A program without environment, input, setup and teardown, as unit tests start it.
    #[cfg(test)]
    pub(crate) fn plain(file: &str, words: &[&str], directory: &Path) -> LaunchSpec {
        LaunchSpec {
            runtime: None,
            file: file.into(),
            arguments: words.iter().map(|word| (*word).into()).collect(),
            environment: BTreeMap::new(),
            directory: directory.to_owned(),
            fresh: false,
            inputs: Vec::new(),
            stdin: "/dev/null".into(),
            setup: None,
            teardown: None,
            thp: Thp::System,
            no_aslr: false,
            exit_status: 0,
        }
    }

    /// The file that the kernel executes, and all words.
    pub fn executed(&self) -> (&Path, Vec<OsString>) {
        self.accounted(None)
    }

    /// The same; the x32 runtime counts its own cost in the file `account`.
    pub(crate) fn accounted(&self, account: Option<&Path>) -> (&Path, Vec<OsString>) {
        match &self.runtime {
            Some(runtime) => (runtime, widthwise_x32run::command_line(&self.file, &self.arguments, account)),
            None => (&self.file, self.arguments.clone()),
        }
    }

    /// What starts an x32 program where the kernel does not, without symbolic links in its path.
    pub(crate) fn resolved_runtime(&self) -> Option<PathBuf> {
        self.runtime.as_ref().map(|path| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()))
    }
}
