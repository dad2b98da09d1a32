//! Placeholders: `{build}` and the like in commands.
//!
//! Only `{word}` with a word of small letters and `_` is one. `{{word}}` stands for the text `{word}`, `${WORD}` is the
//! shell's, and every other brace is unchanged, so shell functions and awk programs work.

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

/// The placeholders of runs that stand for an absolute path.
pub(crate) const FOLDERS: [&str; 4] = ["build", "source", "binary", "work"];

/// Every placeholder.
pub fn known() -> &'static [Placeholder] {
    PLACEHOLDERS
}

/// The words that a command of that stage may refer to.
pub fn allowed(stage: Stage) -> impl Iterator<Item = &'static str> {
    PLACEHOLDERS.iter().filter(move |p| p.allowed(stage)).map(|p| p.word)
}

impl Placeholder {
    /// Whether it has a value there.
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

/// Placeholders that stand for several words; the others are one, whatever is in it.
const LISTS: [&str; 6] = ["cc", "cxx", "cflags", "cxxflags", "ldflags", "ar"];

/// As [`fill`], for text that a shell will read: no value becomes part of the shell's own language.
///
/// A value without special characters is inserted literally. Any other is assigned to a variable before the text, and
/// the variable is inserted with suitable quotation marks: a shell does not parse the value of a variable.
pub fn fill_shell(text: &str, values: &BTreeMap<&str, String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut assigned: BTreeMap<&str, &str> = BTreeMap::new();
    let mut quoting = Quoting::default();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) | Piece::Literal(text) => {
                filled.push_str(text);
                quoting.read(text);
            }
            Piece::Placeholder(word) => match values.get(word) {
                Some(value) if is_plain(value, LISTS.contains(&word)) => filled.push_str(value),
                Some(value) => {
                    assigned.insert(word, value);
                    let name = variable(word);
                    filled.push_str(&match quoting.kind() {
                        Kind::None if LISTS.contains(&word) => format!("${{{name}}}"),
                        Kind::None => format!("\"${{{name}}}\""),
                        Kind::Double => format!("${{{name}}}"),
                        Kind::Single => format!("'\"${{{name}}}\"'"),
                    });
                }
                None => {
                    filled.push('{');
                    filled.push_str(word);
                    filled.push('}');
                }
            },
        }
    }
    let assignments: String = assigned
        .iter()
        .map(|(word, value)| format!("{}={}; ", variable(word), shell_words::quote(value)))
        .collect();
    assignments + &filled
}

fn variable(word: &str) -> String {
    format!("WIDTHWISE_{}", word.to_ascii_uppercase())
}

/// Whether a shell takes the value literally, with any quotation marks and without.
fn is_plain(value: &str, is_list: bool) -> bool {
    let plain = |c: char| {
        c.is_ascii_alphanumeric()
            || "_./+=:,@%^-".contains(c)
            || (c == ' ' && is_list)
            || !(c.is_ascii() || c.is_control())
    };
    (is_list || !value.is_empty()) && value.chars().all(plain)
}

/// The quotation state at a position of shell text (POSIX, "Shell Command Language", 2.2 and 2.6.3).
#[derive(Debug, Default)]
struct Quoting {
    /// The command substitutions around the position, each with the state that it began in.
    outer: Vec<Frame>,
    here: Frame,
    escaped: bool,
    comment: bool,
    /// The character before the place.
    before: Option<char>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Frame {
    single: bool,
    double: bool,
    backquoted: bool,
    parentheses: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    None,
    Double,
    Single,
}

impl Quoting {
    fn kind(&self) -> Kind {
        match self.here {
            Frame { single: true, .. } => Kind::Single,
            Frame { double: true, .. } => Kind::Double,
            _ => Kind::None,
        }
    }

    fn read(&mut self, text: &str) {
        for c in text.chars() {
            let before = self.before.replace(c);
            if self.comment {
                self.comment = c != '\n';
            } else if self.here.single {
                self.here.single = c != '\'';
            } else if std::mem::take(&mut self.escaped) {
            } else {
                self.step(c, before);
            }
        }
    }

    fn step(&mut self, c: char, before: Option<char>) {
        let double = self.here.double;
        match c {
            '\\' => self.escaped = true,
            '\'' if !double => self.here.single = true,
            '"' => self.here.double = !double,
            '#' if !double => self.comment = before.is_none_or(|c| c.is_whitespace() || ";&|(".contains(c)),
            '(' if before == Some('$') => self.enter(false),
            '(' if !double => self.here.parentheses += 1,
            ')' if !double && self.here.parentheses > 0 => self.here.parentheses -= 1,
            ')' if !double && !self.here.backquoted => self.leave(),
            '`' if self.here.backquoted => self.leave(),
            '`' => self.enter(true),
            _ => {}
        }
    }

    fn enter(&mut self, backquoted: bool) {
        let inner = Frame { backquoted, ..Frame::default() };
        self.outer.push(std::mem::replace(&mut self.here, inner));
    }

    fn leave(&mut self) {
        if let Some(outer) = self.outer.pop() {
            self.here = outer;
        }
    }
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

    /// What `sh` prints of `words`, each on a line, where {build} is `value`.
    fn printed(words: &str, value: &str) -> String {
        let text =
            fill_shell(&format!("printf '%s\\n' {words}"), &BTreeMap::from([("build", value.to_owned())]));
        let output = std::process::Command::new("sh").args(["-e", "-c", &text]).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{text}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_shell_takes_a_value_literally_in_any_quotation_marks() {
        for value in [
            "/plain/x-1.c",
            "/a b",
            "$(echo no)",
            "`echo no`",
            "\"",
            "'",
            "a;b & c",
            "*",
            "\\n",
            "#x",
            "é\nü",
            "~",
        ] {
            for place in [
                "{build}",
                "\"{build}\"",
                "'{build}'",
                "\"$(printf %s \"{build}\")\"",
                "x'y'{build} # it's",
                "\\'{build}",
            ] {
                let around = match place {
                    "x'y'{build} # it's" => "xy",
                    "\\'{build}" => "'",
                    _ => "",
                };
                assert_eq!(printed(place, value), format!("{around}{value}\n"), "{place}");
            }
        }
    }

    #[test]
    fn several_words_stay_several_and_text_without_special_values_is_not_touched() {
        let values = BTreeMap::from([("cc", "gcc -m32".to_owned()), ("cflags", "-DX=\"a\" -O2".to_owned())]);
        assert_eq!(fill_shell("{cc} -c", &values), "gcc -m32 -c");
        assert_eq!(fill_shell("{cflags}", &values), "WIDTHWISE_CFLAGS='-DX=\"a\" -O2'; ${WIDTHWISE_CFLAGS}");
    }

    proptest! {
        #[test]
        fn a_literal_text_survives_filling(text in "([{}$]|build|\\{build\\}|\\{x\\}| |é){0,12}") {
            prop_assert_eq!(filled(&literal(&text)), text);
        }
    }
}
