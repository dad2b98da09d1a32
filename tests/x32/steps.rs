//! A signal at every instruction of every way to a call: a tracer steps there, and sends it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::programs::{built, compile, sources};

/// What `steps/tracer.c` and `steps/program.c` say of a runtime with these options.
pub fn every_instruction(runtime: &Path, options: &[&str]) -> String {
    let folder = sources().join("steps");
    let (tracer, program) = (built().join("step-tracer"), built().join("step-program"));
    std::fs::create_dir_all(built()).unwrap();
    compile(&["-m64", "-O1"], &folder.join("tracer.c"), &tracer);
    compile(&["-mx32", "-O1", "-static"], &folder.join("program.c"), &program);
    let said = Command::new(&tracer)
        .arg(runtime)
        .args(options)
        .arg(&program)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    format!("{}-- {}\n", String::from_utf8_lossy(&said.stdout), said.status)
}
