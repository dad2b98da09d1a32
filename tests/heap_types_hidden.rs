//! The types of blocks whose functions debug information has no linkage names of, or names otherwise than the code.

use serde_json::Value;

use crate::heap_types::{explained, objects, recorded, sums_are_exact, ABIS, COUNT};
use crate::laboratory::Laboratory;

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn what_containers_allocate_for_types_of_an_anonymous_namespace_has_its_type_although_all_is_inlined() {
    let lab = Laboratory::new();
    lab.write(
        "hidden.cpp",
        "#include <array>\n#include <list>\n#include <memory>\n#include <set>\n#include <string>\n#include <vector>\n#include <unistd.h>\n\
         namespace {\nstruct Hidden { void *p; long l; char c; };\nstruct Table { std::list<Hidden> all; std::vector<std::shared_ptr<Hidden>> shared; };\n}\n\
         int main() {\n  auto &table = *new Table;\n  auto &arrays = *new std::list<std::array<void *, 4>>;\n  auto &texts = *new std::set<std::u16string>;\n  \
         for (int i = 0; i < 1000; i++) {\n    table.all.emplace_back();\n    table.shared.push_back(std::make_shared<Hidden>());\n    \
         arrays.emplace_back();\n    texts.insert(std::u16string(20, u'a') + char16_t(i + 1));\n  }\n  _exit(table.shared.size() + arrays.size() + texts.size() == 7);\n}\n",
    );
    let [a, b] = [ABIS[0], ABIS[2]].map(|abi| recorded(&lab, "gcc", "hidden.cpp", "-O2", abi));
    let json = explained(&lab, &a, &b);
    sums_are_exact(&json);
    let text = |row: &Value| row["type"].as_str().unwrap_or_default().to_owned();
    let rows = json["types"]["types"].as_array().unwrap();
    for (name, sizes) in [
        ("std::_List_node<(anonymous namespace)::Hidden>", [40, 20]),
        ("std::_Sp_counted_ptr_inplace<(anonymous namespace)::Hidden", [40, 24]),
        ("std::_List_node<std::array<void*", [48, 24]),
    ] {
        let row = rows
            .iter()
            .find(|row| text(row).starts_with(name))
            .unwrap_or_else(|| panic!("{name}: {rows:#?}"));
        let of = |side: &str| (row[side]["objects"].as_i64(), row[side]["size"].as_i64());
        assert_eq!(["a", "b"].map(of), sizes.map(|size| (Some(COUNT), Some(size))), "{row:#}");
    }
    let characters: Vec<_> = rows.iter().filter(|row| text(row).starts_with("char16_t")).collect();
    let [one] = characters[..] else { panic!("{characters:#?}") };
    assert_eq!(text(one), "char16_t elements of std::u16string");
    // One more buffer may live at the peak of the one than at that of the other.
    assert!(one["difference"].as_i64().is_some_and(|bytes| bytes.abs() < 100), "{one:#}");
}

#[test]
fn a_block_that_is_known_to_be_larger_than_the_object_at_its_beginning_has_no_type_without_the_objects_size()
{
    let lab = Laboratory::new();
    lab.write(
        "larger.cpp",
        "#include <cstdlib>\n#include <new>\n\
         struct Shape { virtual ~Shape() {} virtual double area() const { return 0; } long id = 0; };\n\
         struct Circle : Shape { double r = 1; void *tag = nullptr; double area() const override { return r; } };\n\
         Shape *last[2];\n\
         __attribute__((noinline)) void header() {\n  void *p = malloc(sizeof(Circle) + 50 * sizeof(double));\n  last[0] = new (p) Circle;\n}\n\
         __attribute__((noinline)) void several() {\n  void *p = malloc(64 * sizeof(Circle));\n  last[1] = new (p) Circle;\n}\n\
         int main() {\n  for (int i = 0; i < 1000; i++) header(), several();\n  return last[0]->area() != last[1]->area();\n}\n",
    );
    let of = |options| {
        let [a, b] = [ABIS[0], ABIS[2]].map(|abi| recorded(&lab, "gcc", "larger.cpp", options, abi));
        let json = explained(&lab, &a, &b);
        sums_are_exact(&json);
        let rows = json["types"]["types"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["name"] == "Circle")
    };
    assert_eq!(of("-O2 -g1"), None, "the line asks for more");
    let row = of("-O2 -g0").unwrap();
    let parts = row["parts"].as_array().unwrap();
    assert!(
        row["certainty"] == "medium" && parts.iter().all(|part| part["is_explained"] == false),
        "{row:#}"
    );
}

#[test]
fn memory_that_is_an_argument_of_a_constructor_is_no_object_of_its_class() {
    let lab = Laboratory::new();
    lab.write(
        "views.cpp",
        "#include <cstdlib>\n#include <new>\n\
         struct View { void *p; size_t n, cap; View(void *q, size_t k) : p(q), n(k), cap(k) { last = *this; } View() = default; static View last; };\n\
         View View::last;\n\
         struct Handle { void *p; int refs; explicit Handle(void *q); };\n\
         __attribute__((noinline)) Handle::Handle(void *q) : p(q), refs(1) {}\n\
         struct Node { Node *next; long key; explicit Node(long k); };\n\
         Node *nodes;\n\
         __attribute__((noinline)) Node::Node(long k) : next(nodes), key(k) { nodes = this; }\n\
         static const size_t widths[] = {sizeof(View), sizeof(Handle), sizeof(Node)};\n\
         __attribute__((noinline)) View make(size_t k) { return View(malloc(k), k); }\n\
         __attribute__((noinline)) void use(size_t k) { Handle h(malloc(k)); *(void **)h.p = nodes; nodes = (Node *)h.p; }\n\
         __attribute__((noinline)) void placed(size_t k) { new (malloc(k)) Node(7); }\n\
         int main() {\n  for (int i = 0; i < 1000; i++) { make(widths[0]); use(widths[1]); placed(widths[2]); }\n  return !nodes;\n}\n",
    );
    let [a, b] = [ABIS[0], ABIS[2]].map(|abi| recorded(&lab, "gcc", "views.cpp", "-O2", abi));
    let json = explained(&lab, &a, &b);
    sums_are_exact(&json);
    let context = format!("{:#}", json["types"]["types"]);
    for (name, number) in [("View", 0), ("Handle", 0), ("Node", COUNT)] {
        assert_eq!(objects(&json, name), [number; 2], "{name} {context}");
    }
}
