//! Layouts of a program: where its functions and variables lie. Each layout is a linker script that the build passes on by
//! CFLAGS and LDFLAGS alone, so that any build system makes it, of any ABI.
//!
//! Whether a loop straddles a cache line, and which functions and variables share one, changes times by several per cent
//! (Mytkowicz et al., "Producing wrong data without doing anything obviously wrong!", ASPLOS 2009). A script has two
//! effects, like the linker's part of Stabilizer (Curtsinger & Berger, ASPLOS 2013):
//!
//! - Functions and variables come in another order. Their names are not known before the build: each `*(.text.*x)` takes
//!   the functions whose names end in one letter, and these classes are shuffled.
//! - The code begins at a random place within a page, and each class at a random multiple of 16 bytes, which is gcc's
//!   alignment of functions and loops on x86.
//!
//! `INSERT` adds the sections to the linker's own script (GNU ld manual, "Other Linker Script Commands"), so that
//! programs, shared libraries and static programs keep what is theirs.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;
use widthwise_experiment::rng::Rng;

/// For CFLAGS and CXXFLAGS: each function and variable in a section of its own. gcc generates the same instructions.
pub const COMPILER_OPTIONS: &str = "-ffunction-sections -fdata-sections";

/// The section that holds the functions.
const CODE: &str = ".text.layout";

/// What to do if the linker does not read the script: the end of a sentence.
pub const OTHER_LINKER: &str =
    "; the linker cannot read the layout's script: build with GNU ld or lld, or leave out --randomize-layout";

/// What a name may end in.
const ENDINGS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

/// Random offsets are multiples of this: the alignment of functions and loops.
const STEP: usize = 16;
/// Where code begins repeats after a page.
const PAGE: usize = 4096;
/// Within a class, offsets repeat after a cache line.
const LINE: usize = 64;

/// Which layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Its number, from 1. It is the same layout in every campaign, so that builds are found again.
    pub number: u32,
    /// The A/A control has layouts of its own, so that the detection floor has the noise of layouts.
    pub of_control: bool,
}

/// A linker script that cannot be used.
#[derive(Debug, Clone, Error)]
pub enum LayoutError {
    /// The script's path cannot be passed on.
    #[error("{}: layouts are passed to the linker by LDFLAGS, which cannot hold a path with {what:?}; `--archive FOLDER` names another folder", path.display())]
    Path {
        /// The folder.
        path: PathBuf,
        /// The character.
        what: char,
    },
    /// It could not be written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: String,
    },
}

impl Layout {
    /// The linker script: the same for the same layout.
    pub fn script(self) -> String {
        let role = if self.of_control { "control" } else { "variant" };
        let mut rng = Rng::named(u64::from(self.number), &["linker script", role]);
        let mut script = String::new();
        let mut line = |text: &str| {
            script.push_str(text);
            script.push('\n');
        };
        line("SECTIONS");
        line("{");
        line(&format!("  {CODE} :"));
        line("  {");
        line(&format!("    . = . + {};", STEP * rng.below(PAGE / STEP)));
        // Code that is rarely reached, and code that a profile calls hot, stay together, as in the linker's own script.
        line("    *(.text.unlikely .text.*_unlikely .text.unlikely.*)");
        line("    *(.text.exit .text.exit.*)");
        line("    *(.text.startup .text.startup.*)");
        for kind in [".text.hot", ".text"] {
            for ending in shuffled(&mut rng) {
                line(&format!("    . = . + {}; *({kind}.*{ending})", STEP * rng.below(LINE / STEP)));
            }
        }
        line("    *(.text.*)");
        line("  }");
        line("}");
        line("INSERT BEFORE .text;");
        for section in [".data", ".bss"] {
            line("SECTIONS");
            line("{");
            line(&format!("  {section}.layout :"));
            line("  {");
            for ending in shuffled(&mut rng) {
                line(&format!("    *({section}.*{ending})"));
            }
            line("  }");
            line("}");
            line(&format!("INSERT BEFORE {section};"));
        }
        script
    }

    /// Writes the script into the cache, and returns its absolute path. Its name has a digest of its content, so that a
    /// build with another script is another build.
    ///
    /// # Errors
    /// The folder's path cannot be part of LDFLAGS, or the file cannot be written.
    pub fn write(self, cache: &Path) -> Result<PathBuf, LayoutError> {
        let script = self.script();
        let digest = blake3::hash(script.as_bytes()).to_hex();
        let role = if self.of_control { "-control" } else { "" };
        let folder = cache.join("layouts");
        let file = folder.join(format!("{}{role}-{}.ld", self.number, &digest[..12]));
        let shown = file.to_string_lossy();
        if let Some(what) = shown.chars().find(|c| !(c.is_alphanumeric() || "/._-+@%=:".contains(*c))) {
            return Err(LayoutError::Path { path: cache.to_owned(), what });
        }
        let failed =
            |error: std::io::Error| LayoutError::File { path: file.clone(), error: error.to_string() };
        if fs::read(&file).is_ok_and(|known| known == script.as_bytes()) {
            return Ok(file);
        }
        fs::create_dir_all(&folder).map_err(failed)?;
        // Renamed into place: another process may read it.
        let partial = folder.join(format!("partial-{}", std::process::id()));
        fs::write(&partial, script).and_then(|()| fs::rename(&partial, &file)).map_err(failed)?;
        Ok(file)
    }
}

/// What LDFLAGS gets: the option that adds the script to the linker's own.
pub fn linker_option(script: &Path) -> String {
    let mut option = String::from("-Wl,-T,");
    // Writing to a String cannot fail.
    let _ = write!(option, "{}", script.display());
    option
}

/// Whether this ELF file, of a build with a layout, has one: the linker read the script.
pub fn has_layout(file: &Path) -> bool {
    widthwise_machine::elf::has_section(file, CODE)
}

fn shuffled(rng: &mut Rng) -> Vec<char> {
    let mut endings: Vec<char> = ENDINGS.chars().collect();
    for last in (1..endings.len()).rev() {
        endings.swap(last, rng.below(last + 1));
    }
    endings
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Layout = Layout { number: 1, of_control: false };

    #[test]
    fn a_layout_is_the_same_each_time_and_no_other_layouts() {
        let others = [Layout { number: 2, ..FIRST }, Layout { of_control: true, ..FIRST }];
        assert_eq!(FIRST.script(), FIRST.script());
        assert!(others.iter().all(|other| other.script() != FIRST.script()));
    }

    #[test]
    fn every_ending_has_its_class_of_functions_and_of_variables() {
        let script = FIRST.script();
        for ending in ENDINGS.chars() {
            for section in ["text.hot", "text", "data", "bss"] {
                assert_eq!(
                    script.matches(&format!("*(.{section}.*{ending})")).count(),
                    1,
                    "{section} {ending}"
                );
            }
        }
    }

    #[test]
    fn a_path_that_ldflags_cannot_hold_is_refused_with_the_fix() {
        for name in ["with space", "with,comma", "with'quote", "with$dollar"] {
            let error = FIRST.write(&Path::new("/nowhere").join(name)).unwrap_err();
            assert!(error.to_string().contains("--archive"), "{error}");
        }
    }
}
