//! The types of arrays and of lines with several calls: a stored length is no object, and of types that fit alike none is named.

use std::process::Command;

use serde_json::Value;

use crate::heap_types::{explained, in_each_abi, objects, recorded, remarks, sums_are_exact, ABIS, COUNT};
use crate::laboratory::outcomes::skipped;
use crate::laboratory::{output_of, Laboratory};

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_stored_length_is_no_object_and_of_types_that_fit_alike_none_is_named() {
    let lab = Laboratory::new();
    // Clang has no C++ library of the other ABIs on some systems: its program is compared with itself.
    for (compiler, others) in [("gcc", &ABIS[1..]), ("clang", &ABIS[..1])] {
        if output_of(Command::new(compiler).arg("--version")).status != Some(0) {
            return skipped("clang is not installed");
        }
        let made = |abi| recorded(&lab, compiler, "new_arrays.cpp", "-O1 -std=c++17", abi);
        let first = made(ABIS[0]);
        for abi in others {
            let json = match compiler {
                "gcc" => explained(&lab, &first, &made(*abi)),
                _ => explained(&lab, &first, &first),
            };
            has_its_objects(&json, &format!("{compiler} {}: {:#}", abi.0, json["types"]["types"]));
        }
    }
}

fn has_its_objects(json: &Value, context: &str) {
    sums_are_exact(json);
    for (name, each) in [("Counted", 9), ("Plain", 9), ("Defaulted", 9), ("Aligned", 3), ("Owner", 2)] {
        assert_eq!(objects(json, name), [100 * each; 2], "{name} {context}");
    }
    let [gcc, clang] = ["Box<long int>", "Box<long>"].map(|name| objects(json, name));
    assert_eq!([gcc[0] + clang[0], gcc[1] + clang[1]], [600; 2], "{context}");
    assert_eq!(objects(json, "Box<Counted>"), [600; 2], "{context}");
    // The blocks of each of these lines are of two types, which both have their size in every ABI.
    let rows = json["types"]["types"].as_array().unwrap();
    let is_named =
        |name: &str| rows.iter().any(|row| row["type"].as_str().is_some_and(|own| own.starts_with(name)));
    for name in ["Pair", "Five", "Single", "Macro", "Pointer"] {
        assert!(!is_named(name), "{name} {context}");
    }
}

#[test]
fn blocks_that_begin_with_a_structure_and_pages_of_a_pool_are_no_arrays() {
    let lab = Laboratory::new();
    let recording = recorded(&lab, "gcc", "tails.c", "-O1 -fno-builtin", ABIS[0]);
    let json = explained(&lab, &recording, &recording);
    let context = format!("{:#}", json["types"]["types"]);
    for name in ["chunk", "older", "outer", "header", "pool"] {
        assert_eq!(objects(&json, name), [0; 2], "{name} {context}");
    }
    // That the size of these blocks is a multiple of a structure's shows nothing, where it has one size on both sides.
    assert_eq!(objects(&json, "plain"), [0; 2], "{context}");
}

#[test]
fn what_is_behind_an_object_in_its_block_is_known_where_it_is_as_much_in_both_abis() {
    let lab = Laboratory::new();
    let [first, others @ ..] = ABIS.map(|abi| recorded(&lab, "gcc", "tails.c", "-O1 -fno-builtin", abi));
    for other in others {
        let json = explained(&lab, &first, &other);
        sums_are_exact(&json);
        assert_eq!(objects(&json, "plain"), [4 * COUNT; 2], "{json:#}");
        let rows = json["types"]["types"].as_array().unwrap();
        let row = |name: &str| rows.iter().find(|row| row["name"] == name);
        for (name, behind) in [("entry", "char"), ("table", "void*"), ("label", "byte")] {
            let row = row(name).unwrap_or_else(|| panic!("{name}: {rows:#?}"));
            assert_eq!(
                (row["behind"].as_str(), row["certainty"].as_str()),
                (Some(behind), Some("medium")),
                "{row}"
            );
            assert_eq!(
                [&row["a"], &row["b"]].map(|side| side["objects"].as_i64()),
                [Some(COUNT); 2],
                "{row}"
            );
            let parts = row["parts"].as_array().unwrap();
            let causes: Vec<&str> = parts.iter().filter_map(|part| part["cause"].as_str()).collect();
            assert!(!causes.is_empty() && !causes.contains(&"unexplained"), "{row}");
        }
        // The pointers behind the tables are a part of the pointers' difference.
        let slots: i64 = (0..COUNT).map(|index| 1 + index % 29).sum();
        let pointers = row("table").unwrap()["parts"]
            .as_array()
            .unwrap()
            .iter()
            .find(|part| part["cause"] == "pointers");
        assert_eq!(pointers.unwrap()["bytes"].as_i64(), Some(-4 * (slots + COUNT)), "{rows:#?}");
        for name in ["padded", "several", "keys"] {
            assert!(row(name).is_none(), "{name}: {rows:#?}");
        }
    }
}

/// The size of a class is a multiple of that of its base in both ABIs.
#[test]
fn an_object_whose_size_is_in_a_table_of_classes_is_no_array_of_its_base() {
    let lab = Laboratory::new();
    lab.write(
        "classes.c",
        "#include <stdlib.h>\n\
         struct base { struct base *next; void *class; };\n\
         struct counter { struct base base; long count, limit; };\n\
         struct list { struct base base; void **all; long used; struct base *first; long room; };\n\
         struct class { const char *name; size_t size; };\n\
         enum { PAIR = 2 * sizeof(void *) };\n\
         static struct class classes[] = {{\"counter\", sizeof(struct counter)}, {\"list\", sizeof(struct list)}};\n\
         struct base *all; void **rows; long **columns; struct base *several;\n\
         __attribute__((noinline)) void *take(void *pool, size_t size) { (void)pool; return malloc(size); }\n\
         __attribute__((noinline)) void zeroed(struct class *c) { struct base *o = calloc(1, c->size); o->next = all; all = o; }\n\
         __attribute__((noinline)) void plain(struct class *c) { struct base *o = malloc(c->size); o->next = all; all = o; }\n\
         __attribute__((noinline)) void taken(struct class *c) { struct base *o; o = take(all, c->size); o->next = all; all = o; }\n\
         __attribute__((noinline)) void by_size(size_t size) { struct base *o = malloc(size); o->next = all; all = o; }\n\
         __attribute__((noinline)) void row(int n) { void **o = calloc(n, sizeof *o); o[0] = rows; rows = o; }\n\
         __attribute__((noinline)) void column(size_t size) { long **o = malloc(size); o[0] = (long *)columns; columns = o; }\n\
         __attribute__((noinline)) void objects(int n) { struct base *o = malloc(n * PAIR); o->next = several; several = o; }\n\
         int main(void) {\n\
             for (int i = 0; i < 1000; i++) {\n\
                 zeroed(&classes[0]);\n\
                 plain(&classes[i % 2]);\n\
                 taken(&classes[1]);\n\
                 by_size(sizeof(struct list));\n\
                 row(3);\n\
                 column((2 + i % 3) * sizeof(void *));\n\
                 objects(5);\n\
             }\n\
             return !all;\n\
         }\n",
    );
    let [a, b] = [ABIS[0], ABIS[2]].map(|abi| recorded(&lab, "gcc", "classes.c", "-O1", abi));
    let json = explained(&lab, &a, &b);
    sums_are_exact(&json);
    let context = format!("{:#}", json["types"]["types"]);
    // A product and several sizes show arrays.
    for (name, number) in [("base", 5 * COUNT), ("void*", 3 * COUNT), ("long int*", 2999)] {
        assert_eq!(objects(&json, name), [number; 2], "{name} {context}");
    }
}

/// Its blocks have several sizes, and its name is that of an allocating function: its callers are the sites.
#[test]
fn a_constructor_that_is_taken_for_a_wrapper_names_the_type_of_its_objects() {
    let lab = Laboratory::new();
    lab.write(
        "made.c",
        "#include <stdlib.h>\n\
         struct entry { struct entry *next; long hash; char key[]; };\n\
         struct entry *all;\n\
         __attribute__((noinline)) static struct entry *entry_alloc(size_t length) {\n\
             struct entry *made = malloc(sizeof(struct entry) + length);\n\
             made->next = all;\n\
             return all = made;\n\
         }\n\
         __attribute__((noinline)) static void word(int i) { entry_alloc(5 + i % 9)->hash = i; }\n\
         __attribute__((noinline)) static void line(int i) { entry_alloc(30 + i % 31)->hash = i; }\n\
         int main(void) {\n\
             for (int i = 0; i < 1000; i++)\n\
                 word(i), line(i);\n\
             return !all;\n\
         }\n",
    );
    let [a, b] = [ABIS[0], ABIS[2]].map(|abi| recorded(&lab, "gcc", "made.c", "-O1", abi));
    let json = explained(&lab, &a, &b);
    let sites = json["types"]["sites"].as_array().unwrap();
    for function in ["word", "line"] {
        let site =
            sites.iter().find(|site| site["function"] == function).unwrap_or_else(|| panic!("{sites:#?}"));
        assert_eq!(
            (&site["type"], &site["a"]["objects"]),
            (&"entry + char[]".into(), &1000.into()),
            "{sites:#?}"
        );
    }
}

#[test]
fn nodes_and_control_blocks_whose_functions_the_compiler_merged_are_apart_in_both_tables() {
    let lab = Laboratory::new();
    let recording = recorded(&lab, "gcc", "merged_nodes.cpp", "-Os", ABIS[0]);
    let json = explained(&lab, &recording, &recording);
    let context = format!("{:#}", json["types"]["types"]);
    for (function, node, number) in [
        ("make_nodes(int)", "std::_List_node<", 4 * COUNT),
        ("make_shared(int)", "std::_Sp_counted_ptr_inplace<", COUNT),
    ] {
        let of = |table: &Value| {
            let sites = table.as_array().unwrap();
            sites.iter().find(|site| site["function"] == function).cloned().unwrap()
        };
        let (site, typed) = (of(&json["sites"]), of(&json["types"]["sites"]));
        assert!(site["made"].as_str().is_some_and(|made| made.starts_with(node)), "{site}");
        assert_eq!(
            (&site["made"], typed["a"]["objects"].as_i64()),
            (&typed["type"], Some(number)),
            "{context}"
        );
    }
}

#[test]
fn each_side_says_which_files_of_split_debug_information_are_missing() {
    let lab = Laboratory::new();
    lab.write(
        "pair.c",
        "#include <stdlib.h>\nstruct pair { void *a, *b; };\nstruct pair *make(int n) {\n    struct pair *made = calloc(n, sizeof *made);\n    return made;\n}\n",
    );
    lab.write("other.c", "#include <stdlib.h>\nvoid *other(void) { return malloc(7); }\n");
    lab.write("third.c", "#include <stdlib.h>\nvoid *third(void) { return malloc(7); }\n");
    lab.write(
        "main.c",
        "#include <stdlib.h>\nstruct pair *make(int);\nvoid *other(void), *third(void);\nint main(void) {\n    void *all[] = {make(9), other(), third()};\n    return !all[0];\n}\n",
    );
    let options = "-O0 -gsplit-dwarf pair.c other.c third.c";
    let [of_a, of_b] = [ABIS[0], ABIS[2]].map(|abi| recorded(&lab, "cc", "main.c", options, abi));
    assert_eq!(remarks(&lab, &of_a), "[]");
    let lose = |unit: &str| {
        let files = std::fs::read_dir(lab.path(".")).unwrap().map(|entry| entry.unwrap().path());
        let is_meant = |path: &std::path::PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.contains("x86-64") && name.ends_with(&format!("-{unit}.dwo"))
        };
        let file = files.into_iter().find(is_meant).unwrap();
        std::fs::remove_file(&file).unwrap();
        file.file_name().unwrap().to_string_lossy().into_owned()
    };
    let first = lose("pair");
    let said = remarks(&lab, &of_a);
    assert!(
        said.contains(&format!("{first}; blocks that its code allocates may be without a type")),
        "{said}"
    );
    lose("third");
    let json = explained(&lab, &of_a, &of_b);
    let said = json["types"]["remarks"].as_array().unwrap();
    let [only] = said.as_slice() else { panic!("{said:?}") };
    let only = only.as_str().unwrap();
    assert!(only.contains(&format!("{first}, and 1 other file; blocks")), "{only}");
    assert_eq!(objects(&json, "pair")[1], 9, "{:#}", json["types"]["types"]);
}

#[test]
fn a_block_has_no_type_of_its_function_s_callers_unless_their_call_gives_it_to_them() {
    in_each_abi("handed_over.c", ["-O1 -fno-builtin", "-O0"], |json, context| {
        // As many blocks of that size are tables, which functions without a result and other calls of the lines allocate.
        assert_eq!(objects(json, "call"), [5 * COUNT; 2], "{context}");
        for name in ["node", "item", "pair"] {
            assert_eq!(objects(json, name), [COUNT; 2], "{name} {context}");
        }
        // A call that asks for a sum of variables asks for no array of the one's type.
        assert_eq!(objects(json, "part"), [3 * COUNT; 2], "{context}");
    });
}
