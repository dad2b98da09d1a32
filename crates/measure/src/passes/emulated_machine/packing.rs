//! Which files a program takes with it to another kernel: itself, its loader and libraries, its standard input, its inputs with
//! all that is in them, and every file that its command line names. Each lies at the same path as here, behind the same links.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use widthwise_machine::{linking, script};

use crate::build::source;
use crate::passes::emulated_machine::initramfs::Initramfs;
use crate::run::launch_spec::LaunchSpec;

/// The kernel unpacks all of it into memory. A 32-bit kernel has less than 896 MiB that it can use directly; a 64-bit one unpacks it
/// below 4 GiB, beside the archive itself.
pub const MOST_BYTES_32: u64 = 256 << 20;
/// As [`MOST_BYTES_32`], of a 64-bit kernel.
pub const MOST_BYTES_64: u64 = 768 << 20;
/// A larger file is no part of the initramfs: QEMU copies it into the machine (runtime/guest/large_files.h). Its size there has 32 bits.
const LARGE_BYTES: u64 = 16 << 20;
const MOST_BYTES_OF_A_FILE: u64 = u32::MAX as u64;
/// As `MOST_JOB` and `MOST_WORDS` of runtime/guest/init.c.
const MOST_JOB: usize = 1 << 20;
const MOST_WORDS: usize = 1 << 15;

/// Built by build.rs from runtime/guest.
const INIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest-init"));
const EMPTY: [(&str, &[u8]); 3] = [
    ("x86-64", include_bytes!(concat!(env!("OUT_DIR"), "/guest-empty-x86-64"))),
    ("x32", include_bytes!(concat!(env!("OUT_DIR"), "/guest-empty-x32"))),
    ("i386", include_bytes!(concat!(env!("OUT_DIR"), "/guest-empty-i386"))),
];

/// What a machine gets.
#[derive(Debug, Default)]
pub struct Packed {
    /// The files of its initramfs.
    pub files: Initramfs,
    /// Those that QEMU copies into it.
    pub large: Vec<LargeFile>,
    /// What the program may miss there: a sentence whose subject is the variant.
    pub remarks: Vec<String>,
}

/// A file that is no part of the initramfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeFile {
    /// The file here.
    pub from: PathBuf,
    /// The path there.
    to: PathBuf,
    /// Its size.
    pub bytes: u64,
    is_program: bool,
}

/// The files of a program and of those that it starts. An input has no part in `campaigns`, their folder (canonical). `most`
/// bytes may be in the initramfs, and `most_large` in large files. The error is a sentence.
pub fn pack(
    start: &LaunchSpec,
    abi: &str,
    started: &[PathBuf],
    campaigns: &Path,
    (most, most_large): (u64, u64),
) -> Result<Packed, String> {
    let (_, empty) = EMPTY
        .into_iter()
        .find(|(name, _)| *name == abi)
        .ok_or_else(|| format!("no kernel that QEMU boots here starts {abi} programs"))?;
    let library_path = library_path(&start.environment);
    let packed = Packed::default();
    let mut packing = Packing { packed, library_path, campaigns: campaigns.to_owned(), most, most_large };
    for folder in ["dev", "proc", "sys", "tmp", "widthwise"] {
        packing.packed.files.folder(folder.as_bytes());
    }
    packing.packed.files.file(b"init", true, INIT.to_vec());
    packing.packed.files.file(b"widthwise/empty", true, empty.to_vec());
    packing.folder(&start.directory)?;
    for program in std::iter::once(&start.file).chain(started) {
        packing.program(program, &start.directory)?;
    }
    // /dev/null and its like are the guest's own.
    if start.stdin.is_file() {
        packing.file(&start.stdin)?;
    }
    for input in &start.inputs {
        let name = input.file_name().filter(|_| start.fresh);
        packing.tree(input, &name.map_or_else(|| input.clone(), |name| start.directory.join(name)))?;
    }
    for word in start.arguments.iter().skip(1).chain(preloaded(&start.environment).iter()) {
        let path = start.directory.join(word);
        if path.is_file() {
            packing.program(&path, &start.directory)?;
        } else if !word.is_empty() && !packing.has_folder(&path) {
            let folder = word.to_string_lossy();
            packing.packed.remarks.push(format!(
                "had no files of the folder {folder}, which its command line names, on the other kernel: --input {folder} takes \
                 them there"
            ));
        }
    }
    for path in ["/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf"].map(Path::new) {
        if path.is_file() {
            packing.file(path)?;
        }
    }
    let mut packed = packing.packed;
    let job = job(start, &packed.large)?;
    packed.files.file(b"job", false, job);
    Ok(packed)
}

/// The strings of /job; their order is that of runtime/guest/init.c.
fn job(start: &LaunchSpec, large: &[LargeFile]) -> Result<Vec<u8>, String> {
    let variable = |(name, value): (&OsString, &OsString)| {
        let mut text = name.clone();
        text.push("=");
        text.push(value);
        text
    };
    let environment: Vec<OsString> = start.environment.iter().map(variable).collect();
    let mut job = Vec::new();
    let mut put = |text: &[u8]| {
        job.extend_from_slice(text);
        job.push(0);
    };
    put(b"/widthwise/empty");
    put(start.file.as_os_str().as_bytes());
    put(start.directory.as_os_str().as_bytes());
    put(start.stdin.as_os_str().as_bytes());
    for list in [&start.arguments, &environment] {
        put(list.len().to_string().as_bytes());
        list.iter().for_each(|word| put(word.as_bytes()));
    }
    put(large.len().to_string().as_bytes());
    for file in large {
        put(file.to.as_os_str().as_bytes());
        put(file.bytes.to_string().as_bytes());
        put(if file.is_program { b"program" } else { b"file" });
    }
    let words = start.arguments.len().max(environment.len());
    if job.len() > MOST_JOB || words > MOST_WORDS {
        return Err(format!("its command line and environment have {} bytes: too many", job.len()));
    }
    Ok(job)
}

fn library_path(environment: &BTreeMap<OsString, OsString>) -> String {
    let value = environment.get(OsStr::new("LD_LIBRARY_PATH"));
    value.map(|list| list.to_string_lossy().into_owned()).unwrap_or_default()
}

fn preloaded(environment: &BTreeMap<OsString, OsString>) -> Vec<OsString> {
    let list = environment.get(OsStr::new("LD_PRELOAD")).map(|list| list.as_bytes()).unwrap_or_default();
    list.split(|byte| matches!(byte, b' ' | b':')).map(|path| OsStr::from_bytes(path).to_owned()).collect()
}

struct Packing {
    packed: Packed,
    library_path: String,
    /// The folder of campaigns, which changes meanwhile.
    campaigns: PathBuf,
    /// So many bytes may the files of the initramfs have together, and so many the large ones.
    most: u64,
    most_large: u64,
}

impl Packing {
    /// A file that may be a program: with its loader and libraries, or its interpreter.
    fn program(&mut self, path: &Path, directory: &Path) -> Result<(), String> {
        self.file(path)?;
        let libraries = linking::closure(path, &self.library_path, directory)
            .map_err(|name| format!("{} asks for {name}, which is not here", path.display()))?;
        for library in libraries {
            self.file(&library)?;
        }
        match script::interpreter(path) {
            Some(interpreter) if interpreter.is_file() && !self.has(&interpreter) => {
                self.program(&interpreter, directory)
            }
            _ => Ok(()),
        }
    }

    fn folder(&mut self, path: &Path) -> Result<(), String> {
        let real = self.follow(path)?;
        self.packed.files.folder(inside(&real));
        Ok(())
    }

    /// Whether a file is there already.
    fn has(&self, real: &Path) -> bool {
        self.packed.files.has(inside(real)) || self.packed.large.iter().any(|large| large.to == *real)
    }

    /// Whether the program finds there what it finds in this folder here; of no folder, too.
    fn has_folder(&self, path: &Path) -> bool {
        let Ok(real) = std::fs::canonicalize(path) else { return true };
        let is_of_machine = ["/dev", "/proc", "/sys"].iter().any(|folder| real.starts_with(folder));
        let is_everywhere = is_of_machine || real == Path::new("/") || real == Path::new("/tmp");
        let has_files = || std::fs::read_dir(&real).is_ok_and(|mut entries| entries.next().is_some());
        is_everywhere || !has_files() || self.packed.files.has_below(inside(&real))
    }

    /// A file, or a folder with all that is in it, from one place here to another there. Links stay links; what a link names is there
    /// if it is a file. In a fresh directory a link to a file is a copy. Sockets, pipes and devices stay here.
    fn tree(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", from.display());
        if !std::fs::metadata(from).map_err(failed)?.is_dir() {
            return self.content(from, to);
        }
        let real = if from == to { self.follow(to)? } else { to.to_owned() };
        self.packed.files.folder(inside(&real));
        let canonical = std::fs::canonicalize(from).map_err(failed)?;
        let mut entries: Vec<_> =
            std::fs::read_dir(from).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
        entries.sort_by_key(|entry| entry.file_name());
        for entry in entries {
            let (here, there) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type().map_err(failed)?;
            if !source::is_part(&canonical.join(entry.file_name()), &self.campaigns) {
                continue;
            }
            if kind.is_dir() {
                self.tree(&here, &there)?;
            } else if kind.is_file() || here.is_file() {
                self.content(&here, &there)?;
            } else if kind.is_symlink() {
                let target = std::fs::read_link(&here).map_err(failed)?;
                self.packed.files.link(inside(&real.join(entry.file_name())), target.as_os_str().as_bytes());
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), String> {
        self.content(path, path)
    }

    /// The content of the file `from` at the path `to`.
    fn content(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        let real = if from == to { self.follow(to)? } else { to.to_owned() };
        if self.has(&real) {
            return Ok(());
        }
        let failed = |error: std::io::Error| format!("{}: {error}", from.display());
        let metadata = std::fs::metadata(from).map_err(failed)?;
        let bytes = metadata.len();
        let is_program = metadata.permissions().mode() & 0o111 != 0;
        let too_much = |what: &str, most: u64, why: &str| {
            format!("{} does not fit: {what} may have {} MiB {why}", from.display(), most >> 20)
        };
        if bytes > MOST_BYTES_OF_A_FILE {
            return Err(too_much("a file", MOST_BYTES_OF_A_FILE, "on another kernel"));
        }
        if bytes >= LARGE_BYTES {
            let all: u64 = self.packed.large.iter().map(|large| large.bytes).sum::<u64>() + bytes;
            if all > self.most_large {
                return Err(too_much("large files", self.most_large, "together in this machine's memory"));
            }
            if let Some(above) = real.parent() {
                self.packed.files.folder(inside(above));
            }
            self.packed.large.push(LargeFile { from: from.to_owned(), to: real, bytes, is_program });
            return Ok(());
        }
        if bytes + self.packed.files.bytes() > self.most {
            return Err(too_much("files below 16 MiB", self.most, "together on this kernel"));
        }
        self.packed.files.file(inside(&real), is_program, std::fs::read(from).map_err(failed)?);
        Ok(())
    }

    /// Adds every link on the way to a path; the path behind all links.
    fn follow(&mut self, path: &Path) -> Result<PathBuf, String> {
        /// As the kernel's own limit (MAXSYMLINKS).
        const MOST_LINKS: u32 = 40;
        let mut links = 0;
        let mut real = PathBuf::from("/");
        let mut left: Vec<OsString> = parts(path);
        while let Some(part) = left.pop() {
            if part == ".." {
                real.pop();
                continue;
            }
            let here = real.join(&part);
            match std::fs::read_link(&here) {
                Ok(target) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(format!("{}: too many symbolic links", path.display()));
                    }
                    self.packed.files.link(inside(&here), target.as_os_str().as_bytes());
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    left.extend(parts(&target));
                }
                Err(_) => real = here,
            }
        }
        Ok(real)
    }
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |part: Component| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(part).collect()
}

/// The path in the archive.
fn inside(path: &Path) -> &[u8] {
    let bytes = path.as_os_str().as_bytes();
    bytes.strip_prefix(b"/").unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packing(campaigns: &Path) -> Packing {
        let packed = Packed::default();
        Packing {
            packed,
            library_path: String::new(),
            campaigns: campaigns.to_owned(),
            most: 1 << 20,
            most_large: 64 << 20,
        }
    }

    #[test]
    fn a_file_behind_links_travels_with_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("real/file"), "x").unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        std::os::unix::fs::symlink("../link/file", root.join("real/again")).unwrap();
        let mut packing = packing(Path::new("/none"));
        packing.file(&root.join("link/again")).unwrap();
        for name in ["link", "real/again", "real/file"] {
            assert!(packing.has(&root.join(name)), "{name}");
        }
        assert!(!packing.has(&root.join("link/again")));
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        assert!(packing.file(&root.join("loop")).unwrap_err().contains("too many"));
    }

    #[test]
    fn an_input_folder_travels_with_all_that_is_in_it_but_the_campaigns() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        std::fs::create_dir_all(root.join("in/below")).unwrap();
        std::fs::create_dir_all(root.join("in/campaigns")).unwrap();
        std::fs::write(root.join("in/below/file"), "x").unwrap();
        std::fs::write(root.join("in/campaigns/file"), "x").unwrap();
        std::os::unix::fs::symlink("..", root.join("in/below/up")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("in/socket")).unwrap();
        let mut here = packing(&root.join("in/campaigns"));
        here.tree(&root.join("in"), &root.join("in")).unwrap();
        let mut elsewhere = packing(&root.join("in/campaigns"));
        elsewhere.tree(&root.join("in"), Path::new("/elsewhere/in")).unwrap();
        for (packing, to) in [(&here, root.join("in")), (&elsewhere, "/elsewhere/in".into())] {
            assert!(packing.has(&to.join("below/file")) && packing.has(&to.join("below/up")));
            assert!(!packing.has(&to.join("campaigns/file")) && !packing.has(&to.join("socket")));
        }
        assert!(here.has_folder(&root.join("in")) && !elsewhere.has_folder(&root.join("in")));
        assert!(here.has_folder(Path::new("/proc")) && here.has_folder(&root.join("none")));
        assert!(here.tree(&root.join("none"), &root.join("none")).unwrap_err().contains("/none: "));
    }

    #[test]
    fn campaigns_and_version_control_stay_here_however_the_input_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        for name in ["in/campaigns", "in/.git", "in/below", "other"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
            std::fs::write(root.join(name).join("file"), "x").unwrap();
        }
        std::os::unix::fs::symlink("below", root.join("in/turn")).unwrap();
        std::os::unix::fs::symlink("in", root.join("a-link")).unwrap();
        for name in ["other/../in", "a-link"] {
            let mut packing = packing(&root.join("in/campaigns"));
            let input = root.join(name);
            packing.tree(&input, &input).unwrap();
            assert!(packing.has(&root.join("in/below/file")), "{name}");
            // A link lies in the folder itself, and not behind another link.
            assert!(packing.has(&root.join("in/turn")), "{name}");
            for left in ["campaigns", ".git"] {
                assert!(!packing.has(&root.join("in").join(left).join("file")), "{name}: {left}");
            }
        }
    }

    #[test]
    fn a_large_file_is_no_part_of_the_initramfs_and_all_have_limits() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let made = |name: &str, bytes: u64| {
            std::fs::File::create(root.join(name)).unwrap().set_len(bytes).unwrap();
            root.join(name)
        };
        let mut packing = packing(Path::new("/none"));
        packing.file(&made("large", LARGE_BYTES)).unwrap();
        assert!(packing.has(&root.join("large")) && packing.packed.files.bytes() == 0);
        assert_eq!((packing.packed.large.len(), packing.packed.large[0].bytes), (1, LARGE_BYTES));
        for (name, bytes, reason) in [
            ("much", 60 << 20, "large files may have 64 MiB"),
            ("small", 2 << 20, "files below 16 MiB may have 1 MiB"),
            ("huge", 1 << 32, "a file may have 4095 MiB"),
        ] {
            let error = packing.file(&made(name, bytes)).unwrap_err();
            assert!(error.contains(name) && error.contains(reason), "{error}");
        }
    }
}
