//! The types of heap blocks: programs of known parts, by two compilers with and without optimisation, in every ABI. Each type has
//! its objects and its bytes, and the causes of each difference are those that the layouts have.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::laboratory::outcomes::skipped;
use crate::laboratory::recording::Run;
use crate::laboratory::{output_of, Laboratory};

/// Objects of each kind in both programs.
pub(crate) const COUNT: i64 = 1000;
pub(crate) const ABIS: [(&str, &str); 3] = [
    ("x86-64", "-m64"),
    ("x32", "-mx32 -idirafter /usr/include/x86_64-linux-gnu"),
    ("i386", "-m32 -idirafter /usr/include/x86_64-linux-gnu"),
];

/// A recorded program.
pub(crate) struct Recorded {
    pub(crate) log: PathBuf,
    printed: Vec<i64>,
}

pub(crate) fn recorded(
    lab: &Laboratory,
    compiler: &str,
    source: &str,
    options: &str,
    abi: (&str, &str),
) -> Recorded {
    // A source that is newer than the program is not read.
    if !lab.path(source).exists() {
        lab.program(source);
    }
    let name = format!("{}-{compiler}{}-{}", source.replace('.', "-"), options.replace(' ', ""), abi.0);
    let library = if source.ends_with("cpp") { "-lstdc++ -lm" } else { "" };
    let words = format!("-g {options} {} {source} -o {name} {library}", abi.1);
    match compiler {
        "gcc" => lab.gcc(&words),
        other => {
            let words = shell_words::split(&words).unwrap();
            let built = output_of(Command::new(other).args(words).current_dir(lab.path(".")));
            assert_eq!(built.status, Some(0), "{built:?}");
        }
    }
    // A program that was kept from an earlier run of the tests is older than this source.
    let touched = output_of(Command::new("touch").arg(lab.path(&name)));
    assert_eq!(touched.status, Some(0), "{touched:?}");
    let ended = Run::of(lab, &*format!("./{name}")).recorded().well();
    let log = lab.path(&format!("{name}.log"));
    std::fs::rename(&ended.logs[0], &log).unwrap();
    Recorded { log, printed: ended.numbers().iter().map(|number| *number as i64).collect() }
}

pub(crate) fn explained(lab: &Laboratory, a: &Recorded, b: &Recorded) -> Value {
    let logs = [&a.log, &b.log].map(|log| log.to_str().unwrap());
    let output = lab.widthwise(&["explain", logs[0], logs[1], "--json"]);
    assert_eq!(output.status, Some(0), "{output:?}");
    output.json()
}

/// A type in both recordings: objects, bytes of each, and the causes of the whole difference.
#[derive(Debug, PartialEq)]
struct Known {
    objects: [i64; 2],
    size: [i64; 2],
    causes: BTreeMap<String, i64>,
}

fn known(objects: i64, size: [i64; 2], causes: &[(&str, i64)]) -> Known {
    let causes = causes.iter().filter(|(_, each)| *each != 0);
    let causes = causes.map(|(cause, each)| ((*cause).to_owned(), each * objects)).collect();
    Known { objects: [objects; 2], size, causes }
}

/// The row of the type of that name, or else of the only one that begins so.
fn of<'j>(json: &'j Value, name: &str) -> &'j Value {
    let rows = json["types"]["types"].as_array().unwrap();
    if let Some(row) = rows.iter().find(|row| row["type"] == name) {
        return row;
    }
    let mut found = rows.iter().filter(|row| row["type"].as_str().is_some_and(|own| own.starts_with(name)));
    let row = found.next().unwrap_or_else(|| panic!("no {name}: {:#}", json["types"]["types"]));
    assert!(found.next().is_none(), "several {name}: {:#}", json["types"]["types"]);
    row
}

fn row(json: &Value, name: &str) -> Known {
    let row = of(json, name);
    assert_ne!(row["certainty"], "low", "{row:#}");
    let both =
        |key: &str| ["a", "b"].map(|side| row[side][key].as_i64().unwrap_or_else(|| panic!("{row:#}")));
    let mut causes = BTreeMap::new();
    for part in row["parts"].as_array().unwrap() {
        *causes.entry(part["cause"].as_str().unwrap().to_owned()).or_default() +=
            part["bytes"].as_i64().unwrap();
    }
    Known { objects: both("objects"), size: both("size"), causes }
}

/// The parts of all types sum to the difference of the peaks; those of the allocator to that of its chunks.
pub(crate) fn sums_are_exact(json: &Value) {
    let rows = json["types"]["types"].as_array().unwrap();
    let parts = rows.iter().flat_map(|row| row["parts"].as_array().unwrap());
    let sum: i64 = parts.map(|part| part["bytes"].as_i64().unwrap()).sum();
    let side = |side: &str, key: &str| json[side][key].as_i64().unwrap();
    assert_eq!(sum, side("b", "peak_bytes") - side("a", "peak_bytes"));
    let allocator = json["types"]["allocator"].as_array().unwrap().iter();
    let over: i64 = allocator.map(|part| part["b"].as_i64().unwrap() - part["a"].as_i64().unwrap()).sum();
    assert_eq!(sum + over, side("b", "peak_chunk_bytes") - side("a", "peak_chunk_bytes"));
}

fn is_explained(json: &Value) {
    let share = json["types"]["explained"]["share"].as_f64().unwrap();
    assert!(share > 0.99, "{share}: {:#}", json["types"]["types"]);
    for side in ["a", "b"] {
        let typed = json["types"]["typed_share"][side].as_f64().unwrap();
        assert!(typed > 0.97, "{side} {typed}: {:#}", json["types"]["types"]);
    }
}

fn check_cpp(lab: &Laboratory, compiler: &str, options: &str, variants: &[(&str, &str)]) {
    let a = recorded(lab, compiler, "types.cpp", options, ABIS[0]);
    for abi in variants {
        let b = recorded(lab, compiler, "types.cpp", options, *abi);
        let json = explained(lab, &a, &b);
        let context = format!("{compiler} {options} {}", abi.0);
        let i386 = abi.0 == "i386";
        sums_are_exact(&json);
        is_explained(&json);
        let check = |name: &str, expected: Known| assert_eq!(row(&json, name), expected, "{context} {name}");
        check("std::_Rb_tree_node<", known(COUNT, [40, 24], &[("pointers", -12), ("holes", -4)]));
        check("std::_List_node<", known(COUNT, [24, 16], &[("pointers", -8)]));
        check("int* elements of std::vector", known(COUNT, [8, 4], &[("pointers", -4)]));
        let (printed_a, printed_b) = (&a.printed, &b.printed);
        // Square: pointer to the virtual table, long, pointer, int, padding.
        let square = [printed_a[0], printed_b[0]];
        assert_eq!(square, [32, 16], "{context}");
        check("Square", known(COUNT, square, &[("pointers", -8), ("long", -4), ("tail padding", -4)]));
        let boxed = [printed_a[1], printed_b[1]];
        assert_eq!(boxed, [24, 16], "{context}");
        check("Box<long", known(COUNT, boxed, &[("pointers", -4), ("long", -4)]));
        check("own::Link", known(COUNT, [16, 8], &[("pointers", -4), ("long", -4)]));
        let mut counted = known(COUNT, [16, 8], &[("pointers", -4), ("tail padding", -4)]);
        counted.causes.insert("lengths stored by new[]".to_owned(), -4);
        check("Counted[]", counted);
        let mut owner = known(COUNT, [8, 4], &[("pointers", -4)]);
        owner.causes.insert("lengths stored by new[]".to_owned(), -4);
        check("Owner[]", owner);
        let buckets = printed_a[4];
        check("std::__detail::_Hash_node_base*", known(buckets, [8, 4], &[("pointers", -4)]));
        let node = row(&json, "std::__detail::_Hash_node<");
        assert_eq!((node.objects, node.size), ([COUNT; 2], [48, 32]), "{context}");
        // The characters of std::string do not differ.
        let text = of(&json, "char elements of std::string");
        assert_eq!(text["a"]["bytes"], text["b"]["bytes"], "{context}");
        assert_eq!(text["a"]["objects"], COUNT * 41, "{context}");
        // A block of a deque has 512 bytes in every ABI: 64 or 128 pointers.
        let queue = row(&json, "Shape* elements of std::deque");
        assert_eq!((queue.objects, queue.size), ([1024, 1024], [8, 4]), "{context}");
        assert_eq!(queue.causes, BTreeMap::from([("pointers".to_owned(), -4096)]), "{context}");
        let control = row(&json, "std::_Sp_counted_ptr_inplace<Square");
        assert_eq!((control.objects, control.size), ([COUNT; 2], [48, 28]), "{context}");
        assert!(!i386 || control.causes.values().sum::<i64>() == -20 * COUNT, "{context}");
    }
}

#[test]
fn containers_and_objects_of_cpp_have_their_types_and_the_causes_of_each_difference_in_every_abi() {
    let lab = Laboratory::new();
    check_cpp(&lab, "gcc", "-O2", &ABIS[1..]);
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn containers_and_objects_of_cpp_have_their_types_without_optimisation_and_by_clang() {
    let lab = Laboratory::new();
    check_cpp(&lab, "gcc", "-O0", &ABIS[1..2]);
    match Command::new("clang").arg("--version").output() {
        Ok(_) => check_cpp(&lab, "clang", "-O2", &ABIS[2..]),
        Err(_) => skipped("no clang: types of its programs are not tested"),
    }
}

/// The containers of `containers.cpp`: how the type's name begins, objects of each kind, and bytes of one in LP64 and ILP32.
const CONTAINERS: [(&str, i64, [i64; 2]); 14] = [
    ("std::map<int, Leaf", COUNT, [48, 24]),
    ("std::_Rb_tree_node<std::pair<int const, Leaf> >", COUNT, [56, 28]),
    ("std::_Rb_tree_node<std::pair<int const, std::vector<Branch", COUNT, [64, 32]),
    ("Branch elements of std::vector<Branch>", 2 * COUNT, [16, 8]),
    ("std::_Rb_tree_node<std::pair<int, Item<1>*> >", COUNT, [48, 24]),
    ("std::__detail::_Hash_node<std::pair<int const, std::vector<Item<2>*", COUNT, [40, 20]),
    ("Item<2>* elements of std::vector<Item<2>*>", 3 * COUNT, [8, 4]),
    ("std::_List_node<std::vector<Item<3>", COUNT, [40, 20]),
    ("Item<3> elements of std::vector<Item<3>>", 2 * COUNT, [16, 8]),
    ("Item<4> elements of std::vector<Item<4>>", COUNT, [16, 8]),
    ("std::shared_ptr<Item<5>", COUNT, [16, 8]),
    ("std::_Sp_counted_ptr_inplace<Item<5>", COUNT, [32, 20]),
    ("std::_Rb_tree_node<std::pair<int const, std::__cxx11::basic_string<char", COUNT, [72, 44]),
    ("std::vector<Item<4>, std::allocator<Item<4> > > elements of std::deque", 1008, [24, 12]),
];

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn elements_of_containers_in_containers_belong_to_the_container_that_allocates_them_in_every_abi() {
    let lab = Laboratory::new();
    for options in ["-O2", "-O0"] {
        let a = recorded(&lab, "gcc", "containers.cpp", options, ABIS[0]);
        for abi in &ABIS[1..] {
            let b = recorded(&lab, "gcc", "containers.cpp", options, *abi);
            let json = explained(&lab, &a, &b);
            sums_are_exact(&json);
            is_explained(&json);
            for (name, objects, size) in CONTAINERS {
                let found = row(&json, name);
                let context = format!("{options} {} {name}", abi.0);
                assert_eq!((found.objects, found.size), ([objects; 2], size), "{context}");
            }
            // Of lambdas, debug information has no name.
            let rows = json["types"]["types"].as_array().unwrap().iter();
            let closures: Vec<&Value> = rows
                .filter(|row| {
                    row["name"].as_str().is_some_and(|name| name.starts_with("closures(Kept, int)"))
                })
                .collect();
            assert_eq!(closures.len(), 2, "{options} {}: {closures:#?}", abi.0);
            for (row, size) in closures.iter().zip([[32, 16], [24, 12]]) {
                let sizes = ["a", "b"].map(|side| row[side]["size"].as_i64().unwrap());
                let parts = row["parts"].as_array().unwrap();
                assert_eq!((sizes, &row["certainty"]), (size, &Value::from("high")), "{row:#}");
                assert!(parts.iter().all(|part| part["is_explained"] == true), "{row:#}");
            }
        }
    }
}

fn check_c(lab: &Laboratory, compiler: &str, options: &str, variants: &[(&str, &str)]) {
    let a = recorded(lab, compiler, "types.c", options, ABIS[0]);
    for abi in variants {
        let b = recorded(lab, compiler, "types.c", options, *abi);
        let json = explained(lab, &a, &b);
        let context = format!("{compiler} {options} {}", abi.0);
        sums_are_exact(&json);
        is_explained(&json);
        let check = |name: &str, expected: Known| assert_eq!(row(&json, name), expected, "{context} {name}");
        let entry = [a.printed[0], b.printed[0]];
        assert_eq!(entry, [24, 16], "{context}");
        check("entry", known(COUNT, entry, &[("pointers", -4), ("long", -4)]));
        let table = [a.printed[1], b.printed[1]];
        assert_eq!(table, [24, 16], "{context}");
        check("table", known(10, table, &[("pointers", -4), ("size_t", -4)]));
        check("entry*[]", known(10 * COUNT, [8, 4], &[("pointers", -4)]));
        let points = of(&json, "point[]");
        assert_eq!(
            (&points["a"]["objects"], &points["b"]["objects"]),
            (&COUNT.into(), &COUNT.into()),
            "{context}"
        );
    }
}

#[test]
fn structures_of_c_have_their_types_by_malloc_and_calloc_in_every_abi() {
    let lab = Laboratory::new();
    check_c(&lab, "gcc", "-O2", &ABIS[1..]);
    check_c(&lab, "gcc", "-O0", &ABIS[1..2]);
    match Command::new("clang").arg("--version").output() {
        Ok(_) => check_c(&lab, "clang", "-O2", &ABIS[1..]),
        Err(_) => skipped("no clang: types of its programs are not tested"),
    }
}

/// What `explain` remarks on the types of a log.
pub(crate) fn remarks(lab: &Laboratory, of: &Recorded) -> String {
    let output = lab.widthwise(&["explain", of.log.to_str().unwrap(), "--json"]);
    assert_eq!(output.status, Some(0), "{output:?}");
    output.json()["types"]["remarks"].to_string()
}

#[test]
fn characters_of_strdup_are_one_type_in_every_abi() {
    let lab = Laboratory::new();
    lab.write(
        "copies.c",
        "#include <stdlib.h>\n#include <string.h>\nchar *kept[1000];\nint main(void) {\n    for (int i = 0; i < 1000; i++)\n        \
         kept[i] = i % 2 ? strdup(\"twenty-two characters\") : strndup(\"twenty-two characters\", 30);\n    return 0;\n}\n",
    );
    let a = recorded(&lab, "gcc", "copies.c", "-O1", ABIS[0]);
    for abi in &ABIS[1..] {
        let json = explained(&lab, &a, &recorded(&lab, "gcc", "copies.c", "-O1", *abi));
        sums_are_exact(&json);
        let text = json["types"].to_string();
        assert!(text.contains("strdup") && !text.contains("__str"), "{abi:?} {text}");
        assert!(!text.contains("of one of the two only"), "{abi:?} {text}");
    }
}

/// Classes of `shapes.cpp`, with the bytes of an object in LP64 and ILP32.
const CLASSES: [(&str, [i64; 2]); 4] = [
    ("Square", [24, 12]),
    ("Cube", [32, 16]),
    ("(anonymous namespace)::Sign", [40, 20]),
    ("Placed", [40, 20]),
];

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn classes_with_virtual_functions_are_known_without_debug_information_in_every_abi() {
    let lab = Laboratory::new();
    for options in ["-O2 -g0", "-O0 -g0", "-O2 -g0 -fno-pie -no-pie"] {
        let a = recorded(&lab, "gcc", "shapes.cpp", options, ABIS[0]);
        for abi in &ABIS[1..] {
            let b = recorded(&lab, "gcc", "shapes.cpp", options, *abi);
            let json = explained(&lab, &a, &b);
            let context = format!("{options} {}", abi.0);
            sums_are_exact(&json);
            // Without optimisation the call that gives malloc's block to the constructor is one of a function.
            let classes = CLASSES.iter().filter(|(name, _)| *name != "Placed" || !options.starts_with("-O0"));
            for (name, size) in classes.copied() {
                let found = of(&json, name);
                assert_eq!(found["source"], "virtual_table", "{context} {found:#}");
                let found = row(&json, name);
                assert_eq!((found.objects, found.size), ([COUNT; 2], size), "{context} {name}");
                // Of memory that begins with an object, no table says where the object ends.
                let causes: Vec<&String> = found.causes.keys().collect();
                assert_eq!(causes, ["not known"], "{context} {name}");
                assert_eq!(of(&json, name)["certainty"], "medium", "{context} {name}");
            }
            let printed: Vec<[i64; 2]> = a.printed.iter().zip(&b.printed).map(|(a, b)| [*a, *b]).collect();
            assert_eq!(printed, CLASSES.map(|(_, size)| size), "{context}");
            // Objects of two classes in blocks of one call are of neither.
            let rows = json["types"]["types"].as_array().unwrap();
            let is_either =
                |row: &&Value| matches!(row["type"].as_str(), Some("Even" | "Odd" | "Shape" | "Named"));
            assert_eq!(rows.iter().find(is_either), None, "{context}");
        }
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn bytes_that_fit_several_types_of_a_line_are_of_the_type_that_fits_each_block() {
    let lab = Laboratory::new();
    for options in ["-O1", "-O0"] {
        let [a, b] = [ABIS[0], ABIS[1]].map(|abi| recorded(&lab, "gcc", "one_line.cpp", options, abi));
        let json = explained(&lab, &a, &b);
        sums_are_exact(&json);
        // Types may stay unknown. No type has blocks of another one.
        let truths = [("Node[]", 1234, 2), ("Wide[]", 321, 1), ("int*[]", 777, 2), ("std::string[]", 321, 1)];
        for (name, objects, most) in truths {
            let rows = json["types"]["types"].as_array().unwrap().iter().filter(|row| row["type"] == name);
            let of = |row: &Value, side: &str| row[side]["objects"].as_i64().unwrap_or_default();
            let found: i64 = rows.map(|row| of(row, "a").max(of(row, "b"))).sum();
            let is_known = (0..=most).any(|times| found == times * objects);
            assert!(is_known, "{name} {found}: {:#}", json["types"]["types"]);
        }
        let of_text = |row: &&Value| row["type"].as_str().is_some_and(|name| name.starts_with("Text"));
        for row in json["types"]["types"].as_array().unwrap().iter().filter(of_text) {
            assert!(row["a"]["objects"].is_null() || row["a"]["objects"] == 700, "{row:#}");
        }
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn arrays_of_two_types_in_one_line_are_apart_where_one_of_them_has_no_stored_length() {
    in_each_abi("two_arrays.cpp", ["-O1", "-O0"], |json, context| {
        let arc = [("pointers", -4), ("long", -4), ("tail padding", -4)];
        assert_eq!(row(json, "graph::Arc[]"), known(321, [24, 12], &arc), "{context}");
        assert_eq!(objects(json, "graph::Arc"), [321, 321], "{context}");
        let owner = row(json, "std::unique_ptr<graph::Expression");
        assert_eq!((owner.objects, owner.size), ([222, 222], [8, 4]), "{context}");
        let causes: BTreeMap<String, i64> =
            [("pointers".to_owned(), -4 * 222), ("lengths stored by new[]".to_owned(), -4)].into();
        assert_eq!(owner.causes, causes, "{context}");
    });
}

#[test]
fn numbers_have_the_names_that_the_source_gives_them() {
    in_each_abi("number_names.c", ["-O1 -fno-builtin", "-O0"], |json, context| {
        let counts = [("intptr_t", 1000), ("time_t", 2000), ("word_t", 4000), ("long", 7000)];
        for (name, count) in counts {
            let expected = match name == "time_t" && context.contains(" x32:") {
                // `long long` there.
                true => known(count, [8, 8], &[]),
                false => known(count, [8, 4], &[(name, -4)]),
            };
            assert_eq!(row(json, &format!("{name}[]")), expected, "{context}");
        }
        // Of several names, the cause is the one nearest to the number.
        for (name, count) in [("ptrdiff_t[]", 5000), ("distance_t[]", 6000)] {
            assert_eq!(row(json, name), known(count, [8, 4], &[("ptrdiff_t", -4)]), "{context}");
        }
    });
}

/// Blocks whose types variables and sizes name.
const SPLIT: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct record { char *key; long value; };
struct tree { struct tree *left, *right; int key; };
void *volatile kept[1000];
int main(void) {
    struct record *records = malloc(1500 * sizeof *records);
    long *numbers = calloc(2500, sizeof(*numbers));
    for (int i = 0; i < 1000; i++) {
        struct tree *made = malloc(sizeof *made);
        kept[i] = made;
    }
    return printf("%zu\n", sizeof *records) < 0 || !records || !numbers;
}
"#;

#[test]
fn types_of_split_debug_information_are_those_of_the_program() {
    let lab = Laboratory::new();
    lab.write("split.c", SPLIT);
    for options in ["-O1 -fno-builtin -gsplit-dwarf", "-O0 -gdwarf-4 -gsplit-dwarf"] {
        // The laboratory's gcc keeps programs without their .dwo files.
        let a = recorded(&lab, "cc", "split.c", options, ABIS[0]);
        for abi in &ABIS[1..] {
            let json = explained(&lab, &a, &recorded(&lab, "cc", "split.c", options, *abi));
            let context = format!("{options} {}: {:#}", abi.0, json["types"]["types"]);
            let record = known(1500, [16, 8], &[("pointers", -4), ("long", -4)]);
            assert_eq!(row(&json, "record[]"), record, "{context}");
            assert_eq!(row(&json, "long int[]"), known(2500, [8, 4], &[("long", -4)]), "{context}");
            let tree = known(COUNT, [24, 12], &[("pointers", -8), ("tail padding", -4)]);
            assert_eq!(row(&json, "tree"), tree, "{context}");
        }
    }
}

#[test]
fn types_of_a_package_of_split_debug_information_are_those_of_the_program() {
    if output_of(Command::new("dwp").arg("--version")).status != Some(0) {
        return skipped("dwp is not installed");
    }
    let lab = Laboratory::new();
    lab.write("split.c", SPLIT);
    // Debian's dwp packs DWARF 4.
    let program = recorded(&lab, "cc", "split.c", "-O1 -fno-builtin -gdwarf-4 -gsplit-dwarf", ABIS[0]);
    let files = || std::fs::read_dir(lab.path(".")).unwrap().map(|entry| entry.unwrap().path());
    let is_apart =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "dwo" || extension == "dwp");
    let name =
        files().filter(|path| !is_apart(path)).find(|path| path.to_string_lossy().ends_with("-x86-64"));
    let name = name.unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let packed = output_of(
        Command::new("dwp").args(["-e", &name, "-o", &format!("{name}.dwp")]).current_dir(lab.path(".")),
    );
    assert_eq!(packed.status, Some(0), "{packed:?}");
    files().filter(|path| path.extension().is_some_and(|extension| extension == "dwo")).for_each(|path| {
        std::fs::remove_file(path).unwrap();
    });
    let output = lab.widthwise(&["explain", program.log.to_str().unwrap(), "--json"]);
    let json = output.json();
    for (name, objects, size) in [("record[]", 1500, 16), ("long int[]", 2500, 8), ("tree", COUNT, 24)] {
        let row = of(&json, name);
        let found = (row["a"]["objects"].as_i64(), row["a"]["size"].as_i64());
        assert_eq!(found, (Some(objects), Some(size)), "{name}: {:#}", json["types"]["types"]);
    }
}

#[test]
fn a_missing_file_of_split_debug_information_is_the_reason_for_what_is_not_known() {
    let lab = Laboratory::new();
    lab.write("split.c", SPLIT);
    let of = recorded(&lab, "cc", "split.c", "-O1 -fno-builtin -gsplit-dwarf", ABIS[0]);
    for file in std::fs::read_dir(lab.path(".")).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "dwo") {
            std::fs::remove_file(file).unwrap();
        }
    }
    let output = lab.widthwise(&["explain", of.log.to_str().unwrap(), "--json"]);
    let json = output.json();
    for remarks in [json["types"]["remarks"].to_string(), json["a"]["remarks"].to_string()] {
        assert!(remarks.contains("(.dwo) is not where the program says"), "{remarks}");
        assert!(!remarks.contains("with -g") && !remarks.contains("without -g"), "{remarks}");
    }
}

/// The objects of a type in both recordings, over all containers of it.
pub(crate) fn objects(json: &Value, name: &str) -> [i64; 2] {
    let rows = json["types"]["types"].as_array().unwrap().iter();
    let own = rows.filter(|row| row["type"].as_str().is_some_and(|own| own.split("[]").next() == Some(name)));
    own.fold([0, 0], |[a, b], row| {
        let of = |side: &str| row[side]["objects"].as_i64().unwrap_or_default();
        [a + of("a"), b + of("b")]
    })
}

#[test]
fn a_header_and_what_is_behind_it_are_no_array_of_headers() {
    let lab = Laboratory::new();
    for options in ["-O1 -fno-builtin", "-O0"] {
        let a = recorded(&lab, "gcc", "headers.c", options, ABIS[0]);
        for abi in &ABIS[1..] {
            let b = recorded(&lab, "gcc", "headers.c", options, *abi);
            let json = explained(&lab, &a, &b);
            sums_are_exact(&json);
            let context = format!("{options} {}: {:#}", abi.0, json["types"]["types"]);
            // Blocks without a type have no objects.
            for name in ["header", "packet"] {
                let found = objects(&json, name);
                assert!([[0, 0], [COUNT, COUNT]].contains(&found), "{name} {found:?} {context}");
            }
            let of_arenas = objects(&json, "arena");
            assert!([[0, 0], [40, 40]].contains(&of_arenas), "{of_arenas:?} {context}");
            assert_eq!(row(&json, "named").objects, [COUNT, COUNT], "{context}");
            assert_eq!(objects(&json, "void*"), [3 * COUNT, 3 * COUNT], "{context}");
            assert_eq!(row(&json, "later"), known(2 * COUNT, [48, 24], &[("pointers", -24)]), "{context}");
        }
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn merged_functions_parameters_and_members_do_not_name_another_type() {
    let lab = Laboratory::new();
    for options in ["-O2", "-O0"] {
        let [a, b] = [ABIS[0], ABIS[2]].map(|abi| recorded(&lab, "gcc", "merged.cpp", options, abi));
        let json = explained(&lab, &a, &b);
        sums_are_exact(&json);
        let context = format!("{options}: {:#}", json["types"]["types"]);
        let pointers = known(100_000, [8, 4], &[("pointers", -4)]);
        assert_eq!(row(&json, "void* elements of std::vector"), pointers, "{context}");
        let string = known(COUNT, [32, 24], &[("pointers", -4), ("size_t", -4)]);
        assert_eq!(row(&json, "std::string"), string, "{context}");
        let node = known(COUNT, [48, 24], &[("pointers", -20), ("holes", -4)]);
        assert_eq!(row(&json, "std::_Rb_tree_node<"), node, "{context}");
        assert_eq!(objects(&json, "T"), [1, 1], "{context}");
        let slim = objects(&json, "Slim");
        assert!(slim == [3000, 3000] || options == "-O0" && slim == [0, 0], "{slim:?} {context}");
        if options == "-O0" {
            assert_eq!(row(&json, "(anonymous namespace)::Hidden").objects, [5000, 5000], "{context}");
        }
    }
}

#[test]
fn types_and_functions_that_differ_in_the_width_of_an_integer_are_not_one() {
    let lab = Laboratory::new();
    let [a, b] = [ABIS[0], ABIS[2]].map(|abi| recorded(&lab, "gcc", "widths.cpp", "-O1", abi));
    let json = explained(&lab, &a, &b);
    sums_are_exact(&json);
    is_explained(&json);
    // Each object's causes.
    assert_eq!(row(&json, "Node<int>"), known(2000, [24, 12], &[("pointers", -8), ("holes", -4)]));
    assert_eq!(row(&json, "Node<long int>"), known(3000, [24, 12], &[("pointers", -8), ("long", -4)]));
    // size_t has another name in each ABI, and is one type all the same.
    assert_eq!(row(&json, "Node<long unsigned int>").objects, [500; 2]);
    for (name, sizes) in [("int", [40, 24]), ("long", [48, 24])] {
        let found = row(&json, &format!("std::_Rb_tree_node<std::pair<{name} const, {name}> >"));
        assert_eq!((found.objects, found.size), ([1000; 2], sizes), "{name}");
    }
    let sites = json["sites"].as_array().unwrap().iter();
    let sites: Vec<[i64; 2]> = sites
        .filter(|site| site["function"].as_str().unwrap().contains("::add"))
        .map(|site| ["a", "b"].map(|side| site[side]["peak_blocks"].as_i64().unwrap()))
        .collect();
    assert_eq!(sites, [[3000; 2], [2000; 2], [500; 2]]);
}

#[test]
fn structures_of_one_name_in_two_source_files_are_two_types() {
    let lab = Laboratory::new();
    for (file, members) in
        [("one", "struct node *next; long key;"), ("two", "struct node *links[4]; int key;")]
    {
        lab.write(
            &format!("{file}.c"),
            &format!(
                "#include <stdlib.h>\nstruct node {{ {members} }};\nvoid *volatile {file};\nvoid make_{file}(void) {{\n    \
                 struct node *made = malloc(sizeof *made);\n    {file} = made;\n}}\n"
            ),
        );
    }
    lab.write(
        "nodes.c",
        "void make_one(void), make_two(void);\nint main(void) {\n    for (int i = 0; i < 1000; i++) { make_one(); make_two(); }\n    return 0;\n}\n",
    );
    let [a, b] = [ABIS[0], ABIS[2]].map(|abi| {
        let objects = ["one", "two"].map(|file| {
            lab.gcc(&format!("-g -O1 {} -c {file}.c -o {file}-{}.o", abi.1, abi.0));
            format!("{file}-{}.o", abi.0)
        });
        recorded(&lab, "gcc", "nodes.c", &format!("-O1 {}", objects.join(" ")), abi)
    });
    let json = explained(&lab, &a, &b);
    sums_are_exact(&json);
    let rows = json["types"]["types"].as_array().unwrap().iter().filter(|row| row["type"] == "node");
    let rows: Vec<[i64; 4]> = rows
        .map(|row| {
            let of = |side: &str, key: &str| row[side][key].as_i64().unwrap();
            [of("a", "objects"), of("b", "objects"), of("a", "size"), of("b", "size")]
        })
        .collect();
    assert_eq!(rows, [[1000, 1000, 40, 20], [1000, 1000, 16, 8]]);
}

/// What is said of a program of `gcc` in x86-64 and each narrower ABI, with each of these options.
pub(crate) fn in_each_abi(program: &str, options: [&str; 2], check: impl Fn(&Value, &str)) {
    let lab = Laboratory::new();
    for options in options {
        let a = recorded(&lab, "gcc", program, options, ABIS[0]);
        for abi in &ABIS[1..] {
            let json = explained(&lab, &a, &recorded(&lab, "gcc", program, options, *abi));
            sums_are_exact(&json);
            check(&json, &format!("{options} {}: {:#}", abi.0, json["types"]["types"]));
        }
    }
}

#[test]
fn a_buffer_beside_a_structure_in_one_line_is_no_array_of_it() {
    in_each_abi("two_calls.c", ["-O1 -fno-builtin", "-O0"], |json, context| {
        for (name, causes) in [
            ("node", [("pointers", -8), ("tail padding", -4)]),
            ("twin", [("pointers", -8), ("tail padding", -4)]),
            ("lone", [("pointers", -8), ("long", -4)]),
        ] {
            assert_eq!(objects(json, name), [COUNT, COUNT], "{name} {context}");
            assert_eq!(row(json, name), known(COUNT, [24, 12], &causes), "{name} {context}");
        }
        let rows = json["types"]["types"].as_array().unwrap().iter();
        let buffers = rows.filter(|row| row["type"].is_null() && row["a"]["bytes"] == row["b"]["bytes"]);
        let bytes: i64 = buffers.map(|row| row["a"]["bytes"].as_i64().unwrap()).sum();
        assert!(bytes >= (156 + 120 + 192) * COUNT, "{bytes} {context}");
    });
}

#[test]
fn pages_from_which_objects_of_several_types_are_taken_are_no_arrays_of_one() {
    in_each_abi("pages.c", ["-O1 -fno-builtin", "-O0"], |json, context| {
        for name in ["node", "wide", "text", "pool", "cell", "cell[]"] {
            assert_eq!(objects(json, name), [0, 0], "{name} {context}");
        }
        // Those that are blocks of their own have their types, and a count makes an array.
        assert_eq!(row(json, "lone"), known(COUNT, [24, 12], &[("pointers", -8), ("long", -4)]), "{context}");
        assert_eq!(row(json, "entry[]"), known(5 * COUNT, [16, 8], &[("pointers", -8)]), "{context}");
        assert_eq!(row(json, "four[]"), known(4 * COUNT, [16, 8], &[("pointers", -8)]), "{context}");
        assert_eq!(row(json, "entry*[]"), known(8 * COUNT, [8, 4], &[("pointers", -4)]), "{context}");
    });
}

#[test]
fn the_size_of_a_block_alone_selects_no_type_among_a_structures_members() {
    in_each_abi("kinds.c", ["-O1", "-O0"], |json, context| {
        for name in ["kind_1", "kind_2", "kind_3", "kind_4", "kind_5"] {
            assert_eq!(objects(json, name), [0, 0], "{name} {context}");
        }
        // The line names the member that points to it.
        assert_eq!(row(json, "slot"), known(COUNT, [24, 12], &[("pointers", -8), ("long", -4)]), "{context}");
    });
}

#[test]
fn variables_and_constructors_that_do_not_receive_a_block_do_not_name_its_type() {
    in_each_abi("decoys.c", ["-O2", "-O0"], |json, context| {
        for name in ["statistics", "node"] {
            assert_eq!(objects(json, name), [0, 0], "{name} {context}");
        }
        assert_eq!(row(json, "request"), known(COUNT, [40, 20], &[("pointers", -20)]), "{context}");
    });
    let lab = Laboratory::new();
    for compiler in ["gcc", "clang"] {
        let [a, b] = [ABIS[0], ABIS[2]].map(|abi| recorded(&lab, compiler, "decoys.cpp", "-O2", abi));
        let json = explained(&lab, &a, &b);
        assert_eq!(objects(&json, "Table"), [0, 0], "{compiler}: {:#}", json["types"]["types"]);
    }
}

#[test]
fn structures_that_are_declared_in_functions_have_their_causes() {
    in_each_abi("local_types.c", ["-O1", "-O0"], |json, context| {
        let numbers = known(COUNT, [48, 24], &[("long", -16), ("pointers", -4), ("holes", -4)]);
        assert_eq!(row(json, "numbers()::local"), numbers, "{context}");
        let pointers = known(COUNT, [48, 24], &[("pointers", -24)]);
        assert_eq!(row(json, "pointers()::local"), pointers, "{context}");
        let single = known(COUNT, [16, 8], &[("pointers", -4), ("tail padding", -4)]);
        assert_eq!(row(json, "named_in_the_line()::single"), single, "{context}");
    });
}
