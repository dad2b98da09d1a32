//! Names for code addresses: functions, also inlined ones, with file and line, from the modules' debug information.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use rustc_hash::FxHashMap;

use crate::elf::separate::DebugFiles;
use crate::function_name::without_parameters;
use crate::heap::unlinked::Unlinked;
use crate::languages::is_cpp;
use crate::names::{self, demangled, plain, without_result};
use widthwise_heap_log::headers;
use widthwise_heap_log::history::History;
use widthwise_heap_log::profile::{Frame, Gathering, Profile, Values};
use widthwise_heap_log::stacks::{CodeAddress, StackId, Stacks};

/// Deeper stacks lose their outermost calls.
const DEEPEST: usize = 2048;
/// The most calls of all stacks of a profile together, unless four for each stack are more. Beyond it, the deepest stacks lose
/// their outermost calls.
const MOST_CALLS: usize = 16 << 20;
/// The most object files whose debug information is read.
const MOST_MODULES: usize = 4096;

/// A module. Its debug information is read at the first use.
struct Source {
    loader: Option<Loader>,
    /// The symbols of the module itself, where its debug information is in a separate file.
    own: Option<Loader>,
    /// The file with its debug information.
    file: PathBuf,
    name: String,
    /// Read where a function of C++ has its last word alone as its name.
    unlinked: OnceCell<Unlinked>,
}

impl Source {
    /// The symbol at an address. A separate file may have debug information alone.
    fn symbol(&self, address: u64) -> Option<&str> {
        let mut loaders = self.loader.iter().chain(&self.own);
        loaders.find_map(|loader| loader.find_symbol(address))
    }
}

/// Reads debug information. If what several files share cannot be read, the rest is.
fn loader(main: &Path, shared: Option<&Path>) -> Result<Loader, String> {
    let whole = shared.and_then(|shared| Loader::new_with_sup(main, Some(shared)).ok());
    whole.map_or_else(|| Loader::new(main).map_err(|error| error.to_string()), Ok)
}

/// Names code addresses. Modules are read once each.
#[derive(Default)]
pub struct Symbols {
    sources: FxHashMap<String, Source>,
    /// Modules whose file could not be read, with the reason.
    pub unread: Vec<(String, String)>,
}

impl Symbols {
    fn source(&mut self, path: &str) -> &Source {
        if !self.sources.contains_key(path) {
            let name = Path::new(path)
                .file_name()
                .map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned());
            let read = self.load(path);
            let source = match read {
                Ok((file, loader, own)) => {
                    Source { loader: Some(loader), own, file, name, unlinked: OnceCell::new() }
                }
                Err(reason) => {
                    // The kernel's own module (vDSO) is in no file.
                    if !path.starts_with("linux-") {
                        self.unread.push((path.to_owned(), reason));
                    }
                    Source { loader: None, own: None, file: PathBuf::new(), name, unlinked: OnceCell::new() }
                }
            };
            self.sources.insert(path.to_owned(), source);
        }
        &self.sources[path]
    }

    /// The file with the debug information, which is read, and the symbols of the module itself where that is another file.
    fn load(&self, path: &str) -> Result<(PathBuf, Loader, Option<Loader>), String> {
        if self.sources.len() >= MOST_MODULES {
            return Err(format!("it is one of more than {MOST_MODULES} files"));
        }
        if !path.starts_with('/') {
            return Err("its recorded path is relative, to a folder that is not known".to_owned());
        }
        // A pipe without a writer would block.
        match std::fs::metadata(path) {
            Ok(data) if data.is_file() => {}
            Ok(_) => return Err("it is no regular file".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
        let own = Path::new(path);
        // Libraries of the C library and of the compiler keep their public names: one ABI may have a separate file, and another none.
        if path.rsplit('/').next().is_some_and(headers::is_library_module) {
            return Ok((own.to_owned(), loader(own, None)?, None));
        }
        let files = DebugFiles::of(own);
        let shared = files.supplementary.as_deref();
        if files.main == own {
            return Ok((files.main.clone(), loader(own, shared)?, None));
        }
        match loader(&files.main, shared) {
            Ok(separate) => Ok((files.main.clone(), separate, Some(loader(own, None)?))),
            Err(_) => Ok((own.to_owned(), loader(own, None)?, None)),
        }
    }

    /// The frames of a call that returns to `address` of the object file at `module`, the innermost first: the last one is
    /// that of the function itself, those before it were inlined into it.
    pub fn frames(&mut self, module: Option<&str>, return_address: u64) -> Vec<Frame> {
        self.frames_and_columns(module, return_address).0
    }

    /// The same, with the place in its line of what each frame calls, where debug information has it.
    pub fn frames_and_columns(
        &mut self,
        module: Option<&str>,
        return_address: u64,
    ) -> (Vec<Frame>, Vec<Option<u32>>) {
        let mut columns = Vec::new();
        let frames = self.frames_with(module, return_address, &mut columns);
        columns.resize(frames.len(), None);
        (frames, columns)
    }

    fn frames_with(
        &mut self,
        module: Option<&str>,
        return_address: u64,
        columns: &mut Vec<Option<u32>>,
    ) -> Vec<Frame> {
        let Some(module) = module else {
            return vec![unnamed(return_address, String::new())];
        };
        let source = self.source(module);
        // A call may be the last instruction of its function.
        let address = return_address.wrapping_sub(1);
        let mut frames: Vec<Frame> = Vec::new();
        // The frames of functions of C++ that have their last word alone as their names.
        let mut words: Vec<usize> = Vec::new();
        if let Some(loader) = &source.loader {
            if let Ok(mut found) = loader.find_frames(address) {
                while let Ok(Some(frame)) = found.next() {
                    let Some(of) = frame.function.as_ref() else { continue };
                    let Some(function) = of.raw_name().ok().map(|name| demangled(&name)) else { continue };
                    if of.language.is_some_and(is_cpp) && is_word(&function) {
                        words.push(frames.len());
                    }
                    let location = frame.location.as_ref();
                    columns.push(location.and_then(|location| location.column).filter(|column| *column != 0));
                    frames.push(Frame {
                        function,
                        file: location.and_then(|location| location.file).map(str::to_owned),
                        line: location.and_then(|location| location.line).filter(|line| *line != 0),
                        module: source.name.clone(),
                        inlined: true,
                    });
                }
            }
            if let Some(inlined) = frames.len().checked_sub(1) {
                for number in words.into_iter().filter(|number| *number < inlined) {
                    let unlinked = source.unlinked.get_or_init(|| Unlinked::read(&source.file));
                    let function = &mut frames[number].function;
                    *function = unlinked
                        .name(address, inlined - 1 - number, function)
                        .unwrap_or_else(|| std::mem::take(function));
                }
            }
            if let Some(last) = frames.last_mut() {
                last.function = source
                    .symbol(address)
                    .and_then(|name| whole_name(&last.function, name))
                    .unwrap_or_else(|| std::mem::take(&mut last.function));
            }
            if frames.is_empty() {
                if let Some(name) = source.symbol(address) {
                    frames.push(Frame {
                        function: demangled(name),
                        ..unnamed(return_address, source.name.clone())
                    });
                }
            }
        }
        match frames.last_mut() {
            Some(last) => last.inlined = false,
            None => frames.push(unnamed(return_address, source.name.clone())),
        }
        frames
    }
}

/// Whether a name has neither a scope nor parameters.
fn is_word(name: &str) -> bool {
    names::outer(name, &[':', '(']).is_none()
}

/// The whole name of a function, of which debug information has the last word alone: GCC gives functions that only their unit knows, and
/// templates over types of an anonymous namespace or a function, no linkage name. Of those outside of the C++ library it has no
/// parameters: where they are inlined, these are not known.
fn whole_name(word: &str, symbol: &str) -> Option<String> {
    let name = demangled(symbol);
    let own = without_result(&name);
    let is_of_library = own.starts_with("std::") || own.starts_with("__gnu_cxx::");
    let without = without_parameters(own);
    if !is_word(word) || plain(without) != plain(word) {
        return None;
    }
    match is_of_library {
        true => Some(name),
        false => without.contains("::").then(|| without.to_owned()),
    }
}

fn unnamed(address: u64, module: String) -> Frame {
    Frame { function: format!("{address:#x}"), file: None, line: None, module, inlined: false }
}

/// The values of each stack, over one process or several.
#[derive(Debug, Clone, Default)]
pub struct StackValues(FxHashMap<StackId, Values>);

impl StackValues {
    /// Moves the values of a process's stacks here.
    pub fn add(&mut self, history: &mut History) {
        for (stack, blocks) in std::mem::take(&mut history.stacks) {
            self.0.entry(stack).or_default().add(&blocks.values());
        }
    }

    /// The number of blocks of each stack, in no order.
    pub fn blocks(&self) -> impl Iterator<Item = (StackId, u64)> + '_ {
        self.0.iter().map(|(stack, values)| (*stack, values.count))
    }

    /// The stacks that have blocks at the peak, in the order of their numbers.
    pub fn at_peak(&self) -> Vec<(StackId, Values)> {
        let at_peak = self.0.iter().filter(|(_, values)| values.peak_count > 0);
        let mut sorted: Vec<_> = at_peak.map(|(stack, values)| (*stack, *values)).collect();
        sorted.sort_unstable_by_key(|(stack, _)| *stack);
        sorted
    }

    /// In the order of the stacks' numbers.
    fn sorted(self) -> Vec<(StackId, Values)> {
        let mut sorted: Vec<_> = self.0.into_iter().collect();
        sorted.retain(|(_, values)| *values != Values::default());
        sorted.sort_unstable_by_key(|(stack, _)| *stack);
        sorted
    }
}

/// The stacks with their names.
pub fn profile(stacks: &Stacks, values: StackValues, symbols: &mut Symbols) -> Profile {
    let mut profile = Gathering::default();
    let mut calls: FxHashMap<CodeAddress, Vec<u32>> = FxHashMap::default();
    let values = values.sorted();
    let deepest = deepest(stacks, &values);
    for (stack, values) in values {
        let mut frames = Vec::new();
        let mut at = stack;
        for _ in 0..deepest {
            let Some((code, outer)) = stacks.call(at) else { break };
            let named = calls.entry(code).or_insert_with(|| {
                let path = code.module.and_then(|module| stacks.path(module));
                let frames = symbols.frames(path, code.address);
                frames.into_iter().map(|frame| profile.frame(frame)).collect()
            });
            frames.extend_from_slice(named);
            at = outer;
        }
        frames.reverse();
        profile.sample(frames, &values);
    }
    profile.profile()
}

/// The depth up to which stacks are shown. Without a limit, a program that allocates at every depth of a deep recursion would
/// need memory in proportion to the square of that depth.
fn deepest(stacks: &Stacks, values: &[(StackId, Values)]) -> usize {
    let mut depths: Vec<u16> = vec![0; stacks.len()];
    for index in 0..stacks.len() {
        if let Some((_, outer)) = stacks.call(StackId(index as u32)) {
            depths[index] = (depths[outer.0 as usize] + 1).min(DEEPEST as u16);
        }
    }
    let mut stacks_of_depth = vec![0usize; DEEPEST + 1];
    for (stack, _) in values {
        stacks_of_depth[usize::from(depths[stack.0 as usize])] += 1;
    }
    let most = MOST_CALLS.max(4 * stacks.len());
    let (mut calls, mut deeper) = (0, values.len());
    for depth in 1..=DEEPEST {
        deeper -= stacks_of_depth[depth - 1];
        calls += deeper;
        if calls > most {
            return depth - 1;
        }
    }
    DEEPEST
}
