//! The environment of a program file with capabilities. The loader removes LD_LIBRARY_PATH, TMPDIR and others from it (ld.so(8),
//! "Secure-execution mode"), but the programs that are measured are to have the user's.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Puts back what the loader has removed. Programs that are started have none of this file's capabilities.
pub fn restore_environment() {
    // SAFETY: no pointers.
    if unsafe { libc::getauxval(libc::AT_SECURE) } == 0 {
        return;
    }
    for (name, value) in variables(&original()) {
        if std::env::var_os(&name).is_none() {
            std::env::set_var(name, value);
        }
    }
}

/// The strings of the process's beginning, which the loader leaves where they are.
fn original() -> Vec<u8> {
    // A process with a file's capabilities may not read its own file, which is root's (proc(5), "dumpable").
    // SAFETY: no pointers.
    unsafe {
        let before = libc::prctl(libc::PR_GET_DUMPABLE);
        libc::prctl(libc::PR_SET_DUMPABLE, 1);
        let bytes = std::fs::read("/proc/self/environ").unwrap_or_default();
        if before != 1 {
            libc::prctl(libc::PR_SET_DUMPABLE, 0);
        }
        bytes
    }
}

fn variables(text: &[u8]) -> Vec<(OsString, OsString)> {
    let of = |entry: &[u8]| {
        let at = entry.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
        let word = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        Some((word(&entry[..at]), word(&entry[at + 1..])))
    };
    text.split(|byte| *byte == 0).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn the_strings_of_a_process_are_names_and_values() {
        let pairs = variables(b"A=1\0LD_LIBRARY_PATH=/x:/y=z\0\0=odd\0nothing\0B=");
        let expected = [("A", "1"), ("LD_LIBRARY_PATH", "/x:/y=z"), ("B", "")];
        assert_eq!(pairs, expected.map(|(name, value)| (name.into(), value.into())));
    }
}
