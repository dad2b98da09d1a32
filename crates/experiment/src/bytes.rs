//! Lossless conversion between bytes (names and arguments) and text (requests, spec files and archives).
//!
//! A byte that is not UTF-8 becomes the private character U+10FE00 + byte (U+10FE80 to U+10FEFF), which a spec file may
//! write as `\U0010FEE9`. The four bytes of such a character in a name are written in this way, too.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What is added to a byte.
const FIRST: u32 = 0x10_FE00;

/// The byte that a private character stands for; None for other characters.
pub fn byte(c: char) -> Option<u8> {
    (FIRST + 0x80..=FIRST + 0xff).contains(&u32::from(c)).then(|| (u32::from(c) - FIRST) as u8)
}

/// Bytes as text; what is UTF-8 stays as it is.
pub fn text(bytes: impl AsRef<OsStr>) -> String {
    let mut text = String::new();
    for chunk in bytes.as_ref().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match byte(c) {
                None => text.push(c),
                Some(_) => escape(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut text),
            }
        }
        escape(chunk.invalid(), &mut text);
    }
    text
}

fn escape(bytes: &[u8], text: &mut String) {
    text.extend(bytes.iter().filter_map(|&byte| char::from_u32(FIRST + u32::from(byte))));
}

/// The bytes that a text was made of.
pub fn os(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    OsString::from_vec(bytes)
}

/// As [`os`], of a path.
pub fn path(text: &str) -> PathBuf {
    PathBuf::from(os(text))
}

/// A text for display: a byte that is not UTF-8 is written `\xe9`.
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match byte(c) {
            Some(byte) => shown.push_str(&format!("\\x{byte:02x}")),
            None => shown.push(c),
        }
    }
    shown
}

/// A path for display.
pub fn shown_path(path: &Path) -> String {
    shown(&text(path))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn utf8_is_unchanged_and_other_bytes_are_escaped() {
        assert_eq!(text("café $(x) 'y'\n"), "café $(x) 'y'\n");
        let odd = OsStr::from_bytes(b"caf\xe9.c");
        assert_eq!(text(odd), "caf\u{10fee9}.c");
        assert_eq!(shown(&text(odd)), "caf\\xe9.c");
    }

    proptest! {
        #[test]
        fn bytes_survive_as_text(bytes in proptest::collection::vec(any::<u8>(), 0..40), private in 0x10_fe70_u32..0x10_ff10) {
            let mut bytes = bytes;
            let c = char::from_u32(private).unwrap();
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            let name = OsString::from_vec(bytes);
            prop_assert_eq!(os(&text(&name)), name);
        }
    }
}
