//! Names with characters special to a shell, a terminal or a text file: of sources, folders, programs and arguments.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::laboratory;
use crate::laboratory::Laboratory;

/// Prints its arguments, and the variables NAME0, NAME1 …
const ECHO: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    for (int i = 1; i < count; i++) printf("<%s>", words[i]);
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "NAME%d", i);
        if (getenv(name)) printf("[%s]", getenv(name));
    }
    puts("");
    return 0;
}
"#;

/// Text that a shell would execute; it must not create the file `pwned`.
const HOSTILE: [&[u8]; 13] = [
    b"$(touch pwned)",
    b"`touch pwned`",
    b"a;touch pwned;",
    b"a b  c",
    b"it's \"quoted\"",
    b"back\\slash",
    b"new\nline",
    b"\x1b[31mred",
    b"*",
    b"caf\xe9",
    b"{build}",
    b"-option",
    b"\xf4\x8f\xba\xa9",
];

/// All of it in the names of few files: what is built or measured takes seconds.
const NAMES: [&[u8]; 6] = [
    b"-option $(touch pwned);`touch pwned`;touch pwned;",
    b"new\nline a b  c it's \"quoted\" \x1b[31mred back\\slash {build}",
    b"caf\xe9\xf4\x8f\xba\xa9",
    b"*",
    b"{build}",
    b"$(touch pwned)",
];

fn name(bytes: &[u8], end: &str) -> OsString {
    OsString::from_vec([bytes, end.as_bytes()].concat())
}

fn comparing(lab: &Laboratory, words: &[&OsStr]) -> laboratory::CommandOutput {
    let mut command = lab.command("compare --cpus any --abi x86-64 --rounds 2 --warmup 0");
    laboratory::output_of(command.args(words).env("SHELL", "/bin/false"))
}

/// No command was run, and no control sequence is printed.
fn is_harmless(lab: &Laboratory, shown: &laboratory::CommandOutput, what: &[u8]) {
    let what = String::from_utf8_lossy(what);
    assert_eq!(shown.status, Some(0), "{what}: {shown:?}");
    assert!(!shown.stdout.contains('\x1b') && !shown.stderr.contains('\x1b'), "{what}: {shown:?}");
    assert!(!has_mark(&lab.path("")), "{what} was run");
}

/// Whether `pwned` exists there, or in a folder below.
fn has_mark(folder: &Path) -> bool {
    let mut entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.any(|entry| {
        let is_folder = entry.file_type().unwrap().is_dir();
        entry.file_name() == "pwned" || (is_folder && has_mark(&entry.path()))
    })
}

#[test]
fn a_source_of_any_name_is_built_without_a_shell() {
    for hostile in NAMES {
        let lab = Laboratory::new();
        let file = name(hostile, ".c");
        std::fs::write(lab.path("").join(&file), ECHO).unwrap();
        let source = OsString::from_vec([b"./".as_slice(), file.as_bytes()].concat());
        let shown = comparing(&lab, &[&source]);
        is_harmless(&lab, &shown, hostile);
        let report = lab.widthwise("report --json").json();
        assert_eq!(report["runs"].as_array().unwrap().len(), 4);
    }
}

#[test]
fn every_argument_reaches_the_program_byte_by_byte() {
    let lab = Laboratory::new();
    std::fs::write(lab.path("echo.c"), ECHO).unwrap();
    // A placeholder in a variable is replaced.
    let values = HOSTILE.iter().filter(|hostile| **hostile != b"{build}".as_slice());
    let variables: Vec<OsString> = values
        .clone()
        .enumerate()
        .map(|(at, value)| OsString::from_vec([format!("NAME{at}=").as_bytes(), *value].concat()))
        .collect();
    let mut words = vec![OsStr::new("echo.c")];
    words.extend(variables.iter().flat_map(|variable| [OsStr::new("--set-env"), variable]));
    words.push(OsStr::new("--"));
    words.extend(HOSTILE.iter().map(|word| OsStr::from_bytes(word)));
    is_harmless(&lab, &comparing(&lab, &words), b"an argument or a variable");
    let printed = HOSTILE.iter().map(|word| [b"<", *word, b">"].concat());
    let printed = printed.chain(values.map(|value| [b"[", *value, b"]"].concat()));
    let expected = [printed.collect::<Vec<_>>().concat(), b"\n".to_vec()].concat();
    assert_eq!(std::fs::read(lab.path(".widthwise/latest/output/x86-64")).unwrap(), expected);
    // A resumed campaign makes the same request.
    let shown = lab.widthwise("compare --resume .widthwise/latest --rounds 4");
    is_harmless(&lab, &shown, b"an argument or a variable");
}

#[test]
fn a_folder_of_any_name_may_have_projects_and_campaigns() {
    for hostile in NAMES {
        let lab = Laboratory::new();
        let folder = lab.path("").join(OsStr::from_bytes(hostile));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("echo.c"), ECHO).unwrap();
        std::fs::write(folder.join("input"), "here\n").unwrap();
        let place = OsString::from_vec([b"./".as_slice(), hostile].concat());
        // A placeholder in shell text is one word, with or without quotation marks.
        let words = [
            "--build",
            "$CC -o {build}/one {source}/echo.c && cp \"{build}\"/one '{build}/two'",
            "--run",
            "{build}/two {source}/input",
            "--setup",
            "cat {source}/input >/dev/null",
            "--filter",
            "cat",
            "--archive",
        ];
        let mut words: Vec<&OsStr> = words.map(OsStr::new).to_vec();
        words.insert(0, &place);
        words.push(&place);
        is_harmless(&lab, &comparing(&lab, &words), hostile);
        // The run command starts a shell.
        words[4] = OsStr::new("sh -c 'cat {source}/input && {build}/one \"$1\"' sh {source}");
        is_harmless(&lab, &comparing(&lab, &words), hostile);
        let shown = lab.command(&[]).arg("report").arg(place.as_os_str()).output().unwrap();
        assert_eq!(shown.status.code(), Some(2), "a folder of campaigns is none");
    }
}

#[test]
fn finished_programs_and_spec_files_may_have_any_name() {
    for hostile in NAMES {
        let lab = Laboratory::new();
        std::fs::write(lab.path("echo.c"), ECHO).unwrap();
        lab.gcc("-o echo echo.c");
        let program = lab.path("").join(OsStr::from_bytes(hostile));
        lab.copy(&lab.path("echo"), "copy");
        std::fs::rename(lab.path("copy"), &program).unwrap();
        let word = OsString::from_vec([b"./".as_slice(), hostile].concat());
        let mut command = lab.command("compare --cpus any --rounds 2 --warmup 0");
        is_harmless(
            &lab,
            &laboratory::output_of(command.arg(&word).arg("--").arg(hostile_word(hostile))),
            hostile,
        );
        // The campaign's spec file makes the same request, under a name of its own.
        let spec = lab.path("").join(name(hostile, ".toml"));
        std::fs::copy(lab.path(".widthwise/latest/widthwise.toml"), &spec).unwrap();
        let mut command = lab.command("compare --cpus any --rounds 2");
        let word = OsString::from_vec([b"./".as_slice(), name(hostile, ".toml").as_bytes()].concat());
        is_harmless(&lab, &laboratory::output_of(command.arg(&word)), hostile);
    }
}

fn hostile_word(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

#[test]
fn a_missing_name_is_shown_without_control_characters() {
    for hostile in HOSTILE {
        let lab = Laboratory::new();
        let word = OsString::from_vec([b"./".as_slice(), hostile, b".c"].concat());
        let shown = laboratory::output_of(lab.command("compare").arg(&word));
        assert_eq!(shown.status, Some(2), "{shown:?}");
        assert!(shown.stderr.contains("No such file") && !shown.stderr.contains('\x1b'), "{shown:?}");
    }
    let lab = Laboratory::new();
    let shown = laboratory::output_of(lab.command("compare").arg(OsStr::from_bytes(b"caf\xe9.c")));
    assert!(shown.stderr.contains("caf\\xe9.c"), "{shown:?}");
}

#[test]
fn a_very_long_name_is_built_and_kept() {
    let lab = Laboratory::new();
    let file = format!("{}.c", "l".repeat(250));
    std::fs::write(lab.path(&file), ECHO).unwrap();
    is_harmless(&lab, &comparing(&lab, &[OsStr::new(&file)]), file.as_bytes());
}

#[test]
fn a_links_own_name_decides_its_language_and_a_folder_has_none() {
    let lab = Laboratory::new();
    std::fs::write(lab.path("text"), ECHO).unwrap();
    std::os::unix::fs::symlink("text", lab.path("link.c")).unwrap();
    is_harmless(&lab, &comparing(&lab, &[OsStr::new("link.c")]), b"link.c");
    // The link's target is built.
    std::fs::write(lab.path("text"), ECHO.replace("<%s>", "[%s]")).unwrap();
    is_harmless(&lab, &comparing(&lab, &["link.c", "--", "x"].map(OsStr::new)), b"link.c");
    assert_eq!(lab.answer("x86-64"), "[x]\n");
    std::fs::create_dir(lab.path("folder.c")).unwrap();
    lab.widthwise("compare folder.c").refuses(2, &["program: ", "folder.c is a folder", "--build"]);
    lab.widthwise(&["compare", ""])
        .refuses(2, &["program: source \"\": a file, a folder or debian:PACKAGE goes there"]);
}

#[test]
fn the_training_of_a_profile_guided_build_runs_without_a_shell() {
    let lab = Laboratory::new();
    std::fs::write(lab.path("echo.c"), ECHO).unwrap();
    // A shell would replace `*` by file names.
    let words = ["echo.c", "--flags", "pgo", "--run", "{build}/echo * ; touch pwned"].map(OsStr::new);
    is_harmless(&lab, &comparing(&lab, &words), b"training");
    assert_eq!(lab.answer("x86-64/pgo"), "<*><;><touch><pwned>\n");
    let trees = std::fs::read_dir(lab.path(".widthwise/builds")).unwrap();
    for tree in trees {
        assert!(!tree.unwrap().path().join("tree/pwned").exists(), "the training ran in a shell");
    }
}
