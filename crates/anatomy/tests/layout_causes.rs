//! Programs whose differences have known causes, and what a comparison says of them.

use std::collections::BTreeMap;

use widthwise_anatomy::layout::{self, Cause, Comparison, Layouts, TypeDifference, Weights};

use crate::outcomes;
use crate::programs::{is_installed, Programs, ABIS};

/// Each structure differs for one reason, or for those that its name has.
const SOURCE: &str = r"
typedef __SIZE_TYPE__ size_t;
typedef long __time_t; typedef __time_t time_t;
struct Pointer { void* one; int* two; };
struct Reference { int& it; };
struct Method { void (Pointer::*method)(); };
struct Virtual { virtual void act(); };
struct Long { long number; unsigned long other; };
struct Size { size_t size; };
struct Time { time_t when; };
struct Wide { long double value; };
struct Same { int a; double b; char c[16]; };
struct Aligned { int a; double b; };
struct AlignedTail { double a; int b; };
struct Hole { char a; void* b; };
struct Tail { void* a; char b; };
struct Inner { long number; void* pointer; };
struct Outer { Inner one; Inner many[3]; void* own; };
struct Derived : Pointer { int more; };
union Choice { void* pointer; char text[2]; };
union Change { void* pointers[2]; char text[12]; };
struct Tie { void* pointers[2]; union { void* pointers[2]; double values[2]; } either; };
struct Bits { unsigned long a : 5; unsigned long b : 20; };
struct Lengths { char text[sizeof(long) * 4]; };
#ifdef __LP64__
struct Members { int a; int only; };
#else
struct Members { int a; };
#endif
template<class T> struct Holder { T* it; };
struct Anonymous { union { void* p; int i; }; struct { long l; }; };
typedef double eight __attribute__((aligned(8)));
struct Forced { void* a; eight b; void* c; void* d; };
struct NoTail { double a; void* b; int c; };
struct NoHole { void* a; int b; double c; };
struct All {
  Pointer a; Reference b; Method c; Virtual d; Long e; Size f; Time g; Wide h; Same i; Aligned j; AlignedTail k; Hole l; Tail m;
  Forced x; NoTail y; NoHole z; Outer n; Derived o; Choice p; Change q; Tie tie; Bits r; Lengths s; Members t; Holder<size_t> u; Anonymous v; Holder<long long> w;
};
unsigned size(All& all) { return sizeof(all); }
";

fn three() -> Vec<Layouts> {
    let programs = Programs::new();
    programs.write("causes.cc", SOURCE);
    ABIS.iter()
        .map(|(_, option)| layout::read(&programs.build("g++", "causes.cc", &[option]), 2).unwrap())
        .collect()
}

fn of<'c>(comparison: &'c Comparison, name: &str) -> &'c TypeDifference {
    comparison.differences.iter().find(|difference| difference.name == name).expect(name)
}

/// The causes of a type, as `cause bytes`.
fn causes(comparison: &Comparison, name: &str) -> Vec<String> {
    of(comparison, name).causes().iter().map(|(cause, bytes)| format!("{cause} {bytes:+}")).collect()
}

#[test]
fn every_cause_is_found() {
    let layouts = three();
    let x32 = layout::compare(&layouts[0], &layouts[1], &Weights::new());
    let i386 = layout::compare(&layouts[0], &layouts[2], &Weights::new());
    for (name, in_x32, in_i386) in [
        ("Pointer", vec!["pointers -8"], vec!["pointers -8"]),
        ("Reference", vec!["pointers -4"], vec!["pointers -4"]),
        ("Method", vec!["pointers -8"], vec!["pointers -8"]),
        ("Virtual", vec!["pointers -4"], vec!["pointers -4"]),
        ("Long", vec!["long -8"], vec!["long -8"]),
        ("Size", vec!["size_t -4"], vec!["size_t -4"]),
        ("Time", vec!["time_t -4"], vec!["time_t -4"]),
        ("Hole", vec!["pointers -4", "holes -4"], vec!["pointers -4", "holes -4"]),
        ("Tail", vec!["pointers -4", "tail padding -4"], vec!["pointers -4", "tail padding -4"]),
        // As `double` is aligned to 8 on i386 here, or would have the same place with that.
        ("Forced", vec!["pointers -12", "holes +4"], vec!["pointers -12", "holes +4"]),
        ("NoTail", vec!["pointers -4", "tail padding -4"], vec!["pointers -4", "tail padding -4"]),
        ("NoHole", vec!["pointers -4", "holes -4"], vec!["pointers -4", "holes -4"]),
        ("Inner", vec!["pointers -4", "long -4"], vec!["pointers -4", "long -4"]),
        ("Outer", vec!["pointers -20", "long -16"], vec!["pointers -20", "long -16"]),
        ("Bits", vec!["tail padding -4"], vec!["tail padding -4"]),
        ("Choice", vec!["pointers -4"], vec!["pointers -4"]),
        (
            "Change",
            vec!["pointers -8", "another member of a union +4"],
            vec!["pointers -8", "another member of a union +4"],
        ),
        // The union has 16 bytes in each, of which the doubles need all.
        ("Tie", vec!["pointers -8"], vec!["pointers -8"]),
        ("Lengths", vec!["array lengths -16"], vec!["array lengths -16"]),
        (
            "Members",
            vec!["members that only one of the two has -4"],
            vec!["members that only one of the two has -4"],
        ),
        ("Anonymous", vec!["pointers -4", "long -4"], vec!["pointers -4", "long -4"]),
    ] {
        assert_eq!(causes(&x32, name), in_x32, "x32 {name}");
        assert_eq!(causes(&i386, name), in_i386, "i386 {name}");
    }
    for (name, in_i386) in [
        ("Wide", vec!["long double -4"]),
        ("Aligned", vec!["alignment of double -4"]),
        ("AlignedTail", vec!["alignment of double -4"]),
    ] {
        assert_eq!(causes(&i386, name), in_i386, "{name}");
        assert!(x32.differences.iter().all(|difference| difference.name != name), "{name}");
    }
    assert!(x32.differences.iter().all(|difference| difference.name != "Same"));
}

#[test]
fn nested_types_have_their_own_causes() {
    let layouts = three();
    let comparison = layout::compare(&layouts[0], &layouts[1], &Weights::new());
    let shares: BTreeMap<(Option<&str>, String), i64> = of(&comparison, "Outer")
        .shares
        .iter()
        .map(|share| ((share.nested.as_deref(), share.cause.to_string()), share.bytes))
        .collect();
    assert_eq!(shares[&(Some("Inner"), "pointers".to_owned())], -16);
    assert_eq!(shares[&(Some("Inner"), "long".to_owned())], -16);
    assert_eq!(shares[&(None, "pointers".to_owned())], -4);
    let derived = &of(&comparison, "Derived").shares;
    assert!(derived
        .iter()
        .any(|share| share.nested.as_deref() == Some("Pointer") && share.cause == Cause::Pointers));
}

#[test]
fn all_parts_sum_to_the_difference() {
    let layouts = three();
    for variant in &layouts[1..] {
        let comparison = layout::compare(&layouts[0], variant, &Weights::new());
        assert!(comparison.differences.len() > 15);
        for difference in &comparison.differences {
            let sum: i64 = difference.shares.iter().map(|share| share.bytes).sum();
            assert_eq!(sum, -difference.saved(), "{difference:?}");
        }
    }
}

#[test]
fn a_size_matches_in_template_arguments() {
    let layouts = three();
    for variant in &layouts[1..] {
        let comparison = layout::compare(&layouts[0], variant, &Weights::new());
        assert_eq!(of(&comparison, "Holder<long unsigned int>").saved(), 4);
        assert_eq!(of(&comparison, "Holder<long long int>").saved(), 4);
        assert!(comparison.only_baseline.is_empty(), "{:?}", comparison.only_baseline);
    }
}

#[test]
fn a_type_matches_however_compilers_spell_its_integers() {
    const NODES: &str = "template<class T> struct Node { Node* next; T value; };\n\
        Node<long> a; Node<int> b; Node<const short*> c; Node<unsigned long long> d;\n";
    if !is_installed("clang++") {
        return outcomes::skipped("clang++ is not installed");
    }
    let programs = Programs::new();
    programs.write("nodes.cc", NODES);
    programs.write("fewer.cc", "template<class T> struct Node { Node* next; T value; }; Node<int> b;\n");
    let read = |compiler: &str, source: &str, option: &str| {
        layout::read(&programs.build(compiler, source, &[option]), 1).unwrap()
    };
    let gcc = read("g++", "nodes.cc", "-m64");
    for option in ["-m64", "-m32"] {
        let clang = read("clang++", "nodes.cc", option);
        for (one, other) in [(&gcc, &clang), (&clang, &gcc)] {
            let comparison = layout::compare(one, other, &Weights::new());
            let unmatched =
                [&comparison.only_baseline, &comparison.only_variant, &comparison.ambiguous].map(Vec::len);
            assert_eq!(unmatched, [0; 3], "{option} {comparison:?}");
            assert_eq!(comparison.same_size + comparison.differences.len(), 4, "{option}");
        }
        let comparison = layout::compare(&gcc, &clang, &Weights::new());
        if option == "-m32" {
            assert_eq!(of(&comparison, "Node<long int>").saved(), 8);
            assert_eq!(of(&comparison, "Node<int>").saved(), 8);
        }
    }
    // In one ABI no integer has another width.
    let comparison = layout::compare(&gcc, &read("clang++", "fewer.cc", "-m64"), &Weights::new());
    assert_eq!((comparison.same_size, comparison.only_baseline.len()), (1, 3), "{comparison:?}");
}

#[test]
fn live_objects_decide_the_rank() {
    let layouts = three();
    let first = |weights: &[(&str, u64)]| {
        let weights = weights.iter().map(|(name, objects)| ((*name).to_owned(), *objects)).collect();
        let comparison = layout::compare(&layouts[0], &layouts[1], &weights);
        let first = &comparison.differences[0];
        (first.name.clone(), first.saved_at_peak())
    };
    assert_eq!(first(&[]), ("All".to_owned(), None));
    assert_eq!(first(&[("Size", 1000), ("Tail", 400)]), ("Size".to_owned(), Some(4000)));
    assert_eq!(first(&[("Size", 1000), ("Tail", 600)]), ("Tail".to_owned(), Some(4800)));
    // The heap's name of a type may be of another ABI.
    assert_eq!(first(&[("Holder<unsigned int>", 10)]).0, "Holder<long unsigned int>");
}

#[test]
fn a_drawing_has_every_byte_of_both() {
    let layouts = three();
    let comparison = layout::compare(&layouts[0], &layouts[1], &Weights::new());
    let difference = of(&comparison, "Tail");
    let drawing = layout::drawing::draw(&layouts[0], &layouts[1], difference).unwrap();
    assert_eq!(drawing.baseline_bytes, "aaaaaaaab.......");
    assert_eq!(drawing.variant_bytes, "aaaab...");
    let pointer = &drawing.rows[0];
    assert_eq!((pointer.name.as_str(), pointer.type_name.as_str()), ("a", "void*"));
    assert_eq!(pointer.causes, [("pointers".to_owned(), -4)]);
    assert_eq!(difference.location.as_ref().unwrap().to_string(), "causes.cc:16");
    assert_eq!(difference.order, None);
    assert!(of(&comparison, "Hole").order.is_none());
}

#[test]
fn rows_of_a_drawing_sum_to_the_object_also_with_virtual_bases_and_reused_padding() {
    const BASES: &str = r"
struct VB { virtual ~VB(); long v; char t; };
struct V1 : virtual VB { int x; };
struct V2 : virtual VB { long y; char yy; };
struct VD : V1, V2 { void* q; };
struct NP { NP(); long a; char b; };
struct DNP : NP { char c; void* p; };
struct Empty {};
struct Own : Empty { void* p; char c; };
unsigned size(VD& vd, DNP& dnp, Own& own) { return sizeof(vd) + sizeof(dnp) + sizeof(own); }
";
    let programs = Programs::new();
    programs.write("bases.cc", BASES);
    let layouts =
        ABIS.map(|(_, option)| layout::read(&programs.build("g++", "bases.cc", &[option]), 2).unwrap());
    for variant in &layouts[1..] {
        let comparison = layout::compare(&layouts[0], variant, &Weights::new());
        for name in ["VD", "DNP", "Own"] {
            let difference = of(&comparison, name);
            let drawing = layout::drawing::draw(&layouts[0], variant, difference).unwrap();
            let size = |place: Option<&layout::drawing::Place>| place.map_or(0, |place| place.size);
            let sums = |of: &dyn Fn(&layout::drawing::Row) -> u64| drawing.rows.iter().map(of).sum::<u64>();
            let [a, b] = [sums(&|row| size(row.baseline.as_ref())), sums(&|row| size(row.variant.as_ref()))];
            assert_eq!([a, b], [difference.baseline_size, difference.variant_size], "{name} {drawing:#?}");
            // By cause, too.
            let mut rows: BTreeMap<String, i64> = BTreeMap::new();
            for (cause, bytes) in drawing.rows.iter().flat_map(|row| row.causes.clone()) {
                *rows.entry(cause).or_default() += bytes;
            }
            let mut whole: BTreeMap<String, i64> = BTreeMap::new();
            for share in &difference.shares {
                *whole.entry(share.cause.to_string()).or_default() += share.bytes;
            }
            rows.retain(|_, bytes| *bytes != 0);
            whole.retain(|_, bytes| *bytes != 0);
            assert_eq!(rows, whole, "{name} {drawing:#?}");
            // What only the variant has is not last.
            let offsets: Vec<u64> =
                drawing.rows.iter().filter_map(|row| Some(row.variant.as_ref()?.offset)).collect();
            assert!(offsets.is_sorted(), "{name} {drawing:#?}");
        }
    }
}

#[test]
fn a_buffer_of_a_pointer_or_a_number_has_the_causes_of_that() {
    const BUFFERS: &str = r"
namespace __gnu_cxx { template<class T> struct __aligned_membuf { unsigned char _M_storage[sizeof(T)]; }; }
using __gnu_cxx::__aligned_membuf;
struct S { int a; };
struct OfPointer { __aligned_membuf<void*> it; };
struct OfObject { __aligned_membuf<S*> it; };
struct OfFunction { __aligned_membuf<void (*)(int)> it; };
struct OfLong { __aligned_membuf<long> it; };
struct OfUnsigned { __aligned_membuf<unsigned long> it; };
struct OfInt { __aligned_membuf<int> it; };
struct All { OfPointer a; OfObject b; OfFunction c; OfLong d; OfUnsigned e; OfInt f; };
unsigned size(All& all) { return sizeof(all); }
";
    let programs = Programs::new();
    programs.write("buffers.cc", BUFFERS);
    let [native, x32, _] =
        ABIS.map(|(_, option)| layout::read(&programs.build("g++", "buffers.cc", &[option]), 2).unwrap());
    let comparison = layout::compare(&native, &x32, &Weights::new());
    for (name, cause) in [
        ("OfPointer", "pointers -4"),
        ("OfObject", "pointers -4"),
        ("OfFunction", "pointers -4"),
        ("OfLong", "long -4"),
        ("OfUnsigned", "long -4"),
    ] {
        assert_eq!(causes(&comparison, name), [cause], "{name}");
    }
}
