//! A process as `/proc` shows it: statm samples, listings of its mappings, pagemap scans and smaps snapshots.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use widthwise_experiment::memory::{Amounts, Part, Totals};
use widthwise_machine::elf;

use crate::descendants::threads;
use crate::pagemap::Pagemap;
use crate::smaps::{self, Mapping, Surroundings};
use crate::statm::{size, Size};

/// With more threads than this, no stack pointers are read.
const MOST_THREADS: usize = 256;

/// Mappings of files are listed again after the address space has changed by this much, and after this many
/// nanoseconds.
const LISTED_CHANGE: u64 = 1 << 20;
const LISTED_AGAIN: u64 = 20_000_000;

/// The end of program addresses: four levels of page tables, less a page
/// (Documentation/arch/x86/x86_64/mm.rst). Mappings above are the kernel's own.
pub const END_OF_ADDRESSES: u64 = (1 << 47) - 4096;

/// A process of the tree with memory of its own.
#[derive(Debug)]
pub struct ProcessHandle {
    /// Its number.
    pub pid: u32,
    /// Its index in the series.
    pub index: usize,
    statm: File,
    statm_sample: [u8; 128],
    glanced: usize,
    /// Resident bytes of its last statm sample.
    pub resident: u64,
    /// Stack pointers of its threads, each read when the thread was first found waiting.
    stacks: BTreeMap<u32, u64>,
    threads: bool,
    /// When its mappings were last listed, and the size of its address space then.
    listed: Option<(u64, u64)>,
    /// The program that it executed at the last snapshot.
    program: PathBuf,
}

/// The texts of `/proc` on one process. Stored from reading to reading, so that no buffer has to be allocated
/// each time.
#[derive(Debug, Default)]
pub struct Texts {
    program: PathBuf,
    status: Text,
    smaps: Text,
    maps: Text,
    /// The size of each file's zero-initialised variables, for all processes that map it.
    zero_pages: BTreeMap<PathBuf, Option<u64>>,
}

/// A pagemap scan of one process.
#[derive(Debug)]
pub struct PagemapScan {
    mappings: Vec<Mapping>,
    /// What is resident, ascending.
    resident: Vec<Range<u64>>,
    /// Of the program file's read-only mappings: the changed pages, ascending.
    changed: Vec<Range<u64>>,
}

/// An smaps snapshot of one process.
#[derive(Debug)]
pub struct LastReading {
    /// Its mappings and what they hold.
    pub mappings: Vec<Mapping>,
    /// The context for classifying the mappings.
    pub around: Surroundings,
    /// Its figures.
    pub totals: Totals,
    /// Its command name.
    pub name: String,
}

impl ProcessHandle {
    /// Opens a process; absent if it has ended.
    pub fn open(pid: u32, index: usize) -> io::Result<ProcessHandle> {
        let statm = File::open(format!("/proc/{pid}/statm"))?;
        Ok(ProcessHandle {
            pid,
            index,
            statm,
            statm_sample: [0; 128],
            glanced: 0,
            resident: 0,
            stacks: BTreeMap::new(),
            threads: false,
            listed: None,
            program: PathBuf::new(),
        })
    }

    /// Takes a statm sample; [`ProcessHandle::size`] interprets it.
    pub fn statm_sample(&mut self) {
        self.glanced = self.statm.read_at(&mut self.statm_sample, 0).unwrap_or(0);
    }

    /// The last statm sample; none if the process has ended or no longer has memory.
    pub fn size(&mut self) -> Option<Size> {
        let size = size(self.statm_sample.get(..self.glanced)?)?;
        self.resident = size.resident;
        Some(size)
    }

    /// Whether its file mappings should be listed: the address space has changed since the last listing.
    pub fn is_to_be_listed(&mut self, at_ns: u64) -> bool {
        let Some(size) = self.size() else { return false };
        self.listed.is_none_or(|(listed_ns, virtual_bytes)| {
            size.virtual_bytes.abs_diff(virtual_bytes) > LISTED_CHANGE && at_ns >= listed_ns + LISTED_AGAIN
        })
    }

    /// Reads its mappings; [`Texts::mapped_files`] interprets them.
    ///
    /// # Errors
    /// The system's: the process has ended, or may not be read.
    pub fn list(&mut self, texts: &mut Texts, at_ns: u64) -> io::Result<()> {
        self.listed = Some((at_ns, self.size().map_or(0, |size| size.virtual_bytes)));
        texts.maps.take(&format!("/proc/{}/maps", self.pid))
    }

    /// Reads the texts of an smaps snapshot; [`ProcessHandle::portrait`] interprets them. Pieces of one text
    /// may be from different moments.
    ///
    /// # Errors
    /// The system's: the process has ended, or may not be read.
    pub fn read(&mut self, texts: &mut Texts) -> io::Result<()> {
        let folder = format!("/proc/{}", self.pid);
        self.find_program(texts, &folder)?;
        if self.threads {
            self.find_stacks(&folder);
        }
        texts.status.take(&format!("{folder}/status"))?;
        texts.smaps.take(&format!("{folder}/smaps"))
    }

    /// Reads the texts and ranges of a pagemap scan; [`ProcessHandle::pagemap_scan`] interprets them.
    ///
    /// # Errors
    /// The system's: the process has ended or may not be read, or the kernel cannot do it.
    pub fn scan(
        &mut self,
        texts: &mut Texts,
        pagemap: &mut Pagemap,
        runtime: Option<&PathBuf>,
    ) -> io::Result<Option<PagemapScan>> {
        let folder = format!("/proc/{}", self.pid);
        self.find_program(texts, &folder)?;
        // A guard identifies the stack of a thread that began since the last snapshot. (proc_task_getattr,
        // fs/proc/base.c: a folder for each thread.)
        self.threads |= std::fs::metadata(format!("{folder}/task"))?.nlink() > 3;
        texts.maps.take(&format!("{folder}/maps"))?;
        let mappings = smaps::read(texts.maps.bytes());
        let resident = pagemap.resident(self.pid, END_OF_ADDRESSES)?;
        let program = texts.program_among(&mappings, runtime);
        // The size is that of the same moment.
        self.statm_sample();
        let mut changed = Vec::new();
        for range in smaps::read_only(&mappings, program.as_deref()) {
            let Some(found) = pagemap.anonymous(self.pid, range)? else { return Ok(None) };
            changed.extend(found);
        }
        Ok(resident.map(|resident| PagemapScan { mappings, resident, changed }))
    }

    /// Interprets a pagemap scan: the mappings' resident memory, and their parts. None where this disagrees with the kernel's own sum.
    pub fn pagemap_scan(
        &mut self,
        texts: &mut Texts,
        scan: PagemapScan,
        runtime: Option<&PathBuf>,
        recorder: Option<&PathBuf>,
    ) -> Option<(Size, Vec<(Part, Amounts)>)> {
        let size = self.size()?;
        let PagemapScan { mut mappings, resident, changed } = scan;
        let resident = smaps::within(&mappings, &resident);
        let changed = smaps::within(&mappings, &changed);
        for (mapping, anonymous) in mappings.iter_mut().zip(changed) {
            mapping.amounts.anonymous = anonymous;
        }
        let mut around = self.surroundings(texts, &mappings, runtime);
        around.recorder = recorder.cloned();
        let parts = smaps::classify(&mappings, &around);
        let mut found = Vec::with_capacity(mappings.len());
        let mut sum = 0;
        for ((mapping, part), resident) in mappings.iter().zip(parts).zip(resident) {
            let resident = if smaps::is_uncounted(mapping) { 0 } else { resident };
            let virtual_bytes = mapping.range.end - mapping.range.start;
            sum += resident;
            found.push((part, Amounts { resident, virtual_bytes, ..Amounts::default() }));
        }
        let agrees = sum.abs_diff(size.resident) <= size.resident / 100 + (256 << 10);
        agrees.then_some((size, found))
    }

    fn surroundings(
        &self,
        texts: &mut Texts,
        mappings: &[Mapping],
        runtime: Option<&PathBuf>,
    ) -> Surroundings {
        let is_runtime = runtime.is_some_and(|file| *file == texts.program);
        Surroundings {
            program: texts.program_among(mappings, runtime),
            runtime: is_runtime.then(|| texts.program.clone()),
            stack_pointers: self.stacks.values().copied().collect(),
            threads: self.threads,
            recorder: None,
            zero_pages: texts.zero_pages(mappings),
        }
    }

    /// Reads this process once, so that the buffers exist and the code is in the caches.
    pub fn rehearse(texts: &mut Texts) {
        for text in [&mut texts.status, &mut texts.smaps] {
            let _ = text.take("/proc/self/smaps");
        }
    }

    /// Interprets the texts of a snapshot; none for a process that no longer has memory.
    pub fn portrait(&mut self, texts: &mut Texts, runtime: Option<&PathBuf>) -> Option<LastReading> {
        let status = Status::of(texts.status.bytes());
        // Its stacks are read from the next snapshot on.
        self.threads |= status.threads > 1;
        let mappings = smaps::read(texts.smaps.bytes());
        if mappings.is_empty() {
            return None;
        }
        let around = self.surroundings(texts, &mappings, runtime);
        let amounts = mappings.iter().fold(Amounts::default(), |sum, mapping| sum.plus(mapping.amounts));
        let totals = Totals {
            amounts,
            file: amounts.resident.saturating_sub(amounts.anonymous).saturating_sub(status.shared),
            shared: status.shared,
            page_tables: status.page_tables,
            huge: mappings.iter().map(|mapping| mapping.huge).sum(),
        };
        self.resident = amounts.resident;
        Some(LastReading { mappings, around, totals, name: status.name })
    }

    /// Finds the program that it executes. Another program makes everything known of its memory invalid.
    fn find_program(&mut self, texts: &mut Texts, folder: &str) -> io::Result<()> {
        texts.program = std::fs::read_link(format!("{folder}/exe"))?;
        if self.program != texts.program {
            self.program.clone_from(&texts.program);
            self.stacks.clear();
            self.threads = false;
        }
        Ok(())
    }

    /// Reads where the stacks of its threads are. The kernel reports it for a waiting thread, and not for a
    /// running one (`/proc/PID/task/TID/syscall`; the pointer in `stat` is 0 except for a process that is
    /// dumping core).
    fn find_stacks(&mut self, folder: &str) {
        let threads = threads(self.pid);
        self.stacks.retain(|thread, _| threads.contains(thread));
        for thread in threads.into_iter().take(MOST_THREADS) {
            if self.stacks.contains_key(&thread) || thread == self.pid {
                continue;
            }
            let path = format!("{folder}/task/{thread}/syscall");
            let Ok(text) = std::fs::read_to_string(path) else { continue };
            if let Some(pointer) = stack_pointer(&text) {
                self.stacks.insert(thread, pointer);
            }
        }
    }
}

impl Texts {
    /// The file ranges that a process has mapped: device and inode, start and end.
    pub fn mapped_files(&self) -> Vec<((u64, u64), Range<u64>)> {
        let mappings = smaps::read(self.maps.bytes());
        let of_files = mappings.into_iter().filter(|mapping| mapping.file.1 != 0);
        of_files
            .map(|mapping| {
                let length = mapping.range.end - mapping.range.start;
                (mapping.file, mapping.offset..mapping.offset.saturating_add(length))
            })
            .collect()
    }

    /// The program's file: that of the x32 program where the runtime runs it.
    fn program_among(&self, mappings: &[Mapping], runtime: Option<&PathBuf>) -> Option<PathBuf> {
        match runtime {
            Some(file) if *file == self.program => smaps::x32_program(mappings),
            _ => Some(self.program.clone()),
        }
    }

    /// The zero-initialised variables of the files that need it, without unreadable files.
    fn zero_pages(&mut self, mappings: &[Mapping]) -> BTreeMap<PathBuf, u64> {
        let mut found = BTreeMap::new();
        for path in smaps::in_doubt(mappings) {
            let read = || elf::read(path).ok().map(|facts| facts.zero_pages);
            if let Some(bytes) = *self.zero_pages.entry(path.to_owned()).or_insert_with(read) {
                found.insert(path.to_owned(), bytes);
            }
        }
        found
    }
}

/// `0 0x3 0x7ffd… 0x1 0 0 0 0x7ffd9c 0x7f21…`: number, six arguments, stack pointer, program counter; or `running`.
fn stack_pointer(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pointer = words.len().checked_sub(2).filter(|_| words.len() >= 3)?;
    u64::from_str_radix(words[pointer].strip_prefix("0x")?, 16).ok().filter(|pointer| *pointer != 0)
}

#[derive(Debug, Default, PartialEq)]
struct Status {
    name: String,
    shared: u64,
    page_tables: u64,
    threads: u64,
}

impl Status {
    fn of(text: &[u8]) -> Status {
        let mut status = Status::default();
        for line in text.split(|byte| *byte == b'\n') {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (key, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            match key {
                b"Name" => status.name = String::from_utf8_lossy(value).into_owned(),
                b"RssShmem" => status.shared = smaps::kibibytes(value).unwrap_or(0),
                b"VmPTE" => status.page_tables = smaps::kibibytes(value).unwrap_or(0),
                b"Threads" => {
                    status.threads =
                        std::str::from_utf8(value).ok().and_then(|n| n.parse().ok()).unwrap_or(0);
                }
                _ => {}
            }
        }
        status
    }
}

/// A text that is read repeatedly: the buffer stays, and bytes after the text's end are old.
#[derive(Debug, Default)]
struct Text {
    room: Vec<u8>,
    length: usize,
}

impl Text {
    fn bytes(&self) -> &[u8] {
        &self.room[..self.length]
    }

    /// Reads a whole file of `/proc`, whose reported size is 0.
    fn take(&mut self, path: &str) -> io::Result<()> {
        const PIECE: usize = 64 << 10;
        let mut file = File::open(path)?;
        self.length = 0;
        loop {
            if self.room.len() < self.length + PIECE {
                let mut room = vec![0; 2 * self.room.len() + PIECE];
                room[..self.length].copy_from_slice(self.bytes());
                self.room = room;
            }
            match file.read(&mut self.room[self.length..]) {
                Ok(0) => return Ok(()),
                Ok(read) => self.length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_runs_has_no_stack_pointer() {
        assert_eq!(stack_pointer("202 0x1 0x2 0x3 0x4 0x5 0x6 0x7f00aa 0x401000\n"), Some(0x7f_00aa));
        assert_eq!(stack_pointer("-1 0x7f00aa 0x401000\n"), Some(0x7f_00aa));
        assert_eq!(stack_pointer("running\n"), None);
        assert_eq!(stack_pointer(""), None);
    }

    #[test]
    fn status_has_fields_that_smaps_does_not() {
        let text = b"Name:\ta b\nVmPTE:\t      44 kB\nRssShmem:\t 8 kB\nThreads:\t3\n";
        let status = Status { name: "a b".into(), shared: 8192, page_tables: 45056, threads: 3 };
        assert_eq!(Status::of(text), status);
    }
}
