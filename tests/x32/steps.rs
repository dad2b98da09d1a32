//! A signal at every instruction of every way to a call: a tracer steps there, and sends it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::programs::{built, compile, sources};

/// What `steps/tracer.c` and `steps/program.c` say of a runtime with these options.
pub fn every_instruction(runtime: &Path, options: &[&str]) -> String {
    stepped(runtime, options, "tracer", "program")
}

/// What `steps/covering.c` and `steps/covered.c` say.
pub fn covered(runtime: &Path, options: &[&str]) -> String {
    stepped(runtime, options, "covering", "covered")
}

fn stepped(runtime: &Path, options: &[&str], tracer: &str, program: &str) -> String {
    let folder = sources().join("steps");
    let sources = [tracer, program].map(|name| folder.join(format!("{name}.c")));
    let [tracer, program] = [tracer, program].map(|name| built().join(format!("step-{name}")));
    std::fs::create_dir_all(built()).unwrap();
    compile(&["-m64", "-O1"], &sources[0], &tracer);
    compile(&["-mx32", "-O1", "-static", "-pthread"], &sources[1], &program);
    let said = Command::new(&tracer)
        .arg(runtime)
        .args(options)
        .arg(&program)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    format!("{}-- {}\n", String::from_utf8_lossy(&said.stdout), said.status)
}
