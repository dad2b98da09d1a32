//! The dynamic section: the libraries that a program asks for, and where it looks for them.

use super::{section_type, Elf};

const NEEDED: u64 = 1;
const RPATH: u64 = 15;
const RUNPATH: u64 = 29;

/// What a file asks of the dynamic linker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// Names of libraries (DT_NEEDED), in the order of the search.
    pub needed: Vec<String>,
    /// Folders in which it looks first (DT_RUNPATH, or DT_RPATH if there is none), `$ORIGIN` in them as written.
    pub search: Vec<String>,
}

impl Elf<'_> {
    /// The libraries that the file asks for; nothing for a static one.
    pub fn dynamic(&self) -> Dynamic {
        let mut found = Dynamic::default();
        let of_kind = |section: &&super::Section| section.kind == section_type::DYNAMIC;
        let Some(section) = self.sections.iter().find(of_kind) else { return found };
        let strings = self.sections.get(section.link as usize).map(|strings| self.data(strings));
        let text = |at: u64| {
            let bytes = usize::try_from(at).ok().and_then(|at| strings?.get(at..)).unwrap_or_default();
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        let mut rpath = Vec::new();
        let (data, word) = (self.data(section), self.word() as usize);
        for at in (0..data.len()).step_by(2 * word) {
            let (Some(tag), Some(value)) = (self.word_at(data, at), self.word_at(data, at + word)) else {
                break;
            };
            match tag {
                0 => break,
                NEEDED => found.needed.push(text(value)),
                RPATH => rpath.extend(text(value).split(':').map(str::to_owned)),
                RUNPATH => found.search.extend(text(value).split(':').map(str::to_owned)),
                _ => {}
            }
        }
        if found.search.is_empty() {
            found.search = rpath;
        }
        found
    }
}
