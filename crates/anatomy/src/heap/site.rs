//! Allocation sites: the lines of the program's own source that allocate memory, independent of inlining.

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::heap::pool_frames;
use crate::heap::types::allocator;
use crate::names;
use crate::pairing::{paired, Paired};
use widthwise_heap_log::headers;
use widthwise_heap_log::profile::{Frame, Profile, Values};

/// Folders of system headers and libraries, which hold no program's own source.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/include/", "/usr/lib/", "/usr/src/", "/build/"];
/// Templates of the standard library (libstdc++, libc++) whose first argument, up to the first comma, is the allocated type.
const MAKERS: [&str; 10] = [
    "std::__new_allocator<",
    "__gnu_cxx::new_allocator<",
    "std::__1::allocator<",
    "std::make_unique<",
    "std::make_shared<",
    "std::allocate_shared<",
    "std::allocator<",
    "std::__detail::_MakeUniq<",
    "std::__allocate_at_least<",
    "std::allocator_traits<",
];

/// A line that allocates memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The function that contains the line; the innermost one if no function of the program is in the stack.
    pub function: String,
    /// Its source.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// The object file's name.
    pub module: String,
    /// Whether that is the program itself, whose file may have another name in another build.
    pub is_program: bool,
    /// The allocated type, if a template of the standard library names it.
    pub made: Option<String>,
    /// How much.
    pub values: Values,
}

/// The key by which a site of one build is found in another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteKey {
    module: Option<String>,
    function: String,
    file: Option<String>,
    line: Option<u32>,
    made: Option<String>,
}

impl Site {
    /// Files are known by their names: each variant may be built from a copy of the source.
    pub fn key(&self) -> SiteKey {
        self.key_of(names::key)
    }

    /// The key by which a site is found in the same build: overloads and templates for `int` and for `long` have sites of their own.
    pub fn own_key(&self) -> SiteKey {
        self.key_of(names::function_name_key)
    }

    fn key_of(&self, name: fn(&str) -> String) -> SiteKey {
        let base = |file: &String| {
            Path::new(file)
                .file_name()
                .map_or_else(|| file.clone(), |name| name.to_string_lossy().into_owned())
        };
        // Functions of one name in two object files are two sites. Each ABI has a dynamic linker of another name.
        let module = if self.module.starts_with("ld-linux") { "ld.so" } else { self.module.as_str() };
        SiteKey {
            module: (!self.is_program).then(|| module.to_owned()),
            function: name(&self.function),
            file: self.file.as_ref().map(base),
            line: self.line,
            made: self.made.as_deref().map(name),
        }
    }

    /// `file:line`, or the module if these are unknown.
    pub fn location(&self) -> String {
        let file = self.file.as_deref().map(|file| file.rsplit('/').next().unwrap_or(file));
        match (file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.to_owned(),
            _ => self.module.clone(),
        }
    }
}

/// Of the program itself.
pub(crate) struct Program<'a> {
    name: &'a str,
    /// It has debug information.
    has_lines: bool,
    /// Its wrappers of the allocator.
    through: &'a [String],
}

impl<'a> Program<'a> {
    /// The program of a profile, by its file name, with its wrappers of the allocator.
    pub(crate) fn of(profile: &Profile, name: &'a str, through: &'a [String]) -> Program<'a> {
        let has_lines = profile.frames.iter().any(|frame| frame.module == name && frame.line.is_some());
        Program { name, has_lines, through }
    }

    /// Whether a function is one of the wrappers.
    pub(crate) fn is_wrapper(&self, function: &str) -> bool {
        self.through.iter().any(|name| hands_on(function, name))
    }
}

/// Whether a frame is the program's own code, not that of a library.
pub(crate) fn is_own(frame: &Frame, program: &Program) -> bool {
    let function = frame.function.as_str();
    if function.starts_with("std::")
        || function.starts_with("__gnu_cxx::")
        || function.starts_with("operator new")
    {
        return false;
    }
    if program.is_wrapper(function) || headers::is_library_module(&frame.module) {
        return false;
    }
    match &frame.file {
        Some(file) => {
            let in_folder = file.contains('/') || file.contains('\\');
            !SYSTEM_FOLDERS.iter().any(|folder| file.starts_with(folder))
                && !file.contains("/include/c++/")
                && (in_folder || !headers::is_library(file))
        }
        // Without debug information only the program's own file is known. If the program has debug information, code
        // without it is a library that was linked into the program.
        None => frame.module == program.name && !program.has_lines && !function.starts_with("0x"),
    }
}

/// Whether a function has that name, ignoring its parameters; `name*` is a prefix.
pub(super) fn hands_on(function: &str, name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(beginning) => function.starts_with(beginning),
        None => function
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['(', '.', '['])),
    }
}

/// Whether a function of that name, as in [`sites`]' `through`, is in any stack of a profile.
pub fn goes_through(profile: &Profile, name: &str) -> bool {
    profile.frames.iter().any(|frame| hands_on(&frame.function, name))
}

/// Whether any of the functions of that name has a caller in any stack of a profile: a stack may end at it.
pub fn has_caller(profile: &Profile, name: &str) -> bool {
    let is_named = |frame: &u32| {
        profile.frames.get(*frame as usize).is_some_and(|frame| hands_on(&frame.function, name))
    };
    let mut calls = profile.samples.iter().flat_map(|sample| sample.stack.windows(2));
    calls.any(|call| !is_named(&call[0]) && is_named(&call[1]))
}

/// The type that a frame of the standard library allocates.
fn made(function: &str) -> Option<String> {
    let start = MAKERS.iter().find_map(|maker| {
        let at = function.find(maker)?;
        Some(at + maker.len())
    })?;
    let mut depth = 0usize;
    for (offset, character) in function[start..].char_indices() {
        match character {
            '<' | '(' => depth += 1,
            '>' | ')' if depth > 0 => depth -= 1,
            '>' | ',' if depth == 0 => {
                let text = function[start..start + offset].trim();
                return (!text.is_empty()).then(|| text.to_owned());
            }
            _ => {}
        }
    }
    None
}

/// The sites of a profile, those with most bytes at the peak first. `program` is the file name of the program itself;
/// `through` are wrappers of the allocator (`xmalloc`, `luaM_*`): their callers are the sites.
pub fn sites(profile: &Profile, program: &str, through: &[String]) -> Vec<Site> {
    let mut sites: Vec<Site> = Vec::new();
    let mut known: FxHashMap<SiteKey, usize> = FxHashMap::default();
    let program = Program::of(profile, program, through);
    for sample in &profile.samples {
        let frames: Vec<&Frame> =
            sample.stack.iter().rev().filter_map(|index| profile.frames.get(*index as usize)).collect();
        let site = of_frames(&frames, sample.values, &program);
        match known.get(&site.own_key()) {
            Some(index) => sites[*index].values.add(&sample.values),
            None => {
                known.insert(site.own_key(), sites.len());
                sites.push(site);
            }
        }
    }
    sites.sort_by(|a, b| {
        b.values.peak_bytes.cmp(&a.values.peak_bytes).then_with(|| a.own_key().cmp(&b.own_key()))
    });
    sites
}

/// The site of a stack, whose innermost frame is the first one.
pub(crate) fn of_frames(frames: &[&Frame], values: Values, program: &Program) -> Site {
    let own = frames.iter().position(|frame| is_own(frame, program));
    let inner = &frames[..own.unwrap_or(frames.len())];
    let made = inner.iter().find_map(|frame| made(&frame.function)).map(|made| {
        // Of functions that the compiler merged, the innermost has another type's name.
        allocator::named(inner.iter().copied())
            .filter(|named| !named.is_sure)
            .map_or(made, |named| named.name)
    });
    // The caller for whom a library's pool takes a chunk is chance.
    let passes = |frame: &Frame| program.is_wrapper(&frame.function);
    let pool = pool_frames::of_library(inner, passes, |frame| !passes(frame));
    // A library's own allocations are its own sites, whichever module loaded it.
    match pool.or(own).map(|index| frames[index]).or(frames.first().copied()) {
        Some(frame) => Site {
            function: if frame.function.starts_with("0x") {
                "a function without a name".to_owned()
            } else {
                frame.function.clone()
            },
            file: frame.file.clone(),
            line: frame.line,
            is_program: frame.module == program.name,
            module: frame.module.clone(),
            made,
            values,
        },
        None => Site {
            function: "an unknown function".to_owned(),
            file: None,
            line: None,
            module: String::new(),
            is_program: false,
            made: None,
            values,
        },
    }
}

/// What a site costs in each of two builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The first build's site, or the second's if the first has none.
    pub site: Site,
    /// In the first.
    pub a: Values,
    /// In the second.
    pub b: Values,
    /// The own key of its site in the first and in the second.
    keys: [Option<SiteKey>; 2],
}

impl Pair {
    /// The first build's bytes at its peak less the second's at its own peak.
    pub fn saving(&self) -> i128 {
        i128::from(self.a.peak_bytes) - i128::from(self.b.peak_bytes)
    }
}

/// Sites of two builds side by side, those that differ most first. The savings add up to the difference of the peaks.
pub fn pairs(a: &[Site], b: &[Site]) -> Vec<Pair> {
    let pair = |found: Paired| {
        let (of_a, of_b) = (found.a.map(|place| &a[place]), found.b.map(|place| &b[place]));
        let values = |site: Option<&Site>| site.map_or(Values::default(), |site| site.values);
        let keys = [of_a, of_b].map(|site| site.map(Site::own_key));
        Some(Pair { site: of_a.or(of_b)?.clone(), a: values(of_a), b: values(of_b), keys })
    };
    let mut pairs: Vec<Pair> = paired(a, b, Site::own_key, Site::key).into_iter().filter_map(pair).collect();
    pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.saving().abs()), pair.site.own_key()));
    pairs
}

/// The bytes at the peak that each pair's site has in each of several recordings of one side: the first (0) or the second (1).
pub fn peaks(pairs: &[Pair], side: usize, recordings: &[Vec<Site>]) -> Vec<Vec<u64>> {
    let mut peaks: Vec<Vec<u64>> = vec![vec![0; recordings.len()]; pairs.len()];
    // The first recording of a side, which the pairs are of, may lack a site that its others have.
    let mut known: FxHashMap<SiteKey, usize> = FxHashMap::default();
    for (index, pair) in pairs.iter().enumerate() {
        match &pair.keys[side] {
            Some(key) => drop(known.insert(key.clone(), index)),
            None => drop(known.entry(pair.site.key()).or_insert(index)),
        }
    }
    for (recording, sites) in recordings.iter().enumerate() {
        for site in sites {
            if let Some(index) = known.get(&site.own_key()).or_else(|| known.get(&site.key())) {
                peaks[*index][recording] += site.values.peak_bytes;
            }
        }
    }
    peaks
}

#[cfg(test)]
mod tests {
    use super::*;
    use widthwise_heap_log::profile::Sample;

    fn frame(function: &str, file: Option<&str>, line: u32) -> Frame {
        Frame {
            function: function.to_owned(),
            file: file.map(str::to_owned),
            line: file.map(|_| line),
            module: "prog".to_owned(),
            inlined: false,
        }
    }

    fn profile(size: &str, bytes: u64) -> Profile {
        let frames = vec![
            frame("main", Some("src/a.cpp"), 30),
            frame("fill(Node&, int)", Some("src/a.cpp"), 12),
            frame(
                &format!("std::__new_allocator<std::_List_node<int> >::allocate({size}, void const*)"),
                Some("/usr/include/c++/12/bits/new_allocator.h"),
                137,
            ),
        ];
        let values = Values { peak_bytes: bytes, peak_count: 2, ..Values::default() };
        Profile { frames, samples: vec![Sample { stack: vec![0, 1, 2], values }] }
    }

    #[test]
    fn a_site_is_the_innermost_line_of_the_programs_own_with_what_is_made_there() {
        let sites = sites(&profile("unsigned long", 48), "prog", &[]);
        assert_eq!(sites.len(), 1);
        assert_eq!(
            (sites[0].function.as_str(), sites[0].location().as_str()),
            ("fill(Node&, int)", "a.cpp:12")
        );
        assert_eq!(sites[0].made.as_deref(), Some("std::_List_node<int>"));
    }

    #[test]
    fn lines_of_the_c_library_are_no_sites_although_other_profilers_know_them() {
        let mut library = frame("_obstack_newchunk", Some("./malloc/obstack.c"), 261);
        library.module = "libc.so.6".to_owned();
        // valgrind writes neither the folder nor the library.
        let mut bare = frame("__vasprintf_internal", Some("vasprintf.c"), 71);
        bare.module = String::new();
        for inner in [library, bare] {
            let values = Values { peak_bytes: 4064, peak_count: 1, ..Values::default() };
            let frames = vec![frame("main", Some("src/r.c"), 18), inner];
            let profile = Profile { frames, samples: vec![Sample { stack: vec![0, 1], values }] };
            assert_eq!(sites(&profile, "prog", &[])[0].location(), "r.c:18");
        }
    }

    #[test]
    fn a_library_s_pool_that_asks_a_wrapper_for_chunks_is_the_site() {
        let site_of = |function: &str, names: &[&str]| {
            let mut library = frame(function, None, 0);
            library.module = "libc.so.6".to_owned();
            let values = Values { peak_bytes: 4064, peak_count: 1, ..Values::default() };
            let frames = vec![
                frame("main", Some("src/r.c"), 18),
                library,
                frame("xmalloc(unsigned long)", Some("src/x.c"), 5),
            ];
            let profile = Profile { frames, samples: vec![Sample { stack: vec![0, 1, 2], values }] };
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            sites(&profile, "prog", &names)[0].function.clone()
        };
        assert_eq!(site_of("_obstack_newchunk", &["xmalloc"]), "_obstack_newchunk");
        assert_eq!(site_of("_obstack_newchunk", &["xmalloc", "_obstack_newchunk"]), "main");
        assert_eq!(site_of("_obstack_newchunk", &[]), "xmalloc(unsigned long)");
        for other in ["tdelete", "std::vector<Pool>::push_back"] {
            assert_eq!(site_of(other, &["xmalloc"]), "main");
        }
    }

    #[test]
    fn functions_of_one_name_in_two_object_files_are_two_sites() {
        let mut own = frame("0x1234", None, 0);
        own.module = "liba.so".to_owned();
        let mut other = own.clone();
        other.module = "libb.so".to_owned();
        let of = |bytes| Values { peak_bytes: bytes, peak_count: 1, ..Values::default() };
        let samples =
            vec![Sample { stack: vec![0], values: of(100) }, Sample { stack: vec![1], values: of(10_000) }];
        let found = sites(&Profile { frames: vec![own, other], samples }, "prog", &[]);
        let modules: Vec<_> =
            found.iter().map(|site| (site.module.as_str(), site.values.peak_bytes)).collect();
        assert_eq!(modules, [("libb.so", 10_000), ("liba.so", 100)]);
    }

    #[test]
    fn a_function_that_hands_requests_on_is_no_site_but_its_caller_is() {
        let names = ["fill".to_owned()];
        assert_eq!(sites(&profile("unsigned long", 48), "prog", &names)[0].function, "main");
        assert_eq!(sites(&profile("unsigned long", 48), "prog", &["fi*".to_owned()])[0].function, "main");
        assert_eq!(
            sites(&profile("unsigned long", 48), "prog", &["fil".to_owned()])[0].function,
            "fill(Node&, int)"
        );
    }

    #[test]
    fn sites_of_two_abis_are_one_although_size_t_has_another_name() {
        let (a, b) = (
            sites(&profile("unsigned long", 48), "prog", &[]),
            sites(&profile("unsigned int", 24), "prog", &[]),
        );
        let pairs = pairs(&a, &b);
        assert_eq!(pairs.len(), 1);
        assert_eq!(pairs[0].saving(), 24);
    }

    #[test]
    fn a_site_that_a_recording_does_not_have_has_nothing_in_it() {
        let recordings = [sites(&profile("unsigned long", 48), "prog", &[]), Vec::new()];
        assert_eq!(peaks(&pairs(&recordings[0], &[]), 0, &recordings), [[48, 0]]);
    }

    #[test]
    fn the_savings_add_up_to_the_difference_also_where_a_site_is_in_one_build_only() {
        let a = sites(&profile("unsigned long", 48), "prog", &[]);
        let mut other = profile("unsigned int", 24);
        other.frames[1].line = Some(13);
        let b = sites(&other, "prog", &[]);
        let sum: i128 = pairs(&a, &b).iter().map(Pair::saving).sum();
        assert_eq!(sum, 24);
    }
}
