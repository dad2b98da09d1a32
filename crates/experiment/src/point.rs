//! A point: one value for each of some axes. Excludes and listed variants are points, and so is each cell of the matrix.

use std::collections::BTreeMap;

use crate::abi;
use crate::allocator::ALLOCATORS;
use crate::axis::Axis;
use crate::kernel::Kernel;
use crate::location::Located;
use crate::model::Thp;
use crate::request_error::RequestErrorKind;

/// One value for each of some axes.
pub type Point = BTreeMap<Axis, Located<String>>;

/// The word for every value of an axis; `compiler` has it.
pub(crate) const EVERY: &str = "all";

/// Checks a value against the axis alone: flag sets, environments and compilers are checked later.
pub fn check_value(axis: Axis, value: &str) -> Result<(), RequestErrorKind> {
    let (what, known): (_, Vec<&str>) = match axis {
        Axis::Abi => ("ABI", abi::ABIS.iter().map(|abi| abi.name).collect()),
        Axis::Allocator => ("allocator", ALLOCATORS.to_vec()),
        Axis::Thp => ("setting of thp", Thp::ALL.map(Thp::name).to_vec()),
        Axis::Kernel if Kernel::find(value).is_some() && !value.chars().any(char::is_control) => {
            return Ok(())
        }
        Axis::Kernel => return Err(RequestErrorKind::UnknownKernel { name: value.to_owned() }),
        Axis::Compiler if value == EVERY => {
            return Err(RequestErrorKind::BadName {
                what: "compiler",
                name: value.to_owned(),
                reason: "it stands for every compiler; here goes one",
            })
        }
        Axis::Compiler | Axis::Flags | Axis::Env => {
            return if value.is_empty() {
                Err(RequestErrorKind::Empty {
                    what: format!("a value of axis {:?}", axis.name()),
                    instead: "name something or leave it out",
                })
            } else if value.chars().any(char::is_control) {
                Err(RequestErrorKind::BadName {
                    what: "value",
                    name: value.to_owned(),
                    reason: "it has a control character, such as the end of a line",
                })
            } else {
                Ok(())
            }
        }
    };
    if known.contains(&value) {
        Ok(())
    } else {
        Err(RequestErrorKind::Unknown {
            what,
            name: value.to_owned(),
            known: known.into_iter().map(str::to_owned).collect(),
        })
    }
}

/// The axis of that name.
pub fn axis(name: &str) -> Result<Axis, RequestErrorKind> {
    Axis::find(name).ok_or_else(|| RequestErrorKind::Unknown {
        what: "axis",
        name: name.to_owned(),
        known: Axis::ALL.map(|axis| axis.name().to_owned()).to_vec(),
    })
}
