//! The program's types that a line of source names: the line may leave out scopes and arguments.

use std::rc::Rc;

use super::fit::{fit, of_type};
use super::found::Found;
use super::model::Source;
use super::origin::Origin;
use super::program_types::ProgramTypes;
use super::stored_length::of_new_array;
use crate::certainty::Certainty;
use crate::layout::TypeId;
use crate::names::{self, plain};

/// The structure, class or union of that name, as a line names it.
pub(super) fn structure(name: &str, files: &[Rc<ProgramTypes>]) -> Option<Found> {
    let (file, known) = files.iter().find_map(|file| Some((file, file.find(name)?)))?;
    let id = known.id?;
    Some(of_type(&file.layouts.name(id), known.size, Some((file.clone(), id)), Source::SourceLine))
}

/// What a line makes of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Object,
    /// `new T[n]`, which may store `n` first.
    Elements,
    Any,
}

/// Whether a file has a type of that name, with or without a scope.
pub(super) fn is_known(name: &str, files: &[Rc<ProgramTypes>]) -> bool {
    files.iter().any(|file| file.find(name).is_some() || !file.with_plain_name(plain(name)).is_empty())
}

/// The types of that name, with or without a scope, whose size fits.
pub(super) fn named_in_source(
    name: &str,
    shape: Shape,
    origin: &Origin,
    files: &[Rc<ProgramTypes>],
) -> Vec<Found> {
    let of_size = |name: &str, size: u64, id: Option<(Rc<ProgramTypes>, TypeId)>| {
        if shape == Shape::Elements {
            return of_new_array(of_type(name, size, id, Source::SourceLine), &origin.values);
        }
        let fit = fit(name, size, id, origin, Source::SourceLine);
        fit.filter(|fit| fit.is_exact || shape == Shape::Any).map(|fit| fit.of(Certainty::High))
    };
    let whole = files.iter().find_map(|file| {
        let known = file.find(name)?;
        let id = known.id.map(|id| (file.clone(), id));
        // A structure has one name, whichever of them the line uses. A template's may be long: there the line's is better.
        let own = known.id.map(|id| file.layouts.name(id)).filter(|own| !own.contains('<'));
        of_size(own.as_deref().unwrap_or(name), known.size, id)
    });
    if let Some(found) = whole {
        return vec![found];
    }
    let mut found: Vec<Found> = Vec::new();
    for file in files {
        for id in file.with_plain_name(plain(name)) {
            let (full, size) = (file.layouts.name(id), file.layouts.size(id));
            if !is_named(&full, name) {
                continue;
            }
            found.extend(of_size(&full, size, Some((file.clone(), id))));
        }
    }
    found
}

/// Whether a line may name a type so: `Node<int>` of the line is `Node<int>` of the program, with the scopes and the arguments that the
/// line leaves out (`unique_ptr<Node>` is `std::unique_ptr<a::Node, std::default_delete<a::Node> >`); `Node` may be any.
fn is_named(full: &str, name: &str) -> bool {
    if !name.contains('<') {
        return true;
    }
    let is_within = |full: &str, name: &str| {
        let (full, name) = (names::type_name_key(full), names::type_name_key(name));
        full.strip_suffix(&name).is_some_and(|scope| scope.is_empty() || scope.ends_with("::"))
    };
    if is_within(full, name) {
        return true;
    }
    let (Some((head, arguments)), Some((own_head, own))) = (instance(full), instance(name)) else {
        return false;
    };
    let are_own = own.iter().zip(&arguments).all(|(own, argument)| is_within(argument, own));
    own.len() <= arguments.len() && are_own && is_within(head, own_head)
}

/// A template's name and the arguments of the instance that a name ends with.
fn instance(name: &str) -> Option<(&str, Vec<&str>)> {
    let open = names::outer(name, &['<'])?;
    let close = open + names::closing_bracket(&name[open..])?;
    name[close + 1..].trim().is_empty().then(|| (&name[..open], names::split(&name[open + 1..close])))
}

/// Whether a line's name of a template's instance is that of no type: written with other names of its arguments, it is one of those that
/// the template has.
pub(super) fn is_unresolved(name: &str, files: &[Rc<ProgramTypes>]) -> bool {
    let has = |file: &Rc<ProgramTypes>| {
        let mut ids = file.with_plain_name(plain(name)).into_iter();
        file.find(name).is_some() || ids.any(|id| is_named(&file.layouts.name(id), name))
    };
    name.contains('<') && !files.iter().any(has)
}
