//! Slugs: names that are safe as file names.

/// Longest stem kept of a name: file names end at 255 bytes, and a path has other parts too.
const LONGEST: usize = 100;

/// The name as a file name: letters, digits and `. _ + = @ -` stay, everything else becomes `_`, and a name that had
/// to be changed gets eight hex digits of its BLAKE3 digest, so that `x32/-O2` and `x32_-O2` stay two files.
///
/// A name that needs no change is kept, unless it already ends like a changed one.
pub fn slug(name: &str) -> String {
    let mut stem = String::new();
    for (place, letter) in name.chars().enumerate() {
        // A leading dot hides a file, and a leading dash looks like an option.
        let plain = letter.is_ascii_alphanumeric()
            || matches!(letter, '_' | '+' | '=' | '@')
            || (place > 0 && matches!(letter, '.' | '-'));
        stem.push(if plain { letter } else { '_' });
        if stem.len() == LONGEST {
            break;
        }
    }
    if stem.is_empty() {
        stem.push('_');
    }
    if stem == name && !ends_like_a_changed_one(name) {
        return stem;
    }
    let digest = blake3::hash(name.as_bytes()).to_hex();
    format!("{stem}-{}", &digest[..8])
}

fn ends_like_a_changed_one(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, tail)| {
        tail.len() == 8 && tail.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Whether this is one safe component of a path: an untrusted archive must not refer to files outside its folder.
pub(crate) fn is_one_component(slug: &str) -> bool {
    !slug.is_empty()
        && slug.len() <= 255
        && slug != "."
        && slug != ".."
        && !slug.bytes().any(|byte| byte == b'/' || byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_is_its_own_slug() {
        for name in ["x86-64", "x32", "lua-5.4", "g++-12", "a_b", "T=1@x"] {
            assert_eq!(slug(name), name);
        }
    }

    #[test]
    fn a_changed_name_carries_a_hash() {
        let slugged = slug("x32/gcc-12/-O2");
        assert!(slugged.starts_with("x32_gcc-12_-O2-"), "{slugged}");
        assert_eq!(slugged.len(), "x32_gcc-12_-O2-".len() + 8);
    }

    #[test]
    fn different_names_never_share_a_slug() {
        let long = "x".repeat(300);
        let names = [
            "a/b",
            "a_b",
            "a b",
            "a\tb",
            "é",
            "_",
            "",
            ".",
            "..",
            "-O2",
            "_O2",
            ".hidden",
            "../../etc/passwd",
            "a\0b",
            &long,
            &long[1..],
        ];
        let mut slugs: Vec<String> = names.iter().map(|name| slug(name)).collect();
        // A name equal to another's slug must get a different slug.
        slugs.push(slug(&slug("a/b")));
        for slug in &slugs {
            assert!(is_one_component(slug) && !slug.starts_with(['.', '-']), "{slug}");
        }
        slugs.sort();
        let all = slugs.len();
        slugs.dedup();
        assert_eq!(slugs.len(), all);
    }
}
