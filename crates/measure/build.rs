//! Builds the launcher (`runtime/launcher`, freestanding C), which the library contains as bytes. Generates
//! the layouts of its protocol and of the heap log from their headers.

use std::path::Path;
use std::process::Command;

fn main() {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../../runtime/launcher");
    widthwise_layout::generate(&folder.join("protocol.h"));
    widthwise_layout::generate(&folder.join("../heap/log.h"));
    for file in ["launcher.c", "kernel.h", "../syscall.h"] {
        println!("cargo::rerun-if-changed={}", folder.join(file).display());
    }
    let output = Path::new(&std::env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("launcher");
    let compiler = cc::Build::new().get_compiler();
    let mut command = Command::new(compiler.path());
    command
        .args(["-std=c17", "-O2", "-Wall", "-Wextra", "-Werror"])
        // The launcher consists of a few pages only: see the top of launcher.c.
        .args(["-ffreestanding", "-static", "-nostdlib", "-no-pie", "-fno-pie", "-fno-stack-protector"])
        .args(["-fno-asynchronous-unwind-tables", "-mgeneral-regs-only"])
        // Without this, copying loops become calls to memcpy, which does not exist here.
        .args(["-fno-tree-loop-distribute-patterns", "-Wl,--build-id=none", "-Wl,-z,noseparate-code"])
        .arg("-o")
        .arg(&output)
        .arg(folder.join("launcher.c"));
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("the launcher did not build ({status}): {command:?}"),
        Err(error) => panic!("no C compiler could be started ({error}): install gcc: {command:?}"),
    }
}
