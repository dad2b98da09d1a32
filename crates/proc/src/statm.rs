//! The sizes of a process: `/proc/PID/statm`.

/// The fields of `/proc/PID/statm`, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Address space.
    pub virtual_bytes: u64,
    /// Resident.
    pub resident: u64,
    /// Of the resident: pages of files and shared memory.
    pub shared: u64,
}

/// Reads the text of `/proc/PID/statm`; none for a process without memory.
pub fn size(text: &[u8]) -> Option<Size> {
    let mut words = std::str::from_utf8(text).ok()?.split_whitespace();
    // Pages: x86 has one page size here.
    let mut next = || words.next()?.parse::<u64>().ok()?.checked_mul(4096);
    let size = Size { virtual_bytes: next()?, resident: next()?, shared: next()? };
    // A zombie has no memory.
    (size.virtual_bytes > 0).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statm_is_pages_and_a_dead_process_has_none() {
        let found = size(b"765 440 412 5 0 123 0\n").unwrap();
        assert_eq!((found.virtual_bytes, found.resident, found.shared), (765 << 12, 440 << 12, 412 << 12));
        assert_eq!(size(b"0 0 0 0 0 0 0\n"), None);
        assert_eq!(size(b""), None);
    }
}
