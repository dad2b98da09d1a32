//! Reads and interprets `/proc/PID/smaps`: what each mapping holds, and what it is for. Pure: text in,
//! amounts out.
//!
//! The format is that of `show_smap` and `show_map_vma` in `fs/proc/task_mmu.c`. The text of an ending
//! process may be truncated anywhere: its complete mappings are used.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use widthwise_experiment::memory::{Amounts, Class, Part};

/// Addresses of an x32 program end here: mappings above are the runtime's (`docs/x32.md`).
const FOUR_GIB: u64 = 1 << 32;

/// The largest guard below a thread's stack: glibc's is one page, and programs request a few.
const MOST_GUARD: u64 = 64 << 10;

/// glibc's arenas begin at multiples of HEAP_MAX_SIZE (malloc/arena.c): 64 MiB where `long` has 8 bytes, 1
/// MiB elsewhere. The unused part of an arena has no access rights, and may look like a guard.
const ARENA: u64 = 1 << 20;

/// Anonymous memory after a file's data counts as the file's own up to this size; beyond, the file itself
/// decides. Most libraries have less; Python's arenas, which often lie there, are larger (256 KiB,
/// Objects/obmalloc.c).
const SURELY_ZEROS: u64 = 128 << 10;

/// One mapping.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mapping {
    /// Addresses.
    pub range: Range<u64>,
    /// `rw-p` and the like.
    pub rights: [u8; 4],
    /// Its offset in the file.
    pub offset: u64,
    /// Device and inode of the file; an inode of 0 means no file.
    pub file: (u64, u64),
    /// The file's path, or the kernel's name for it in brackets; empty for most anonymous memory.
    pub path: PathBuf,
    /// Its memory, as the process has it by itself.
    pub amounts: Amounts,
    /// Resident pages that no other process maps.
    pub private: u64,
    /// The written part of `private`.
    pub private_dirty: u64,
    /// Merged by KSM.
    pub merged: u64,
    /// Swapped out, divided by the number of users.
    pub swap_share: u64,
    /// Huge pages.
    pub huge: u64,
}

impl Mapping {
    fn has(&self, right: u8) -> bool {
        self.rights.contains(&right)
    }

    /// Whether it maps a file.
    fn is_file(&self) -> bool {
        self.file.1 != 0
    }

    /// Memory of the process alone, without a file and without a name of the kernel's.
    pub fn is_anonymous(&self) -> bool {
        !self.is_file() && (self.path.as_os_str().is_empty() || named(&self.path, "[anon:"))
    }
}

fn named(path: &Path, beginning: &str) -> bool {
    path.as_os_str().as_bytes().starts_with(beginning.as_bytes())
}

/// The mappings in the text of smaps.
pub fn read(text: &[u8]) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(mapping) = head(line) {
            mappings.push(mapping);
        } else if let Some(last) = mappings.last_mut() {
            field(line, last);
        }
    }
    mappings
}

/// `55c3-55c4 r-xp 00002000 fe:00 247026    /usr/bin/cat`
fn head(line: &[u8]) -> Option<Mapping> {
    // Fields begin with a capital letter, mappings with a lower-case hexadecimal digit.
    if !line.first().is_some_and(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte)) {
        return None;
    }
    let mut words = line.splitn(6, |byte| *byte == b' ');
    let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
    let (device, rest) = (words.next()?, (words.next()?, words.next().unwrap_or_default()));
    let cut = range.iter().position(|byte| *byte == b'-')?;
    let colon = device.iter().position(|byte| *byte == b':')?;
    let major = hexadecimal(&device[..colon])?;
    let minor = hexadecimal(&device[colon + 1..])?;
    let inode: u64 = std::str::from_utf8(rest.0).ok()?.parse().ok()?;
    Some(Mapping {
        range: hexadecimal(&range[..cut])?..hexadecimal(&range[cut + 1..])?,
        rights: rights.try_into().ok()?,
        offset: hexadecimal(offset)?,
        file: (major << 32 | minor, inode),
        path: OsStr::from_bytes(rest.1.trim_ascii()).into(),
        ..Mapping::default()
    })
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

/// `Rss:                  20 kB`
fn field(line: &[u8], mapping: &mut Mapping) {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return };
    let Some(bytes) = kibibytes(&line[colon + 1..]) else { return };
    let amounts = &mut mapping.amounts;
    match &line[..colon] {
        b"Size" => amounts.virtual_bytes = bytes,
        b"Rss" => amounts.resident = bytes,
        b"Pss" => amounts.pss = bytes,
        b"Anonymous" => amounts.anonymous = bytes,
        b"Swap" => amounts.swap = bytes,
        b"SwapPss" => mapping.swap_share = bytes,
        b"Private_Clean" => mapping.private += bytes,
        b"Private_Dirty" => {
            mapping.private += bytes;
            mapping.private_dirty += bytes;
        }
        b"KSM" => mapping.merged += bytes,
        b"AnonHugePages" | b"ShmemPmdMapped" | b"FilePmdMapped" | b"Shared_Hugetlb" | b"Private_Hugetlb" => {
            mapping.huge += bytes;
        }
        _ => {}
    }
}

/// `   20 kB`, in bytes.
pub fn kibibytes(text: &[u8]) -> Option<u64> {
    let number = text.trim_ascii().strip_suffix(b"kB")?.trim_ascii();
    std::str::from_utf8(number).ok()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The amount in the line that begins so, in bytes: of smaps_rollup and of meminfo, too.
pub fn amount(text: &[u8], name: &[u8]) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))?;
    kibibytes(line)
}

/// The bytes of each mapping that lie in these address ranges; ranges and mappings ascend.
pub fn within(mappings: &[Mapping], stretches: &[Range<u64>]) -> Vec<u64> {
    let mut next = 0;
    let mut bytes = Vec::with_capacity(mappings.len());
    for Mapping { range, .. } in mappings {
        while stretches.get(next).is_some_and(|stretch| stretch.end <= range.start) {
            next += 1;
        }
        let inside =
            stretches[next.min(stretches.len())..].iter().take_while(|stretch| stretch.start < range.end);
        bytes.push(inside.map(|s| s.end.min(range.end).saturating_sub(s.start.max(range.start))).sum());
    }
    bytes
}

/// Addresses of the program file's mappings that are not writable: pages that were changed before look like unchanged ones there.
pub fn read_only<'m>(
    mappings: &'m [Mapping],
    program: Option<&'m Path>,
) -> impl Iterator<Item = Range<u64>> + 'm {
    let own = mappings.iter().filter(move |mapping| Some(mapping.path.as_path()) == program);
    own.filter(|mapping| !mapping.has(b'w')).map(|mapping| mapping.range.clone())
}

/// Whether no figure of the process counts the mapping's resident pages: the kernel's data behind the vDSO (`VM_PFNMAP`,
/// arch/x86/entry/vdso/vma.c), and hugetlbfs. The vDSO's code counts as a file's does.
pub fn is_uncounted(mapping: &Mapping) -> bool {
    ["[vvar", "[vsyscall", "/anon_hugepage"].iter().any(|beginning| named(&mapping.path, beginning))
}

/// Whether it is the vDSO, whose pages all processes of the system share, although it has no file.
pub fn is_vdso(mapping: &Mapping) -> bool {
    !mapping.is_file() && named(&mapping.path, "[vdso")
}

/// What is known of a process besides its mappings.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The program file, as the kernel names it (`/proc/PID/exe`).
    pub program: Option<PathBuf>,
    /// The x32 runtime's file, where it started the process.
    pub runtime: Option<PathBuf>,
    /// The known stack pointers of its threads.
    pub stack_pointers: Vec<u64>,
    /// The process has, or had, more than one thread.
    pub threads: bool,
    /// Mappings of files whose paths begin with this are the recorder's.
    pub recorder: Option<PathBuf>,
    /// The size of each file's zero-initialised variables ([`in_doubt`] names the files to look at).
    pub zero_pages: BTreeMap<PathBuf, u64>,
}

/// What each mapping, in address order, is for.
///
/// A thread's stack is ordinary anonymous memory. A stack pointer into it, or the guard below it, identifies
/// it. Zero-initialised variables are anonymous memory that adjoins their file's writable mapping. The kernel
/// may have merged them with memory that the program maps behind them; the larger part decides.
pub fn classify(mappings: &[Mapping], around: &Surroundings) -> Vec<Part> {
    let executable: BTreeSet<(u64, u64)> =
        mappings.iter().filter(|m| m.is_file() && m.has(b'x')).map(|m| m.file).collect();
    // The file whose writable mapping has just ended, and where.
    let mut before: Option<(u64, Part)> = None;
    let mut parts = Vec::with_capacity(mappings.len());
    for (at, mapping) in mappings.iter().enumerate() {
        let below = at.checked_sub(1).map(|at| &mappings[at]).filter(|m| m.range.end == mapping.range.start);
        let zeros = before.take().filter(|(end, _)| *end == mapping.range.start && mapping.is_anonymous());
        let part = match zeros {
            Some((_, part)) if mapping.has(b'w') && are_zeros(mapping, below, around) => part,
            _ => part_of(mapping, &mappings[..at], &executable, around),
        };
        if mapping.is_file() && mapping.has(b'w') && has_zeros(part.class) {
            before = Some((mapping.range.end, part.clone()));
        }
        parts.push(part);
    }
    parts
}

/// Files whose data adjoin a writable anonymous mapping that is larger than most variables.
pub fn in_doubt(mappings: &[Mapping]) -> impl Iterator<Item = &Path> {
    mappings.windows(2).filter_map(|pair| {
        let [file, behind] = pair else { return None };
        let adjoins = file.is_file() && file.has(b'w') && file.range.end == behind.range.start;
        let is_large = behind.is_anonymous() && behind.has(b'w') && size(behind) > SURELY_ZEROS;
        (adjoins && is_large).then_some(file.path.as_path())
    })
}

fn size(mapping: &Mapping) -> u64 {
    mapping.range.end - mapping.range.start
}

fn are_zeros(mapping: &Mapping, file: Option<&Mapping>, around: &Surroundings) -> bool {
    let own = file.and_then(|file| around.zero_pages.get(&file.path));
    size(mapping) <= SURELY_ZEROS || own.is_none_or(|own| *own >= size(mapping).div_ceil(2))
}

fn has_zeros(class: Class) -> bool {
    matches!(class, Class::ProgramData | Class::Library | Class::Recorder)
}

/// The program among the mappings of a process that the x32 runtime started: executable below 4 GiB, and
/// neither a library nor the loader.
pub fn x32_program(mappings: &[Mapping]) -> Option<PathBuf> {
    let is_program = |mapping: &&Mapping| {
        let name = mapping.path.file_name().unwrap_or_default().to_string_lossy();
        mapping.is_file() && mapping.has(b'x') && mapping.range.start < FOUR_GIB && !is_library(&name)
    };
    mappings.iter().find(is_program).map(|mapping| mapping.path.clone())
}

/// The dynamic linker has a different file name in each ABI, and is the same part in all.
const LOADER: &str = "ld.so";

fn is_loader(name: &str) -> bool {
    name == LOADER || name.starts_with("ld-linux") || name.starts_with("ld-musl") || name.starts_with("ld-2.")
}

fn is_library(name: &str) -> bool {
    name.contains(".so.") || name.ends_with(".so")
}

fn part_of(
    mapping: &Mapping,
    lower: &[Mapping],
    executable: &BTreeSet<(u64, u64)>,
    around: &Surroundings,
) -> Part {
    let part = |class| Part { class, name: String::new() };
    let path = mapping.path.as_os_str().as_bytes();
    if around.recorder.as_ref().is_some_and(|prefix| path.starts_with(prefix.as_os_str().as_bytes())) {
        return part(Class::Recorder);
    }
    if is_vdso(mapping) || named(&mapping.path, "[vvar") || named(&mapping.path, "[vsyscall") {
        return part(Class::Other);
    }
    if around.runtime.as_ref().is_some_and(|file| mapping.path == *file || mapping.range.start >= FOUR_GIB) {
        return part(Class::Runtime);
    }
    match path {
        b"[heap]" => return part(Class::Heap),
        b"[stack]" => return part(Class::Stack),
        _ if named(&mapping.path, "[stack:") => return part(Class::Stack),
        _ => {}
    }
    if mapping.is_anonymous() {
        return part(if is_stack(mapping, lower, around) { Class::Stack } else { Class::Mmapped });
    }
    if !mapping.is_file() {
        return part(Class::Other);
    }
    if is_shared_memory(mapping) {
        return part(Class::Shared);
    }
    if around.program.as_ref() == Some(&mapping.path) {
        let changed = mapping.has(b'w') || mapping.amounts.anonymous > 0;
        let name = if mapping.has(b'x') { Part::CODE } else { Part::CONSTANTS };
        return match changed {
            true => part(Class::ProgramData),
            false => Part { class: Class::ProgramText, name: name.to_owned() },
        };
    }
    let name = mapping.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if executable.contains(&mapping.file) || is_library(&name) {
        return Part { class: Class::Library, name: if is_loader(&name) { LOADER.to_owned() } else { name } };
    }
    part(Class::File)
}

/// Whether this is a thread's stack; `lower` are the mappings below it.
fn is_stack(mapping: &Mapping, lower: &[Mapping], around: &Surroundings) -> bool {
    if around.stack_pointers.iter().any(|pointer| mapping.range.contains(pointer))
        || named(&mapping.path, "[anon: glibc: pthread stack")
    {
        return true;
    }
    let Some((guard, lower)) = lower.split_last() else { return false };
    let is_guard = guard.range.end == mapping.range.start
        && guard.rights == *b"---p"
        && guard.is_anonymous()
        && size(guard) <= MOST_GUARD
        && !is_unused_end_of_arena(guard, lower.last());
    around.threads && mapping.rights == *b"rw-p" && is_guard
}

/// An arena with its unused end fills multiples of [`ARENA`].
fn is_unused_end_of_arena(guard: &Mapping, below: Option<&Mapping>) -> bool {
    let is_arena = |below: &Mapping| {
        below.range.end == guard.range.start
            && below.rights == *b"rw-p"
            && below.range.start.is_multiple_of(ARENA)
    };
    guard.range.end.is_multiple_of(ARENA) && below.is_some_and(is_arena)
}

/// Files of tmpfs that hold shared memory: System V, POSIX and anonymous (mm/shmem.c, ipc/shm.c).
fn is_shared_memory(mapping: &Mapping) -> bool {
    ["/dev/shm/", "/SYSV", "/dev/zero", "/memfd:", "[anon_shmem:"]
        .iter()
        .any(|beginning| named(&mapping.path, beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
55c33529b000-55c33529d000 r--p 00000000 fe:00 247026                     /usr/bin/a program\n\
Size:                  8 kB\nRss:                   8 kB\nPss:                   2 kB\nShared_Clean:          4 kB\n\
Private_Clean:         4 kB\nVmFlags: rd mr mw me \n\
55c33529d000-55c3352a2000 rw-p 00002000 fe:00 247026                     /usr/bin/a program\n\
Rss:                  20 kB\nAnonymous:            16 kB\nSwap:      4 kB\nSwapPss:  2 kB\nPrivate_Dirty: 20 kB\n\
55c3352a2000-55c3352a3000 rw-p 00000000 00:00 0 \n\
Rss:                   4 kB\nAnonHugePages:  2048 kB\n\
55c3352b2000-55c3352b3000 rw-p 00000000 00:00 0                          [heap]\n\
Rss:                   4 kB\nPs";

    #[test]
    fn mappings_are_read_with_their_amounts_and_a_text_may_be_truncated() {
        let mappings = read(TEXT);
        assert_eq!(mappings.len(), 4);
        assert_eq!(mappings[0].path, Path::new("/usr/bin/a program"));
        assert_eq!((mappings[0].amounts.resident, mappings[0].amounts.pss), (8192, 2048));
        assert_eq!((mappings[0].private, mappings[0].amounts.virtual_bytes), (4096, 8192));
        assert_eq!((mappings[1].amounts.anonymous, mappings[1].swap_share), (16384, 2048));
        assert_eq!((mappings[2].huge, mappings[3].amounts.resident), (2 << 20, 4096));
        for end in 0..TEXT.len() {
            let _ = read(&TEXT[..end]);
        }
        assert_eq!(read(b"\xff\xfe 1-2 - -\n12-zz rw-p\nRss: 18446744073709551615 kB"), []);
    }

    fn mapping(from: u64, to: u64, rights: &[u8; 4], inode: u64, path: &str) -> Mapping {
        Mapping {
            range: from..to,
            rights: *rights,
            file: (1, inode),
            path: path.into(),
            ..Mapping::default()
        }
    }

    fn classes(mappings: &[Mapping], around: &Surroundings) -> Vec<Class> {
        classify(mappings, around).into_iter().map(|part| part.class).collect()
    }

    #[test]
    fn zeros_after_a_files_data_are_its_own_and_other_anonymous_memory_is_not() {
        let mappings = [
            mapping(0x1000, 0x2000, b"r-xp", 7, "/a/prog"),
            mapping(0x2000, 0x3000, b"rw-p", 7, "/a/prog"),
            mapping(0x3000, 0x4000, b"rw-p", 0, ""),
            mapping(0x4000, 0x9000, b"rw-p", 0, "[heap]"),
            mapping(0x10000, 0x11000, b"r-xp", 8, "/lib/libc.so.6"),
            mapping(0x11000, 0x12000, b"rw-p", 8, "/lib/libc.so.6"),
            mapping(0x12000, 0x13000, b"rw-p", 0, ""),
            mapping(0x20000, 0x21000, b"rw-p", 0, ""),
            mapping(0x30000, 0x31000, b"r--p", 9, "/usr/lib/locale/locale-archive"),
            mapping(0x40000, 0x41000, b"rw-s", 10, "/dev/zero (deleted)"),
            mapping(0x50000, 0x51000, b"rw-p", 0, "[stack]"),
            mapping(0x60000, 0x61000, b"r-xp", 0, "[vdso]"),
        ];
        use Class::*;
        let around = Surroundings { program: Some("/a/prog".into()), ..Surroundings::default() };
        assert_eq!(
            classes(&mappings, &around),
            [
                ProgramText,
                ProgramData,
                ProgramData,
                Heap,
                Library,
                Library,
                Library,
                Mmapped,
                File,
                Shared,
                Stack,
                Other
            ]
        );
        assert_eq!(classify(&mappings, &around)[6].name, "libc.so.6");
    }

    #[test]
    fn read_only_pages_of_the_program_are_code_where_they_are_executable() {
        let mut mappings = [
            mapping(0x1000, 0x2000, b"r--p", 7, "/a/prog"),
            mapping(0x2000, 0x3000, b"r-xp", 7, "/a/prog"),
            mapping(0x3000, 0x4000, b"r--p", 7, "/a/prog"),
            mapping(0x4000, 0x5000, b"r--p", 7, "/a/prog"),
        ];
        // Relocated, and then protected.
        mappings[3].amounts.anonymous = 4096;
        let around = Surroundings { program: Some("/a/prog".into()), ..Surroundings::default() };
        let parts = classify(&mappings, &around);
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, [Part::CONSTANTS, Part::CODE, Part::CONSTANTS, ""]);
        assert_eq!(parts[3].class, Class::ProgramData);
    }

    #[test]
    fn memory_mapped_behind_a_files_zeros_is_the_programs() {
        const KIB: u64 = 1 << 10;
        let behind = |size: u64| {
            [
                mapping(0x1_0000, 0x1_1000, b"r-xp", 8, "/lib/libpython3.so.1"),
                mapping(0x1_1000, 0x1_2000, b"rw-p", 8, "/lib/libpython3.so.1"),
                mapping(0x1_2000, 0x1_2000 + size, b"rw-p", 0, ""),
            ]
        };
        let class = |size: u64, zeros: Option<u64>| {
            let zeros = zeros.map(|bytes| (PathBuf::from("/lib/libpython3.so.1"), bytes));
            let around = Surroundings { zero_pages: zeros.into_iter().collect(), ..Surroundings::default() };
            classes(&behind(size), &around)[2]
        };
        let arenas = behind(1024 * KIB);
        assert_eq!(in_doubt(&arenas).collect::<Vec<_>>(), [Path::new("/lib/libpython3.so.1")]);
        assert_eq!(in_doubt(&behind(128 * KIB)).count(), 0);
        assert_eq!(class(1024 * KIB, Some(72 * KIB)), Class::Mmapped);
        assert_eq!(class(1024 * KIB, Some(0)), Class::Mmapped);
        assert_eq!(class(1024 * KIB, Some(1024 * KIB)), Class::Library);
        // Merged with something smaller.
        assert_eq!(class(1024 * KIB, Some(700 * KIB)), Class::Library);
        // The file is gone: adjoining memory is most likely its own.
        assert_eq!(class(1024 * KIB, None), Class::Library);
    }

    #[test]
    fn resident_ranges_are_distributed_among_the_mappings() {
        let mappings = [
            mapping(10, 20, b"rw-p", 0, ""),
            mapping(20, 30, b"rw-p", 0, ""),
            mapping(50, 60, b"rw-p", 0, ""),
        ];
        assert_eq!(within(&mappings, &[12..25, 28..29, 40..55, 56..57]), [8, 6, 6]);
        assert_eq!(within(&mappings, &[]), [0, 0, 0]);
    }

    #[test]
    fn a_pointer_or_a_guard_identifies_a_threads_stack_and_an_arena_is_none() {
        let mappings = [
            mapping(0x7000_0000, 0x7000_1000, b"---p", 0, ""),
            mapping(0x7000_1000, 0x7080_1000, b"rw-p", 0, ""),
            mapping(0x7800_0000, 0x7800_2000, b"rw-p", 0, ""),
            // An arena with an unused end of a page, and the mapping after it.
            mapping(0x7ff0_0000, 0x7fff_f000, b"rw-p", 0, ""),
            mapping(0x7fff_f000, 0x8000_0000, b"---p", 0, ""),
            mapping(0x8000_0000, 0x8000_2000, b"rw-p", 0, ""),
            // A stack that begins at such an address by chance.
            mapping(0x8fff_f000, 0x9000_0000, b"---p", 0, ""),
            mapping(0x9000_0000, 0x9080_0000, b"rw-p", 0, ""),
        ];
        use Class::*;
        let mut around = Surroundings { threads: true, ..Surroundings::default() };
        assert_eq!(
            classes(&mappings, &around),
            [Mmapped, Stack, Mmapped, Mmapped, Mmapped, Mmapped, Mmapped, Stack]
        );
        around.stack_pointers.push(0x7800_1ff0);
        assert_eq!(
            classes(&mappings, &around),
            [Mmapped, Stack, Stack, Mmapped, Mmapped, Mmapped, Mmapped, Stack]
        );
        assert_eq!(classes(&mappings, &Surroundings::default())[1], Mmapped);
    }

    #[test]
    fn above_four_gib_an_x32_program_has_nothing_and_its_runtime_everything() {
        let mappings = [
            mapping(0x40_0000, 0x40_1000, b"r-xp", 7, "/a/prog"),
            mapping(0xf000_0000, 0xf000_1000, b"rw-p", 0, "[stack]"),
            mapping(0x7f00_0000_0000, 0x7f00_0000_1000, b"r-xp", 9, "/cache/x32run"),
            mapping(0x7f00_0000_1000, 0x7f00_0000_2000, b"rw-p", 0, ""),
            mapping(0x7fff_0000_0000, 0x7fff_0000_1000, b"r-xp", 0, "[vdso]"),
        ];
        use Class::*;
        let around = Surroundings {
            program: x32_program(&mappings),
            runtime: Some("/cache/x32run".into()),
            ..Surroundings::default()
        };
        assert_eq!(classes(&mappings, &around), [ProgramText, Stack, Runtime, Runtime, Other]);
    }

    #[test]
    fn the_recorders_mappings_are_in_its_class() {
        let mappings = [mapping(0x1000, 0x2000, b"r-xp", 7, "/scratch/heap/recorder.so")];
        let around = Surroundings { recorder: Some("/scratch/heap/".into()), ..Surroundings::default() };
        assert_eq!(classes(&mappings, &around), [Class::Recorder]);
    }
}
