//! Everything at once, for some seconds: calls, code made at run time, libraries, forks, and a storm of signals.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::programs::{built, compile, sources};

/// How long: `WIDTHWISE_STRESS_SECONDS`, or 8; `make test-all` takes ten minutes.
fn seconds() -> String {
    let given = std::env::var("WIDTHWISE_STRESS_SECONDS").ok().filter(|given| !given.is_empty());
    let seconds = given.unwrap_or_else(|| "8".to_string());
    assert!(
        seconds.parse::<u32>().is_ok_and(|seconds| seconds > 0),
        "WIDTHWISE_STRESS_SECONDS is a number of seconds above 0, and not {seconds:?}"
    );
    seconds
}

/// Built for one ABI (`-m64` or `-mx32`), and started.
fn start(starter: &[&Path], abi: &str) -> Child {
    let folder = sources().join("stress");
    let path = |name: &str| built().join(format!("stress-{name}{abi}"));
    std::fs::create_dir_all(built()).unwrap();
    compile(&[abi, "-O1", "-pthread"], &folder.join("program.c"), &path("program"));
    for value in ["1", "2"] {
        let value_option = format!("-DVALUE={value}");
        compile(&[abi, "-O1", "-shared", "-fPIC", &value_option], &folder.join("library.c"), &path(value));
    }
    let program = path("program");
    let words: Vec<&Path> = starter.iter().copied().chain([program.as_path()]).collect();
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .arg(seconds())
        .arg(path("1"))
        .arg(path("2"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What the program prints: built for x86-64, for x32 through the runtime, and through a runtime in which every call traps, so that
/// signals come to the handler of a trap. All at the same time.
pub fn printed(runtime: &Path) -> [String; 3] {
    let starters =
        [(&[][..], "-m64"), (&[runtime], "-mx32"), (&[runtime, Path::new("--no-rewrite")], "-mx32")];
    starters.map(|(starter, abi)| start(starter, abi)).map(|child| {
        let output = child.wait_with_output().unwrap();
        format!("{}-- {}\n", String::from_utf8_lossy(&output.stdout), output.status)
    })
}
