//! The recordings of a campaign's heaps, read for its page.

use std::collections::BTreeMap;
use std::path::Path;

use widthwise_anatomy::heap::Symbols;
use widthwise_archive::Archive;
use widthwise_experiment::{Role, VariantStatus};
use widthwise_report::heap::{Heap, Recorded};

use crate::explain::reading;
use crate::explain::side_logs::{self, Source};
use crate::output::short;
use crate::runs_of_their_own;

/// Compressed logs of all recordings of one variant; a page is not worth minutes of reading, and `explain` reads them when asked.
const MOST_BYTES: u64 = 128 << 20;

/// What there is of each variant; nothing where it was not requested.
pub fn recorded(archive: &Archive, statuses: &BTreeMap<String, VariantStatus>) -> Vec<Recorded> {
    let (metadata, campaign) = (archive.metadata(), archive.folder());
    let wanted = campaign.join("heap").is_dir()
        || metadata.command.iter().any(|word| word == "--heap" || word.starts_with("--heap="));
    let mut symbols = Symbols::default();
    let variants = metadata.variants.iter().filter(|variant| wanted && variant.role != Role::Control);
    let read = variants.map(|variant| {
        let heap = heap(archive, statuses, &variant.name, &variant.slug, &mut symbols);
        Recorded { variant: variant.name.clone(), heap }
    });
    read.collect()
}

fn heap(
    archive: &Archive,
    statuses: &BTreeMap<String, VariantStatus>,
    name: &str,
    slug: &str,
    symbols: &mut Symbols,
) -> Result<Heap, String> {
    let folder = short(archive.folder());
    let Some(source) = side_logs::recorded(archive.folder(), name, slug) else {
        let status = statuses.get(name).cloned().unwrap_or_default();
        let needed = runs_of_their_own::needed(archive.folder(), "--heap", &status);
        return Err(match runs_of_their_own::obstacle(&status) {
            Some(why) => format!("the heap was not recorded ({why}); {needed} records it"),
            None => format!(
                "the heap was not recorded, or its logs are gone from {folder}/heap; {needed} records it"
            ),
        });
    };
    if let Some(reason) = source.refused() {
        return Err(format!("the heap could not be recorded: {reason}"));
    }
    if !source.has_logs() {
        return Err(format!("the logs are gone from {folder}/heap"));
    }
    if size(&source) > MOST_BYTES {
        return Err(format!(
            "the logs are too large to be read for this page; widthwise explain --heap --campaign {folder} --html=FILE draws them"
        ));
    }
    let read = reading::read(&source, symbols).map_err(|error| error.message().to_owned())?;
    Ok(Heap { program: read.program, profile: read.profile, side: read.side })
}

/// Compressed bytes of all logs of a variant.
fn size(source: &Source) -> u64 {
    let logs = source.recordings.iter().flat_map(|recorded| &recorded.logs);
    logs.filter_map(|log| Some(log.metadata().ok()?.len())).sum()
}

/// Whether a variant's heap was recorded, and its logs are small enough to be read for a page.
pub fn is_readable(campaign: &Path, name: &str, slug: &str) -> bool {
    let source = side_logs::recorded(campaign, name, slug);
    source.is_some_and(|source| source.has_logs() && size(&source) <= MOST_BYTES)
}
