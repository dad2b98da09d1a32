//! Names for places: functions, inlined ones included, with file and line, out of the modules' debug information.

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::heap::history::History;
use crate::heap::places::{Module, Place, StackId};
use crate::heap::profile::{Frame, Profile, Sample, Values};

/// Deeper stacks are shown without what is outside.
const DEEPEST: usize = 2048;

/// A module whose debug information is read when it is first asked for.
struct Source {
    loader: Option<addr2line::Loader>,
    name: String,
}

/// Names places. Modules are read once each.
#[derive(Default)]
pub struct Symbols {
    sources: FxHashMap<String, Source>,
    /// Modules whose file could not be read, with the reason.
    pub unread: Vec<(String, String)>,
}

impl Symbols {
    fn source(&mut self, path: &str) -> &Source {
        let unread = &mut self.unread;
        self.sources.entry(path.to_owned()).or_insert_with(|| {
            let name = Path::new(path)
                .file_name()
                .map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned());
            // The kernel's own module is in no file.
            let virtual_module = path.starts_with("linux-");
            let loader = match addr2line::Loader::new(path) {
                Ok(loader) => Some(loader),
                Err(_) if virtual_module => None,
                Err(error) => {
                    unread.push((path.to_owned(), error.to_string()));
                    None
                }
            };
            Source { loader, name }
        })
    }

    /// The frames of a call that returns to `place`, the innermost first: the last one is that of the function itself, those
    /// before it were inlined into it.
    pub fn frames(&mut self, place: &Place) -> Vec<Frame> {
        let Some(module) = place.module else {
            return vec![unnamed(place.address, String::new())];
        };
        let source = self.source(&module.path);
        // A call may be the last instruction of its function.
        let address = place.address.wrapping_sub(1);
        let mut frames: Vec<Frame> = Vec::new();
        if let Some(loader) = &source.loader {
            if let Ok(mut found) = loader.find_frames(address) {
                while let Ok(Some(frame)) = found.next() {
                    let function = frame
                        .function
                        .as_ref()
                        .and_then(|function| function.raw_name().ok().map(|name| demangled(&name)));
                    let Some(function) = function else { continue };
                    let location = frame.location.as_ref();
                    frames.push(Frame {
                        function,
                        file: location.and_then(|location| location.file).map(str::to_owned),
                        line: location.and_then(|location| location.line).filter(|line| *line != 0),
                        module: source.name.clone(),
                        inlined: true,
                    });
                }
            }
            if frames.is_empty() {
                if let Some(name) = loader.find_symbol(address) {
                    frames.push(Frame {
                        function: demangled(name),
                        ..unnamed(place.address, source.name.clone())
                    });
                }
            }
        }
        match frames.last_mut() {
            Some(last) => last.inlined = false,
            None => frames.push(unnamed(place.address, source.name.clone())),
        }
        frames
    }
}

fn unnamed(address: u64, module: String) -> Frame {
    Frame { function: format!("{address:#x}"), file: None, line: None, module, inlined: false }
}

/// As the source has it. What is not mangled stays as it is.
pub(crate) fn demangled(name: &str) -> String {
    // `name@@VERSION` of a symbol table.
    let name = name.split('@').next().unwrap_or(name);
    if !name.starts_with("_Z") {
        return name.to_owned();
    }
    cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.demangle().ok())
        .unwrap_or_else(|| name.to_owned())
}

/// A history's stacks with their names.
pub fn profile(history: &History, symbols: &mut Symbols) -> Profile {
    let mut profile = Profile::default();
    let mut frames: FxHashMap<Frame, u32> = FxHashMap::default();
    let mut calls: FxHashMap<(Option<*const Module>, u64), Vec<u32>> = FxHashMap::default();
    let mut stacks: FxHashMap<Vec<u32>, usize> = FxHashMap::default();
    for (index, blocks) in history.stacks.iter().enumerate() {
        let values = Values {
            peak_count: blocks.peak_count,
            peak_bytes: blocks.peak_bytes,
            peak_chunk_bytes: blocks.peak_chunk_bytes,
            count: blocks.count,
            bytes: blocks.bytes,
            live_count: blocks.live_count,
            live_bytes: blocks.live_bytes,
            lives: blocks.lives,
        };
        if values == Values::default() {
            continue;
        }
        let mut stack = Vec::new();
        let mut at = StackId(index as u32);
        while let Some((place, outer)) = history.places.call(at) {
            if stack.len() >= DEEPEST {
                break;
            }
            let key = (place.module.map(std::ptr::from_ref), place.address);
            let named = calls.entry(key).or_insert_with(|| {
                let mut named = Vec::new();
                for frame in symbols.frames(&place) {
                    let next = frames.len() as u32;
                    named.push(*frames.entry(frame.clone()).or_insert_with(|| {
                        profile.frames.push(frame);
                        next
                    }));
                }
                named
            });
            stack.extend_from_slice(named);
            at = outer;
        }
        stack.reverse();
        match stacks.get(&stack) {
            Some(known) => profile.samples[*known].values.add(&values),
            None => {
                stacks.insert(stack.clone(), profile.samples.len());
                profile.samples.push(Sample { stack, values });
            }
        }
    }
    profile
}
