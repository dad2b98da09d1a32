//! Types whose sizes fit blocks.

use std::rc::Rc;

use super::callers::Target;
use super::found::Found;
use super::model::Source;
use super::origin::Origin;
use super::program_types::ProgramTypes;
use crate::certainty::Certainty;
use crate::layout::TypeId;
use crate::names::{self, plain};

/// A type whose size fits the blocks.
pub(super) struct Fit {
    /// The type.
    pub found: Found,
    /// Each block is one object.
    pub is_exact: bool,
}

impl Fit {
    /// The type, with that certainty.
    pub fn of(self, certainty: Certainty) -> Found {
        Found { certainty, ..self.found }
    }
}

/// A type, before it is compared with blocks.
pub(super) fn of_type(
    name: &str,
    size: u64,
    id: Option<(Rc<ProgramTypes>, TypeId)>,
    source: Source,
) -> Found {
    Found {
        name: name.to_owned(),
        container: None,
        size: Some(size),
        id,
        library: None,
        certainty: Certainty::Low,
        source,
        cookie: 0,
        tail: None,
    }
}

/// The type, if the blocks are objects or arrays of it.
pub(super) fn fit(
    name: &str,
    size: u64,
    id: Option<(Rc<ProgramTypes>, TypeId)>,
    origin: &Origin,
    source: Source,
) -> Option<Fit> {
    let found = of_type(name, size, id, source);
    let is_exact = origin.each() == Some(size);
    (size > 0 && found.objects(&origin.values).is_some()).then_some(Fit { found, is_exact })
}

/// The type that debug information names, if the blocks are objects or arrays of it.
pub(super) fn fitting(
    target: &Target,
    origin: &Origin,
    files: &[Rc<ProgramTypes>],
    source: Source,
) -> Option<Fit> {
    let known = files.iter().find_map(|file| Some((file, file.find(&target.name)?)));
    let is_same = |size: u64| target.size.is_none_or(|own| own == size);
    match known.filter(|(_, known)| is_same(known.size)) {
        Some((file, known)) => {
            let id = known.id.map(|id| (file.clone(), id));
            fit(&target.name, known.size, id, origin, source)
        }
        None => {
            // Several types of that name: the one with the size that the unit says. Or one whose scope the unit names otherwise.
            let size = target.size?;
            let key = names::type_name_key(&target.name);
            let of_size = files.iter().find_map(|file| {
                let named = |is_it: &dyn Fn(&str) -> bool| {
                    let mut ids = file.with_plain_name(plain(&target.name));
                    ids.retain(|id| {
                        let name = names::type_name_key(&file.layouts.name(*id));
                        file.layouts.size(*id) == size && is_it(&name)
                    });
                    ids
                };
                let same = named(&|name| name == key).first().copied();
                let alone = || match named(&|name| name.ends_with(&format!("::{key}")))[..] {
                    [only] => Some(only),
                    _ => None,
                };
                Some((file.clone(), same.or_else(alone)?))
            });
            fit(&target.name, size, of_size, origin, source)
        }
    }
}
