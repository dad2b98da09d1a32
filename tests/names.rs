//! Names with characters special to a shell, a terminal or a text file: of sources, folders, programs and arguments.

mod laboratory;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use laboratory::Laboratory;

/// Prints its arguments and the variable NAME, and creates a file where it runs.
const ECHO: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    for (int i = 1; i < count; i++) printf("<%s>", words[i]);
    printf("%s\n", getenv("NAME") ? getenv("NAME") : "");
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

fn name(bytes: &[u8], end: &str) -> OsString {
    OsString::from_vec([bytes, end.as_bytes()].concat())
}

fn comparing(lab: &Laboratory, words: &[&OsStr]) -> laboratory::CommandOutput {
    let mut command = lab.command("compare --cpus any --abi x86-64 --rounds 2 --warmup 0");
    laboratory::said(command.args(words).env("SHELL", "/bin/false"))
}

/// No command was run, and no control sequence is printed.
fn is_harmless(lab: &Laboratory, said: &laboratory::CommandOutput, what: &[u8]) {
    let what = String::from_utf8_lossy(what);
    assert_eq!(said.status, Some(0), "{what}: {said:?}");
    assert!(!said.stdout.contains('\x1b') && !said.stderr.contains('\x1b'), "{what}: {said:?}");
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
    for hostile in HOSTILE {
        let lab = Laboratory::new();
        let file = name(hostile, ".c");
        std::fs::write(lab.path("").join(&file), ECHO).unwrap();
        let source = OsString::from_vec([b"./".as_slice(), file.as_bytes()].concat());
        let said = comparing(&lab, &[&source]);
        is_harmless(&lab, &said, hostile);
        let report = lab.widthwise("report --json").json();
        assert_eq!(report["runs"].as_array().unwrap().len(), 4);
    }
}

#[test]
fn every_argument_reaches_the_program_byte_by_byte() {
    for hostile in HOSTILE {
        let lab = Laboratory::new();
        std::fs::write(lab.path("echo.c"), ECHO).unwrap();
        let variable = OsString::from_vec([b"NAME=".as_slice(), hostile].concat());
        let words = ["echo.c", "--set-env", "", "--", ""].map(OsStr::new);
        let mut words = words.to_vec();
        words[2] = &variable;
        words[4] = OsStr::from_bytes(hostile);
        // A placeholder in a variable is replaced.
        if hostile == b"{build}" {
            words.drain(1..3);
        }
        let said = comparing(&lab, &words);
        is_harmless(&lab, &said, hostile);
        let value: &[u8] = if hostile == b"{build}" { b"" } else { hostile };
        let expected = [b"<", hostile, b">", value, b"\n"].concat();
        assert_eq!(std::fs::read(lab.path(".widthwise/latest/output/x86-64")).unwrap(), expected);
        // A resumed campaign makes the same request.
        let said = lab.widthwise("compare --resume .widthwise/latest --rounds 4");
        is_harmless(&lab, &said, hostile);
    }
}

#[test]
fn a_folder_of_any_name_may_have_projects_and_campaigns() {
    for hostile in HOSTILE {
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
        let said = lab.command(&[]).arg("report").arg(place.as_os_str()).output().unwrap();
        assert_eq!(said.status.code(), Some(2), "a folder of campaigns is none");
    }
}

#[test]
fn finished_programs_and_spec_files_may_have_any_name() {
    for hostile in HOSTILE {
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
            &laboratory::said(command.arg(&word).arg("--").arg(hostile_word(hostile))),
            hostile,
        );
        // The campaign's spec file makes the same request, under a name of its own.
        let spec = lab.path("").join(name(hostile, ".toml"));
        std::fs::copy(lab.path(".widthwise/latest/widthwise.toml"), &spec).unwrap();
        let mut command = lab.command("compare --cpus any --rounds 2");
        let word = OsString::from_vec([b"./".as_slice(), name(hostile, ".toml").as_bytes()].concat());
        is_harmless(&lab, &laboratory::said(command.arg(&word)), hostile);
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
        let said = laboratory::said(lab.command("compare").arg(&word));
        assert_eq!(said.status, Some(2), "{said:?}");
        assert!(said.stderr.contains("No such file") && !said.stderr.contains('\x1b'), "{said:?}");
    }
    let lab = Laboratory::new();
    let said = laboratory::said(lab.command("compare").arg(OsStr::from_bytes(b"caf\xe9.c")));
    assert!(said.stderr.contains("caf\\xe9.c"), "{said:?}");
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
