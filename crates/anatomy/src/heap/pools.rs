//! Pools with the names of allocating functions: they take the pieces that they hand out from chunks, which they allocate themselves. The
//! caller for whom a chunk is allocated is chance, and what is in the chunk is of all callers.

use std::collections::BTreeSet;

use crate::function_name::without_parameters;
use crate::heap::allocating_functions::{callers, is_allocator, sizes};
use crate::heap::site::Site;
use widthwise_heap_log::profile::Profile;
use widthwise_heap_log::sizes::Sizes;

/// No pool takes smaller chunks.
const SMALLEST_CHUNK: u64 = 1024;
/// Chunks are whole pages or kibibytes, but for a header of so many bytes at most: of the pool, or left to the allocator.
const PAGE: u64 = 1024;
const LARGEST_HEADER: u64 = 64;
/// So many callers that all happen to ask for one such size are no chance.
const MANY_CALLERS: usize = 3;
/// A pool whose chunks have a smaller share of its bytes mostly hands requests on.
const LEAST: f64 = 0.1;

/// The size of the chunks that a function takes, if it is a pool and no wrapper.
pub(super) fn chunk(
    profile: &Profile,
    program: &str,
    through: &[String],
    sites: &[Site],
    function: &str,
) -> Option<u64> {
    let own = || sites.iter().filter(|site| without_parameters(&site.function) == function);
    let all: u64 = own().map(|site| site.values.peak_bytes).sum();
    let lines = lines_of(profile, program, through, sites, function);
    let bytes: u64 = lines.iter().map(|site| site.values.peak_bytes).sum();
    let largest = lines.iter().max_by_key(|site| site.values.peak_bytes)?;
    (bytes as f64 >= all as f64 * LEAST).then(|| largest.values.sizes.only())?
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

/// The lines in which a function asks for chunks: always for one large size, whoever calls. A wrapper asks for what its callers ask for.
/// Where all of them ask for one size, a pool is recognised by its name, by requests for more in another line, which takes what
/// is too large for the pool, or by the number of callers.
fn lines_of<'s>(
    profile: &Profile,
    program: &str,
    through: &[String],
    sites: &'s [Site],
    function: &str,
) -> Vec<&'s Site> {
    let own: Vec<&Site> =
        sites.iter().filter(|site| without_parameters(&site.function) == function).collect();
    let is_named = is_named(function) && sizes(sites, function).only().is_some();
    // Several callers may begin with one size, and get more in the line that enlarges a block.
    if !is_named && function.to_lowercase().contains("realloc") {
        return Vec::new();
    }
    let outside = [through, &[function.to_owned()]].concat();
    let is_of_chunks = |site: &&Site| {
        let Some(size) = site.values.sizes.only().filter(|size| *size >= SMALLEST_CHUNK) else {
            return false;
        };
        if is_named {
            return true;
        }
        let has_larger = own.iter().any(|other| asks_for_more(other, size));
        let is_round = size % PAGE <= LARGEST_HEADER || PAGE - size % PAGE <= LARGEST_HEADER;
        if !has_larger && !is_round {
            return false;
        }
        let key = site.own_key();
        let callers = callers(profile, program, [through, &outside], |of| of.own_key() == key).len();
        callers >= MANY_CALLERS || has_larger && callers > 1
    };
    own.iter().copied().filter(is_of_chunks).collect()
}

/// Whether a line has asked for a larger block.
fn asks_for_more(site: &Site, size: u64) -> bool {
    let values = &site.values;
    let has_larger = matches!(values.sizes, Sizes::Known { one, .. } if one > size);
    has_larger || values.bytes.checked_div(values.count).is_some_and(|mean| mean > size)
}

/// Whether a function has the name of a pool.
fn is_named(function: &str) -> bool {
    let name = function.to_lowercase();
    ["pool", "arena", "slab", "chunk", "obstack", "palloc"].iter().any(|word| name.contains(word))
}
