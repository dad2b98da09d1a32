//! QEMU, which boots other kernels, and KVM.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::package::Packages;
use crate::process;
use crate::unavailable::{answer, Unavailable};

/// What can boot another kernel here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qemu {
    /// The version of `qemu-system-x86_64`.
    #[serde(with = "answer")]
    pub version: Result<String, Unavailable>,
    /// Whether `/dev/kvm` can be used; without it QEMU translates (TCG), and times mean nothing.
    #[serde(with = "answer")]
    pub kvm: Result<(), Unavailable>,
}

/// Asks QEMU and the kernel.
pub fn probe(packages: &Packages) -> Qemu {
    let version =
        match process::run(Command::new("qemu-system-x86_64").arg("--version"), Duration::from_secs(10)) {
            Ok(output) => version(&output.stdout)
                .ok_or_else(|| Unavailable::permanent("qemu-system-x86_64 --version gives no version")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Unavailable {
                reason: "qemu-system-x86_64 is not on the PATH".into(),
                fix: packages.provide(&["qemu-system-x86"]),
            }),
            Err(error) => Err(Unavailable::permanent(format!("qemu-system-x86_64: {error}"))),
        };
    Qemu { version, kvm: open_kvm().map_err(|error| why_no_kvm(&error)) }
}

/// `QEMU emulator version 7.2.19 (Debian 1:7.2+dfsg-7+deb12u15)`.
fn version(text: &str) -> Option<String> {
    let rest = text.lines().next()?.split_once("version ")?.1;
    let version = rest.split(|c: char| c != '.' && !c.is_ascii_digit()).next()?;
    (!version.is_empty()).then(|| version.to_string())
}

/// Opens the device and checks its interface's version, as the KVM API requires.
fn open_kvm() -> io::Result<()> {
    const KVM_GET_API_VERSION: libc::c_ulong = 0xAE00; // include/uapi/linux/kvm.h
    let device = OpenOptions::new().read(true).write(true).open("/dev/kvm")?;
    // SAFETY: this request takes no argument and returns a number.
    match unsafe { libc::ioctl(device.as_raw_fd(), KVM_GET_API_VERSION, 0) } {
        12 => Ok(()),
        version if version < 0 => Err(io::Error::last_os_error()),
        version => Err(io::Error::other(format!("/dev/kvm speaks version {version}, expected 12"))),
    }
}

fn why_no_kvm(error: &io::Error) -> Unavailable {
    match error.raw_os_error() {
        Some(libc::ENOENT) => Unavailable::with_fix(
            "no /dev/kvm",
            "modprobe kvm_intel || modprobe kvm_amd (in a virtual machine, the host must allow nested machines)",
        ),
        Some(libc::EACCES | libc::EPERM) => {
            Unavailable::with_fix("no right to use /dev/kvm", "usermod -aG kvm \"$USER\" (and log in again)")
        }
        _ => Unavailable::permanent(format!("/dev/kvm: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemus_version_is_read_with_any_suffix() {
        assert_eq!(version("QEMU emulator version 7.2.19 (Debian 1:7.2)\n").as_deref(), Some("7.2.19"));
        assert_eq!(version("QEMU emulator version 9.0.50\nCopyright\n").as_deref(), Some("9.0.50"));
        assert_eq!(version("hello"), None);
    }

    #[test]
    fn a_missing_device_and_a_missing_right_have_different_reasons() {
        let unavailable = |errno| why_no_kvm(&io::Error::from_raw_os_error(errno));
        assert_eq!(unavailable(libc::ENOENT).reason, "no /dev/kvm");
        assert!(unavailable(libc::EACCES).fix.unwrap().starts_with("usermod"));
    }
}
