//! The ABIs by name. The `machine` crate has the compiler options of each, and whether it starts on this machine.

use std::fmt;

/// One ABI: a name, and how wide its `long` and its pointers are.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbiRow {
    /// The name used everywhere: `x86-64`, `x32`, `i386`.
    pub name: &'static str,
    /// `LP64` or `ILP32`.
    pub data_model: &'static str,
}

/// A row of [`ABIS`].
pub type Abi = &'static AbiRow;

/// Every ABI an experiment may name; the first is the default.
pub static ABIS: &[AbiRow] = &[
    AbiRow { name: "x86-64", data_model: "LP64" },
    AbiRow { name: "x32", data_model: "ILP32" },
    AbiRow { name: "i386", data_model: "ILP32" },
];

/// The ABI of that name, if there is one.
pub fn find(name: &str) -> Option<Abi> {
    ABIS.iter().find(|abi| abi.name == name)
}

impl fmt::Display for AbiRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
