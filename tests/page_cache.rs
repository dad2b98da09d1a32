//! Programs are kept in the page cache in the same way, however their files were written, and read before they start.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::laboratory::outcomes::skipped;
use crate::laboratory::Laboratory;

const PAGE: usize = 4096;

/// How many pages of a file are part of a larger folio; `None` where the kernel does not tell.
fn pages_in_folios(path: &Path) -> Option<usize> {
    // include/uapi/linux/kernel-page-flags.h
    const COMPOUND: u64 = 1 << 15 | 1 << 16;
    let (pagemap, flags) = (File::open("/proc/self/pagemap").ok()?, File::open("/proc/kpageflags").ok()?);
    let number = |file: &File, at: u64| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at * 8).ok().map(|()| u64::from_le_bytes(bytes))
    };
    let file = File::open(path).unwrap();
    let pages = file.metadata().unwrap().len() as usize / PAGE;
    // SAFETY: a new mapping of an open file, of whole pages, read while it is mapped.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            pages * PAGE,
            libc::PROT_READ,
            libc::MAP_SHARED | libc::MAP_POPULATE,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(mapped, libc::MAP_FAILED);
    let first = mapped as u64 / PAGE as u64;
    let frames =
        (0..pages as u64).map(|page| number(&pagemap, first + page).map(|entry| entry & ((1 << 55) - 1)));
    let all: Option<Vec<u64>> =
        frames.map(|frame| number(&flags, frame.filter(|frame| *frame != 0)?)).collect();
    // SAFETY: the mapping from above.
    unsafe { libc::munmap(mapped, pages * PAGE) };
    Some(all?.into_iter().filter(|flags| flags & COMPOUND != 0).count())
}

#[test]
fn a_copied_program_is_kept_in_single_pages_like_a_linked_one() {
    let lab = Laboratory::new();
    lab.program("work.c");
    lab.gcc("-static -o linked work.c");
    // One large write, as `cp` makes.
    lab.copy(&lab.path("linked"), "copied");
    match pages_in_folios(&lab.path("copied")) {
        None => return skipped("the flags of pages cannot be read: no root, or no /proc/kpageflags"),
        Some(0) => return skipped("this kernel or file system keeps a written file in single pages anyway"),
        Some(_) => {}
    }
    let printed = lab.widthwise("compare ./linked ./copied --rounds 2 --warmup 0 -- 1");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    for program in ["linked", "copied"] {
        assert_eq!(pages_in_folios(&lab.path(program)), Some(0), "{program}");
    }
}

/// The most major faults that a run of 5 ms has, if each teardown drops its program's pages. More options may follow.
fn most_major_faults(more: &str) -> f64 {
    let lab = Laboratory::new();
    lab.program("nap.c");
    lab.gcc("-static -o nap nap.c");
    let teardown = format!("dd of={} oflag=nocache conv=notrunc count=0", lab.path("nap").display());
    let report = lab.compare_json(&format!(
        "./nap --rounds 3 --metric major_faults --teardown '{teardown}' {more} -- 1 5"
    ));
    let runs = report["runs"].as_array().unwrap();
    assert!(runs.len() >= 6 && runs.iter().all(|run| run["ending"]["ended"] == "done"), "{runs:?}");
    let faults = |run: &serde_json::Value| run["sample"]["major_faults"]["value"].as_f64().unwrap();
    runs.iter().map(faults).fold(0.0, f64::max)
}

#[test]
fn each_timed_run_finds_its_programs_file_in_memory_unless_a_setup_command_decides() {
    if most_major_faults("--setup true") == 0.0 {
        return skipped("this file system keeps a file's pages when it is asked to drop them");
    }
    assert_eq!(most_major_faults(""), 0.0, "the program waited for pages of its file");
}
