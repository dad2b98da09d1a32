//! The environment of a campaign's programs: the variables that must be the same in all of its sessions.

use std::collections::BTreeMap;
use std::ffi::OsString;

use widthwise_experiment::{bytes, Experiment};

/// Variables of a shell, a terminal or a login, which differ between sessions of a user.
const OF_SESSION: [&str; 33] = [
    "_",
    "COLORTERM",
    "COLUMNS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_SESSION",
    "DISPLAY",
    "EDITOR",
    "HISTFILE",
    "HOME",
    "HOSTNAME",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LINES",
    "LOGNAME",
    "LS_COLORS",
    "MAIL",
    "MEMORY_PRESSURE_WATCH",
    "NO_COLOR",
    "OLDPWD",
    "PAGER",
    "PS1",
    "PWD",
    "SHELL",
    "SHLVL",
    "STY",
    "SYSTEMD_EXEC_PID",
    "TERM",
    "USER",
    "VISUAL",
    "WAYLAND_DISPLAY",
    "WINDOW",
    "WINDOWID",
    "XAUTHORITY",
];

/// How the names of further ones begin.
const OF_SESSION_PREFIXES: [&str; 14] = [
    "BASH_FUNC_",
    "GNOME_",
    "GPG_",
    "GTK_",
    "KDE_",
    "KONSOLE_",
    "LESS",
    "SSH_",
    "SUDO_",
    "TERM_",
    "TMUX",
    "VSCODE_",
    "VTE_",
    "XDG_",
];

/// What begins the name of a variable's row in the fingerprint.
const ROW: &str = "variable ";

/// The rows of the fingerprint: what programs get of this process's environment. A variable of the request has the same value
/// whatever the shell's is.
pub fn fingerprint(experiment: &Experiment) -> BTreeMap<String, String> {
    let is_replaced = |name: &OsString| experiment.launch.environment.contains_key(&bytes::text(name));
    rows(std::env::vars_os().filter(|(name, _)| !is_replaced(name)))
}

/// A row for each variable: its name, and a digest of its value, which may be a secret.
fn rows(variables: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    let is_of_session = |name: &str| {
        OF_SESSION.contains(&name) || OF_SESSION_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    variables
        .map(|(name, value)| (bytes::text(name), bytes::text(value)))
        .filter(|(name, _)| !is_of_session(name))
        .map(|(name, value)| {
            (format!("{ROW}{name}"), blake3::hash(value.as_bytes()).to_hex()[..32].to_owned())
        })
        .collect()
}

/// Whether a fingerprint has the environment. A campaign of an earlier version has none.
pub fn is_in(fingerprint: &BTreeMap<String, String>) -> bool {
    fingerprint.keys().any(|what| is_row(what))
}

/// Whether a row of a fingerprint is a variable's.
pub fn is_row(what: &str) -> bool {
    what.starts_with(ROW)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        super::rows(variables.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn what_programs_read_is_compared_and_what_a_terminal_sets_is_not() {
        let here = [("LANG", "C"), ("TERM", "xterm"), ("SSH_TTY", "/dev/pts/1"), ("_", "/bin/a")];
        let there = [("LANG", "C"), ("TERM", "linux"), ("SHLVL", "2")];
        assert_eq!(of(&here), of(&there));
        assert_ne!(of(&here), of(&[("LANG", "de")]));
        assert_ne!(of(&here), of(&[("LANG", "C"), ("MALLOC_ARENA_MAX", "1")]));
    }

    #[test]
    fn no_value_is_kept_in_clear() {
        let rows = of(&[("TOKEN", "secret")]);
        assert!(is_in(&rows) && rows.values().all(|value| !value.contains("secret")));
        assert!(!is_in(&BTreeMap::new()));
    }
}
