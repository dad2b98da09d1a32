//! Qualified names of inlined functions that debug information has no linkage name of, such as those over types of an anonymous
//! namespace in GCC's.

use std::path::Path;

use crate::debug::{self, Sections};
use crate::elf::{mapped, Elf};
use crate::function_name::without_parameters;
use crate::names::plain;

/// Those of one object file.
#[derive(Default)]
pub(super) struct Unlinked {
    /// By the number of copies that they are in: first address, the address behind, and the function; sorted.
    ranges: Vec<Vec<(u64, u64, u32)>>,
    functions: Vec<Vec<u8>>,
}

impl Unlinked {
    /// Of a file with debug information; nothing of one that cannot be read.
    pub fn read(path: &Path) -> Unlinked {
        Self::of(path).unwrap_or_default()
    }

    fn of(path: &Path) -> Option<Unlinked> {
        let bytes = mapped(path)?;
        let elf = Elf::read(&bytes).ok()?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let units = debug::read(&Sections::of(&elf), threads);
        let is_qualified =
            |name: &Vec<u8>| !name.starts_with(b"_Z") && name.windows(2).any(|two| two == b"::");
        let mut ranges: Vec<Vec<(u64, u64, u32)>> = Vec::new();
        for range in &units.inlined {
            if !units.functions.get(range.function as usize).is_some_and(is_qualified) {
                continue;
            }
            let depth = range.depth as usize;
            if ranges.len() <= depth {
                ranges.resize_with(depth + 1, Vec::new);
            }
            ranges[depth].push((range.start, range.end, range.function));
        }
        ranges.iter_mut().for_each(|ranges| ranges.sort_unstable());
        Some(Unlinked { ranges, functions: units.functions })
    }

    /// The name of the function at an address that is inlined into as many others as `depth`, if `word` is its last word.
    pub fn name(&self, address: u64, depth: usize, word: &str) -> Option<String> {
        let ranges = self.ranges.get(depth)?;
        let behind = ranges.partition_point(|(start, ..)| *start <= address);
        let (_, end, function) = ranges[..behind].last()?;
        let name = String::from_utf8_lossy(&self.functions[*function as usize]);
        (address < *end && plain(without_parameters(&name)) == plain(word)).then(|| name.into_owned())
    }
}
