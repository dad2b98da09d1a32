//! The output of a run: its standard output or the files it wrote, filtered, as a digest.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use widthwise_experiment::model::OutputCheck;

use crate::output::earlier::Earlier;
use crate::output::filter::pass_through;
use crate::run::reported;

/// Reads outputs and caches what the filter made of each, since most runs print the same.
#[derive(Debug, Default)]
pub struct Reader {
    filtered: HashMap<String, String>,
}

impl Reader {
    /// The digest of an output; `keep` gives the path for the filtered text if it is new. A file that is still what it was
    /// `earlier` is not of this run.
    ///
    /// # Errors
    /// The program did not write a named file, or a filter failed, as a sentence.
    pub fn digest(
        &mut self,
        check: &OutputCheck,
        stdout: &Path,
        directory: &Path,
        earlier: &Earlier,
        keep: Option<&Path>,
    ) -> Result<String, String> {
        let mut raw = raw(check, stdout, directory, earlier)?;
        if check.without_metrics && check.files.is_empty() {
            raw = reported::without_report(&raw);
        }
        let raw_digest = blake3::hash(&raw).to_hex()[..32].to_owned();
        if keep.is_none() {
            if let Some(known) = self.filtered.get(&raw_digest) {
                return Ok(known.clone());
            }
        }
        let text = match &check.filter {
            Some(filter) => pass_through(filter, &raw, directory)?,
            None => raw,
        };
        let digest = blake3::hash(&text).to_hex()[..32].to_owned();
        if let Some(path) = keep {
            std::fs::write(path, &text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        self.filtered.insert(raw_digest, digest.clone());
        Ok(digest)
    }
}

fn raw(check: &OutputCheck, stdout: &Path, directory: &Path, earlier: &Earlier) -> Result<Vec<u8>, String> {
    if check.files.is_empty() {
        return std::fs::read(stdout).map_err(|error| format!("{}: {error}", stdout.display()));
    }
    let mut all = Vec::new();
    for file in &check.files {
        let path = directory.join(file);
        let mut opened = std::fs::File::open(&path)
            .map_err(|error| format!("it did not write the file {}: {error}", file.display()))?;
        if earlier.has(&path) {
            return Err(format!(
                "it did not write the file {}, which was there before the run: `--directory fresh` begins without it",
                file.display()
            ));
        }
        if check.files.len() > 1 {
            all.extend(format!("==> {} <==\n", file.display()).bytes());
        }
        opened.read_to_end(&mut all).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(all)
}

/// Where a variant's first output is stored.
pub fn kept(folder: &Path, slug: &str) -> PathBuf {
    folder.join("output").join(slug)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_decides_what_is_compared_and_its_failure_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("stdout");
        let check = |filter: &str| OutputCheck { filter: Some(filter.into()), ..OutputCheck::default() };
        let digest = |text: &str, filter: &str| {
            std::fs::write(&out, text).unwrap();
            Reader::default().digest(&check(filter), &out, folder.path(), &Earlier::default(), None)
        };
        assert_eq!(digest("x 1s\n", "sed 's/[0-9]*s//'"), digest("x 2s\n", "sed 's/[0-9]*s//'"));
        assert_ne!(digest("x 1s\n", "cat"), digest("x 2s\n", "cat"));
        assert!(digest("x", "exit 3").unwrap_err().contains("failed"));
    }
}
