//! Layouts of two programs: the section of an explanation, and one type drawn side by side.

use crate::explain::close_names::close_names;
use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::Path;

use widthwise_anatomy::layout::drawing::{draw, find};
use widthwise_anatomy::layout::{self, Layouts, TypeDifference, TypeId, Weights};
use widthwise_report::explanation::layout::{drawn, Drawn, Layout};
use widthwise_report::text::Palette;

use crate::failure::Failure;
use crate::output;

/// Types that are drawn.
const MOST_DRAWN: usize = 4;

/// The section, and the types that matter most as drawings; or, where a program's types are not known, one sentence that
/// says why. `objects` are the live objects of each type at the heap's peak.
pub fn section<'n>(
    names: [&'n str; 2],
    paths: [&Path; 2],
    top: usize,
    objects: &Weights,
) -> Result<(Layout<'n>, Vec<Drawn>), String> {
    let [baseline, variant] = read(names, paths)?;
    let mut remarks = Vec::new();
    for (name, layouts) in names.iter().zip([&baseline, &variant]) {
        for unread in &layouts.unread {
            let times = if unread.count > 1 { format!(" ({} times)", unread.count) } else { String::new() };
            remarks.push(format!("{name}: {}{times}.", unread.reason));
        }
    }
    let comparison = layout::compare(&baseline, &variant, objects);
    let matters = |of: &&TypeDifference| objects.is_empty() || of.objects.is_some_and(|objects| objects > 0);
    let drawn = |of: &TypeDifference| {
        let drawing = draw(&baseline, &variant, of)?;
        Some(Drawn { difference: of.clone(), drawing })
    };
    let drawn: Vec<Drawn> =
        comparison.differences.iter().filter(matters).filter_map(drawn).take(MOST_DRAWN).collect();
    Ok((Layout { names, comparison, top, remarks }, drawn))
}

/// Prints the type with that name: the qualified one, or the only one that ends with it.
///
/// # Errors
/// A program has no debug information or no such type, or several types are meant.
pub fn show(names: [&str; 2], paths: [&Path; 2], wanted: &str) -> Result<(), Failure> {
    let sides =
        read(names, paths).map_err(|reason| Failure::request(format!("--type {wanted}: {reason}")))?;
    let [baseline, variant] = &sides;
    let a = find_type(names[0], baseline, wanted)?;
    // The variant may write the same type's name in another way.
    let own = baseline.aggregate(a).map_or(wanted, |aggregate| &aggregate.name);
    let b = find_type(names[1], variant, own)?;
    let drawing = layout::difference(baseline, a, variant, b)
        .and_then(|difference| draw(baseline, variant, &difference).map(|drawing| (difference, drawing)));
    let (difference, drawing) = drawing.ok_or_else(|| {
        Failure::request(format!("--type {wanted}: it is no structure, class or union that can be drawn"))
    })?;
    output::print(&drawn(names, &difference, &drawing, &Palette::coloured()))
}

/// The types of both programs.
fn read(names: [&str; 2], paths: [&Path; 2]) -> Result<[Layouts; 2], String> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let read = |path: &Path| layout::read(path, threads).map_err(|error| error.to_string());
    let sides = [read(paths[0])?, read(paths[1])?];
    let without: Vec<&str> =
        names.iter().zip(&sides).filter(|(_, side)| side.units == 0).map(|(name, _)| *name).collect();
    match without.as_slice() {
        [] => Ok(sides),
        names => Err(format!(
            "{} no debug information; build with -g, or install the program's -dbgsym package",
            match names {
                [one] => format!("{one} has"),
                several => format!("{} have", several.join(" and ")),
            }
        )),
    }
}

fn find_type(program: &str, layouts: &Layouts, name: &str) -> Result<TypeId, Failure> {
    find(layouts, name).map_err(|several| {
        let different: BTreeSet<&str> = several.iter().map(String::as_str).collect();
        let reason = match (several.len(), different.len()) {
            (0, _) => {
                let all = layouts.aggregates.iter().filter_map(|id| layouts.aggregate(*id));
                let names = all.map(|aggregate| aggregate.name.to_string()).collect();
                format!(
                    "{program} has no structure, class or union of that name{}",
                    close_names(name, &names)
                )
            }
            (count, 1) => format!("{program} has {count} layouts of that name, so that none is drawn"),
            (count, _) => format!(
                "{program} has {count} types of that name; name one in full: {}",
                different.into_iter().take(5).collect::<Vec<_>>().join("; ")
            ),
        };
        Failure::request(format!("--type {name}: {reason}"))
    })
}
