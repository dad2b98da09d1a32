//! What a call says of the number of objects that it asks for: factors beside `sizeof`, and other arguments.

/// A number of objects, or one of two: `take(sizeof(T), 8)` asks for one that is aligned, or for eight.
pub type Counts = [u64; 2];

/// The numbers of so many of something that there are so many of.
pub(super) fn times(counts: Option<Counts>, factors: Option<Counts>) -> Option<Counts> {
    let ([least, most], [of_least, of_most]) = (counts?, factors?);
    Some([least.checked_mul(of_least)?, most.checked_mul(of_most)?])
}

/// What a size is multiplied with, if that is a number. Stars of `sizeof *variable` and of casts to pointers are no factors.
pub(super) fn factor(argument: &str) -> Option<u64> {
    let is_factor = |at: usize| !argument[at..].trim_start_matches(['*', ' ']).starts_with(')');
    if argument.contains(['/', '%']) || argument.contains(">>") {
        return None;
    }
    if let Some((shifted, by)) = argument.split_once("<<") {
        return 1_u64.checked_shl(u32::try_from(number(by)?).ok()?)?.checked_mul(factor(shifted)?);
    }
    let (mut product, mut begin) = (1_u64, 0);
    let stars: Vec<usize> =
        argument.match_indices('*').map(|(at, _)| at).filter(|at| is_factor(*at)).collect();
    if stars.is_empty() {
        return Some(1);
    }
    for end in stars.into_iter().chain([argument.len()]) {
        product = product.checked_mul(number(&argument[begin..end])?)?;
        begin = end + 1;
    }
    Some(product)
}

/// A number of the source: `3`, `0x10u`, `(size_t)3`.
pub(super) fn number(text: &str) -> Option<u64> {
    let mut text = text.trim();
    while let Some(inner) = text.strip_prefix('(') {
        let (inside, behind) = inner.split_once(')')?;
        // Of a cast, what is behind it.
        text = if behind.trim().is_empty() { inside.trim() } else { behind.trim() };
    }
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok(),
        None => digits.parse().ok(),
    }
}

/// Whether an argument may be the number of objects that a function is asked for: no pointer, no alignment, not 1.
pub(super) fn may_be_count(
    function: &str,
    place: usize,
    argument: &str,
    is_pointer: &impl Fn(&str) -> bool,
) -> bool {
    let function = function.to_lowercase();
    let is_block = place == 0 && function.contains("realloc");
    // `__FILE__` and `__LINE__` say where a call is.
    let is_no_count = ["", "0", "1", "NULL", "nullptr", "this"].contains(&argument)
        || argument.starts_with('&')
        || argument.starts_with("__");
    !(is_block || is_no_count || function.contains("align") || is_pointer(argument))
}
