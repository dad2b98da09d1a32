//! From the kernel's reports to page faults by code address. Pure; the records are those of `perf_event_open(2)`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::passes::functions::recording::{FaultSite, KERNEL};

/// Record types (`linux/perf_event.h`, `enum perf_event_type`).
const MMAP: u32 = 1;
const LOST: u32 = 2;
const COMM: u32 = 3;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
/// `PERF_RECORD_MISC_COMM_EXEC`: the name changed because another program was executed.
const EXECUTED: u16 = 1 << 13;
/// What is behind every record but samples: process and thread, time (`sample_id_all`).
const TRAILER: usize = 16;

/// One report of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Nanoseconds of the kernel's clock.
    time: u64,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Fault { process: u32, address: u64 },
    Mapped { process: u32, start: u64, end: u64, offset: u64, path: Arc<str> },
    Executed { process: u32 },
    Forked { process: u32, parent: u32 },
}

/// A stretch of a file in a process's memory.
#[derive(Debug, Clone)]
struct Mapping {
    start: u64,
    end: u64,
    /// Where the stretch begins in the file.
    offset: u64,
    path: Arc<str>,
}

/// All reports of a run.
#[derive(Debug, Default)]
pub struct Reports {
    all: Vec<Report>,
    /// Reports that the kernel had no room for, or for which there was no memory here.
    pub lost: u64,
}

/// More reports than this are counted, and not kept.
const MOST: usize = 8 << 20;

impl Reports {
    /// Takes a record's type, flags and bytes behind the header. Samples have address, process and time; a record of another kind is
    /// passed over.
    pub fn take(&mut self, kind: u32, misc: u16, bytes: &[u8]) {
        if self.all.len() >= MOST {
            self.lost += u64::from(kind == SAMPLE);
            return;
        }
        if kind == LOST {
            self.lost += word(bytes, 8).unwrap_or(0);
        } else if let Some(report) = report(kind, misc, bytes) {
            self.all.push(report);
        }
    }

    /// The page faults by code address, the most frequent first.
    pub fn sites(mut self) -> Vec<FaultSite> {
        self.all.sort_by_key(|report| report.time);
        let mut mapped: BTreeMap<u32, Vec<Mapping>> = BTreeMap::new();
        let mut faults: BTreeMap<(Arc<str>, u64), u64> = BTreeMap::new();
        let (kernel, nowhere): (Arc<str>, Arc<str>) = (KERNEL.into(), "".into());
        for report in self.all {
            match report.what {
                What::Executed { process } => drop(mapped.remove(&process)),
                What::Forked { process, parent } if process != parent => {
                    let own = mapped.get(&parent).cloned().unwrap_or_default();
                    mapped.insert(process, own);
                }
                What::Forked { .. } => {}
                What::Mapped { process, start, end, offset, path } => {
                    mapped.entry(process).or_default().push(Mapping { start, end, offset, path });
                }
                // The upper half of the addresses is the kernel's.
                What::Fault { address, .. } if address >> 63 == 1 => {
                    *faults.entry((kernel.clone(), 0)).or_default() += 1;
                }
                What::Fault { process, address } => {
                    let maps = mapped.get(&process).map_or(&[][..], Vec::as_slice);
                    // What is mapped later is mapped over what was there.
                    let found = maps.iter().rev().find(|one| (one.start..one.end).contains(&address));
                    let site = match found {
                        Some(one) if one.path.starts_with('/') => {
                            (one.path.clone(), one.offset.wrapping_add(address - one.start))
                        }
                        _ => (nowhere.clone(), 0),
                    };
                    *faults.entry(site).or_default() += 1;
                }
            }
        }
        let site = |((path, offset), faults): ((Arc<str>, u64), u64)| FaultSite {
            path: path.as_ref().to_owned(),
            offset,
            faults,
        };
        let mut sites: Vec<FaultSite> = faults.into_iter().map(site).collect();
        sites.sort_by(|a, b| b.faults.cmp(&a.faults).then_with(|| a.cmp(b)));
        sites
    }
}

fn report(kind: u32, misc: u16, bytes: &[u8]) -> Option<Report> {
    let trailer = || bytes.len().checked_sub(TRAILER);
    let time = || word(bytes, trailer()? + 8);
    let (time, what) = match kind {
        SAMPLE => (word(bytes, 16)?, What::Fault { address: word(bytes, 0)?, process: half(bytes, 8)? }),
        MMAP => {
            let name = bytes.get(32..trailer()?)?;
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let start = word(bytes, 8)?;
            let what = What::Mapped {
                process: half(bytes, 0)?,
                start,
                end: start.checked_add(word(bytes, 16)?)?,
                offset: word(bytes, 24)?,
                path: String::from_utf8_lossy(name).into(),
            };
            (time()?, what)
        }
        COMM if misc & EXECUTED != 0 => (time()?, What::Executed { process: half(bytes, 0)? }),
        FORK => (word(bytes, 16)?, What::Forked { process: half(bytes, 0)?, parent: half(bytes, 4)? }),
        _ => return None,
    };
    Some(Report { time, what })
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(halves: &[u32], words: &[u64], text: &str, time: Option<u64>) -> Vec<u8> {
        let mut bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_ne_bytes()).collect();
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        if let Some(time) = time {
            bytes.extend([[0; 8], time.to_ne_bytes()].concat());
        }
        bytes
    }

    fn fault(reports: &mut Reports, process: u32, address: u64, time: u64) {
        let bytes = [
            address.to_ne_bytes(),
            joined(&[process, process], &[], "", None).try_into().unwrap(),
            time.to_ne_bytes(),
        ];
        reports.take(SAMPLE, 0, &bytes.concat());
    }

    fn mapped(reports: &mut Reports, process: u32, start: u64, offset: u64, path: &str, time: u64) {
        let text = format!("{path}\0");
        reports.take(MMAP, 0, &joined(&[process, process], &[start, 0x1000, offset], &text, Some(time)));
    }

    fn site(path: &str, offset: u64, faults: u64) -> FaultSite {
        FaultSite { path: path.to_owned(), offset, faults }
    }

    #[test]
    fn faults_belong_to_the_file_that_was_mapped_at_that_time_in_that_process() {
        let mut reports = Reports::default();
        fault(&mut reports, 1, 0x1010, 30);
        fault(&mut reports, 1, 0x1010, 31);
        mapped(&mut reports, 1, 0x1000, 0x4000, "/a", 10);
        mapped(&mut reports, 1, 0x1000, 0x6000, "/b", 40);
        fault(&mut reports, 1, 0x1010, 50);
        // A forked process has its parent's files, until it executes another program.
        reports.take(FORK, 0, &joined(&[2, 1, 2, 1], &[60], "", Some(60)));
        fault(&mut reports, 2, 0x1010, 70);
        reports.take(COMM, 0, &joined(&[2, 2], &[], "thread", Some(75)));
        fault(&mut reports, 2, 0x1010, 76);
        reports.take(COMM, EXECUTED, &joined(&[2, 2], &[], "x", Some(80)));
        fault(&mut reports, 2, 0x1010, 90);
        fault(&mut reports, 1, u64::MAX - 5, 95);
        assert_eq!(
            reports.sites(),
            [site("/b", 0x6010, 3), site("/a", 0x4010, 2), site("", 0, 1), site(KERNEL, 0, 1)]
        );
    }

    #[test]
    fn lost_and_cut_records_are_no_faults() {
        let mut reports = Reports::default();
        reports.take(LOST, 0, &joined(&[], &[7, 12], "", Some(1)));
        for length in 0..24 {
            reports.take(SAMPLE, 0, &vec![1; length]);
            reports.take(MMAP, 0, &vec![1; length]);
        }
        reports.take(99, 0, &[0; 64]);
        assert_eq!(reports.lost, 12);
        assert_eq!(reports.sites(), []);
    }
}
