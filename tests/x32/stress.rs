//! Everything at once, for some seconds: calls, code made at run time, libraries, forks, and a storm of signals.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::programs::{built, compile, sources};

/// How long: `WIDTHWISE_STRESS_SECONDS`, or 20.
fn seconds() -> String {
    let given = std::env::var("WIDTHWISE_STRESS_SECONDS").ok().filter(|given| !given.is_empty());
    let seconds = given.unwrap_or_else(|| "20".to_string());
    assert!(
        seconds.parse::<u32>().is_ok_and(|seconds| seconds > 0),
        "WIDTHWISE_STRESS_SECONDS is a number of seconds above 0, and not {seconds:?}"
    );
    seconds
}

/// Built for one ABI (`-m64` or `-mx32`), and started.
fn start(starter: Option<&Path>, abi: &str) -> Child {
    let folder = sources().join("stress");
    let path = |name: &str| built().join(format!("stress-{name}{abi}"));
    std::fs::create_dir_all(built()).unwrap();
    compile(&[abi, "-O1", "-pthread"], &folder.join("program.c"), &path("program"));
    for value in ["1", "2"] {
        let value_option = format!("-DVALUE={value}");
        compile(&[abi, "-O1", "-shared", "-fPIC", &value_option], &folder.join("library.c"), &path(value));
    }
    let mut command = match starter {
        Some(starter) => Command::new(starter),
        None => Command::new(path("program")),
    };
    if starter.is_some() {
        command.arg(path("program"));
    }
    command.arg(seconds()).arg(path("1")).arg(path("2")).stdout(Stdio::piped()).spawn().unwrap()
}

/// What the program says: built for x86-64, and for x32 through the runtime, at the same time.
pub fn said(runtime: &Path) -> [String; 2] {
    [start(None, "-m64"), start(Some(runtime), "-mx32")].map(|child| {
        let output = child.wait_with_output().unwrap();
        format!("{}-- {}\n", String::from_utf8_lossy(&output.stdout), output.status)
    })
}
