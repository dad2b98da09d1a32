//! The repositories of Debian's source packages: the system's own apt sources, with `deb` turned into
//! `deb-src`.
//!
//! Pure except for [`read_system`]. The two formats are those of sources.list(5): one-line entries in
//! `*.list`, deb822 stanzas in `*.sources`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// One suite of one repository, with the components that have source packages for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// `http://deb.debian.org/debian`, without a trailing slash.
    pub uri: String,
    /// `bookworm`, `bookworm-updates`.
    pub suite: String,
    /// `main`, and the entry's other components.
    pub components: Vec<String>,
    /// The options that affect trust and how the repository is read, by their deb822 names.
    pub options: BTreeMap<&'static str, String>,
}

/// Options that mean the same for source packages; the others (`arch`, `lang`, `target`) concern binaries.
/// The first name is deb822's, the second that of one-line entries (sources.list(5), "THE DEB AND DEB-SRC
/// TYPES: OPTIONS").
const KEPT_OPTIONS: [(&str, &str); 9] = [
    ("Signed-By", "signed-by"),
    ("Trusted", "trusted"),
    ("Check-Valid-Until", "check-valid-until"),
    ("Valid-Until-Max", "valid-until-max"),
    ("Check-Date", "check-date"),
    ("InRelease-Path", "inrelease-path"),
    ("By-Hash", "by-hash"),
    ("Allow-Insecure", "allow-insecure"),
    ("Allow-Weak", "allow-weak"),
];

/// Suites that only Debian has. The running system's codename is added, so that a release newer than this
/// table works too.
const DEBIAN_SUITES: [&str; 11] = [
    "stable",
    "oldstable",
    "oldoldstable",
    "testing",
    "unstable",
    "sid",
    "experimental",
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
];

/// Suffixes of suite names in Debian's archive. Other archives append names of their own (`bookworm-pgdg`),
/// and are not Debian.
const SUITE_TAILS: [&str; 7] =
    ["", "-updates", "-security", "/updates", "-backports", "-backports-sloppy", "-proposed-updates"];

/// The fields of `/etc/os-release` that matter here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OsRelease {
    /// `debian`, `ubuntu`.
    pub id: String,
    /// `bookworm`; empty on some testing systems.
    pub codename: String,
}

/// Reads os-release(5).
pub fn parse_os_release(text: &str) -> OsRelease {
    let mut release = OsRelease::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once('=') else { continue };
        let value = value.trim().trim_matches(['"', '\'']).to_owned();
        match name.trim() {
            "ID" => release.id = value,
            "VERSION_CODENAME" => release.codename = value,
            _ => {}
        }
    }
    release
}

/// Reads one-line entries: `deb [signed-by=/usr/share/keyrings/x.gpg] http://deb.debian.org/debian bookworm main`.
/// Lines that are not entries are skipped.
pub fn parse_list(text: &str) -> Vec<Repository> {
    text.lines().filter_map(parse_list_line).collect()
}

fn parse_list_line(line: &str) -> Option<Repository> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let rest = line
        .strip_prefix("deb-src")
        .or_else(|| line.strip_prefix("deb"))
        .filter(|rest| rest.starts_with([' ', '\t', '[']))?
        .trim_start();
    let (bracket, rest) = match rest.strip_prefix('[') {
        Some(inside) => inside.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let uri = words.next()?;
    let suite = words.next()?;
    let mut options = BTreeMap::new();
    for word in bracket.split_whitespace() {
        let Some((name, value)) = word.split_once('=') else { continue };
        if let Some((kept, _)) = KEPT_OPTIONS.iter().find(|(_, short)| name.eq_ignore_ascii_case(short)) {
            options.insert(*kept, value.to_owned());
        }
    }
    Some(Repository {
        uri: uri.trim_end_matches('/').to_owned(),
        suite: suite.to_owned(),
        components: words.map(str::to_owned).collect(),
        options,
    })
}

/// Reads deb822 stanzas, one [`Repository`] for each pair of URI and suite.
pub fn parse_deb822(text: &str) -> Vec<Repository> {
    let mut repositories = Vec::new();
    for stanza in stanzas(text) {
        let field = |name: &str| {
            stanza.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
        };
        // The words that apt reads as "no": apt-pkg/contrib/strutl.cc, StringToBool.
        let enabled = field("Enabled").unwrap_or("yes").trim().to_ascii_lowercase();
        if ["no", "false", "without", "off", "disable", "0"].contains(&enabled.as_str()) {
            continue;
        }
        let listed = |name: &str| field(name).unwrap_or_default().split_whitespace();
        if !listed("Types").any(|kind| kind == "deb" || kind == "deb-src") {
            continue;
        }
        let options: BTreeMap<&'static str, String> = KEPT_OPTIONS
            .iter()
            .filter_map(|(name, _)| field(name).map(|value| (*name, value.to_owned())))
            .collect();
        for uri in listed("URIs") {
            for suite in listed("Suites") {
                repositories.push(Repository {
                    uri: uri.trim_end_matches('/').to_owned(),
                    suite: suite.to_owned(),
                    components: listed("Components").map(str::to_owned).collect(),
                    options: options.clone(),
                });
            }
        }
    }
    repositories
}

/// The fields of each stanza, in order. Lines that begin with a blank continue the field before them and keep
/// their line breaks (an embedded OpenPGP key needs them).
fn stanzas(text: &str) -> Vec<Vec<(String, String)>> {
    let mut all = vec![Vec::<(String, String)>::new()];
    for line in text.lines() {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            all.push(Vec::new());
            continue;
        }
        let Some(stanza) = all.last_mut() else { continue };
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = stanza.last_mut() {
                value.push('\n');
                value.push_str(line);
            }
        } else if let Some((name, value)) = line.split_once(':') {
            stanza.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    all.retain(|stanza| !stanza.is_empty());
    all
}

/// Debian's own repositories among `all`: a suite that Debian has, with `main`, not on a disc. Each pair of
/// URI and suite occurs once: apt refuses two entries for one repository whose `Signed-By` differ, so the
/// first is kept.
pub fn debians(all: Vec<Repository>, os: &OsRelease) -> Vec<Repository> {
    let mut kept: Vec<Repository> = Vec::new();
    for repository in all {
        let wanted = is_debians_suite(&repository.suite, os)
            && repository.components.iter().any(|component| component == "main")
            && !repository.uri.starts_with("cdrom:");
        if !wanted {
            continue;
        }
        match kept.iter_mut().find(|one| one.uri == repository.uri && one.suite == repository.suite) {
            Some(one) => {
                for component in repository.components {
                    if !one.components.contains(&component) {
                        one.components.push(component);
                    }
                }
            }
            None => kept.push(repository),
        }
    }
    kept
}

fn is_debians_suite(suite: &str, os: &OsRelease) -> bool {
    let own = (os.id == "debian" && !os.codename.is_empty()).then_some(os.codename.as_str());
    DEBIAN_SUITES
        .iter()
        .copied()
        .chain(own)
        .any(|base| suite.strip_prefix(base).is_some_and(|tail| SUITE_TAILS.contains(&tail)))
}

/// Debian's own keys, from its package debian-archive-keyring.
pub const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Debian's own servers, for a system whose apt sources contain no Debian repository.
pub fn fallback(os: &OsRelease) -> Vec<Repository> {
    let suite = if os.id == "debian" && !os.codename.is_empty() { os.codename.as_str() } else { "stable" };
    let repository = |uri: &str, tail: &str| Repository {
        uri: uri.to_owned(),
        suite: format!("{suite}{tail}"),
        components: vec!["main".to_owned()],
        options: BTreeMap::from([("Signed-By", KEYRING.to_owned())]),
    };
    let mut all = vec![repository("http://deb.debian.org/debian", "")];
    if suite != "sid" {
        all.push(repository("http://deb.debian.org/debian", "-updates"));
        all.push(repository("http://deb.debian.org/debian-security", "-security"));
    }
    all
}

/// The repositories as a deb822 file: of source packages, or of the binary packages of an architecture.
pub fn written(repositories: &[Repository], architecture: Option<&str>) -> String {
    let mut text = String::new();
    for repository in repositories {
        let Repository { uri, suite, components, options } = repository;
        let components = components.join(" ");
        // Writing to a String cannot fail.
        let types = if architecture.is_some() { "deb" } else { "deb-src" };
        let _ = write!(text, "Types: {types}\nURIs: {uri}\nSuites: {suite}\nComponents: {components}\n");
        if let Some(architecture) = architecture {
            let _ = writeln!(text, "Architectures: {architecture}");
        }
        for (name, value) in options {
            let _ = writeln!(text, "{name}: {value}");
        }
        text.push('\n');
    }
    text
}

/// A readable list of the repositories: `deb.debian.org bookworm, bookworm-updates, bookworm-security`. It
/// shows only the host: the rest of a URI may hold a password.
pub fn described(repositories: &[Repository]) -> String {
    let mut text = String::new();
    let mut last = None;
    for repository in repositories {
        let after_scheme = repository.uri.split_once("://").map_or(repository.uri.as_str(), |(_, rest)| rest);
        let authority = after_scheme.split('/').next().unwrap_or_default();
        let host = authority.rsplit('@').next().filter(|host| !host.is_empty());
        if !text.is_empty() {
            text.push_str(", ");
        }
        if last != Some(host) {
            text.push_str(host.unwrap_or("this machine"));
            text.push(' ');
        }
        last = Some(host);
        text.push_str(&repository.suite);
    }
    text
}

/// Debian's repositories as this system has them in `etc_apt` (`/etc/apt`), or else Debian's own servers.
pub fn read_system(etc_apt: &Path, os_release: &Path) -> Vec<Repository> {
    // An unreadable file is treated as absent: apt itself reports it.
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let os = parse_os_release(&read(os_release));
    let mut all = parse_list(&read(&etc_apt.join("sources.list")));
    let mut parts: Vec<_> = std::fs::read_dir(etc_apt.join("sources.list.d"))
        .map(|entries| entries.filter_map(Result::ok).map(|entry| entry.path()).collect())
        .unwrap_or_default();
    parts.sort();
    for part in parts {
        match part.extension().and_then(|extension| extension.to_str()) {
            Some("list") => all.extend(parse_list(&read(&part))),
            Some("sources") => all.extend(parse_deb822(&read(&part))),
            _ => {}
        }
    }
    let found = debians(all, &os);
    if found.is_empty() {
        fallback(&os)
    } else {
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bookworm() -> OsRelease {
        OsRelease { id: "debian".to_owned(), codename: "bookworm".to_owned() }
    }

    fn places(repositories: &[Repository]) -> Vec<String> {
        repositories.iter().map(|one| format!("{} {}", one.uri, one.suite)).collect()
    }

    #[test]
    fn a_one_line_entry_keeps_its_key_and_loses_its_architecture() {
        let all = parse_list(
            "# the mirror\n\
             deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian/ bookworm main contrib # rest\n",
        );
        assert_eq!(
            written(&all, None),
            "Types: deb-src\nURIs: http://deb.debian.org/debian\nSuites: bookworm\nComponents: main contrib\n\
             Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n"
        );
    }

    #[test]
    fn one_line_entries_need_no_blank_before_their_options_and_may_be_commented_out() {
        let all = parse_list(
            "deb-src[trusted=yes] file:/srv/debian sid main\n#deb http://x sid main\ndebian x y z\n",
        );
        assert_eq!(places(&all), ["file:/srv/debian sid"]);
        assert_eq!(all[0].options.get("Trusted").map(String::as_str), Some("yes"));
    }

    #[test]
    fn a_stanza_stands_for_each_of_its_suites() {
        let all = parse_deb822(
            "Types: deb\n# http://snapshot.debian.org/archive/debian/20250520T000000Z\n\
             URIs: http://deb.debian.org/debian\nSuites: bookworm\n bookworm-updates\nComponents: main\n\
             Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n\
             Types: deb\nURIs: http://deb.debian.org/debian-security\nSuites: bookworm-security\nComponents: main\n",
        );
        assert_eq!(
            places(&all),
            [
                "http://deb.debian.org/debian bookworm",
                "http://deb.debian.org/debian bookworm-updates",
                "http://deb.debian.org/debian-security bookworm-security"
            ]
        );
    }

    #[test]
    fn a_disabled_stanza_is_not_used() {
        assert!(parse_deb822("Enabled: No\nTypes: deb\nURIs: http://x\nSuites: sid\nComponents: main\n")
            .is_empty());
    }

    #[test]
    fn a_key_inside_a_stanza_survives_with_its_lines() {
        let text = "Types: deb\nURIs: http://x\nSuites: sid\nComponents: main\n\
                    Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS\n -----END PGP PUBLIC KEY BLOCK-----\n";
        let all = parse_deb822(text);
        assert!(
            written(&all, None).contains("\n .\n mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS\n")
        );
        assert_eq!(parse_deb822(&written(&all, None)), all);
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let all = fallback(&bookworm());
        assert_eq!(parse_deb822(&written(&all, None)), all);
    }

    #[test]
    fn archives_of_others_are_not_debian() {
        let all = parse_list(
            "deb https://apt.postgresql.org/pub/repos/apt bookworm-pgdg main\n\
             deb https://apt.llvm.org/bookworm/ llvm-toolchain-bookworm-19 main\n\
             deb https://packages.cloud.google.com/apt cloud-sdk-bookworm main\n\
             deb https://download.docker.com/linux/debian bookworm stable\n\
             deb http://archive.ubuntu.com/ubuntu noble main\n\
             deb cdrom:[Debian]/ bookworm main\n\
             deb http://mirror.example.org/debian bookworm-backports main\n",
        );
        assert_eq!(
            places(&debians(all, &bookworm())),
            ["http://mirror.example.org/debian bookworm-backports"]
        );
    }

    #[test]
    fn a_release_newer_than_the_table_is_known_by_the_systems_codename() {
        let all = parse_list("deb http://deb.debian.org/debian duke-updates main\n");
        let duke = OsRelease { id: "debian".to_owned(), codename: "duke".to_owned() };
        assert_eq!(debians(all.clone(), &duke).len(), 1);
        assert_eq!(debians(all, &bookworm()).len(), 0);
    }

    #[test]
    fn one_repository_named_twice_is_used_once_with_all_its_components() {
        let all = parse_list(
            "deb http://d/debian bookworm main\ndeb-src http://d/debian/ bookworm main non-free-firmware\n",
        );
        let kept = debians(all, &bookworm());
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].components, ["main", "non-free-firmware"]);
    }

    #[test]
    fn a_description_names_hosts_and_suites_but_no_password() {
        let all = parse_list(
            "deb http://user:secret@mirror.example.org/debian bookworm main\n\
             deb http://mirror.example.org/debian-security bookworm-security main\n\
             deb file:///srv/debian bookworm main\n",
        );
        assert_eq!(described(&all), "mirror.example.org bookworm, bookworm-security, this machine bookworm");
    }

    #[test]
    fn a_system_without_debians_sources_uses_debians_servers() {
        let folder = tempfile::tempdir().unwrap();
        let os_release = folder.path().join("os-release");
        std::fs::write(&os_release, "ID=debian\nVERSION_CODENAME=\"trixie\"\n").unwrap();
        assert_eq!(
            places(&read_system(folder.path(), &os_release)),
            [
                "http://deb.debian.org/debian trixie",
                "http://deb.debian.org/debian trixie-updates",
                "http://deb.debian.org/debian-security trixie-security"
            ]
        );
        std::fs::write(&os_release, "ID=ubuntu\nVERSION_CODENAME=noble\n").unwrap();
        assert_eq!(read_system(folder.path(), &os_release)[0].suite, "stable");
    }

    #[test]
    fn files_of_both_formats_are_read_and_disabled_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let parts = folder.path().join("sources.list.d");
        std::fs::create_dir(&parts).unwrap();
        std::fs::write(folder.path().join("sources.list"), "deb http://one/debian bookworm main\n").unwrap();
        std::fs::write(parts.join("two.list"), "deb http://two/debian bookworm main\n").unwrap();
        std::fs::write(
            parts.join("three.sources"),
            "Types: deb\nURIs: http://three/debian\nSuites: bookworm\nComponents: main\n",
        )
        .unwrap();
        std::fs::write(parts.join("four.list.disabled"), "deb http://four/debian bookworm main\n").unwrap();
        let os_release = folder.path().join("os-release");
        std::fs::write(&os_release, "ID=debian\nVERSION_CODENAME=bookworm\n").unwrap();
        assert_eq!(
            places(&read_system(folder.path(), &os_release)),
            ["http://one/debian bookworm", "http://three/debian bookworm", "http://two/debian bookworm"]
        );
    }
}
