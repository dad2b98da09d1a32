//! The same layouts from every form of debug information; hostile files are errors or notes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use widthwise_anatomy::layout::{self, Layouts};

use crate::outcomes;
use crate::programs::{is_installed, Programs};

const SHARED: &str = r"
#pragma once
namespace deep { namespace inner {
struct Point { double x, y; long id; };
template<class T, int N> struct Row { T cells[N]; Row* next; };
class Hidden;
} }
typedef struct { int a; struct { short b; char* c; } inside; } Named;
struct Node { virtual ~Node(); Node* children[2]; deep::inner::Row<deep::inner::Point, 4> row; Named named; unsigned flag : 3; };
";
const FIRST: &str = r#"
#include "shared.h"
namespace { struct Private { char* text; int length; }; }
Node::~Node() {}
unsigned first(Node* node, Private* it) { struct Local { Node* node; char mark; } local = {node, 1}; return sizeof(local) + it->length; }
void* user(Node* node) { Private it = {0, 0}; return (void*)(long)first(node, &it); }
"#;
const SECOND: &str = r#"
#include "shared.h"
struct Leaf : Node { deep::inner::Hidden* hidden; long double weight; union { int i; float f; }; ~Leaf(); };
Leaf::~Leaf() {}
struct Stem { virtual ~Stem(); void* root; };
struct Branch : Stem { ~Branch(); long length; };
Stem::~Stem() {}
Branch::~Branch() {}
unsigned second(Leaf* leaf, Branch* branch) { return sizeof(*leaf) + sizeof(*branch); }
"#;

fn sources() -> Programs {
    let programs = Programs::new();
    programs.write("shared.h", SHARED);
    programs.write("first.cc", FIRST);
    programs.write("second.cc", SECOND);
    programs
}

/// What a list of types says, without what compilers disagree on.
fn described(layouts: &Layouts) -> BTreeSet<String> {
    layouts
        .aggregates
        .iter()
        .filter_map(|id| layouts.aggregate(*id))
        // Clang describes types of its own in some forms only.
        .filter(|of| !of.name.contains("__va_list") && !of.name.contains("type_info"))
        .map(|of| {
            let members: Vec<String> = of
                .members
                .iter()
                .map(|member| {
                    let name = member.name.as_deref().unwrap_or("-").replace('$', ".");
                    format!("{name}@{:?}:{:?}:{}", member.offset, member.bits, layouts.size(member.ty))
                })
                .collect();
            format!("{} {} {} {members:?}", of.kind.keyword(), of.name, of.size)
        })
        .collect()
}

fn build(programs: &Programs, compiler: &str, name: &str, options: &[&str]) -> Layouts {
    let mut words = vec![compiler, "-g", "-shared", "-nostdlib", "-fPIC", "-w"];
    words.extend(options);
    words.extend(["-o", name, "first.cc", "second.cc"]);
    programs.run(&words);
    layout::read(&programs.path(name), 2).unwrap()
}

#[test]
fn every_form_of_debug_information_has_the_same_layouts() {
    let programs = sources();
    for compiler in ["g++", "clang++"] {
        if !is_installed(compiler) {
            outcomes::skipped("clang++ is not installed");
            continue;
        }
        let plain = build(&programs, compiler, "plain", &[]);
        assert!(plain.unread.is_empty(), "{:?}", plain.unread);
        let plain = described(&plain);
        for wanted in [
            "struct Node 160 ",
            "struct Leaf 208 ",
            "struct Named 24 ",
            "struct deep::inner::Row<deep::inner::Point, 4> 104 ",
            "struct first(",
            "struct (anonymous namespace)::Private 16 ",
        ] {
            let wanted = wanted.strip_suffix('(').unwrap_or(wanted);
            assert!(plain.iter().any(|of| of.starts_with(wanted)), "{compiler}: {wanted} in {plain:#?}");
        }
        for options in [
            &["-gdwarf-2"][..],
            &["-gdwarf-3"],
            &["-gdwarf-4"],
            &["-gdwarf-5"],
            &["-gz"],
            &["-gdwarf-4", "-fdebug-types-section"],
            &["-gdwarf-5", "-fdebug-types-section"],
            &["-gdwarf-4", "-gsplit-dwarf"],
            &["-gdwarf-5", "-gsplit-dwarf"],
            &["-gdwarf-5", "-gsplit-dwarf", "-fdebug-types-section"],
        ] {
            let name = format!("{compiler}{}", options.concat());
            let layouts = build(&programs, compiler, &name, options);
            assert!(layouts.unread.is_empty(), "{options:?} {:?}", layouts.unread);
            // In a type unit a structure has no name that only a typedef gives it: its place is its name. Clang's split units have
            // no line table of their own, and thus no places.
            let has = |option: &str| options.contains(&option);
            let loses = has("-fdebug-types-section") || compiler == "clang++" && has("-gsplit-dwarf");
            let is_named = |of: &&String| !loses || !of.contains("(unnamed ") && !of.contains("struct Named");
            let (found, wanted) = (described(&layouts), &plain);
            let named =
                |all: &BTreeSet<String>| all.iter().filter(is_named).cloned().collect::<Vec<String>>();
            assert_eq!(named(&found), named(wanted), "{compiler} {options:?}");
            assert_eq!(found.len(), wanted.len(), "{compiler} {options:?} {found:#?}");
        }
    }
}

#[test]
fn link_time_optimisation_keeps_the_layouts() {
    let programs = sources();
    let plain = described(&build(&programs, "g++", "plain", &[]));
    let lto = build(&programs, "g++", "lto", &["-flto", "-O1"]);
    assert!(lto.unread.is_empty(), "{:?}", lto.unread);
    assert_eq!(described(&lto), plain);
}

#[test]
fn a_package_of_split_units_is_read() {
    let programs = sources();
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let plain = described(&build(&programs, "g++", "plain", &[version]));
        let name = format!("split{version}");
        build(&programs, "g++", &name, &[version, "-gsplit-dwarf"]);
        let tool = if version == "-gdwarf-5" { "llvm-dwp" } else { "dwp" };
        if !is_installed(tool) {
            outcomes::skipped("dwp and llvm-dwp are not both installed");
            continue;
        }
        programs.run(&[tool, "-e", &name, "-o", &format!("{name}.dwp")]);
        for entry in std::fs::read_dir(programs.path("")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "dwo") {
                std::fs::remove_file(path).unwrap();
            }
        }
        let layouts = layout::read(&programs.path(&name), 1).unwrap();
        assert!(layouts.unread.is_empty(), "{:?}", layouts.unread);
        assert_eq!(described(&layouts), plain);
        programs.run(&["mv", &format!("{name}.dwp"), "kept.dwp"]);
        build(&programs, "g++", &name, &[version, "-gsplit-dwarf", "-O2"]);
        programs.run(&["mv", "kept.dwp", &format!("{name}.dwp")]);
        let other = layout::read(&programs.path(&name), 1).unwrap();
        assert_eq!(
            described(&other),
            plain,
            "the package is of another build, and the units beside it are the program's"
        );
        assert!(other.unread.iter().any(|unread| unread.reason.contains(".dwp")), "{:?}", other.unread);
        for entry in std::fs::read_dir(programs.path("")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "dwo") {
                std::fs::remove_file(path).unwrap();
            }
        }
        std::fs::remove_file(programs.path(&format!("{name}.dwp"))).unwrap();
        let lost = layout::read(&programs.path(&name), 1).unwrap();
        assert!(lost.unread[0].reason.contains(".dwo"), "{:?}", lost.unread);
        assert!(lost.unread[0].reason.ends_with("and 1 other file"), "{:?}", lost.unread);
    }
}

#[test]
fn the_units_of_a_package_that_are_the_programs_are_read_and_what_it_lacks_is_named() {
    if !is_installed("dwp") {
        return outcomes::skipped("dwp is not installed");
    }
    let programs = sources();
    let compile = ["g++", "-g", "-gdwarf-4", "-gsplit-dwarf", "-fPIC", "-c"];
    let link = ["g++", "-shared", "first.o", "second.o", "-o", "linked"];
    for unit in ["first.cc", "second.cc"] {
        programs.run(&[&compile[..], &[unit]].concat());
    }
    programs.run(&link);
    programs.run(&["dwp", "-e", "linked", "-o", "linked.dwp"]);
    programs.run(&[&compile[..], &["-O2", "first.cc"]].concat());
    programs.run(&link);
    programs.run(&["rm", "first.dwo", "second.dwo"]);
    let layouts = layout::read(&programs.path("linked"), 1).unwrap();
    let types = described(&layouts);
    let has = |name: &str| types.iter().any(|of| of.contains(name));
    assert!(has("Branch") && !has("Private"), "{types:?}");
    let said: Vec<&str> = layouts.unread.iter().map(|unread| unread.reason.as_str()).collect();
    let [file, package] = said.as_slice() else { panic!("{said:?}") };
    assert!(file.ends_with("first.dwo") && package.contains("(1 of the 2 DWO IDs is not in it)"), "{said:?}");
}

#[test]
fn split_units_of_another_build_are_not_taken_for_the_programs() {
    let programs = sources();
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let own = described(&build(&programs, "g++", "first", &[version, "-gsplit-dwarf"]));
        programs.run(&["cp", "first", "kept"]);
        // Its file of split units has the same name.
        build(&programs, "g++", "first", &[version, "-gsplit-dwarf", "-O2"]);
        let other = layout::read(&programs.path("first"), 1).unwrap();
        assert!(other.unread.is_empty() && described(&other) == own, "{version}: {:?}", other.unread);
        let kept = layout::read(&programs.path("kept"), 1).unwrap();
        assert!(
            kept.unread.iter().any(|unread| unread.reason.contains("its DWO ID differs")),
            "{version}: {:?}",
            kept.unread
        );
        assert!(kept.aggregates.is_empty(), "{version}");
    }
}

#[test]
fn units_that_dwz_shares_are_read() {
    if !is_installed("dwz") {
        return outcomes::skipped("dwz is not installed");
    }
    let programs = sources();
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let plain = described(&build(&programs, "g++", "one", &[version]));
        programs.run(&["cp", "one", "two"]);
        programs.run(&["dwz", "one"]);
        assert_eq!(described(&layout::read(&programs.path("one"), 2).unwrap()), plain, "{version}");
        programs.run(&["cp", "two", "one"]);
        programs.run(&["cp", "two", "three"]);
        programs.run(&["dwz", "-m", "common.debug", "two", "three"]);
        let layouts = layout::read(&programs.path("two"), 2).unwrap();
        assert!(layouts.unread.is_empty(), "{:?}", layouts.unread);
        assert_eq!(described(&layouts), plain, "{version}");
        std::fs::remove_file(programs.path("common.debug")).unwrap();
        let lost = layout::read(&programs.path("two"), 1).unwrap();
        assert!(lost.unread.iter().any(|unread| unread.reason.contains("dwz")), "{:?}", lost.unread);
    }
}

#[test]
fn a_stripped_program_is_read_by_its_separate_file() {
    let programs = sources();
    let plain = described(&build(&programs, "g++", "program", &[]));
    programs.run(&["objcopy", "--only-keep-debug", "program", "program.debug"]);
    programs.run(&["objcopy", "--strip-debug", "--add-gnu-debuglink=program.debug", "program", "stripped"]);
    assert_eq!(described(&layout::read(&programs.path("stripped"), 1).unwrap()), plain);
    std::fs::write(programs.path("program.debug"), "another file").unwrap();
    let lost = layout::read(&programs.path("stripped"), 1).unwrap();
    assert!(lost.aggregates.is_empty());
    assert!(lost.unread[0].reason.contains("build it with -g"), "{:?}", lost.unread);
}

/// The sizes that an independent reader prints, of every structure, class and union that it names.
fn sizes_of_dwarfdump(program: &Path) -> BTreeSet<(String, u64)> {
    let output = Command::new("llvm-dwarfdump").arg("--debug-info").arg(program).output().unwrap();
    let mut found = BTreeSet::new();
    let (mut name, mut size, mut is_type) = (None, None, false);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let words = line.trim();
        if line.contains("DW_TAG_") || words.is_empty() {
            if let (true, Some(name), Some(size)) = (is_type, name.take(), size.take()) {
                found.insert((name, size));
            }
            (name, size) = (None, None);
            is_type = ["structure_type", "class_type", "union_type"].iter().any(|tag| line.ends_with(tag));
        } else if let Some(rest) = words.strip_prefix("DW_AT_name") {
            name = rest.split('"').nth(1).map(str::to_owned);
        } else if let Some(rest) = words.strip_prefix("DW_AT_byte_size") {
            let digits = rest.trim().trim_matches(['(', ')']);
            size = match digits.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => digits.parse().ok(),
            };
        }
    }
    found
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn sizes_of_a_whole_program_are_those_that_another_reader_finds() {
    if !is_installed("llvm-dwarfdump") {
        return outcomes::skipped("llvm-dwarfdump is not installed");
    }
    let programs = Programs::new();
    programs.write(
        "real.cc",
        "#include <map>\n#include <regex>\n#include <string>\n#include <memory>\n#include <iostream>\n\
         int main(int n, char** v) { std::map<std::string, std::shared_ptr<int>> m; m[v[0]] = std::make_shared<int>(n);\n\
         std::regex r(v[0]); std::cout << std::regex_match(v[0], r) << m.size(); }\n",
    );
    for compiler in ["g++", "clang++"] {
        if !is_installed(compiler) {
            outcomes::skipped("clang++ is not installed");
            continue;
        }
        programs.run(&[compiler, "-g", "-O1", "-gdwarf-5", "-o", "real", "real.cc"]);
        let layouts = layout::read(&programs.path("real"), 2).unwrap();
        let ours: BTreeSet<(String, u64)> = layouts
            .aggregates
            .iter()
            .filter_map(|id| layouts.aggregate(*id))
            .map(|of| (of.name.to_string(), of.size))
            .collect();
        let theirs = sizes_of_dwarfdump(&programs.path("real"));
        assert!(theirs.len() > 300, "{}", theirs.len());
        for (name, size) in &theirs {
            let is_found = ours
                .iter()
                .any(|(own, bytes)| bytes == size && (own == name || own.ends_with(&format!("::{name}"))));
            assert!(is_found, "{compiler}: {name} {size}");
        }
    }
}

#[test]
fn rust_programs_are_read() {
    if !is_installed("rustc") {
        return outcomes::skipped("rustc is not installed");
    }
    let programs = Programs::new();
    programs.write(
        "tagged.rs",
        "pub struct Pair { a: u8, b: u64 } pub enum Tagged { Number(u32), Text(String), Nothing }\n\
         fn main() { let t = [Tagged::Number(1), Tagged::Text(String::new()), Tagged::Nothing];\n\
         let p = Pair { a: 1, b: 2 }; println!(\"{} {}\", t.len(), p.a as u64 + p.b);\n\
         if let Tagged::Text(text) = &t[1] { println!(\"{text}\"); } if let Tagged::Number(n) = t[0] { println!(\"{n}\"); } }\n",
    );
    programs.run(&["rustc", "-g", "-o", "tagged", "tagged.rs"]);
    let layouts = layout::read(&programs.path("tagged"), 2).unwrap();
    let size = |name: &str| layouts.size(layout::drawing::find(&layouts, name).unwrap());
    assert_eq!(size("tagged::Pair"), 16);
    assert_eq!(size("tagged::Tagged"), 24);
    for id in &layouts.aggregates {
        let of = layouts.aggregate(*id).unwrap();
        let pieces = layouts.segments(of, of.size, layout::Part::Whole, None);
        assert_eq!(pieces.iter().map(|piece| piece.size).sum::<u64>(), of.size, "{}", of.name);
    }
}

#[test]
fn go_programs_are_read() {
    if !Command::new("go").arg("version").output().is_ok_and(|output| output.status.success()) {
        return outcomes::skipped("go is not installed");
    }
    let programs = Programs::new();
    programs.write("go.mod", "module pair\n\ngo 1.18\n");
    programs.write(
        "pair.go",
        "package main\n\nimport \"fmt\"\n\ntype Pair struct {\n\tmark bool\n\ttext string\n\tlist []int\n}\n\n\
         func main() {\n\tp := &Pair{true, \"a\", nil}\n\tfmt.Println(p)\n}\n",
    );
    programs.run(&["go", "build", "-o", "pair", "."]);
    let layouts = layout::read(&programs.path("pair"), 2).unwrap();
    assert_eq!(layouts.size(layout::drawing::find(&layouts, "main.Pair").unwrap()), 48);
}

#[test]
fn what_is_no_program_is_refused_with_a_clear_word() {
    let programs = sources();
    programs.write("text", "no program");
    let refused = |name: &str| layout::read(&programs.path(name), 1).unwrap_err().to_string();
    assert!(refused("text").contains("text: it is no ELF file"), "{}", refused("text"));
    assert!(refused("missing").contains("missing"), "{}", refused("missing"));
    programs.run(&["mkfifo", "pipe"]);
    assert!(refused("pipe").contains("no regular file"), "{}", refused("pipe"));
    programs.run(&["g++", "-c", "-g", "-o", "object.o", "first.cc"]);
    assert!(refused("object.o").contains("name the program"), "{}", refused("object.o"));
}

#[test]
fn damaged_files_neither_panic_nor_hang() {
    let programs = sources();
    build(&programs, "g++", "whole", &["-gdwarf-5", "-Os"]);
    let whole = std::fs::read(programs.path("whole")).unwrap();
    for length in (0..whole.len()).step_by(97) {
        let _ = layout::read_bytes(&whole[..length]);
    }
    let mut runner = proptest::test_runner::TestRunner::new(proptest::test_runner::Config {
        cases: 300,
        failure_persistence: None,
        ..Default::default()
    });
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40);
    let result = runner.run(&changes, |changes| {
        let mut bytes = whole.clone();
        for (at, byte) in changes {
            bytes[at.index(whole.len())] = byte;
        }
        if let Ok(layouts) = layout::read_bytes(&bytes) {
            let comparison = layout::compare(&layouts, &layouts, &layout::Weights::new());
            prop_assert!(comparison.differences.is_empty());
        }
        Ok(())
    });
    result.unwrap();
}
