//! Builds the launcher and the guardian (`runtime/launcher`) and the first process of emulated machines (`runtime/guest`), both freestanding C,
//! which the library contains as bytes. Generates
//! the layouts of its protocol and of the heap log from their headers.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../../runtime/launcher");
    widthwise_layout::generate(&folder.join("protocol.h"));
    widthwise_layout::generate(&folder.join("../heap/log.h"));
    for file in [
        "kernel.h",
        "exit_stops.h",
        "proc.h",
        "../syscall.h",
        "../guest/init.c",
        "../guest/kernel.h",
        "../guest/large_files.h",
        "../guest/empty.S",
    ] {
        println!("cargo::rerun-if-changed={}", folder.join(file).display());
    }
    let launcher = ["launcher.c", "exit_stops.c", "proc.c", "entry.S"].map(|file| folder.join(file));
    let guardian = ["guardian.c", "entry.S"].map(|file| folder.join(file));
    for file in launcher.iter().chain(&guardian) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let output = |name: &str| Path::new(&out).join(name);
    build(&output("launcher"), &launcher, "-m64");
    build(&output("guardian"), &guardian, "-m64");
    let guest = folder.join("../guest");
    // One first process for kernels of both widths.
    build(&output("guest-init"), &[guest.join("init.c")], "-m32");
    for (abi, option) in [("x86-64", "-m64"), ("x32", "-mx32"), ("i386", "-m32")] {
        build(&output(&format!("guest-empty-{abi}")), &[guest.join("empty.S")], option);
    }
}

/// Builds a program without a C library.
fn build(output: &Path, sources: &[PathBuf], abi: &str) {
    let compiler = cc::Build::new().get_compiler();
    let mut command = Command::new(compiler.path());
    command
        .args(["-std=c17", "-O2", "-Wall", "-Wextra", "-Werror", abi])
        // The launcher consists of a few pages only: see the top of launcher.c.
        .args(["-ffreestanding", "-static", "-nostdlib", "-no-pie", "-fno-pie", "-fno-stack-protector"])
        .args(["-fno-asynchronous-unwind-tables", "-mgeneral-regs-only"])
        // Without this, copying loops become calls to memcpy, which does not exist here.
        .args(["-fno-tree-loop-distribute-patterns", "-Wl,--build-id=none", "-Wl,-z,noseparate-code"])
        .arg("-o")
        .arg(output)
        .args(sources);
    let name = sources[0].display();
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{name} did not build ({status}): {command:?}"),
        Err(error) => panic!("no C compiler could be started ({error}): install gcc: {command:?}"),
    }
}
