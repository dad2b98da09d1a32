//! The kernels of emulated machines: fetched or named, unpacked once, and checked.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;
use widthwise_debian::{fetch_kernel, DebianError};
use widthwise_experiment::{bytes, Kernel};
use widthwise_machine::bzimage::{self, BzImage, Compression};

/// Where the kernel's half of the address space begins (Linux, Documentation/arch/x86/x86_64/mm.rst; CONFIG_PAGE_OFFSET of
/// 32-bit kernels).
const SPLIT_64: u64 = 0xffff_8000_0000_0000;
const SPLIT_32: u64 = 0xc000_0000;
/// Switches x32 on where a kernel has it built in and off, as Debian's have; other kernels ignore it.
const X32: &str = "syscall.x32=y";

/// A kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelImage {
    /// Its name for messages: `debian:686-pae (6.1.0-50-686-pae)`.
    pub name: String,
    /// What QEMU starts: the uncompressed kernel where there is one.
    pub file: PathBuf,
    /// Words of the command line that belong to this kernel.
    pub command_line: String,
    /// Whether it is a 64-bit kernel.
    pub is_64_bit: bool,
    /// Whether it may start x32 programs.
    pub may_have_x32: bool,
    /// The first address of the kernel.
    pub split: u64,
    /// The digest of the bzImage.
    pub digest: String,
    /// `qemu-system-x86_64`.
    pub emulator: PathBuf,
}

/// There is no such kernel.
#[derive(Debug, Error)]
pub enum KernelError {
    /// Debian's kernel could not be fetched.
    #[error(transparent)]
    Debian(#[from] DebianError),
    /// A file cannot be used.
    #[error("{} {reason}", bytes::shown_path(path))]
    File {
        /// The file.
        path: PathBuf,
        /// A sentence whose subject is the file.
        reason: String,
    },
}

impl KernelImage {
    /// Makes a kernel ready to boot; none for this machine's own. Debian's are kept in `root/kernels`; `say` receives a message
    /// for each step that takes time.
    ///
    /// # Errors
    /// It cannot be fetched, read or kept.
    pub fn place(
        kernel: &Kernel,
        root: &Path,
        emulator: &Path,
        say: &mut dyn FnMut(&str),
    ) -> Result<Option<KernelImage>, KernelError> {
        let (file, name, command_line) = match kernel {
            Kernel::Host => return Ok(None),
            Kernel::Debian(row) => {
                let fetched = fetch_kernel(row.package, row.architecture, root, say)?;
                (fetched.file, row.name.to_owned(), row.command_line)
            }
            // Without `.` components.
            Kernel::File(path) => {
                let path: PathBuf = path.components().collect();
                let name = bytes::shown_path(&path);
                (path, name, X32)
            }
        };
        let wrong = |path: &Path| {
            let path = path.to_owned();
            move |reason: String| KernelError::File { path, reason }
        };
        let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
        let image = std::fs::read(&file).map_err(unreadable).map_err(wrong(&file))?;
        let header = bzimage::read_bytes(&image).map_err(wrong(&file))?;
        let digest = blake3::hash(&image).to_hex().to_string();
        let folder = root.join("kernels").join("unpacked").join(&digest[..32]);
        let unpacked = unpacked(&image, &header, &folder).map_err(wrong(&folder))?;
        Ok(Some(KernelImage {
            name: if header.version.is_empty() { name } else { format!("{name} ({})", header.version) },
            file: unpacked.unwrap_or(file),
            command_line: command_line.to_owned(),
            is_64_bit: header.is_64_bit,
            may_have_x32: header.is_64_bit && command_line.contains(X32),
            split: if header.is_64_bit { SPLIT_64 } else { SPLIT_32 },
            digest,
            emulator: emulator.to_owned(),
        }))
    }

    /// Why this kernel starts no program of an ABI, where that is known before it is booted.
    pub fn refuses(&self, abi: &str) -> Option<String> {
        match abi {
            "x86-64" | "x32" if !self.is_64_bit => {
                Some(format!("the 32-bit kernel {} does not start {abi} programs", self.name))
            }
            "x32" if !self.may_have_x32 => {
                Some(format!("the kernel {} has x32 switched off; in debian:amd64+x32 it is on", self.name))
            }
            _ => None,
        }
    }
}

/// The uncompressed kernel, kept in the folder. An emulated processor would spend longer on unpacking it than on all the rest of
/// a boot. None where it cannot be unpacked here or started directly: then QEMU starts the bzImage.
fn unpacked(image: &[u8], header: &BzImage, folder: &Path) -> Result<Option<PathBuf>, String> {
    let (file, kept) = (folder.join("vmlinux"), folder.join("vmlinux.blake3"));
    if let (Ok(kernel), Ok(digest)) = (std::fs::read(&file), std::fs::read_to_string(&kept)) {
        if blake3::hash(&kernel).to_hex().as_str() == digest.trim() {
            return Ok(Some(file));
        }
    }
    let Some(kernel) = decompressed(&image[header.payload.clone()]) else { return Ok(None) };
    if !bzimage::has_direct_entry(&kernel) {
        return Ok(None);
    }
    let keep = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        for (path, content) in
            [(&file, kernel.as_slice()), (&kept, blake3::hash(&kernel).to_hex().as_bytes())]
        {
            let mut partial = tempfile::NamedTempFile::new_in(folder)?;
            partial.write_all(content)?;
            partial.persist(path).map_err(|error| error.error)?;
        }
        Ok(())
    };
    keep().map_err(|error| format!("has no room for a kernel: {error}"))?;
    Ok(Some(file))
}

fn decompressed(payload: &[u8]) -> Option<Vec<u8>> {
    match Compression::of(payload)? {
        Compression::Zstd => {
            // Behind the frame is the kernel's size.
            let mut decoder = zstd::stream::read::Decoder::new(payload).ok()?.single_frame();
            let mut kernel = Vec::new();
            std::io::Read::read_to_end(&mut decoder, &mut kernel).ok()?;
            Some(kernel)
        }
        // xz's other filters are in no library that is used here; every Debian system that builds packages has the tool.
        Compression::Xz => by_tool(&["xz", "-dc", "--single-stream"], payload),
        Compression::Gzip => by_tool(&["gzip", "-dc"], payload),
    }
}

fn by_tool(command: &[&str], payload: &[u8]) -> Option<Vec<u8>> {
    let mut tool = Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut input = tool.stdin.take()?;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A tool that stops reading at the end of its stream is not failed.
            let _ = input.write_all(payload);
        });
        let output = tool.wait_with_output().ok()?;
        (output.stdout.starts_with(b"\x7fELF")).then_some(output.stdout)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(is_64_bit: bool, command_line: &str) -> KernelImage {
        KernelImage {
            name: "k (6.1)".to_owned(),
            file: PathBuf::new(),
            command_line: command_line.to_owned(),
            is_64_bit,
            may_have_x32: is_64_bit && !command_line.is_empty(),
            split: 0,
            digest: String::new(),
            emulator: PathBuf::new(),
        }
    }

    #[test]
    fn the_matrix_of_widths_has_its_unsupported_cells() {
        let refused =
            |kernel: &KernelImage| ["x86-64", "x32", "i386"].map(|abi| kernel.refuses(abi).is_some());
        assert_eq!(refused(&image(false, "")), [true, true, false]);
        assert_eq!(refused(&image(true, "")), [false, true, false]);
        assert_eq!(refused(&image(true, X32)), [false, false, false]);
    }

    #[test]
    fn a_file_that_is_no_kernel_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bzImage");
        std::fs::write(&file, "no kernel").unwrap();
        let kernel = Kernel::File(file.clone());
        let error = KernelImage::place(&kernel, folder.path(), Path::new("qemu"), &mut |_| {}).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{} is no bzImage", file.display())), "{error}");
        assert_eq!(
            KernelImage::place(&Kernel::Host, folder.path(), Path::new("q"), &mut |_| {}).unwrap(),
            None
        );
    }
}
