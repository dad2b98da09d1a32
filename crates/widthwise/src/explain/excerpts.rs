//! Why the variants of a campaign differ from its baseline, read for its page.

use std::path::{Path, PathBuf};

use widthwise_anatomy::heap::Symbols;
use widthwise_archive::Archive;
use widthwise_report::excerpt::Excerpt;
use widthwise_report::html::explanation as html;
use widthwise_report::Comparison;

use super::heaps::Frames;
use super::{page, side_logs};
use crate::failure::Failure;
use crate::load_report::heap;
use crate::output;

/// The most variants that a campaign's page explains.
const MOST: usize = 4;
/// Rows of the tables in a page's texts.
const TOP: usize = 15;

/// An excerpt for each variant whose heap was recorded beside the baseline's. With `beside`, the whole of each is written to a
/// file in that folder.
///
/// # Errors
/// It was interrupted, or a file cannot be written.
pub fn of(
    archive: &Archive,
    comparison: &Comparison,
    beside: Option<&Path>,
) -> Result<Vec<Excerpt>, Failure> {
    let metadata = archive.metadata();
    let wanted = side_logs::wanted(&[], archive.folder())?;
    let baseline = &comparison.campaign.experiment.baseline;
    let is_readable = |name: &str| {
        let variant = metadata.variants.iter().find(|variant| variant.name == name);
        variant.is_some_and(|variant| heap::is_readable(archive.folder(), name, &variant.slug))
    };
    let mut excerpts = Vec::new();
    let mut symbols = Symbols::default();
    if !is_readable(baseline) {
        return Ok(excerpts);
    }
    for name in wanted.others().filter(|name| is_readable(name)).take(MOST) {
        let file = metadata.variants.iter().find(|variant| variant.name == *name);
        let file = file.map(|variant| format!("why-{}.html", variant.slug)).filter(|_| beside.is_some());
        let path: Option<PathBuf> = beside.zip(file.as_ref()).map(|(folder, file)| folder.join(file));
        let frames = Frames { skip: &[], keep_wrappers: false };
        let request = page::Request { frames, top: TOP };
        let names = [baseline.clone(), name.clone()];
        let command = format!(
            "widthwise explain {} --campaign {} --html=FILE",
            shell_words::join(&names),
            output::word(Path::new(&comparison.campaign.folder))
        );
        let excerpt = page::explained(&wanted, comparison, &names, &request, &mut symbols, |page| {
            if let Some(path) = &path {
                output::keep(path, html::page(page).as_bytes())?;
            }
            Ok::<_, Failure>(html::excerpt(page, file, command))
        })?;
        excerpts.push(excerpt?);
    }
    Ok(excerpts)
}
