//! What a single source file includes. It is compiled where it is, so that the compiler finds headers beside it, and they are inputs of
//! the build as much as the file itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use widthwise_experiment::bytes;

use crate::build::source;

/// What the compiler read: paths, with a digest of each file.
pub type Dependencies = BTreeMap<String, String>;

/// The target of the rule that the compiler writes.
const TARGET: &str = "program";

/// The rule's file; it is no part of the build folder, which stays as it would be without it.
pub fn file(tree: &Path) -> PathBuf {
    tree.with_file_name("dependencies")
}

/// The options with which gcc and clang write the rule while they compile.
pub fn options(tree: &Path) -> [std::ffi::OsString; 5] {
    ["-MD".into(), "-MT".into(), TARGET.into(), "-MF".into(), file(tree).into()]
}

/// What a compiler that `began` then has read.
pub fn read(tree: &Path, began: SystemTime) -> Dependencies {
    let rule = std::fs::read(file(tree)).unwrap_or_default();
    let ended = SystemTime::now();
    let of = |path: PathBuf| {
        let path = tree.join(path);
        let changed = std::fs::metadata(&path).and_then(|data| data.modified());
        // Nobody knows which of its contents the compiler read: no digest will ever equal this.
        let is_certain = changed.is_ok_and(|changed| changed <= began || changed > ended);
        let digest = if is_certain { source::digest(&path).unwrap_or_default() } else { String::new() };
        (bytes::text(&path), digest)
    };
    prerequisites(&rule).into_iter().map(of).collect()
}

/// Whether all of it is as it was. A compiler that reported nothing at all has read something all the same.
pub fn are_current(dependencies: &Dependencies) -> bool {
    let is_current =
        |(path, then): (&String, &String)| source::digest(&bytes::path(path)).is_ok_and(|now| now == *then);
    !dependencies.is_empty() && dependencies.iter().all(is_current)
}

/// The prerequisites of a rule, unquoted as make(1) does: a blank after a backslash, `\#`, `$$`, lines that continue.
fn prerequisites(rule: &[u8]) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let start = [TARGET.as_bytes(), b":"].concat();
    let mut rest = rule.strip_prefix(start.as_slice()).unwrap_or_default();
    let mut all = vec![Vec::new()];
    while let [byte, after @ ..] = rest {
        let backslashes = rest.iter().take_while(|byte| **byte == b'\\').count();
        let next = rest.get(backslashes);
        let word = all.last_mut().expect("one word at least");
        (rest, _) = match (byte, next) {
            (b'\\', Some(b'\n')) => (&rest[backslashes + 1..], all.push(Vec::new())),
            // Those before a blank are doubled, since they would quote it.
            (b'\\', Some(quoted @ (b' ' | b'#'))) if backslashes % 2 == 1 => {
                word.resize(word.len() + backslashes / 2, b'\\');
                (&rest[backslashes + 1..], word.push(*quoted))
            }
            (b' ' | b'\n', _) => (after, all.push(Vec::new())),
            (b'$', Some(b'$')) if after.first() == Some(&b'$') => (&after[1..], word.push(b'$')),
            (byte, _) => (after, word.push(*byte)),
        };
    }
    let words = all.into_iter().filter(|word| !word.is_empty());
    words.map(|word| PathBuf::from(std::ffi::OsString::from_vec(word))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_unquoted_as_make_does() {
        let rule = b"program: /a\\ b.c /usr/x.h \\\n /k\\ $$h\\#.h \\\n  /back\\slash.h /two\\\\\\ x\n";
        let expected = ["/a b.c", "/usr/x.h", "/k $h#.h", "/back\\slash.h", "/two\\ x"].map(PathBuf::from);
        assert_eq!(prerequisites(rule), expected);
        assert!(prerequisites(b"").is_empty());
    }

    #[test]
    fn a_file_that_changed_while_it_was_compiled_is_never_current() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let header = folder.path().join("kernel.h");
        std::fs::write(&header, "int x;").unwrap();
        std::fs::write(file(&tree), format!("program: {}\n", header.display())).unwrap();
        let changed = std::fs::metadata(&header).unwrap().modified().unwrap();
        let earlier = changed - std::time::Duration::from_secs(1);
        assert!(are_current(&read(&tree, changed)));
        assert!(!are_current(&read(&tree, earlier)));
        let then = read(&tree, changed);
        std::fs::write(&header, "int y;").unwrap();
        assert!(!are_current(&then));
        assert!(!are_current(&Dependencies::new()));
    }
}
