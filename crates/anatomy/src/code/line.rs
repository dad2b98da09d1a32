//! One instruction as text.

use crate::code::class::Class;

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its offset in the function.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its text; branches inside the function have the distance in place of the address.
    pub text: String,
    /// Its class.
    pub class: Class,
}

/// A branch's text with its target as an offset in the function, or without it where it leaves the function.
pub(super) fn with_target(text: String, target: Option<u64>, start: u64, size: u64) -> String {
    let Some(target) = target else { return text };
    let mnemonic = text.split(' ').next().unwrap_or("").to_owned();
    match target.wrapping_sub(start) {
        offset if offset < size => format!("{mnemonic} +{offset:#x}"),
        _ => mnemonic,
    }
}
