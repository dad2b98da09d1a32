//! Parses a header: its constants and structures, with the structures' sizes checked against the header's own assertions.

use std::fmt;

/// Why a header is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.reason)
    }
}

impl std::error::Error for HeaderError {}

/// A constant's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    /// The text between the quotes, its escapes as they are written: those of C that are used here are Rust's too.
    Text(String),
}

/// A field's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scalar {
    /// Rust's name for it.
    pub rust: &'static str,
    /// Bytes.
    pub size: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub scalar: Scalar,
    /// The number of elements of an array.
    pub count: Option<usize>,
    /// In the structure, in bytes.
    pub offset: usize,
}

impl Field {
    pub fn size(&self) -> usize {
        self.scalar.size * self.count.unwrap_or(1)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Struct {
    pub name: String,
    pub fields: Vec<Field>,
    /// In bytes.
    pub size: usize,
}

#[derive(Debug, Default)]
pub struct Header {
    pub constants: Vec<(String, Value)>,
    pub structs: Vec<Struct>,
}

/// The types that a field may have, by their names in C.
const SCALARS: [(&str, Scalar); 13] = [
    ("char", Scalar { rust: "u8", size: 1 }),
    ("uint8_t", Scalar { rust: "u8", size: 1 }),
    ("uint16_t", Scalar { rust: "u16", size: 2 }),
    ("uint32_t", Scalar { rust: "u32", size: 4 }),
    ("uint64_t", Scalar { rust: "u64", size: 8 }),
    ("int32_t", Scalar { rust: "i32", size: 4 }),
    ("int64_t", Scalar { rust: "i64", size: 8 }),
    ("u8", Scalar { rust: "u8", size: 1 }),
    ("u16", Scalar { rust: "u16", size: 2 }),
    ("u32", Scalar { rust: "u32", size: 4 }),
    ("u64", Scalar { rust: "u64", size: 8 }),
    ("s32", Scalar { rust: "i32", size: 4 }),
    ("s64", Scalar { rust: "i64", size: 8 }),
];

/// A word, a number, a text in quotes, or a sign; and its line.
type Token = (usize, String);

impl Header {
    pub fn parse(text: &str) -> Result<Header, HeaderError> {
        let mut header = Header::default();
        let mut tokens = Tokens { all: tokens(&without_comments(text), &mut header)?, at: 0 };
        let mut asserted = Vec::new();
        while let Some(word) = tokens.next() {
            match word.as_str() {
                "enum" => header.enumeration(&mut tokens)?,
                "struct" => header.structure(&mut tokens)?,
                "_Static_assert" => header.assertion(&mut tokens, &mut asserted)?,
                other => return Err(tokens.error(format!("`{other}` begins nothing that has a layout"))),
            }
        }
        match header.structs.iter().find(|found| !asserted.contains(&found.name)) {
            Some(found) => Err(tokens
                .error(format!("no _Static_assert compares sizeof(struct {}) with a number", found.name))),
            None => Ok(header),
        }
    }

    fn number(&self, word: &str) -> Option<u64> {
        let named = self.constants.iter().find_map(|(name, value)| match value {
            Value::Number(number) if name == word => Some(*number),
            _ => None,
        });
        named.or_else(|| literal(word))
    }

    /// `enum name { A, B = 2 };`, behind its first word.
    fn enumeration(&mut self, tokens: &mut Tokens) -> Result<(), HeaderError> {
        if tokens.peek() != Some("{") {
            tokens.word()?;
        }
        tokens.expect("{")?;
        let mut next = 0;
        while tokens.peek() != Some("}") {
            let name = tokens.word()?;
            if tokens.take("=") {
                let word = tokens.word()?;
                next = self.number(&word).ok_or_else(|| tokens.error(format!("`{word}` is no number")))?;
            }
            self.constants.push((name, Value::Number(next)));
            next += 1;
            if !tokens.take(",") {
                break;
            }
        }
        tokens.expect("}")?;
        tokens.expect(";")
    }

    /// `struct name { type a, b[2]; };`, behind its first word.
    fn structure(&mut self, tokens: &mut Tokens) -> Result<(), HeaderError> {
        if tokens.take("__attribute__") {
            tokens.skip_parentheses()?;
        }
        let name = tokens.word()?;
        tokens.expect("{")?;
        let mut fields = Vec::new();
        let mut size = 0;
        while !tokens.take("}") {
            let word = tokens.word()?;
            let scalar = SCALARS.iter().find(|(name, _)| *name == word).map(|(_, scalar)| *scalar);
            let scalar = scalar.ok_or_else(|| tokens.error(format!("`{word}` is no type of fixed width")))?;
            loop {
                let name = tokens.word()?;
                let mut count = None;
                if tokens.take("[") {
                    let word = tokens.word()?;
                    let number = self.number(&word).and_then(|number| usize::try_from(number).ok());
                    count = Some(number.ok_or_else(|| tokens.error(format!("`{word}` is no number")))?);
                    tokens.expect("]")?;
                }
                if !size_is_aligned(size, scalar) {
                    return Err(tokens.error(format!("there is padding before `{name}`, at byte {size}")));
                }
                let field = Field { name, scalar, count, offset: size };
                size += field.size();
                fields.push(field);
                if !tokens.take(",") {
                    break;
                }
            }
            tokens.expect(";")?;
        }
        tokens.expect(";")?;
        if fields.iter().any(|field| !size_is_aligned(size, field.scalar)) {
            return Err(tokens.error(format!("there is padding at the end of `{name}`, at byte {size}")));
        }
        self.structs.push(Struct { name, fields, size });
        Ok(())
    }

    /// `_Static_assert(sizeof(struct a) == 8 && offsetof(struct a, b) == 4, "why");`, behind its first word.
    fn assertion(&mut self, tokens: &mut Tokens, asserted: &mut Vec<String>) -> Result<(), HeaderError> {
        tokens.expect("(")?;
        loop {
            let function = tokens.word()?;
            tokens.expect("(")?;
            tokens.expect("struct")?;
            let name = tokens.word()?;
            let found = self.structs.iter().find(|found| found.name == name);
            let found =
                found.ok_or_else(|| tokens.error(format!("there is no `struct {name}` before this")))?;
            let (what, actual) = match function.as_str() {
                "sizeof" => (format!("sizeof(struct {name})"), found.size),
                "offsetof" => {
                    tokens.expect(",")?;
                    let field = tokens.word()?;
                    let of = found.fields.iter().find(|of| of.name == field);
                    let of = of.ok_or_else(|| tokens.error(format!("`{name}` has no `{field}`")))?;
                    (format!("offsetof(struct {name}, {field})"), of.offset)
                }
                other => return Err(tokens.error(format!("`{other}` is neither sizeof nor offsetof"))),
            };
            tokens.expect(")")?;
            tokens.expect("==")?;
            let word = tokens.word()?;
            if self.number(&word) != Some(actual as u64) {
                return Err(tokens.error(format!("{what} is {actual}, and not {word}")));
            }
            if function == "sizeof" {
                asserted.push(name);
            }
            if !tokens.take("&&") {
                break;
            }
        }
        tokens.expect(",")?;
        tokens.word()?;
        tokens.expect(")")?;
        tokens.expect(";")
    }
}

fn size_is_aligned(size: usize, scalar: Scalar) -> bool {
    size.is_multiple_of(scalar.size)
}

struct Tokens {
    all: Vec<Token>,
    at: usize,
}

impl Tokens {
    fn peek(&self) -> Option<&str> {
        self.all.get(self.at).map(|(_, token)| token.as_str())
    }

    fn next(&mut self) -> Option<String> {
        let token = self.all.get(self.at).map(|(_, token)| token.clone())?;
        self.at += 1;
        Some(token)
    }

    fn take(&mut self, wanted: &str) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, wanted: &str) -> Result<(), HeaderError> {
        if self.take(wanted) {
            return Ok(());
        }
        let found = self.peek().unwrap_or("the end").to_owned();
        self.at += 1;
        Err(self.error(format!("`{wanted}` should stand where `{found}` does")))
    }

    /// A name, a number or a text.
    fn word(&mut self) -> Result<String, HeaderError> {
        let word = self.next().unwrap_or_default();
        match word.chars().next() {
            Some(first) if first.is_alphanumeric() || first == '_' || first == '"' => Ok(word),
            _ => Err(self.error(format!("a name or a number should stand where `{word}` does"))),
        }
    }

    /// Everything up to the parenthesis that closes the one at hand.
    fn skip_parentheses(&mut self) -> Result<(), HeaderError> {
        self.expect("(")?;
        let mut depth = 1;
        while depth > 0 {
            match self.next().as_deref() {
                Some("(") => depth += 1,
                Some(")") => depth -= 1,
                Some(_) => {}
                None => return Err(self.error("a parenthesis is not closed".to_owned())),
            }
        }
        Ok(())
    }

    /// At the token that was taken last.
    fn error(&self, reason: String) -> HeaderError {
        let line = self.all.get(self.at.saturating_sub(1)).or(self.all.last()).map_or(1, |(line, _)| *line);
        HeaderError { line, reason }
    }
}

/// The text with spaces for its comments; its lines stay.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("/*") {
        plain.push_str(&rest[..at]);
        let end = rest[at..].find("*/").map_or(rest.len(), |end| at + end + 2);
        plain.extend(rest[at..end].chars().filter(|c| *c == '\n'));
        plain.push(' ');
        rest = &rest[end..];
    }
    plain.push_str(rest);
    plain
}

/// Cuts the text into tokens. Constants of the preprocessor go to the header at once.
fn tokens(text: &str, header: &mut Header) -> Result<Vec<Token>, HeaderError> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let error = |reason: String| HeaderError { line: number, reason };
        if let Some(directive) = line.trim_start().strip_prefix('#') {
            if let Some((name, value)) = definition(directive).map_err(error)? {
                header.constants.push((name, value));
            }
            continue;
        }
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = if is_of_word(first) {
                rest.find(|c| !is_of_word(c)).unwrap_or(rest.len())
            } else if first == '"' {
                rest[1..].find('"').ok_or_else(|| error("a text is not closed".to_owned()))? + 2
            } else if rest.starts_with("==") || rest.starts_with("&&") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push((number, rest[..length].to_owned()));
            rest = rest[length..].trim_start();
        }
    }
    Ok(tokens)
}

/// `define NAME literal`. `None` for what has no value: an include, a guard.
fn definition(directive: &str) -> Result<Option<(String, Value)>, String> {
    let mut words = directive.trim().splitn(3, char::is_whitespace);
    match words.next() {
        Some("define") => {}
        Some("include" | "ifndef" | "endif") => return Ok(None),
        other => return Err(format!("`#{}` cannot be followed here", other.unwrap_or_default())),
    }
    let name = words.next().unwrap_or_default().to_owned();
    let value = words.next().unwrap_or_default().trim();
    if value.is_empty() {
        return Ok(None);
    }
    let text = value.strip_prefix('"').and_then(|open| open.strip_suffix('"'));
    match (text, literal(value)) {
        (Some(text), _) => Ok(Some((name, Value::Text(text.to_owned())))),
        (None, Some(number)) => Ok(Some((name, Value::Number(number)))),
        (None, None) => Err(format!("`{value}` is neither a number nor a text")),
    }
}

/// A decimal or hexadecimal number, with or without a suffix.
fn literal(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
}
