//! The types that the code around an allocation names: in debug information and in the line of source.

use std::path::Path;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::allocator::is_passing;
use super::callers::{self, Around, Evidence, Returned, Target, Wanted};
use super::constructed;
use super::factors::Counts;
use super::fit::{fitting, of_type};
use super::found::Found;
use super::handed_over::HandedOver;
use super::line_calls::LineCall;
use super::model::Source;
use super::named_types::{is_known, is_unresolved, named_in_source, structure, Shape};
use super::origin::{Call, Origin};
use super::program_types::ProgramTypes;
use super::receiver::{constructs, continues, receives, returns};
use super::several::{may_be_array, Requests};
use super::source_line::{
    allocating_calls, asks_for_a_sum, asks_for_more, hands_on, mentions, Mention, Named, Requested,
};
use super::source_text::without_texts;
use super::tails;
use crate::certainty::Certainty;
use crate::function_name::without_parameters;
use crate::heap::site::Program;
use crate::names::plain;
use widthwise_heap_log::profile::{Frame, Values};
use widthwise_heap_log::sizes::Sizes;
use widthwise_heap_log::stacks::CodeAddress;

/// No line of source is longer.
const LONGEST_LINE: usize = 4096;
/// No source is larger.
const LARGEST_SOURCE: u64 = 64 << 20;
/// A statement has no more lines before that of its call.
const MOST_LINES: u32 = 4;
/// More types that are possible are not listed.
const MOST_CANDIDATES: usize = 16;

/// A call of an origin, and a frame of it.
type Place = (usize, usize);

/// The code around the allocations of a recording.
pub(super) struct CallSites {
    around: FxHashMap<Rc<str>, FxHashMap<Wanted, Around>>,
    /// The classes of objects that are constructed in the blocks, by the address that the allocating call returns to.
    constructed: FxHashMap<Rc<str>, FxHashMap<u64, String>>,
    sources: FxHashMap<String, Option<Vec<String>>>,
    wrappers: FxHashSet<String>,
    /// The sizes of all blocks that each call requests.
    requested: FxHashMap<CodeAddress, Sizes>,
}

impl CallSites {
    /// Reads the functions that call the allocator themselves.
    pub fn read(origins: &[Origin], program: &Program) -> CallSites {
        let mut wrappers = FxHashSet::default();
        let functions = origins.iter().flat_map(|origin| origin.frames()).map(|frame| &frame.function);
        for function in functions.filter(|function| program.is_wrapper(function)) {
            wrappers.insert(function.clone());
        }
        let mut sites = CallSites {
            around: FxHashMap::default(),
            constructed: FxHashMap::default(),
            sources: FxHashMap::default(),
            wrappers,
            requested: requested(origins),
        };
        let mut wanted: FxHashMap<Rc<str>, FxHashSet<Wanted>> = FxHashMap::default();
        for origin in origins {
            let last = origin.callers.last().copied().unwrap_or((usize::MAX, 0));
            for place in sites.functions_inside(origin, last).chain(origin.callers.last().copied()) {
                if let Some((module, call)) = sites.wanted(origin, place) {
                    wanted.entry(module).or_default().insert(call);
                }
            }
        }
        for (module, wanted) in wanted {
            let path = Path::new(&*module);
            let returns = wanted.iter().map(|wanted| wanted.address).collect();
            sites.constructed.insert(module.clone(), constructed::read(path, &returns));
            sites.around.insert(module.clone(), callers::read(path, &wanted));
        }
        sites
    }

    /// The call in which the program's own code calls the allocator, or one of its wrappers.
    fn wanted(&self, origin: &Origin, place: Place) -> Option<(Rc<str>, Wanted)> {
        let (call, frame) = self.caller(origin, place)?;
        let wanted = Wanted { address: call.code.address, line: frame.line, frame: place.1 };
        Some((call.module.clone()?, wanted))
    }

    /// What debug information has of the function at a place.
    fn around(&self, origin: &Origin, place: Place) -> Option<&Around> {
        let (module, call) = self.wanted(origin, place)?;
        self.around.get(&module)?.get(&call)
    }

    /// The program's functions and its wrappers inside of a place, the innermost first.
    fn functions_inside<'o>(&'o self, origin: &'o Origin, place: Place) -> impl Iterator<Item = Place> + 'o {
        let is_it = |(place, frame): &(Place, &Frame)| {
            origin.callers.contains(place) || self.wrappers.contains(&frame.function)
        };
        inner_frames(origin, place).filter(is_it).map(|(place, _)| place)
    }

    /// How a place gets the block, and what of its line asks for it. None if it does not get it: a function between returns something
    /// else, or debug information does not say what it returns and the line does not call it by its name.
    fn handed_over(
        &mut self,
        origin: &Origin,
        place: Place,
        line: Option<String>,
    ) -> Option<(Option<HandedOver>, Option<String>)> {
        let inside: Vec<Place> = self.functions_inside(origin, place).collect();
        let Some((outermost, inner)) = inside.split_last() else { return Some((None, line)) };
        let returned =
            |place: &Place| self.around(origin, *place).map_or(Returned::Unknown, |around| around.returned);
        if inner.iter().any(|place| returned(place) == Returned::Other) {
            return None;
        }
        let (_, frame) = self.caller(origin, *outermost)?;
        let returned = returned(outermost);
        let from = HandedOver::by(&frame.function, returned != Returned::Other);
        let is_unknown = returned == Returned::Unknown && !self.wrappers.contains(&frame.function);
        if is_unknown && !line.as_deref().is_some_and(|line| from.is_called_in(line)) {
            return None;
        }
        if !from.is_returned && !self.is_asked_for_as_named(origin, place) {
            return None;
        }
        let request = match line {
            Some(line) => Some(from.request(&line)?),
            None if from.is_returned => None,
            None => return None,
        };
        Some((Some(from), request))
    }

    /// Where an origin's wrappers are, the innermost first.
    fn wrappers_of(&self, origin: &Origin) -> Vec<Place> {
        let inside = inner_frames(origin, origin.own.unwrap_or((usize::MAX, 0)));
        inside.filter(|(_, frame)| self.wrappers.contains(&frame.function)).map(|(place, _)| place).collect()
    }

    /// Whether the functions between a call's place and the allocator ask it for what they were asked for, by their lines: some add a header,
    /// or ask for a page.
    fn is_asked_for_as_named(&mut self, origin: &Origin, place: Place) -> bool {
        self.inner_lines(origin, place).iter().all(|line| line.as_deref().is_some_and(hands_on))
    }

    /// The lines between a call's place and the allocator, where they are known.
    fn inner_lines(&mut self, origin: &Origin, place: Place) -> Vec<Option<String>> {
        let inner: Vec<(Frame, Option<Rc<str>>)> = inner_frames(origin, place)
            .filter(|(_, frame)| !is_passing(&frame.function))
            .map(|((call, _), frame)| (frame.clone(), origin.calls[call].module.clone()))
            .collect();
        inner.iter().map(|(frame, module)| self.line(frame, module.as_deref())).collect()
    }

    /// The call and the frame of a caller. None if functions inside of it do more than to hand the request on.
    fn caller<'o>(&self, origin: &'o Origin, (at, frame): Place) -> Option<(&'o Call, &'o Frame)> {
        let call = origin.calls.get(at)?;
        let own = call.frames.get(frame)?;
        let is_caller = |place: Place| origin.callers.contains(&place);
        let hands_on = |place: Place, frame: &Frame| {
            is_caller(place) || is_passing(&frame.function) || self.wrappers.contains(&frame.function)
        };
        inner_frames(origin, (at, frame)).all(|(place, frame)| hands_on(place, frame)).then_some((call, own))
    }

    /// The types that an origin's blocks may have, the likeliest first, and the call in the line that they were looked for in.
    pub fn candidates(
        &mut self,
        origin: &Origin,
        files: &[Rc<ProgramTypes>],
    ) -> (Vec<Found>, Option<LineCall>) {
        let mut first = (Vec::new(), None);
        for place in origin.callers.iter().copied() {
            let Some(mut line_call) = self.line_call(origin, place) else { continue };
            let mut found = self.candidates_of(place, origin, files, &mut line_call);
            // With a header before them, they are no array of what the line asks for.
            if self.inner_lines(origin, place).iter().flatten().any(|line| asks_for_more(line)) {
                found.retain(|found| found.is_object(&origin.values));
            }
            // What a wrapper's unit has for variables says little of what its callers ask for.
            if found.first().is_some_and(|found| found.certainty > Certainty::Low) {
                return (found, Some(line_call));
            }
            if first.0.is_empty() {
                first = (found, Some(line_call));
            }
        }
        first
    }

    fn line_call(&self, origin: &Origin, place: Place) -> Option<LineCall> {
        let (call, _) = self.caller(origin, place)?;
        Some(LineCall::new(call, place.1))
    }

    fn candidates_of(
        &mut self,
        place: Place,
        origin: &Origin,
        files: &[Rc<ProgramTypes>],
        line_call: &mut LineCall,
    ) -> Vec<Found> {
        let Some(code) = self.code_around(place, origin, files) else { return Vec::new() };
        let CodeAround { call: call_code, targets, line, statement, mentions, requests, from } = code;
        let names: Vec<&str> = mentions.iter().filter_map(Mention::type_name).collect();
        let has_unknown = names.iter().any(|name| !is_known(name, files));
        let is_open = has_unknown || names.iter().any(|name| is_unresolved(name, files));
        // What is behind a header is of another type, and so is what another call of the line allocates: any size is some multiple of a
        // small type's. A larger block of a line that asks for one object is a pool's, which has objects of other types, too.
        line_call.calls = line.as_deref().map_or(0, allocating_calls);
        let has_sum = mentions.iter().any(Mention::is_in_a_sum);
        let is_whole_block = has_sum || line_call.calls > mentions.len().max(1);
        // Another of the line's calls may ask for as much.
        let is_one_of_sums = has_sum && line_call.calls > 1;
        // So is a block of another size than that of the objects, where the line says how many they are.
        let counts: Option<Vec<Counts>> = mentions.iter().map(Mention::counts).collect();
        let counts = counts.filter(|counts| !counts.is_empty());
        let may_be_array = line.is_none() || requests.name_array;
        let mut fitting: Vec<(Mention, Vec<Found>)> = Vec::new();
        for mention in mentions {
            let mut found = mentioned(&mention, &targets, origin, files);
            found.retain(|found| match mention.counts() {
                _ if is_one_of_sums && mention.is_in_a_sum() => false,
                Some(counts) => found.is_one_of(counts, &origin.values),
                None => !is_whole_block || found.is_object(&origin.values),
            });
            line_call.named.push(found.iter().map(|found| found.name.clone()).collect());
            if !found.is_empty() && fitting.iter().all(|(known, _)| *known != mention) {
                fitting.push((mention, found));
            }
        }
        // Of several types in a line that fit, any may be meant, whatever else names one of them.
        let is_one = is_one_type(&fitting);
        let mut found: Vec<Found> = fitting.into_iter().flat_map(|(_, found)| found).collect();
        if !is_one || is_open && !found.is_empty() {
            let certainty = if is_open { Certainty::Low } else { Certainty::Medium };
            found.iter_mut().for_each(|found| found.certainty = certainty);
            return best(found, &origin.values);
        }
        if from.as_ref().is_some_and(|from| !from.is_returned) {
            return best(found, &origin.values);
        }
        let sizes = self.requested.get(&call_code).copied().unwrap_or_default();
        let statement = statement.as_deref();
        let request = Request { sizes, statement, has_unknown, requests: &requests, from: from.as_ref() };
        let mut named: Vec<Found> =
            targets.iter().filter_map(|target| by_evidence(target, origin, files, &request)).collect();
        let is_sum = line.as_deref().is_some_and(asks_for_a_sum);
        let may_be = |found: &Found| match (is_sum && found.size != Some(1) || is_whole_block, &counts) {
            (true, _) => found.is_object(&origin.values),
            (false, Some(counts)) => counts.iter().any(|counts| found.is_one_of(*counts, &origin.values)),
            (false, None) => true,
        };
        // Of several constructors in the line, the nearest one of an object as large as the block.
        let mut constructors = 0;
        named.retain(|found| {
            constructors += usize::from(found.source == Source::Constructor);
            (found.source != Source::Constructor || constructors == 1) && may_be(found) && !is_one_of_sums
        });
        found.extend(named);
        if found.iter().all(|found| found.certainty < Certainty::High) {
            let class = self
                .wanted(origin, place)
                .and_then(|(module, call)| self.constructed.get(&module)?.get(&call.address).cloned());
            let class = class.and_then(|class| by_virtual_table(&class, origin, files));
            // What is stored at the block's beginning says nothing of the rest.
            let is_larger = has_sum || is_sum || requests.name_array;
            found.extend(class.filter(|class| match class.has_size_of_blocks() {
                true => !is_larger,
                false => may_be_array || class.is_object(&origin.values),
            }));
        }
        best(found, &origin.values)
    }

    /// What the code says around the call of a caller.
    fn code_around(
        &mut self,
        place: Place,
        origin: &Origin,
        files: &[Rc<ProgramTypes>],
    ) -> Option<CodeAround> {
        let (call, frame) = self.caller(origin, place)?;
        let (module, call, frame) = (call.module.clone(), call.code, frame.clone());
        let targets: Vec<Target> =
            self.around(origin, place).map(|around| around.targets.clone()).unwrap_or_default();
        let line = self.line(&frame, module.as_deref());
        let (from, line) = self.handed_over(origin, place, line)?;
        let of_call = |code: String| from.as_ref().map_or(code.clone(), |from| from.statements(&code));
        let is_called = |name: &str| {
            is_passing(name)
                || inner_frames(origin, place).any(|(_, frame)| without_parameters(&frame.function) == name)
        };
        let mentions = line
            .as_deref()
            .map_or(Vec::new(), |line| mentions(line, |name| is_pointer(name, &targets), is_called));
        let mentions: Vec<Mention> = mentions.into_iter().map(|one| resolved(one, &targets, files)).collect();
        let statement = self.statement(&frame, module.as_deref()).map(of_call);
        let requests = Requests {
            own: of_call(self.whole_call(&frame, module.as_deref())),
            name_array: mentions.iter().any(may_be_array),
            around: match line.as_deref().is_some_and(hands_on) {
                true => self.lines_around(origin, place).unwrap_or_default(),
                false => Vec::new(),
            },
        };
        Some(CodeAround { call, targets, line, statement, mentions, requests, from })
    }

    /// The lines that call the function of a place, if all are known.
    fn lines_around(&mut self, origin: &Origin, (at, frame): Place) -> Option<Vec<String>> {
        let next = |call: &Call, frame: usize| Some((call.frames.get(frame)?.clone(), call.module.clone()));
        let own = next(origin.calls.get(at)?, frame + 1);
        let inner = || origin.calls.get(at + 1).and_then(|call| next(call, 0));
        let around = match own.or_else(inner) {
            Some(one) => vec![Some(one)],
            None => origin.around.values().map(|call| next(call, 0)).collect(),
        };
        let line = |one: Option<(Frame, Option<Rc<str>>)>| {
            let (frame, module) = one?;
            self.line(&frame, module.as_deref())
        };
        around.into_iter().map(line).collect()
    }

    /// The line of a call with those behind it that its brackets continue in, without comments.
    fn whole_call(&mut self, frame: &Frame, module: Option<&str>) -> String {
        let mut whole = String::new();
        for behind in 0..=MOST_LINES {
            let line = frame.line.map(|line| line.saturating_add(behind));
            let Some(line) = self.line(&Frame { line, ..frame.clone() }, module) else { break };
            whole = whole + &without_texts(&line) + "\n";
            if whole.matches('(').count() <= whole.matches(')').count() {
                break;
            }
        }
        whole
    }

    /// The types of which each block may be one object with a tail: those that a sum in the line names, and those of what receives the
    /// call's result, if such a type ends in a flexible array member or the line asks for a sum. A wrapper's line may name its own result,
    /// where its callers' lines name nothing: the blocks of such objects have several sizes, as a wrapper's have.
    pub fn with_tails(&mut self, origin: &Origin, files: &[Rc<ProgramTypes>]) -> Vec<Found> {
        for place in origin.callers.iter().copied().chain(self.wrappers_of(origin)) {
            let Some(code) = self.code_around(place, origin, files) else { continue };
            let found = code.with_tails(files);
            if !found.is_empty() && self.is_asked_for_as_named(origin, place) {
                return found;
            }
        }
        Vec::new()
    }

    /// The line of source behind those before it that its statement begins in.
    fn statement(&mut self, frame: &Frame, module: Option<&str>) -> Option<String> {
        let mut statement = self.line(frame, module)?;
        let mut line = frame.line?;
        for _ in 0..MOST_LINES {
            line = line.saturating_sub(1);
            let before = Frame { line: Some(line), ..frame.clone() };
            match self.line(&before, module).filter(|before| continues(before)) {
                Some(before) => statement = before + "\n" + &statement,
                None => break,
            }
        }
        Some(statement)
    }

    /// The line of source, where the source is as old as the program.
    fn line(&mut self, frame: &Frame, module: Option<&str>) -> Option<String> {
        let (file, line) = (frame.file.as_ref()?, frame.line?);
        let lines = self.sources.entry(file.clone()).or_insert_with(|| source(file, module?));
        lines.as_ref()?.get((line as usize).checked_sub(1)?).cloned()
    }
}

/// What the code says around a call that allocates.
struct CodeAround {
    /// Where it returns to.
    call: CodeAddress,
    /// What debug information names there.
    targets: Vec<Target>,
    /// The function of the program that it gets the block from.
    from: Option<HandedOver>,
    /// The line of source, without the types that other calls in it ask for.
    line: Option<String>,
    /// The line behind those before it that its statement begins in.
    statement: Option<String>,
    /// The types that the line names.
    mentions: Vec<Mention>,
    /// What the source says of a number of elements.
    requests: Requests,
}

impl CodeAround {
    fn with_tails(&self, files: &[Rc<ProgramTypes>]) -> Vec<Found> {
        // A larger block than the line asks for is a page, or an array.
        if self.mentions.iter().any(|mention| !mention.is_in_a_sum()) {
            return Vec::new();
        }
        let names: Vec<(&str, bool)> = self
            .mentions
            .iter()
            .flat_map(|mention| {
                let is_one = matches!(mention.amount, Requested::InSum { is_one: true, .. });
                self.names(mention).into_iter().map(move |name| (name, is_one))
            })
            .collect();
        let is_sum = self.line.as_deref().is_some_and(asks_for_a_sum) || !names.is_empty();
        let ends_in_array = |found: &Found| {
            found.id.as_ref().is_some_and(|(file, id)| file.layouts.ends_in_flexible_array(*id))
        };
        let receivers = self.targets.iter().filter(|target| self.may_receive(target));
        let mut found: Vec<Found> = receivers.filter_map(|target| structure(&target.name, files)).collect();
        found.retain(|found| is_sum || ends_in_array(found));
        found.iter_mut().for_each(|found| found.source = Source::Variables);
        // What receives the block points to its beginning.
        if found.is_empty() {
            found.extend(names.iter().filter_map(|(name, _)| structure(name, files)));
        }
        let is_whole = |mention: &Mention| matches!(mention.amount, Requested::InSum { is_whole: true, .. });
        let named = (!names.is_empty() && self.mentions.iter().all(is_whole)).then_some(&names[..]);
        found.iter().flat_map(|found| tails::with_tails(found, named)).collect()
    }

    /// The types that a mention names.
    fn names<'n>(&'n self, mention: &'n Mention) -> Vec<&'n str> {
        match &mention.named {
            Named::Type(name) => vec![name],
            Named::Pointee(variable) => {
                let of_variable = self.targets.iter().filter(|target| target.variable == *variable);
                of_variable.map(|target| target.name.as_str()).collect()
            }
        }
    }

    fn may_receive(&self, target: &Target) -> bool {
        use Evidence::{DeclaredHere, Member, Result, Variable};
        let request = Request {
            sizes: Sizes::default(),
            statement: self.statement.as_deref(),
            has_unknown: false,
            requests: &self.requests,
            from: self.from.as_ref(),
        };
        let is_kind = matches!(target.evidence, DeclaredHere | Variable | Member | Result);
        is_kind && request.is_received_by(target, false)
    }
}

/// The frames between the allocator and a place, the innermost first.
fn inner_frames(origin: &Origin, end: Place) -> impl Iterator<Item = (Place, &Frame)> {
    let frames = origin.calls.iter().enumerate().flat_map(|(number, call)| {
        call.frames.iter().enumerate().map(move |(index, frame)| ((number, index), frame))
    });
    frames.take_while(move |(place, _)| *place < end)
}

/// The mention with the type's name as the program has it: template parameters and typedefs stand for what they are.
fn resolved(mention: Mention, targets: &[Target], files: &[Rc<ProgramTypes>]) -> Mention {
    mention.with_name(|name| {
        let name = argument(name, targets);
        files.iter().find_map(|file| file.without_typedefs(&name)).unwrap_or(name)
    })
}

/// The types that a mention may be, where they fit the blocks.
fn mentioned(
    mention: &Mention,
    targets: &[Target],
    origin: &Origin,
    files: &[Rc<ProgramTypes>],
) -> Vec<Found> {
    let shape = match mention.amount {
        Requested::New | Requested::InSum { .. } | Requested::Counted([1, 1]) => Shape::Object,
        Requested::NewArray => Shape::Elements,
        Requested::Any | Requested::Counted(_) => Shape::Any,
    };
    let name = match &mention.named {
        Named::Type(name) => name,
        Named::Pointee(variable) => {
            let of_variable = targets.iter().filter(|target| target.variable == *variable);
            let fits = |target: &Target| {
                let fit = fitting(target, origin, files, Source::SourceLine)?;
                (fit.is_exact || shape != Shape::Object).then_some(fit)
            };
            return of_variable.filter_map(fits).map(|fit| fit.of(Certainty::High)).collect();
        }
    };
    named_in_source(name, shape, origin, files)
}

/// Whether what fits is one type, or what one name leaves open.
fn is_one_type(fitting: &[(Mention, Vec<Found>)]) -> bool {
    let mut all = fitting.iter().flat_map(|(_, found)| found);
    let Some(first) = all.next() else { return true };
    let is_same = |found: &Found| match fitting.len() {
        1 => plain(&found.name) == plain(&first.name),
        _ => found.is_same_type(first),
    };
    all.all(is_same)
}

/// The sizes of the blocks that each call requests, for all of its callers.
fn requested(origins: &[Origin]) -> FxHashMap<CodeAddress, Sizes> {
    let mut requested: FxHashMap<CodeAddress, Sizes> = FxHashMap::default();
    for origin in origins {
        for call in &origin.calls {
            requested.entry(call.code).or_default().add(origin.values.sizes);
        }
    }
    requested
}

/// The type that a name of the source stands for: with the template's arguments for its parameters, `Node<int>` for `Node<T>`.
fn argument(name: &str, targets: &[Target]) -> String {
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut shown = String::with_capacity(name.len());
    let mut rest = name;
    while !rest.is_empty() {
        let end = rest.find(|c| !of_word(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let is_it =
            |target: &&Target| target.evidence == Evidence::TemplateParameter && target.variable == word;
        shown += targets.iter().find(is_it).map_or(word, |target| &target.name);
        let next = behind.find(of_word).unwrap_or(behind.len());
        shown += &behind[..next];
        rest = &behind[next..];
    }
    shown
}

/// Whether an argument of a call is a pointer, by its name: `pool`, or a member as in `state->pool`.
fn is_pointer(argument: &str, targets: &[Target]) -> bool {
    let member = argument.rsplit_once(['.', '>']).map(|(_, member)| member);
    let is_it = |target: &Target| match target.evidence {
        Evidence::Member => member == Some(&target.variable),
        Evidence::Variable | Evidence::DeclaredHere | Evidence::Global => argument == target.variable,
        _ => false,
    };
    targets.iter().any(is_it)
}

/// The lines of a source file that has not changed since the program was built.
fn source(file: &str, module: &str) -> Option<Vec<String>> {
    let metadata = std::fs::metadata(file).ok().filter(|metadata| metadata.is_file())?;
    let built = std::fs::metadata(module).ok()?.modified().ok()?;
    if metadata.len() > LARGEST_SOURCE || metadata.modified().ok()? > built {
        return None;
    }
    let text = std::fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&text);
    let cut = |line: &str| line.chars().take(LONGEST_LINE).collect::<String>();
    Some(text.lines().map(cut).collect())
}

/// What is known of a call beside its function's variables.
struct Request<'r> {
    /// The sizes of the blocks that it requests, for all of its callers.
    sizes: Sizes,
    /// The source's line, and what of its statement is before it.
    statement: Option<&'r str>,
    /// Whether the line names a type that the debug information does not have: compilers leave out those whose size alone is used.
    has_unknown: bool,
    /// What the source says of a number of elements.
    requests: &'r Requests,
    /// The function of the program that returns the block.
    from: Option<&'r HandedOver>,
}

impl Request<'_> {
    /// Whether a variable, a member or the result may be what points to the block. A function has pointers to many types, and so have
    /// structures: the size of one of these fits the block by chance. Without the source, each variable may be meant where the sizes are
    /// equal.
    fn is_received_by(&self, target: &Target, is_exact: bool) -> bool {
        let is_result = self.from.is_none_or(|from| from.is_returned);
        match (self.statement, target.evidence) {
            _ if !is_result => false,
            (Some(statement), Evidence::Result) => {
                let is_named = self.from.is_some_and(|from| from.is_called_in(statement));
                is_exact && !is_named || returns(statement, self.from)
            }
            (Some(statement), _) => receives(statement, &target.variable, self.from),
            (None, evidence) => is_exact && evidence != Evidence::Member,
        }
    }
}

/// How sure a type is that debug information names.
fn by_evidence(
    target: &Target,
    origin: &Origin,
    files: &[Rc<ProgramTypes>],
    request: &Request,
) -> Option<Found> {
    let source = match target.evidence {
        Evidence::Constructor => Source::Constructor,
        Evidence::Call => Source::Call,
        _ => Source::Variables,
    };
    let fit = fitting(target, origin, files, source)?;
    if source == Source::Variables {
        let is_array = || request.requests.show_array(&fit.found, request.sizes, files);
        if !request.is_received_by(target, fit.is_exact) || !fit.is_exact && !is_array() {
            return None;
        }
    }
    // A call that requests several sizes allocates for callers with types of their own.
    let is_one_size = !request.sizes.are_several();
    let certainty = match (target.evidence, fit.is_exact) {
        (Evidence::Call, _) => Certainty::High,
        // The memory may be an argument of the constructor.
        (Evidence::Constructor, true) => match request.statement.map(constructs) {
            Some(true) => Certainty::High,
            Some(false) => return None,
            None => Certainty::Medium,
        },
        // A temporary, a member or a base, of which any size is a multiple.
        (Evidence::Constructor, false) | (Evidence::TemplateParameter, _) => return None,
        (Evidence::Global, false) => return None,
        (Evidence::Global, true) => Certainty::Low,
        _ if request.has_unknown => Certainty::Low,
        (Evidence::DeclaredHere, true) if request.statement.is_some() => Certainty::High,
        // Blocks of several sizes may be a header and what is behind it; of bytes, there is none.
        // A structure may be the beginning of such a block.
        (Evidence::DeclaredHere, _) if fit.found.id.is_some() => Certainty::Low,
        (Evidence::DeclaredHere, _) if is_one_size || fit.found.size == Some(1) => Certainty::Medium,
        (Evidence::DeclaredHere, _) => Certainty::Low,
        (Evidence::Variable | Evidence::Result | Evidence::Member, true) if is_one_size => Certainty::Medium,
        (Evidence::Variable | Evidence::Result | Evidence::Member, _) => Certainty::Low,
    };
    Some(fit.of(certainty))
}

/// The class whose virtual table the block gets. Without debug information its size is not known, and that of the blocks stands for it, where
/// all have one.
fn by_virtual_table(class: &str, origin: &Origin, files: &[Rc<ProgramTypes>]) -> Option<Found> {
    let target =
        Target { name: class.to_owned(), size: None, variable: String::new(), evidence: Evidence::Call };
    if let Some(fit) = fitting(&target, origin, files, Source::VirtualTable) {
        let certainty = if fit.is_exact { Certainty::High } else { Certainty::Medium };
        return Some(fit.of(certainty));
    }
    // The object is the beginning of something larger.
    if files.iter().any(|file| file.find(class).is_some()) {
        return None;
    }
    let found = of_type(class, origin.each()?, None, Source::VirtualTable);
    Some(Found { certainty: Certainty::Medium, ..found })
}

/// Each type once, as the surest evidence has it; the likeliest first. Of types that one name in the line leaves open, the
/// likeliest is that which the function's variables name, too. Of several names in the line, any may be meant.
fn best(mut found: Vec<Found>, values: &Values) -> Vec<Found> {
    let rank = |found: &Found| (found.certainty, found.is_object(values), found.source != Source::Variables);
    found.sort_by_key(|one| std::cmp::Reverse(rank(one)));
    let mut best: Vec<(Found, usize)> = Vec::new();
    for one in found {
        match best.iter_mut().find(|(known, _)| known.is_same_type(&one)) {
            Some((_, times)) => *times += 1,
            None => best.push((one, 1)),
        }
    }
    let highest = best.first().map(|(found, _)| rank(found));
    let tied: Vec<&(Found, usize)> = best.iter().filter(|(found, _)| Some(rank(found)) == highest).collect();
    let of_one_name = tied.windows(2).all(|two| plain(&two[0].0.name) == plain(&two[1].0.name));
    let most = tied.iter().map(|(_, times)| *times).max().filter(|_| of_one_name).unwrap_or(0);
    for (found, times) in &mut best {
        if Some(rank(found)) == highest && *times < most && found.certainty == Certainty::High {
            found.certainty = Certainty::Medium;
        }
    }
    let mut best: Vec<Found> = best.into_iter().map(|(found, _)| found).collect();
    best.sort_by_key(|one| std::cmp::Reverse(rank(one)));
    best.truncate(MOST_CANDIDATES);
    best
}
