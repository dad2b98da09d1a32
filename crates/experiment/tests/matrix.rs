//! The matrix of variants and their names.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::asked::{experiment, names};
use widthwise_experiment::model::Thp;

#[test]
fn without_axes_there_is_one_variant_for_each_abi() {
    assert_eq!(names(""), ["x86-64", "x32", "i386"]);
}

#[test]
fn a_name_has_the_named_axes_in_a_fixed_order() {
    assert_eq!(
        names("[axes]\nflags = [\"-O2\", \"-O3 -march=native\"]\ncompiler = \"gcc-12\"\nabi = [\"x32\"]\n"),
        ["x32/gcc-12/-O2", "x32/gcc-12/-O3 -march=native"]
    );
    assert_eq!(
        names("[axes]\nenv = \"default\"\nthp = \"never\"\nallocator = \"glibc\"\nabi = \"i386\"\n"),
        ["i386/glibc/never/default"]
    );
}

#[test]
fn the_abi_is_part_of_the_name_even_when_another_axis_alone_is_named() {
    assert_eq!(names("[axes]\nflags = \"lto\"\n"), ["x86-64/lto", "x32/lto", "i386/lto"]);
}

#[test]
fn values_keep_the_users_order_and_the_first_axis_varies_slowest() {
    assert_eq!(
        names("[axes]\nabi = [\"i386\", \"x86-64\"]\nallocator = [\"mimalloc\", \"glibc\"]\n"),
        ["i386/mimalloc", "i386/glibc", "x86-64/mimalloc", "x86-64/glibc"]
    );
}

#[test]
fn all_compilers_are_those_of_the_machine() {
    assert_eq!(names("[axes]\nabi = \"x32\"\ncompiler = \"all\"\n"), ["x32/gcc-12", "x32/clang-14"]);
}

#[test]
fn an_exclude_leaves_out_every_point_that_has_all_its_values() {
    let axes = "[axes]\nabi = [\"x86-64\", \"x32\"]\ncompiler = \"all\"\n";
    assert_eq!(
        names(&format!("{axes}[[exclude]]\nabi = \"x32\"\ncompiler = \"clang-14\"\n")),
        ["x86-64/gcc-12", "x86-64/clang-14", "x32/gcc-12"]
    );
    assert_eq!(
        names(&format!("{axes}[[exclude]]\nabi = \"x32\"\n[[exclude]]\ncompiler = \"gcc-12\"\n")),
        ["x86-64/clang-14"]
    );
}

#[test]
fn an_exclude_also_sees_what_an_axis_is_by_default() {
    assert_eq!(names("[[exclude]]\nabi = \"i386\"\nflags = \"-O2\"\nthp = \"system\"\n"), ["x86-64", "x32"]);
    assert_eq!(names("[[exclude]]\nabi = \"i386\"\nflags = \"-O3\"\n"), ["x86-64", "x32", "i386"]);
    assert_eq!(names("[[exclude]]\ncompiler = \"gcc-12\"\n"), ["x86-64", "x32", "i386"]);
}

#[test]
fn a_list_takes_the_place_of_the_matrix() {
    let list = "[[variant]]\nabi = \"i386\"\nflags = \"-O2 -msse2 -mfpmath=sse\"\nname = \"i386 with SSE\"\n\
                [[variant]]\nabi = \"i386\"\n[[variant]]\nflags = \"-O3\"\ncompiler = \"gcc-12\"\n";
    assert_eq!(names(list), ["i386 with SSE", "i386", "x86-64/gcc-12/-O3"]);
    let first = &experiment(&format!("{list}[program]\nsource = \"tree.c\"\n")).variants[0];
    assert_eq!(first.flags.cflags, "-O2 -msse2 -mfpmath=sse");
    assert_eq!(first.abi.map(|abi| abi.name), Some("i386"));
}

#[test]
fn an_exclude_also_shortens_a_list() {
    assert_eq!(
        names("[[variant]]\nabi = \"i386\"\n[[variant]]\nabi = \"x32\"\n[[exclude]]\nabi = \"x32\"\n"),
        ["i386"]
    );
}

#[test]
fn a_variant_has_its_points_values_and_defaults_for_the_rest() {
    let variants = experiment(
        "[program]\nsource = \"tree.c\"\n[axes]\nabi = \"x32\"\ncompiler = \"clang-14\"\n\
         allocator = [\"glibc\", \"jemalloc\"]\nthp = \"never\"\nenv = [\"tuned\"]\n[env.tuned]\nA = \"1\"\n",
    )
    .variants;
    let [plain, other] = &variants[..] else { panic!("{variants:?}") };
    assert_eq!(plain.abi.map(|abi| abi.name), Some("x32"));
    assert_eq!(plain.compiler.as_deref(), Some("clang-14"));
    assert_eq!(plain.flags.name, "-O2");
    assert_eq!((plain.allocator.as_str(), other.allocator.as_str()), ("glibc", "jemalloc"));
    assert_eq!(plain.thp, Thp::Never);
    assert_eq!(plain.environment, BTreeMap::from([("A".to_owned(), "1".to_owned())]));
    assert_eq!(plain.binary, None);

    let bare = &experiment("[program]\nsource = \"tree.c\"\n").variants[0];
    assert_eq!(bare.compiler, None);
    assert_eq!((bare.flags.name.as_str(), bare.flags.cflags.as_str()), ("-O2", "-O2"));
    assert_eq!(bare.flags.ldflags, "");
    assert_eq!(bare.allocator, "glibc");
    assert_eq!(bare.thp, Thp::System);
    assert!(bare.environment.is_empty());
}

#[test]
fn flag_sets_are_options_built_in_or_named() {
    let variants = experiment(
        "[program]\nsource = \"tree.c\"\n[axes]\nabi = \"x32\"\n\
         flags = [\"-O1 -g\", \"lto\", \"fast-math\", \"native\", \"pgo\", \"own\", \"plain\"]\n\
         [flags.own]\ncflags = \"-O3\"\ncxxflags = \"-O3 -fno-rtti\"\nldflags = \"-Wl,-O1\"\n\
         profile_guided = true\ntrain = \"{build}/tree 9\"\n[flags.plain]\ncflags = \"-Os\"\n",
    )
    .variants;
    let shown: Vec<String> = variants
        .iter()
        .map(|variant| {
            let set = &variant.flags;
            let train = set.train.as_deref().unwrap_or("-");
            let pgo = if set.profile_guided { "pgo" } else { "once" };
            format!("{}: {} | {} | {} | {pgo} | {train}", set.name, set.cflags, set.cxxflags, set.ldflags)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "-O1 -g: -O1 -g | -O1 -g |  | once | -",
            "lto: -O2 -flto | -O2 -flto | -O2 -flto | once | -",
            "fast-math: -O3 -ffast-math | -O3 -ffast-math |  | once | -",
            "native: -O3 -march=native | -O3 -march=native |  | once | -",
            "pgo: -O2 | -O2 |  | pgo | -",
            "own: -O3 | -O3 -fno-rtti | -Wl,-O1 | pgo | {build}/tree 9",
            "plain: -Os | -Os |  | once | -",
        ]
    );
}

#[test]
fn finished_binaries_are_the_first_column_in_the_users_order() {
    let binaries =
        "[program.binaries]\nx86-64 = \"./a64\"\n\"i386\" = \"./a32\"\n\"old build\" = \"/b/old\"\n";
    assert_eq!(names(binaries), ["x86-64", "i386", "old build"]);
    assert_eq!(
        names(&format!(
            "{binaries}[axes]\nallocator = [\"glibc\", \"jemalloc\"]\n[[exclude]]\nabi = \"i386\"\n"
        )),
        ["x86-64/glibc", "x86-64/jemalloc", "old build/glibc", "old build/jemalloc"]
    );
    let variants = experiment(binaries).variants;
    let files: Vec<_> = variants.iter().map(|variant| variant.binary.clone()).collect();
    assert_eq!(files, ["lua/./a64", "lua/./a32", "/b/old"].map(|file| Some(PathBuf::from(file))));
    let abis: Vec<_> = variants.iter().map(|variant| variant.abi.map(|abi| abi.name)).collect();
    assert_eq!(abis, [Some("x86-64"), Some("i386"), None]);
    assert!(variants.iter().all(|variant| variant.compiler.is_none() && variant.flags.cflags.is_empty()));
}

#[test]
fn the_baseline_is_the_first_variant_or_the_one_that_was_named() {
    let source = "[program]\nsource = \"tree.c\"\n";
    assert_eq!(experiment(source).baseline, "x86-64");
    assert_eq!(experiment(&format!("{source}[measure]\nbaseline = \"i386\"\n")).baseline, "i386");
    assert_eq!(experiment(&format!("{source}[[exclude]]\nabi = \"x86-64\"\n")).baseline, "x32");
}
