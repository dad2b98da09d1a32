//! Reading the kernel's one-value files, of this machine or of a recorded tree.

use std::path::Path;

/// The trimmed text of a file; None if it is not there or cannot be read.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).trim().to_string())
}

/// The number a file holds.
pub(crate) fn number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// The word in brackets: `always [madvise] never` gives `madvise`.
pub(crate) fn bracketed(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}

/// A size as `/sys` writes it: `48K`, `2048K`, `32M`.
pub(crate) fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_choices_are_read_as_the_kernel_writes_them() {
        assert_eq!(size("48K"), Some(48 << 10));
        assert_eq!(size("105M"), Some(105 << 20));
        assert_eq!(size("12X"), None);
        assert_eq!(bracketed("always [madvise] never"), Some("madvise"));
        assert_eq!(bracketed("always"), None);
    }
}
