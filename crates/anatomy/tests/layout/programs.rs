//! Programs for tests of layouts: compiled for an ABI, linked without any library, and never run.

// Not every file of tests uses all.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The three ABIs, as compilers call them.
pub const ABIS: [(&str, &str); 3] = [("x86-64", "-m64"), ("x32", "-mx32"), ("i386", "-m32")];

/// A folder with programs.
pub struct Programs(tempfile::TempDir);

impl Programs {
    pub fn new() -> Programs {
        Programs(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect(name);
    }

    pub fn run(&self, words: &[&str]) {
        let output =
            Command::new(words[0]).args(&words[1..]).current_dir(self.0.path()).output().expect(words[0]);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Builds a file of C++ (or C, by its name) and returns the program.
    pub fn build(&self, compiler: &str, source: &str, options: &[&str]) -> PathBuf {
        let name =
            format!("{source}-{}{}", compiler.replace('/', "-"), options.concat().replace(['/', '='], "-"));
        let mut words = vec![compiler, "-g", "-shared", "-nostdlib", "-fPIC", "-w"];
        // Also classes whose virtual table is in no unit.
        words.push(if compiler.starts_with("clang") {
            "-fstandalone-debug"
        } else {
            "-femit-class-debug-always"
        });
        words.extend(options);
        words.extend(["-o", &name, source]);
        self.run(&words);
        self.path(&name)
    }
}

/// Whether a program is installed.
pub fn is_installed(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The numbers of a constant array of `unsigned` in a program.
pub fn numbers(program: &Path, symbol: &str) -> Vec<u64> {
    words(program, symbol, 4)
}

/// The words of a symbol's bytes.
pub fn words(program: &Path, name: &str, word: usize) -> Vec<u64> {
    use object::{Object, ObjectSection, ObjectSymbol};
    let bytes = std::fs::read(program).expect("the program");
    let object = object::File::parse(&*bytes).expect("an ELF file");
    let symbol = object.symbols().find(|symbol| symbol.name() == Ok(name)).expect(name);
    let section = object.section_by_index(symbol.section_index().expect("a section")).expect("the section");
    let data = section.data_range(symbol.address(), symbol.size()).expect("data").expect("all of it");
    data.chunks_exact(word)
        .map(|bytes| bytes.iter().rev().fold(0_u64, |number, byte| (number << 8) | u64::from(*byte)))
        .collect()
}
