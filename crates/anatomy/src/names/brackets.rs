//! Brackets in names.

/// The place of the bracket that closes the one at the beginning.
pub(crate) fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        before = c;
    }
    None
}
