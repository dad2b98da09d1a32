//! The matrix: every combination of the axes' values, less the excludes; or a list of points instead.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::allocator::ALLOCATORS;
use crate::axis::Axis;
use crate::bytes;
use crate::kernel::{self, Kernel};
use crate::location::{Located, SourceLocation};
use crate::model::{FlagSet, Thp, Variant};
use crate::names::check_name;
use crate::point::{Point, EVERY};
use crate::request::Request;
use crate::request_error::{RequestError, RequestErrorKind};
use crate::{abi, allocator, flag_set};

/// The largest number of variants: each is built and runs in every round.
pub const MOST_VARIANTS: usize = 1000;

/// The environment that sets nothing.
pub const DEFAULT_ENV: &str = "default";

/// The input of the matrix besides the request.
pub(crate) struct Surroundings<'a> {
    /// The names of the compilers here.
    pub compilers: &'a [String],
    /// The finished binaries, in the user's order; empty if there is something to build.
    pub binaries: &'a [(String, PathBuf)],
    /// Where relative paths of the spec file begin.
    pub folder: &'a Path,
}

/// The value of one axis; one that the user did not name has no location.
#[derive(Debug, Clone)]
struct Value {
    text: String,
    location: Option<SourceLocation>,
}

/// One cell of the matrix. For finished binaries, the value of `abi` is the binary's name.
#[derive(Debug, Clone, Default)]
struct Cell {
    name: Option<Located<String>>,
    values: BTreeMap<Axis, Value>,
    /// Its location in the list, if it was listed.
    location: Option<SourceLocation>,
}

impl From<&Located<String>> for Value {
    fn from(located: &Located<String>) -> Value {
        Value { text: located.value.clone(), location: Some(located.location.clone()) }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value { text: text.to_owned(), location: None }
    }
}

impl Value {
    fn wrong(&self, kind_of_error: RequestErrorKind) -> RequestError {
        RequestError { location: self.location.clone(), kind_of_error }
    }
}

impl Cell {
    /// The value of an axis, named or by default. There is no default compiler by name: it is the machine's.
    fn value(&self, axis: Axis) -> Option<Value> {
        let default = match axis {
            Axis::Abi => Some(abi::ABIS[0].name),
            Axis::Compiler => None,
            Axis::Flags => Some(flag_set::DEFAULT),
            Axis::Allocator => Some(ALLOCATORS[0]),
            Axis::Thp => Some(Thp::System.name()),
            Axis::Env => Some(DEFAULT_ENV),
            Axis::Kernel => Some(kernel::HOST),
        };
        self.values.get(&axis).cloned().or(default.map(Value::from))
    }

    fn matches(&self, pattern: &Point) -> bool {
        pattern.iter().all(|(axis, wanted)| self.value(*axis).is_some_and(|value| value.text == wanted.value))
    }

    fn name(&self) -> String {
        match &self.name {
            Some(name) => name.value.clone(),
            None => {
                // Of a path the file's name: the folder is in the record of the campaign.
                let part = |(axis, value): (&Axis, &Value)| match Kernel::find(&value.text) {
                    Some(Kernel::File(path)) if *axis == Axis::Kernel => {
                        path.file_name().map(bytes::text).unwrap_or_default()
                    }
                    _ => value.text.clone(),
                };
                let values: Vec<String> = self.values.iter().map(part).collect();
                values.join("/")
            }
        }
    }
}

impl Request {
    /// Every variant, in the order of the tables: the first axis varies slowest.
    pub(crate) fn matrix(&self, around: &Surroundings) -> Result<Vec<Variant>, RequestError> {
        for exclude in &self.excludes {
            self.check_exclude(&exclude.value)?;
        }
        let mut variants = Vec::new();
        let mut names = BTreeSet::new();
        for cell in self.cells(around)? {
            if self.excludes.iter().any(|exclude| cell.matches(&exclude.value)) {
                continue;
            }
            let variant = self.variant(&cell, around)?;
            if !names.insert(variant.name.clone()) {
                let kind_of_error = RequestErrorKind::TwoVariants { name: variant.name };
                return Err(RequestError { location: cell.location, kind_of_error });
            }
            variants.push(variant);
        }
        match self.excludes.last() {
            Some(exclude) if variants.is_empty() => {
                Err(exclude.location.wrong(RequestErrorKind::EmptyMatrix))
            }
            _ => Ok(variants),
        }
    }

    /// An exclude that matches nothing may be meant for another machine or a wider matrix; one with an unknown name is
    /// an error.
    fn check_exclude(&self, exclude: &Point) -> Result<(), RequestError> {
        if let Some(value) = exclude.get(&Axis::Flags) {
            self.flag_set(&value.into())?;
        }
        if let Some(value) = exclude.get(&Axis::Env) {
            self.environment(&value.into())?;
        }
        Ok(())
    }

    fn cells(&self, around: &Surroundings) -> Result<Vec<Cell>, RequestError> {
        if !around.binaries.is_empty() {
            self.refuse_axes_of_binaries()?;
        }
        if self.variants.is_empty() {
            return self.product(around);
        }
        if let Some((axis, value)) =
            self.axes.iter().find_map(|(axis, values)| values.first().map(|v| (*axis, v)))
        {
            return Err(value.location.wrong(RequestErrorKind::AxisWithVariants { axis }));
        }
        if let Some(first_too_many) = self.variants.get(MOST_VARIANTS) {
            return Err(first_too_many.location.wrong(too_many(self.variants.len())));
        }
        let listed = self.variants.iter().map(|located| {
            let mut values: BTreeMap<Axis, Value> =
                located.value.point.iter().map(|(axis, value)| (*axis, value.into())).collect();
            // If the user names no ABI, the axis comes first and is still part of the name.
            values.entry(Axis::Abi).or_insert_with(|| abi::ABIS[0].name.into());
            Cell { name: located.value.name.clone(), values, location: Some(located.location.clone()) }
        });
        Ok(listed.collect())
    }

    fn refuse_axes_of_binaries(&self) -> Result<(), RequestError> {
        for axis in [Axis::Abi, Axis::Compiler, Axis::Flags] {
            if let Some(value) = self.axes.get(&axis).and_then(|values| values.first()) {
                return Err(value.location.wrong(RequestErrorKind::AxisOfBinaries { axis }));
            }
        }
        match self.variants.first() {
            Some(variant) => {
                Err(variant.location.wrong(RequestErrorKind::BinariesWith { what: "a list of variants" }))
            }
            None => Ok(()),
        }
    }

    /// Every combination.
    fn product(&self, around: &Surroundings) -> Result<Vec<Cell>, RequestError> {
        let mut columns = Vec::new();
        for axis in Axis::ALL {
            let values = self.column(axis, around)?;
            if !values.is_empty() {
                columns.push((axis, values));
            }
        }
        let points = columns.iter().fold(1_usize, |points, (_, values)| points.saturating_mul(values.len()));
        if points > MOST_VARIANTS {
            return Err(too_many(points).nowhere());
        }
        let mut cells = vec![Cell::default()];
        for (axis, values) in &columns {
            cells = cells
                .iter()
                .flat_map(|cell| {
                    values.iter().map(|value| {
                        let mut wider = cell.clone();
                        wider.values.insert(*axis, value.clone());
                        wider
                    })
                })
                .collect();
        }
        Ok(cells)
    }

    /// The values of an axis: the user's, or for the ABI every one there is.
    fn column(&self, axis: Axis, around: &Surroundings) -> Result<Vec<Value>, RequestError> {
        let location = self.axes.get(&axis).map(Vec::as_slice).unwrap_or_default();
        match location.first() {
            Some(every) if axis == Axis::Compiler && every.value == EVERY => {
                if around.compilers.is_empty() {
                    return Err(every.location.wrong(RequestErrorKind::NoCompilers));
                }
                let value =
                    |name: &String| Value { text: name.clone(), location: Some(every.location.clone()) };
                Ok(around.compilers.iter().map(value).collect())
            }
            None if axis == Axis::Abi && around.binaries.is_empty() => {
                Ok(abi::ABIS.iter().filter(|abi| !abi.is_foreign).map(|abi| abi.name.into()).collect())
            }
            None if axis == Axis::Abi => {
                Ok(around.binaries.iter().map(|(name, _)| name.as_str().into()).collect())
            }
            _ => Ok(location.iter().map(Value::from).collect()),
        }
    }

    fn variant(&self, cell: &Cell, around: &Surroundings) -> Result<Variant, RequestError> {
        if let Some(name) = &cell.name {
            check_name("variant", &name.value).map_err(|kind_of_error| name.location.wrong(kind_of_error))?;
        }
        let or_default = |axis| cell.value(axis).unwrap_or_else(|| "".into());
        let of_binaries = !around.binaries.is_empty();
        let abi = or_default(Axis::Abi);
        let allocator = or_default(Axis::Allocator);
        let thp = or_default(Axis::Thp);
        Ok(Variant {
            name: cell.name(),
            abi: match abi::find(&abi.text) {
                None if !of_binaries => return Err(unknown(Axis::Abi, &abi)),
                found => found,
            },
            compiler: cell.values.get(&Axis::Compiler).map(|value| around.compiler(value)).transpose()?,
            flags: if of_binaries { flag_set::finished() } else { self.flag_set(&or_default(Axis::Flags))? },
            allocator: allocator::find(&allocator.text)
                .ok_or_else(|| unknown(Axis::Allocator, &allocator))?
                .to_owned(),
            thp: Thp::find(&thp.text).ok_or_else(|| unknown(Axis::Thp, &thp))?,
            environment: self.environment(&or_default(Axis::Env))?,
            kernel: around.kernel(&or_default(Axis::Kernel))?,
            binary: around.binaries.iter().find(|(name, _)| *name == abi.text).map(|(_, file)| file.clone()),
        })
    }

    fn flag_set(&self, value: &Value) -> Result<FlagSet, RequestError> {
        let name = value.text.as_str();
        if flag_set::is_options(name) {
            return Ok(flag_set::options(name));
        }
        if let Some(set) = flag_set::built_in(name) {
            return Ok(set);
        }
        let Some(located) = self.flag_sets.get(name) else {
            let built_in = flag_set::built_in_names().map(str::to_owned);
            let known = self.flag_sets.keys().cloned().chain(built_in).collect();
            return Err(value.wrong(RequestErrorKind::UnknownFlagSet { name: name.to_owned(), known }));
        };
        let set = &located.value;
        let text = |option: &Option<Located<String>>| option.as_ref().map(|located| located.value.clone());
        let cflags = text(&set.cflags).unwrap_or_default();
        Ok(FlagSet {
            name: name.to_owned(),
            cxxflags: text(&set.cxxflags).unwrap_or_else(|| cflags.clone()),
            cflags,
            ldflags: text(&set.ldflags).unwrap_or_default(),
            profile_guided: set.profile_guided.as_ref().is_some_and(|located| located.value),
            train: text(&set.train),
        })
    }

    fn environment(&self, value: &Value) -> Result<BTreeMap<String, String>, RequestError> {
        if value.text == DEFAULT_ENV {
            return Ok(BTreeMap::new());
        }
        match self.env_sets.get(&value.text) {
            Some(set) => {
                Ok(set.value.iter().map(|(name, located)| (name.clone(), located.value.clone())).collect())
            }
            None => Err(value.wrong(RequestErrorKind::Unknown {
                what: "environment",
                name: value.text.clone(),
                known: self.env_sets.keys().cloned().chain([DEFAULT_ENV.to_owned()]).collect(),
            })),
        }
    }
}

impl Surroundings<'_> {
    fn kernel(&self, value: &Value) -> Result<Kernel, RequestError> {
        let in_spec = value.location.as_ref().is_some_and(SourceLocation::in_spec);
        match Kernel::find(&value.text).ok_or_else(|| unknown(Axis::Kernel, value))? {
            Kernel::File(path) if in_spec => Ok(Kernel::File(self.folder.join(path))),
            kernel => Ok(kernel),
        }
    }

    fn compiler(&self, value: &Value) -> Result<String, RequestError> {
        if self.compilers.contains(&value.text) {
            return Ok(value.text.clone());
        }
        Err(value.wrong(if self.compilers.is_empty() {
            RequestErrorKind::NoCompilers
        } else {
            RequestErrorKind::NoSuchCompiler { name: value.text.clone(), known: self.compilers.to_vec() }
        }))
    }
}

fn too_many(points: usize) -> RequestErrorKind {
    RequestErrorKind::TooManyVariants { points, most: MOST_VARIANTS }
}

/// The error that parsing the value would return: a request can also be built without parsing.
fn unknown(axis: Axis, value: &Value) -> RequestError {
    let kind_of_error = crate::point::check_value(axis, &value.text).err();
    value.wrong(kind_of_error.unwrap_or(RequestErrorKind::Unknown {
        what: axis.name(),
        name: value.text.clone(),
        known: Vec::new(),
    }))
}
