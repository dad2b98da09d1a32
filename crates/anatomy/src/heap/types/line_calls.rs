//! Several calls of one source line whose blocks fit the same type: the line may name it for one of them alone.

use rustc_hash::{FxHashMap, FxHashSet};

use super::blocks::Blocks;
use super::found::Found;
use super::model::Source;
use super::origin::Call;
use crate::heap::site::SiteKey;
use crate::heap::stacks::CodeAddress;

/// Functions and lines in them that a line is inlined into.
type Context = Vec<(String, Option<u32>)>;

/// A call in a line that allocates.
#[derive(Debug, Clone)]
pub(super) struct LineCall {
    /// The code that it is.
    code: CodeAddress,
    /// The functions that the line is inlined into there, with their lines: each copy of the line has calls of its own.
    copy: Context,
    /// How many calls in the line allocate, as its text has it.
    pub calls: usize,
    /// The types that fit the blocks, for each time that the line names one.
    pub named: Vec<Vec<String>>,
}

impl LineCall {
    /// Of a frame of a call. The line has not been looked at.
    pub fn new(call: &Call, frame: usize) -> LineCall {
        let outer = call.frames.get(frame + 1..).unwrap_or_default();
        let copy = outer.iter().map(|frame| (frame.function.clone(), frame.line)).collect();
        LineCall { code: call.code, copy, calls: 0, named: Vec::new() }
    }

    fn times(&self, name: &str) -> usize {
        self.named.iter().filter(|names| names.iter().any(|own| own == name)).count()
    }
}

/// Withholds a type that more calls of a line fit than the line names it for, where the line has other calls, too: which of the blocks
/// are of another type is not known.
pub(super) fn withhold(blocks: &mut [Blocks], calls: &[Option<LineCall>]) {
    let mut lines: FxHashMap<(SiteKey, &Context), Vec<(usize, &LineCall)>> = FxHashMap::default();
    for (index, (block, call)) in blocks.iter().zip(calls).enumerate() {
        if let Some(call) = call.as_ref().filter(|_| block.found.as_ref().is_some_and(is_of_line)) {
            lines.entry((block.site.own_key(), &call.copy)).or_default().push((index, call));
        }
    }
    for of_line in lines.into_values().filter(|calls| calls.len() > 1) {
        let shared: Vec<usize> = of_line
            .iter()
            .filter(|(index, call)| {
                blocks[*index].found.as_ref().is_some_and(|own| {
                    let is_same = |other: &usize| {
                        blocks[*other].found.as_ref().is_some_and(|other| own.is_same_type(other))
                    };
                    let same = of_line.iter().filter(|(other, _)| is_same(other));
                    let fitting = same.map(|(_, call)| call.code).collect::<FxHashSet<_>>().len();
                    fitting.min(call.calls) > call.times(&own.name).max(1)
                })
            })
            .map(|(index, _)| *index)
            .collect();
        for index in shared {
            blocks[index].is_shared = true;
            blocks[index].found = None;
        }
    }
}

/// Whether a type was found by what is around the call, and not by the call itself.
fn is_of_line(found: &Found) -> bool {
    matches!(found.source, Source::SourceLine | Source::Variables | Source::Constructor)
}
