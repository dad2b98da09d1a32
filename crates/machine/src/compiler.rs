//! Compilers: every pair of gcc and g++, clang and clang++ on the PATH, under the names experiments use.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::abi::Abi;
use crate::package::Packages;
use crate::tool_output;
use crate::unavailable::Unavailable;

/// The compiler's vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// The GNU Compiler Collection.
    Gcc,
    /// LLVM's.
    Clang,
}

impl Family {
    /// The C compiler's name.
    pub fn cc(self) -> &'static str {
        match self {
            Family::Gcc => "gcc",
            Family::Clang => "clang",
        }
    }

    /// The C++ compiler's name.
    pub fn cxx(self) -> &'static str {
        match self {
            Family::Gcc => "g++",
            Family::Clang => "clang++",
        }
    }

    /// The prefix of the archive tools that understand its link-time optimisation.
    fn tools(self) -> &'static str {
        match self {
            Family::Gcc => "gcc",
            Family::Clang => "llvm",
        }
    }
}

/// One compiler with the tools that belong to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiler {
    /// The name experiments use: `gcc-12`, `clang-14`.
    pub name: String,
    /// The vendor.
    pub family: Family,
    /// The full version: `12.2.0`.
    pub version: String,
    /// The first line of `--version`, which also names the distribution's revision.
    pub banner: String,
    /// The C compiler.
    pub cc: PathBuf,
    /// The C++ compiler of the same version, if it is installed.
    pub cxx: Option<PathBuf>,
    /// `ar` that understands this compiler's link-time optimisation, or else plain `ar`.
    pub ar: PathBuf,
    /// `ranlib`, likewise.
    pub ranlib: PathBuf,
    /// `nm`, likewise.
    pub nm: PathBuf,
    /// `llvm-profdata`, without which clang's profiles cannot be used.
    pub profdata: Option<PathBuf>,
    /// Whether this is the default compiler.
    pub default: bool,
}

impl Compiler {
    /// The first number of the version.
    pub fn major(&self) -> u32 {
        numbers(&self.version).first().copied().unwrap_or(0)
    }

    /// The identity for a build cache: another text means another compiler.
    pub fn identity(&self) -> String {
        // Not only the version: a distribution rebuilds one version with other patches, which the banner shows.
        let mut text = format!("{}\n", self.banner);
        for path in [Some(&self.cc), self.cxx.as_ref()].into_iter().flatten() {
            text += &format!("{} {}\n", path.display(), stamp(path).unwrap_or_default());
        }
        text
    }
}

/// The length of a file, and when it was changed: another text means another file. None where there is none.
pub fn stamp(path: &Path) -> Option<String> {
    let data = std::fs::metadata(path).ok()?;
    let modified = data.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    Some(format!("{}:{}", data.len(), modified.map_or(0, |age| age.as_nanos())))
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family.cc(), self.version)
    }
}

/// A compiler that an experiment names and that is not here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no compiler \"{name}\" here (found: {found}){}", fix.as_ref().map(|m| format!("; {m}")).unwrap_or_default())]
pub struct UnknownCompiler {
    /// The name asked for.
    pub name: String,
    /// The names found, for the message.
    pub found: String,
    /// The command that installs it.
    pub fix: Option<String>,
}

/// The compilers on this process's PATH: gcc before clang, the newest first.
pub fn discover() -> Vec<Compiler> {
    discover_on(&std::env::var_os("PATH").unwrap_or_default())
}

/// The default compiler, and those that one of these names may mean. clang takes tens of milliseconds to say its version:
/// it is asked only if it is named, if a name is not gcc's, or if there is no gcc.
pub fn discover_for(names: &[&str]) -> Vec<Compiler> {
    discover_for_on(&std::env::var_os("PATH").unwrap_or_default(), names)
}

fn discover_for_on(path: &OsStr, names: &[&str]) -> Vec<Compiler> {
    let is_gcc = |candidate: &Candidate| {
        let file = candidate.path.file_name().and_then(OsStr::to_str);
        file.is_some_and(|file| file.starts_with(Family::Gcc.cc()))
    };
    let (gccs, others): (Vec<Candidate>, Vec<Candidate>) = candidates(path).into_iter().partition(is_gcc);
    let mut found: Vec<Found> = gccs.into_iter().filter_map(ask).collect();
    let known = named(found.clone(), path);
    if default(&known).is_some() && names.iter().all(|name| find(&known, name).is_ok()) {
        return known;
    }
    found.extend(others.into_iter().filter_map(ask));
    named(found, path)
}

/// The compilers on a PATH.
fn discover_on(path: &OsStr) -> Vec<Compiler> {
    named(candidates(path).into_iter().filter_map(ask).collect(), path)
}

fn named(found: Vec<Found>, path: &OsStr) -> Vec<Compiler> {
    choose(found).into_iter().map(|named| complete(named, path)).collect()
}

/// The default compiler.
pub fn default(compilers: &[Compiler]) -> Option<&Compiler> {
    compilers.iter().find(|compiler| compiler.default)
}

/// The compiler of that name. `gcc` and `clang` alone mean the one the PATH gives them.
pub fn find<'a>(compilers: &'a [Compiler], name: &str) -> Result<&'a Compiler, UnknownCompiler> {
    let exact = compilers.iter().find(|compiler| compiler.name == name);
    let family = || {
        let mut family = compilers.iter().filter(|compiler| compiler.family.cc() == name);
        let first = family.clone().next();
        family.find(|compiler| compiler.default).or(first)
    };
    exact.or_else(family).ok_or_else(|| {
        let found: Vec<&str> = compilers.iter().map(|compiler| compiler.name.as_str()).collect();
        UnknownCompiler {
            name: name.to_string(),
            found: if found.is_empty() { "none".into() } else { found.join(", ") },
            fix: missing(name, &Packages::here()).and_then(|unavailable| unavailable.fix),
        }
    })
}

/// The compiler of the same version that builds for another processor: Debian's cross compiler.
///
/// # Errors
/// It is not here; clang has no C library of other processors.
pub fn cross(compiler: &Compiler, abi: Abi, packages: &Packages) -> Result<Compiler, Unavailable> {
    cross_on(&std::env::var_os("PATH").unwrap_or_default(), compiler, abi, packages)
}

fn cross_on(
    path: &OsStr,
    compiler: &Compiler,
    abi: Abi,
    packages: &Packages,
) -> Result<Compiler, Unavailable> {
    let (triplet, major) = (abi.triplet, compiler.major());
    if compiler.family != Family::Gcc {
        return Err(Unavailable::permanent(format!(
            "{} programs are built by gcc, and not by clang",
            abi.name
        )));
    }
    let find = |name: String| {
        std::env::split_paths(path)
            .map(|folder| folder.join(&name))
            .find(|candidate| is_executable(candidate))
    };
    let cc = find(format!("{triplet}-gcc-{major}")).ok_or_else(|| Unavailable {
        reason: format!("no {triplet}-gcc-{major} is on the PATH, which builds for {}", abi.name),
        fix: packages.provide(&[format!("gcc-{major}-{triplet}"), format!("g++-{major}-{triplet}")]),
    })?;
    let asked = ask(Candidate { path: cc, suffix: format!("-{major}") });
    let found =
        asked.ok_or_else(|| Unavailable::permanent(format!("{triplet}-gcc-{major} gives no version")))?;
    let tool = |name: &str| {
        let names = [format!("{triplet}-gcc-{name}-{major}"), format!("{triplet}-{name}")];
        names.into_iter().find_map(find).unwrap_or_else(|| format!("{triplet}-{name}").into())
    };
    Ok(Compiler {
        name: compiler.name.clone(),
        family: found.family,
        version: found.version.clone(),
        banner: found.banner.clone(),
        cxx: find(format!("{triplet}-g++-{major}")),
        ar: tool("ar"),
        ranlib: tool("ranlib"),
        nm: tool("nm"),
        profdata: None,
        default: false,
        cc: found.path,
    })
}

/// What to install for a compiler of that name; None if the name is no compiler's.
pub fn missing(name: &str, packages: &Packages) -> Option<Unavailable> {
    let (family, suffix) = recognise(name)?;
    let names = match family {
        Family::Gcc => vec![format!("gcc{suffix}"), format!("g++{suffix}")],
        // The runtime library holds what profiling and sanitizers link; Debian only recommends it.
        Family::Clang if suffix.is_empty() => vec!["clang".to_string(), "lld".to_string()],
        Family::Clang => {
            vec![format!("clang{suffix}"), format!("lld{suffix}"), format!("libclang-rt{suffix}-dev")]
        }
    };
    Some(Unavailable { reason: format!("{name} is not on the PATH"), fix: packages.provide(&names) })
}

/// A file on the PATH that is called like a C compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    path: PathBuf,
    suffix: String,
}

/// An identified compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    path: PathBuf,
    /// The suffix of the file's name: `-12`, or empty.
    suffix: String,
    /// The file behind every link.
    real: PathBuf,
    family: Family,
    version: String,
    banner: String,
}

/// A compiler with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    name: String,
    found: Found,
    default: bool,
}

/// Every file on the PATH that is called like a C compiler, in the PATH's order; in one folder those with a version
/// in their name first, because their companions carry it too.
fn candidates(path: &OsStr) -> Vec<Candidate> {
    let mut seen = BTreeSet::new();
    let mut candidates = Vec::new();
    for folder in std::env::split_paths(path).filter(|folder| folder.is_absolute()) {
        let Ok(real) = folder.canonicalize() else { continue };
        if !seen.insert(real) {
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut here: Vec<Candidate> = entries
            .filter_map(|entry| {
                let name = entry.ok()?.file_name();
                let (_, suffix) = recognise(name.to_str()?)?;
                let path = folder.join(&name);
                // A path that is not text could not stand in a JSON record or a Makefile.
                path.to_str()?;
                is_executable(&path).then_some(Candidate { path, suffix: suffix.to_string() })
            })
            .collect();
        here.sort_by_key(|candidate| (candidate.suffix.is_empty(), candidate.path.clone()));
        candidates.append(&mut here);
    }
    candidates
}

/// Whether a file is called like a C compiler: `gcc`, `gcc-12`, `clang-14`, `gcc-4.9`; its family, and the suffix.
fn recognise(name: &str) -> Option<(Family, &str)> {
    [Family::Gcc, Family::Clang].into_iter().find_map(|family| {
        let suffix = name.strip_prefix(family.cc())?;
        let version = suffix.strip_prefix('-').unwrap_or(suffix);
        let is_version = !version.is_empty() && version.chars().all(|c| c.is_ascii_digit() || c == '.');
        (suffix.is_empty() || (suffix.starts_with('-') && is_version)).then_some((family, suffix))
    })
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// What a compiler prints for `--version`. clang is asked once under all of its names, which are links to one file and print
/// the same: its libraries take tens of milliseconds to load. gcc prints the name that it was called by.
fn version_text(path: &Path, real: &Path) -> Option<String> {
    static CLANGS: Mutex<BTreeMap<PathBuf, Option<String>>> = Mutex::new(BTreeMap::new());
    let ask = || {
        let output = tool_output::run(Command::new(path).arg("--version"), Duration::from_secs(5)).ok()?;
        output.status.success().then_some(output.stdout)
    };
    let is_clang = real.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"clang"));
    if !is_clang {
        return ask();
    }
    let mut clangs = CLANGS.lock().unwrap_or_else(PoisonError::into_inner);
    clangs.entry(real.to_owned()).or_insert_with(ask).clone()
}

fn behind_every_link(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Identifies a candidate.
fn ask(candidate: Candidate) -> Option<Found> {
    let real = behind_every_link(&candidate.path);
    let (family, version, banner) = identify(&version_text(&candidate.path, &real)?)?;
    Some(Found { path: candidate.path, suffix: candidate.suffix, real, family, version, banner })
}

/// Parses the output of `--version`: `gcc (Debian 12.2.0-14+deb12u1) 12.2.0`, `gcc (GCC) 14.2.1 20240912 (Red Hat
/// 14.2.1-3)`, `Debian clang version 14.0.6`. Not the file's name: on some systems `gcc` is clang.
fn identify(text: &str) -> Option<(Family, String, String)> {
    let banner = text.lines().find(|line| !line.trim().is_empty())?.trim();
    if let Some((_, rest)) = banner.split_once("clang version ") {
        return Some((Family::Clang, leading_version(rest)?, banner.to_string()));
    }
    if !text.contains("Free Software Foundation") {
        return None;
    }
    // The version stands outside the parentheses; inside is the packager's.
    let mut depth = 0;
    let outside: String = banner
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '(');
            let keep = depth <= 0;
            depth -= i32::from(*c == ')');
            keep
        })
        .collect();
    let version = outside.split_whitespace().skip(1).find_map(leading_version)?;
    Some((Family::Gcc, version, banner.to_string()))
}

/// The version a text begins with: digits and at least one full stop.
fn leading_version(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let version = text[..end].trim_end_matches('.');
    (version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.')).then(|| version.to_string())
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|number| number.parse().ok()).collect()
}

/// Gives each compiler its name, once: `gcc` and `gcc-12` are one if they are one file or one build of one version.
fn choose(found: Vec<Found>) -> Vec<Named> {
    // What `gcc` means on this PATH; without gcc, what `clang` means. Debian builds its packages with gcc.
    let plain = |family: Family| {
        found.iter().filter(|f| f.family == family && f.suffix.is_empty()).map(|f| f.banner_key()).next()
    };
    let newest = |family: Family| {
        found
            .iter()
            .filter(|f| f.family == family)
            .max_by_key(|f| numbers(&f.version))
            .map(|f| f.banner_key())
    };
    let default = plain(Family::Gcc)
        .or_else(|| newest(Family::Gcc))
        .or_else(|| plain(Family::Clang))
        .or_else(|| newest(Family::Clang));

    let mut chosen: Vec<Named> = Vec::new();
    for candidate in &found {
        let same = |named: &Named| {
            named.found.real == candidate.real && named.found.family == candidate.family
                || named.found.banner_key() == candidate.banner_key()
        };
        if chosen.iter().any(same) {
            continue;
        }
        let major = numbers(&candidate.version).first().copied().unwrap_or(0);
        let short = format!("{}-{major}", candidate.family.cc());
        let full = format!("{}-{}", candidate.family.cc(), candidate.version);
        let taken = |name: &str| chosen.iter().any(|named| named.name == name);
        let Some(name) = [short, full].into_iter().find(|name| !taken(name)) else { continue };
        let is_default = default.as_ref() == Some(&candidate.banner_key());
        chosen.push(Named { name, found: candidate.clone(), default: is_default });
    }
    chosen.sort_by_key(|named| (named.found.family, std::cmp::Reverse(numbers(&named.found.version))));
    chosen
}

impl Found {
    /// The text that all names of one compiler share, also through a wrapper such as ccache. gcc begins its banner with
    /// its own command name, which is left out.
    fn banner_key(&self) -> (Family, String) {
        let text = match self.family {
            Family::Gcc => self.banner.split_once(' ').map_or(self.banner.as_str(), |(_, rest)| rest),
            Family::Clang => self.banner.as_str(),
        };
        (self.family, text.to_string())
    }
}

/// Finds the tools that belong to a compiler.
fn complete(named: Named, path: &OsStr) -> Compiler {
    let Named { name, found, default } = named;
    let folders: Vec<PathBuf> = [found.path.parent(), found.real.parent()]
        .into_iter()
        .flatten()
        .map(Path::to_path_buf)
        .chain(std::env::split_paths(path))
        .collect();
    let search = |names: &[String]| {
        names.iter().find_map(|name| folders.iter().map(|f| f.join(name)).find(|p| is_executable(p)))
    };
    let major = format!("-{}", numbers(&found.version).first().copied().unwrap_or(0));
    let same_version = |cxx: &PathBuf| {
        version_text(cxx, &behind_every_link(cxx))
            .and_then(|text| identify(&text))
            .is_some_and(|(family, version, _)| family == found.family && version == found.version)
    };
    let cxx = [found.suffix.as_str(), major.as_str(), ""]
        .iter()
        .filter_map(|suffix| search(&[format!("{}{suffix}", found.family.cxx())]))
        .find(same_version);

    let tool = |tool: &str| {
        let prefix = found.family.tools();
        let names = [format!("{prefix}-{tool}{major}"), format!("{prefix}-{tool}"), tool.to_string()];
        search(&names).unwrap_or_else(|| PathBuf::from(tool))
    };
    let profdata = match found.family {
        Family::Gcc => None,
        Family::Clang => search(&[format!("llvm-profdata{major}"), "llvm-profdata".to_string()]),
    };
    Compiler {
        name,
        family: found.family,
        version: found.version.clone(),
        banner: found.banner.clone(),
        cxx,
        ar: tool("ar"),
        ranlib: tool("ranlib"),
        nm: tool("nm"),
        profdata,
        default,
        cc: found.path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executable;

    fn found(path: &str, real: &str, text: &str) -> Found {
        let (family, version, banner) = identify(text).unwrap();
        let file = Path::new(path).file_name().unwrap().to_str().unwrap();
        let suffix = recognise(file).unwrap().1.to_string();
        Found { path: path.into(), suffix, real: real.into(), family, version, banner }
    }

    fn gcc(called: &str, packager: &str, version: &str) -> String {
        format!("{called} ({packager}) {version}\nCopyright (C) 2022 Free Software Foundation, Inc.\n")
    }

    #[test]
    fn the_banner_of_every_distribution_yields_the_version() {
        let identified = |text: &str| identify(text).map(|(family, version, _)| (family, version));
        assert_eq!(
            identified(&gcc("gcc", "Debian 12.2.0-14+deb12u1", "12.2.0")),
            Some((Family::Gcc, "12.2.0".into()))
        );
        assert_eq!(
            identified(&gcc("gcc", "GCC", "14.2.1 20240912 (Red Hat 14.2.1-3)")),
            Some((Family::Gcc, "14.2.1".into()))
        );
        assert_eq!(
            identified("Debian clang version 14.0.6\nTarget: x\n"),
            Some((Family::Clang, "14.0.6".into()))
        );
        assert_eq!(
            identified("clang version 19.1.1 (https://github.com/llvm/llvm-project 1.2)\n"),
            Some((Family::Clang, "19.1.1".into()))
        );
        assert_eq!(identified("tcc version 0.9.27 (x86_64 Linux)\n"), None);
        assert_eq!(identified(""), None);
    }

    #[test]
    fn only_compilers_are_recognised_by_name() {
        assert_eq!(recognise("gcc-12"), Some((Family::Gcc, "-12")));
        assert_eq!(recognise("clang"), Some((Family::Clang, "")));
        for other in ["gcc-ar", "gcc-ar-12", "clang-format", "clang++", "clang-format-14", "gccgo", "gcc-"] {
            assert_eq!(recognise(other), None, "{other}");
        }
    }

    #[test]
    fn links_to_one_compiler_are_one_compiler_and_the_plain_name_is_the_default() {
        let chosen = choose(vec![
            found("/usr/bin/gcc-11", "/usr/bin/gcc-11", &gcc("gcc-11", "D", "11.4.0")),
            found("/usr/bin/gcc-12", "/usr/bin/gcc-12", &gcc("gcc-12", "D", "12.2.0")),
            found("/usr/bin/clang-14", "/usr/lib/llvm-14/bin/clang", "clang version 14.0.6"),
            found("/usr/bin/clang", "/usr/lib/llvm-14/bin/clang", "clang version 14.0.6"),
            found("/usr/bin/gcc", "/usr/bin/gcc-11", &gcc("gcc", "D", "11.4.0")),
        ]);
        let names: Vec<(&str, bool)> = chosen.iter().map(|n| (n.name.as_str(), n.default)).collect();
        assert_eq!(names, [("gcc-12", false), ("gcc-11", true), ("clang-14", false)]);
    }

    #[test]
    fn two_releases_of_one_major_version_keep_two_names() {
        let chosen = choose(vec![
            found("/opt/bin/gcc", "/opt/bin/gcc", &gcc("gcc", "GCC", "12.4.0")),
            found("/usr/bin/gcc-12", "/usr/bin/gcc-12", &gcc("gcc-12", "Debian", "12.2.0")),
        ]);
        let names: Vec<(&str, bool)> = chosen.iter().map(|n| (n.name.as_str(), n.default)).collect();
        assert_eq!(names, [("gcc-12", true), ("gcc-12.2.0", false)]);
    }

    /// A folder of fake tools, each a script that prints its banner.
    fn toolbox(tools: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in tools {
            executable::write(&folder.path().join(name), &format!("#!/bin/sh\ncat <<'END'\n{text}\nEND\n"));
        }
        folder
    }

    #[test]
    fn a_compiler_is_found_with_the_tools_of_its_own_version() {
        let text = |called: &str, version: &str| gcc(called, "Debian", version);
        let folder = toolbox(&[
            ("gcc-12", &text("gcc-12", "12.2.0")),
            ("g++-12", &text("g++-12", "12.2.0")),
            ("gcc-ar-12", ""),
            ("ar", ""),
            ("gcc-13", &text("gcc-13", "13.1.0")),
            ("g++", &text("g++", "12.2.0")),
        ]);
        let compilers = discover_on(folder.path().as_os_str());
        let named = |name: &str| find(&compilers, name).unwrap();
        assert_eq!(named("gcc-12").cxx, Some(folder.path().join("g++-12")));
        assert_eq!(named("gcc-12").ar, folder.path().join("gcc-ar-12"));
        // The only other g++ is of another version: C++ with gcc-13 is missing, rather than silently mixed.
        assert_eq!(named("gcc-13").cxx, None);
        assert_eq!(named("gcc-13").ar, folder.path().join("ar"));
    }

    #[test]
    fn one_clang_with_several_names_is_asked_for_its_version_once() {
        let folder = toolbox(&[]);
        let path = |name: &str| folder.path().join(name);
        let asked = path("asked");
        let script = format!("#!/bin/sh\necho $0 >>{}\necho Debian clang version 14.0.6\n", asked.display());
        executable::write(&path("clang"), &script);
        for name in ["clang-14", "clang++", "clang++-14"] {
            std::os::unix::fs::symlink("clang", path(name)).unwrap();
        }
        let compilers = discover_on(folder.path().as_os_str());
        let found: Vec<(&str, Option<PathBuf>)> =
            compilers.iter().map(|compiler| (compiler.name.as_str(), compiler.cxx.clone())).collect();
        assert_eq!(found, [("clang-14", Some(path("clang++-14")))]);
        assert_eq!(std::fs::read_to_string(asked).unwrap().lines().count(), 1);
    }

    #[test]
    fn clang_is_asked_if_it_is_named_or_no_gcc_is_here() {
        let gccs = [("gcc-12", gcc("gcc-12", "Debian 12.2.0-14", "12.2.0"))];
        let found = |gccs: &[(&str, String)], names: &[&str]| {
            let texts: Vec<(&str, &str)> = gccs.iter().map(|(name, text)| (*name, text.as_str())).collect();
            let folder = toolbox(&texts);
            let asked = folder.path().join("asked");
            let script = format!("#!/bin/sh\n: >{}\necho clang version 14.0.6\n", asked.display());
            executable::write(&folder.path().join("clang-14"), &script);
            let compilers = discover_for_on(folder.path().as_os_str(), names);
            assert_eq!(asked.exists(), compilers.iter().any(|one| one.family == Family::Clang));
            compilers.into_iter().map(|one| one.name).collect::<Vec<String>>()
        };
        for names in [&[][..], &["gcc"], &["gcc-12"]] {
            assert_eq!(found(&gccs, names), ["gcc-12"], "{names:?}");
        }
        for names in ["clang", "clang-14", "all", "gcc-13", "tcc"] {
            assert_eq!(found(&gccs, &[names]), ["gcc-12", "clang-14"], "{names}");
        }
        assert_eq!(found(&[], &[]), ["clang-14"]);
    }

    #[test]
    fn a_path_without_compilers_yields_none_and_a_fix() {
        let folder = toolbox(&[("gcc", "not a compiler at all")]);
        let compilers = discover_on(folder.path().as_os_str());
        assert_eq!(compilers, []);
        assert!(default(&compilers).is_none());
        let error = find(&compilers, "gcc-12").unwrap_err().to_string();
        assert!(error.starts_with("no compiler \"gcc-12\" here (found: none)"), "{error}");

        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("var/lib/dpkg")).unwrap();
        let unavailable = missing("clang-14", &Packages::at(root.path())).unwrap();
        assert_eq!(unavailable.fix.as_deref(), Some("apt-get install clang-14 lld-14 libclang-rt-14-dev"));
        assert_eq!(missing("tcc", &Packages::at(root.path())), None);
    }

    #[test]
    fn a_rebuilt_compiler_has_another_identity() {
        let folder = toolbox(&[("gcc-12", &gcc("gcc-12", "Debian 12.2.0-14", "12.2.0"))]);
        let before = discover_on(folder.path().as_os_str()).remove(0);
        let mut rebuilt = before.clone();
        rebuilt.banner = "gcc-12 (Debian 12.2.0-15) 12.2.0".into();
        assert_ne!(before.identity(), rebuilt.identity());
        assert_eq!(before.identity(), discover_on(folder.path().as_os_str()).remove(0).identity());
    }
}
