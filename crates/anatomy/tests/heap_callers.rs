//! What functions around allocations name, from debug information of two compilers and several versions; and damaged programs.

use std::collections::BTreeSet;
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol};
use proptest::prelude::*;
use rustc_hash::FxHashSet;
use widthwise_anatomy::heap::types::callers::{read, read_bytes, Evidence, Returned, Target, Wanted};
use widthwise_anatomy::heap::types::constructed;

use crate::outcomes;
use crate::programs::{is_installed, Programs, ABIS};

/// Each function calls `allocate` once, in the line with its name.
const SOURCE: &str = r#"
extern "C" void* allocate(unsigned long);
namespace own { struct Node { Node* next; long key; }; }
typedef struct { own::Node** table; int used; } Table;
extern "C" void* variable(unsigned long n) {
    own::Node* node;
    node = (own::Node*)allocate(n); // variable
    node->next = 0;
    return node;
}
extern "C" own::Node* result(unsigned long n) {
    return (own::Node*)allocate(n); // result
}
extern "C" int member(Table* table, unsigned long n) {
    table->table = (own::Node**)allocate(n); // member
    return table->used;
}
extern "C" void nothing(void** to, unsigned long n) {
    *to = allocate(n); // nothing
}
"#;

/// Functions that make objects with and without virtual functions.
const OBJECTS: &str = r#"
typedef __SIZE_TYPE__ size;
void* operator new(size);
void operator delete(void*, size);
__attribute__((always_inline)) inline void* operator new(size, void* room) { return room; }
struct Shape { virtual ~Shape(); virtual long area() const = 0; Shape* next; };
struct Square : Shape { Square(); long area() const override; long side; };
struct Cube : Square { long area() const override; };
struct Other : Shape { long area() const override; };
void seen(Shape*);
Shape::~Shape() { seen(this); }
__attribute__((noinline)) Square::Square() : side(1) {}
long Square::area() const { return side; }
long Cube::area() const { return 6 * side; }
long Other::area() const { return 3; }
struct Plain { Plain(); long side; };
Plain::Plain() : side(2) {}
extern "C" void* inlined() { return new Cube; }
extern "C" void* called() { return new Square; }
extern "C" void* either(int is_cube) {
    Shape* made = static_cast<Shape*>(operator new(sizeof(Cube)));
    if (is_cube) return new (made) Cube;
    return new (made) Other;
}
extern "C" void* plain() { return new Plain; }
extern "C" void repeated(Shape** all, int count) {
    for (int i = 0; i < count; i++) all[i] = new Other;
}
struct Text : Square { long area() const override; };
long Text::area() const { return 9; }
void seen(const char*);
extern "C" void reused(Shape** all, int count, const char* text) {
    for (const char* at = text; *at; at++) seen(at);
    for (int i = 0; i < count; i++) {
        seen(text + i);
        all[i] = new Text;
        seen(all[i]);
    }
}
extern "C" void unknown(void** table) {
    Square* made = new Square;
    *reinterpret_cast<void* volatile*>(made) = table;
    seen(made);
}
extern "C" long destroyed(int number) {
    Shape* shape = new Cube;
    seen(shape);
    long area = number;
    if (number > 0) delete shape; else area = shape->area();
    return area;
}
"#;

/// The class of what a function makes, and nothing else.
fn made(program: &Path, function: &str) -> Vec<String> {
    let bytes = std::fs::read(program).expect("the program");
    let places = behind_calls(program, function);
    let (begin, end) = (places[0] - 1, *places.last().expect("a place"));
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let section = file
        .sections()
        .find(|section| (section.address()..section.address() + section.size()).contains(&begin))
        .expect("the code");
    let code = section.data_range(begin, end - begin).expect("data").expect("all of it");
    let bits = if file.architecture() == object::Architecture::I386 { 32 } else { 64 };
    let decoder = iced_x86::Decoder::with_ip(bits, code, begin, iced_x86::DecoderOptions::NONE);
    let calls = decoder.into_iter().filter(|one| one.flow_control() == iced_x86::FlowControl::Call);
    let returns = calls.map(|call| call.next_ip()).collect();
    let found: BTreeSet<String> = constructed::read(program, &returns).into_values().collect();
    found.into_iter().collect()
}

#[test]
fn code_that_constructs_an_object_stores_the_virtual_table_of_its_class() {
    let programs = Programs::new();
    programs.write("objects.cc", OBJECTS);
    for (abi, option) in ABIS {
        for level in ["-O2", "-O0"] {
            for visibility in ["-fvisibility=default", "-fvisibility=hidden"] {
                let program = programs.build("g++", "objects.cc", &[option, level, visibility]);
                let context = format!("{abi} {level} {visibility}");
                assert_eq!(made(&program, "inlined"), ["Cube"], "{context}");
                assert_eq!(made(&program, "called"), ["Square"], "{context}");
                assert_eq!(made(&program, "repeated"), ["Other"], "{context}");
                assert_eq!(made(&program, "destroyed"), ["Cube"], "{context}");
                assert_eq!(made(&program, "reused"), ["Text"], "{context}");
                // A table that is not known makes another class of it.
                assert!(made(&program, "unknown").is_empty(), "{context}");
                // A block of either class is of neither.
                assert!(made(&program, "either").is_empty(), "{context}");
                assert!(made(&program, "plain").is_empty(), "{context}");
                let stripped = programs.path("stripped");
                programs.run(&["strip", "-o", "stripped", program.to_str().expect("a path")]);
                let returns = behind_calls(&program, "called").into_iter().collect();
                assert_eq!(
                    constructed::read(&stripped, &returns),
                    constructed::read(&program, &returns),
                    "{context}"
                );
            }
        }
    }
}

/// The places behind all instructions of a function: one of them is behind the call.
fn behind_calls(program: &Path, function: &str) -> Vec<u64> {
    let bytes = std::fs::read(program).expect("the program");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let symbol = file
        .symbols()
        .chain(file.dynamic_symbols())
        .find(|symbol| symbol.name() == Ok(function))
        .expect(function);
    (symbol.address() + 1..=symbol.address() + symbol.size()).collect()
}

/// What any place of a function says with that evidence.
fn named(program: &Path, function: &str, evidence: Evidence) -> BTreeSet<(String, Option<u64>)> {
    let found = read(program, &places(program, function));
    let targets =
        found.into_values().flat_map(|around| around.targets).filter(|target| target.evidence == evidence);
    targets.map(|Target { name, size, .. }| (name, size)).collect()
}

/// All places of a function that a call may return to.
fn places(program: &Path, function: &str) -> FxHashSet<Wanted> {
    let addresses = behind_calls(program, function).into_iter();
    addresses.map(|address| Wanted { address, line: None, frame: 0 }).collect()
}

/// What a function returns.
fn returned(program: &Path, function: &str) -> BTreeSet<Returned> {
    read(program, &places(program, function)).into_values().map(|around| around.returned).collect()
}

/// A function that calls `allocate`, with debug information (DWARF 5) as clang 21 writes it for `new own::Node`: a call site with
/// the type that is allocated.
const CALL: &str = r#"
    .text
    .globl make
    .type make, @function
make:
.Lbegin:
    call allocate@PLT
.Lreturn:
    ret
.Lend:
    .size make, .-make
    .section .debug_abbrev, "", @progbits
    .uleb128 1, 0x11                     # compile unit, with children
    .byte 1
    .uleb128 0x11, 1, 0x12, 7, 0, 0      # low_pc addr, high_pc data8
    .uleb128 2, 0x2e                     # subprogram, with children
    .byte 1
    .uleb128 3, 8, 0x11, 1, 0x12, 7, 0, 0
    .uleb128 3, 0x48                     # call site
    .byte 0
    .uleb128 0x7d, 1, 0x3e0e, 0x13, 0, 0 # call_return_pc addr, LLVM_alloc_type ref4
    .uleb128 4, 0x13                     # structure
    .byte 0
    .uleb128 3, 8, 0x0b, 0x0b, 0, 0      # name, byte_size data1
    .uleb128 0
    .section .debug_info, "", @progbits
.Lunit:
    .long .Lunit_end - .Lversion
.Lversion:
    .value 5
    .byte 1, 8                           # DW_UT_compile, bytes of an address
    .long 0
    .uleb128 1
    .quad .Lbegin, .Lend - .Lbegin
    .uleb128 2
    .string "make"
    .quad .Lbegin, .Lend - .Lbegin
    .uleb128 3
    .quad .Lreturn
    .long .Lnode - .Lunit
    .byte 0
.Lnode:
    .uleb128 4
    .string "Node"
    .byte 24
    .byte 0
.Lunit_end:
"#;

#[test]
fn a_call_names_what_the_compiler_says_it_allocates() {
    let programs = Programs::new();
    programs.write("call.s", CALL);
    programs.run(&["gcc", "-shared", "-nostdlib", "-o", "call.so", "call.s"]);
    let program = programs.path("call.so");
    let node = ("Node".to_owned(), Some(24));
    assert_eq!(named(&program, "make", Evidence::Call), BTreeSet::from([node]));
    // Of all places of the function, only the one behind the call.
    let found = read(&program, &places(&program, "make"));
    assert_eq!(found.values().filter(|around| !around.targets.is_empty()).count(), 1);
}

#[test]
fn variables_results_and_members_name_what_they_point_to() {
    let programs = Programs::new();
    programs.write("callers.cc", SOURCE);
    for compiler in ["g++", "clang++"] {
        if !is_installed(compiler) {
            outcomes::skipped(&format!("no {compiler}: its debug information is not read here"));
            continue;
        }
        for options in [&["-O2", "-gdwarf-5"][..], &["-O0", "-gdwarf-4"], &["-O2", "-m32", "-gdwarf-2"]] {
            let program = programs.build(compiler, "callers.cc", options);
            let (word, node) = if options.contains(&"-m32") { (4, 8) } else { (8, 16) };
            let node = ("own::Node".to_owned(), Some(node));
            assert!(
                named(&program, "variable", Evidence::Variable).contains(&node),
                "{compiler} {options:?}"
            );
            assert!(named(&program, "result", Evidence::Result).contains(&node), "{compiler} {options:?}");
            let pointer = ("own::Node*".to_owned(), Some(word));
            assert!(named(&program, "member", Evidence::Member).contains(&pointer), "{compiler} {options:?}");
            for (function, expected) in [
                ("variable", Returned::Pointer),
                ("result", Returned::Pointer),
                ("member", Returned::Other),
                ("nothing", Returned::Other),
            ] {
                assert_eq!(
                    returned(&program, function),
                    BTreeSet::from([expected]),
                    "{function} {compiler} {options:?}"
                );
            }
        }
    }
    // gcc describes functions without types there, clang describes none.
    let program = programs.build("g++", "callers.cc", &["-O2", "-g1"]);
    for function in ["variable", "nothing"] {
        assert_eq!(returned(&program, function), BTreeSet::from([Returned::Unknown]), "{function}");
    }
}

#[test]
fn damaged_programs_name_something_or_nothing() {
    let programs = Programs::new();
    programs.write("callers.cc", SOURCE);
    let program = programs.build("g++", "callers.cc", &["-O2"]);
    let bytes = std::fs::read(&program).expect("the program");
    let addresses = behind_calls(&program, "variable");
    let wanted =
        addresses.iter().map(|address| Wanted { address: *address, line: Some(8), frame: 0 }).collect();
    let length = bytes.len();
    proptest!(ProptestConfig::with_cases(300), |(places in prop::collection::vec((0..length, any::<u8>()), 1..20), end in 0..=length)| {
        let mut damaged = bytes.clone();
        for (place, byte) in places {
            damaged[place] = byte;
        }
        read_bytes(&damaged, &wanted);
        read_bytes(&damaged[..end], &wanted);
    });
}

#[test]
fn damaged_programs_construct_something_or_nothing() {
    let programs = Programs::new();
    programs.write("objects.cc", OBJECTS);
    for (_, option) in [ABIS[0], ABIS[2]] {
        let program = programs.build("g++", "objects.cc", &[option, "-O2"]);
        let bytes = std::fs::read(&program).expect("the program");
        let returns = behind_calls(&program, "inlined").into_iter().collect();
        let length = bytes.len();
        proptest!(ProptestConfig::with_cases(300), |(places in prop::collection::vec((0..length, any::<u8>()), 1..20), end in 0..=length)| {
            let mut damaged = bytes.clone();
            for (place, byte) in places {
                damaged[place] = byte;
            }
            constructed::read_bytes(&damaged, &returns);
            constructed::read_bytes(&damaged[..end], &returns);
        });
    }
}
