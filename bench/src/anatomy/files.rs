//! The sums of files: their rows, their compile units, their code by origin.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use widthwise_anatomy::debug::{self, Sections};
use widthwise_anatomy::elf::{is_elf, section_flag, section_type, Elf};
use widthwise_anatomy::size::{self, inlined};

use crate::work_directory::WorkDirectory;

/// Debian's files: so many programs, and so many libraries.
const PROGRAMS: usize = 22;
const LIBRARIES: usize = 8;
/// Our programs: each needs no other file.
const OWN: [&str; 5] = [
    "tests/programs/tree.cpp",
    "tests/programs/forks.cpp",
    "tests/programs/lists.c",
    "bench/programs/hello.cc",
    "bench/programs/trees.cc",
];
/// How ours are built.
const KINDS: [&[&str]; 5] = [
    &["-O2", "-g", "-fPIE", "-pie"],
    &["-O1", "-no-pie"],
    &["-O2", "-static", "-g"],
    &["-O2", "-s"],
    &["-O2", "-g", "-gz=zlib"],
];

/// An ABI's options.
pub(super) const ABIS: [(&str, &[&str]); 3] = [
    ("x86-64", &[]),
    ("x32", &["-mx32", "-idirafter", "/usr/include/x86_64-linux-gnu"]),
    ("i386", &["-m32", "-idirafter", "/usr/include/x86_64-linux-gnu"]),
];

/// What came out.
#[derive(Debug, Default)]
pub struct Sums {
    pub files: usize,
    pub debian: usize,
    pub exact: usize,
    pub units_exact: usize,
    pub code_exact: usize,
    pub like_size: usize,
}

/// Reads all files.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Sums> {
    let (programs, libraries) = if work_directory.quick { (3, 1) } else { (PROGRAMS, LIBRARIES) };
    let mut files = debian_files(programs, libraries)?;
    let mut sums = Sums { debian: files.len(), ..Sums::default() };
    files.extend(own(work_directory)?);
    for file in files {
        add(work_directory, &file, &mut sums).with_context(|| file.display().to_string())?;
    }
    Ok(sums)
}

/// Programs at even distances in the order of their sizes, and the largest libraries.
fn debian_files(programs: usize, libraries: usize) -> anyhow::Result<Vec<PathBuf>> {
    let of_folder = |folder: &str| -> anyhow::Result<Vec<PathBuf>> {
        let mut all: Vec<(u64, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(folder).context(folder.to_owned())? {
            let path = entry?.path();
            let metadata = std::fs::symlink_metadata(&path)?;
            if metadata.is_file() && is_elf_file(&path) {
                all.push((metadata.len(), path));
            }
        }
        all.sort();
        Ok(all.into_iter().map(|(_, path)| path).collect())
    };
    let all = of_folder("/usr/bin")?;
    let last = all.len().saturating_sub(1);
    let mut chosen: Vec<PathBuf> = (0..programs)
        .filter_map(|at| all.get(at * last / programs.saturating_sub(1).max(1)).cloned())
        .collect();
    chosen.dedup();
    let mut largest = of_folder("/usr/lib/x86_64-linux-gnu")?;
    chosen.extend(largest.drain(largest.len().saturating_sub(libraries)..));
    Ok(chosen)
}

fn is_elf_file(path: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 4];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && is_elf(&start)
}

/// Our programs in all ABIs and kinds.
pub(super) fn own(work_directory: &WorkDirectory) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let (sources, kinds) =
        if work_directory.quick { (&OWN[..1], &KINDS[..1]) } else { (&OWN[..], &KINDS[..]) };
    for source in sources {
        for (abi, options) in ABIS {
            for (number, kind) in kinds.iter().enumerate() {
                let name = Path::new(source).file_stem().context("a source has a name")?.to_string_lossy();
                let file = work_directory.folder().join(format!("{name}-{abi}-{number}"));
                files.push(file.clone());
                // Built once for all parts of the benchmark.
                if file.exists() {
                    continue;
                }
                let compiler = if source.ends_with(".c") { "gcc" } else { "g++" };
                let mut command = Command::new(compiler);
                command
                    .args(options)
                    .args(*kind)
                    .arg(work_directory.repository().join(source))
                    .arg("-o")
                    .arg(&file);
                work_directory.output(command.arg("-pthread"))?;
            }
        }
    }
    Ok(files)
}

fn add(work_directory: &WorkDirectory, path: &Path, sums: &mut Sums) -> anyhow::Result<()> {
    let bytes = std::fs::read(path)?;
    let elf = Elf::read(&bytes)?;
    let named = elf.named();
    let found = size::read(&elf, &named);
    let sections = Sections::of(&elf);
    let units = debug::read(&sections, 2);
    let of_units: u64 = size::units(&elf, &named, &sections, &units).iter().map(|row| row.bytes).sum();
    let origins: u64 = inlined::origins(&elf, &named, &units).iter().map(|one| one.own + one.inlined).sum();
    let is_code = |section: &&widthwise_anatomy::elf::Section| {
        section.has(section_flag::EXECINSTR)
            && section.has(section_flag::ALLOC)
            && section.kind != section_type::NOBITS
    };
    let code: u64 = elf.sections.iter().filter(is_code).map(|section| section.size).sum();
    let printed = work_directory.output(Command::new("size").arg(path))?;
    let line = printed.lines().nth(1).context("size printed one line")?;
    let numbers: Vec<u64> = line.split_whitespace().take(3).filter_map(|word| word.parse().ok()).collect();
    let size::Berkeley { text, data, bss } = found.berkeley;
    let total = bytes.len() as u64;
    sums.files += 1;
    sums.exact += usize::from(found.rows.iter().map(|row| row.bytes).sum::<u64>() == total);
    sums.units_exact += usize::from(of_units == total);
    sums.code_exact += usize::from(origins == code);
    sums.like_size += usize::from(numbers == [text, data, bss]);
    Ok(())
}
