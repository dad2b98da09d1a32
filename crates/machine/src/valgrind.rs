//! valgrind, which counts by emulation where the machine has no counters.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ability::{self, Ability, Language};
use crate::package::Packages;
use crate::tool_output;
use crate::unavailable::{outcome, Unavailable};

/// What valgrind can do here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Valgrind {
    /// Its version: `3.19.0`.
    #[serde(with = "outcome")]
    pub version: Result<String, Unavailable>,
    /// Whether it runs programs of each ABI that builds here; by the ABI's name.
    pub abis: Vec<ValgrindAbi>,
}

/// Whether valgrind runs programs of one ABI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValgrindAbi {
    /// The ABI's name.
    pub abi: String,
    /// Whether it ran one.
    #[serde(with = "outcome")]
    pub runs: Result<(), Unavailable>,
}

/// Asks valgrind for its version, and runs the trial program of each ABI that [`ability::probe_in`] left in `folder`.
pub fn probe(folder: &Path, abilities: &[Ability], packages: &Packages) -> Valgrind {
    let version = version(packages);
    let mut abis: Vec<ValgrindAbi> = Vec::new();
    for ability in abilities.iter().filter(|a| a.language == Language::C && a.builds.is_ok()) {
        if version.is_err() || abis.iter().any(|seen| seen.abi == ability.abi) {
            continue;
        }
        let file = ability::program(folder, &ability.abi, &ability.compiler, Language::C);
        abis.push(ValgrindAbi { abi: ability.abi.clone(), runs: run(&file, &ability.abi, packages) });
    }
    Valgrind { version, abis }
}

fn version(packages: &Packages) -> Result<String, Unavailable> {
    match tool_output::run(Command::new("valgrind").arg("--version"), Duration::from_secs(10)) {
        Ok(output) if output.status.success() => {
            let text = output.stdout.trim();
            Ok(text.strip_prefix("valgrind-").unwrap_or(text).to_string())
        }
        Ok(output) => Err(Unavailable::permanent(format!("valgrind --version failed ({})", output.status))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Unavailable {
            reason: "valgrind is not on the PATH".into(),
            fix: packages.provide(&["valgrind"]),
        }),
        Err(error) => Err(Unavailable::permanent(format!("valgrind: {error}"))),
    }
}

fn run(program: &Path, abi: &str, packages: &Packages) -> Result<(), Unavailable> {
    let runtime = widthwise_x32run::runtime_under_valgrind(program).map_err(|error| {
        Unavailable::permanent(format!("the x32 runtime can be written nowhere: {error}"))
    })?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=none", "-q"]).args(runtime).arg(program);
    match tool_output::run(&mut command, Duration::from_secs(60)) {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(refusal(&output.stderr, abi, packages)),
        Err(error) => Err(Unavailable::permanent(format!("valgrind: {error}"))),
    }
}

/// The version of the valgrind on the PATH, or why there is none.
pub fn here() -> Result<String, Unavailable> {
    version(&Packages::here())
}

/// Where valgrind is, by the PATH.
pub fn path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("valgrind")).find(|file| file.is_file())
}

/// Interprets valgrind's message from a failed run of a program of that ABI.
pub fn refusal(stderr: &str, abi: &str, packages: &Packages) -> Unavailable {
    // "valgrind: Fatal error at startup: a function redirection … which is mandatory … cannot be set up": the loader
    // of that ABI is stripped, and the package of its symbols is missing.
    if stderr.contains("function redirection") {
        let symbols = if abi == "i386" { "libc6-dbg:i386" } else { "libc6-dbg" };
        return Unavailable {
            reason: "valgrind needs the symbols of this ABI's loader".into(),
            fix: packages.install(&[symbols]),
        };
    }
    Unavailable::permanent(complaint(stderr))
}

/// The line that says why valgrind ended. Warnings (`--7843-- warning: …`) may be before it.
fn complaint(stderr: &str) -> String {
    // valgrind preloads 64-bit objects, and the x32 loader reports each.
    let is_said = |line: &&str| !line.is_empty() && !line.contains("cannot be preloaded");
    let lines = || stderr.lines().map(str::trim).filter(is_said);
    let own = lines().find(|line| line.starts_with("valgrind: "));
    let unnumbered = || lines().find(|line| without_process(line) == *line);
    let Some(line) = own.or_else(unnumbered).or_else(|| lines().next()) else {
        return "failed without a word".into();
    };
    of_itself(line).unwrap_or_else(|| without_process(line).into())
}

/// The line with its likely cause, where valgrind refuses to start itself, or finds its place in memory taken (its tools are linked to
/// 0x58000000).
pub fn of_itself(line: &str) -> Option<String> {
    let is_itself = line.contains("You cannot run '")
        || line.contains("mmap(0x58000000") && line.contains("failed in UME");
    is_itself.then(|| {
        let line = without_process(line.trim());
        format!(
            "{line} (does the program execute /proc/self/exe? Under valgrind that is valgrind's own file)"
        )
    })
}

/// A line without the process number that valgrind and sanitizers begin theirs with: `==12== Process terminating`, `--12-- warning`.
pub fn without_process(line: &str) -> &str {
    let words = ["==", "--"].into_iter().find_map(|mark| {
        let (number, words) = line.strip_prefix(mark)?.split_once(mark)?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| words.trim_start())
    });
    words.unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripped_loader_is_fixed_by_its_symbols() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("var/lib/dpkg")).unwrap();
        let packages = Packages::at(root.path());
        let text =
            "valgrind:  Fatal error at startup: a function redirection\nvalgrind:  which is mandatory\n";
        let unavailable = refusal(text, "x86-64", &packages);
        assert_eq!(unavailable.fix.as_deref(), Some("apt-get install libc6-dbg"));
        let text =
            "ERROR: ld.so: object 'x' from LD_PRELOAD cannot be preloaded: ignored.\nx32run: no room\n";
        assert_eq!(refusal(text, "x32", &packages).reason, "x32run: no room");
        assert_eq!(refusal("\nvalgrind: oh\n", "i386", &packages).reason, "valgrind: oh");
    }

    #[test]
    fn the_reason_is_what_ended_valgrind_and_no_warning_before_it() {
        let reason = |text: &str| refusal(text, "x86-64", &Packages::at(Path::new("/none"))).reason;
        let warning = "--7843-- warning: L3 cache found, using its data for the LL simulation.\n";
        assert_eq!(reason(&format!("{warning}valgrind: no room\n")), "valgrind: no room");
        assert_eq!(reason(&format!("{warning}x32run: no room\n")), "x32run: no room");
        assert!(reason(warning).starts_with("warning: L3 cache found"), "{}", reason(warning));
        assert_eq!(reason("==12== oh\n"), "oh");
        assert_eq!(reason("\n"), "failed without a word");
        for itself in [
            "mmap(0x58000000, 4096) failed in UME with error 22 (Invalid argument).",
            "You cannot run 'x' directly.",
        ] {
            let reason = reason(&format!("{warning}valgrind: {itself}\n"));
            assert!(reason.starts_with("valgrind: ") && reason.contains("/proc/self/exe"), "{reason}");
        }
    }

    #[test]
    fn an_abi_that_does_not_build_is_not_tried() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(probe(folder.path(), &[], &Packages::here()).abis, []);
    }
}
