//! The library of windows beyond 4 GiB beside direct access by a 64-bit program, in every ABI.

use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context};

use crate::section::{Section, Table};
use crate::work_directory::{typed, words, WorkDirectory};

/// A scan's throughput to LP64's, at least; what a window switch costs to mmap and munmap, and a random read to LP64's
/// direct one, at most; and how long a sparse store of 1 TiB may take.
const SCAN: f64 = 0.9;
const SWITCH: f64 = 1.5;
const RANDOM: f64 = 3.0;
const EXTENTS_SECONDS: f64 = 1.0;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// What a program of 32 bits may use for windows of its 4 GiB: nearly all.
const ADDRESS_SPACE: u64 = 4_000_000_000;
const WINDOW: u64 = 256 * MIB;
const WINDOW_SIZES: [u64; 4] = [64 << 10, MIB, 16 * MIB, WINDOW];

/// An ABI and the options with which gcc builds for it.
const ABIS: [(&str, &[&str]); 3] = [
    ("x86-64", &["-m64"]),
    ("x32", &["-mx32", "-idirafter", "/usr/include/x86_64-linux-gnu"]),
    ("i386", &["-m32", "-msse2", "-idirafter", "/usr/include/x86_64-linux-gnu"]),
];

/// The sizes: those of the claim, or small ones for a quick look.
struct Sizes {
    rounds: u32,
    store: u64,
    random: u64,
    reads: u32,
    switches: u32,
    steps: u32,
}

/// Figures of one round: direct access by x86-64, and windows in each ABI.
#[derive(Debug, Default, Clone)]
struct Rounds {
    direct: Vec<f64>,
    windows: [Vec<f64>; 3],
}

impl Rounds {
    /// The median of the rounds' ratios of the direct figure to the ABI's.
    fn ratio(&self, abi: usize) -> f64 {
        median(self.direct.iter().zip(&self.windows[abi]).map(|(direct, own)| own / direct).collect())
    }

    fn worst(&self) -> f64 {
        (0..ABIS.len()).map(|abi| self.ratio(abi)).fold(0.0, f64::max)
    }
}

/// Measures.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let quick = work_directory.quick;
    let sizes = Sizes {
        rounds: work_directory.count(5, 1),
        store: if quick { 64 * MIB } else { 8 * GIB },
        random: if quick { 40 * MIB } else { 5 * GIB },
        reads: work_directory.count(400_000, 1000),
        switches: work_directory.count(5000, 100),
        steps: work_directory.count(4000, 100),
    };
    for (abi, options) in ABIS {
        build(work_directory, abi, options)?;
    }
    let mut commands = Vec::new();
    figures(work_directory, 0, &["store", "fill", &sizes.store.to_string()], &mut commands)?;
    figures(work_directory, 0, &["sparse", "sparse"], &mut commands)?;
    let all = Figures::measure(work_directory, &sizes, &mut commands)?;
    for store in ["store", "sparse"] {
        std::fs::remove_file(work_directory.folder().join(store))?;
    }
    Ok(all.section(&sizes, commands))
}

/// All that is measured, each in seconds or nanoseconds.
#[derive(Default)]
struct Figures {
    scan: Rounds,
    random: Rounds,
    /// The direct ones are each ABI's own mmap and munmap.
    switches: [Rounds; 3],
    extents: Rounds,
    /// The paper's program, in each ABI; and a store in a memfd.
    paper: [Vec<f64>; 3],
    walk: [Vec<f64>; 3],
    /// An i386 scan by window size.
    sizes: [Vec<f64>; WINDOW_SIZES.len()],
}

impl Figures {
    fn measure(
        work_directory: &WorkDirectory,
        sizes: &Sizes,
        commands: &mut Vec<String>,
    ) -> anyhow::Result<Figures> {
        let mut all = Figures::default();
        let number = |number: u64| number.to_string();
        let (random, reads) = (number(sizes.random), number(sizes.reads.into()));
        let (switches, steps) = (number(sizes.switches.into()), number(sizes.steps.into()));
        for round in 0..sizes.rounds {
            // What the first round runs is shown; it also brings the store into the page cache.
            let mut later = Vec::new();
            let list = if round == 0 { &mut *commands } else { &mut later };
            let mut one = |abi: usize, words: &[&str]| figures(work_directory, abi, words, list);
            if round == 0 {
                one(0, &["store", "scan-direct"])?;
            }
            all.scan.direct.push(one(0, &["store", "scan-direct"])?[0]);
            all.random.direct.push(one(0, &["store", "random-direct", &random, &reads])?[0]);
            for abi in 0..ABIS.len() {
                let space = number(if abi == 0 { 0 } else { ADDRESS_SPACE });
                all.scan.windows[abi].push(one(abi, &["store", "scan", &number(WINDOW)])?[0]);
                all.random.windows[abi].push(one(abi, &["store", "random", &random, &reads, &space])?[0]);
                let pair = one(abi, &["store", "switch", &switches])?;
                all.switches[abi].windows[abi].push(pair[0]);
                all.switches[abi].direct.push(pair[1]);
                all.extents.windows[abi].push(one(abi, &["sparse", "extents"])?[0]);
                all.paper[abi].push(one(abi, &["walk", "walk-paper", &steps])?[0]);
                let window = number(if abi == 0 { WINDOW } else { MIB });
                all.walk[abi].push(one(abi, &["walk", "walk", &steps, &window])?[0]);
            }
            for (index, size) in WINDOW_SIZES.iter().enumerate() {
                all.sizes[index].push(one(2, &["store", "scan", &number(*size)])?[0]);
            }
        }
        Ok(all)
    }

    fn switch_ratio(&self) -> f64 {
        (0..ABIS.len()).map(|abi| self.switches[abi].ratio(abi)).fold(0.0, f64::max)
    }

    fn extents_seconds(&self) -> f64 {
        self.extents.windows.iter().map(|own| median(own.clone())).fold(0.0, f64::max)
    }

    fn section(&self, sizes: &Sizes, commands: Vec<String>) -> Section {
        let mut table = Table::new(["", "direct, x86-64", "x86-64", "x32", "i386", "worst ratio", "at most"]);
        let rate = |seconds: &Vec<f64>| format!("{:.2}", sizes.store as f64 / 1e9 / median(seconds.clone()));
        let plain = |values: &Vec<f64>| format!("{:.0}", median(values.clone()));
        let mut row = |what: &str, direct: String, own: [String; 3], ratio: String, most: String| {
            let [one, other, third] = own;
            table.row([what.to_owned(), direct, one, other, third, ratio, most]);
        };
        let ratio = |ratio: f64| format!("{ratio:.2}");
        let empty = String::new;
        row(
            &format!("scan of {} MiB, GB/s (ratio of times)", sizes.store / MIB),
            rate(&self.scan.direct),
            self.scan.windows.each_ref().map(rate),
            ratio(self.scan.worst()),
            ratio(1.0 / SCAN),
        );
        row(
            &format!("1000 bytes at random of {} MiB, ns", sizes.random / MIB),
            plain(&self.random.direct),
            self.random.windows.each_ref().map(plain),
            ratio(self.random.worst()),
            ratio(RANDOM),
        );
        row(
            "window switch, ns",
            empty(),
            [0, 1, 2].map(|abi| plain(&self.switches[abi].windows[abi])),
            ratio(self.switch_ratio()),
            ratio(SWITCH),
        );
        row(
            "mmap and munmap, ns",
            empty(),
            [0, 1, 2].map(|abi| plain(&self.switches[abi].direct)),
            empty(),
            empty(),
        );
        row(
            "1 TiB by 4096 extents, s",
            empty(),
            self.extents.windows.each_ref().map(|own| format!("{:.3}", median(own.clone()))),
            empty(),
            format!("{EXTENTS_SECONDS:.3}"),
        );
        row("step in 32 × 1 GiB, ns", empty(), self.walk.each_ref().map(plain), empty(), empty());
        row(
            "shmat, a step, shmdt (the paper's program), ns",
            empty(),
            self.paper.each_ref().map(plain),
            empty(),
            empty(),
        );
        for (size, seconds) in WINDOW_SIZES.iter().zip(&self.sizes) {
            let what = format!("scan by windows of {} KiB, GB/s", size >> 10);
            row(&what, empty(), [empty(), empty(), rate(seconds)], empty(), empty());
        }
        let reached = self.scan.worst() <= 1.0 / SCAN
            && self.random.worst() <= RANDOM
            && self.switch_ratio() <= SWITCH
            && self.extents_seconds() <= EXTENTS_SECONDS;
        Section {
            bar: "a scan of 8 GiB through windows of 256 MiB has at least 0.9 of the throughput of LP64's mmap; random reads of 1000 bytes in \
                  5 GiB take at most 3 times LP64's direct ones (LMDB's 32-bit mode: 8.4 times, its scan 0.58); a window switch at most 1.5 \
                  times mmap and munmap; a sparse store of 1 TiB is opened, walked by its extents and closed in under a second."
                .into(),
            method: format!(
                "Medians of {} rounds, in which all programs take turns, and of the rounds' ratios. The store is a file in the page cache. Before \
                 the random reads each program reads a byte of every page, so that page tables are filled. Programs of 32 bits give up to \
                 {ADDRESS_SPACE} bytes of address space to windows of 1 MiB. x32 programs run through the x32 runtime. A step of the walk \
                 writes 8 bytes in one of 1024 places of one of 32 segments: the paper's program attaches and detaches a segment for each; the \
                 library's store is a memfd, and a step is a pin in a transaction, which copies the page first.",
                sizes.rounds
            ),
            commands,
            table,
            reached,
            sentence: format!(
                "scan {:.2} of LP64's throughput, random reads {:.2} times LP64's direct ones, a window switch {:.2} times mmap and munmap, 1 TiB \
                 in {:.2} s: the worst of three ABIs.",
                1.0 / self.scan.worst(),
                self.random.worst(),
                self.switch_ratio(),
                self.extents_seconds()
            ),
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 if middle == 0 => f64::NAN,
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

/// `measure-ABI` in the work directory.
fn build(work_directory: &WorkDirectory, abi: &str, options: &[&str]) -> anyhow::Result<()> {
    let folder = work_directory.repository().join("window");
    let mut command = Command::new("gcc");
    command.args(["-std=c17", "-O2", "-DNDEBUG", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-pthread"]);
    command.args(options).arg("-I").arg(folder.join("include")).arg("-o").arg(format!("measure-{abi}"));
    command.args(sources(&folder.join("src"))?).arg(folder.join("bench/measure.c"));
    work_directory.output(&mut command).map(drop)
}

fn sources(folder: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            files.push(path);
        }
    }
    Ok(files)
}

/// The numbers that the program prints.
fn figures(
    work_directory: &WorkDirectory,
    abi: usize,
    arguments: &[&str],
    commands: &mut Vec<String>,
) -> anyhow::Result<Vec<f64>> {
    let program = format!("./measure-{}", ABIS[abi].0);
    let own: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
    let (mut command, shown) = if ABIS[abi].0 == "x32" {
        let line: Vec<String> = words(["exec", &program]).into_iter().chain(own).collect();
        (work_directory.widthwise(&line), typed("widthwise", &line))
    } else {
        let mut command = Command::new(&program);
        command.args(&own);
        (command, typed(&program, &own))
    };
    let printed = work_directory.output(&mut command)?;
    if !commands.contains(&shown) {
        commands.push(shown);
    }
    numbers(&printed)
}

fn numbers(printed: &str) -> anyhow::Result<Vec<f64>> {
    let mut numbers = Vec::new();
    for word in printed.split_whitespace() {
        match word.parse::<f64>() {
            Ok(number) if number.is_finite() => numbers.push(number),
            _ => bail!("the program printed {word:?} instead of a number"),
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let rounds = Rounds {
            direct: vec![1.0, 2.0, 4.0],
            windows: [vec![2.0, 2.0, 4.0], vec![3.0, 6.0, 12.0], vec![1.0, 1.0, 1.0]],
        };
        assert_eq!((rounds.ratio(0), rounds.ratio(1), rounds.worst()), (1.0, 3.0, 3.0));
        assert_eq!((median(vec![3.0, 1.0]), median(vec![5.0, 1.0, 2.0])), (2.0, 2.0));
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn what_is_no_number_is_an_error() {
        assert_eq!(numbers("12.5 3\n").unwrap(), [12.5, 3.0]);
        assert!(numbers("12.5 ns").is_err() && numbers("nan").is_err());
    }
}
