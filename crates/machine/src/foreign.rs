//! ABIs of other processors: whether Debian's cross compilers build a program here, and QEMU runs it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::abi::{Abi, FOREIGN};
use crate::compiler::{self, Compiler};
use crate::package::Packages;
use crate::unavailable::{outcome, Unavailable};
use crate::{qemu, tool_output};

/// The time limit of a compiler, and of an emulated program, for five lines.
const LIMIT: Duration = Duration::from_secs(60);

const SOURCE: &str = r#"#include <stdio.h>
int main(void) {
    printf("%d\n", (int)sizeof(void *));
    return 0;
}
"#;

/// Whether programs of one ABI of another processor run here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignAbi {
    /// The ABI's name.
    pub abi: String,
    /// Built by the cross compiler, started by QEMU, with the right output.
    #[serde(with = "outcome")]
    pub runs: Result<(), Unavailable>,
}

/// Builds and starts a small program for each ABI, by the cross compiler of this compiler's version, in the folder.
pub fn probe(folder: &Path, compiler: Option<&Compiler>, packages: &Packages) -> Vec<ForeignAbi> {
    let probe = |abi: &'static crate::abi::AbiRow| {
        let runs = match compiler {
            Some(compiler) => run(folder, abi, compiler, packages),
            None => Err(Unavailable::permanent("there is no C compiler here")),
        };
        ForeignAbi { abi: abi.name.to_owned(), runs }
    };
    FOREIGN.iter().map(probe).collect()
}

fn run(folder: &Path, abi: Abi, compiler: &Compiler, packages: &Packages) -> Result<(), Unavailable> {
    let cross = compiler::cross(compiler, abi, packages)?;
    let emulator = qemu::user(abi, packages)?;
    let failed =
        |what: &Path, reason: String| Unavailable::permanent(format!("{}: {reason}", what.display()));
    let (source, file) = (folder.join("foreign.c"), folder.join(format!("foreign-{}", abi.name)));
    std::fs::write(&source, SOURCE).map_err(|error| failed(&source, error.to_string()))?;
    let built = tool_output::run(Command::new(&cross.cc).arg(&source).arg("-o").arg(&file), LIMIT)
        .map_err(|error| failed(&cross.cc, error.to_string()))?;
    if !built.status.success() {
        let line = built.stderr.lines().find(|line| line.contains("error")).unwrap_or("it failed");
        return Err(failed(&cross.cc, line.to_owned()));
    }
    let mut command = Command::new(&emulator);
    command.arg("-L").arg(abi.sysroot().unwrap_or_default()).arg(&file);
    let ran = tool_output::run(&mut command, LIMIT).map_err(|error| failed(&emulator, error.to_string()))?;
    match ran.status.success() && ran.stdout.trim() == abi.word.to_string() {
        true => Ok(()),
        false => {
            Err(failed(&emulator, format!("the program ended with {}: {}", ran.status, ran.stderr.trim())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_a_command_or_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let compilers = compiler::discover();
        let found = probe(folder.path(), compiler::default(&compilers), &Packages::here());
        let names: Vec<&str> = found.iter().map(|one| one.abi.as_str()).collect();
        assert_eq!(names, FOREIGN.iter().map(|abi| abi.name).collect::<Vec<_>>());
        assert!(found.iter().all(|one| one.runs.as_ref().err().is_none_or(|no| !no.reason.is_empty())));
        let without = probe(folder.path(), None, &Packages::here());
        assert!(without.iter().all(|one| one.runs.is_err()));
    }
}
