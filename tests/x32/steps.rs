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

/// What `steps/rewriting.c` and `steps/rewritten.c` print.
pub fn rewritten(runtime: &Path, options: &[&str]) -> String {
    stepped(runtime, options, "rewriting", "rewritten")
}

/// The same where the second thread's call has trapped, and is handled when the first thread has written all.
pub fn rewritten_after_a_trap(runtime: &Path, options: &[&str]) -> String {
    stepped(Path::new("late"), &[&[runtime.to_str().unwrap()], options].concat(), "rewriting", "rewritten")
}

/// What `steps/interrupting.c` and `steps/interrupted.c` print.
pub fn interrupted(runtime: &Path, options: &[&str]) -> String {
    stepped(runtime, options, "interrupting", "interrupted")
}

/// `first` is the tracer's first word: the runtime, or what comes before it.
fn stepped(first: &Path, options: &[&str], tracer: &str, program: &str) -> String {
    let folder = sources().join("steps");
    let sources = [tracer, program].map(|name| folder.join(format!("{name}.c")));
    let [tracer, program] = [tracer, program].map(|name| built().join(format!("step-{name}")));
    std::fs::create_dir_all(built()).unwrap();
    compile(&["-m64", "-O1"], &sources[0], &tracer);
    compile(&["-mx32", "-O1", "-static", "-pthread"], &sources[1], &program);
    let printed =
        Command::new(&tracer).arg(first).args(options).arg(&program).stderr(Stdio::null()).output().unwrap();
    format!("{}-- {}\n", String::from_utf8_lossy(&printed.stdout), printed.status)
}

/// Ways in which `steps/deaths.c` ends.
pub const DEATHS: usize = 10;

/// What `steps/dying.c` tells of each of them: of the program for x86-64, and of that for x32 through the runtime.
pub fn deaths(runtime: &Path) -> [Vec<String>; 2] {
    let folder = sources().join("steps");
    let [tracer, wide, narrow] = ["dying", "deaths-x86-64", "deaths-x32"].map(|name| built().join(name));
    std::fs::create_dir_all(built()).unwrap();
    compile(&["-m64", "-O1"], &folder.join("dying.c"), &tracer);
    compile(&["-m64", "-O1", "-static"], &folder.join("deaths.c"), &wide);
    compile(&["-mx32", "-O1", "-static"], &folder.join("deaths.c"), &narrow);
    let reported = |starter: &[&Path]| -> Vec<String> {
        let one = |way: usize| {
            let printed = Command::new(&tracer).args(starter).arg(way.to_string()).output().unwrap();
            String::from_utf8_lossy(&printed.stdout).into_owned()
        };
        (0..DEATHS).map(one).collect()
    };
    [reported(&[&wide]), reported(&[runtime, &narrow])]
}
