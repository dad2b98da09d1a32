//! Pools with the names of allocating functions: they take the pieces that they hand out from chunks, which they allocate themselves. The
//! caller for whom a chunk is allocated is chance, and what is in the chunk is of all callers.

use std::collections::BTreeSet;

use crate::function_name::without_parameters;
use crate::heap::allocating_functions::{callers, is_allocator, of, peak_bytes, sizes};
use crate::heap::pool_frames;
use crate::heap::site::Site;
use widthwise_heap_log::profile::Profile;
use widthwise_heap_log::sizes::Sizes;

/// No pool takes smaller chunks.
pub(super) const SMALLEST_CHUNK: u64 = 1024;
/// Chunks are whole kibibytes, but for a header of so many bytes at most: of the pool, or left to the allocator.
const KIBIBYTE: u64 = 1024;
const LARGEST_HEADER: u64 = 64;
/// Chunks of several sizes are a whole number of such pages.
const PAGE: u64 = 4096;
/// So many callers that all happen to ask for one such size are no chance.
const MANY_CALLERS: usize = 3;
/// A pool whose chunks have a smaller share of its bytes mostly hands requests on.
const LEAST: f64 = 0.1;

/// The chunks that a pool takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks {
    /// The bytes of each; if they have several sizes, those of the pages that each has a whole number of.
    pub bytes: u64,
    /// They have several sizes.
    pub are_several: bool,
    /// The lines for which they are taken.
    pub callers: usize,
}

/// The chunks that a function takes, if it is a pool and no wrapper.
pub(super) fn chunks(
    profile: &Profile,
    program: &str,
    through: &[String],
    sites: &[Site],
    function: &str,
) -> Option<Chunks> {
    let all = peak_bytes(of(sites, function));
    let lines = lines_of(profile, program, through, sites, function);
    let largest = lines.iter().max_by_key(|site| site.values.peak_bytes)?;
    if (peak_bytes(lines.iter().copied()) as f64) < all as f64 * LEAST {
        return None;
    }
    let (bytes, are_several) = of_chunks(largest.values.sizes)?;
    let outside = [through, &[function.to_owned()]].concat();
    let key = largest.own_key();
    let callers = callers(profile, program, [through, &outside], |of| of.own_key() == key).len();
    Some(Chunks { bytes, are_several, callers })
}

/// The lines in which a program's pools take chunks.
pub(super) fn lines<'s>(
    profile: &Profile,
    program: &str,
    through: &[String],
    sites: &'s [Site],
) -> Vec<&'s Site> {
    let functions: BTreeSet<&str> =
        sites.iter().filter(|site| site.is_program).map(|site| without_parameters(&site.function)).collect();
    let named = functions.into_iter().filter(|function| is_allocator(function));
    named.flat_map(|function| lines_of(profile, program, through, sites, function)).collect()
}

/// The lines in which a function asks for chunks: always for one large size, or for whole pages, and for the same for every caller. A wrapper asks for what
/// its callers ask for. Where all of them ask for one size, a pool is recognised by its name, by requests for more in another line, which
/// takes what is too large for the pool, or by the number of callers. Where they ask for pages, by its name or its callers' names.
fn lines_of<'s>(
    profile: &Profile,
    program: &str,
    through: &[String],
    sites: &'s [Site],
    function: &str,
) -> Vec<&'s Site> {
    let own = of(sites, function);
    let is_named = pool_frames::is_named(function) && of_chunks(sizes(sites, function)).is_some();
    // Several callers may begin with one size, and get more in the line that enlarges a block.
    if !is_named && function.to_lowercase().contains("realloc") {
        return Vec::new();
    }
    let outside = [through, &[function.to_owned()]].concat();
    let is_of_chunks = |site: &&Site| {
        let Some((size, are_several)) = of_chunks(site.values.sizes) else { return false };
        if is_named {
            return true;
        }
        let has_larger = own.iter().any(|other| asks_for_more(other, size));
        let is_round = size % KIBIBYTE <= LARGEST_HEADER || KIBIBYTE - size % KIBIBYTE <= LARGEST_HEADER;
        if !are_several && !has_larger && !is_round {
            return false;
        }
        let key = site.own_key();
        let callers = callers(profile, program, [through, &outside], |of| of.own_key() == key);
        match are_several {
            true => is_in_a_pool(site, &callers),
            false => callers.len() >= MANY_CALLERS || has_larger && callers.len() > 1,
        }
    };
    own.iter().copied().filter(is_of_chunks).collect()
}

/// The size of blocks that may be chunks, or the page size, and whether they have several sizes.
fn of_chunks(sizes: Sizes) -> Option<(u64, bool)> {
    if let Some(size) = sizes.only() {
        return (size >= SMALLEST_CHUNK).then_some((size, false));
    }
    let are_pages = |header: u64| {
        sizes.are_multiples(PAGE, header)
            || matches!(sizes, Sizes::Known { one, step }
                if one.saturating_add(header).is_multiple_of(PAGE) && step.is_multiple_of(PAGE))
    };
    (sizes.are_several() && (0..=LARGEST_HEADER).any(are_pages)).then_some((PAGE, true))
}

/// Whether a line's callers are in its own file, and most of its bytes are for those that are named after pools.
fn is_in_a_pool(site: &Site, callers: &[Site]) -> bool {
    let is_named = |caller: &&Site| pool_frames::is_named(without_parameters(&caller.function));
    let all_in_file = callers.iter().all(|caller| caller.file.is_some() && caller.file == site.file);
    all_in_file && peak_bytes(callers.iter().filter(is_named)) > peak_bytes(callers) / 2
}

/// Whether a line has asked for a larger block.
fn asks_for_more(site: &Site, size: u64) -> bool {
    let values = &site.values;
    let has_larger = matches!(values.sizes, Sizes::Known { one, .. } if one > size);
    has_larger || values.bytes.checked_div(values.count).is_some_and(|mean| mean > size)
}
