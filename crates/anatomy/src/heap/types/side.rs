//! The types of one recording's blocks: the most reliable evidence decides.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::heap::pools;
use crate::heap::site::{self, Program, Site, SiteKey};
use crate::heap::symbols::{StackValues, Symbols};
use widthwise_heap_log::profile::{Profile, Values};
use widthwise_heap_log::stacks::Stacks;

use super::allocator::{self, Beside};
use super::blocks::Blocks;
use super::call_sites::CallSites;
use super::found::Found;
use super::library;
use super::line_calls::{self, LineCall};
use super::model::Source;
use super::origin::{self, Origin};
use super::program_types::{Known, ProgramTypes, Programs};
use super::stored_length::of_new_array;
use crate::certainty::Certainty;
use crate::layout::TypeId;

/// What was recorded of one side.
pub struct Recording<'r> {
    /// Its stacks.
    pub stacks: &'r Stacks,
    /// Their values.
    pub values: &'r StackValues,
    /// The same with names.
    pub profile: &'r Profile,
    /// The file name of the program itself.
    pub program: &'r str,
    /// Bytes of the allocator's own before each block; none where they are not known.
    pub block_header: Option<u64>,
    /// Wrappers of the allocator: their callers are the sites.
    pub through: &'r [String],
}

/// One recording's blocks at the peak.
pub struct TypedSide {
    /// By origin.
    pub blocks: Vec<Blocks>,
    /// Bytes of the allocator's own before each block; none where they are not known.
    pub block_header: Option<u64>,
    /// What cannot be said, and why.
    pub remarks: Vec<String>,
}

/// Gives the blocks at the peak their types.
///
/// Files of debug information are read where the stacks go through them; `symbols` names the code addresses.
pub fn typed(recording: &Recording, symbols: &mut Symbols, programs: &mut Programs) -> TypedSide {
    let program = Program::of(recording.profile, recording.program, recording.through);
    let chunk_lines = chunk_lines(recording);
    let origins = origin::origins(recording.stacks, recording.values, symbols, &program, &chunk_lines);
    let mut call_sites = CallSites::read(&origins, &program);
    let mut line_calls = Vec::new();
    let mut side =
        TypedSide { blocks: Vec::new(), block_header: recording.block_header, remarks: Vec::new() };
    for origin in origins {
        let files = files(&origin, programs);
        if let Some((_, file)) = files.iter().find(|(is_program, _)| *is_program) {
            side.remark_on(recording.program, file);
        }
        let files: Vec<Rc<ProgramTypes>> = files.into_iter().map(|(_, file)| file).collect();
        let (found, candidates, line_call) = type_of(&origin, &files, &mut call_sites);
        let with_tails = match found {
            Some(_) => Vec::new(),
            None => call_sites.with_tails(&origin, &files),
        };
        let Origin { site, values, .. } = origin;
        side.blocks.push(Blocks { site, values, found, candidates, with_tails, is_shared: false, files });
        line_calls.push(line_call);
    }
    line_calls::withhold(&mut side.blocks, &line_calls);
    eliminate(&mut side.blocks);
    side
}

/// The lines in which the program's pools take chunks.
fn chunk_lines(recording: &Recording) -> FxHashSet<SiteKey> {
    let Recording { profile, program, through, .. } = *recording;
    let sites = site::sites(profile, program, through);
    pools::lines(profile, program, through, &sites).into_iter().map(Site::own_key).collect()
}

/// Where a line makes several types, blocks that may be of two are not of the one that others are of.
fn eliminate(blocks: &mut [Blocks]) {
    let mut by_site: FxHashMap<SiteKey, Vec<usize>> = FxHashMap::default();
    for (index, block) in blocks.iter().enumerate() {
        by_site.entry(block.site.own_key()).or_default().push(index);
    }
    for indexes in by_site.into_values().filter(|indexes| indexes.len() > 1) {
        let is_left = |block: &Blocks| block.found.is_none() && !block.is_shared;
        let of_line = |found: &&Found| found.source == Source::SourceLine;
        let found = indexes.iter().filter_map(|index| blocks[*index].found.as_ref());
        let taken: Vec<String> = found.filter(of_line).map(|found| found.name.clone()).collect();
        for index in indexes.iter().filter(|index| is_left(&blocks[**index])).copied().collect::<Vec<_>>() {
            let block = &mut blocks[index];
            let best =
                block.candidates.first().map(|found| found.certainty).filter(|best| *best > Certainty::Low);
            let is_possible = |one: &&Found| Some(one.certainty) == best && !taken.contains(&one.name);
            let mut left = block.candidates.iter().filter(is_possible);
            if let (Some(one), None) = (left.next().filter(|one| of_line(one)), left.next()) {
                block.found = Some(Found { certainty: Certainty::Medium, ..one.clone() });
            }
        }
    }
}

impl TypedSide {
    fn remark_on(&mut self, program: &str, file: &ProgramTypes) {
        let unread: Vec<&str> = file.layouts.unread.iter().map(|unread| unread.reason.as_str()).collect();
        if !self.remarks.is_empty() || file.layouts.describes_types && unread.is_empty() {
            return;
        }
        if file.layouts.describes_types {
            let reasons = unread.join("; ");
            self.remarks
                .push(format!("{program}: {reasons}; blocks that its code allocates may be without a type"));
            return;
        }
        let without =
            "only classes with virtual functions and what libraries allocate have types, none has a layout or a known size";
        self.remarks.push(match (file.layouts.units, unread.as_slice()) {
            (0, _) => format!("{program} has no debug information: {without} (build it with -g)"),
            (_, []) => format!("{program} has debug information without types: {without} (build it with -g)"),
            // It was built with -g: its types are in a file that cannot be read.
            (_, reasons) => format!("{program}: {}; {without}", reasons.join("; ")),
        });
    }
}

/// The files whose types the origin's functions may use, the innermost first, and whether each is the program's own. Files without
/// lines have no types.
fn files(origin: &Origin, programs: &mut Programs) -> Vec<(bool, Rc<ProgramTypes>)> {
    let mut files: Vec<(bool, Rc<ProgramTypes>)> = Vec::new();
    for (number, call) in origin.calls.iter().enumerate() {
        let is_own = origin.own.is_some_and(|(own, _)| own == number);
        let has_lines = call.frames.iter().any(|frame| frame.line.is_some());
        let Some(module) = call.module.as_deref().filter(|_| has_lines || is_own) else { continue };
        let file = programs.of(module);
        if files.iter().all(|(_, known)| !Rc::ptr_eq(known, &file)) {
            files.push((is_own && origin.site.is_program, file));
        }
    }
    files
}

fn type_of(
    origin: &Origin,
    files: &[Rc<ProgramTypes>],
    call_sites: &mut CallSites,
) -> (Option<Found>, Vec<Found>, Option<LineCall>) {
    if let Some(found) = library::buffer(origin) {
        return (Some(found), Vec::new(), None);
    }
    if let Some(named) = allocator::named(origin.frames()) {
        return (Some(by_name(named, origin, files)), Vec::new(), None);
    }
    let (candidates, line_call) = call_sites.candidates(origin, files);
    (decided(&candidates, &origin.values), candidates, line_call)
}

/// A type that the stack names, with its layout.
fn by_name(named: allocator::Named, origin: &Origin, files: &[Rc<ProgramTypes>]) -> Found {
    let known = files.iter().find_map(|file| Some((file, file.find(&named.name)?)));
    let known = known.or_else(|| closure(&named.name, origin, files));
    // A library's own characters have no file of debug information.
    let size = known.map(|(_, known)| known.size).or((named.name == "char").then_some(1));
    let id = known.and_then(|(file, known)| Some((file.clone(), known.id?)));
    let mut found = Found {
        name: named.name,
        container: named.container.map(library::public_name),
        size,
        id,
        library: None,
        certainty: if named.is_sure { Certainty::High } else { Certainty::Medium },
        source: named.source,
        cookie: 0,
        tail: None,
    };
    match named.beside {
        Beside::Length => match of_new_array(found.clone(), &origin.values) {
            Some(fitting) => return fitting,
            None => found.size = None,
        },
        // How many of the elements it takes is not known.
        Beside::ControlBlock => found.size = None,
        Beside::Nothing => {}
    }
    if found.objects(&origin.values).is_none() {
        // The name is certain; the size of that type does not fit, or is not known.
        found.certainty = Certainty::Medium;
        (found.size, found.id) = (None, None);
    }
    found
}

/// The closure of a lambda: of those of its function that the blocks may be, the one that is declared in the site's line, or the only one.
fn closure<'f>(
    name: &str,
    origin: &Origin,
    files: &'f [Rc<ProgramTypes>],
) -> Option<(&'f Rc<ProgramTypes>, Known)> {
    let mut found: Vec<(&Rc<ProgramTypes>, TypeId)> =
        files.iter().flat_map(|file| file.closures(name).into_iter().map(move |id| (file, id))).collect();
    found.retain(|(file, id)| {
        let size = file.layouts.size(*id);
        size > 0 && origin.values.sizes.are_multiples(size, 0)
    });
    if found.len() > 1 {
        found.retain(|(file, id)| {
            let location = file.layouts.aggregate(*id).and_then(|closure| closure.location.as_ref());
            location.is_some_and(|location| location.to_string() == origin.site.location())
        });
    }
    let [(file, id)] = found[..] else { return None };
    Some((file, Known { size: file.layouts.size(id), id: Some(id) }))
}

/// The one type that is likelier than all others.
fn decided(candidates: &[Found], values: &Values) -> Option<Found> {
    let best = candidates.first()?;
    let rank = |found: &Found| (found.certainty, found.is_object(values));
    let is_alone = candidates[1..].iter().all(|other| rank(other) < rank(best));
    (is_alone && best.certainty > Certainty::Low).then(|| best.clone())
}
