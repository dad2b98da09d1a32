//! An entry of a spec file: a key, a value, and the lines on which they stand.

use std::fmt::Display;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use crate::bytes;
use crate::location::{Located, SourceLocation};
use crate::placeholder::Stage;
use crate::request::{check_paths, check_placeholders};
use crate::request_error::{RequestErrorKind, SpecError};
use crate::{duration, percentage};

/// The file: what turns an offset into a line.
pub(super) struct Page<'a> {
    text: &'a str,
    /// Its name; absent for lines of the command line.
    file: Option<Arc<str>>,
    /// The offset at which each line begins.
    lines: Vec<usize>,
}

impl<'a> Page<'a> {
    pub(super) fn new(text: &'a str, file_name: Option<&str>) -> Page<'a> {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Page { text, file: file_name.map(Arc::from), lines }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    pub(super) fn location(&self, offset: usize) -> SourceLocation {
        let line = self.lines.partition_point(|start| *start <= offset);
        match &self.file {
            Some(file) => SourceLocation::Spec { file: file.clone(), line },
            None => SourceLocation::Set { line },
        }
    }

    /// The TOML parser's message, in one line.
    pub(super) fn syntax(&self, error: &toml::de::Error) -> SpecError {
        let span = error.span().unwrap_or(self.text.len()..self.text.len());
        let kind_of_error = match error.message() {
            "duplicate key" => {
                let key = self.text.get(span.clone()).unwrap_or_default();
                RequestErrorKind::DuplicateKey(key.trim_matches(['"', '\'', '[', ']']).to_owned())
            }
            message => RequestErrorKind::Syntax(message.replace('\n', "; ")),
        };
        self.location(span.start).wrong(kind_of_error)
    }

    /// A table's entries in the order in which they were written.
    pub(super) fn entries<'p>(&'p self, table: &'p DeTable<'a>) -> Vec<Entry<'p>> {
        let mut entries: Vec<Entry<'p>> = table
            .iter()
            .map(|(key, value)| Entry {
                page: self,
                key: key.get_ref(),
                key_span: key.span(),
                value: value.get_ref(),
                span: value.span(),
            })
            .collect();
        entries.sort_by_key(|entry| entry.key_span.start);
        entries
    }
}

/// A key and its value.
pub(super) struct Entry<'p> {
    page: &'p Page<'p>,
    pub(super) key: &'p str,
    key_span: Range<usize>,
    value: &'p DeValue<'p>,
    span: Range<usize>,
}

impl<'p> Entry<'p> {
    /// Where the key stands.
    pub(super) fn key_location(&self) -> SourceLocation {
        self.page.location(self.key_span.start)
    }

    /// Where the value stands.
    pub(super) fn location(&self) -> SourceLocation {
        self.page.location(self.span.start)
    }

    pub(super) fn wrong(&self, kind_of_error: RequestErrorKind) -> SpecError {
        self.location().wrong(kind_of_error)
    }

    fn wrong_type(&self, wanted: &'static str, value: &DeValue, location: SourceLocation) -> SpecError {
        let found = match value {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        location.wrong(RequestErrorKind::WrongType { key: self.key.to_owned(), wanted, found })
    }

    fn located_text(&self, text: &str, location: SourceLocation) -> Result<Located<String>, SpecError> {
        if text.contains('\0') {
            return Err(location.wrong(RequestErrorKind::Nul { key: self.key.to_owned() }));
        }
        Ok(Located::new(text.to_owned(), location))
    }

    pub(super) fn text(&self) -> Result<Located<String>, SpecError> {
        match self.value {
            DeValue::String(text) => self.located_text(text, self.location()),
            other => Err(self.wrong_type("text in quotation marks", other, self.location())),
        }
    }

    /// A list of texts; one text alone is a list of one.
    pub(super) fn texts(&self) -> Result<Vec<Located<String>>, SpecError> {
        let wanted = "a list of texts, such as [\"a\", \"b\"]";
        match self.value {
            DeValue::String(text) => Ok(vec![self.located_text(text, self.location())?]),
            DeValue::Array(items) => items
                .iter()
                .map(|item| {
                    let location = self.page.location(item.span().start);
                    match item.get_ref() {
                        DeValue::String(text) => self.located_text(text, location),
                        other => Err(self.wrong_type("a list of nothing but texts", other, location)),
                    }
                })
                .collect(),
            other => Err(self.wrong_type(wanted, other, self.location())),
        }
    }

    /// As [`Entry::texts`], and there must be one at least.
    pub(super) fn some_texts(&self) -> Result<Vec<Located<String>>, SpecError> {
        let texts = self.texts()?;
        if texts.is_empty() {
            return Err(self.wrong(RequestErrorKind::Empty {
                what: format!("{:?}", self.key),
                instead: "name something or leave the key out",
            }));
        }
        Ok(texts)
    }

    pub(super) fn path(&self) -> Result<Located<PathBuf>, SpecError> {
        let text = self.text()?;
        let path = Located::new(bytes::path(&text.value), text.location);
        check_paths(self.key, std::slice::from_ref(&path))?;
        Ok(path)
    }

    pub(super) fn paths(&self) -> Result<Vec<Located<PathBuf>>, SpecError> {
        let texts = self.texts()?.into_iter();
        let paths: Vec<Located<PathBuf>> =
            texts.map(|text| Located::new(bytes::path(&text.value), text.location)).collect();
        check_paths(self.key, &paths)?;
        Ok(paths)
    }

    /// A text parsed as another type.
    pub(super) fn parsed<T>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, RequestErrorKind>,
    ) -> Result<Located<T>, SpecError> {
        let text = self.text()?;
        match parse(&text.value) {
            Ok(value) => Ok(Located::new(value, text.location)),
            Err(kind_of_error) => Err(text.location.wrong(kind_of_error)),
        }
    }

    /// One of a few names.
    pub(super) fn one_of<T: Copy>(
        &self,
        what: &'static str,
        all: &[T],
        name: impl Fn(T) -> &'static str,
    ) -> Result<Located<T>, SpecError> {
        self.parsed(|text| {
            all.iter().copied().find(|value| name(*value) == text).ok_or_else(|| RequestErrorKind::Unknown {
                what,
                name: text.to_owned(),
                known: all.iter().map(|value| name(*value).to_owned()).collect(),
            })
        })
    }

    /// A command, its placeholders checked.
    pub(super) fn command(&self, stage: Stage) -> Result<Located<String>, SpecError> {
        let command = self.text()?;
        check_placeholders(&command.value, stage).map_err(|kind_of_error| {
            let location = match &kind_of_error {
                RequestErrorKind::UnknownPlaceholder { word, .. }
                | RequestErrorKind::MisplacedPlaceholder { word, .. } => self.line_of(&format!("{{{word}}}")),
                _ => self.location(),
            };
            location.wrong(kind_of_error)
        })?;
        Ok(command)
    }

    /// The line of the first `part` in the value: a command may go over many.
    fn line_of(&self, part: &str) -> SourceLocation {
        let within = self.page.text.get(self.span.clone()).and_then(|text| text.find(part)).unwrap_or(0);
        self.page.location(self.span.start + within)
    }

    pub(super) fn switch(&self) -> Result<Located<bool>, SpecError> {
        match self.value {
            DeValue::Boolean(on) => Ok(Located::new(*on, self.location())),
            other => Err(self.wrong_type("true or false", other, self.location())),
        }
    }

    /// A whole number from `low` to `high`.
    pub(super) fn whole<T>(&self, low: T, high: T) -> Result<Located<T>, SpecError>
    where
        T: TryFrom<i128> + PartialOrd + Display + Copy,
    {
        let DeValue::Integer(integer) = self.value else {
            return Err(self.wrong_type("a whole number", self.value, self.location()));
        };
        let key = self.key.to_owned();
        let number = i128::from_str_radix(integer.as_str(), integer.radix()).ok();
        match number.and_then(|number| T::try_from(number).ok()) {
            Some(value) if low <= value && value <= high => Ok(Located::new(value, self.location())),
            _ if integer.as_str().starts_with('-') => {
                Err(self.wrong(RequestErrorKind::Negative { key, value: integer.to_string() }))
            }
            _ => Err(self.wrong(RequestErrorKind::OutOfRange {
                key,
                range: format!("from {low} to {high}"),
                value: integer.to_string(),
            })),
        }
    }

    pub(super) fn duration(&self) -> Result<Located<Duration>, SpecError> {
        match self.value {
            DeValue::String(_) => self.parsed(duration::parse),
            other => {
                Err(self.wrong_type("a duration in quotation marks, such as \"90s\"", other, self.location()))
            }
        }
    }

    /// A percentage or a fraction; gives the fraction.
    pub(super) fn fraction(&self) -> Result<Located<f64>, SpecError> {
        match self.value {
            DeValue::String(_) => self.parsed(percentage::parse),
            DeValue::Float(float) => match float.as_str().parse::<f64>() {
                Ok(value) if value.is_finite() && value.is_sign_positive() => {
                    Ok(Located::new(value, self.location()))
                }
                _ => Err(self.wrong(RequestErrorKind::BadPercentage { text: float.to_string() })),
            },
            other => Err(self.wrong_type("a percentage, such as \"1%\" or 0.01", other, self.location())),
        }
    }

    /// A section's entries.
    pub(super) fn table(&self) -> Result<Vec<Entry<'p>>, SpecError> {
        match self.value {
            DeValue::Table(table) => Ok(self.page.entries(table)),
            other => Err(self.wrong_type("a table", other, self.location())),
        }
    }

    /// The entries of each `[[section]]`, with the place where it begins.
    pub(super) fn tables(&self) -> Result<Vec<(SourceLocation, Vec<Entry<'p>>)>, SpecError> {
        let wanted = "a list of tables, each under its own double brackets";
        let DeValue::Array(items) = self.value else {
            return Err(self.wrong_type(wanted, self.value, self.key_location()));
        };
        items
            .iter()
            .map(|item: &Spanned<DeValue>| {
                let location = self.page.location(item.span().start);
                match item.get_ref() {
                    DeValue::Table(table) => Ok((location, self.page.entries(table))),
                    other => Err(self.wrong_type(wanted, other, location)),
                }
            })
            .collect()
    }
}
