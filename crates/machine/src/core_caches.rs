//! The caches and TLBs of one core of this machine: sizes, ways and lines.

use std::path::Path;

use crate::sysfs::{number, size, text};

/// Size in bytes, ways, and bytes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShape {
    /// All of it, in bytes.
    pub bytes: u64,
    /// Lines of a set.
    pub ways: u32,
    /// A line, in bytes.
    pub line: u32,
}

/// What one core has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreCaches {
    /// First level, instructions.
    pub l1i: CacheShape,
    /// First level, data.
    pub l1d: CacheShape,
    /// The last level.
    pub last: CacheShape,
    /// Entries and ways of the first-level TLB of instructions, for pages of 4 KiB.
    pub itlb: (u32, u32),
    /// The same for data.
    pub dtlb: (u32, u32),
}

/// Where the kernel describes the caches of a core (Documentation/ABI/testing/sysfs-devices-system-cpu).
const FOLDER: &str = "/sys/devices/system/cpu/cpu0/cache";

/// Reads the caches from sysfs and the TLBs from the processor.
///
/// # Errors
/// One of them is not known: a sentence.
pub fn read() -> Result<CoreCaches, String> {
    let (itlb, dtlb) = tlbs().ok_or("the processor does not report its TLBs for pages of 4 KiB")?;
    let [l1i, l1d, last] = caches().ok_or_else(|| format!("{FOLDER} does not have all caches"))?;
    Ok(CoreCaches { l1i, l1d, last, itlb, dtlb })
}

/// The caches of a core: first level (instructions, data), and the last level; None if one of them is not known.
pub fn caches() -> Option<[CacheShape; 3]> {
    caches_in(Path::new(FOLDER))
}

fn caches_in(folder: &Path) -> Option<[CacheShape; 3]> {
    let (mut l1i, mut l1d, mut last) = (None, None, None);
    for index in (0..16).map(|index| folder.join(format!("index{index}"))).take_while(|index| index.is_dir())
    {
        let level: u32 = number(index.join("level"))?;
        let shape = CacheShape {
            bytes: size(&text(index.join("size"))?)?,
            ways: number(index.join("ways_of_associativity"))?,
            line: number(index.join("coherency_line_size"))?,
        };
        match (level, text(index.join("type"))?.trim()) {
            (1, "Instruction") => l1i = Some(shape),
            (1, "Data") => l1d = Some(shape),
            // In the order of levels.
            _ => last = Some(shape),
        }
    }
    let all = [l1i?, l1d?, last?];
    all.iter().all(|shape| shape.ways > 0 && shape.line > 0).then_some(all)
}

#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)] // The intrinsics are safe in later versions of Rust.
fn tlbs() -> Option<((u32, u32), (u32, u32))> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    // SAFETY: every x86-64 processor has the instruction.
    let leaf = |leaf, subleaf| unsafe { __cpuid_count(leaf, subleaf) };
    // SAFETY: as above.
    let (basic, extended) = unsafe { (__cpuid(0).eax, __cpuid(0x8000_0000).eax) };
    if basic >= 0x18 {
        // Intel SDM 2A, CPUID leaf 18H: one TLB for each subleaf.
        let mut found = (None, None);
        for subleaf in 0..=leaf(0x18, 0).eax.min(64) {
            let one = leaf(0x18, subleaf);
            let (kind, level, has_4k) = (one.edx & 0x1f, one.edx >> 5 & 7, one.ebx & 1 != 0);
            let ways = one.ebx >> 16;
            let shape = Some((ways * one.ecx, ways)).filter(|shape| shape.0 > 0 && has_4k && level == 1);
            match kind {
                1 => found.1 = found.1.or(shape),
                2 => found.0 = found.0.or(shape),
                _ => {}
            }
        }
        if let (Some(code), Some(data)) = found {
            return Some((code, data));
        }
    }
    if extended >= 0x8000_0005 {
        return amd_tlbs(leaf(0x8000_0005, 0).ebx);
    }
    None
}

#[cfg(not(target_arch = "x86_64"))]
fn tlbs() -> Option<((u32, u32), (u32, u32))> {
    None
}

/// AMD64 Architecture Programmer's Manual 3, function 8000_0005h, EBX: entries and ways for instructions, then for data; 255 ways
/// stand for all.
fn amd_tlbs(ebx: u32) -> Option<((u32, u32), (u32, u32))> {
    let [code, code_ways, data, data_ways] = ebx.to_le_bytes().map(u32::from);
    let shape = |entries: u32, ways: u32| {
        let ways = if ways == 0xff { entries } else { ways };
        Some((entries, ways)).filter(|_| entries > 0 && ways > 0 && entries.is_multiple_of(ways))
    };
    Some((shape(code, code_ways)?, shape(data, data_ways)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_read_by_level_and_type() {
        let root = tempfile::tempdir().unwrap();
        let write = |index: u32, level: &str, kind: &str, size: &str, ways: &str| {
            let folder = root.path().join(format!("index{index}"));
            std::fs::create_dir(&folder).unwrap();
            let files = [
                ("level", level),
                ("type", kind),
                ("size", size),
                ("ways_of_associativity", ways),
                ("coherency_line_size", "64"),
            ];
            for (name, value) in files {
                std::fs::write(folder.join(name), format!("{value}\n")).unwrap();
            }
        };
        write(0, "1", "Data", "48K", "12");
        write(1, "1", "Instruction", "32K", "8");
        assert_eq!(caches_in(root.path()), None, "no last level");
        write(2, "2", "Unified", "2048K", "16");
        write(3, "3", "Unified", "30720K", "15");
        let shape = |bytes, ways| CacheShape { bytes, ways, line: 64 };
        let expected = [shape(32 << 10, 8), shape(48 << 10, 12), shape(30720 << 10, 15)];
        assert_eq!(caches_in(root.path()), Some(expected));
    }

    #[test]
    fn amds_tlbs_may_have_all_ways() {
        assert_eq!(amd_tlbs(0xff40_ff40), Some(((64, 64), (64, 64))));
        assert_eq!(amd_tlbs(0x0420_0220), Some(((32, 2), (32, 4))));
        assert_eq!(amd_tlbs(0), None);
    }
}
