//! An initramfs: the files of an emulated machine, as the kernel unpacks them into its first file system
//! (Documentation/driver-api/early-userspace/buffer-format.rst, the format "newc"). The same content gives the same bytes. Pure.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// The kind of an entry, with its permissions (inode(7)).
const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// Files, folders and links by path, without a `/` at the beginning.
#[derive(Debug, Default)]
pub struct Initramfs {
    entries: BTreeMap<Vec<u8>, (u32, Vec<u8>)>,
    bytes: u64,
}

impl Initramfs {
    /// Whether there is an entry of that path.
    pub fn has(&self, path: &[u8]) -> bool {
        self.entries.contains_key(path)
    }

    /// Whether there is something in the folder of that path.
    pub fn has_below(&self, path: &[u8]) -> bool {
        let inside = |other: &[u8]| other.strip_prefix(path).is_some_and(|rest| rest.first() == Some(&b'/'));
        let from = self.entries.range(path.to_vec()..).map(|(other, _)| other.as_slice());
        from.take_while(|other| other.starts_with(path)).any(inside)
    }

    /// The size of all content, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a folder, and the folders above it.
    pub fn folder(&mut self, path: &[u8]) {
        self.above(path);
        self.entries.entry(path.to_vec()).or_insert((FOLDER, Vec::new()));
    }

    /// Adds a file, and the folders above it.
    pub fn file(&mut self, path: &[u8], is_program: bool, content: Vec<u8>) {
        self.above(path);
        self.bytes += content.len() as u64;
        self.entries.insert(path.to_vec(), (if is_program { PROGRAM } else { FILE }, content));
    }

    /// Adds a symbolic link, and the folders above it.
    pub fn link(&mut self, path: &[u8], target: &[u8]) {
        self.above(path);
        self.entries.insert(path.to_vec(), (LINK, target.to_vec()));
    }

    fn above(&mut self, path: &[u8]) {
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            self.entries.entry(path[..at].to_vec()).or_insert((FOLDER, Vec::new()));
        }
    }

    /// Writes the archive. In the order of the paths, a folder comes before what is in it.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        for (number, (path, (mode, content))) in self.entries.iter().enumerate() {
            append(to, number as u32 + 1, path, *mode, content)?;
        }
        append(to, 0, b"TRAILER!!!", 0, &[])
    }
}

fn append(to: &mut impl Write, number: u32, path: &[u8], mode: u32, content: &[u8]) -> io::Result<()> {
    const NOTHING: [u8; 4] = [0; 4];
    let padding = |length: usize| &NOTHING[..length.next_multiple_of(4) - length];
    // Inode, mode, user, group, links, time, size, device (two numbers), special device (two), length of the name, check.
    let fields = [number, mode, 0, 0, 1, 0, content.len() as u32, 0, 0, 0, 0, path.len() as u32 + 1, 0];
    let mut header = b"070701".to_vec();
    for field in fields {
        header.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    header.extend_from_slice(path);
    header.push(0);
    to.write_all(&header)?;
    to.write_all(padding(header.len()))?;
    to.write_all(content)?;
    to.write_all(padding(content.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_adding_changes_nothing_and_folders_come_first() {
        let mut one = Initramfs::default();
        one.file(b"a/b/c", true, b"12345".to_vec());
        one.link(b"a/l", b"b/c");
        let mut other = Initramfs::default();
        other.link(b"a/l", b"b/c");
        other.file(b"a/b/c", true, b"12345".to_vec());
        other.folder(b"a/b");
        let archive = |files: &Initramfs| {
            let mut bytes = Vec::new();
            files.write(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(archive(&one), archive(&other));
        let text = String::from_utf8_lossy(&archive(&one)).into_owned();
        let at = |name: &str| text.find(name).unwrap();
        assert!(at("a/b\0") < at("a/b/c\0") && at("a\0") < at("a/l\0") && archive(&one).len() % 4 == 0);
        assert!(text.contains("00000005"), "the size of the file");
    }
}
