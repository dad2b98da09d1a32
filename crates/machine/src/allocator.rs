//! Allocators that can be preloaded into a program of each ABI.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::abi::{Abi, ABIS};
use crate::elf;
use crate::package::Packages;
use crate::unavailable::{outcome, Unavailable};

/// One allocator other than the C library's own.
#[derive(Debug, PartialEq, Eq)]
pub struct AllocatorRow {
    /// The name experiments use.
    pub name: &'static str,
    /// The names of its shared object, the newest interface first.
    pub files: &'static [&'static str],
    /// Debian 12's package.
    pub package: &'static str,
}

/// Every allocator that can be preloaded. `glibc` is not among them: it is what a program gets without.
pub static ALLOCATORS: &[AllocatorRow] = &[
    AllocatorRow { name: "jemalloc", files: &["libjemalloc.so.2"], package: "libjemalloc2" },
    AllocatorRow {
        name: "mimalloc",
        files: &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0"],
        package: "libmimalloc2.0",
    },
    // The minimal build: the full one brings a heap profiler along.
    AllocatorRow { name: "tcmalloc", files: &["libtcmalloc_minimal.so.4"], package: "libtcmalloc-minimal4" },
];

/// Whether an allocator is here for an ABI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocator {
    /// Its name.
    pub name: String,
    /// The ABI's name.
    pub abi: String,
    /// The shared object for `LD_PRELOAD`.
    #[serde(with = "outcome")]
    pub file: Result<PathBuf, Unavailable>,
}

/// Every allocator for every ABI.
pub fn discover() -> Vec<Allocator> {
    discover_at(Path::new("/"))
}

/// As [`discover`], for the system whose root folder is `root`.
pub fn discover_at(root: &Path) -> Vec<Allocator> {
    ABIS.iter()
        .flat_map(|abi| {
            ALLOCATORS.iter().map(move |row| Allocator {
                name: row.name.to_string(),
                abi: abi.name.to_string(),
                file: find_at(root, row, abi),
            })
        })
        .collect()
}

/// The shared object of an allocator for an ABI, or why there is none. `None` if no allocator has that name or no
/// ABI has that one.
pub fn find(name: &str, abi: &str) -> Option<Result<PathBuf, Unavailable>> {
    let row = ALLOCATORS.iter().find(|row| row.name == name)?;
    Some(find_at(Path::new("/"), row, crate::abi::find(abi)?))
}

fn find_at(root: &Path, row: &AllocatorRow, abi: Abi) -> Result<PathBuf, Unavailable> {
    let of_that_abi = |path: &PathBuf| elf::read(path).is_ok_and(|facts| facts.abi() == Some(abi));
    let file = abi
        .library_folders_at(root)
        .iter()
        .flat_map(|folder| row.files.iter().map(move |file| folder.join(file)))
        // A folder such as /usr/lib holds another ABI's files on some systems.
        .find(of_that_abi);
    file.ok_or_else(|| match abi.package_suffix {
        Some(suffix) => Unavailable {
            reason: format!("{} is not installed for {}", row.name, abi.name),
            fix: Packages::at(root).install(&[format!("{}{suffix}", row.package)]),
        },
        None => Unavailable::permanent(format!("no distribution builds {} for {}", row.name, abi.name)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bytes of a shared object.
    fn shared_object(class: u8, machine: u16) -> Vec<u8> {
        let mut file = vec![0u8; 64];
        file[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
        file[16] = 3; // ET_DYN
        file[18..20].copy_from_slice(&machine.to_le_bytes());
        file[20] = 1;
        file
    }

    fn system(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("var/lib/dpkg/info")).unwrap();
        for (name, bytes) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        root
    }

    fn found(root: &Path, name: &str, abi: &str) -> Result<PathBuf, Unavailable> {
        discover_at(root).into_iter().find(|a| a.name == name && a.abi == abi).unwrap().file
    }

    #[test]
    fn each_abi_gets_the_file_built_for_it() {
        let root = system(&[
            ("usr/lib/x86_64-linux-gnu/libjemalloc.so.2", shared_object(2, 62)),
            ("usr/lib/i386-linux-gnu/libmimalloc.so.2", shared_object(1, 3)),
        ]);
        assert!(found(root.path(), "jemalloc", "x86-64").unwrap().ends_with("libjemalloc.so.2"));
        assert!(found(root.path(), "mimalloc", "i386").unwrap().ends_with("i386-linux-gnu/libmimalloc.so.2"));
        assert!(found(root.path(), "mimalloc", "x86-64").is_err());
    }

    #[test]
    fn a_file_of_another_abi_in_the_right_folder_is_not_used() {
        let root = system(&[("usr/lib/i386-linux-gnu/libjemalloc.so.2", shared_object(2, 62))]);
        assert!(found(root.path(), "jemalloc", "i386").is_err());
    }

    #[test]
    fn a_missing_allocator_names_its_package_and_x32_has_none() {
        let root = system(&[]);
        assert_eq!(
            found(root.path(), "tcmalloc", "x86-64").unwrap_err().fix.as_deref(),
            Some("apt-get install libtcmalloc-minimal4")
        );
        assert_eq!(
            found(root.path(), "jemalloc", "i386").unwrap_err().fix.as_deref(),
            Some("dpkg --add-architecture i386 && apt-get update && apt-get install libjemalloc2:i386")
        );
        let x32 = found(root.path(), "jemalloc", "x32").unwrap_err();
        assert_eq!(x32, Unavailable::permanent("no distribution builds jemalloc for x32"));
    }

    #[test]
    fn only_allocators_of_the_table_are_looked_for() {
        assert_eq!(find("hoard", "x86-64"), None);
        assert_eq!(find("jemalloc", "sparc"), None);
        assert!(find("jemalloc", "x32").is_some());
    }
}
