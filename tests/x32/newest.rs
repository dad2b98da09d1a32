//! What the recorded kernel has not yet, or not everywhere: as x86-64 has it on the kernel that runs the test.

use std::path::Path;
use std::process::Command;

use crate::programs::{built, compile, sources};

/// What `NAME/program.c` says: built for x86-64, and for x32 through the runtime.
pub fn printed(runtime: &Path, name: &str) -> [String; 2] {
    let source = sources().join(name).join("program.c");
    let [wide, narrow] = ["x86-64", "x32"].map(|abi| built().join(format!("{name}-{abi}")));
    std::fs::create_dir_all(built()).unwrap();
    compile(&["-m64", "-O1", "-static", "-pthread"], &source, &wide);
    compile(&["-mx32", "-O1", "-static", "-pthread"], &source, &narrow);
    let mut through = Command::new(runtime);
    through.arg(narrow);
    [Command::new(wide), through].map(|mut command| {
        let folder = tempfile::tempdir().unwrap();
        let output = command.current_dir(folder.path()).output().unwrap();
        format!("{}-- {}\n", String::from_utf8_lossy(&output.stdout), output.status)
    })
}
