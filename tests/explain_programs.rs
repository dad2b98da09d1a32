//! `explain` of two programs: their files' bytes and instructions.

use std::process::Command;

use crate::laboratory::{output_of, sums, Laboratory};
use crate::schema::{complaints, EXPLANATION};
use serde_json::Value;

const X32: &str = "-mx32 -idirafter /usr/include/x86_64-linux-gnu";
const I386: &str = "-m32 -idirafter /usr/include/x86_64-linux-gnu";

/// Virtual tables with functions of a library: their relocations are R_X86_64_64 in one ABI and R_386_32 in the other.
const VIRTUAL: &str =
    "struct A { virtual int one(int) { return 1; } virtual int two(int) { return 2; } virtual ~A() {} };\n\
    struct B : A { int two(int of) override { return of; } };\n\
    int main(int count, char **) { A *one = new B; return one->two(count); }\n";

/// `tree.cpp` in three ABIs: `a64`, `ax32` and `a32`.
fn trees(lab: &Laboratory, options: &str) {
    lab.program("tree.cpp");
    for (name, abi) in [("a64", ""), ("ax32", X32), ("a32", I386)] {
        lab.gcc(&format!("{options} {abi} tree.cpp -o {name} -lstdc++"));
    }
}

fn explained(lab: &Laboratory, words: &str) -> Value {
    let output = lab.widthwise(&format!("explain --json {words}"));
    assert_eq!(output.status, Some(0), "{words}: {output:?}");
    output.json()
}

#[test]
fn every_format_has_the_same_parts() {
    let lab = Laboratory::new();
    trees(&lab, "-O2 -g");
    let formats = "--json=out.json --csv=out.csv --markdown=out.md --html=out.html";
    let output = lab.widthwise(&format!("explain ./a64 ./a32 {formats}"));
    assert_eq!((output.status, output.stdout.as_str()), (Some(0), ""), "{output:?}");
    let document: Value = serde_json::from_str(&lab.read("out.json")).unwrap();
    let table = lab.read("out.csv");
    let mut table = csv::Reader::from_reader(table.as_bytes());
    let head: Vec<String> = table.headers().unwrap().iter().map(str::to_owned).collect();
    let at = |name: &str| head.iter().position(|own| own == name).unwrap();
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    let parts = document["parts"].as_array().unwrap();
    assert_eq!(rows.iter().filter(|row| &row[at("row")] == "part").count(), parts.len());
    for rest in document["unexplained"].as_array().unwrap() {
        let own = rows.iter().filter(|row| rest["metric"] == row[at("metric")]);
        let amounts: i64 = own.clone().map(|row| row[at("amount")].parse::<i64>().unwrap()).sum();
        let value = |name: &str| own.clone().next().unwrap()[at(name)].parse::<i64>().unwrap();
        assert_eq!(amounts, value("variant_value") - value("baseline_value"), "{rest:#}");
        assert_eq!(rest["variant"], value("variant_value"));
    }
    let (markdown, page) = (lab.read("out.md"), lab.read("out.html"));
    for part in parts.iter().filter(|part| part["metric"] == "file_size").take(3) {
        let cause = part["cause"].as_str().unwrap();
        assert!(markdown.replace('\\', "").contains(&format!("| {cause} |")), "{cause}: {markdown}");
        assert!(page.contains(cause), "{cause}");
    }
    assert!(markdown.starts_with("## ./a32 compared with ./a64\n"), "{markdown}");
}

#[test]
fn the_json_matches_its_schema_and_its_parts_sum() {
    let lab = Laboratory::new();
    trees(&lab, "-O2 -g");
    for words in ["./a64 ./ax32", "./a64 ./a32", "./a32 ./a64", "./a64 ./a64"] {
        let document = explained(&lab, words);
        assert_eq!(complaints(EXPLANATION, &document), [""; 0], "{words}");
        assert_eq!(document["kind"], "explanation");
        let files: Vec<&str> = words.split(' ').collect();
        assert_eq!(document["baseline"], files[0]);
        assert_eq!(document["variant"], files[1]);
        let size = |name: &str| std::fs::metadata(lab.path(name)).unwrap().len();
        assert_eq!(document["unexplained"][0]["baseline"], size(files[0]));
        assert_eq!(document["unexplained"][0]["variant"], size(files[1]));
        sums(&document);
        // The schema refuses unknown fields; otherwise this test could not fail.
        let mut other = document.clone();
        other["sections"]["size"]["unknown"] = 1.into();
        assert_eq!(complaints(EXPLANATION, &other).len(), 1, "{words}");
    }
}

#[test]
fn what_is_no_program_is_refused_in_one_sentence() {
    let lab = Laboratory::new();
    trees(&lab, "-O2");
    let whole = std::fs::read(lab.path("a64")).unwrap();
    std::fs::write(lab.path("cut"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(lab.path("header"), &whole[..20]).unwrap();
    lab.write("text", "#!/bin/sh\n");
    lab.write("empty", "");
    lab.widthwise("explain ./a64 ./cut").refuses(2, &["cut", "truncated"]);
    lab.widthwise("explain ./header ./a64").refuses(2, &["header", "truncated"]);
    lab.widthwise("explain ./a64 ./text").refuses(2, &["text", "a script, and no ELF file"]);
    lab.widthwise("explain ./a64 ./empty").refuses(2, &["empty"]);
    lab.widthwise("explain ./a64 ./nowhere").refuses(2, &["nowhere", "No such file"]);
    lab.widthwise("explain ./a64").refuses(2, &["two programs"]);
    lab.widthwise("explain ./a64 ./a32 ./ax32").refuses(2, &["two programs", "3"]);
    lab.widthwise("explain ./a64 x32").refuses(2, &["x32", "no file"]);
}

#[test]
fn every_byte_has_one_row_and_every_instruction_one_class() {
    let lab = Laboratory::new();
    trees(&lab, "-O2");
    for words in ["./a64 ./ax32", "./a64 ./a32"] {
        let document = explained(&lab, words);
        for side in ["baseline", "variant"] {
            let size = &document["sections"]["size"];
            let rows = size["rows"].as_array().unwrap().iter();
            let sum: u64 = rows.map(|row| row[side]["bytes"].as_u64().unwrap()).sum();
            assert_eq!(size[side]["total"], sum, "{words}");
            let code = &document["sections"]["code"];
            let functions = code["functions"].as_array().unwrap().iter();
            let sum: u64 = functions.map(|function| function[side]["instructions"].as_u64().unwrap()).sum();
            assert_eq!(code[side]["instructions"], sum, "{words}");
            let classes = code[side]["classes"].as_object().unwrap().values();
            assert_eq!(classes.map(|count| count.as_u64().unwrap()).sum::<u64>(), sum, "{words}");
        }
        // A part of each metric may be unexplained, and here next to nothing is.
        for rest in document["unexplained"].as_array().unwrap() {
            assert!(rest["points"].as_f64().unwrap().abs() < 0.5, "{rest:#}");
        }
    }
}

#[test]
fn relocation_records_differ_by_their_size() {
    let lab = Laboratory::new();
    lab.write("table.c", "int f(void) { return 1; }\nint (*table[100])(void) = {[0 ... 99] = f};\nint main(void) { return table[1]() - 1; }\n");
    lab.gcc("-fPIE -pie table.c -o a64");
    lab.gcc(&format!("-fPIE -pie {X32} table.c -o ax32"));
    lab.gcc(&format!("{I386} -fPIE -pie table.c -o a32"));
    for (variant, size) in [("ax32", 12), ("a32", 8)] {
        let document = explained(&lab, &format!("./a64 ./{variant}"));
        let parts = document["parts"].as_array().unwrap();
        let cause = format!("relocation records: {size} instead of 24 bytes each");
        let part = parts.iter().find(|part| part["cause"] == *cause).unwrap_or_else(|| panic!("{parts:#?}"));
        let rows = document["sections"]["size"]["rows"].as_array().unwrap();
        let relative = rows.iter().find(|row| row["name"].as_str().unwrap().ends_with("RELATIVE")).unwrap();
        let count = relative["baseline"]["count"].as_i64().unwrap();
        assert!(count >= 100, "{relative:#}");
        assert!(part["amount"].as_i64().unwrap() <= -(24 - size) * 100, "{part:#}");
        assert_eq!(part["certainty"], "high");
    }
}

#[test]
fn a_relocation_of_another_kind_is_no_record_more_or_less() {
    let lab = Laboratory::new();
    lab.write("virtual.cpp", VIRTUAL);
    lab.gcc("virtual.cpp -o a64 -lstdc++");
    lab.gcc(&format!("{I386} virtual.cpp -o a32 -lstdc++"));
    let records = |file: &str| {
        let mut readelf = Command::new("readelf");
        let printed = output_of(readelf.args(["-rW", file]).current_dir(lab.path("."))).stdout;
        let table = printed.split(".rel").find(|table| table.contains("dyn'")).unwrap().to_owned();
        table.lines().filter(|line| line.contains(" R_")).count() as i64
    };
    let [a, b] = ["a64", "a32"].map(records);
    let document = explained(&lab, "./a64 ./a32");
    let parts = document["parts"].as_array().unwrap().iter();
    let of_table = parts
        .filter(|part| part["where"] == ".rel.dyn")
        .map(|part| (part["cause"].as_str().unwrap(), part["amount"].as_i64().unwrap()));
    let found: Vec<(&str, i64)> = of_table.collect();
    let by_size = ("relocation records: 8 instead of 24 bytes each", -16 * a);
    assert!(found.contains(&by_size), "{a} and {b} records: {found:?}");
    let by_number = found.iter().find(|(what, _)| what.starts_with("number of"));
    assert_eq!(by_number.map_or(0, |(_, bytes)| *bytes), 8 * (b - a), "{found:?}");
}

#[test]
fn functions_are_matched_over_abis_and_copies_of_the_compiler() {
    let lab = Laboratory::new();
    lab.write(
        "grow.cpp",
        "#include <cstddef>\n#include <cstdlib>\n__attribute__((cold, noinline)) void fail(size_t n) { if (n) abort(); }\n\
         size_t grow(size_t n) { if (n > 1000) fail(n); return n * 2; }\nint main() { return (int)grow(0); }\n",
    );
    lab.gcc("-O1 grow.cpp -o a64");
    lab.gcc(&format!("-O1 {I386} grow.cpp -o a32"));
    let document = explained(&lab, "./a64 ./a32");
    let functions = document["sections"]["code"]["functions"].as_array().unwrap();
    let grow: Vec<&Value> =
        functions.iter().filter(|function| function["name"].as_str().unwrap().starts_with("grow(")).collect();
    assert_eq!(grow.len(), 1, "{grow:#?}");
    for side in ["baseline", "variant"] {
        assert!(grow[0][side]["instructions"].as_u64().unwrap() > 2, "{grow:#?}");
    }
    let shown = lab.widthwise("explain ./a64 ./a32 --function grow");
    assert_eq!(shown.status, Some(0), "{shown:?}");
    for words in ["grow(unsigned", "./a64: ", "./a32: ", "ret"] {
        assert!(shown.stdout.contains(words), "{words}: {}", shown.stdout);
    }
    lab.widthwise("explain ./a64 ./a32 --function grwo").refuses(2, &["neither program", "grow"]);
}

#[test]
fn libraries_that_a_program_brings_count() {
    let lab = Laboratory::new();
    lab.write("own.c", "char text[5000] = \"x\";\nint own(void) { return text[0]; }\n");
    lab.write("main.c", "int own(void);\nint main(void) { return own() == 0; }\n");
    for (name, abi) in [("a64", ""), ("a32", I386)] {
        std::fs::create_dir_all(lab.path(&format!("{name}-lib"))).unwrap();
        lab.gcc(&format!("{abi} -shared -fPIC own.c -o {name}-lib/libown.so"));
        lab.gcc(&format!("{abi} main.c -o {name} -L{name}-lib -lown '-Wl,-rpath,$ORIGIN/{name}-lib'"));
    }
    let document = explained(&lab, "./a64 ./a32");
    let files = document["sections"]["size"]["variant"]["files"].as_array().unwrap();
    assert_eq!(files.len(), 2, "{files:#?}");
    assert_eq!(files[1]["name"], "libown.so");
    let size = |name: &str| std::fs::metadata(lab.path(name)).unwrap().len();
    assert_eq!(document["sections"]["size"]["variant"]["total"], size("a32") + size("a32-lib/libown.so"));
    sums(&document);
}

#[test]
fn a_library_of_another_abi_is_not_a_programs() {
    let lab = Laboratory::new();
    lab.write("own.c", "int own(int value) { return value * 3 + 1; }\n");
    lab.write("main.c", "int own(int); int main(int argc, char **argv) { return own(argc); }\n");
    for (name, abi) in [("a64", ""), ("a32", I386)] {
        std::fs::create_dir(lab.path(&format!("{name}-lib"))).unwrap();
        lab.gcc(&format!("{abi} -shared -fPIC own.c -o {name}-lib/libown.so"));
        // One search path for both.
        let path = "'-Wl,-rpath,$ORIGIN/a64-lib:$ORIGIN/a32-lib'";
        lab.gcc(&format!("{abi} main.c -o {name} -L{name}-lib -lown {path}"));
    }
    let document = explained(&lab, "./a64 ./a32");
    let size = |name: &str| std::fs::metadata(lab.path(name)).unwrap().len();
    assert_eq!(document["sections"]["size"]["variant"]["total"], size("a32") + size("a32-lib/libown.so"));
}

#[test]
fn two_variants_of_a_campaign_are_compared_by_their_measured_programs() {
    let lab = Laboratory::new();
    lab.program("tree.cpp");
    let output = lab.compare("tree.cpp --abi x86-64,i386 --run '{build}/tree 10' --rounds 1 --warmup 0");
    assert_eq!(output.status, Some(0), "{output:?}");
    let document = explained(&lab, "--code x86-64 i386");
    assert_eq!(document["baseline"], "x86-64");
    assert_eq!(document["sections"]["code"]["variant"]["architecture"], "i386");
    assert_eq!(complaints(EXPLANATION, &document), [""; 0]);
    // Without --code the text has the memory, a sentence on each program's file, and the command that shows more of it.
    let output = lab.widthwise("explain x86-64 i386");
    assert_eq!(output.status, Some(0), "{output:?}");
    let words = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("smaller files than x86-64") && words.contains("instructions in its code"),
        "{output:?}"
    );
    assert!(words.contains("size and code: widthwise explain --code x86-64 i386"), "{output:?}");
    lab.widthwise("explain --code x86-64 nobody").refuses(2, &["nobody"]);
}

#[test]
fn another_program_is_suspected() {
    let lab = Laboratory::new();
    trees(&lab, "-O0");
    let functions = |prefix: &str| {
        (0..40).map(|n| format!("int {prefix}{n}(void) {{ return {n}; }}\n")).collect::<String>()
    };
    lab.write("other.c", &(functions("other") + "int main(void) { return 0; }\n"));
    lab.gcc("other.c -o other");
    let output = lab.widthwise("explain ./a64 ./other");
    assert!(output.stdout.contains("may not be the same program"), "{output:?}");
    let output = lab.widthwise("explain ./a64 ./a32");
    assert!(!output.stdout.contains("may not be the same program"), "{output:?}");
}

/// The type of the layout section with that name.
fn layout_of<'a>(document: &'a Value, name: &str) -> &'a Value {
    let types = document["sections"]["layout"]["types"].as_array().unwrap();
    types.iter().find(|of| of["type"] == name).unwrap_or_else(|| panic!("{name}: {types:#?}"))
}

#[test]
fn the_difference_of_a_structure_is_divided_into_causes() {
    let lab = Laboratory::new();
    trees(&lab, "-g");
    let document = explained(&lab, "./a64 ./ax32");
    assert_eq!(complaints(EXPLANATION, &document), [""; 0]);
    sums(&document);
    // Two pointers and an int: 8 + 8 + 4 + 4 of padding, and 4 + 4 + 4.
    let own = layout_of(&document, "Own");
    let expected = serde_json::json!([
        {"cause": "pointers", "nested": null, "bytes": -8},
        {"cause": "tail padding", "nested": null, "bytes": -4},
    ]);
    assert_eq!((&own["baseline_size"], &own["variant_size"]), (&24.into(), &12.into()), "{own:#}");
    assert_eq!((&own["difference"], &own["shares"]), (&Value::from(-12), &expected), "{own:#}");
    let types = document["sections"]["layout"]["types"].as_array().unwrap();
    for of in types {
        let shares = of["shares"].as_array().unwrap().iter();
        assert_eq!(
            shares.map(|share| share["bytes"].as_i64().unwrap()).sum::<i64>(),
            of["difference"],
            "{of:#}"
        );
    }
    let sum = |side: &str| types.iter().map(|of| of[side].as_i64().unwrap()).sum::<i64>();
    let unexplained = document["unexplained"].as_array().unwrap();
    let rest = unexplained.iter().find(|rest| rest["metric"] == "type_sizes").unwrap();
    assert_eq!(rest["baseline"], sum("baseline_size"));
    assert_eq!(rest["variant"], sum("variant_size"));
    assert_eq!(rest["amount"], 0, "{rest:#}");
    let parts = document["parts"].as_array().unwrap();
    let is_own = |part: &&Value| part["where"].as_str().unwrap().starts_with("Own (");
    let amounts: Vec<i64> =
        parts.iter().filter(is_own).map(|part| part["amount"].as_i64().unwrap()).collect();
    assert_eq!(amounts.iter().sum::<i64>(), -12, "{parts:#?}");
    // The schema refuses unknown fields of a type.
    let mut other = document.clone();
    other["sections"]["layout"]["types"][0]["unknown"] = 1.into();
    assert_eq!(complaints(EXPLANATION, &other).len(), 1);
    // Equal programs have no such metric.
    let same = explained(&lab, "./a64 ./a64");
    assert_eq!(same["sections"]["layout"]["types"], serde_json::json!([]));
    assert!(same["unexplained"].as_array().unwrap().iter().all(|rest| rest["metric"] != "type_sizes"));
}

#[test]
fn one_type_is_drawn_side_by_side() {
    let lab = Laboratory::new();
    trees(&lab, "-g");
    let output = lab.widthwise("explain ./a64 ./ax32 --type Own");
    assert_eq!(output.status, Some(0), "{output:?}");
    for line in [
        "a left: Own* 0 8 0 4 -4 pointers",
        "b right: Own* 8 8 4 4 -4 pointers",
        "c value: int 16 4 8 4",
        "bytes of an object 24 12 -8 pointers, -4 tail padding",
        "16 cccc....",
    ] {
        let lines = output.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        assert!(lines.clone().any(|shown| shown == line), "{line}: {}", output.stdout);
    }
    lab.widthwise("explain ./a64 ./ax32 --type Owm").refuses(2, &["--type Owm", "./a64", "Own"]);
    lab.widthwise("explain ./a64 ./ax32 --type Own --function main").refuses(2, &["--type", "--function"]);
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_program_without_debug_information_has_one_sentence_instead_of_layouts() {
    let lab = Laboratory::new();
    trees(&lab, "-g");
    lab.gcc("-g -s tree.cpp -o stripped -lstdc++");
    let output = lab.widthwise("explain ./a64 ./stripped");
    assert_eq!(output.status, Some(0), "{output:?}");
    let words = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.matches("layouts of structures").count(), 1, "{words}");
    assert!(words.contains("./stripped has no debug information; build with -g"), "{words}");
    let document = explained(&lab, "./a64 ./stripped");
    assert_eq!(complaints(EXPLANATION, &document), [""; 0]);
    assert_eq!(document["sections"]["layout"], Value::Null);
    lab.widthwise("explain ./a64 ./stripped --type Own")
        .refuses(2, &["--type Own", "./stripped has no debug information"]);
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn what_is_known_of_one_program_only_is_not_compared() {
    let lab = Laboratory::new();
    lab.write("virtual.cpp", VIRTUAL);
    lab.gcc("-g virtual.cpp -o a64 -lstdc++");
    for (name, options) in
        [("nodebug", ""), ("stripped", "-g -s"), ("split", "-g -gsplit-dwarf"), ("packed", "-g -gz")]
    {
        lab.gcc(&format!("{options} virtual.cpp -o {name} -lstdc++"));
        let document = explained(&lab, &format!("./a64 ./{name}"));
        assert_eq!(complaints(EXPLANATION, &document), [""; 0], "{name}");
        let size = &document["sections"]["size"];
        let remarks = size["remarks"].to_string();
        let is_empty = |part: &str| size[part].as_array().unwrap().is_empty();
        match name {
            "packed" => {
                assert!(remarks.contains("The debug information of ./packed is compressed"), "{remarks}");
                let units = size["units"].as_array().unwrap().iter();
                for unit in units.filter(|unit| unit["unit"] != "") {
                    let sections = unit["sections"].as_array().unwrap().iter();
                    let is_debug = |one: &&Value| one["section"].as_str().unwrap().starts_with(".debug");
                    assert_eq!(sections.filter(is_debug).count(), 0, "{unit:#}");
                }
            }
            _ => {
                assert!(
                    remarks.contains("compile units and inlined copies are not compared"),
                    "{name}: {remarks}"
                );
                assert!(is_empty("units") && is_empty("inlined"), "{name}: {size:#}");
            }
        }
        // Both programs have the same virtual functions, templates, and functions with a frame, whether they have names or not.
        let is_stripped = name == "stripped";
        assert_eq!(is_empty("waste"), is_stripped, "{name}: {:#}", size["waste"]);
        let frames = &document["sections"]["code"]["variant"]["prologues"];
        assert_eq!(frames.is_null(), is_stripped, "{name}: {frames}");
        let text = lab.widthwise(&format!("explain ./a64 ./{name}")).stdout;
        assert_eq!(text.contains("functions that set up a frame"), !is_stripped, "{name}: {text}");
        assert_eq!(text.contains("padding between functions"), !is_stripped, "{name}: {text}");
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn symbols_and_debug_information_in_a_separate_file_are_those_of_the_program() {
    let lab = Laboratory::new();
    trees(&lab, "-g");
    let made = "objcopy --only-keep-debug a64 a64.debug && strip a64 -o apart && \
                objcopy --add-gnu-debuglink=a64.debug apart";
    let output = output_of(Command::new("sh").args(["-c", made]).current_dir(lab.path(".")));
    assert_eq!(output.status, Some(0), "{output:?}");
    let document = explained(&lab, "./a64 ./apart");
    assert_eq!(complaints(EXPLANATION, &document), [""; 0]);
    sums(&document);
    let size = &document["sections"]["size"];
    assert!(!size["remarks"].to_string().contains("stripped"), "{:#}", size["remarks"]);
    // The code of each unit and each function, and every structure, are the same: nothing but the tables left the file.
    let units = size["units"].as_array().unwrap().iter();
    let text = |unit: &Value| {
        let section = unit["sections"].as_array().unwrap().iter().find(|one| one["section"] == ".text")?;
        let [a, b] = ["baseline", "variant"].map(|side| section[side].as_u64().unwrap());
        assert_eq!(a, b, "{unit:#}");
        unit["unit"].as_str().unwrap().ends_with("tree.cpp").then_some(a)
    };
    assert!(units.filter_map(text).any(|bytes| bytes > 1000), "{:#}", size["units"]);
    let rows = size["rows"].as_array().unwrap().iter();
    let functions = rows.filter(|row| row["section"] == ".text");
    assert!(functions.clone().count() > 10 && functions.clone().all(|row| row["difference"] == 0));
    assert!(document["sections"]["layout"].is_object());
    assert_eq!(document["sections"]["code"]["remarks"].as_array().map_or(0, Vec::len), 0);
    // The file of another build is none.
    lab.gcc("-g -O1 tree.cpp -o other -lstdc++");
    let made = "objcopy --only-keep-debug other a64.debug";
    assert_eq!(output_of(Command::new("sh").args(["-c", made]).current_dir(lab.path("."))).status, Some(0));
    let document = explained(&lab, "./a64 ./apart");
    assert!(document["sections"]["size"]["remarks"].to_string().contains("./apart is stripped"));
}

#[test]
fn a_function_is_found_by_every_name_and_has_the_bytes_of_its_parts() {
    const SOURCE: &str = r#"
#include <stdlib.h>
__attribute__((cold, noinline)) void rare(int x) { if (x == 7) abort(); }
__attribute__((noinline)) int zeta(int x) { return x * 3; }
int alpha(int x) __attribute__((alias("zeta")));
__attribute__((noinline)) int parted(int x) { if (x > 70) { rare(x); rare(x + 1); rare(x + 2); } return x * 5; }
int main(int count, char **words) { return words == 0 ? alpha(count) : zeta(count) + parted(count); }
"#;
    let lab = Laboratory::new();
    lab.write("names.c", SOURCE);
    lab.gcc("-O2 -m64 names.c -o a64");
    lab.gcc("-O2 -m32 -idirafter /usr/include/x86_64-linux-gnu names.c -o a32");
    let listings = ["zeta", "alpha"].map(|name| {
        let printed = lab.widthwise(&format!("explain ./a64 ./a32 --function {name}"));
        assert_eq!(printed.status, Some(0), "{printed:?}");
        printed.stdout
    });
    assert_eq!(listings[0], listings[1]);
    let symbols = lab.widthwise("explain ./a64 ./a32 --code --top 1000").stdout;
    assert!(!symbols.contains(".cold"), "{symbols}");
    let in_file = output_of(Command::new("nm").arg(lab.path("a64"))).stdout;
    assert!(in_file.contains("parted.cold"), "{in_file}");
}

#[test]
fn functions_that_differ_in_the_width_of_an_integer_are_two() {
    let lab = Laboratory::new();
    lab.write(
        "widths.cpp",
        "template <class T> __attribute__((noinline)) T twice(T value) { return value + value; }\n\
         int main(int count, char **) { return twice<long>(count) + twice<int>(count) + twice<unsigned long>(count) != 4; }\n",
    );
    for (abi, options) in [("a64", "-m64"), ("a32", "-m32 -idirafter /usr/include/x86_64-linux-gnu")] {
        lab.gcc(&format!("-O1 {options} widths.cpp -o {abi} -lstdc++"));
    }
    for (name, shown) in [
        ("twice<long>", "long twice<long>(long)"),
        ("twice<int>", "int twice<int>(int)"),
        ("long twice<long>(long)", "long twice<long>(long)"),
        ("_Z5twiceImET_S0_", "unsigned long twice<unsigned long>(unsigned long)"),
    ] {
        let printed = lab.widthwise(&["explain", "./a64", "./a32", "--function", name]);
        assert_eq!(printed.status, Some(0), "{printed:?}");
        assert!(printed.stdout.starts_with(shown), "{name}: {printed:?}");
    }
}

#[test]
fn several_functions_of_one_name_are_counted_and_each_can_be_shown() {
    let lab = Laboratory::new();
    lab.write(
        "virtual.cpp",
        "struct A { virtual ~A(); int a; };\nA::~A() { a = 0; }\nint main() { A *one = new A; delete one; return 0; }\n",
    );
    lab.gcc("-O0 -m64 virtual.cpp -o a64 -lstdc++");
    lab.gcc(&format!("-O0 {I386} virtual.cpp -o a32 -lstdc++"));
    let shown = lab.widthwise("explain ./a64 ./a32 --function A::~A").stdout;
    assert!(shown.contains("2 functions of ./a64 have this name; _ZN1AD0Ev is shown"), "{shown}");
    assert!(shown.contains("--function _ZN1AD"), "{shown}");
    let sizes = ["_ZN1AD0Ev", "_ZN1AD2Ev"].map(|symbol| {
        let shown = lab.widthwise(&format!("explain ./a64 ./a32 --function {symbol}")).stdout;
        assert!(shown.contains(&format!("{symbol} is shown")), "{shown}");
        shown.lines().nth(1).unwrap_or_default().to_owned()
    });
    assert_ne!(sizes[0], sizes[1]);
}

#[test]
fn stacks_and_sites_of_two_programs_are_refused() {
    let lab = Laboratory::new();
    lab.write("one.c", "int main(void) {\n    return 0;\n}\n");
    lab.gcc("-m64 one.c -o a64");
    lab.gcc(&format!("{I386} one.c -o a32"));
    for flag in
        ["--folded stacks", "--pprof stacks", "--code --folded stacks", "--function main --pprof stacks"]
    {
        lab.widthwise(&format!("explain ./a64 ./a32 {flag}"))
            .refuses(2, &["writes the stacks of a recorded heap"]);
        assert!(!lab.path("stacks").exists(), "{flag}");
    }
    for flag in ["--skip-frames main", "--keep-wrappers"] {
        for more in ["", "--code"] {
            lab.widthwise(&format!("explain ./a64 ./a32 {flag} {more}"))
                .refuses(2, &["chooses the sites of a recorded heap", "leave it out"]);
        }
        for section in ["--function main", "--type A", "--time"] {
            lab.widthwise(&format!("explain ./a64 ./a32 {flag} {section}"))
                .refuses(2, &["cannot be used with"]);
        }
    }
}
