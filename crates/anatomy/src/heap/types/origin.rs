//! Where blocks come from: the calls from the allocator up to the program's own line, with their code addresses.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::heap::allocating_functions::is_allocator;
use crate::heap::pool_frames;
use crate::heap::site::{self, Program, Site, SiteKey};
use crate::heap::symbols::{StackValues, Symbols};
use widthwise_heap_log::profile::{Frame, Values};
use widthwise_heap_log::stacks::{CodeAddress, StackId, Stacks};

/// So many calls are looked at; library code between the allocator and the program is not as deep.
const MOST_CALLS: usize = 64;

/// So many functions with allocating functions' names are looked through.
const MOST_CALLERS: usize = 4;

/// One call: the address that it returns to, and the frames there, the innermost (inlined) one first.
#[derive(Debug, Clone)]
pub struct Call {
    /// The object file, and the address in it.
    pub code: CodeAddress,
    /// The object file's path; none where no module was recorded, or a relative path.
    pub module: Option<Rc<str>>,
    /// The frames: the last one is the function itself.
    pub frames: Rc<[Frame]>,
    /// Where in its line each frame's call is, where debug information has it.
    pub columns: Rc<[Option<u32>]>,
}

/// Blocks of the same calls.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The calls, the innermost first, up to the one with the last of `callers`. All of them if no function of the program is in
    /// the stack.
    pub calls: Vec<Call>,
    /// The site's frame: the call, and the frame in it. None if no function of the program is in the stack.
    pub own: Option<(usize, usize)>,
    /// Frames whose functions may say what they allocate: the site's, and if that function has an allocating function's name,
    /// the next of the program's own outside of it.
    pub callers: Vec<(usize, usize)>,
    /// The calls around the last one of `calls`, for all blocks.
    pub around: FxHashMap<CodeAddress, Call>,
    /// The site, without values.
    pub site: Site,
    /// How much.
    pub values: Values,
}

impl Origin {
    /// The frames from the allocator's caller up to the site's, the innermost first.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        let own = self.own.unwrap_or((usize::MAX, 0));
        let is_inner = move |(call, frame): (usize, usize)| call < own.0 || call == own.0 && frame <= own.1;
        self.calls.iter().enumerate().flat_map(move |(number, call)| {
            let frames = call.frames.iter().enumerate();
            frames.filter(move |(frame, _)| is_inner((number, *frame))).map(|(_, frame)| frame)
        })
    }

    /// Requested bytes of a block, where all have as many.
    pub fn each(&self) -> Option<u64> {
        let Values { peak_bytes, peak_count, .. } = self.values;
        (peak_count > 0 && peak_bytes.is_multiple_of(peak_count)).then(|| peak_bytes / peak_count)
    }
}

/// The origins of all blocks at the peak, in the order of their first stacks. `chunk_lines` are the lines in which pools take chunks:
/// what their callers ask for is another thing.
pub(crate) fn origins(
    stacks: &Stacks,
    values: &StackValues,
    symbols: &mut Symbols,
    program: &Program,
    chunk_lines: &FxHashSet<SiteKey>,
) -> Vec<Origin> {
    let mut origins: Vec<Origin> = Vec::new();
    let mut known: FxHashMap<Vec<CodeAddress>, usize> = FxHashMap::default();
    let mut calls: FxHashMap<CodeAddress, Call> = FxHashMap::default();
    for (stack, values) in values.at_peak() {
        let (mut inner, mut callers, outer) =
            inner_calls(stacks, stack, symbols, program, chunk_lines, &mut calls);
        leave_out_callers_of_pools(&mut inner, &mut callers, program);
        let key: Vec<CodeAddress> = inner.iter().map(|call| call.code).collect();
        match known.get(&key) {
            Some(index) => {
                origins[*index].values.add(&values);
                origins[*index].around.extend(outer.map(|call| (call.code, call)));
            }
            None => {
                known.insert(key, origins.len());
                let frames: Vec<&Frame> = inner.iter().flat_map(|call| call.frames.iter()).collect();
                let site = site::of_frames(&frames, Values::default(), program);
                let own = callers.first().copied();
                let around = outer.map(|call| (call.code, call)).into_iter().collect();
                origins.push(Origin { calls: inner, own, callers, around, site, values });
            }
        }
    }
    origins
}

/// What the callers of a library's pool ask it for is another thing than its chunks.
fn leave_out_callers_of_pools(calls: &mut Vec<Call>, callers: &mut Vec<(usize, usize)>, program: &Program) {
    let last = callers.last().copied().unwrap_or((usize::MAX, 0));
    let (places, frames): (Vec<(usize, usize)>, Vec<&Frame>) = calls
        .iter()
        .enumerate()
        .flat_map(|(number, call)| {
            call.frames.iter().enumerate().map(move |(frame, of)| ((number, frame), of))
        })
        .filter(|(place, _)| *place <= last)
        .unzip();
    let is_wrapper = |frame: &Frame| program.is_wrapper(&frame.function);
    let passes =
        |frame: &Frame| is_wrapper(frame) || site::is_own(frame, program) && is_allocator(&frame.function);
    let is_library = |frame: &Frame| !is_wrapper(frame) && !site::is_own(frame, program);
    let Some(pool) = pool_frames::of_library(&frames, passes, is_library).map(|index| places[index]) else {
        return;
    };
    callers.retain(|caller| *caller < pool);
    calls.truncate(pool.0 + 1);
}

/// The calls up to the last caller, the callers, and the call around these.
fn inner_calls(
    stacks: &Stacks,
    stack: StackId,
    symbols: &mut Symbols,
    program: &Program,
    chunk_lines: &FxHashSet<SiteKey>,
    known: &mut FxHashMap<CodeAddress, Call>,
) -> (Vec<Call>, Vec<(usize, usize)>, Option<Call>) {
    let mut inner: Vec<Call> = Vec::new();
    let mut callers = Vec::new();
    let mut at = stack;
    let mut call_of = |code: CodeAddress| -> Call {
        let call = known.entry(code).or_insert_with(|| {
            let path = code.module.and_then(|module| stacks.path(module));
            let (frames, columns) = symbols.frames_and_columns(path, code.address);
            let file = code.module.and_then(|module| stacks.file(module));
            Call { code, module: file.map(Rc::from), frames: frames.into(), columns: columns.into() }
        });
        call.clone()
    };
    while let Some((code, outer)) = stacks.call(at).filter(|_| inner.len() < MOST_CALLS) {
        let call = call_of(code);
        let number = inner.len();
        inner.push(call.clone());
        for (frame, own) in call.frames.iter().enumerate().filter(|(_, frame)| site::is_own(frame, program)) {
            callers.push((number, frame));
            let is_pool =
                || chunk_lines.contains(&site::of_frames(&[own], Values::default(), program).own_key());
            if callers.len() >= MOST_CALLERS || !is_allocator(&own.function) || is_pool() {
                let around = stacks.call(outer).map(|(code, _)| call_of(code));
                return (inner, callers, around);
            }
        }
        at = outer;
    }
    (inner, callers, None)
}
