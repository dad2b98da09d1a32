//! The table of calls against a kernel that has x32: instructions of each call, counted by an emulator.

use std::collections::BTreeMap;

use anyhow::{bail, Context};

use crate::machine::{self, Archive};
use crate::section::{Section, Table};
use crate::work_directory::WorkDirectory;

/// Times the instructions of the kernel's own x32.
const MOST: f64 = 2.0;

/// What docs/x32.md says why of.
const EXPLAINED: [&str; 4] = ["getdents", "getdents64", "io_setup", "munlockall"];

/// What is answered otherwise on purpose: docs/x32-calls.md says why.
const REFUSED: [&str; 1] = ["kexec_load"];

/// Of `bench/programs/every_call.c`.
const SPELLS: usize = 5;
const CALLS_IN_A_SPELL: f64 = 10.0;

/// The programs of the guest, in the order in which they run.
const SIDES: [&str; 3] = ["x86-64", "x32", "x32run"];

/// Instructions of one call.
#[derive(Debug, Clone, Copy)]
struct Count {
    user: f64,
    kernel: f64,
}

impl Count {
    fn sum(self) -> f64 {
        self.user + self.kernel
    }
}

/// Boots the kernel once, and counts all calls in it three times.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let folder = work_directory.folder();
    let x32 = ["-mx32", "-idirafter", "/usr/include/x86_64-linux-gnu", "-static"];
    work_directory.build("tests/x32/stage.c", "stage", &["-D_GNU_SOURCE", "-static"])?;
    work_directory.build("bench/programs/every_call.c", "counted-x86-64", &["-static"])?;
    work_directory.build("bench/programs/every_call.c", "counted-x32", &x32)?;
    work_directory.build("tests/x32/cost/count.c", "count.so", &["-shared", "-fPIC"])?;
    let read = |name: &str| std::fs::read(folder.join(name)).with_context(|| name.to_owned());
    let mut archive = Archive::default();
    for name in ["dev", "proc", "sys", "tmp", "programs"] {
        archive.folder(name);
    }
    archive.file("init", &read("stage")?);
    archive.file("x32run", &std::fs::read(widthwise_x32run::place_in(folder)?)?);
    archive.file("programs/x86-64", &read("counted-x86-64")?);
    archive.file("programs/x32", &read("counted-x32")?);
    archive.file("programs/x32run", b"#!/x32run /programs/x32\n");
    archive.file("list", SIDES.map(|side| format!("{side} 120\n")).concat().as_bytes());
    let kernels = work_directory.target()?.join("x32-kernel");
    let kernel = machine::newest_kernel(&kernels).with_context(|| {
        format!("no kernel in {}: run `sh packaging/install.sh bench`", kernels.display())
    })?;
    let counts = folder.join("counts");
    let plugin = format!("{},out={}", folder.join("count.so").display(), counts.display());
    // Time is what has been executed, so that the kernel's ticks come in the same places in every boot.
    let mut options = words(MACHINE);
    options.extend(["-plugin", &plugin]);
    let output = machine::boot(&kernel, COMMAND_LINE, &archive.end(), &options, 400)?;
    let counted = of_sides(&String::from_utf8_lossy(&output), &std::fs::read_to_string(&counts)?)?;
    let release = kernel.file_name().unwrap_or_default().to_string_lossy().replace("vmlinuz-", "");
    section(&counted, &release)
}

const MACHINE: &str = "-accel tcg -smp 1 -icount shift=0,sleep=off -rtc base=2026-01-01,clock=vm";
const COMMAND_LINE: &str = "syscall.x32=y nokaslr norandmaps";

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// Counts of every call by name, with what it answered, on each side.
type Side = BTreeMap<String, (i64, Count)>;

/// From the stage's report, and from what the plugin wrote at the markers.
fn of_sides(output: &str, marks: &str) -> anyhow::Result<Vec<Side>> {
    let mut spells = spells(marks)?.into_iter();
    let mut sides: Vec<Side> = Vec::new();
    let mut nothing = None;
    for line in output.lines() {
        if let Some(head) = line.strip_prefix("@@ ") {
            if !head.contains(" exit 0 ") {
                bail!("the guest reports {head:?}: {output}");
            }
            sides.push(Side::new());
            nothing = None;
            continue;
        }
        let (name, answer) = line.rsplit_once(' ').with_context(|| line.to_owned())?;
        let own: Vec<Count> = spells.by_ref().take(SPELLS).collect();
        // A tick of the clock falls into some spells. What is least has none.
        let least =
            own.into_iter().min_by(|a, b| a.sum().total_cmp(&b.sum())).context("markers are missing")?;
        let Some(Count { user, kernel }) = nothing else {
            nothing = Some(least);
            continue;
        };
        let each = |count: f64, empty: f64| (count - empty) / CALLS_IN_A_SPELL;
        let count = Count { user: each(least.user, user), kernel: each(least.kernel, kernel) };
        sides.last_mut().context("no report")?.insert(name.to_owned(), (answer.parse()?, count));
    }
    if sides.len() != SIDES.len() || spells.next().is_some() {
        bail!("the guest's report and the markers do not fit: {output}");
    }
    Ok(sides)
}

/// What lies between each two markers.
fn spells(marks: &str) -> anyhow::Result<Vec<Count>> {
    let number = |word: &str| word.parse::<f64>().ok();
    let lines: Vec<Vec<f64>> =
        marks.lines().map(|line| line.split(' ').filter_map(number).collect()).collect();
    let between = |pair: &[Vec<f64>]| match pair {
        [first, second] if first.len() == 4 && second.len() == 4 && first[0] == 1.0 && second[0] == 2.0 => {
            let more = |place: usize| second[place] - first[place];
            Ok(Count { user: more(1) + more(2), kernel: more(3) })
        }
        _ => bail!("a marker without the other: {pair:?}"),
    };
    lines.chunks(2).map(between).collect()
}

fn section(sides: &[Side], release: &str) -> anyhow::Result<Section> {
    let [wide, own, through] = sides else { bail!("{} sides", sides.len()) };
    let mut table = Table::new([
        "",
        "x86-64",
        "x32, the kernel's",
        "x32run",
        "of these in user space",
        "kernel's x32 / x86-64",
        "x32run / kernel's x32",
    ]);
    let (mut ratios, mut native_ratios, mut missed) = (Vec::new(), Vec::new(), Vec::new());
    for (name, (answer, native)) in own {
        let (_, wide) = wide.get(name).with_context(|| format!("{name} is missing for x86-64"))?;
        let (output, x32run) =
            through.get(name).with_context(|| format!("{name} is missing under x32run"))?;
        let ratio = x32run.sum() / native.sum();
        if output != answer && !REFUSED.contains(&name.as_str()) {
            missed.push(format!("{name} answers {output}, and not {answer}"));
        }
        ratios.push(ratio);
        native_ratios.push(native.sum() / wide.sum());
        if ratio > MOST && !EXPLAINED.contains(&name.as_str()) {
            missed.push(format!("{name} {ratio:.2}"));
        }
        table.row([
            name.clone(),
            format!("{:.0}", wide.sum()),
            format!("{:.0}", native.sum()),
            format!("{:.0}", x32run.sum()),
            format!("{:.0}", x32run.user),
            format!("{:.2}", native.sum() / wide.sum()),
            format!("{ratio:.2}"),
        ]);
    }
    for all in [&mut ratios, &mut native_ratios] {
        all.sort_by(f64::total_cmp);
    }
    Ok(Section {
        bar: format!(
            "in a guest whose kernel has x32, no call through the runtime executes more than {MOST} times the instructions \
             of the kernel's own x32, but for those of which docs/x32.md says why, and every one answers the same, but for \
             {}, which is refused.",
            REFUSED.join(" and ")
        ),
        method: format!(
            "What is counted: instructions that one call executes in the guest, in the program, the runtime and the kernel \
             ({release}) together, by a plugin of QEMU between two markers in bench/programs/every_call.c; the least of \
             {SPELLS} spells of {CALLS_IN_A_SPELL} calls, less the same spell without a call. Three programs in one boot: for \
             x86-64, for x32 by the kernel's own x32, and the same file under x32run. Instructions are no time: a trap into \
             the kernel counts as one. The guest's clock is its count of instructions, and its addresses are fixed, so that \
             two boots give the same numbers: of {} rows all but a few, and those to 2 %.",
            ratios.len()
        ),
        commands: vec![format!(
            "# qemu-system-x86_64 -cpu max -m 1024 {MACHINE} -plugin ./count.so -kernel vmlinuz -append '{COMMAND_LINE}' …"
        )],
        table,
        reached: missed.is_empty(),
        sentence: format!(
            "of {} calls the middle one executes {:.2} times the instructions of the kernel's own x32, nine of ten at most \
             {:.2} times; the kernel's own x32 executes {:.2} times those of x86-64 (the middle one){}.",
            ratios.len(),
            ratios[ratios.len() / 2],
            ratios[ratios.len() * 9 / 10],
            native_ratios[native_ratios.len() / 2],
            if missed.is_empty() { String::new() } else { format!("; missed: {}", missed.join(", ")) },
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks around spells of so many instructions, five of each.
    fn marks(spells: &[(u32, u32)]) -> String {
        let (mut user, mut kernel, mut text) = (0, 0, String::new());
        for (more_user, more_kernel) in spells.iter().flat_map(|spell| [*spell; SPELLS]) {
            text += &format!("mark 1 program {user} runtime 0 kernel {kernel}\n");
            user += more_user;
            kernel += more_kernel;
            text += &format!("mark 2 program {user} runtime 0 kernel {kernel}\n");
        }
        text
    }

    #[test]
    fn a_call_is_what_its_spell_has_more_than_the_empty_one() {
        let output = SIDES.map(|side| format!("@@ {side} exit 0 20\n 0\nread -9\n")).concat();
        let sides =
            of_sides(&output, &marks(&[(50, 0), (150, 3000), (50, 0), (160, 3000), (50, 0), (250, 3500)]))
                .unwrap();
        let sums: Vec<f64> = sides.iter().map(|side| side["read"].1.sum()).collect();
        assert_eq!(sums, [310.0, 311.0, 370.0]);
        assert_eq!(sides[2]["read"].0, -9);
    }

    #[test]
    fn a_report_that_does_not_fit_is_no_result() {
        let output = SIDES.map(|side| format!("@@ {side} exit 0 20\n 0\nread -9\n")).concat();
        assert!(of_sides(&output, &marks(&[(50, 0)])).is_err());
        assert!(of_sides(&output.replacen("exit 0", "signal 11", 1), &marks(&[(50, 0); 6])).is_err());
        assert!(of_sides(&output, &marks(&[(50, 0); 7])).is_err());
    }
}
