//! Sets of CPUs as the kernel and hwloc spell them.

use std::collections::BTreeSet;

/// A CPU as the kernel numbers it.
pub type Cpu = u32;

// A damaged or hostile list such as `0-4000000000` must not fill the memory. Linux itself stops at 8192 (NR_CPUS,
// arch/x86/Kconfig).
const LIMIT: Cpu = 1 << 16;

/// Reads the kernel's list format, `0-3,8,10-11` (`Documentation/admin-guide/cputopology.rst`). None if it is
/// something else; an empty list is an empty set.
pub fn read_list(text: &str) -> Option<BTreeSet<Cpu>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (first.trim().parse().ok()?, last.trim().parse().ok()?),
            None => {
                let only: Cpu = part.trim().parse().ok()?;
                (only, only)
            }
        };
        if last >= LIMIT || first > last {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Reads hwloc's bitmap format: 32-bit words in hexadecimal, the highest first, `0x00000001,0x0000000f`; a word left
/// empty is zero (hwloc's `hwloc_bitmap_asprintf`). None if it is something else, or infinite (`0xf...f`).
pub fn read_bitmap(text: &str) -> Option<BTreeSet<Cpu>> {
    let mut cpus = BTreeSet::new();
    for (word_number, word) in text.trim().rsplit(',').enumerate() {
        let word_number = Cpu::try_from(word_number).ok().filter(|n| *n < LIMIT / 32)?;
        let digits = word.strip_prefix("0x").unwrap_or(word);
        let bits = if digits.is_empty() { 0 } else { u32::from_str_radix(digits, 16).ok()? };
        cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| word_number * 32 + bit));
    }
    Some(cpus)
}

/// Writes the kernel's list format.
pub fn list(cpus: &BTreeSet<Cpu>) -> String {
    let mut ranges: Vec<(Cpu, Cpu)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let words: Vec<String> = ranges
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_kernels_lists_are_read() {
        assert_eq!(read_list("0-2,8\n"), Some(BTreeSet::from([0, 1, 2, 8])));
        assert_eq!(read_list("\n"), Some(BTreeSet::new()));
        assert_eq!(read_list("3-1"), None);
        assert_eq!(read_list("0-4000000000"), None);
        assert_eq!(read_list("a"), None);
    }

    #[test]
    fn hwlocs_bitmaps_are_read_highest_word_first() {
        assert_eq!(read_bitmap("0x00000003"), Some(BTreeSet::from([0, 1])));
        assert_eq!(read_bitmap("0x00000001,0x80000000"), Some(BTreeSet::from([31, 32])));
        assert_eq!(read_bitmap("0x00000001,,0x0"), Some(BTreeSet::from([64])));
        assert_eq!(read_bitmap("0xf...f"), None);
    }

    proptest! {
        #[test]
        fn a_list_that_was_written_reads_back_the_same(cpus in proptest::collection::btree_set(0u32..300, 0..40)) {
            prop_assert_eq!(read_list(&list(&cpus)), Some(cpus));
        }

        #[test]
        fn no_text_makes_the_readers_panic(text in "\\PC{0,40}") {
            let _ = (read_list(&text), read_bitmap(&text));
        }
    }
}
