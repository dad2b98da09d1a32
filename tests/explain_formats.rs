//! `explain` of programs in every form of debug information, of other compilers, and of damaged files.

use crate::laboratory::{outcomes::skipped, Laboratory};
use serde_json::Value;

const I386: &str = "-m32 -idirafter /usr/include/x86_64-linux-gnu";

const SOURCE: &str = "#include <stdio.h>\nstruct node { struct node *next; long value; };\n\
    static inline __attribute__((always_inline)) long twice(long value) { return value * value + value / 3; }\n\
    long table[50] = {1};\nstruct node first;\n\
    int main(int count, char **words) { first.value = twice(count) + twice(count + 2); return printf(\"%ld\", first.value + table[count]) == 0; }\n";

fn explained(lab: &Laboratory, words: &str) -> Value {
    let output = lab.widthwise(&format!("explain --json {words}"));
    assert_eq!(output.status, Some(0), "{words}: {output:?}");
    output.json()
}

/// The bytes of each side by compile unit, and of the code by origin, sum.
fn sums(lab: &Laboratory, document: &Value, words: &str) {
    let size = &document["sections"]["size"];
    for (side, name) in ["baseline", "variant"].into_iter().zip(words.split(' ')) {
        let sum = |rows: &Value| -> u64 {
            rows.as_array().unwrap().iter().map(|row| row[side].as_u64().unwrap()).sum()
        };
        let file = std::fs::metadata(lab.path(name)).unwrap().len();
        assert_eq!(sum(&size["units"]), file, "{words} {side}");
        let origins = size["inlined"].as_array().unwrap().iter();
        let code = |of: &Value| of["own"].as_u64().unwrap() + of["inlined"].as_u64().unwrap();
        let code: u64 = origins.map(|origin| code(&origin[side])).sum();
        let rows = size["rows"].as_array().unwrap().iter();
        // `.init_array` and `.fini_array` are data.
        let is_code = |row: &&Value| {
            let section = row["section"].as_str().unwrap();
            !section.ends_with("_array")
                && [".text", ".init", ".fini", ".plt"]
                    .iter()
                    .any(|start| row["section"].as_str().unwrap().starts_with(start))
        };
        let of_rows: u64 = rows.filter(is_code).map(|row| row[side]["bytes"].as_u64().unwrap()).sum();
        assert_eq!(code, of_rows, "{words} {side}");
    }
}

#[test]
fn every_form_of_debug_information_is_read_or_named() {
    let lab = Laboratory::new();
    lab.write("program.c", SOURCE);
    lab.gcc("-O1 -g program.c -o plain");
    for (number, options) in [
        "-gdwarf-2",
        "-gdwarf-3",
        "-gdwarf-4",
        "-gdwarf-5",
        "-g -gz=zlib",
        "-g -flto",
        "-gdwarf-5 -gsplit-dwarf",
    ]
    .iter()
    .enumerate()
    {
        lab.gcc(&format!("-O1 {options} {I386} program.c -o form{number}"));
        let words = format!("./plain ./form{number}");
        let document = explained(&lab, &words);
        let is_split = options.contains("split");
        let size = &document["sections"]["size"];
        let copies = size["inlined"].as_array().unwrap();
        if is_split {
            // Its copies are not known, so that none are compared.
            assert_eq!((copies.len(), size["units"].as_array().unwrap().len()), (0, 0), "{size:#}");
        } else {
            sums(&lab, &document, &words);
            let twice =
                copies.iter().find(|origin| origin["name"] == "twice").unwrap_or_else(|| panic!("{options}"));
            assert_eq!(twice["baseline"]["copies"], 2, "{options}: {twice:#}");
            assert_eq!(twice["variant"]["copies"], 2, "{options}: {twice:#}");
        }
        let remarks = size["remarks"].to_string();
        assert_eq!(remarks.contains("split units"), is_split, "{options}: {remarks}");
        let types = document["sections"]["layout"]["types"].as_array().unwrap();
        assert!(types.iter().any(|of| of["type"] == "node"), "{options}: {types:#?}");
    }
    if std::process::Command::new("dwz").arg("--version").output().is_err() {
        return skipped("dwz is not installed");
    }
    std::fs::copy(lab.path("plain"), lab.path("shared")).unwrap();
    let done = std::process::Command::new("dwz").arg(lab.path("shared")).status().unwrap();
    assert!(done.success());
    sums(&lab, &explained(&lab, "./plain ./shared"), "./plain ./shared");
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_rust_programs_functions_are_matched_although_their_hashes_differ() {
    let lab = Laboratory::new();
    lab.write("main.rs", "#[inline(never)]\nfn work(of: u64) -> u64 { of.rotate_left(3) ^ 5 }\nfn main() { println!(\"{}\", work(std::env::args().count() as u64)); }\n");
    // The compiler's default mangling, and the one that has no hash at a name's end.
    for mangling in ["", "-Csymbol-mangling-version=v0"] {
        for (name, level) in [("fast", "3"), ("small", "s")] {
            let mut rustc = std::process::Command::new("rustc");
            rustc.current_dir(lab.path(".")).args([
                "-g",
                &format!("-Copt-level={level}"),
                "main.rs",
                "-o",
                name,
            ]);
            rustc.args(Some(mangling).filter(|option| !option.is_empty()));
            if !rustc.output().is_ok_and(|done| done.status.success()) {
                return skipped("rustc does not work here");
            }
        }
        let document = explained(&lab, "./fast ./small");
        sums(&lab, &document, "./fast ./small");
        let functions = document["sections"]["code"]["functions"].as_array().unwrap().iter();
        let work: Vec<&Value> = functions.filter(|function| function["name"] == "main::work").collect();
        assert_eq!(work.len(), 1, "{mangling}: {work:#?}");
        for side in ["baseline", "variant"] {
            assert_eq!(work[0][side]["copies"], 1, "{mangling}: {work:#?}");
        }
    }
}

#[test]
fn damaged_programs_are_one_sentence_or_a_report() {
    let lab = Laboratory::new();
    lab.write("program.c", SOURCE);
    lab.gcc("-O1 -g program.c -o plain");
    let whole = std::fs::read(lab.path("plain")).unwrap();
    let mut seed = 3_u32;
    for round in 0..40_usize {
        let mut bytes = whole.clone();
        if round % 4 == 0 {
            bytes.truncate(round * bytes.len() / 40);
        }
        for _ in 0..8 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let room = if round % 2 == 0 { bytes.len().min(1024) } else { bytes.len() };
            if let Some(byte) = bytes.get_mut((seed >> 4) as usize % room.max(1)) {
                *byte = (seed >> 20) as u8;
            }
        }
        std::fs::write(lab.path("damaged"), &bytes).unwrap();
        let output = lab.widthwise("explain ./plain ./damaged");
        let is_refused = output.status == Some(2)
            && output.stderr.starts_with("error: ")
            && output.stderr.lines().count() <= 2;
        assert!(output.status == Some(0) || is_refused, "round {round}: {output:?}");
    }
}

#[test]
fn programs_without_a_common_function_are_called_different() {
    let lab = Laboratory::new();
    lab.write("one.c", "int one(int a) { return a * 3; }\nvoid _start(void) { one(1); for (;;); }\n");
    lab.write("two.c", "int two(int a) { return a * 5; }\nvoid begin(void) { two(1); for (;;); }\n");
    lab.gcc("-nostdlib -static one.c -o one");
    lab.gcc("-nostdlib -static -Wl,-e,begin two.c -o two");
    let output = lab.widthwise("explain ./one ./two");
    assert_eq!(output.status, Some(0), "{output:?}");
    let words = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("have no function in common: they are not the same program"), "{words}");
}
