//! QEMU, which boots other kernels, and KVM.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::abi::Abi;
use crate::bzimage;
use crate::package::Packages;
use crate::tool_output;
use crate::unavailable::{outcome, Unavailable};

/// What can boot another kernel here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qemu {
    /// The version of `qemu-system-x86_64`.
    #[serde(with = "outcome")]
    pub version: Result<String, Unavailable>,
    /// Whether a test boot under KVM has reached its program; without KVM QEMU translates (TCG), and times mean nothing.
    #[serde(with = "outcome")]
    pub kvm: Result<(), Unavailable>,
}

/// The emulator of whole machines.
///
/// # Errors
/// It is not installed.
pub fn system(packages: &Packages) -> Result<PathBuf, Unavailable> {
    on_path("qemu-system-x86_64", "qemu-system-x86", packages)
}

/// The emulator of an ABI's programs.
///
/// # Errors
/// It is not installed, or QEMU has none.
pub fn user(abi: Abi, packages: &Packages) -> Result<PathBuf, Unavailable> {
    match abi.emulator {
        Some(name) => on_path(name, "qemu-user", packages),
        None => Err(Unavailable::permanent(format!("QEMU has no emulator of {} programs", abi.name))),
    }
}

fn on_path(name: &str, package: &str, packages: &Packages) -> Result<PathBuf, Unavailable> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| Unavailable {
        reason: format!("{name} is not on the PATH"),
        fix: packages.provide(&[package]),
    })
}

/// Asks QEMU and the kernel.
pub fn probe(packages: &Packages) -> Qemu {
    let version = match tool_output::run(
        Command::new("qemu-system-x86_64").arg("--version"),
        Duration::from_secs(10),
    ) {
        Ok(output) => version(&output.stdout)
            .ok_or_else(|| Unavailable::permanent("qemu-system-x86_64 --version gives no version")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Unavailable {
            reason: "qemu-system-x86_64 is not on the PATH".into(),
            fix: packages.provide(&["qemu-system-x86"]),
        }),
        Err(error) => Err(Unavailable::permanent(format!("qemu-system-x86_64: {error}"))),
    };
    let kvm = open_kvm().map_err(|error| why_no_kvm(&error)).and_then(|()| match &version {
        Ok(_) => {
            // A machine on which QEMU starts slowly has more time. The reason is the same each time, so it does not tell how much.
            let began = Instant::now();
            boots("tcg", TCG_LIMIT)?;
            boots("kvm", KVM_LIMIT + began.elapsed())
        }
        Err(unavailable) => Err(unavailable.clone()),
    });
    Qemu { version, kvm }
}

/// A test boot that takes so much longer than a translated one is not what a processor does: QEMU starts in some tenths of a second,
/// and the program is a loop of 50 million instructions.
const KVM_LIMIT: Duration = Duration::from_secs(3);
const TCG_LIMIT: Duration = Duration::from_secs(60);
/// isa-debug-exit: 2 * 0x31 + 1.
const ENDED: i32 = 99;

/// Whether a machine with this accelerator reaches a program. A device that opens proves nothing: some virtual machines have a
/// /dev/kvm under which guests stall.
fn boots(accelerator: &str, limit: Duration) -> Result<(), Unavailable> {
    let (how, late) = match accelerator {
        "kvm" => ("under /dev/kvm ", "did not reach its program within 3 s more than a translated one takes"),
        _ => ("", "did not reach its program within a minute"),
    };
    let failed = |why: &str| Unavailable::permanent(format!("a test boot {how}{why}"));
    let image = tempfile::NamedTempFile::new().and_then(|file| {
        std::fs::write(file.path(), bzimage::minimal(COUNT_AND_END))?;
        Ok(file)
    });
    let image = image.map_err(|error| failed(&format!("has no file: {error}")))?;
    let mut command = Command::new("qemu-system-x86_64");
    command
        .args([
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
            "-m",
            "64",
            "-accel",
            accelerator,
        ])
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=1", "-kernel"])
        .arg(image.path());
    // A guest that stalls does not end by itself, and nothing else ends it if this process is killed.
    // SAFETY: async-signal-safe.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        })
    };
    match tool_output::run(&mut command, limit) {
        Ok(output) if output.status.code() == Some(ENDED) => Ok(()),
        Ok(output) => {
            let text = output.stderr.lines().next_back().unwrap_or("no message").to_owned();
            Err(failed(&format!("failed: {text}")))
        }
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(failed(late)),
        Err(error) => Err(failed(&format!("failed: {error}"))),
    }
}

/// Counts, and ends the machine: `mov $25000000, %ecx; 1: dec %ecx; jnz 1b; mov $0x31, %al; out %al, $0xf4; cli; hlt`.
const COUNT_AND_END: &[u8] =
    &[0x66, 0xb9, 0x40, 0x78, 0x7d, 0x01, 0x66, 0x49, 0x75, 0xfc, 0xb0, 0x31, 0xe6, 0xf4, 0xfa, 0xf4];

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
    fn the_test_image_boots_without_kvm_and_a_limit_ends_it() {
        assert_eq!(boots("tcg", Duration::from_secs(60)), Ok(()));
        let late = boots("tcg", Duration::from_millis(1)).unwrap_err();
        assert!(late.reason.contains("did not reach its program"), "{late}");
        let unknown = boots("nothing", Duration::from_secs(60)).unwrap_err();
        assert!(unknown.reason.contains("failed: "), "{unknown}");
    }

    #[test]
    fn a_missing_device_and_a_missing_right_have_different_reasons() {
        let unavailable = |errno| why_no_kvm(&io::Error::from_raw_os_error(errno));
        assert_eq!(unavailable(libc::ENOENT).reason, "no /dev/kvm");
        assert!(unavailable(libc::EACCES).fix.unwrap().starts_with("usermod"));
    }
}
