//! Names that are much like a name that is not there.

use std::collections::BTreeSet;

/// The names that are most like one, as the end of a sentence.
pub fn close_names(name: &str, functions: &BTreeSet<String>) -> String {
    /// So many are named.
    const MOST: usize = 5;
    let wanted = name.trim_end_matches('*').to_lowercase();
    let distance = |function: &String| {
        let last = function.rsplit("::").next().unwrap_or(function).to_lowercase();
        let away = strsim::damerau_levenshtein(&wanted, &last);
        let is_part = !wanted.is_empty() && last.contains(&wanted);
        (is_part || away <= wanted.chars().count().div_ceil(2)).then_some((!is_part, away))
    };
    let mut close: Vec<_> = functions.iter().filter_map(|name| Some((distance(name)?, name))).collect();
    close.sort();
    let names: Vec<&str> = close.into_iter().take(MOST).map(|(_, name)| name.as_str()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("; close to it are {}", names.join(", ")),
    }
}
