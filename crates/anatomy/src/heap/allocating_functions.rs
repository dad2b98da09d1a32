//! Functions of a program through which it allocates: their names, the sizes they ask for, their callers.

use rustc_hash::FxHashMap;

use crate::function_name::without_parameters;
use crate::heap::pool_frames;
use crate::heap::site::{self, Program, Site, SiteKey};
use widthwise_heap_log::profile::{Frame, Profile};
use widthwise_heap_log::sizes::Sizes;

/// Whether a function has the name of an allocating function, with or without its parameters.
pub(crate) fn is_allocator(function: &str) -> bool {
    let plain: String = match function.find('<') {
        Some(at) => function[..at].to_owned(),
        None => function.to_owned(),
    };
    let last = plain.rsplit("::").next().unwrap_or(&plain).to_lowercase();
    let class = plain.to_lowercase();
    last.contains("alloc")
        || last.starts_with("operator new")
        || ["xstrdup", "xnew"].contains(&last.as_str())
        || (class.contains("pool")
            && ["get", "take", "make", "create", "new"].iter().any(|verb| last.contains(verb)))
        || (last.contains("pool") && !last.contains("init"))
}

/// Whether a site is in a function of that name.
pub(super) fn is_in(function: &str) -> impl Fn(&Site) -> bool + '_ {
    move |site| without_parameters(&site.function) == function
}

/// The sites in a function.
pub(super) fn of<'s>(sites: &'s [Site], function: &str) -> Vec<&'s Site> {
    let is_in = is_in(function);
    sites.iter().filter(|site| is_in(site)).collect()
}

/// The sizes of the blocks that a function asks for.
pub(super) fn sizes(sites: &[Site], function: &str) -> Sizes {
    let mut sizes = Sizes::default();
    of(sites, function).iter().for_each(|site| sizes.add(site.values.sizes));
    sizes
}

/// The bytes of sites at the peak: those of an imported recording may be any number.
pub(super) fn peak_bytes<'s>(sites: impl IntoIterator<Item = &'s Site>) -> u64 {
    sites.into_iter().fold(0, |sum, site| sum.saturating_add(site.values.peak_bytes))
}

/// The sites in the program that call a function for bytes at the peak: where the blocks are whose sites are in the function (`is_of`) if
/// these wrappers are left out, and outside of it if those are. A pool of a library is a caller, too. What has no caller in the program
/// stays at its own lines. Each has the values of the blocks that it asks for.
pub(super) fn callers(
    profile: &Profile,
    program: &str,
    [inside, outside]: [&[String]; 2],
    is_of: impl Fn(&Site) -> bool,
) -> Vec<Site> {
    let (inside, outside) = (Program::of(profile, program, inside), Program::of(profile, program, outside));
    let mut known: FxHashMap<SiteKey, usize> = FxHashMap::default();
    let mut found: Vec<Site> = Vec::new();
    for sample in profile.samples.iter().filter(|sample| sample.values.peak_bytes > 0) {
        let frames: Vec<&Frame> =
            sample.stack.iter().rev().filter_map(|index| profile.frames.get(*index as usize)).collect();
        let own = site::of_frames(&frames, sample.values, &inside);
        if !is_of(&own) {
            continue;
        }
        let caller = site::of_frames(&frames, sample.values, &outside);
        if (caller.module == program || pool_frames::is_named(&caller.function))
            && without_parameters(&caller.function) != without_parameters(&own.function)
        {
            match known.get(&caller.own_key()) {
                Some(index) => found[*index].values.add(&caller.values),
                None => {
                    known.insert(caller.own_key(), found.len());
                    found.push(caller);
                }
            }
        }
    }
    found
}
