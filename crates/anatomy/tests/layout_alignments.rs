//! Better orders of structures with alignments that the source asks for.

use widthwise_anatomy::layout;

use crate::layout_compilers::{better_order, type_named};
use crate::programs::{is_installed, Programs, ABIS};

/// Random structures with alignments of their own. gcc notes that of a member as the structure's, too. Clang notes one that is smaller
/// than the type's also where it has no effect.
#[test]
fn a_better_order_of_aligned_members_has_the_size_that_the_compiler_gives_it() {
    const HEAD: &str = "typedef int Small __attribute__((aligned(2))); typedef int Large __attribute__((aligned(16)));\n\
        struct Within { char c; alignas(8) int i; }; struct __attribute__((aligned(2))) Few { short s; long l; };\n\
        struct alignas(32) Line { long l; char c; };\n";
    const FIELDS: [&str; 16] = [
        "char",
        "char",
        "short",
        "int",
        "long",
        "double",
        "void *",
        "alignas(16) char",
        "alignas(8) int",
        "alignas(1) char",
        "alignas(void *) short",
        "__attribute__((aligned(2))) int",
        "Small",
        "Large",
        "Within",
        "Few",
    ];
    const STRUCTURES: [&str; 5] =
        ["", "", "alignas(32)", "__attribute__((aligned(2)))", "__attribute__((aligned(sizeof(long))))"];
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let structure = |number: usize, attribute: &str, fields: &[String]| {
        format!("struct {attribute} S{number} {{ {}; }} of_{number};\n", fields.join("; "))
    };
    let mut all: Vec<(&str, Vec<String>)> = vec![(
        "",
        ["char a", "alignas(16) char b[16]", "char c", "long d", "char e"].map(str::to_owned).into(),
    )];
    all.resize_with(64, || {
        let fields = (0..4 + random(4)).map(|place| format!("{} m{place}", FIELDS[random(FIELDS.len())]));
        let fields = fields.collect();
        (STRUCTURES[random(STRUCTURES.len())], fields)
    });
    let text = |of: &[(usize, Vec<String>)]| -> String {
        let each = of.iter().map(|(number, fields)| structure(*number, all[*number].0, fields));
        std::iter::once(HEAD.to_owned()).chain(each).collect()
    };
    let programs = Programs::new();
    let now: Vec<(usize, Vec<String>)> = all.iter().map(|(_, fields)| fields.clone()).enumerate().collect();
    programs.write("aligned.cc", &text(&now));
    for compiler in ["g++", "clang++"].into_iter().filter(|compiler| is_installed(compiler)) {
        let read = |source: &str, option: &str| {
            layout::read(&programs.build(compiler, source, &[option]), 1).unwrap()
        };
        let baseline = read("aligned.cc", "-m64");
        for (_, option) in &ABIS[1..] {
            let variant = read("aligned.cc", option);
            let (mut orders, mut then) = (Vec::new(), Vec::new());
            for (number, fields) in &now {
                let name = format!("S{number}");
                let (a, b) = (type_named(&baseline, &name), type_named(&variant, &name));
                let Some(order) = better_order(&baseline, a, &variant, b) else { continue };
                let is_its = |field: &&String, member: &String| {
                    field.split([' ', '[']).any(|word| word == member.as_str())
                };
                let declared = |member: &String| {
                    fields.iter().find(|field| is_its(field, member)).expect(member).clone()
                };
                then.push((*number, order.members.iter().map(declared).collect()));
                orders.push((name, order));
            }
            assert_eq!(orders[0].0, "S0", "{compiler} {option}");
            assert!(orders.len() > 8, "{compiler} {option}: {}", orders.len());
            programs.write("aligned_ordered.cc", &text(&then));
            let [first, second] = ["-m64", *option].map(|option| read("aligned_ordered.cc", option));
            for (name, order) in orders {
                let sizes = (first.size(type_named(&first, &name)), second.size(type_named(&second, &name)));
                let given = (order.baseline_size, order.variant_size);
                assert_eq!(given, sizes, "{compiler} {option} {name}: {order:?} {then:?}");
            }
        }
    }
}

/// What packing makes of a structure is known of the places that contradict the ABI's alignments, or by the compiler's options. `of` has the
/// places that it would have without either.
#[test]
fn a_structure_whose_parts_may_be_packed_has_no_better_order() {
    let programs = Programs::new();
    programs.write(
        "packed.c",
        "#pragma pack(push, 2)\nstruct inner { double d; short s; int i; short t; };\n#pragma pack(pop)\n\
         struct of { INNER in; char c; int i; char d; int j; char e; int k; char f; int l; } of;\n",
    );
    let find = |options: &[&str]| {
        let [a, b] = ["-m64", "-mx32"].map(|abi| {
            let options = [&[abi], options].concat();
            layout::read(&programs.build("gcc", "packed.c", &options), 1).unwrap()
        });
        better_order(&a, type_named(&a, "of"), &b, type_named(&b, "of"))
    };
    assert!(find(&["-DINNER=double"]).is_some());
    assert_eq!(find(&["-DINNER=struct inner"]), None);
    assert_eq!(find(&["-DINNER=int", "-fpack-struct=4"]), None);
    assert!(find(&["-DINNER=int"]).is_some());
}
