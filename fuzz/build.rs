//! Compiles the x32 runtime's reading of ELF files, with clang, so that libFuzzer sees its branches and the address
//! sanitizer its reads.

fn main() {
    let runtime = "../runtime/x32";
    for file in ["elf.c", "elf.h", "kernel.h", "user_memory.h"] {
        println!("cargo::rerun-if-changed={runtime}/{file}");
    }
    println!("cargo::rerun-if-changed=x32_image.c");
    let mut build = cc::Build::new();
    build.compiler("clang").file(format!("{runtime}/elf.c")).file("x32_image.c");
    // For quotes alone: <elf.h> is the system's.
    build.flag("-iquote").flag(runtime).flag("-std=c17").flag("-O1").flag("-g");
    // cargo-fuzz says so to the compiler of Rust; without it there is no caller.
    if std::env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("sanitizer=address")) {
        build.flag("-fsanitize=address,undefined,fuzzer-no-link").flag("-fno-sanitize-recover=all");
        build.flag("-fsanitize-trap=undefined");
    }
    build.compile("x32_image");
}
