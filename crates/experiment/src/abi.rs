//! The ABIs by name. The `machine` crate has the compiler options of each, and whether it starts on this machine.

use std::fmt;

/// One ABI: a name, and how wide its `long` and its pointers are.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbiRow {
    /// The name used everywhere: `x86-64`, `x32`, `i386`.
    pub name: &'static str,
    /// `LP64` or `ILP32`.
    pub data_model: &'static str,
    /// Its programs run under an emulator of another processor (qemu-user). Such an ABI is used only where it is named.
    pub is_foreign: bool,
}

/// A row of [`ABIS`].
pub type Abi = &'static AbiRow;

const fn row(name: &'static str, data_model: &'static str, is_foreign: bool) -> AbiRow {
    AbiRow { name, data_model, is_foreign }
}

/// Every ABI an experiment may name; the first is the default.
pub static ABIS: &[AbiRow] = &[
    row("x86-64", "LP64", false),
    row("x32", "ILP32", false),
    row("i386", "ILP32", false),
    row("ppc64", "LP64", true),
    row("ppc", "ILP32", true),
    row("arm64", "LP64", true),
    row("armhf", "ILP32", true),
    row("ppc64el", "LP64", true),
    row("riscv64", "LP64", true),
    row("s390x", "LP64", true),
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
