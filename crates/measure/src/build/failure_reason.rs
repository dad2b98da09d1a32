//! Finds why a build failed from what it printed. Pure.

/// What allows an x32 build to start the programs it makes, as the end of a sentence.
pub const REGISTER: &str =
    " (the build starts an x32 program, which this kernel does not: `widthwise exec --register`, as root, \
                            lets it, or a cross build starts none)";

/// What shells, make, interpreters, configure, CMake and Meson print when a built program cannot be started.
const NOT_STARTED: [&str; 7] = [
    "Exec format error",
    "cannot execute binary file",
    "cannot run C compiled programs",
    "cannot run C++ compiled programs",
    "are not runnable",
    "Could not invoke sanity test executable",
    "ENOEXEC",
];

/// The exit status of a shell that could not start a command.
const CANNOT_EXECUTE: i32 = 126;

/// The line that reports a helper that could not be started, if there is one. Later failures are consequences
/// of it, whatever they print. `is_foreign` tests whether a file of the build folder is a program that the
/// kernel does not start.
pub fn unstarted(log: &str, code: Option<i32>, is_foreign: impl Fn(&str) -> bool) -> Option<String> {
    let says_so = |line: &str| NOT_STARTED.iter().any(|mark| line.contains(mark));
    // When the kernel refuses to execute a file, a shell reads it as a script: `./gen: 1: Syntax error: …`.
    let is_read = |line: &str| line.split_once(": ").is_some_and(|(file, _)| is_foreign(file));
    let found = log.lines().find(|line| says_so(line) || is_read(line)).map(|line| line.trim().to_owned());
    let silent = || "a program that it started could not be executed".to_owned();
    found.or_else(|| (code == Some(CANNOT_EXECUTE)).then(silent))
}

/// The most informative line of a build's log: the first error of a compiler or linker, or else the last
/// line.
pub fn telling_line(log: &str) -> String {
    // In order of informativeness: what a configure script did not find may be no error at all.
    const MARKS: [&[&str]; 3] = [
        &["fatal error:"],
        &["error:", "undefined reference", "cannot find"],
        &["No such file", "not found"],
    ];
    // gcc(1) only repeats the linker's failure; configure only prints its own location.
    let says_something = |line: &&str| !line.contains("ld returned") && !line.contains("error: in `/");
    MARKS
        .iter()
        .find_map(|marks| {
            log.lines().filter(says_something).find(|line| marks.iter().any(|mark| line.contains(mark)))
        })
        .or_else(|| log.lines().rfind(|line| !line.trim().is_empty()))
        .unwrap_or("it printed nothing")
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_telling_line_is_the_first_fatal_error() {
        let log = "cc -c a.c\na.c:3:1: warning: x\na.c:9:10: fatal error: foo.h: No such file or directory\nmake: *** [x] Error 1\n";
        assert_eq!(telling_line(log), "a.c:9:10: fatal error: foo.h: No such file or directory");
        let log = "ld: a.o: in function `main':\na.c:1: undefined reference to `f'\ncollect2: error: ld returned 1 exit status\n";
        assert_eq!(telling_line(log), "a.c:1: undefined reference to `f'");
        let log = "checking for x... no\nconfigure: error: in `/b/tree':\nconfigure: error: no x\nSee `config.log'\n";
        assert_eq!(telling_line(log), "configure: error: no x");
        assert_eq!(telling_line("one\ntwo\n\n"), "two");
        assert_eq!(telling_line(""), "it printed nothing");
    }

    #[test]
    fn an_unstarted_helper_is_the_reason_of_later_failures() {
        let found = |log: &str, code| unstarted(log, code, |name| name == "./gen");
        for line in [
            "/bin/sh: 1: ./gen: Exec format error",
            "bash: line 1: ./gen: cannot execute binary file: Exec format error",
            "OSError: [Errno 8] Exec format error: './gen'",
            "configure: error: cannot run C compiled programs.",
            "meson.build:1:0: ERROR: Executables created by c compiler gcc -mx32 are not runnable.",
            "./gen: 1: Syntax error: \"(\" unexpected",
        ] {
            let log =
                format!("gcc -o gen gen.c\n{line}\nmain.c:3:26: error: 'N' undeclared\nmake: *** Error 1\n");
            assert_eq!(found(&log, Some(2)).as_deref(), Some(line));
        }
        assert_eq!(found("", Some(126)).as_deref(), Some("a program that it started could not be executed"));
        assert_eq!(found("main.c:1: error: x\nother: 1: Syntax error\n", Some(1)), None);
    }
}
