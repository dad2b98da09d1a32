//! Wrappers of the allocator, through which a program allocates nearly all of its memory: `xmalloc`, a class's `operator new`.
//! Their callers are the useful sites. A pool is none.

use std::collections::BTreeMap;

use crate::function_name::without_parameters;
use crate::heap::allocating_functions::{callers, is_allocator, is_in, peak_bytes, sizes};
use crate::heap::pools::{self, Chunks};
use crate::heap::site::{self, Site};
use widthwise_heap_log::profile::Profile;
use widthwise_heap_log::sizes::Sizes;

/// A function with a larger share of the bytes at the peak hides all other sites.
const MOST: f64 = 0.9;
/// A function with a larger share, and blocks of several sizes, hides the sites of most memory.
const HALF: f64 = 0.5;
/// The most wrappers of wrappers.
const DEEPEST: usize = 8;

/// A function that allocates nearly all memory, for several callers.
#[derive(Debug, Clone, PartialEq)]
pub struct Wrapper {
    /// Its name, as [`site::sites`]' `through` takes it.
    pub function: String,
    /// Its share of the bytes at the peak, 0 to 1.
    pub share: f64,
    /// Whether its callers are the sites: its name is that of an allocating function, and it is no pool.
    pub is_thin: bool,
    /// Of a pool: the chunks that it takes for all of its callers.
    pub chunks: Option<Chunks>,
}

/// The wrappers of a profile beside those that are `given`, the innermost first: those with an allocating function's name, alone or
/// together, and at most one with another name, which ends the search, since only the user knows whether it is a wrapper.
pub fn find(profile: &Profile, program: &str, given: &[String]) -> Vec<Wrapper> {
    let mut found: Vec<Wrapper> = Vec::new();
    // Those that have one caller so far, which may be a wrapper of theirs with several.
    let mut pending: Vec<Wrapper> = Vec::new();
    let mut through = given.to_vec();
    while through.len() < given.len() + DEEPEST {
        let sites = site::sites(profile, program, &through);
        let Some((function, share)) = largest(&sites).filter(|(_, share)| *share > MOST) else {
            let several = together_or_around(profile, program, &sites, &through);
            if several.is_empty() {
                found.extend(hides_half(profile, program, &sites, &through));
                break;
            }
            through.extend(several.iter().map(|wrapper| wrapper.function.clone()));
            found.extend(several);
            continue;
        };
        // It passes nothing on: what it calls has been inlined, and is not a caller of it.
        if function == "main" {
            break;
        }
        let outside = [through.clone(), vec![function.clone()]].concat();
        let callers = callers(profile, program, [&through, &outside], is_in(&function));
        let chunks = pools::chunks(profile, program, &through, &sites, &function);
        if !is_allocator(&function)
            && chunks.is_none()
            && asks_for_pieces(&sizes(&sites, &function), &callers)
        {
            break;
        }
        through = outside;
        let is_thin = is_allocator(&function) && chunks.is_none();
        pending.push(Wrapper { function, share, is_thin, chunks });
        match callers.as_slice() {
            [_, _, ..] => found.append(&mut pending),
            [only] if is_allocator(&only.function) => {}
            [only] if has_several_callers(profile, program, &through, only) => found.append(&mut pending),
            _ => break,
        }
        if !is_thin {
            break;
        }
    }
    found
}

/// The wrappers of several recordings that are looked at together, each with its program's file name. A pool of one recording is no
/// thin wrapper of the others: its chunks may have one size in one ABI alone. A wrapper of one is one of all, also where it has too few of
/// the bytes to be found.
pub fn find_in_all<'r>(
    recordings: impl Iterator<Item = (&'r Profile, &'r str)>,
    given: &[String],
) -> Vec<Wrapper> {
    let mut all: Vec<Wrapper> = Vec::new();
    for wrapper in recordings.flat_map(|(profile, program)| find(profile, program, given)) {
        match all.iter_mut().find(|known| known.function == wrapper.function) {
            Some(known) => {
                // What is said of a wrapper is said of a recording in which it is one.
                if wrapper.is_thin && !known.is_thin {
                    known.share = wrapper.share;
                }
                known.is_thin |= wrapper.is_thin;
                known.chunks = known.chunks.or(wrapper.chunks);
            }
            None => all.push(wrapper),
        }
    }
    all.iter_mut().for_each(|wrapper| wrapper.is_thin &= wrapper.chunks.is_none());
    all
}

/// The program's functions, each with its share of the bytes at the peak.
fn shares(sites: &[Site]) -> BTreeMap<&str, f64> {
    let all = peak_bytes(sites);
    let mut shares: BTreeMap<&str, f64> = BTreeMap::new();
    for site in sites.iter().filter(|site| site.is_program && all > 0) {
        *shares.entry(without_parameters(&site.function)).or_default() +=
            site.values.peak_bytes as f64 / all as f64;
    }
    shares
}

/// The function with most bytes at the peak, and its share of them.
fn largest(sites: &[Site]) -> Option<(String, f64)> {
    let most = shares(sites).into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((most.0.to_owned(), most.1))
}

/// Functions with allocating functions' names that allocate nearly all memory together, such as a program's own malloc, calloc and
/// realloc. Each has several callers, and blocks of several sizes: one with blocks of one size makes objects of one type. If they
/// allocate less, those that call a wrapper which is known, such as a `zrealloc` that asks `zmalloc` for the new block: their callers
/// are the useful sites as well.
fn together_or_around(profile: &Profile, program: &str, sites: &[Site], through: &[String]) -> Vec<Wrapper> {
    let mut found = named_as_allocators(profile, program, sites, through);
    let all: f64 = found.iter().map(|wrapper| wrapper.share).sum();
    if all <= MOST {
        found.retain(|wrapper| calls_one_of(profile, &wrapper.function, through));
    }
    found
}

/// Functions with allocating functions' names, several callers and blocks of several sizes, those with most bytes first.
fn named_as_allocators(profile: &Profile, program: &str, sites: &[Site], through: &[String]) -> Vec<Wrapper> {
    let passes_on = |function: &str| {
        let outside = [through, &[function.to_owned()]].concat();
        is_allocator(function)
            && sizes(sites, function).are_several()
            && callers(profile, program, [through, &outside], is_in(function)).len() > 1
            && pools::chunks(profile, program, through, sites, function).is_none()
    };
    let mut found: Vec<Wrapper> = shares(sites)
        .into_iter()
        .filter(|(function, share)| *share > 0.0 && passes_on(function))
        .map(|(function, share)| Wrapper {
            function: function.to_owned(),
            share,
            is_thin: true,
            chunks: None,
        })
        .collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found
}

/// Whether a function calls one of these wrappers for bytes at the peak.
fn calls_one_of(profile: &Profile, function: &str, wrappers: &[String]) -> bool {
    let frame = |index: &u32| profile.frames.get(*index as usize).map(|frame| frame.function.as_str());
    let is_call = |two: &[u32]| {
        let [outer, inner] = two else { return false };
        frame(outer).is_some_and(|outer| without_parameters(outer) == function)
            && frame(inner).is_some_and(|inner| wrappers.iter().any(|name| site::hands_on(inner, name)))
    };
    let at_peak = profile.samples.iter().filter(|sample| sample.values.peak_bytes > 0);
    at_peak.flat_map(|sample| sample.stack.windows(2)).any(is_call)
}

/// A function that requests more than half of the bytes, in blocks of several sizes, for several callers. Whatever its name, it is a
/// suggestion: objects of several types or one structure with a tail of its own are both possible.
fn hides_half(profile: &Profile, program: &str, sites: &[Site], through: &[String]) -> Option<Wrapper> {
    let (function, share) = largest(sites).filter(|(function, share)| *share > HALF && function != "main")?;
    let outside = [through, std::slice::from_ref(&function)].concat();
    let callers = callers(profile, program, [through, &outside], is_in(&function));
    let passes_on = sizes(sites, &function).are_several() && callers.len() > 1;
    let chunks = pools::chunks(profile, program, through, sites, &function);
    let may_be_pool = chunks.is_none() && asks_for_pieces(&sizes(sites, &function), &callers);
    (passes_on && !may_be_pool).then_some(Wrapper { function, share, is_thin: false, chunks })
}

/// Whether a function with blocks of several sizes always asks for one large size for each of its callers, as gawk's `more_blocks` asks for
/// room for a hundred objects of the caller's type: then its callers may be those of a pool, for whom it does so by chance.
fn asks_for_pieces(sizes: &Sizes, callers: &[Site]) -> bool {
    let is_large =
        |caller: &Site| caller.values.sizes.only().is_some_and(|size| size >= pools::SMALLEST_CHUNK);
    sizes.are_several() && callers.iter().all(is_large)
}

/// Whether a function, or the only caller of it and so on, has several callers: then it passes requests on to a wrapper.
fn has_several_callers(profile: &Profile, program: &str, through: &[String], function: &Site) -> bool {
    let mut inside = through.to_vec();
    let mut function = without_parameters(&function.function).to_owned();
    for _ in 0..DEEPEST {
        let outside = [inside.clone(), vec![function.clone()]].concat();
        let callers = callers(profile, program, [&inside, &outside], is_in(&function));
        let [only] = callers.as_slice() else { return callers.len() > 1 };
        (inside, function) = (outside, without_parameters(&only.function).to_owned());
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use widthwise_heap_log::profile::{Frame, Sample, Values};

    /// A program whose stacks are these functions, the outermost first, each with so many bytes.
    fn profile(stacks: &[(&[&str], u64)]) -> Profile {
        let mut profile = Profile { frames: Vec::new(), samples: Vec::new() };
        for (stack, bytes) in stacks {
            let mut indices = Vec::new();
            for function in *stack {
                indices.push(profile.frames.len() as u32);
                profile.frames.push(Frame {
                    function: (*function).to_owned(),
                    file: Some("src/a.c".to_owned()),
                    line: Some(10),
                    module: "prog".to_owned(),
                    inlined: false,
                });
            }
            let values = Values { peak_bytes: *bytes, peak_count: 1, ..Values::default() };
            profile.samples.push(Sample { stack: indices, values });
        }
        profile
    }

    fn found(stacks: &[(&[&str], u64)]) -> Vec<(String, bool)> {
        find(&profile(stacks), "prog", &[]).into_iter().map(|one| (one.function, one.is_thin)).collect()
    }

    fn thin(name: &str) -> (String, bool) {
        (name.to_owned(), true)
    }

    #[test]
    fn wrappers_around_wrappers_are_found_by_their_names() {
        let stacks: &[(&[&str], u64)] = &[
            (&["main", "a", "xcalloc(unsigned long)", "xmalloc"], 50),
            (&["main", "b", "xcalloc(unsigned long)", "xmalloc"], 45),
            (&["main", "c"], 5),
        ];
        assert_eq!(found(stacks), [thin("xmalloc"), thin("xcalloc")]);
        for name in
            ["Node::operator new", "Pool<Node>::get", "pool_take", "luaM_realloc_", "mem::allocate<int>"]
        {
            let with = format!("{name}(unsigned long)");
            assert_eq!(
                found(&[(&["main", "a", &with], 5), (&["main", "b", &with], 5)]),
                [thin(name)],
                "{name}"
            );
        }
    }

    #[test]
    fn a_pool_that_asks_for_chunks_is_no_wrapper_by_its_name() {
        let mut profile =
            profile(&[(&["main", "a", "pool_take"], 65_536), (&["main", "b", "pool_take"], 65_536)]);
        profile.samples.iter_mut().for_each(|sample| sample.values.sizes.take(65_536));
        let found = find(&profile, "prog", &[]);
        assert_eq!((found[0].function.as_str(), found[0].is_thin), ("pool_take", false));
        // Of another ABI, whose chunks have several sizes, it is none either.
        let mut other = profile.clone();
        other.samples.iter_mut().for_each(|sample| sample.values.sizes.take(512));
        assert!(find(&other, "prog", &[])[0].is_thin);
        for sides in [[&profile, &other], [&other, &profile]] {
            let found = find_in_all(sides.into_iter().map(|profile| (profile, "prog")), &[]);
            assert_eq!(found.iter().map(|one| one.is_thin).collect::<Vec<_>>(), [false]);
        }
    }

    /// A function whose lines each have blocks for callers, as `(line, caller, size)`, with a caller for any size.
    fn with_lines(function: &str, blocks: &[(u32, &str, u64)]) -> Vec<Wrapper> {
        let stacks: Vec<[&str; 3]> = blocks.iter().map(|(_, caller, _)| ["main", caller, function]).collect();
        let stacks: Vec<(&[&str], u64)> =
            stacks.iter().zip(blocks).map(|(stack, (.., size))| (&stack[..], *size)).collect();
        let mut profile = profile(&stacks);
        for (sample, (line, _, size)) in profile.samples.iter_mut().zip(blocks) {
            sample.values.sizes.take(*size);
            (sample.values.count, sample.values.bytes) = (1, *size);
            profile.frames[sample.stack[2] as usize].line = Some(*line);
        }
        find(&profile, "prog", &[])
    }

    #[test]
    fn a_line_that_asks_for_the_same_chunks_for_every_caller_makes_a_pool_of_any_name() {
        let pools: [&[(u32, &str, u64)]; 4] = [
            // What is too large for the pool has a line of its own.
            &[(1, "a", 2048), (1, "b", 2048), (2, "a", 400), (2, "c", 9000)],
            &[(1, "a", 10_000), (1, "b", 10_000), (2, "c", 90_000)],
            &[(1, "a", 65_536), (1, "b", 65_536), (1, "c", 65_536)],
            &[(1, "a", 4080), (1, "b", 4080), (1, "c", 4080), (2, "b", 400)],
        ];
        for blocks in pools {
            let found = with_lines("zmalloc", blocks);
            assert_eq!(
                (found[0].is_thin, found[0].chunks.map(|of| of.bytes)),
                (false, Some(blocks[0].2)),
                "{blocks:?}"
            );
        }
        let wrappers: [&[(u32, &str, u64)]; 6] = [
            &[(1, "a", 2048), (1, "b", 2048), (1, "c", 2048), (1, "c", 400)],
            &[(1, "a", 10_000), (1, "b", 10_000), (1, "c", 10_000)],
            // Pages may have another line than smaller blocks.
            &[(1, "a", 4096), (1, "b", 4096), (2, "c", 24), (2, "b", 48)],
            &[(1, "a", 4096), (2, "b", 24), (2, "c", 9000)],
            &[(1, "a", 512), (1, "b", 512), (1, "c", 512), (2, "c", 9000)],
            // A pool for small objects beside much that is handed on.
            &[(1, "a", 1024), (1, "b", 1024), (2, "c", 90_000), (2, "b", 80_000)],
        ];
        for blocks in wrappers {
            let found = with_lines("zmalloc", blocks);
            assert_eq!((found[0].is_thin, found[0].chunks), (true, None), "{blocks:?}");
        }
        // Its callers begin with one size.
        let found =
            with_lines("xrealloc", &[(1, "a", 4096), (1, "b", 4096), (2, "a", 8192), (2, "b", 16_384)]);
        assert!(found[0].is_thin);
    }

    #[test]
    fn whole_pages_of_several_sizes_are_chunks_if_they_are_for_functions_named_after_pools() {
        let pools: [&[(u32, &str, u64)]; 2] = [
            &[(1, "apr_palloc", 8192), (1, "pool_create", 12_288), (1, "print", 8192)],
            // With a header.
            &[(1, "apr_palloc", 8160), (1, "pool_create", 12_256)],
        ];
        for blocks in pools {
            let found = with_lines("allocator_alloc", blocks);
            let chunks = found[0].chunks.map(|of| (of.bytes, of.are_several, of.callers));
            assert_eq!((found[0].is_thin, chunks), (false, Some((4096, true, blocks.len()))), "{blocks:?}");
        }
        let wrappers: [&[(u32, &str, u64)]; 3] = [
            &[(1, "a", 4096), (1, "b", 8192), (1, "c", 16_384)],
            &[(1, "pool_grow", 4096), (1, "a", 8192), (1, "b", 8192)],
            &[(1, "pool_grow", 8192), (1, "pool_create", 4096), (1, "pool_create", 24)],
        ];
        for blocks in wrappers {
            let found = with_lines("xmalloc", blocks);
            assert_eq!((found[0].is_thin, found[0].chunks), (true, None), "{blocks:?}");
        }
    }

    #[test]
    fn a_wrapper_of_one_recording_is_one_of_all_also_where_it_has_fewer_bytes() {
        let with_others = |bytes: u64| {
            let mut profile = profile(&[
                (&["main", "a", "xmalloc"], 600),
                (&["main", "b", "xmalloc"], 400),
                (&["main", "c"], bytes),
            ]);
            for (sample, size) in profile.samples.iter_mut().zip([24, 48, 8]) {
                sample.values.sizes.take(size);
            }
            profile
        };
        // It is found, it is a candidate, it is too little for either.
        let all = [50, 250, 2000].map(with_others);
        let of = |profile: &Profile| {
            find(profile, "prog", &[]).into_iter().map(|one| one.is_thin).collect::<Vec<_>>()
        };
        assert_eq!(all.each_ref().map(of), [vec![true], vec![false], vec![]]);
        for (a, b) in [(0, 1), (1, 0), (0, 2), (2, 0)] {
            let found = find_in_all([(&all[a], "prog"), (&all[b], "prog")].into_iter(), &[]);
            let found: Vec<(bool, bool)> = found.iter().map(|one| (one.is_thin, one.share > MOST)).collect();
            assert_eq!(found, [(true, true)], "{a} {b}");
        }
    }

    #[test]
    fn what_asks_for_one_large_size_for_each_caller_is_no_candidate() {
        let of = |sizes: [u64; 3], others: u64| {
            let mut profile = profile(&[
                (&["main", "a", "more_blocks"], 6000),
                (&["main", "b", "more_blocks"], 4000),
                (&["main", "c"], others),
            ]);
            for (sample, size) in profile.samples.iter_mut().zip(sizes) {
                sample.values.sizes.take(size);
            }
            find(&profile, "prog", &[]).len()
        };
        for others in [100, 4000] {
            assert_eq!(of([6000, 4000, 8], others), 0);
            assert_eq!(of([6000, 400, 8], others), 1);
        }
    }

    #[test]
    fn functions_that_allocate_nearly_all_memory_together_are_wrappers_if_each_has_blocks_of_several_sizes() {
        let mut profile = profile(&[
            (&["main", "a", "my_malloc"], 30),
            (&["main", "b", "my_malloc"], 30),
            (&["main", "a", "my_calloc"], 16),
            (&["main", "b", "my_calloc"], 16),
            (&["main", "c"], 8),
        ]);
        let names = |profile: &Profile| {
            find(profile, "prog", &[]).into_iter().map(|one| (one.function, one.is_thin)).collect::<Vec<_>>()
        };
        for (sample, size) in profile.samples.iter_mut().zip([24, 48, 24, 48, 8]) {
            sample.values.sizes.take(size);
        }
        assert_eq!(names(&profile), [thin("my_malloc"), thin("my_calloc")]);
        // Objects of one size have one type: their function is the site, and the other has too little alone to be more than a candidate.
        let mut typed = profile.clone();
        typed.samples.iter_mut().for_each(|sample| sample.values.sizes = Sizes::default());
        for (sample, size) in typed.samples.iter_mut().zip([24, 48, 24, 24, 8]) {
            sample.values.sizes.take(size);
        }
        let candidate = [("my_malloc".to_owned(), false)];
        assert_eq!(names(&typed), candidate);
        // A twentieth more elsewhere is too much.
        profile.samples[4].values.peak_bytes = 13;
        assert_eq!(names(&profile), candidate);
    }

    #[test]
    fn a_function_with_half_of_the_bytes_in_blocks_of_several_sizes_is_a_candidate() {
        let mut profile = profile(&[
            (&["main", "a", "new_object", "my_malloc"], 40),
            (&["main", "b", "new_object", "my_malloc"], 20),
            (&["main", "c", "my_malloc"], 40),
        ]);
        for (sample, size) in profile.samples.iter_mut().zip([40, 20, 40]) {
            sample.values.sizes.take(size);
        }
        let names = |profile: &Profile, given: &[String]| {
            find(profile, "prog", given)
                .into_iter()
                .map(|one| (one.function, one.is_thin))
                .collect::<Vec<_>>()
        };
        let candidate = ("new_object".to_owned(), false);
        assert_eq!(names(&profile, &[]), [thin("my_malloc"), candidate]);
        // It is given, and those below it are found as before.
        assert_eq!(names(&profile, &["new_object".to_owned()]), [thin("my_malloc")]);
        // Objects of one size have one type; with less than half it hides too little.
        let mut one_size = profile.clone();
        one_size.samples.iter_mut().for_each(|sample| sample.values.sizes = Sizes::default());
        for (sample, size) in one_size.samples.iter_mut().zip([20, 20, 40]) {
            sample.values.sizes.take(size);
        }
        assert_eq!(names(&one_size, &[]), [thin("my_malloc")]);
        profile.samples[2].values.peak_bytes = 70;
        assert_eq!(names(&profile, &[]), [thin("my_malloc")]);
    }

    #[test]
    fn a_wrapper_that_calls_a_known_one_is_found_however_little_it_allocates() {
        let stacks: &[(&[&str], u64)] = &[
            (&["main", "a", "zmalloc(unsigned long)"], 55),
            (&["main", "b", "zmalloc(unsigned long)"], 37),
            (&["main", "a", "zrealloc(void*)", "zmalloc(unsigned long)"], 4),
            (&["main", "b", "zrealloc(void*)", "zmalloc(unsigned long)"], 3),
            (&["main", "b", "alloc_table"], 1),
            (&["main", "c", "alloc_table"], 1),
        ];
        let mut profile = profile(stacks);
        for (number, sample) in profile.samples.iter_mut().enumerate() {
            sample.values.sizes.take(8 * number as u64 + 8);
        }
        let names = |profile: &Profile| {
            find(profile, "prog", &[]).into_iter().map(|one| (one.function, one.is_thin)).collect::<Vec<_>>()
        };
        assert_eq!(names(&profile), [thin("zmalloc"), thin("zrealloc")]);
        // Blocks of one size are of one type.
        for (sample, size) in profile.samples.iter_mut().zip([8, 16, 24, 24, 8, 16]) {
            sample.values.sizes = Sizes::default();
            sample.values.sizes.take(size);
        }
        assert_eq!(names(&profile), [thin("zmalloc")]);
    }

    #[test]
    fn main_is_no_wrapper() {
        assert!(found(&[(&["_start", "main"], 50), (&["other", "main"], 45)]).is_empty());
    }

    #[test]
    fn another_function_with_nearly_all_bytes_is_a_candidate() {
        let stacks: &[(&[&str], u64)] =
            &[(&["main", "a", "make_node"], 50), (&["main", "b", "make_node"], 45)];
        assert_eq!(found(stacks), [("make_node".to_owned(), false)]);
    }

    #[test]
    fn what_has_one_caller_or_less_of_the_bytes_hides_nothing() {
        assert!(found(&[(&["main", "xmalloc"], 50)]).is_empty());
        assert!(found(&[
            (&["main", "a", "xmalloc"], 90),
            (&["main", "b", "xmalloc"], 0),
            (&["main", "c"], 10)
        ])
        .is_empty());
        assert!(found(&[]).is_empty());
    }

    #[test]
    fn the_call_operator_has_its_whole_name() {
        let of_lambda = "run()::{lambda(int)#1}::operator()(int) const";
        let stacks: &[(&[&str], u64)] = &[(&["main", "a", of_lambda], 50), (&["main", "b", of_lambda], 45)];
        assert_eq!(found(stacks), [("run()::{lambda(int)#1}::operator()".to_owned(), false)]);
    }

    #[test]
    fn a_function_with_one_caller_hides_nothing_whatever_else_allocates() {
        for name in ["alloc_table", "load_orders"] {
            assert!(
                found(&[
                    (&["main", name], 95),
                    (&["main", "other"], 3),
                    (&["main", "third"], 1),
                    (&["main", "fourth", "malloc_hook"], 1)
                ])
                .is_empty(),
                "{name}"
            );
        }
        assert!(found(&[(&["main"], 95), (&["main", "other"], 3), (&["main", "third"], 2)]).is_empty());
        // A wrapper whose only caller is a wrapper without two callers hides nothing, either.
        assert!(found(&[(&["main", "make", "xcalloc", "xmalloc"], 95), (&["main", "other"], 5)]).is_empty());
    }
}
