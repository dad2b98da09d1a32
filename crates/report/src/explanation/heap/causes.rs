//! The parts of a heap's difference: by type and site where types are known, otherwise by site. They sum to it.

use std::collections::BTreeMap;

use widthwise_anatomy::heap::site::{Pair, Site};
use widthwise_anatomy::heap::types::{Cause, TypedPair};
use widthwise_anatomy::heap::Values;
use widthwise_experiment::units::thousands;

use crate::explanation::model::{Measured, Part};
use crate::heap::{short_name, short_type};
use crate::sanitize;
use widthwise_anatomy::Certainty;

/// The parts of the blocks of one type at one site, of that certainty at most. Parts of one cause in members of several types are
/// one.
pub fn of_type(measured: &Measured, pair: &TypedPair, most: Certainty) -> Vec<Part> {
    let place = sanitize::line(&pair.site.location());
    let mut sums: BTreeMap<(String, Certainty, Option<String>), i64> = BTreeMap::new();
    for part in &pair.parts {
        let (cause, own) = cause(pair, &part.cause, part.bytes);
        let own = own.unwrap_or(part.certainty);
        let is_layout = matches!(part.cause, Cause::Layout { .. });
        let layout_of = pair.ty.as_ref().filter(|_| is_layout).map(short_type);
        *sums.entry((cause, own.min(most), layout_of)).or_default() += part.bytes;
    }
    let detail = typed_detail(pair);
    sums.into_iter()
        .filter(|(_, bytes)| *bytes != 0)
        .map(|((cause, certainty, layout_of), bytes)| {
            let part = measured.part(cause, place.clone(), bytes, certainty);
            part.with_detail(detail.clone()).with_layout_of(layout_of)
        })
        .collect()
}

/// The cause in words, and its certainty where it is not the part's own.
fn cause(pair: &TypedPair, cause: &Cause, bytes: i64) -> (String, Option<Certainty>) {
    let what = match &pair.ty {
        Some(ty) => short_type(ty),
        None => format!("blocks that {} allocates", short(&pair.site.function)),
    };
    match cause {
        Cause::Layout { cause, .. } => (format!("{cause} in {what}"), None),
        Cause::Objects | Cause::Blocks if bytes < 0 => (format!("fewer {what}"), None),
        Cause::Objects | Cause::Blocks => (format!("more {what}"), None),
        Cause::Library(_) => (cause.to_string(), None),
        Cause::ArrayLength => (format!("{cause} before {what}"), None),
        Cause::OneSide => (format!("{what}, at the peak of one of the two only"), Some(Certainty::Low)),
        // The site is known, and the reason of its blocks' size is not.
        Cause::Unexplained => match (pair.a.values.peak_count, pair.b.values.peak_count) {
            (a, b) if a > 0 && a == b => {
                let word = if bytes < 0 { "smaller" } else { "larger" };
                (format!("{word} {what}"), Some(Certainty::Low))
            }
            _ => (format!("{what}, of other sizes and in another number"), Some(Certainty::Low)),
        },
    }
}

/// A name in one readable line.
pub fn short(name: &str) -> String {
    sanitize::line(&short_name(name))
}

/// The parts of a site: blocks of another size, and another number of blocks. They are of that certainty at most.
pub fn of_site(measured: &Measured, pair: &Pair, most: Certainty) -> Vec<Part> {
    let (a, b) = (&pair.a, &pair.b);
    let what = what(&pair.site);
    let place = sanitize::line(&pair.site.location());
    let part = |cause: String, amount: i128, own: Certainty| {
        let amount = i64::try_from(amount).unwrap_or(i64::MAX);
        measured.part(cause, place.clone(), amount, own.min(most)).with_detail(detail(a, b))
    };
    let whole = -pair.saving();
    if a.peak_count == 0 || b.peak_count == 0 {
        return vec![part(
            format!("blocks {what}, at the peak of one of the two only"),
            whole,
            Certainty::Low,
        )];
    }
    // The baseline's blocks at the variant's size, and then the other number of them.
    let size = i128::from(b.peak_bytes) / i128::from(b.peak_count);
    let number = (i128::from(b.peak_count) - i128::from(a.peak_count)) * size;
    let word = |amount: i128, less: &'static str, more| if amount < 0 { less } else { more };
    [
        (whole - number, word(whole - number, "smaller blocks", "larger blocks")),
        (number, word(number, "fewer blocks", "more blocks")),
    ]
    .into_iter()
    .filter(|(amount, _)| *amount != 0)
    .map(|(amount, words)| part(format!("{words} {what}"), amount, Certainty::High))
    .collect()
}

fn what(site: &Site) -> String {
    match &site.made {
        Some(made) => format!("of {}", short(made)),
        None => format!("that {} allocates", short(&site.function)),
    }
}

/// `72 → 40 bytes × 620 000` objects.
fn typed_detail(pair: &TypedPair) -> String {
    // Of objects with a tail, the blocks have other sizes.
    let has_tail = pair.ty.as_ref().is_some_and(|ty| ty.behind.is_some());
    match (pair.a.size, pair.b.size, pair.a.objects, pair.b.objects) {
        _ if has_tail => detail(&pair.a.values, &pair.b.values),
        (Some(a), Some(b), Some(objects_a), Some(objects_b)) => {
            format!("{} bytes × {}", both(thousands(a as i64), thousands(b as i64)), {
                both(thousands(objects_a as i64), thousands(objects_b as i64))
            })
        }
        _ => detail(&pair.a.values, &pair.b.values),
    }
}

/// `72 → 40 bytes × 620 000` blocks; the mean size.
pub fn detail(a: &Values, b: &Values) -> String {
    let mean = |values: &Values| match values.peak_count {
        0 => "–".to_owned(),
        count => thousands((values.peak_bytes as f64 / count as f64).round() as i64),
    };
    let count = |values: &Values| thousands(values.peak_count as i64);
    format!("{} bytes × {}", both(mean(a), mean(b)), both(count(a), count(b)))
}

fn both(one: String, other: String) -> String {
    if one == other {
        one
    } else {
        format!("{one} → {other}")
    }
}
