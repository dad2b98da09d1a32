//! Which package names and versions are valid. No others reach a command line or a path. Pure.

use crate::error::DebianError;

/// Debian Policy, section 5.6.1: valid names of source packages. No other name reaches a command line.
pub fn check_name(name: &str) -> Result<(), DebianError> {
    let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = name.as_bytes();
    let good = bytes.len() >= 2
        && bytes.len() <= 128
        && allowed(bytes[0])
        && bytes.iter().all(|&c| allowed(c) || matches!(c, b'+' | b'-' | b'.'));
    good.then_some(()).ok_or_else(|| DebianError::BadName { name: name.to_owned() })
}

/// Debian Policy, section 5.6.12.
pub fn check_version(version: &str) -> Result<(), DebianError> {
    let good = version.len() <= 128
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version.bytes().all(|c| c.is_ascii_alphanumeric() || b".+~-:".contains(&c));
    good.then_some(()).ok_or_else(|| DebianError::BadVersion { version: version.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_debian_names_reach_a_command_line() {
        for good in ["sqlite3", "lua5.4", "g++-12", "0ad", "libsigc++-2.0", "at"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        let long = "a".repeat(200);
        for bad in [
            "",
            "a",
            "-oDir=x",
            "../x",
            "a b",
            "Sqlite3",
            "sqlite3=1",
            "a/b",
            "ä1",
            "x;y",
            "a\nb",
            ".a",
            &long,
        ] {
            assert!(matches!(check_name(bad), Err(DebianError::BadName { .. })), "{bad:?}");
        }
    }

    #[test]
    fn only_valid_debian_versions_reach_a_command_line() {
        for good in ["1", "3.40.1-2+deb12u2", "1:1.0~rc1-1", "0.99~b6+dsx-10"] {
            assert!(check_version(good).is_ok(), "{good}");
        }
        for bad in ["", "v1", "-1", "1/../..", "1 2", "1\n", "1_2", "1;2"] {
            assert!(matches!(check_version(bad), Err(DebianError::BadVersion { .. })), "{bad:?}");
        }
    }
}
