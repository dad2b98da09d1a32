//! Known truths of a file's parts: compile units, inlined copies, waste. Programs whose parts are known, in three ABIs.

use std::path::{Path, PathBuf};
use std::process::Command;

use widthwise_anatomy::debug::{self, Sections, Units};
use widthwise_anatomy::elf::{section_flag, section_type, Elf};
use widthwise_anatomy::size::inlined::{self, Origin};
use widthwise_anatomy::size::waste::{self, Waste, WasteKind};
use widthwise_anatomy::size::{self, by_unit::UnitRow, difference, variables, RowKind};

const ABIS: [(&str, &str, u64, u64); 3] = [
    ("x86-64", "", 8, 24),
    ("x32", "-mx32 -idirafter /usr/include/x86_64-linux-gnu", 4, 12),
    ("i386", "-m32 -idirafter /usr/include/x86_64-linux-gnu", 4, 8),
];

const FIRST: &str = r#"
#include <cstdio>
static inline __attribute__((always_inline)) int copied(int value, int other) {
  for (int at = 0; at < other; at++) value = value * 31 + (value >> 3) + at;
  return value;
}
long table_of_first[40] = {1, 2, 3};
int second(int);
__attribute__((noinline)) int one(int a, int b) { return copied(a, b) + 1; }
__attribute__((noinline)) int two(int a, int b) { return copied(b, a) - 1; }
int main(int argc, char **) { printf("%d", one(argc, 3) + two(argc, 4) + copied(argc, 9) + second(argc)); }
"#;
const SECOND: &str = r#"
long table_of_second[60] = {4, 5, 6};
int second(int value) { return (int)table_of_second[value & 31] + value; }
"#;

/// A folder with a program built from these sources.
fn build(folder: &Path, name: &str, sources: &[(&str, &str)], options: &str) -> PathBuf {
    let mut words: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
    for (source, text) in sources {
        std::fs::write(folder.join(source), text).unwrap();
        words.push((*source).to_owned());
    }
    let output = Command::new("g++").current_dir(folder).args(&words).args(["-o", name]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    folder.join(name)
}

/// A program's parts.
struct Parts {
    rows: Vec<UnitRow>,
    origins: Vec<Origin>,
    waste: Vec<Waste>,
    /// Bytes of the executable sections.
    code: u64,
}

impl Parts {
    fn of_unit(&self, unit: &str, section: &str) -> u64 {
        let is_it = |row: &&UnitRow| row.unit == unit && row.section == section;
        self.rows.iter().find(is_it).map_or(0, |row| row.bytes)
    }

    fn origin(&self, name: &str) -> &Origin {
        let is_it = |origin: &&Origin| String::from_utf8_lossy(&origin.name).contains(name);
        self.origins.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {:?}", self.origins))
    }

    fn waste(&self, kind: WasteKind, name: &str) -> Option<&Waste> {
        self.waste.iter().find(|waste| waste.kind == kind && waste.name.contains(name))
    }
}

/// Reads a file's parts. The sums are exact for each file.
fn parts(path: &Path) -> Parts {
    let bytes = std::fs::read(path).unwrap();
    let elf = Elf::read(&bytes).unwrap();
    let named = elf.named();
    let sections = Sections::of(&elf);
    let units: Units = debug::read(&sections, 2);
    assert_eq!(units.unread, Vec::<String>::new(), "{}", path.display());
    let rows = size::units(&elf, &named, &sections, &units);
    assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), bytes.len() as u64, "{}", path.display());
    let is_code = |section: &&widthwise_anatomy::elf::Section| {
        section.has(section_flag::EXECINSTR) && section.kind != section_type::NOBITS
    };
    let code = elf.sections.iter().filter(is_code).map(|section| section.size).sum();
    let origins = inlined::origins(&elf, &named, &units);
    let sum: u64 = origins.iter().map(|origin| origin.own + origin.inlined).sum();
    assert_eq!(sum, code, "{}", path.display());
    Parts { rows, origins, waste: waste::find(&elf, &named), code }
}

#[test]
fn bytes_belong_to_the_unit_that_they_come_from_and_copies_to_the_function() {
    let folder = tempfile::tempdir().unwrap();
    let sources = [("first.cc", FIRST), ("second.cc", SECOND)];
    for (abi, option, ..) in ABIS {
        let long = if abi == "x86-64" { 8 } else { 4 };
        for (number, more) in
            ["-gdwarf-5", "-gdwarf-4 -fPIE -pie", "-gdwarf-3", "-gdwarf-2", "-g -gz=zlib", "-g -flto -no-pie"]
                .iter()
                .enumerate()
        {
            let path =
                build(folder.path(), &format!("{abi}-{number}"), &sources, &format!("-O1 {option} {more}"));
            let found = parts(&path);
            let copied = found.origin("copied");
            assert_eq!((copied.own, copied.copies), (0, 3), "{abi} {more}: {copied:?}");
            assert!(copied.inlined > 20 && copied.inlined < found.code, "{abi} {more}: {copied:?}");
            let one = found.origin("_Z3oneii");
            assert!(one.own > 0 && one.copies == 0, "{abi} {more}: {one:?}");
            if more.contains("lto") {
                continue;
            }
            assert_eq!(found.of_unit("first.cc", ".data"), 40 * long, "{abi} {more}: {:#?}", found.rows);
            assert_eq!(found.of_unit("second.cc", ".data"), 60 * long, "{abi} {more}: {:#?}", found.rows);
            for (unit, section) in [("first.cc", ".text"), ("second.cc", ".text"), ("first.cc", ".eh_frame")]
            {
                assert!(found.of_unit(unit, section) > 8, "{abi} {more} {unit} {section}: {:#?}", found.rows);
            }
            // Offsets in compressed sections are none of the file.
            let is_plain = !more.contains("-gz");
            for section in [".debug_info", ".debug_line", ".debug_abbrev"] {
                let bytes = found.of_unit("second.cc", section);
                assert_eq!(bytes > 0, is_plain, "{abi} {more} {section}: {:#?}", found.rows);
            }
            if is_plain {
                assert_eq!(found.of_unit("", ".debug_info"), 0, "{abi} {more}: {:#?}", found.rows);
            }
        }
    }
}

#[test]
fn files_without_debug_information_have_one_unit_and_no_copies() {
    let folder = tempfile::tempdir().unwrap();
    let sources = [("first.cc", FIRST), ("second.cc", SECOND)];
    for options in ["-O1", "-O1 -g -s"] {
        let found = parts(&build(folder.path(), "program", &sources, options));
        assert!(found.rows.iter().all(|row| row.unit.is_empty()), "{options}: {:?}", found.rows);
        assert!(found.origins.iter().all(|origin| origin.copies == 0), "{options}: {:?}", found.origins);
    }
}

/// A function that nothing calls: more code than what is before `.text`, and a copy deep in it.
const REMOVED: &str = r#"
static inline __attribute__((always_inline)) int copied_into_removed(int value) { asm volatile(".fill 512, 1, 0x90"); return value; }
int removed(int value) { asm volatile(".fill 4096, 1, 0x90"); return copied_into_removed(value) + 1; }
int removed_too(int value) { asm volatile(".fill 8192, 1, 0x90"); return value; }
"#;
const KEPT: &str = "int main() { asm volatile(\".fill 8192, 1, 0x90\"); }";

#[test]
fn code_that_the_linker_removed_claims_none_of_the_code_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let sources = [("removed.cc", REMOVED), ("kept.cc", KEPT)];
    for (abi, option, ..) in ABIS {
        for more in ["-gdwarf-5", "-gdwarf-4"] {
            let options =
                format!("-O1 {option} {more} -fPIE -pie -ffunction-sections -Wl,--gc-sections,-u,main");
            let found = parts(&build(folder.path(), "program", &sources, &options));
            let is_claimed = |row: &UnitRow| row.unit == "removed.cc" && !row.section.starts_with(".debug");
            assert!(!found.rows.iter().any(is_claimed), "{abi} {more}: {:#?}", found.rows);
            assert!(found.of_unit("kept.cc", ".text") > 8192, "{abi} {more}: {:#?}", found.rows);
            assert!(
                !found.origins.iter().any(|origin| origin.copies > 0),
                "{abi} {more}: {:#?}",
                found.origins
            );
        }
    }
}

/// Two units with hand-written debug information. The first has a pointer and parameters with the address of the second's table, and
/// the upper half of a pair.
const POINTS_ELSEWHERE: &str = r#"
.macro address symbol
 .byte 3
 .quad \symbol
.endm
.globl main
.text
main: xor %eax, %eax
 ret
.section .note.GNU-stack, "", @progbits
.data
.type table, @object
.size table, 48
table: .fill 48, 1, 1
.type lower, @object
.size lower, 8
lower: .quad 1
.type upper, @object
.size upper, 16
upper: .quad 2, 3
.section .debug_abbrev, "", @progbits
.uleb128 1, 0x11; .byte 1; .uleb128 0x03, 0x08, 0, 0  # DW_TAG_compile_unit: DW_AT_name
.uleb128 2, 0x05; .byte 0; .uleb128 0x02, 0x18, 0, 0  # DW_TAG_formal_parameter: DW_AT_location
.uleb128 3, 0x34; .byte 0; .uleb128 0x02, 0x18, 0, 0  # DW_TAG_variable: DW_AT_location
.byte 0
.section .debug_info, "", @progbits
.long 2f - 1f
1: .value 4; .long 0; .byte 8
.uleb128 1; .asciz "first.c"
.uleb128 2; .byte 10; address table; .byte 0x9f  # DW_OP_stack_value
.uleb128 2; .byte 9; address table
.uleb128 3; .byte 10; address table; .byte 0x9f
.uleb128 3; .byte 11; address lower; .byte 0x23; .uleb128 8  # DW_OP_plus_uconst
.byte 0
2: .long 4f - 3f
3: .value 4; .long 0; .byte 8
.uleb128 1; .asciz "second.c"
.uleb128 3; .byte 9; address table
.uleb128 3; .byte 9; address lower
.byte 0
4:
"#;

#[test]
fn a_pointer_to_a_variable_is_not_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    let found = parts(&build(folder.path(), "program", &[("units.s", POINTS_ELSEWHERE)], "-no-pie"));
    assert_eq!(found.of_unit("first.c", ".data"), 16, "{:#?}", found.rows);
    assert_eq!(found.of_unit("second.c", ".data"), 48 + 8, "{:#?}", found.rows);
}

const WASTEFUL: &str = r#"
#include <vector>
struct Base { virtual ~Base() {} virtual int fixed() { return 1; } virtual int changed() { return 2; } virtual int pure() = 0; };
struct Left : Base { int changed() override { return 3; } int pure() override { return 4; } virtual int late() { return 5; } };
struct Right : Base { int pure() override { return 6; } };
struct Other { virtual int other() { return 7; } long data; };
struct Mixed : Base, Other { int pure() override { return 8; } int other() override { return 9; } };
struct Shared : virtual Other { virtual int shared() { return 10; } };
struct Apple { int a; };
struct Pear { int p; };
__attribute__((noinline)) void add(std::vector<Apple *> &all, Apple *one) { all.push_back(one); }
__attribute__((noinline)) void add(std::vector<Pear *> &all, Pear *one) { all.push_back(one); }
// Their zeros have the addresses of the tables, too.
thread_local long of_thread[200];
extern const double first_table[8], second_table[8];
const double first_table[8] = {1.5, 2.5, 3.5, 4.5};
const double second_table[8] = {1.5, 2.5, 3.5, 4.5};
extern const char first_text[], second_text[];
const char first_text[] = "a text that is there twice";
const char second_text[] = "a text that is there twice";
int main(int argc, char **) {
  Base *all[] = {new Left, new Right, new Mixed};
  Other *other = new Shared;
  std::vector<Apple *> apples;
  std::vector<Pear *> pears;
  add(apples, new Apple);
  add(pears, new Pear);
  return all[argc]->fixed() + all[argc]->changed() + all[argc]->pure() + other->other() + (int)apples.size() +
         (int)pears.size() + (int)first_table[argc] + (int)second_table[argc] + first_text[argc] + second_text[argc] + (int)of_thread[argc];
}
"#;

#[test]
fn waste_has_names_and_the_bytes_that_follow_from_the_source() {
    let folder = tempfile::tempdir().unwrap();
    for (abi, option, word, record) in ABIS {
        for (more, record) in [("-fPIE -pie", record), ("-no-pie", 0)] {
            let options = format!("-O1 {option} {more}");
            let found = parts(&build(folder.path(), "wasteful", &[("wasteful.cc", WASTEFUL)], &options));
            let virtuals = |name: &str| found.waste(WasteKind::NeverOverridden, name);
            // `fixed` is in the tables of Base (if the linker keeps it), Left, Right and Mixed.
            let fixed = virtuals("Base::fixed").unwrap_or_else(|| panic!("{abi} {more}: {:#?}", found.waste));
            assert!((3..=4).contains(&fixed.count), "{abi} {more}: {fixed:?}");
            assert_eq!(fixed.bytes, fixed.count * (word + record), "{abi} {more}: {fixed:?}");
            let late = virtuals("Left::late").unwrap_or_else(|| panic!("{abi} {more}: {:#?}", found.waste));
            assert_eq!((late.count, late.bytes), (1, word + record), "{abi} {more}");
            for overridden in ["changed", "pure", "other", "shared", "~"] {
                assert_eq!(virtuals(overridden), None, "{abi} {more}");
            }
            let template =
                found.waste(WasteKind::PointerTemplates, "_M_realloc_insert").map(|waste| waste.count);
            assert_eq!(template, Some(2), "{abi} {more}: {:#?}", found.waste);
            let constants = |name: &str| {
                found.waste(WasteKind::DuplicateConstants, name).map(|waste| (waste.count, waste.bytes))
            };
            assert_eq!(constants("first_table"), Some((2, 64)), "{abi} {more}: {:#?}", found.waste);
            assert_eq!(constants("first_text"), Some((2, 27)), "{abi} {more}: {:#?}", found.waste);
        }
    }
}

/// `Ring` and `Heap` are unrelated; `Keeper`'s copies call functions of a few bytes, which are the same in pairs.
const TWINS: &str = r#"
#define KEPT __attribute__((noinline, noclone))
#define SUM { long s = 0; for (long i = 0; i < count; i++) s += (long)all[i] * 3 + 7; return s; }
template<class T> struct Ring { T *all; long count; KEPT long operator*() const SUM };
template<class T> struct Heap { T *all; long count; KEPT long operator*() const SUM };
struct Apple { long a; };
struct Pear { long p; };
template<class T> KEPT void touch(T) { asm volatile(""); }
template<class T> struct Keeper { KEPT static void keep(T one, long count) { for (long i = 0; i < count; i++) { touch(one); asm volatile("nop; nop; nop; nop; nop; nop; nop; nop"); } } };
int main(int argc, char **) {
  long all[3] = {argc, 2, 3};
  Ring<long> ring{all, 3};
  Heap<long> heap{all, 2};
  Apple apple{1};
  Pear pear{2};
  Keeper<Apple *>::keep(&apple, argc);
  Keeper<Pear *>::keep(&pear, argc);
  return (int)(*ring + *heap);
}
"#;

#[test]
fn templates_that_differ_in_a_pointers_type_are_of_one_class_and_call_twins_of_any_size() {
    let folder = tempfile::tempdir().unwrap();
    for (abi, option, ..) in ABIS {
        let options = format!("-O2 -fno-ipa-icf -fno-ipa-ra -fomit-frame-pointer {option}");
        let found = parts(&build(folder.path(), "twins", &[("twins.cc", TWINS)], &options));
        let of = |name: &str| found.waste(WasteKind::PointerTemplates, name).map(|waste| waste.count);
        assert_eq!(of("operator*"), None, "{abi}: {:#?}", found.waste);
        // `touch` has less than 16 bytes in each ABI, and is no waste itself.
        assert_eq!((of("::keep"), of("touch")), (Some(2), None), "{abi}: {:#?}", found.waste);
    }
}

#[test]
fn changed_bytes_are_an_error_or_the_sums_stay_exact() {
    let folder = tempfile::tempdir().unwrap();
    let sources = [("wasteful.cc", WASTEFUL)];
    let path = build(folder.path(), "program", &sources, "-O1 -g -fPIE -pie");
    let whole = std::fs::read(path).unwrap();
    let elf = Elf::read(&whole).unwrap();
    // Tables of the linker and of the debugger, whose contents are followed.
    let followed: Vec<std::ops::Range<u64>> = elf
        .sections
        .iter()
        .filter(|section| {
            section.name.starts_with(".debug")
                || section.name.starts_with(".rel")
                || section.name.starts_with(".data")
        })
        .map(widthwise_anatomy::elf::Section::file_range)
        .collect();
    let mut seed = 7_u32;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 4) as usize % below.max(1)
    };
    let mut read = 0;
    for round in 0..600 {
        let mut bytes = whole.clone();
        for _ in 0..1 + round % 7 {
            let range = &followed[random(followed.len())];
            let at = range.start as usize + random((range.end - range.start) as usize);
            bytes[at] = random(256) as u8;
        }
        let Ok(elf) = Elf::read(&bytes) else { continue };
        let named = elf.named();
        let sections = Sections::of(&elf);
        let units = debug::read(&sections, 1);
        let rows = size::units(&elf, &named, &sections, &units);
        assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), bytes.len() as u64, "round {round}");
        let is_code = |section: &&widthwise_anatomy::elf::Section| section.has(section_flag::EXECINSTR);
        let code: u64 = elf.sections.iter().filter(is_code).map(|section| section.size).sum();
        let origins = inlined::origins(&elf, &named, &units);
        assert_eq!(
            origins.iter().map(|origin| origin.own + origin.inlined).sum::<u64>(),
            code,
            "round {round}"
        );
        waste::find(&elf, &named);
        read += 1;
    }
    assert_eq!(read, 600, "no header was changed");
}

/// Functions and variables for `int` and for `long`; the second program has none but `main`.
const INTEGERS: &str = r#"
#ifdef BOTH
template <class T> struct Cells { static T all[100]; };
template <class T> T Cells<T>::all[100];
template <class T> __attribute__((noinline)) T kept(T at) { return Cells<T>::all[at % 100] * at; }
template <class T> static inline __attribute__((always_inline)) T copied(T at) {
  for (T step = 1; step < at; step *= 3) at += Cells<T>::all[step % 100];
  return at;
}
int main(int count, char **) { return kept<int>(count) + kept<long>(count) + copied<int>(count) + copied<long>(count) > 7; }
#else
int main() { return 0; }
#endif
"#;

#[test]
fn functions_and_variables_for_int_and_for_long_are_two_rows_each() {
    let folder = tempfile::tempdir().unwrap();
    let source = [("integers.cc", INTEGERS)];
    let both = std::fs::read(build(folder.path(), "both", &source, "-O1 -g -DBOTH")).unwrap();
    let none = std::fs::read(build(folder.path(), "none", &source, "-O1 -g")).unwrap();
    let [both, none] = [&both, &none].map(|bytes| Elf::read(bytes).unwrap());
    let [named, named_of_none] = [&both, &none].map(Elf::named);

    let sizes = [(&both, &named), (&none, &named_of_none)].map(|(elf, named)| size::read(elf, named));
    let [baseline, variant] = sizes.each_ref().map(|size| [(String::new(), size)]);
    let rows = difference::pairs(&baseline, &variant);
    let kept = |name: &str| {
        let is_it =
            |pair: &&difference::Pair| pair.kind == RowKind::Symbol && pair.shown_name().contains(name);
        let all: Vec<_> =
            rows.iter().filter(is_it).map(|pair| (pair.sides[0].count, pair.sides[1].count)).collect();
        assert_eq!(all, [(1, 0)], "{name}: {rows:#?}");
    };
    kept("kept<int>");
    kept("kept<long>");

    let all = variables::pairs((&both, &named), (&none, &named_of_none));
    let bytes = |name: &str| {
        all.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("{name}: {all:#?}")).bytes
    };
    assert_eq!((bytes("Cells<int>::all"), bytes("Cells<long>::all")), ([400, 0], [800, 0]));

    let origins = [(&both, &named), (&none, &named_of_none)].map(|(elf, named)| {
        let units = debug::read(&Sections::of(elf), 1);
        inlined::origins(elf, named, &units)
    });
    let pairs = inlined::pairs(&origins[0], &origins[1]);
    for name in ["copied<int>", "copied<long int>"] {
        let copies: Vec<u64> =
            pairs.iter().filter(|pair| pair.name.contains(name)).map(|pair| pair.sides[0].copies).collect();
        assert_eq!(copies, [1], "{name}: {pairs:#?}");
    }
}

#[test]
fn code_of_the_c_library_in_a_section_of_its_own_is_no_table() {
    // glibc's static libraries have both: `__libc_freeres_fn` is code, `__libc_atexit` is pointers to functions.
    const LIBRARY: &str = r#"
extern "C" __attribute__((section("__libc_freeres_fn"), noinline, used)) int release(int value) { return value * 7; }
__attribute__((section("__libc_atexit"), used)) int (*at_exit)(int) = release;
int main() { return 0; }
"#;
    let folder = tempfile::tempdir().unwrap();
    let with = std::fs::read(build(folder.path(), "with", &[("with.cc", LIBRARY)], "-O1")).unwrap();
    let plain = [("without.cc", "int main() { return 0; }\n")];
    let without = std::fs::read(build(folder.path(), "without", &plain, "-O1")).unwrap();
    let [with, without] = [&with, &without].map(|bytes| Elf::read(bytes).unwrap());
    let [named, named_without] = [&with, &without].map(Elf::named);
    let sizes = [(&without, &named_without), (&with, &named)].map(|(elf, named)| size::read(elf, named));
    let [baseline, variant] = sizes.each_ref().map(|size| [(String::new(), size)]);
    let causes = size::cause::causes(&difference::pairs(&baseline, &variant));
    let reasons = |place: &str| -> Vec<&str> {
        causes.iter().filter(|cause| cause.place == place).map(|cause| cause.reason.as_str()).collect()
    };
    assert_eq!(reasons("__libc_freeres_fn"), ["instructions"], "{causes:#?}");
    assert_eq!(reasons("__libc_atexit"), ["tables of the C library"], "{causes:#?}");
}

/// The results' types have members of `std::is_array<T>`, of a nested class of a template, and of a template in no namespace.
const MEMBERS_OF_TEMPLATES: &str = r#"
#include <cstddef>
#include <type_traits>
namespace n { template <class T> struct Outer { template <class U> struct Inner { static const bool value = true; }; }; }
template <class T> struct Plain { static const bool value = true; };
template <class T> __attribute__((noinline)) typename std::enable_if<!std::is_array<T>::value, T>::type first(T at) { return at * 3; }
template <class T> __attribute__((noinline)) typename std::enable_if<n::Outer<T>::template Inner<int>::value, T>::type second(T at) { return at * 5; }
template <class T> __attribute__((noinline)) typename std::enable_if<Plain<T>::value, T>::type third(T at, T *) { return at * 7; }
struct A { virtual long a() { return 1; } long x; };
struct B { virtual long b() { return 2; } long y; };
struct C { virtual long b() { return 3; } virtual C *copy() { return this; } long z; };
struct V { virtual long v() { return 4; } };
struct D : A, B, C, virtual V { long b() override { return x + y + z; } long v() override { return z; } D *copy() override { return this + 1; } };
D all[2];
int main(int count, char **) { std::size_t size = count; return first(size) + second(size) + third(size, &size) > 7; }
"#;

#[test]
fn functions_whose_names_differ_between_abis_are_rows_of_both() {
    let folder = tempfile::tempdir().unwrap();
    let source = [("members.cc", MEMBERS_OF_TEMPLATES)];
    let files = ABIS.map(|(abi, flags, ..)| {
        std::fs::read(build(folder.path(), abi, &source, &format!("-O1 {flags}"))).unwrap()
    });
    let elfs = files.each_ref().map(|bytes| Elf::read(bytes).unwrap());
    let sizes = elfs.each_ref().map(|elf| size::read(elf, &elf.named()));
    let sides = sizes.each_ref().map(|size| [(String::new(), size)]);
    for other in [1, 2] {
        let rows = difference::pairs(&sides[0], &sides[other]);
        let functions = rows.iter().filter(|row| row.kind == RowKind::Symbol && row.section == ".text");
        let mut found: Vec<_> = functions
            .map(|row| (row.shown_name(), row.sides.map(|side| side.count)))
            .filter(|(name, _)| ["first", "second", "third"].iter().any(|one| name.contains(one)))
            .collect();
        found.sort();
        let function = |condition: &str, name: &str, behind: &str| {
            let result = format!("std::enable_if<{condition}, unsigned long>::type");
            (format!("{result} {name}<unsigned long>(unsigned long{behind})"), [1, 1])
        };
        let expected = [
            function("!(std::is_array<unsigned long>::value)", "first", ""),
            function("Plain<unsigned long>::value", "third", ", unsigned long*"),
            function("n::Outer<unsigned long>::Inner<int>::value", "second", ""),
        ];
        assert_eq!(found, expected, "{}", ABIS[other].0);
        // Two thunks of one function are one row, whatever the distances of the bases are in an ABI.
        let thunks = rows.iter().filter(|row| row.shown_name().contains("thunk to D::"));
        let mut thunks: Vec<_> =
            thunks.map(|row| (row.shown_name(), row.sides.map(|side| side.count))).collect();
        thunks.sort();
        let expected = [
            ("covariant return thunk to D::copy()", [2, 2]),
            ("non-virtual thunk to D::b()", [2, 2]),
            ("virtual thunk to D::v()", [1, 1]),
        ];
        assert_eq!(thunks, expected.map(|(name, counts)| (name.to_owned(), counts)), "{}", ABIS[other].0);
    }
}
