//! The machine's memory: `/proc/meminfo`, `Documentation/filesystems/proc.rst`.

use super::smaps;

/// What all processes have: anonymous memory, and huge pages of it.
pub fn anonymous() -> (Option<u64>, Option<u64>) {
    let text = text();
    (smaps::amount(&text, b"AnonPages:"), smaps::amount(&text, b"AnonHugePages:"))
}

/// What new programs can have without swapping.
pub fn available() -> Option<u64> {
    smaps::amount(&text(), b"MemAvailable:")
}

fn text() -> Vec<u8> {
    std::fs::read("/proc/meminfo").unwrap_or_default()
}
