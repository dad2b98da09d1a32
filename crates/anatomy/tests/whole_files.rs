//! The truth of size and code: sums against the file, `size` and `objdump` on the same bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use widthwise_anatomy::code;
use widthwise_anatomy::elf::Elf;
use widthwise_anatomy::size;

const X32: &str = "-mx32 -idirafter /usr/include/x86_64-linux-gnu";
const SOURCE: &str = r#"
#include <map>
#include <string>
#include <vector>
#include <cmath>
struct Base { virtual ~Base() {} virtual double area() const { return 0; } };
struct Square : Base { double side; Square(double s) : side(s) {} double area() const override { return side * side; } };
static std::map<std::string, std::vector<long>> index;
thread_local long counter = 5;
int main(int argc, char **argv) {
  Base *shape = new Square(argc);
  for (int i = 0; i < argc; i++) index[argv[i]].push_back(i * 0x123456789abcLL + counter++);
  long double sum = shape->area();
  for (auto &entry : index) sum += std::sqrt((float)entry.second.size());
  delete shape;
  return sum > 1e9;
}
"#;

fn run(program: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One program in three ABIs: stripped or not, position-independent, static, with compressed debug sections. Built once for
/// all tests.
fn own() -> &'static [PathBuf] {
    static OWN: OnceLock<Vec<PathBuf>> = OnceLock::new();
    OWN.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("whole-files");
        std::fs::create_dir_all(&folder).unwrap();
        built_in(&folder)
    })
}

fn built_in(folder: &Path) -> Vec<PathBuf> {
    let source = folder.join("program.cpp");
    std::fs::write(&source, SOURCE).unwrap();
    let mut files = Vec::new();
    for (abi, flags) in
        [("x86-64", ""), ("x32", X32), ("i386", "-m32 -idirafter /usr/include/x86_64-linux-gnu")]
    {
        for (kind, more) in [
            ("pie", "-O2 -g -pie -fPIE"),
            ("fixed", "-O1 -no-pie"),
            ("static", "-O2 -static"),
            ("packed", "-O2 -g -gz=zlib"),
            ("stripped", "-O2 -s"),
            ("object", "-O2 -c"),
        ] {
            let file = folder.join(format!("{abi}-{kind}"));
            let words: Vec<&str> = flags.split_whitespace().chain(more.split_whitespace()).collect();
            let last = [source.to_str().unwrap(), "-o", file.to_str().unwrap()];
            run("g++", &[&words[..], &last[..]].concat());
            files.push(file);
        }
    }
    files
}

/// No machine's programs of a hundred megabytes.
const LARGEST: u64 = 4 << 20;

/// The first programs of a folder that are ELF files, in the order of their names.
fn of_folder(folder: &str, count: usize) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    let is_elf = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.len() <= LARGEST)
            && std::fs::read(path).is_ok_and(|bytes| widthwise_anatomy::elf::is_elf(&bytes))
    };
    let programs: Vec<PathBuf> = all.into_iter().filter(is_elf).take(count).collect();
    assert_eq!(programs.len(), count, "{folder} has fewer programs");
    programs
}

/// The three sums of `size`.
fn printed_by_size(path: &Path) -> [u64; 3] {
    let printed = run("size", &[path.to_str().unwrap()]);
    let mut words = printed.lines().nth(1).unwrap().split_whitespace().map(|word| word.parse().unwrap());
    [words.next().unwrap(), words.next().unwrap(), words.next().unwrap()]
}

#[test]
fn the_rows_sum_to_the_file_and_text_data_and_bss_are_those_of_size() {
    let files = [own(), &of_folder("/usr/bin", 30)].concat();
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let elf = Elf::read(&bytes).unwrap();
        let found = size::read(&elf, &elf.named());
        let sum: u64 = found.rows.iter().map(|row| row.bytes).sum();
        assert_eq!(sum, bytes.len() as u64, "{}", path.display());
        let size::Berkeley { text, data, bss } = found.berkeley;
        assert_eq!([text, data, bss], printed_by_size(&path), "{}", path.display());
    }
}

/// The number of instructions that `objdump` shows from each of its labels on, by section and address.
fn by_objdump(path: &Path) -> BTreeMap<u64, u64> {
    let shown = run("objdump", &["-d", "-z", "-w", "--no-show-raw-insn", path.to_str().unwrap()]);
    let mut counts = BTreeMap::new();
    for line in shown.lines() {
        let Some((address, _)) = line.strip_prefix(' ').and_then(|line| line.split_once(":\t")) else {
            continue;
        };
        if let Ok(address) = u64::from_str_radix(address.trim(), 16) {
            counts.insert(address, 1);
        }
    }
    counts
}

/// Compares every function of a file; returns how many there were.
fn like_objdump(path: &Path) -> usize {
    let bytes = std::fs::read(path).unwrap();
    let elf = Elf::read(&bytes).unwrap();
    let code = code::read(&elf, &elf.named()).unwrap();
    let lines = by_objdump(path);
    let mut compared = 0;
    for function in code.functions.iter().filter(|function| !function.name.is_empty()) {
        let end = function.address + function.counts.bytes;
        let shown = lines.range(function.address..end).count() as u64;
        let name = String::from_utf8_lossy(function.name);
        assert_eq!(function.counts.instructions, shown, "{name} of {}", path.display());
        compared += 1;
    }
    compared
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn the_instructions_of_each_function_are_those_of_objdump() {
    let mut compared = 0;
    for path in own() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Functions of relocatable files share their addresses; stripped ones have none.
        if !name.ends_with("object") && !name.ends_with("stripped") {
            let functions = like_objdump(path);
            assert!(functions > 5, "{name}: {functions}");
            compared += functions;
        }
    }
    assert!(compared > 5000, "{compared}");
}

#[test]
fn the_code_of_stripped_programs_is_decoded_as_objdump_does() {
    for path in of_folder("/bin", 12) {
        let bytes = std::fs::read(&path).unwrap();
        let elf = Elf::read(&bytes).unwrap();
        let code = code::read(&elf, &elf.named()).unwrap();
        let text = code.functions.iter().filter(|function| function.section == ".text");
        let (instructions, of_text) = text.fold((0, 0), |sum, function| {
            (sum.0 + function.counts.instructions, sum.1 + function.counts.bytes)
        });
        let section = elf.section(".text").unwrap();
        assert_eq!(of_text, section.size, "{}", path.display());
        let lines = by_objdump(&path);
        let shown = lines.range(section.address..section.address + section.size).count() as u64;
        // Where exported functions begin within data, both resynchronise after a few instructions.
        assert_eq!(instructions, shown, "{}", path.display());
    }
}

#[test]
fn cut_and_changed_files_are_errors_or_exact() {
    let path = &own()[1];
    let whole = std::fs::read(path).unwrap();
    let mut seed = 1u32;
    for round in 0..4000 {
        let mut bytes = whole.clone();
        if round % 4 == 0 {
            bytes.truncate(round * bytes.len() / 4000);
        } else {
            for _ in 0..1 + round % 5 {
                seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
                // Most of the changes hit headers and tables.
                let room = if round % 2 == 0 { 4096 } else { bytes.len() };
                let at = bytes.len() - 1 - (seed as usize >> 4) % room;
                let at = if seed & 8 == 0 { at } else { (seed as usize >> 4) % 1024 };
                bytes[at] = (seed >> 16) as u8;
            }
        }
        let Ok(elf) = Elf::read(&bytes) else { continue };
        let named = elf.named();
        let sum: u64 = size::read(&elf, &named).rows.iter().map(|row| row.bytes).sum();
        assert_eq!(sum, bytes.len() as u64);
        if round % 16 == 1 {
            let _ = code::read(&elf, &named);
        }
    }
}
