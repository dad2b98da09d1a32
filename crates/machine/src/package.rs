//! Debian packages: which are installed, and the command that installs the rest.

use std::path::{Path, PathBuf};

/// dpkg's database, at the root of this system or of a recorded one.
#[derive(Debug, Clone)]
pub struct Packages {
    dpkg: PathBuf,
}

impl Packages {
    /// The packages of this machine.
    pub fn here() -> Packages {
        Packages::at(Path::new("/"))
    }

    /// The packages of the system whose root folder is `root`.
    pub fn at(root: &Path) -> Packages {
        Packages { dpkg: root.join("var/lib/dpkg") }
    }

    /// Whether the package is unpacked here. `name:i386` asks about that architecture's.
    pub fn installed(&self, name: &str) -> bool {
        // dpkg(1) keeps one list of files per package: NAME.list, or NAME:ARCH.list if it is "Multi-Arch: same".
        // An architecture is spelled out for packages of a foreign one only.
        let native =
            if name.contains(':') { String::new() } else { format!("{name}:{}", native_architecture()) };
        [name, native.as_str()]
            .iter()
            .any(|list| !list.is_empty() && self.dpkg.join("info").join(format!("{list}.list")).is_file())
    }

    /// The command that installs those of `names` that are missing. None if none is, or if this is not Debian, whose
    /// package names alone are known.
    pub fn install<S: AsRef<str>>(&self, names: &[S]) -> Option<String> {
        if !self.dpkg.is_dir() {
            return None;
        }
        let missing: Vec<&str> =
            names.iter().map(AsRef::as_ref).filter(|name| !self.installed(name)).collect();
        if missing.is_empty() {
            return None;
        }
        let install = format!("apt-get install {}", missing.join(" "));
        let foreign = missing.iter().any(|name| name.ends_with(":i386"));
        if foreign && !self.knows_architecture("i386") {
            return Some(format!("dpkg --add-architecture i386 && apt-get update && {install}"));
        }
        Some(install)
    }

    /// As [`install`](Packages::install), for a tool that was not found on the PATH: it may be installed nevertheless.
    pub fn provide<S: AsRef<str>>(&self, names: &[S]) -> Option<String> {
        match names.first() {
            Some(first) if self.installed(first.as_ref()) => {
                Some("export PATH=\"$PATH:/usr/bin\"".to_string())
            }
            _ => self.install(names),
        }
    }

    /// Whether dpkg has the foreign architecture.
    fn knows_architecture(&self, name: &str) -> bool {
        // The file is missing until the first `dpkg --add-architecture`.
        std::fs::read_to_string(self.dpkg.join("arch"))
            .is_ok_and(|text| text.lines().any(|line| line.trim() == name))
    }
}

/// dpkg's name of this machine's architecture.
fn native_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "i386",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(lists: &[&str], arch: Option<&str>) -> (tempfile::TempDir, Packages) {
        let root = tempfile::tempdir().unwrap();
        let dpkg = root.path().join("var/lib/dpkg");
        std::fs::create_dir_all(dpkg.join("info")).unwrap();
        for list in lists {
            std::fs::write(dpkg.join("info").join(format!("{list}.list")), "").unwrap();
        }
        if let Some(arch) = arch {
            std::fs::write(dpkg.join("arch"), arch).unwrap();
        }
        let packages = Packages::at(root.path());
        (root, packages)
    }

    #[test]
    fn only_what_is_missing_is_installed() {
        let native = format!("libjemalloc2:{}", native_architecture());
        let (_root, packages) = system(&["gcc-12-multilib", &native], None);
        assert_eq!(
            packages.install(&["gcc-12-multilib", "libjemalloc2", "libc6-dev-x32"]).as_deref(),
            Some("apt-get install libc6-dev-x32")
        );
        assert_eq!(packages.install(&["gcc-12-multilib"]), None);
    }

    #[test]
    fn a_package_of_a_foreign_architecture_is_not_the_native_one() {
        let (_root, packages) = system(&["libjemalloc2"], None);
        assert_eq!(
            packages.install(&["libjemalloc2:i386"]).as_deref(),
            Some("dpkg --add-architecture i386 && apt-get update && apt-get install libjemalloc2:i386")
        );
        let (_root, packages) = system(&[], Some("amd64\ni386\n"));
        assert_eq!(
            packages.install(&["libjemalloc2:i386"]).as_deref(),
            Some("apt-get install libjemalloc2:i386")
        );
    }

    #[test]
    fn an_installed_tool_outside_the_path_is_distinguished() {
        let (_root, packages) = system(&["clang"], None);
        assert_eq!(packages.provide(&["clang", "lld"]).as_deref(), Some("export PATH=\"$PATH:/usr/bin\""));
        assert_eq!(packages.provide(&["valgrind"]).as_deref(), Some("apt-get install valgrind"));
    }

    #[test]
    fn without_dpkg_there_is_no_command() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Packages::at(root.path()).install(&["gcc"]), None);
    }
}
