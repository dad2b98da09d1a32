//! The kernel that a variant runs on: this machine's own, or another one in an emulated machine.

use std::fmt;
use std::path::PathBuf;

use crate::bytes;

/// The name of this machine's own kernel, the default.
pub const HOST: &str = "host";

/// One of Debian's kernels.
#[derive(Debug, PartialEq, Eq)]
pub struct DebianKernelRow {
    /// The value of the axis.
    pub name: &'static str,
    /// The package that depends on the newest kernel's package.
    pub package: &'static str,
    /// Debian's architecture of the package.
    pub architecture: &'static str,
    /// Words of the kernel's command line that this value stands for.
    pub command_line: &'static str,
}

/// A row of [`KERNELS`].
pub type DebianKernel = &'static DebianKernelRow;

/// Debian's kernels. x32 is built into the amd64 kernel and is off without its boot option.
pub static KERNELS: &[DebianKernelRow] = &[
    DebianKernelRow {
        name: "debian:amd64",
        package: "linux-image-amd64",
        architecture: "amd64",
        command_line: "",
    },
    DebianKernelRow {
        name: "debian:686-pae",
        package: "linux-image-686-pae",
        architecture: "i386",
        command_line: "",
    },
    DebianKernelRow {
        name: "debian:amd64+x32",
        package: "linux-image-amd64",
        architecture: "amd64",
        command_line: "syscall.x32=y",
    },
];

/// The kernel that a variant runs on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Kernel {
    /// This machine's own.
    #[default]
    Host,
    /// One of Debian's, in an emulated machine.
    Debian(DebianKernel),
    /// A bzImage, in an emulated machine.
    File(PathBuf),
}

impl Kernel {
    /// The kernel of that name. A name with a `/` is the path of a bzImage.
    pub fn find(name: &str) -> Option<Kernel> {
        if name == HOST {
            return Some(Kernel::Host);
        }
        let debian = KERNELS.iter().find(|row| row.name == name).map(Kernel::Debian);
        debian.or_else(|| name.contains('/').then(|| Kernel::File(bytes::path(name))))
    }

    /// Every name that is no path.
    pub fn names() -> impl Iterator<Item = &'static str> {
        std::iter::once(HOST).chain(KERNELS.iter().map(|row| row.name))
    }

    /// Whether programs run in an emulated machine.
    pub fn is_emulated(&self) -> bool {
        *self != Kernel::Host
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kernel::Host => f.write_str(HOST),
            Kernel::Debian(row) => f.write_str(row.name),
            Kernel::File(path) => f.write_str(&bytes::shown_path(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_slash_is_a_path_and_no_other_unknown_name_is() {
        assert_eq!(Kernel::find("host"), Some(Kernel::Host));
        assert_eq!(Kernel::find("./bzImage"), Some(Kernel::File("./bzImage".into())));
        assert_eq!(Kernel::find("debian:sparc"), None);
        for name in Kernel::names().skip(1) {
            assert!(matches!(Kernel::find(name), Some(Kernel::Debian(row)) if row.name == name));
        }
    }
}
