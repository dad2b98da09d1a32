//! Suggestions for misspelt names.

/// The known name nearest to `name`, if one is near enough to be worth proposing.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Edit distance is quadratic, and a misspelt name is not a hundred letters long.
    if name.len() > 100 {
        return None;
    }
    let wanted = plain(name);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &plain(candidate)), candidate))
        // A third of the letters may be wrong, and one always may; with more, a proposal is a guess.
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Case, `-` and `_` are confused most often, and are ignored.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

/// The end of an error about an unknown name: the suggestion, or else all names.
pub(crate) fn fix<S: AsRef<str>>(name: &str, known: &[S]) -> String {
    match nearest(name, known.iter().map(AsRef::as_ref)) {
        Some(meant) => format!("; did you mean {meant:?}?"),
        None if known.is_empty() => String::new(),
        None => {
            let names: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
            format!("; there is {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_recognised() {
        let axes = ["abi", "compiler", "flags", "allocator", "thp", "env"];
        assert_eq!(nearest("alocator", axes), Some("allocator"));
        assert_eq!(nearest("ABI", axes), Some("abi"));
        assert_eq!(nearest("compliers", axes), Some("compiler"));
        assert_eq!(nearest("x86_64", ["x86-64", "x32", "i386"]), Some("x86-64"));
    }

    #[test]
    fn a_name_unlike_all_others_has_no_suggestion() {
        assert_eq!(nearest("kernel", ["abi", "compiler", "flags"]), None);
        assert_eq!(nearest(&"x".repeat(100_000), ["abi"]), None);
    }

    #[test]
    fn without_a_near_name_all_of_them_are_listed() {
        assert_eq!(fix("kernel", &["abi", "flags"]), "; there is abi, flags");
    }
}
