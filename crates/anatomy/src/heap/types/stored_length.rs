//! The number of elements that `new T[n]` stores before the first one (Itanium C++ ABI, 2.7).

use super::found::Found;
use crate::certainty::Certainty;
use crate::layout::Destructor;
use widthwise_heap_log::profile::Values;

/// The type as the elements of blocks that `new T[n]` makes, if their size fits it. Only a type with a destructor has the length before
/// the first element, as large as the alignment and at least as `size_t`. It may be as large as an element, so that both fit.
pub(super) fn of_new_array(found: Found, values: &Values) -> Option<Found> {
    let without = Found { cookie: 0, ..found };
    let Some((file, id)) = &without.id else {
        // Numbers and pointers.
        let fits = without.objects(values).is_some();
        return fits.then_some(Found { certainty: Certainty::High, ..without });
    };
    let cookie = file.layouts.alignment(*id).max(u64::from(file.layouts.address_size));
    let with = Found { cookie, ..without.clone() };
    let fits = [&without, &with].map(|found| found.objects(values).is_some());
    let (found, certainty) = match (file.layouts.destructor(*id), fits) {
        (Destructor::NonTrivial, [_, true]) => (with, Certainty::High),
        (Destructor::Trivial, [true, _]) => (without, Certainty::High),
        (Destructor::Unknown, [true, false]) => (without, Certainty::Medium),
        (Destructor::Unknown, [false, true]) => (with, Certainty::Medium),
        // What fits in the other way alone is of another type of the line; in both, the number is not known.
        _ => return None,
    };
    Some(Found { certainty, ..found })
}
