//! The records of a source index, and which of two versions is newer. Pure.

use std::cmp::Ordering;

/// One version of a source package that the index offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The source package's name.
    pub package: String,
    /// Its exact version, epoch included.
    pub version: String,
    /// The binary packages it builds.
    pub binaries: Vec<String>,
    /// Size of all its files together, in bytes.
    pub bytes: u64,
}

/// Reads the output of `apt-cache showsrc`: deb822 stanzas (deb-src-control(5), dsc(5)). Stanzas without a
/// name or a version are skipped.
pub fn parse(text: &str) -> Vec<Record> {
    text.split("\n\n").filter_map(parse_stanza).collect()
}

fn parse_stanza(text: &str) -> Option<Record> {
    let (mut package, mut version, mut binaries, mut bytes) = (None, None, Vec::new(), 0u64);
    let mut field = "";
    for line in text.lines() {
        let value = match line.split_once(':') {
            Some((name, value)) if !line.starts_with([' ', '\t']) => {
                field = name;
                value
            }
            _ => line,
        };
        match field {
            "Package" => package = Some(value.trim().to_owned()),
            "Version" => version = Some(value.trim().to_owned()),
            "Binary" => {
                binaries.extend(value.split(',').map(|name| name.trim().to_owned()).filter(|n| !n.is_empty()))
            }
            // "digest size name", one file a line.
            "Files" => {
                if let Some(size) = value.split_whitespace().nth(1).and_then(|size| size.parse::<u64>().ok())
                {
                    bytes = bytes.saturating_add(size);
                }
            }
            _ => {}
        }
    }
    Some(Record { package: package?, version: version?, binaries, bytes })
}

/// The record of `version`, or the newest.
pub fn choose<'a>(records: &'a [Record], version: Option<&str>) -> Option<&'a Record> {
    match version {
        Some(wanted) => records.iter().find(|record| record.version == wanted),
        None => records.iter().max_by(|a, b| compare(&a.version, &b.version)),
    }
}

/// The available versions, newest first, each once.
pub fn versions(records: &[Record]) -> Vec<String> {
    let mut all: Vec<String> = records.iter().map(|record| record.version.clone()).collect();
    all.sort_by(|a, b| compare(b, a));
    all.dedup();
    all
}

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

/// At most five names of `all` that `wanted` may stand for, the likeliest first: those that begin with it,
/// and those a letter or two away. A short name is more often the beginning of a longer one than mistyped.
pub fn nearest(wanted: &str, all: impl IntoIterator<Item = String>) -> Vec<String> {
    let short = wanted.len() <= 4;
    let mut near: Vec<(usize, usize, String)> = all
        .into_iter()
        .filter_map(|name| {
            let rank = match strsim::osa_distance(wanted, &name) {
                _ if short && name.starts_with(wanted) => 0,
                distance @ (0 | 1) => distance,
                2 if !short => 2,
                _ if name.starts_with(wanted) => 3,
                _ => return None,
            };
            Some((rank, name.len(), name))
        })
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().map(|(_, _, name)| name).take(5).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWSRC: &str = "\
Package: sqlite3
Binary: lemon, sqlite3,
 libsqlite3-0
Version: 3.40.1-2+deb12u1
Files:
 368167464cfb3fae9e1c3f0ff453ee6b 2519 sqlite3_3.40.1-2+deb12u1.dsc
 79f2507907721b770cbec98195cecece 8019048 sqlite3_3.40.1.orig.tar.xz
Checksums-Sha256:
 ee3459ae9d00939741c7708fc1b8ce1bde12d8c3fb1dfa005bbbc8651d884e23 2519 sqlite3_3.40.1-2+deb12u1.dsc
Package-List:
 lemon deb devel optional arch=any
Directory: pool/main/s/sqlite3

Package: sqlite3
Binary: lemon, sqlite3
Version: 3.40.1-2+deb12u2
Homepage: https://www.sqlite.org/

";

    #[test]
    fn a_record_has_its_version_its_binaries_and_its_size() {
        let records = parse(SHOWSRC);
        assert_eq!(records.len(), 2);
        assert_eq!(
            records[0],
            Record {
                package: "sqlite3".to_owned(),
                version: "3.40.1-2+deb12u1".to_owned(),
                binaries: ["lemon", "sqlite3", "libsqlite3-0"].map(str::to_owned).to_vec(),
                bytes: 2519 + 8_019_048,
            }
        );
    }

    #[test]
    fn the_newest_is_chosen_unless_a_version_is_asked_for() {
        let records = parse(SHOWSRC);
        assert_eq!(choose(&records, None).unwrap().version, "3.40.1-2+deb12u2");
        assert_eq!(choose(&records, Some("3.40.1-2+deb12u1")).unwrap().bytes, 8_021_567);
        assert_eq!(choose(&records, Some("3.40.1")), None);
        assert_eq!(versions(&records), ["3.40.1-2+deb12u2", "3.40.1-2+deb12u1"]);
    }

    #[test]
    fn stanzas_that_are_no_records_are_skipped() {
        assert_eq!(parse("").len() + parse("W: something\n\nPackage: x\n\nVersion: 1\n").len(), 0);
    }

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

    #[test]
    fn a_mistyped_name_finds_the_closest_name() {
        let all = ["lqa", "lua5.3", "lua5.4", "lua-cjson", "luakit", "sqlite3", "sqlite4-x", "xz-utils"]
            .map(str::to_owned);
        assert_eq!(nearest("lua", all.clone()), ["lua5.3", "lua5.4", "luakit", "lua-cjson", "lqa"]);
        assert_eq!(nearest("sqlit3", all.clone()), ["sqlite3"]);
        assert_eq!(nearest("sqlite", all.clone()), ["sqlite3", "sqlite4-x"]);
        assert_eq!(nearest("firefox", all), [""; 0]);
    }
}
