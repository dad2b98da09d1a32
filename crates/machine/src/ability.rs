//! What builds and starts here, tested with a small program for every ABI, compiler and language.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::abi::{Abi, ABIS};
use crate::compiler::{Compiler, Family};
use crate::elf;
use crate::kernel_config;
use crate::package::Packages;
use crate::tool_output;
use crate::unavailable::{outcome, Unavailable};

/// The time limit of a compiler for ten lines.
const COMPILE_LIMIT: Duration = Duration::from_secs(60);
const RUN_LIMIT: Duration = Duration::from_secs(10);

/// The languages, probed separately because g++ is often missing where gcc is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Language {
    /// C.
    #[serde(rename = "c")]
    C,
    /// C++, with exceptions and the standard library.
    #[serde(rename = "c++")]
    Cxx,
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Language::C => "C",
            Language::Cxx => "C++",
        })
    }
}

/// Whether one compiler makes programs for one ABI in one language, and whether they start here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ability {
    /// The ABI's name.
    pub abi: String,
    /// The compiler's name.
    pub compiler: String,
    /// The language.
    pub language: Language,
    /// Compiled and linked, to a file of that ABI.
    #[serde(with = "outcome")]
    pub builds: Result<(), Unavailable>,
    /// Started, with the right output.
    #[serde(with = "outcome")]
    pub runs: Result<(), Unavailable>,
}

/// A way of building that needs more than the compiler itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Technique {
    /// Link-time optimisation, `-flto`.
    Lto,
    /// Profile-guided optimisation, `-fprofile-generate`.
    Pgo,
}

impl Technique {
    /// The compiler option.
    pub fn option(self) -> &'static str {
        match self {
            Technique::Lto => "-flto",
            Technique::Pgo => "-fprofile-generate",
        }
    }
}

impl fmt::Display for Technique {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Technique::Lto => "LTO",
            Technique::Pgo => "PGO",
        })
    }
}

/// Whether one compiler can use a technique for one ABI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TechniqueAbility {
    /// The ABI's name.
    pub abi: String,
    /// The compiler's name.
    pub compiler: String,
    /// The technique.
    pub technique: Technique,
    /// Compiled and linked with it.
    #[serde(with = "outcome")]
    pub builds: Result<(), Unavailable>,
}

// <errno.h> reaches the kernel's asm/ headers, which a half-installed second ABI often misses.
const C_SOURCE: &str = r#"#include <errno.h>
#include <stdio.h>
int main(void) {
    errno = 0;
    printf("%d %d\n", (int)sizeof(void *), (int)sizeof(long));
    return errno;
}
"#;

// An exception crosses the C++ library, its unwinder and libgcc: what a half-installed g++ gets wrong.
const CXX_SOURCE: &str = r#"#include <cerrno>
#include <cstdio>
#include <new>
int main() {
    try {
        throw std::bad_alloc();
    } catch (const std::exception &) {
        std::printf("%d %d\n", (int)sizeof(void *), (int)sizeof(long));
        return 0;
    }
    return 1;
}
"#;

/// Tries every ABI with every compiler in both languages, several at a time.
pub fn probe(compilers: &[Compiler]) -> Vec<Ability> {
    match tempfile::Builder::new().prefix("widthwise-doctor-").tempdir() {
        Ok(folder) => probe_in(folder.path(), compilers, &Packages::here()),
        Err(error) => {
            let unavailable = Unavailable::with_fix(
                format!("no folder for the trial programs: {error}"),
                "export TMPDIR=<a folder that can be written>",
            );
            let cannot =
                |(abi, compiler, language)| outcome(abi, compiler, language, Err(unavailable.clone()), None);
            trials(compilers).into_iter().map(cannot).collect()
        }
    }
}

/// As [`probe`], leaving the programs in `folder`, where [`program`] finds them.
pub fn probe_in(folder: &Path, compilers: &[Compiler], packages: &Packages) -> Vec<Ability> {
    let sources = [("trial.c", C_SOURCE), ("trial.cc", CXX_SOURCE)];
    let written: std::io::Result<()> =
        sources.iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text));
    side_by_side(trials(compilers), |&(abi, compiler, language)| {
        let builds = match &written {
            Ok(()) => build(folder, abi, compiler, language, packages),
            Err(error) => {
                Err(Unavailable::permanent(format!("the trial program could not be written: {error}")))
            }
        };
        let runs = builds.as_ref().ok().map(|file| start(file, abi, packages));
        outcome(abi, compiler, language, builds.map(|_| ()), runs)
    })
}

/// Where [`probe_in`] leaves a program.
pub fn program(folder: &Path, abi: &str, compiler: &str, language: Language) -> PathBuf {
    let kind = match language {
        Language::C => "c",
        Language::Cxx => "cxx",
    };
    folder.join(format!("trial-{abi}-{compiler}-{kind}"))
}

/// Tries each technique with every pair of ABI and compiler that builds C.
pub fn probe_techniques(abilities: &[Ability], compilers: &[Compiler]) -> Vec<TechniqueAbility> {
    let Ok(folder) = tempfile::Builder::new().prefix("widthwise-doctor-").tempdir() else {
        return Vec::new();
    };
    let packages = Packages::here();
    if std::fs::write(folder.path().join("trial.c"), C_SOURCE).is_err() {
        return Vec::new();
    }
    let works = |abi: Abi, compiler: &Compiler| {
        abilities.iter().any(|ability| {
            ability.abi == abi.name
                && ability.compiler == compiler.name
                && ability.language == Language::C
                && ability.builds.is_ok()
        })
    };
    let trials: Vec<(Abi, &Compiler, Technique)> = compilers
        .iter()
        .flat_map(|compiler| ABIS.iter().map(move |abi| (abi, compiler)))
        .filter(|(abi, compiler)| works(abi, compiler))
        .flat_map(|(abi, compiler)| [Technique::Lto, Technique::Pgo].map(|t| (abi, compiler, t)))
        .collect();
    side_by_side(trials, |&(abi, compiler, technique)| {
        let output = format!("trial-{}-{}-{technique}", abi.name, compiler.name);
        let mut command = Command::new(&compiler.cc);
        command.current_dir(folder.path()).args(abi.options());
        command.args(["-O2", technique.option(), "trial.c", "-o", &output]);
        let builds = match tool_output::run(&mut command, COMPILE_LIMIT) {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(technique_unavailable(abi, compiler, technique, &output.stderr, &packages)),
            Err(error) => Err(Unavailable::permanent(format!("{}: {error}", compiler.cc.display()))),
        };
        TechniqueAbility { abi: abi.name.into(), compiler: compiler.name.clone(), technique, builds }
    })
}

/// Why a compiler cannot use a technique. gcc brings all it needs; Debian splits clang's parts off.
fn technique_unavailable(
    abi: Abi,
    compiler: &Compiler,
    technique: Technique,
    stderr: &str,
    packages: &Packages,
) -> Unavailable {
    let major = compiler.major();
    let reason = first_error(stderr);
    match (compiler.family, technique, abi.package_suffix) {
        (Family::Clang, Technique::Lto, _) => {
            Unavailable { reason, fix: packages.install(&[format!("llvm-{major}-linker-tools")]) }
        }
        (Family::Clang, Technique::Pgo, None) => {
            Unavailable::permanent(format!("LLVM's profiling library is not built for {}", abi.name))
        }
        (Family::Clang, Technique::Pgo, Some(suffix)) => {
            // Debian 12's amd64 package holds the i386 library too; later ones leave it to the i386 package.
            let native = format!("libclang-rt-{major}-dev");
            let fix = packages.install(&[&native]);
            Unavailable { reason, fix: fix.or_else(|| packages.install(&[format!("{native}{suffix}")])) }
        }
        (Family::Gcc, ..) => Unavailable::permanent(reason),
    }
}

fn trials(compilers: &[Compiler]) -> Vec<(Abi, &Compiler, Language)> {
    let languages = [Language::C, Language::Cxx];
    ABIS.iter()
        .flat_map(|abi| compilers.iter().map(move |compiler| (abi, compiler)))
        .flat_map(|(abi, compiler)| languages.map(|language| (abi, compiler, language)))
        .collect()
}

fn outcome(
    abi: Abi,
    compiler: &Compiler,
    language: Language,
    builds: Result<(), Unavailable>,
    runs: Option<Result<(), Unavailable>>,
) -> Ability {
    Ability {
        abi: abi.name.to_string(),
        compiler: compiler.name.clone(),
        language,
        builds,
        runs: runs.unwrap_or_else(|| {
            Err(Unavailable::permanent("there is no program to start: it does not build"))
        }),
    }
}

/// Does all work, one item per CPU at a time, and keeps the order. A compiler spends about 0.1 s on each, and a machine
/// with four compilers has 24.
fn side_by_side<T: Sync, R: Send>(work: Vec<T>, each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(work.len()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(work.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = work.get(number) else { break };
                let result = each(piece);
                done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((number, result));
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Builds the trial program; the file, or why there is none.
fn build(
    folder: &Path,
    abi: Abi,
    compiler: &Compiler,
    language: Language,
    packages: &Packages,
) -> Result<PathBuf, Unavailable> {
    let fix = || packages.install(&abi.packages(gcc_major(compiler), language == Language::Cxx));
    let (driver, source) = match language {
        Language::C => (&compiler.cc, "trial.c"),
        Language::Cxx => match &compiler.cxx {
            Some(cxx) => (cxx, "trial.cc"),
            None => {
                let reason = format!("{} {} is not here", compiler.family.cxx(), compiler.version);
                let cxx_alone = match compiler.family {
                    Family::Gcc => packages.install(&[format!("g++-{}", compiler.major())]),
                    Family::Clang => packages.install(&[format!("clang-{}", compiler.major())]),
                };
                return Err(Unavailable { reason, fix: cxx_alone });
            }
        },
    };
    let file = program(folder, abi.name, &compiler.name, language);
    let mut command = Command::new(driver);
    // Relative names keep the folder out of the compiler's messages.
    command.current_dir(folder).args(abi.options()).arg(source).arg("-o").arg(&file);
    let output = tool_output::run(&mut command, COMPILE_LIMIT)
        .map_err(|error| Unavailable::permanent(format!("{}: {error}", driver.display())))?;
    if !output.status.success() {
        return Err(Unavailable { reason: first_error(&output.stderr), fix: fix() });
    }
    match elf::read(&file) {
        Ok(facts) if facts.abi() == Some(abi) => Ok(file),
        Ok(facts) => Err(Unavailable::permanent(format!(
            "{} takes {} and makes a file of another ABI ({})",
            driver.display(),
            abi.option,
            facts.abi().map_or("an unknown one", |other| other.name)
        ))),
        Err(error) => Err(Unavailable::permanent(error.to_string())),
    }
}

/// Starts the trial program and checks its output.
fn start(file: &Path, abi: Abi, packages: &Packages) -> Result<(), Unavailable> {
    let runtime = widthwise_x32run::runtime_for(file).map_err(|error| {
        Unavailable::permanent(format!("the x32 runtime can be written nowhere: {error}"))
    })?;
    let mut command = Command::new(runtime.as_deref().unwrap_or(file));
    if runtime.is_some() {
        command.arg("--").arg(file);
    }
    match tool_output::run(&mut command, RUN_LIMIT) {
        Ok(output) => judge(abi, output.status, &output.stdout, &output.stderr, packages),
        Err(error) => Err(match error.raw_os_error() {
            Some(errno) => not_started(abi, errno, packages),
            None => Unavailable::permanent(error.to_string()),
        }),
    }
}

/// Why a program of an ABI did not start, from the error number of `execve(2)`.
pub fn not_started(abi: Abi, errno: i32, packages: &Packages) -> Unavailable {
    let kernel_has_it =
        if errno == libc::ENOEXEC { kernel_config::has_any(abi.kernel_options) } else { None };
    abi.not_started(errno, kernel_has_it, packages)
}

/// Interprets the end of the trial program.
fn judge(
    abi: Abi,
    status: ExitStatus,
    stdout: &str,
    stderr: &str,
    packages: &Packages,
) -> Result<(), Unavailable> {
    let right = format!("{} {}", abi.word, abi.word);
    if status.success() && stdout.trim() == right {
        return Ok(());
    }
    if let Some(signal) = status.signal() {
        return Err(Unavailable::permanent(match signal {
            libc::SIGSYS => {
                "killed by SIGSYS at its first system call: a seccomp filter (a container's?) forbids \
                             this ABI's calls"
                    .to_string()
            }
            libc::SIGSEGV => {
                "killed by SIGSEGV: the kernel loads the program, and does not know its system calls"
                    .to_string()
            }
            other => format!("killed by signal {other}"),
        }));
    }
    // ld.so: "error while loading shared libraries: libstdc++.so.6: cannot open shared object file: …".
    if let Some(line) = stderr.lines().find(|line| line.contains("error while loading shared libraries")) {
        let reason = line.split_once("error while loading shared libraries: ").map_or(line, |(_, rest)| rest);
        return Err(Unavailable {
            reason: reason.to_string(),
            fix: packages.install(&[abi.libc, abi.libstdcxx]),
        });
    }
    Err(Unavailable::permanent(match status.code() {
        Some(0) => format!("printed {:?} instead of {right:?}", stdout.trim()),
        Some(code) => format!("ended with status {code}"),
        None => "ended in an unknown way".to_string(),
    }))
}

/// The line of a compiler's or a linker's message that has the error.
fn first_error(stderr: &str) -> String {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let says_it = |line: &&str| {
        ["error:", "cannot find", "error loading", "unrecognized"].iter().any(|word| line.contains(word))
    };
    lines().find(says_it).or_else(|| lines().next()).unwrap_or("failed without a word").to_string()
}

/// The major version of gcc whose libraries a compiler links: clang takes the newest it finds.
fn gcc_major(compiler: &Compiler) -> u32 {
    match compiler.family {
        Family::Gcc => compiler.major(),
        Family::Clang => newest_gcc_libraries(Path::new("/usr/lib/gcc/x86_64-linux-gnu"))
            .or_else(|| newest_gcc_libraries(Path::new("/usr/lib/gcc/x86_64-redhat-linux")))
            .unwrap_or(12),
    }
}

fn newest_gcc_libraries(folder: &Path) -> Option<u32> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.split('.').next()?.parse().ok()).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{abi, compiler};

    fn debian() -> (tempfile::TempDir, Packages) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("var/lib/dpkg/info")).unwrap();
        let packages = Packages::at(root.path());
        (root, packages)
    }

    #[test]
    fn the_line_with_the_error_is_found() {
        let headers = "In file included from /usr/include/errno.h:28,\n                 from trial.c:1:\n\
                       /usr/include/linux/errno.h:1:10: fatal error: asm/errno.h: No such file or directory\n";
        assert!(first_error(headers).ends_with("fatal error: asm/errno.h: No such file or directory"));
        let linker = "/usr/bin/ld: skipping incompatible /usr/lib/gcc/libgcc.a when searching for -lgcc\n\
                      /usr/bin/ld: cannot find -lgcc: No such file or directory\n\
                      collect2: error: ld returned 1 exit status\n";
        assert_eq!(first_error(linker), "/usr/bin/ld: cannot find -lgcc: No such file or directory");
        assert_eq!(first_error(""), "failed without a word");
    }

    #[test]
    fn the_end_of_a_program_is_described() {
        let (_root, packages) = debian();
        let x32 = abi::find("x32").unwrap();
        let ended = |raw, stdout: &str, stderr: &str| {
            judge(x32, ExitStatus::from_raw(raw), stdout, stderr, &packages)
        };
        assert_eq!(ended(0, "4 4\n", ""), Ok(()));
        assert_eq!(ended(0, "8 8\n", "").unwrap_err().reason, "printed \"8 8\" instead of \"4 4\"");
        assert!(ended(libc::SIGSYS, "", "").unwrap_err().reason.contains("seccomp"));
        assert!(ended(libc::SIGSEGV, "", "").unwrap_err().reason.contains("SIGSEGV"));
        let library = ended(
            127 << 8,
            "",
            "./trial: error while loading shared libraries: libstdc++.so.6: cannot open shared object file\n",
        )
        .unwrap_err();
        assert_eq!(library.reason, "libstdc++.so.6: cannot open shared object file");
        assert_eq!(library.fix.as_deref(), Some("apt-get install libc6-x32 libx32stdc++6"));
    }

    #[test]
    fn clangs_separate_packages_are_named_only_where_they_exist() {
        let (root, packages) = debian();
        let mut clang = scripted(root.path(), "");
        clang.family = Family::Clang;
        clang.version = "14.0.6".into();
        let unavailable = |abi, technique| {
            technique_unavailable(abi::find(abi).unwrap(), &clang, technique, "ld: cannot find x", &packages)
        };
        let fix = |abi, technique| unavailable(abi, technique).fix.unwrap_or_default();
        assert_eq!(fix("x86-64", Technique::Lto), "apt-get install llvm-14-linker-tools");
        assert_eq!(fix("i386", Technique::Pgo), "apt-get install libclang-rt-14-dev");
        assert_eq!(unavailable("x32", Technique::Pgo).fix, None);
        let list = root.path().join("var/lib/dpkg/info/libclang-rt-14-dev.list");
        std::fs::write(list, "").unwrap();
        assert!(fix("i386", Technique::Pgo).ends_with("apt-get install libclang-rt-14-dev:i386"));
    }

    #[test]
    fn pieces_of_work_keep_their_order() {
        let squares = side_by_side((0..100u64).collect(), |n| n * n);
        assert_eq!(squares, (0..100u64).map(|n| n * n).collect::<Vec<_>>());
        assert_eq!(side_by_side(Vec::<u8>::new(), |n| *n), Vec::<u8>::new());
    }

    /// A compiler that is a script.
    fn scripted(folder: &Path, script: &str) -> Compiler {
        let cc = folder.join("gcc-12");
        crate::executable::write(&cc, &format!("#!/bin/sh\n{script}\n"));
        Compiler {
            name: "gcc-12".into(),
            family: Family::Gcc,
            version: "12.2.0".into(),
            banner: "gcc-12 (Debian) 12.2.0".into(),
            cc,
            cxx: None,
            ar: "ar".into(),
            ranlib: "ranlib".into(),
            nm: "nm".into(),
            profdata: None,
            default: true,
        }
    }

    fn of<'a>(abilities: &'a [Ability], abi: &str, language: Language) -> &'a Ability {
        abilities.iter().find(|a| a.abi == abi && a.language == language).unwrap()
    }

    #[test]
    fn a_compiler_without_a_second_abi_is_fixed_by_the_packages_of_its_own_version() {
        let (_root, packages) = debian();
        let folder = tempfile::tempdir().unwrap();
        let script = "echo \"trial.c:1:10: fatal error: bits/libc-header-start.h: No such file\" >&2; exit 1";
        let abilities = probe_in(folder.path(), &[scripted(folder.path(), script)], &packages);
        let c = of(&abilities, "i386", Language::C);
        let unavailable = c.builds.clone().unwrap_err();
        assert_eq!(unavailable.reason, "trial.c:1:10: fatal error: bits/libc-header-start.h: No such file");
        assert_eq!(unavailable.fix.as_deref(), Some("apt-get install gcc-12-multilib libc6-dev-i386"));
        assert!(c.runs.is_err());
        let cxx = of(&abilities, "i386", Language::Cxx).builds.clone().unwrap_err();
        assert_eq!(cxx.reason, "g++ 12.2.0 is not here");
        assert_eq!(cxx.fix.as_deref(), Some("apt-get install g++-12"));
    }

    #[test]
    fn a_compiler_that_ignores_the_abi_is_detected() {
        let (_root, packages) = debian();
        let folder = tempfile::tempdir().unwrap();
        // It always "makes" a copy of a program of this machine's own ABI. (Not of this test, which would run itself
        // for ever.)
        let script = "while [ \"$1\" != -o ]; do shift; done; cp /bin/true \"$2\"";
        let abilities = probe_in(folder.path(), &[scripted(folder.path(), script)], &packages);
        let unavailable = of(&abilities, "x32", Language::C).builds.clone().unwrap_err();
        assert!(
            unavailable.reason.contains("takes -mx32 and makes a file of another ABI (x86-64)"),
            "{}",
            unavailable.reason
        );
    }

    #[test]
    fn the_machines_own_abi_is_built_and_started() {
        let compilers = compiler::discover();
        let Some(own) = compiler::default(&compilers).filter(|_| cfg!(target_arch = "x86_64")) else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let abilities = probe_in(folder.path(), std::slice::from_ref(own), &Packages::here());
        let ability = of(&abilities, "x86-64", Language::C);
        assert_eq!((&ability.builds, &ability.runs), (&Ok(()), &Ok(())));
        assert!(program(folder.path(), "x86-64", &own.name, Language::C).exists());
        // Each of the others works or has a reason.
        for other in &abilities {
            for unavailable in [&other.builds, &other.runs].into_iter().filter_map(|r| r.as_ref().err()) {
                assert!(!unavailable.reason.is_empty());
            }
        }
    }
}
