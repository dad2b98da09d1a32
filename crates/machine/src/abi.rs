//! The ABI table: what each name means to a compiler, a loader, pkg-config, autoconf and Debian. Data, one row each.

use std::path::{Path, PathBuf};

use crate::boot_options;
use crate::package::Packages;
use crate::unavailable::Unavailable;

/// One ABI.
#[derive(Debug, PartialEq, Eq)]
pub struct AbiRow {
    /// The name used everywhere.
    pub name: &'static str,
    /// The compiler option that selects it.
    pub option: &'static str,
    /// ELF class: 1 (`ELFCLASS32`) or 2 (`ELFCLASS64`).
    pub elf_class: u8,
    /// ELF machine: 62 (`EM_X86_64`) or 3 (`EM_386`).
    pub elf_machine: u16,
    /// The size of a pointer and of a `long`, in bytes.
    pub word: u8,
    /// The dynamic loader that its programs name (PT_INTERP).
    pub loader: &'static str,
    /// Where its shared objects lie: Debian's multiarch folder first, then biarch folders and other distributions'.
    pub library_folders: &'static [&'static str],
    /// For `PKG_CONFIG_LIBDIR`: without it, pkg-config would use the host's ABI.
    pub pkg_config_libdir: &'static str,
    /// For `configure --host`.
    pub triplet: &'static str,
    /// The sub-folder of gcc's own library folder (`gcc -print-multi-directory`).
    pub multilib: &'static str,
    /// The kernel options that make its programs start; any one of them does. None: every kernel has it.
    pub kernel_options: &'static [&'static str],
    /// The boot option that switches it on where it is built in and off.
    pub boot_option: Option<&'static str>,
    /// Debian's package of the C library's headers and link-time files.
    pub libc_dev: &'static str,
    /// Debian's package of the C library and loader that its programs need.
    pub libc: &'static str,
    /// Debian's package of the C++ library that its programs need.
    pub libstdcxx: &'static str,
    /// Debian's suffix for shared objects built for it; none if Debian builds none.
    pub package_suffix: Option<&'static str>,
    /// QEMU's emulator of its programs, where there is one.
    pub emulator: Option<&'static str>,
}

/// A row of [`ABIS`].
pub type Abi = &'static AbiRow;

/// The ABIs of x86-64 processors. Sources: System V ABI, AMD64 supplement, 4.1 and 10 (x32: "ILP32"); glibc's `sysdeps/x86_64/x32` and
/// `sysdeps/unix/sysv/linux/*/ldd-rewrite.sed` (loaders); Debian 12's packages.
pub static ABIS: &[AbiRow] = &[
    AbiRow {
        name: "x86-64",
        option: "-m64",
        elf_class: 2,
        elf_machine: 62,
        word: 8,
        loader: "/lib64/ld-linux-x86-64.so.2",
        library_folders: &["usr/lib/x86_64-linux-gnu", "usr/lib64"],
        pkg_config_libdir: "/usr/lib/x86_64-linux-gnu/pkgconfig:/usr/share/pkgconfig",
        triplet: "x86_64-linux-gnu",
        multilib: ".",
        kernel_options: &[],
        boot_option: None,
        libc_dev: "libc6-dev",
        libc: "libc6",
        libstdcxx: "libstdc++6",
        package_suffix: Some(""),
        emulator: Some("qemu-x86_64"),
    },
    AbiRow {
        name: "x32",
        option: "-mx32",
        elf_class: 1,
        elf_machine: 62,
        word: 4,
        loader: "/libx32/ld-linux-x32.so.2",
        library_folders: &["usr/lib/x86_64-linux-gnux32", "usr/libx32"],
        pkg_config_libdir:
            "/usr/lib/x86_64-linux-gnux32/pkgconfig:/usr/libx32/pkgconfig:/usr/share/pkgconfig",
        triplet: "x86_64-linux-gnux32",
        multilib: "x32",
        // Renamed in Linux 5.18. Debian builds it in and leaves it off (its patch "x86: Make x32 syscall support
        // conditional via boot parameter").
        kernel_options: &["CONFIG_X86_X32_ABI", "CONFIG_X86_X32"],
        boot_option: Some("syscall.x32=y"),
        libc_dev: "libc6-dev-x32",
        libc: "libc6-x32",
        libstdcxx: "libx32stdc++6",
        package_suffix: None,
        emulator: None,
    },
    AbiRow {
        name: "i386",
        option: "-m32",
        elf_class: 1,
        elf_machine: 3,
        word: 4,
        loader: "/lib/ld-linux.so.2",
        library_folders: &["usr/lib/i386-linux-gnu", "usr/lib32", "usr/lib"],
        pkg_config_libdir: "/usr/lib/i386-linux-gnu/pkgconfig:/usr/lib32/pkgconfig:/usr/share/pkgconfig",
        triplet: "i686-linux-gnu",
        multilib: "32",
        kernel_options: &["CONFIG_IA32_EMULATION"],
        boot_option: Some("ia32_emulation=1"),
        libc_dev: "libc6-dev-i386",
        libc: "libc6-i386",
        libstdcxx: "lib32stdc++6",
        package_suffix: Some(":i386"),
        emulator: Some("qemu-i386"),
    },
];

/// A row of [`FOREIGN`]. Debian's cross compilers keep everything of an ABI below `/usr/TRIPLET`.
macro_rules! foreign {
    ($($name:literal $class:literal $machine:literal $loader:literal $triplet:literal $libraries:literal $emulator:literal;)*) => {
        &[$(AbiRow {
            name: $name,
            option: "",
            elf_class: $class,
            elf_machine: $machine,
            word: 4 * $class,
            loader: $loader,
            library_folders: &[concat!("usr/", $triplet, "/lib")],
            pkg_config_libdir: concat!("/usr/", $triplet, "/lib/pkgconfig"),
            triplet: $triplet,
            multilib: ".",
            kernel_options: &[],
            boot_option: None,
            libc_dev: concat!("libc6-dev-", $libraries, "-cross"),
            libc: concat!("libc6-", $libraries, "-cross"),
            libstdcxx: concat!("libstdc++6-", $libraries, "-cross"),
            package_suffix: None,
            emulator: Some($emulator),
        }),*]
    };
}

/// ABIs of other processors: built by Debian's cross compilers, run under qemu-user. Sources: each architecture's ELF supplement
/// (class and machine; `ppc64` is ELFv1 and big endian, `ppc64el` ELFv2), glibc's `sysdeps/*/shlib-versions` (loaders), Debian 12's
/// packages (triplets and names).
#[rustfmt::skip]
pub static FOREIGN: &[AbiRow] = foreign! {
    "ppc64"   2 21  "/lib64/ld64.so.1"           "powerpc64-linux-gnu"   "ppc64"   "qemu-ppc64";
    "ppc"     1 20  "/lib/ld.so.1"               "powerpc-linux-gnu"     "powerpc" "qemu-ppc";
    "arm64"   2 183 "/lib/ld-linux-aarch64.so.1" "aarch64-linux-gnu"     "arm64"   "qemu-aarch64";
    "armhf"   1 40  "/lib/ld-linux-armhf.so.3"   "arm-linux-gnueabihf"   "armhf"   "qemu-arm";
    "ppc64el" 2 21  "/lib64/ld64.so.2"           "powerpc64le-linux-gnu" "ppc64el" "qemu-ppc64le";
    "riscv64" 2 243 "/lib/ld-linux-riscv64-lp64d.so.1" "riscv64-linux-gnu" "riscv64" "qemu-riscv64";
    "s390x"   2 22  "/lib/ld64.so.1"             "s390x-linux-gnu"       "s390x"   "qemu-s390x";
};

/// The ABI of that name, if there is one.
pub fn find(name: &str) -> Option<Abi> {
    ABIS.iter().chain(FOREIGN).find(|abi| abi.name == name)
}

/// The ABI of a file with that ELF class and machine, if it is one of this machine's processor.
pub fn of_elf(class: u8, machine: u16) -> Option<Abi> {
    ABIS.iter().find(|abi| abi.elf_class == class && abi.elf_machine == machine)
}

impl AbiRow {
    /// Whether its programs are those of another processor.
    pub fn is_foreign(&self) -> bool {
        FOREIGN.iter().any(|abi| abi.name == self.name)
    }

    /// The folder of its cross compiler's libraries, as the root folder of its programs; none for this machine's own.
    pub fn sysroot(&self) -> Option<PathBuf> {
        self.is_foreign().then(|| Path::new("/usr").join(self.triplet))
    }

    /// Every option a compiler needs to compile and to link for this ABI on this machine. Each is one word, so that
    /// they survive any build system when they stand in `CC` or in `CFLAGS`.
    pub fn options(&self) -> Vec<String> {
        self.options_at(Path::new("/"))
    }

    /// As [`options`](AbiRow::options), for the system whose root folder is `root`.
    pub fn options_at(&self, root: &Path) -> Vec<String> {
        if self.is_foreign() {
            return Vec::new();
        }
        let mut options = vec![self.option.to_string()];
        options.extend(self.asm_headers(root));
        options
    }

    /// The option that lets an ABI other than the host's find the kernel's `asm/` headers.
    ///
    /// Debian keeps them in `/usr/include/x86_64-linux-gnu/asm`, where `gcc -mx32` and `gcc -m32` do not look; the
    /// package gcc-multilib fixes that with a link `/usr/include/asm`, but conflicts with every cross compiler, so it
    /// is never asked for here. `-idirafter` looks there last, so that nothing of the ABI's own is hidden.
    fn asm_headers(&self, root: &Path) -> Option<String> {
        const HOST_HEADERS: &str = "usr/include/x86_64-linux-gnu";
        let found_anyway = self.multilib == "." || root.join("usr/include/asm/errno.h").exists();
        let there = root.join(HOST_HEADERS).join("asm/errno.h").exists();
        (!found_anyway && there).then(|| format!("-idirafter/{HOST_HEADERS}"))
    }

    /// The Debian packages that make gcc of that major version (and, with `cxx`, g++) build for this ABI. Never the
    /// unversioned gcc-multilib, which conflicts with cross compilers.
    pub fn packages(&self, gcc_major: u32, cxx: bool) -> Vec<String> {
        let suffix = if self.multilib == "." { "" } else { "-multilib" };
        let mut packages = vec![format!("gcc-{gcc_major}{suffix}")];
        if cxx {
            packages.push(format!("g++-{gcc_major}{suffix}"));
        }
        packages.push(self.libc_dev.to_string());
        packages
    }

    /// Why a program of this ABI did not start, from the error number of `execve(2)`.
    ///
    /// `kernel_has_it` is the kernel's configuration for this ABI, if it could be read.
    pub fn not_started(&self, errno: i32, kernel_has_it: Option<bool>, packages: &Packages) -> Unavailable {
        match errno {
            // The kernel has no handler for that ELF class and machine (fs/exec.c, search_binary_handler).
            libc::ENOEXEC => self.no_kernel(kernel_has_it),
            // The file is there (we have just linked it), so what is not found is its loader.
            libc::ENOENT => Unavailable {
                reason: format!("its loader {} is not here", self.loader),
                fix: packages.install(&[self.libc]),
            },
            libc::EACCES => Unavailable::with_fix(
                "the folder for temporary files does not allow programs to be started (mounted noexec?)",
                "export TMPDIR=<a folder on a file system mounted exec>",
            ),
            other => Unavailable::permanent(std::io::Error::from_raw_os_error(other).to_string()),
        }
    }

    fn no_kernel(&self, kernel_has_it: Option<bool>) -> Unavailable {
        let name = self.name;
        match (self.kernel_options.first(), self.boot_option) {
            (Some(_), Some(boot)) if kernel_has_it == Some(true) => Unavailable::with_fix(
                format!("this kernel has {name} built in, but it is switched off"),
                boot_options::boot_with(boot),
            ),
            (Some(option), Some(boot)) => Unavailable::with_fix(
                format!("this kernel has no {name}"),
                format!(
                    "boot a kernel built with {option}=y, such as Debian's linux-image-amd64, with {boot}"
                ),
            ),
            _ => Unavailable::permanent(format!("this kernel does not start {name} programs")),
        }
    }

    /// The folders that hold its shared objects, under `root`.
    pub fn library_folders_at(&self, root: &Path) -> Vec<PathBuf> {
        self.library_folders.iter().map(|folder| root.join(folder)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str) -> Abi {
        find(name).unwrap()
    }

    fn root_with(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        root
    }

    #[test]
    fn class_and_machine_together_name_the_abi() {
        assert_eq!(of_elf(2, 62).map(|abi| abi.name), Some("x86-64"));
        assert_eq!(of_elf(1, 62).map(|abi| abi.name), Some("x32"));
        assert_eq!(of_elf(1, 3).map(|abi| abi.name), Some("i386"));
        assert_eq!(of_elf(2, 183), None);
    }

    #[test]
    fn asm_headers_are_looked_for_only_where_the_compiler_misses_them() {
        let debian = root_with(&["usr/include/x86_64-linux-gnu/asm/errno.h"]);
        assert_eq!(
            row("x32").options_at(debian.path()),
            ["-mx32", "-idirafter/usr/include/x86_64-linux-gnu"]
        );
        assert_eq!(
            row("i386").options_at(debian.path()),
            ["-m32", "-idirafter/usr/include/x86_64-linux-gnu"]
        );
        assert_eq!(row("x86-64").options_at(debian.path()), ["-m64"]);

        let with_gcc_multilib =
            root_with(&["usr/include/x86_64-linux-gnu/asm/errno.h", "usr/include/asm/errno.h"]);
        assert_eq!(row("x32").options_at(with_gcc_multilib.path()), ["-mx32"]);

        let elsewhere = root_with(&[]);
        assert_eq!(row("i386").options_at(elsewhere.path()), ["-m32"]);
    }

    #[test]
    fn the_packages_follow_the_compilers_version_and_never_conflict_with_cross_compilers() {
        assert_eq!(row("x32").packages(12, true), ["gcc-12-multilib", "g++-12-multilib", "libc6-dev-x32"]);
        assert_eq!(row("i386").packages(14, false), ["gcc-14-multilib", "libc6-dev-i386"]);
        assert_eq!(row("x86-64").packages(12, true), ["gcc-12", "g++-12", "libc6-dev"]);
    }

    #[test]
    fn an_unknown_abi_and_a_missing_loader_have_different_reasons() {
        let root = root_with(&["var/lib/dpkg/info/bash.list"]);
        let packages = Packages::at(root.path());
        let unavailable = |name: &str, errno, config| row(name).not_started(errno, config, &packages);

        assert_eq!(unavailable("x32", libc::ENOEXEC, Some(false)).reason, "this kernel has no x32");
        let off = unavailable("x32", libc::ENOEXEC, Some(true));
        assert!(off.fix.unwrap().contains("syscall.x32=y"));
        let loader = unavailable("x32", libc::ENOENT, None);
        assert_eq!(loader.reason, "its loader /libx32/ld-linux-x32.so.2 is not here");
        assert_eq!(loader.fix.as_deref(), Some("apt-get install libc6-x32"));
    }
}
