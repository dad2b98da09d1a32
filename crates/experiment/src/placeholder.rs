//! Placeholders: `{build}` and the like in commands.
//!
//! Only `{word}` with a word of small letters and `_` is one. `{{word}}` stands for the text `{word}`, `${WORD}` is the
//! shell's, and every other brace is left as it is: shell functions and awk programs keep working without change.

use std::collections::BTreeMap;

/// What a command is for, which decides what it can refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Builds a variant.
    Build,
    /// Runs it, or does something before or after a run.
    Run,
    /// No command, but an environment variable of a run: it can refer to what the run command can.
    Variable,
}

impl Stage {
    /// The noun of a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            Stage::Build => "build command",
            Stage::Run => "run command",
            Stage::Variable => "variable of a run",
        }
    }
}

/// One placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placeholder {
    /// The word between the braces.
    pub word: &'static str,
    /// Known to build commands.
    pub in_build: bool,
    /// Known to run commands.
    pub in_run: bool,
    /// One sentence: what it stands for.
    pub about: &'static str,
}

macro_rules! placeholders {
    ($($word:literal $in_build:literal $in_run:literal $about:literal;)*) => {
        &[$(Placeholder { word: $word, in_build: $in_build, in_run: $in_run, about: $about }),*]
    };
}

#[rustfmt::skip]
static PLACEHOLDERS: &[Placeholder] = placeholders![
    "build"    true  true  "the variant's build folder";
    "source"   true  true  "the source file or folder";
    "binary"   false true  "the finished binary";
    "work"     true  true  "the working directory of the command";
    "jobs"     true  false "how many jobs a build may use";
    "variant"  true  true  "the variant's name";
    "abi"      true  true  "the variant's ABI";
    "cc"       true  false "the C compiler, with the options that select the ABI";
    "cxx"      true  false "the C++ compiler, likewise";
    "cflags"   true  false "the options for C";
    "cxxflags" true  false "the options for C++";
    "ldflags"  true  false "the options for linking";
    "ar"       true  false "the archiver";
    "processes" false true "scale: how many children or threads the program is to start; 1 for a job";
    "index"    false true  "scale: the number of a job, from 0";
    "events"   false true  "scale: the events of the program, or of a job";
    "first"    false true  "scale: the number of a job's first event, from 0";
];

/// Every placeholder.
pub fn known() -> &'static [Placeholder] {
    PLACEHOLDERS
}

/// The words that a command of that stage may refer to.
pub fn allowed(stage: Stage) -> impl Iterator<Item = &'static str> {
    PLACEHOLDERS.iter().filter(move |p| p.allowed(stage)).map(|p| p.word)
}

impl Placeholder {
    /// Whether it means something there.
    pub fn allowed(&self, stage: Stage) -> bool {
        match stage {
            Stage::Build => self.in_build,
            Stage::Run | Stage::Variable => self.in_run,
        }
    }
}

/// A piece of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    /// Text that stays as it is.
    Text(&'a str),
    /// `{word}`.
    Placeholder(&'a str),
    /// `{{word}}`, with its inner `{word}`.
    Literal(&'a str),
}

/// Cuts a command into pieces.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find(['{', '$']) {
        let brace = at + found;
        let rest = &text[brace..];
        let (piece, length) = if rest.starts_with("${") {
            (None, 2)
        } else if let Some(inner) =
            rest.strip_prefix('{').and_then(braced).filter(|inner| rest[1 + inner.len()..].starts_with('}'))
        {
            (Some(Piece::Literal(inner)), inner.len() + 2)
        } else if let Some(whole) = braced(rest) {
            (Some(Piece::Placeholder(&whole[1..whole.len() - 1])), whole.len())
        } else {
            (None, 1)
        };
        if let Some(piece) = piece {
            pieces.push(Piece::Text(&text[start..brace]));
            pieces.push(piece);
            start = brace + length;
        }
        at = brace + length;
    }
    pieces.push(Piece::Text(&text[start..]));
    pieces
}

/// The `{word}` with which `text` begins, braces and all.
fn braced(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('{')?;
    let end = inner.find(|c: char| !(c.is_ascii_lowercase() || c == '_'))?;
    (end > 0 && inner[end..].starts_with('}')).then(|| &text[..end + 2])
}

/// The words of the placeholders that a command uses, in order.
pub fn used(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Placeholder(word) => Some(word),
        _ => None,
    })
}

/// Puts values in the places of the placeholders. A placeholder without a value stays as it is.
pub fn fill(text: &str, values: &BTreeMap<&str, String>) -> String {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) | Piece::Literal(text) => filled.push_str(text),
            Piece::Placeholder(word) => match values.get(word) {
                Some(value) => filled.push_str(value),
                None => {
                    filled.push('{');
                    filled.push_str(word);
                    filled.push('}');
                }
            },
        }
    }
    filled
}

/// Writes a text so that [`fill`] gives it back as it is, whatever braces it has.
pub fn literal(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => escaped.push_str(text),
            Piece::Placeholder(word) => escaped.push_str(&format!("{{{{{word}}}}}")),
            Piece::Literal(inner) => escaped.push_str(&format!("{{{{{inner}}}}}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(text: &str) -> String {
        fill(text, &BTreeMap::from([("build", "B".to_owned()), ("cc", "gcc".to_owned())]))
    }

    #[test]
    fn placeholders_are_filled_and_the_shells_own_braces_are_left_alone() {
        assert_eq!(filled("{build}/prog --cc={cc}"), "B/prog --cc=gcc");
        assert_eq!(filled("echo ${build} ${CC:-${cc}}"), "echo ${build} ${CC:-${cc}}");
        assert_eq!(
            filled("f() { { a; }; }; awk '{if(x){y=1}}' {a,b} {}"),
            "f() { { a; }; }; awk '{if(x){y=1}}' {a,b} {}"
        );
        assert_eq!(filled("{build"), "{build");
    }

    #[test]
    fn doubled_braces_are_the_text_itself() {
        assert_eq!(filled("awk '{{build}}'"), "awk '{build}'");
        assert_eq!(filled("{{{build}}}"), "{{build}}");
        assert_eq!(filled("{{build}"), "{B");
        assert_eq!(filled("{build}}"), "B}");
    }

    #[test]
    fn a_placeholder_without_a_value_stays() {
        assert_eq!(filled("{work}/x"), "{work}/x");
    }

    proptest! {
        #[test]
        fn a_literal_text_survives_filling(text in "([{}$]|build|\\{build\\}|\\{x\\}| |é){0,12}") {
            prop_assert_eq!(filled(&literal(&text)), text);
        }
    }
}
