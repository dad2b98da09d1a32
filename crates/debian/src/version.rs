//! Which of two Debian versions is newer. Pure.

use std::cmp::Ordering;

/// The order of Debian versions: deb-version(7), "Sorting algorithm".
pub fn compare(a: &str, b: &str) -> Ordering {
    let (epoch_a, a) = epoch(a);
    let (epoch_b, b) = epoch(b);
    let (upstream_a, revision_a) = a.rsplit_once('-').unwrap_or((a, ""));
    let (upstream_b, revision_b) = b.rsplit_once('-').unwrap_or((b, ""));
    compare_digits(epoch_a, epoch_b)
        .then_with(|| compare_parts(upstream_a, upstream_b))
        .then_with(|| compare_parts(revision_a, revision_b))
}

fn epoch(version: &str) -> (&str, &str) {
    version.split_once(':').unwrap_or(("0", version))
}

/// Alternates between a run without digits, compared by letter, and a run of digits, compared as a number.
fn compare_parts(mut a: &str, mut b: &str) -> Ordering {
    loop {
        if a.is_empty() && b.is_empty() {
            return Ordering::Equal;
        }
        let (words_a, rest_a) = split_run(a, |c| !c.is_ascii_digit());
        let (words_b, rest_b) = split_run(b, |c| !c.is_ascii_digit());
        let (digits_a, rest_a) = split_run(rest_a, |c| c.is_ascii_digit());
        let (digits_b, rest_b) = split_run(rest_b, |c| c.is_ascii_digit());
        let order = compare_letters(words_a, words_b).then_with(|| compare_digits(digits_a, digits_b));
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
}

fn split_run(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// `~` sorts before the end, the end before letters, letters before everything else.
fn compare_letters(a: &str, b: &str) -> Ordering {
    let weight = |c: Option<char>| match c {
        Some('~') => -1,
        None => 0,
        Some(c) if c.is_ascii_alphabetic() => c as i64,
        Some(c) => c as i64 + 256,
    };
    let (mut a, mut b) = (a.chars(), b.chars());
    loop {
        let (x, y) = (a.next(), b.next());
        match weight(x).cmp(&weight(y)) {
            Ordering::Equal if x.is_none() => return Ordering::Equal,
            Ordering::Equal => {}
            order => return order,
        }
    }
}

/// Numbers of any length: without leading zeros, more digits is more.
fn compare_digits(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each pair as `dpkg --compare-versions OLDER lt NEWER` orders it.
    #[test]
    fn versions_are_ordered_as_dpkg_orders_them() {
        for (older, newer) in [
            ("1.0", "1.1"),
            ("1.9", "1.10"),
            ("1.0~rc1", "1.0"),
            ("1.0~~", "1.0~"),
            ("1.0", "1.0a"),
            ("1.0a", "1.0+"),
            ("1.0-1", "1.0-1+b1"),
            ("1.0", "1.0-0.1"),
            ("2.0", "1:1.0"),
            ("3.40.1-2+deb12u1", "3.40.1-2+deb12u2"),
            ("3.40.1-2+deb12u9", "3.40.1-2+deb12u10"),
            ("1.0-1~bpo12+1", "1.0-1"),
            ("1.2.3-4", "1.2.3-4.1"),
            ("20230101", "20231231"),
            ("1.0-2-1", "1.0.2-1"),
            ("0.99999999999999999999998", "0.99999999999999999999999"),
        ] {
            assert_eq!(compare(older, newer), Ordering::Less, "{older} < {newer}");
            assert_eq!(compare(newer, older), Ordering::Greater, "{newer} > {older}");
        }
        assert_eq!(compare("1.0", "0:1.0"), Ordering::Equal);
        assert_eq!(compare("1.01", "1.1"), Ordering::Equal);
        assert_eq!(compare("1.0-0", "1.0"), Ordering::Equal);
    }
}
