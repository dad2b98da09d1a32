//! Builds the x32 runtime (`runtime/x32`, freestanding C), which the library contains as bytes, and generates the layout of its
//! account from its header.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folder = Path::new(&manifest).join("../../runtime/x32");
    widthwise_layout::generate(&folder.join("account_file.h"));
    let mut sources: Vec<PathBuf> = Vec::new();
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a folder's entry").path();
        println!("cargo::rerun-if-changed={}", path.display());
        if path.extension().is_some_and(|ending| ending == "c" || ending == "S") {
            sources.push(path);
        }
    }
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-changed={}", folder.join("../syscall.h").display());
    sources.sort();
    let output = Path::new(&std::env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("x32run");
    let compiler = cc::Build::new().get_compiler();
    let mut command = Command::new(compiler.path());
    command
        .args(["-std=c17", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"])
        .arg(format!("-DX32_VERSION=\"{}\"", env!("CARGO_PKG_VERSION")))
        .args(["-ffreestanding", "-static", "-no-pie", "-fpie", "-nostdlib", "-fno-stack-protector"])
        .args(["-ffunction-sections".to_string(), format!("-L{}", folder.display())])
        .arg(format!("-Wl,-T,{}", folder.join("layout.ld").display()))
        // A system call leaves the program's vector registers alone, and so does the runtime.
        .args(["-mgeneral-regs-only", "-mno-red-zone", "-fno-asynchronous-unwind-tables"])
        // Or loops that copy become calls to memcpy, and there is none.
        .args(["-fno-tree-loop-distribute-patterns", "-Wl,--build-id=none", "-Wl,-z,noexecstack"])
        .arg("-o")
        .arg(&output)
        .args(&sources);
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("the x32 runtime did not build ({status}): {command:?}"),
        Err(error) => panic!("no C compiler could be started ({error}): install gcc: {command:?}"),
    }
}
