//! The records of a source index. Pure.

use crate::version::compare;

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
    let (mut package, mut version, mut binaries) = (None, None, Vec::new());
    let (mut of_files, mut of_checksums) = (0u64, 0u64);
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
            // "digest size name", one file a line. The archive of security updates has no field Files.
            "Files" | "Checksums-Sha256" => {
                let sum = if field == "Files" { &mut of_files } else { &mut of_checksums };
                let size = value.split_whitespace().nth(1).and_then(|size| size.parse::<u64>().ok());
                *sum = sum.saturating_add(size.unwrap_or(0));
            }
            _ => {}
        }
    }
    Some(Record { package: package?, version: version?, binaries, bytes: of_files.max(of_checksums) })
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
    fn without_the_field_files_the_checksums_have_the_sizes() {
        let records =
            parse("Package: expat\nVersion: 1\nChecksums-Sha256:\n aa 100 a.dsc\n bb 2000 a.tar.xz\n");
        assert_eq!(records[0].bytes, 2100);
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
