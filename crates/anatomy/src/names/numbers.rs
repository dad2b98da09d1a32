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
    fn number(argument: &str) -> &str {
        without_suffix(without_cast(argument).unwrap_or(argument))
    }
    let mut of_b = integer_arguments(b).into_iter().map(|place| number(&b[place]));
    replaced(a, |own| match (number(own), of_b.next()) {
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
            let number = without_cast(trimmed).unwrap_or(trimmed);
            let digits = without_suffix(number.strip_prefix('-').unwrap_or(number));
            if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let from = start + (argument.len() - argument.trim_start().len());
                places.push(from..from + trimmed.len());
            }
        }
        match c {
            '<' | ',' => start = Some(at + 1),
            '(' | ')' if start.is_some_and(|start| is_of_cast(&name[start..], at - start)) => {}
            '>' | '(' | ')' | '[' | ']' => start = None,
            _ => {}
        }
    }
    places
}

/// Whether the bracket at that place is one of the cast that the text begins with.
fn is_of_cast(text: &str, at: usize) -> bool {
    let argument = text.trim_start();
    let cast = without_cast(argument).map_or(0, |number| argument.len() - number.len());
    at < text.len() - argument.len() + cast
}

/// `(unsigned long)4` is 4: some demanglers write a cast where others write a suffix. None if the text does not begin so.
pub(super) fn without_cast(text: &str) -> Option<&str> {
    const WORDS: [&str; 11] = [
        "unsigned", "signed", "long", "short", "int", "char", "wchar_t", "char8_t", "char16_t", "char32_t",
        "__int128",
    ];
    let (ty, number) = text.strip_prefix('(')?.split_once(')')?;
    let is_integer = !ty.is_empty() && ty.split(' ').all(|word| WORDS.contains(&word));
    let digits = number.strip_prefix('-').unwrap_or(number);
    (is_integer && digits.starts_with(|c: char| c.is_ascii_digit())).then_some(number)
}

/// The value of the character constant that the text begins with, as debug information has them (GCC's `pp_c_char`), and what is behind.
pub(super) fn character(text: &str) -> Option<(i64, &str)> {
    let (prefix, text) = ["u8", "u", "U", "L", ""]
        .into_iter()
        .find_map(|prefix| Some((prefix, text.strip_prefix(prefix)?.strip_prefix('\'')?)))?;
    let mut characters = text.chars();
    let first = characters.next()?;
    let (value, behind) = match characters.as_str() {
        rest if first != '\\' => (i64::from(u32::from(first)), rest),
        rest if rest.starts_with(|c: char| c.is_digit(8)) => {
            let end = rest.find(|c: char| !c.is_digit(8))?;
            (i64::from(u32::from_str_radix(&rest[..end], 8).ok()? as i32), &rest[end..])
        }
        rest => {
            let escaped = rest.chars().next()?;
            let value = match escaped {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '\\' | '\'' | '"' => escaped,
                _ => return None,
            };
            (i64::from(u32::from(value)), &rest[escaped.len_utf8()..])
        }
    };
    // `char` is signed in these ABIs.
    let is_byte = prefix.is_empty() && (128..256).contains(&value);
    Some((if is_byte { value - 256 } else { value }, behind.strip_prefix('\'')?))
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
        assert_eq!(
            of("A<(unsigned long)8, (char)-3, (int (*)(int))9, f(long)>"),
            ["(unsigned long)8", "(char)-3"]
        );
        assert_eq!(
            with_both_numbers("Pool<(unsigned long)104, (unsigned long)4>", "Pool<(unsigned int)52, 4>"),
            "Pool<104 → 52, 4>"
        );
    }
}
