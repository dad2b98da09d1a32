//! Object files of a process: which is the program's, which a library's, and one name for a library in every ABI.

/// What an object file is to the program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Module {
    /// The program that is measured.
    Program,
    /// Another program that it starts, or a library, by the stem of its file's name: `libc` for `libc.so.6` and `libc-2.36.so`.
    Other(String),
    /// The dynamic linker.
    Loader,
    /// The x32 runtime, or what valgrind adds: not the program's.
    Tool,
    /// The kernel, in system calls.
    Kernel,
    /// Stubs of the procedure linkage tables of all object files: valgrind does not say whose.
    Stubs,
    /// Code in no file, such as code made at run time or the kernel's vDSO.
    Unknown,
}

impl Module {
    /// The module of an object file, by its path; an empty path is code in no file. `programs` are the paths of the program that is
    /// measured: its own, and without symbolic links.
    pub fn of(path: &str, programs: &[String]) -> Module {
        let file = path.rsplit('/').next().unwrap_or(path);
        match file {
            _ if !path.is_empty() && programs.iter().any(|program| program == path) => Module::Program,
            "" => Module::Unknown,
            "[kernel]" => Module::Kernel,
            _ if file.starts_with("x32run-") || path.contains("/valgrind/vgpreload_") => Module::Tool,
            _ if file.starts_with('[') || file.starts_with("//anon") || path == "//anon" => Module::Unknown,
            _ if is_loader(file) => Module::Loader,
            _ => Module::Other(stem(file).to_owned()),
        }
    }

    /// Its name for readers.
    pub fn name(&self) -> &str {
        match self {
            Module::Program => "the program",
            Module::Other(stem) => stem,
            Module::Loader => "the loader",
            Module::Tool => "the tool",
            Module::Kernel => "the kernel",
            Module::Stubs => "stubs",
            Module::Unknown => "code in no file",
        }
    }
}

/// `ld-linux-x86-64.so.2`, `ld-linux.so.2`, `ld-linux-x32.so.2`, `ld-2.36.so`, musl's `ld-musl-x86_64.so.1`.
fn is_loader(file: &str) -> bool {
    file.starts_with("ld-") && file.contains(".so") || file == "ld.so"
}

/// A library's name without its version; the name of another file as it is.
fn stem(file: &str) -> &str {
    let Some((name, _)) = file.split_once(".so") else { return file };
    match name.rsplit_once('-') {
        Some((stem, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Module {
        Module::of(path, &["/srv/tree".to_owned()])
    }

    #[test]
    fn a_library_has_one_name_in_every_abi() {
        let libc = Module::Other("libc".into());
        for path in ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/libx32/libc.so.6", "/lib32/libc-2.36.so"] {
            assert_eq!(of(path), libc);
        }
        assert_eq!(of("/lib/libstdc++.so.6.0.30"), Module::Other("libstdc++".into()));
        assert_eq!(of("/opt/libpng16-config.so"), Module::Other("libpng16-config".into()));
        for path in ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux.so.2", "/libx32/ld-linux-x32.so.2"] {
            assert_eq!(of(path), Module::Loader);
        }
    }

    #[test]
    fn the_program_is_not_one_of_the_tools() {
        assert_eq!(of("/srv/tree"), Module::Program);
        assert_eq!(of("/usr/bin/true"), Module::Other("true".into()));
        assert_eq!(of("/var/cache/widthwise/x32run-0.1.0-valgrind"), Module::Tool);
        assert_eq!(of("/usr/libexec/valgrind/vgpreload_core-amd64-linux.so"), Module::Tool);
        assert_eq!(
            [of(""), of("[vdso]"), Module::of("", &[String::new()])],
            [(); 3].map(|()| Module::Unknown)
        );
    }
}
