//! Calls that the recorded kernel has not yet: as x86-64 has them on the kernel that runs the test.

use std::path::Path;
use std::process::Command;

use crate::programs::{built, compile, sources};

/// What `newest/program.c` says: built for x86-64, and for x32 through the runtime.
pub fn printed(runtime: &Path) -> [String; 2] {
    let source = sources().join("newest/program.c");
    let [wide, narrow] = ["newest-x86-64", "newest-x32"].map(|name| built().join(name));
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
