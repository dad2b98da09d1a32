//! Several calls of one source line whose blocks fit the same type: the line may name it for one of them alone.

use rustc_hash::{FxHashMap, FxHashSet};

use super::blocks::Blocks;
use super::found::Found;
use super::model::Source;
use super::origin::Call;
use crate::heap::site::SiteKey;
use widthwise_heap_log::stacks::CodeAddress;

/// Functions and lines in them that a line is inlined into.
type Context = Vec<(String, Option<u32>)>;

/// A call in a line that allocates.
#[derive(Debug, Clone)]
pub(super) struct LineCall {
    /// The code that it is.
    code: CodeAddress,
    /// Where in the line it is. The compiler may make code of one call several times: the copies have one place.
    column: Option<u32>,
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
        let column = call.columns.get(frame).copied().flatten();
        LineCall { code: call.code, column, copy, calls: 0, named: Vec::new() }
    }

    /// Whether that many calls which fit a type are more than those of which the line says that they are of it.
    fn is_ambiguous(&self, name: &str, fitting: &Fitting) -> bool {
        let times = self.times(name);
        match fitting.places {
            // A macro or a pointer to a function is a call of which the text does not say that it allocates.
            Some(places) if times > 0 => places > times,
            Some(places) => places.min(self.calls) > 1,
            None => fitting.codes.min(self.calls) > times.max(1),
        }
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
                    let same = of_line.iter().filter(|(other, _)| is_same(other)).map(|(_, call)| *call);
                    call.is_ambiguous(&own.name, &Fitting::of(same))
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

/// The calls of a line that fit one type.
struct Fitting {
    /// The places in the line that they have; none if debug information does not have all.
    places: Option<usize>,
    /// The places in the program's code: one call of the line may have several.
    codes: usize,
}

impl Fitting {
    fn of<'c>(calls: impl Iterator<Item = &'c LineCall>) -> Fitting {
        let (mut columns, mut codes) = (FxHashSet::default(), FxHashSet::default());
        for call in calls {
            columns.insert(call.column);
            codes.insert(call.code);
        }
        let places = (!columns.contains(&None)).then_some(columns.len());
        Fitting { places, codes: codes.len() }
    }
}

/// Whether a type was found by what is around the call, and not by the call itself.
fn is_of_line(found: &Found) -> bool {
    matches!(found.source, Source::SourceLine | Source::Variables | Source::Constructor)
}
