//! The heap recorder beside heaptrack: what it costs the program, how large its log is, how fast it is read.

mod recorded;
mod source;

use std::process::Command;

use recorded::{Costs, Logs, Program, Recorders};

use crate::ratio;
use crate::section::{Section, Table};
use crate::work_directory::WorkDirectory;

/// Ten trees; some 154 000 blocks each.
const TREES: &str = "./trees 10";
/// Of heaptrack's added time, on the trees with stacks.
const WITH_STACKS: f64 = 0.5;
/// Of the trees' own time, without stacks.
const WITHOUT_STACKS: f64 = 1.15;

/// gcc's own compiler of C++, and a file that is preprocessed already, so that nothing else is started.
const COMPILER: &str = "./cc1plus -quiet -O1 -fpreprocessed unit.ii -o /dev/null";
/// Lines that the compiler reads.
const LINES: usize = 60_000;
const QUICK_LINES: usize = 2000;
/// Of heaptrack's added time (with stacks, as always), on the compiler: with stacks, without, and the share of the
/// blocks whose stack is complete.
const COMPILER_WITH_STACKS: f64 = 0.4;
const COMPILER_WITHOUT_STACKS: f64 = 0.15;
const COMPILER_COMPLETE: f64 = 0.999;

/// A program, and what came out.
struct Measured<'a> {
    program: Program<'a>,
    logs: Logs,
    costs: Costs,
}

impl<'a> Measured<'a> {
    /// The recorded runs come first: they bring the program and its input from the disk.
    fn measure(
        work_directory: &WorkDirectory,
        recorders: &Recorders,
        program: Program<'a>,
    ) -> anyhow::Result<Self> {
        let logs = recorders.record(work_directory, &program)?;
        let costs = program.measure(work_directory)?;
        Ok(Measured { program, logs, costs })
    }

    /// Nanoseconds of the program alone for each block.
    fn alone(&self) -> f64 {
        self.costs.alone / self.logs.blocks
    }

    fn rows(&self, table: &mut Table, reading: Option<[f64; 2]>) -> anyhow::Result<()> {
        let [ours, theirs] = self.logs.sizes()?.map(|size| format!("{size:.1}"));
        let complete =
            self.logs.complete.map_or("not known".into(), |share| format!("{:.2} %", share * 100.0));
        let read = reading.map_or(String::new(), |[ours, theirs]| format!("{:.2}", ours / theirs));
        let (times, costs) = (&self.costs.times, &self.costs);
        let mut row = |name: &str, times: ratio::Estimate, added: String, log: [String; 3]| {
            let block = format!("{:.0}", (times.ratio - 1.0) * self.alone());
            let [log, complete, read] = log;
            let name = format!("{}, {name}", self.program.name);
            table.row([name, times.text(2), added, block, log, complete, read]);
        };
        row("without stacks", times.without, costs.without_added.text(2), [(); 3].map(|()| String::new()));
        row("with stacks", times.with, costs.with_added.text(2), [ours, complete, read]);
        let read = reading.map_or(String::new(), |_| "1".into());
        row("heaptrack", times.heaptrack, "1".into(), [theirs, String::new(), read]);
        Ok(())
    }
}

/// Measures cost, size and reading.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let recorders = Recorders::prepare(work_directory)?;
    let trees = trees(work_directory, &recorders)?;
    let compiler = compiler(work_directory, &recorders)?;
    let [log, raw] = trees.logs.sizes()?;
    let reading @ [read, read_raw] = trees.logs.reading(work_directory, work_directory.count(9, 3))?;
    let mut table = Table::new([
        "",
        "times the program's own time",
        "of heaptrack's added time",
        "a block, ns",
        "log, MB",
        "complete stacks",
        "read in, ratio to heaptrack's",
    ]);
    trees.rows(&mut table, Some(reading))?;
    compiler.rows(&mut table, None)?;
    let trees_reached = trees.costs.with_added.ratio <= WITH_STACKS
        && trees.costs.times.without.ratio <= WITHOUT_STACKS
        && log <= raw
        && read <= read_raw;
    let (verdict, compiler_reached) = judged(&compiler);
    let mut commands = Vec::new();
    for one in [&trees, &compiler] {
        commands.push(one.costs.command.clone());
        commands.extend(one.program.commands());
    }
    Ok(Section {
        bar: format!(
            "on a small program with many blocks, a block with stacks costs at most half of what it costs under heaptrack; without \
             stacks the program takes at most {WITHOUT_STACKS} times its own time; the log is at most as large as heaptrack's before \
             it is compressed, and it is read at least as fast. On a program with much code, a compiler, the time added is at most \
             {COMPILER_WITH_STACKS} of the time that heaptrack adds, without stacks at most {COMPILER_WITHOUT_STACKS} of it; \
             at least {} % of the stacks are complete.",
            COMPILER_COMPLETE * 100.0
        ),
        method: method(&trees, &compiler, lines(work_directory)),
        commands,
        table,
        reached: trees_reached && compiler_reached,
        sentence: format!(
            "a block costs {:.2} times what it costs under heaptrack, without stacks the program takes {:.2} times its own \
             time; the log has {:.2} times the size of heaptrack's, and is read in {:.2} times the time. {verdict}",
            trees.costs.with_added.ratio,
            trees.costs.times.without.ratio,
            log / raw,
            read / read_raw
        ),
    })
}

fn trees(work_directory: &WorkDirectory, recorders: &Recorders) -> anyhow::Result<Measured<'static>> {
    work_directory.build("bench/programs/trees.cc", "trees", &["-g", "-lstdc++"])?;
    let program = Program { name: "trees", command: TREES, rounds: work_directory.count(20, 6), warmup: 1 };
    Measured::measure(work_directory, recorders, program)
}

fn lines(work_directory: &WorkDirectory) -> usize {
    if work_directory.quick {
        QUICK_LINES
    } else {
        LINES
    }
}

fn compiler(work_directory: &WorkDirectory, recorders: &Recorders) -> anyhow::Result<Measured<'static>> {
    std::fs::write(work_directory.folder().join("unit.cc"), source::text(lines(work_directory)))?;
    work_directory.output(Command::new("g++").args(["-E", "unit.cc", "-o", "unit.ii"]))?;
    let found = work_directory.output(Command::new("g++").arg("-print-prog-name=cc1plus"))?;
    std::os::unix::fs::symlink(found.trim(), work_directory.folder().join("cc1plus"))?;
    let program =
        Program { name: "cc1plus", command: COMPILER, rounds: work_directory.count(6, 2), warmup: 0 };
    Measured::measure(work_directory, recorders, program)
}

/// What came out on the compiler, and whether it is what must be reached.
fn judged(compiler: &Measured) -> (String, bool) {
    let Costs { with_added: with, without_added: without, .. } = compiler.costs;
    let mut text = format!(
        "On the compiler the added time is {:.2} of heaptrack's, without stacks {:.2}",
        with.ratio, without.ratio
    );
    for (what, estimate, threshold) in
        [("with", with, COMPILER_WITH_STACKS), ("without", without, COMPILER_WITHOUT_STACKS)]
    {
        if estimate.straddles(threshold) {
            text +=
                &format!("; the interval {what} stacks does not say on which side of {threshold} it lies");
        }
    }
    text += &match compiler.logs.complete {
        Some(share) => format!("; {:.2} % of the stacks are complete.", share * 100.0),
        None => "; how many stacks are complete is not known.".to_owned(),
    };
    let reached = with.ratio <= COMPILER_WITH_STACKS
        && without.ratio <= COMPILER_WITHOUT_STACKS
        && compiler.logs.complete.is_some_and(|share| share >= COMPILER_COMPLETE);
    (text, reached)
}

fn method(trees: &Measured, compiler: &Measured, lines: usize) -> String {
    format!(
        "*trees*: a program of some 1.5 million blocks, by calls up to twenty deep, that works some 0.2 µs for each. \
         *cc1plus*: gcc's compiler of C++ with a preprocessed file, {lines} lines beside those of the standard headers, of classes, \
         templates, containers and random statements; it asks for {:.1} million blocks. \
         CPU time, by a campaign for each program, whose variants are the program alone and under each recorder; heaptrack's is preloaded and \
         writes to a file, so that its compressor and interpreter are not counted. Ratios are of means over the rounds; their 95 % intervals \
         are Fieller's, of values paired by round. Reading is `explain` with names, lines \
         and sites against `heaptrack_interpret < theirs > interpreted`, of the same run. Logs are as large as the disk blocks that they \
         take. Alone, trees takes {:.0} ns for each block, cc1plus {:.0} ns.",
        compiler.logs.blocks / 1e6,
        trees.alone(),
        compiler.alone()
    )
}
