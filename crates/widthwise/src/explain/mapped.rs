//! Programs on disk, mapped: a file of any size is read only where it is looked at.

use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use widthwise_anatomy::elf::{is_elf, Elf};
use widthwise_experiment::bytes;

use crate::failure::Failure;

/// A file of a variant.
#[derive(Debug)]
pub struct MappedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Absent where the file is empty, which cannot be mapped.
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps a file.
    ///
    /// # Errors
    /// It is no regular file, or cannot be read.
    pub fn open(path: &Path) -> Result<MappedFile, Failure> {
        let failed = |error: std::io::Error| Failure::request(format!("{}: {error}", bytes::text(path)));
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() {
            return Err(Failure::request(format!("{}: it is no regular file", bytes::text(path))));
        }
        let map = match metadata.len() {
            0 => None,
            // SAFETY: the mapping is private and read only. A file that is cut short meanwhile ends the process with SIGBUS.
            _ => Some(unsafe { Mmap::map(&File::open(path).map_err(failed)?) }.map_err(failed)?),
        };
        Ok(MappedFile { path: path.to_owned(), map })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Its headers.
    ///
    /// # Errors
    /// It is no ELF file, or damaged.
    pub fn elf(&self) -> Result<Elf<'_>, Failure> {
        Elf::read(self.bytes())
            .map_err(|error| Failure::request(format!("{}: {error}", bytes::text(&self.path))))
    }
}

/// Whether a name is written as a file's: it begins with `/`, `./` or `../`.
pub fn is_file_name(name: &str) -> bool {
    ["/", "./", "../"].iter().any(|start| name.starts_with(start))
}

/// Whether a file begins as an ELF file does.
pub fn is_elf_file(path: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 4];
    let is_regular = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    is_regular && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && is_elf(&start)
}
