//! Two allocation sites, one of each side, that are one: the compiler inlined or left out another frame.

use widthwise_anatomy::heap::types::TypedPair;
use widthwise_anatomy::heap::Values;
use widthwise_anatomy::Certainty;

use super::causes::{detail, short};
use crate::explanation::model::{Measured, Part};
use crate::sanitize;

/// The blocks of one source file, all of one size, at a site of each side that the other lacks: one site in both, of which the
/// compiler inlined or left out another frame.
pub fn is_moved(a: &TypedPair, b: &TypedPair) -> bool {
    let each = |values: &Values| {
        let each = values.peak_bytes.checked_div(values.peak_count)?;
        (each * values.peak_count == values.peak_bytes).then_some(each)
    };
    let is_single = a.b.values.peak_count == 0 && b.a.values.peak_count == 0;
    let file = |pair: &TypedPair| pair.site.location().split(':').next().map(str::to_owned);
    let (size, other) = (each(&a.a.values), each(&b.b.values));
    let has_lines = a.site.line.is_some() && b.site.line.is_some();
    is_single
        && a.ty.is_none()
        && b.ty.is_none()
        && has_lines
        && size.is_some()
        && size == other
        && file(a) == file(b)
}

/// The part of such blocks: another number of them.
pub fn of_moved(measured: &Measured, a: &TypedPair, b: &TypedPair, most: Certainty) -> Part {
    let bytes = a.difference().saturating_add(b.difference());
    let word = if bytes < 0 { "fewer" } else { "more" };
    let cause =
        format!("{word} blocks that {} and {} allocate", short(&a.site.function), short(&b.site.function));
    let place = sanitize::line(&a.site.location());
    measured
        .part(cause, place, bytes, most.min(Certainty::Medium))
        .with_detail(detail(&a.a.values, &b.b.values))
}
