//! A kernel without IA32_EMULATION (Debian's of the next release, with `ia32_emulation=0`): what the runtime says, and what
//! it does itself there.

use std::path::{Path, PathBuf};

use crate::kernel::{self, Archive};
use crate::programs::{compile, sources};

fn built() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("x32-bare")
}

/// What the commands print, each after its line.
pub fn output(runtime: &Path, kernel: &Path) -> String {
    std::fs::create_dir_all(built()).unwrap();
    let programs = sources().join("../programs");
    compile(&["-O1", "-static"], &sources().join("bare/init.c"), &built().join("init"));
    compile(&["-mx32", "-O1", "-static", "-pthread"], &programs.join("robust.c"), &built().join("robust"));
    compile(&["-mx32", "-O1", "-static"], &sources().join("bare/unknown.c"), &built().join("unknown"));
    compile(&["-m32", "-O1", "-static"], &sources().join("bare/unknown.c"), &built().join("i386"));
    let mut archive = Archive::default();
    for folder in ["dev", "proc"] {
        archive.folder(folder);
    }
    for name in ["init", "robust", "unknown", "i386"] {
        archive.file(name, &kernel::read(&built().join(name)));
    }
    archive.file("x32run", &kernel::read(runtime));
    archive.file(
        "list",
        b"/x32run --check\n/x32run /unknown\n/x32run /robust\n/i386\n/x32run --stats /unknown\n",
    );
    let machine = ["-smp", "2"];
    let output = kernel::boot_with(kernel, "syscall.x32=n ia32_emulation=0", &archive.end(), &machine, 240);
    String::from_utf8(output).unwrap()
}
