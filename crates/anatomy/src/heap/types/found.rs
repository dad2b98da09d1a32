//! A type that blocks may have, with its layout in the program that they are of.

use std::rc::Rc;

use super::model::Source;
use super::program_types::ProgramTypes;
use crate::certainty::Certainty;
use crate::layout::TypeId;
use crate::names;
use widthwise_heap_log::profile::Values;
use widthwise_heap_log::sizes::Sizes;

/// A type that blocks may have.
#[derive(Debug, Clone)]
pub struct Found {
    /// As debug information or the demangled function names it.
    pub name: String,
    /// The container that has it as elements.
    pub container: Option<String>,
    /// Bytes of one object; none if it is not known.
    pub size: Option<u64>,
    /// The type, where it is a structure, class or union of that file.
    pub id: Option<(Rc<ProgramTypes>, TypeId)>,
    /// A library's own buffer, with that name.
    pub library: Option<&'static str>,
    /// How sure it is.
    pub certainty: Certainty,
    /// What it was found by.
    pub source: Source,
    /// Bytes before the first element of each block, where `new T[n]` stores its length.
    pub cookie: u64,
    /// What each block has behind its object.
    pub tail: Option<Tail>,
}

/// What follows an object in its block, and is the rest of it.
#[derive(Debug, Clone)]
pub struct Tail {
    /// Where it begins: the object's size, or less, where the object's padding is part of it.
    pub offset: u64,
    /// The type of its elements; bytes, where nothing names it.
    pub element: Box<Found>,
    /// The line asks for one such object and such elements, and for nothing else.
    pub is_all_named: bool,
}

impl Found {
    /// Objects in these blocks. None if the bytes of any block are no multiple of the type's size, or would be an array of a type that
    /// has none.
    pub fn objects(&self, values: &Values) -> Option<u64> {
        if self.tail.is_some() {
            return self.elements_behind(values).map(|_| values.peak_count);
        }
        let size = self.size.filter(|size| *size > 0 && values.sizes.are_multiples(*size, self.cookie))?;
        let bytes = values.peak_bytes.checked_sub(self.cookie.checked_mul(values.peak_count)?)?;
        let objects = bytes.is_multiple_of(size).then(|| bytes / size)?;
        // Behind an object that ends in a flexible array member are that array's elements.
        let is_flexible = |(file, id): &(Rc<ProgramTypes>, TypeId)| file.layouts.ends_in_flexible_array(*id);
        let is_array = objects != values.peak_count;
        (!is_array || !self.id.as_ref().is_some_and(is_flexible)).then_some(objects)
    }

    /// Elements behind the objects, one of which each block has. None if the bytes behind any of them are no multiple of the element's
    /// size, or nothing is behind them.
    pub fn elements_behind(&self, values: &Values) -> Option<u64> {
        let tail = self.tail.as_ref()?;
        let each = tail.element.size.filter(|each| *each > 0)?;
        let bytes = values.peak_bytes.checked_sub(tail.offset.checked_mul(values.peak_count)?)?;
        (values.sizes.are_multiples(each, tail.offset) && bytes.is_multiple_of(each)).then(|| bytes / each)
    }

    /// Whether the size is that of the blocks, which the object is at the beginning of: that of the object is not known.
    pub fn has_size_of_blocks(&self) -> bool {
        self.source == Source::VirtualTable && self.id.is_none()
    }

    /// Whether each of these blocks is one object.
    pub fn is_object(&self, values: &Values) -> bool {
        self.cookie == 0 && self.objects(values) == Some(values.peak_count)
    }

    /// Whether each of these blocks has one of two numbers of objects.
    pub fn is_one_of(&self, counts: [u64; 2], values: &Values) -> bool {
        let is_each = |count: &u64| {
            let is_one_size =
                values.sizes.only().is_some() || values.sizes == Sizes::None || values.peak_count == 1;
            let all = values.peak_count.checked_mul(*count);
            self.cookie == 0
                && is_one_size
                && self.objects(values).is_some_and(|objects| Some(objects) == all)
        };
        counts.iter().any(is_each)
    }

    /// Whether both are one type. The name of one may leave out default template arguments.
    pub fn is_same_type(&self, other: &Found) -> bool {
        let is_of_one_file = match (&self.id, &other.id) {
            (Some((file, id)), Some((other_file, other_id))) => {
                Rc::ptr_eq(file, other_file) && id == other_id
            }
            _ => false,
        };
        is_of_one_file || names::type_name_key(&self.name) == names::type_name_key(&other.name)
    }
}
