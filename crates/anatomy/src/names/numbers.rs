//! Integers among the template arguments of a type's name: `Pool<sizeof(T)>` is `Pool<104>` in one ABI and `Pool<52>` in another.

use std::ops::Range;

/// Suffixes of integer literals among template arguments (Itanium C++ ABI, 5.1.6.1, as demanglers write them).
const LITERAL_SUFFIXES: [&str; 10] = ["ull", "ul", "ll", "u", "l", "ULL", "UL", "LL", "U", "L"];

/// One name of two that differ in the integers among their template arguments alone.
///
/// ```
/// use widthwise_anatomy::names::with_both_numbers;
/// assert_eq!(with_both_numbers("Pool<104, 4>::Block", "Pool<52, 4>::Block"), "Pool<104 → 52, 4>::Block");
/// ```
pub fn with_both_numbers(a: &str, b: &str) -> String {
    let mut of_b = integer_arguments(b).into_iter().map(|place| without_suffix(&b[place]));
    replaced(a, |own| match (without_suffix(own), of_b.next()) {
        (own, Some(other)) if own != other => format!("{own} → {other}"),
        (own, _) => own.to_owned(),
    })
}

/// A name with its integer template arguments replaced.
pub(super) fn replaced(name: &str, mut with: impl FnMut(&str) -> String) -> String {
    let (mut out, mut end) = (String::with_capacity(name.len()), 0);
    for place in integer_arguments(name) {
        out.push_str(&name[end..place.start]);
        out.push_str(&with(&name[place.clone()]));
        end = place.end;
    }
    out.push_str(&name[end..]);
    out
}

/// The places of template arguments that are integers, suffixes included.
fn integer_arguments(name: &str) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut start = None;
    for (at, c) in name.char_indices() {
        if let (Some(start), ',' | '>') = (start, c) {
            let argument: &str = &name[start..at];
            let trimmed = argument.trim();
            let digits = without_suffix(trimmed.strip_prefix('-').unwrap_or(trimmed));
            if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let from = start + (argument.len() - argument.trim_start().len());
                places.push(from..from + trimmed.len());
            }
        }
        match c {
            '<' | ',' => start = Some(at + 1),
            '>' | '(' | ')' | '[' | ']' => start = None,
            _ => {}
        }
    }
    places
}

/// `4ul` is 4.
pub(super) fn without_suffix(word: &str) -> &str {
    LITERAL_SUFFIXES
        .iter()
        .filter_map(|suffix| word.strip_suffix(suffix))
        .find(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        .unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_arguments_of_templates_are_numbers() {
        let of = |name: &str| -> Vec<String> {
            integer_arguments(name).into_iter().map(|place| name[place].to_owned()).collect()
        };
        assert_eq!(of("tinyxml2::MemPoolT<104>::Block"), ["104"]);
        assert_eq!(of("A<B<8ul>, -3 , char[16]>"), ["8ul", "-3"]);
        assert_eq!(of("A<(Policy)2, int (*)(int, 4), x2>"), Vec::<String>::new());
        assert_eq!(of("Node16"), Vec::<String>::new());
    }
}
