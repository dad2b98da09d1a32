//! Headers that are accepted, what is generated from them, and headers that are not accepted.

use widthwise_layout::rust_of;

const HEADER: &str = "#ifndef A_H\n#define A_H\n#include <stdint.h>\n/* A comment; with `struct x {`. */\n\
    #define A_MAGIC \"\\x89A\\n\"\n#define A_SIZE 0x10UL\n#define A_LARGE 0x100000000\n\
    enum a_kind { A_ONE = 1, A_TWO };\nenum { A_ZERO };\n\
    struct __attribute__((aligned(64))) a_head {\n    char magic[4];\n    uint16_t low, high;\n    uint32_t counts[A_TWO];\n};\n\
    _Static_assert(sizeof(struct a_head) == A_SIZE && offsetof(struct a_head, high) == 6, \"a\");\n#endif\n";

fn error(header: &str) -> String {
    rust_of("a.h", header).expect_err("a header that is not accepted").to_string()
}

#[test]
fn constants_have_their_values() {
    let rust = rust_of("a.h", HEADER).unwrap();
    for line in [
        "pub const A_MAGIC: &[u8] = b\"\\x89A\\n\";",
        "pub const A_SIZE: u32 = 0x10;",
        "pub const A_LARGE: u64 = 0x100000000;",
        "pub const A_ONE: u32 = 0x1;",
        "pub const A_TWO: u32 = 0x2;",
        "pub const A_ZERO: u32 = 0x0;",
    ] {
        assert!(rust.contains(line), "{line}:\n{rust}");
    }
}

#[test]
fn fields_have_their_offsets_and_rust_asserts_them() {
    let rust = rust_of("a.h", HEADER).unwrap();
    for line in [
        "pub struct AHead {",
        "pub counts: [u32; 2],",
        "(\"magic\", 0, 4),",
        "(\"counts\", 8, 8),",
        "assert!(std::mem::size_of::<AHead>() == 16);",
        "assert!(std::mem::offset_of!(AHead, high) == 6);",
    ] {
        assert!(rust.contains(line), "{line}:\n{rust}");
    }
}

#[test]
fn a_structure_that_grows_without_its_assertion_is_refused() {
    let grown = HEADER.replace("low, high;", "low, high; uint32_t more;");
    assert_eq!(error(&grown), "15: sizeof(struct a_head) is 20, and not A_SIZE");
    let moved = HEADER.replace("low, high", "high, low");
    assert_eq!(error(&moved), "15: offsetof(struct a_head, high) is 4, and not 6");
    let unasserted = HEADER.replace("sizeof(struct a_head) == A_SIZE && ", "");
    assert!(error(&unasserted).ends_with("no _Static_assert compares sizeof(struct a_head) with a number"));
}

#[test]
fn a_structure_with_padding_is_refused() {
    let before = "struct a {\n    uint32_t one;\n    uint64_t two;\n};\n_Static_assert(sizeof(struct a) == 16, \"\");\n";
    assert_eq!(error(before), "3: there is padding before `two`, at byte 4");
    let behind =
        "struct a {\n    uint32_t one;\n    char two;\n};\n_Static_assert(sizeof(struct a) == 8, \"\");\n";
    assert_eq!(error(behind), "4: there is padding at the end of `a`, at byte 5");
}

#[test]
fn what_has_no_fixed_layout_is_refused_with_its_line() {
    assert_eq!(error("struct a {\n    long one;\n};\n"), "2: `long` is no type of fixed width");
    assert_eq!(error("#define A_SIZE (B + 1)\n"), "1: `(B + 1)` is neither a number nor a text");
    assert_eq!(error("\nint f(void);\n"), "2: `int` begins nothing that has a layout");
    assert_eq!(error("#if A\n"), "1: `#if` cannot be followed here");
    assert_eq!(error("struct a {\n    uint8_t one[N];\n};\n"), "2: `N` is no number");
    assert!(error("struct a {\n    uint8_t one;\n").starts_with("2: "));
}
