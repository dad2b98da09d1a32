//! The instructions of each function, beside objdump's listing of the same bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use widthwise_anatomy::code;
use widthwise_anatomy::elf::Elf;

use crate::anatomy::files;
use crate::work_directory::WorkDirectory;

/// Libraries whose exported functions are compared, too.
const LIBRARIES: [&str; 4] = ["libc.so.6", "libstdc++.so.6", "libm.so.6", "libcrypto.so.3"];
/// Functions that differ and are named.
const NAMED: usize = 5;

/// Mnemonics of two instructions, `wait` and the one behind it, which objdump lists in one line (Intel SDM, volume 2, FSTCW: "the
/// processor executes each of these instructions separately").
const WITH_WAIT: [&str; 6] = ["fstcw", "fstsw", "fstenv", "fclex", "finit", "fsave"];

/// How many instructions objdump's line is. A REX prefix that another REX prefix follows is ignored by the processor, and part of the
/// instruction behind it; objdump lists it in a line of its own (Intel SDM, volume 2, section 2.2.1: "a REX prefix must immediately precede
/// the opcode").
fn instructions_of(line: &str) -> u64 {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    if first.starts_with("rex") && words.next().is_none() {
        return 0;
    }
    1 + u64::from(WITH_WAIT.contains(&first))
}

/// What came out.
#[derive(Debug, Default)]
pub struct Instructions {
    pub functions: usize,
    pub equal: usize,
    /// Functions with a line of objdump's that is two instructions.
    pub with_wait: usize,
    /// Functions with a line of objdump's that is a prefix alone.
    pub with_prefix: usize,
    /// Functions that differ: name, file, own count, objdump's.
    pub different: Vec<(String, String, u64, u64)>,
}

impl Instructions {
    /// What is counted differently, and the functions that differ, in sentences.
    pub fn reasons(&self) -> String {
        let waits = format!(
            " objdump lists a `wait` and the x87 instruction behind it in one line (`fstcw`, `fstsw`), which counts as the two instructions \
             that it is (functions with such a line: {}). It lists a REX prefix that another one follows in a line of its own, which is counted with \
             the instruction behind it (functions with such a line, where data stand between the code: {}).",
            self.with_wait, self.with_prefix
        );
        if self.different.is_empty() {
            return waits;
        }
        let shown: Vec<String> = self
            .different
            .iter()
            .take(NAMED)
            .map(|(name, file, own, objdump)| format!("`{name}` of {file} ({own} and {objdump})"))
            .collect();
        let number = self.different.len();
        format!("{waits} Functions that differ from objdump, {number} in all: {}.", shown.join(", "))
    }
}

/// Compares all functions.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Instructions> {
    let mut all = Instructions::default();
    let mut paths: Vec<PathBuf> = files::own(work_directory)?;
    let has_symbols = |path: &PathBuf| {
        std::fs::read(path)
            .is_ok_and(|bytes| Elf::read(&bytes).is_ok_and(|elf| elf.section(".symtab").is_some()))
    };
    paths.retain(has_symbols);
    if !work_directory.quick {
        paths.extend(
            LIBRARIES
                .iter()
                .map(|name| Path::new("/usr/lib/x86_64-linux-gnu").join(name))
                .filter(|path| path.exists()),
        );
    }
    for path in paths {
        compare(work_directory, &path, &mut all).with_context(|| path.display().to_string())?;
    }
    Ok(all)
}

fn compare(work_directory: &WorkDirectory, path: &Path, all: &mut Instructions) -> anyhow::Result<()> {
    let bytes = std::fs::read(path)?;
    let elf = Elf::read(&bytes)?;
    let code = code::read(&elf, &elf.named())?;
    let mut objdump = Command::new("objdump");
    let shown = work_directory.output(objdump.args(["-d", "-z", "-w", "--no-show-raw-insn"]).arg(path))?;
    let mut lines = BTreeMap::new();
    for line in shown.lines() {
        let parts = line.strip_prefix(' ').and_then(|line| line.split_once(":\t"));
        let Some((address, text)) = parts else { continue };
        if let Ok(address) = u64::from_str_radix(address.trim(), 16) {
            lines.insert(address, instructions_of(text));
        }
    }
    for function in code.functions.iter().filter(|function| !function.name.is_empty()) {
        let end = function.address + function.counts.bytes;
        let of_function = || lines.range(function.address..end).map(|(_, instructions)| *instructions);
        let theirs: u64 = of_function().sum();
        all.functions += 1;
        all.with_wait += usize::from(of_function().any(|instructions| instructions > 1));
        all.with_prefix += usize::from(of_function().any(|instructions| instructions == 0));
        if theirs == function.counts.instructions {
            all.equal += 1;
        } else {
            let name = String::from_utf8_lossy(function.name).into_owned();
            let file = path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
            all.different.push((name, file, function.counts.instructions, theirs));
        }
    }
    Ok(())
}
