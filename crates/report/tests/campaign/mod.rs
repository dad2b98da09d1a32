//! An invented campaign that looks like a real one: drift, a temporary neighbour, a variant that cannot
//! start, one with a different output, warm-up rounds and an interrupted last round.

// Each test file and the example use a part of this.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use widthwise_anatomy::heap::Column;
use widthwise_anatomy::import::folded;
use widthwise_experiment::memory::{
    Amounts, Class, Mark, Part, Process, Reading as MemoryReading, Series, StatmSample, Totals,
};
use widthwise_experiment::metric;
use widthwise_experiment::outcome::{Ending, Noise, Reading, Round, RoundKind, Run, Source};
use widthwise_experiment::units::Unit;
use widthwise_experiment::VariantStatus;
use widthwise_experiment::{spec, Experiment, Facts, Metric};
use widthwise_report::heap::{Heap, Recorded, RecordingSums, Side};
use widthwise_report::{BuildNote, Campaign, Comparison, MemoryRun, ProcessNote};
use widthwise_verdict::distribution::quantile;
use widthwise_verdict::{Evidence, Judgement, Typical, Verdict, Word};

pub const BASELINE: &str = "x86-64/-O2";
pub const UNSUPPORTED: &str = "x32/-O2";
pub const SLOW: &str = "i386/-O2";
pub const DIFFERENT: &str = "x86-64/fast-math";
pub const UNSUPPORTED_REASON: &str =
    "this kernel has no x32 (execve: Exec format error); `widthwise doctor` names the fix";
pub const DIFFERENT_REASON: &str = "standard output differs in 2 of 1 204 lines";

/// The owner of the data that a [`Comparison`] borrows.
pub struct Laid {
    pub experiment: Experiment,
    pub rounds: Vec<Round>,
    pub runs: Vec<Run>,
    pub memory: Vec<MemoryRun>,
    pub heap: Vec<Recorded>,
    pub statuses: BTreeMap<String, VariantStatus>,
    pub judgement: Judgement,
    pub machine: serde_json::Value,
    pub differences: BTreeMap<String, String>,
    pub warnings: Vec<String>,
    pub version: String,
    pub stopped: String,
    pub command: Vec<String>,
}

impl Laid {
    pub fn comparison(&self) -> Comparison<'_> {
        let flags = |name: &str| self.experiment.variants.iter().find(|v| v.name == name).map(|v| &v.flags);
        let built = self.experiment.variants.iter().map(|variant| BuildNote {
            variant: variant.name.clone(),
            compiler: "gcc (Debian 12.2.0-14+deb12u1) 12.2.0".to_owned(),
            cflags: flags(&variant.name).map_or(String::new(), |flags| flags.cflags.clone()),
            binary_bytes: Some(1_204_664),
            digest: "9c1185a5c5e9fc54612808977ee8f548b2258d31".to_owned(),
            log: format!(".widthwise/2026-11-21-sqlite3/build/{}/log", variant.name.replace('/', "-")),
            seconds: Some(21.4),
        });
        let campaign = Campaign {
            experiment: &self.experiment,
            version: self.version.clone(),
            folder: ".widthwise/2026-11-21-sqlite3".to_owned(),
            created: "2026-11-21T19:04:11Z".to_owned(),
            spec: SPEC,
            command: self.command.clone(),
            widthwise: "0.1.0",
            machine: &self.machine,
            machine_lines: machine_lines(),
            rounds: &self.rounds,
            statuses: &self.statuses,
            builds: built.collect(),
            stopped: self.stopped.clone(),
            elapsed: Duration::from_secs(190),
            warnings: self.warnings.clone(),
        };
        Comparison {
            campaign,
            runs: &self.runs,
            memory: &self.memory,
            heap: &self.heap,
            explanations: &[],
            inner_loops: &[],
            judgement: &self.judgement,
            processes: vec![
                process(BASELINE, "speedtest1", 1, 13_900_000, 0.97),
                process(BASELINE, "sh", 2, 1_800_000, 0.03),
                process(SLOW, "speedtest1", 1, 11_800_000, 0.98),
                process(SLOW, "sh", 2, 1_700_000, 0.02),
            ],
            runtime_calls: Vec::new(),
            differences: self.differences.clone(),
        }
    }

    /// Judges as a campaign does, with the intervals of `verdict`: slow with many rounds.
    pub fn judge_in_earnest(&mut self) {
        self.judgement = widthwise_verdict::judge(&Evidence {
            experiment: &self.experiment,
            rounds: &self.rounds,
            runs: &self.runs,
            statuses: &self.statuses,
            rss_lag: 0,
        });
    }

    /// Judges again after samples were changed.
    pub fn judge(&mut self) {
        self.judgement = judged(&self.experiment, &self.rounds, &self.runs, &self.statuses);
    }

    /// Renames a variant everywhere.
    pub fn rename(&mut self, from: &str, to: &str) {
        for variant in self.experiment.variants.iter_mut().filter(|variant| variant.name == from) {
            variant.name = to.to_owned();
        }
        for run in self.runs.iter_mut().filter(|run| run.variant == from) {
            run.variant = to.to_owned();
        }
        if let Some(status) = self.statuses.remove(from) {
            self.statuses.insert(to.to_owned(), status);
        }
        if let Some(difference) = self.differences.remove(from) {
            self.differences.insert(to.to_owned(), difference);
        }
        self.judge();
    }
}

fn process(variant: &str, comm: &str, count: u64, max_rss: u64, cpu_share: f64) -> ProcessNote {
    ProcessNote { variant: variant.to_owned(), comm: comm.to_owned(), count, max_rss, cpu_share }
}

pub const SPEC: &str = r#"[program]
name = "sqlite3"
source = "debian:sqlite3"
build = "$CC $CFLAGS -o {build}/speedtest1 test/speedtest1.c sqlite3.c -lm"
run = "{build}/speedtest1 --size 20 :memory:"

[[variant]]
abi = "x86-64"
flags = "-O2"

[[variant]]
abi = "x32"
flags = "-O2"

[[variant]]
abi = "i386"
flags = "-O2"

[[variant]]
abi = "x86-64"
flags = "fast-math"

[measure]
precision = "1%"
max_time = "5m"
warmup = 2
seed = 0x5eed000000000001
"#;

fn machine_lines() -> Vec<(String, String)> {
    [
        ("processor", "AMD EPYC 9R14, 2 cores, no SMT, 32 MB L3 shared"),
        ("kernel", "Linux 6.1.0-26-amd64, x86_64"),
        ("memory", "7.7 GB, THP madvise"),
        ("frequency", "governor not visible (virtual machine)"),
        ("isolation", "ASLR on; runs pinned to CPU 1"),
        ("counters", "none (no PMU in this virtual machine)"),
        ("compiler", "gcc 12.2.0 (Debian 12.2.0-14+deb12u1)"),
        ("C library", "glibc 2.36-9+deb12u14"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

/// A small deterministic pseudo-random generator (Steele, Lea & Flood 2014).
struct Mix(u64);

impl Mix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal: the sum of twelve uniforms.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// The memory of a run: grows, and falls to a half; the names may be hostile.
pub fn series(scale: u64, library: &str, phase: &str) -> Series {
    let amounts = |resident| Amounts {
        resident,
        pss: resident / 2,
        anonymous: resident,
        virtual_bytes: 2 * resident,
        swap: 0,
    };
    let reading = |at_ns: u64, full: bool, heap: u64| {
        let (heap, library) = (amounts(heap * scale), amounts(1_300_000));
        let tree = Totals { amounts: heap.plus(library), page_tables: 40960, ..Totals::default() };
        let processes = if full { vec![(0, tree)] } else { Vec::new() };
        MemoryReading { at_ns, full, tree, processes, parts: vec![(0, heap), (1, library)] }
    };
    let statm_sample = |at_ns: u64, heap: u64| {
        let resident = heap * scale + 1_300_000;
        StatmSample { at_ns, process: 0, resident, anonymous: heap * scale, virtual_bytes: 2 * resident }
    };
    Series {
        wall_ns: 300_000_000,
        spent_ns: 900_000,
        statm_samples_made: 60,
        pagemap_scans_made: 2,
        readings_made: 2,
        processes: vec![Process {
            pid: 9,
            parent: 8,
            name: library.to_owned(),
            began_ns: 0,
            ended_ns: 300_000_000,
        }],
        parts: vec![
            Part { class: Class::Heap, name: String::new() },
            Part { class: Class::Library, name: library.to_owned() },
        ],
        statm_samples: vec![
            statm_sample(5_000_000, 1000),
            statm_sample(90_000_000, 4000),
            statm_sample(250_000_000, 2000),
        ],
        readings: vec![
            reading(20_000_000, true, 1000),
            reading(100_000_000, false, 4000),
            reading(200_000_000, true, 2000),
        ],
        marks: vec![
            Mark { at_ns: 1_000_000, text: "load".to_owned() },
            Mark { at_ns: 80_000_000, text: phase.to_owned() },
        ],
    }
}

impl Laid {
    /// Adds heap recordings: 3 kB for the baseline, 2 kB for the others, and none for the variant that cannot
    /// start.
    pub fn record_heaps(&mut self, function: &str) {
        for variant in &self.experiment.variants {
            let bytes = if variant.name == BASELINE { 30_000 } else { 20_000 };
            let text = format!("main (m.cpp:4);{function} (m.cpp:8) {bytes}\nmain (m.cpp:6) 100\n");
            let profile = folded::read(text.as_bytes(), Column::PeakBytes).expect("folded stacks");
            let side = heap_side(&variant.name, bytes + 100, format!("recorded: {function}"));
            let heap = Heap { program: "m".to_owned(), side, profile };
            let heap = if variant.name == UNSUPPORTED {
                Err(format!("it left no log: {function}"))
            } else {
                Ok(heap)
            };
            self.heap.push(Recorded { variant: variant.name.clone(), heap });
        }
    }

    /// Adds rounds of the memory series; the slow variant needs six tenths of the baseline's heap. `missed`
    /// is how much higher than the readings the tree's peak may have been.
    pub fn read_memory(&mut self, rounds: u32, missed: f64, library: &str, phase: &str) {
        self.experiment.memory = rounds;
        self.experiment.metrics.extend(metric::series());
        for _ in 0..rounds {
            self.read_memory_once(missed, library, phase);
        }
        self.judge();
    }

    fn read_memory_once(&mut self, missed: f64, library: &str, phase: &str) {
        let number = self.rounds.last().map_or(0, |round| round.number + 1);
        self.rounds.push(Round {
            number,
            kind: RoundKind::Memory,
            cpu: None,
            noise: Noise::default(),
            layout: None,
        });
        let names = [self.experiment.baseline.clone(), SLOW.to_owned(), self.experiment.control()];
        for (position, (variant, scale)) in (0..).zip(names.into_iter().zip([10_000, 6_000, 10_000])) {
            let series = series(scale, library, phase);
            let mut sample = series.sample(&self.experiment.metrics);
            if let Some(peak) = sample.get_mut("tree_peak").filter(|_| missed > 1.0) {
                peak.upper = Some(missed * peak.value);
            }
            self.runs.push(Run {
                variant: variant.clone(),
                round: number,
                position,
                began_ns: 0,
                ending: Ending::Done,
                sample,
                output_digest: None,
            });
            self.memory.push(MemoryRun { round: number, variant, series });
        }
    }
}

/// A heap that was recorded three times, with the same peak each time.
pub fn heap_side(name: &str, peak_bytes: u64, remark: String) -> Side {
    let once = RecordingSums { peak_bytes, blocks: 2, bytes: peak_bytes, ..RecordingSums::default() };
    Side {
        name: name.to_owned(),
        processes: 1,
        peak_bytes,
        largest_peak_bytes: peak_bytes,
        peak_blocks: 2,
        blocks: 2,
        bytes: peak_bytes,
        recordings: vec![once; 3],
        remarks: vec![remark],
        ..Side::default()
    }
}

/// The experiment of the spec, parsed like a user's.
pub fn experiment() -> Experiment {
    let request = spec::parse(SPEC, "widthwise.toml").expect("a spec");
    request.resolve(&Facts::default()).expect("an experiment")
}

/// A campaign with that many timed rounds, two warm-up rounds before and an interrupted one after them.
pub fn laid(timed: u32) -> Laid {
    let experiment = experiment();
    let mut mix = Mix(7);
    let names = [BASELINE, SLOW, DIFFERENT, &experiment.control()].map(str::to_owned);
    let (mut rounds, mut runs, mut clock) = (Vec::new(), Vec::new(), 0.0);
    for number in 0..timed + 3 {
        let kind = match number {
            0 | 1 => RoundKind::Warmup,
            n if n == timed + 2 => RoundKind::Interrupted,
            _ => RoundKind::Timed,
        };
        // The neighbour: five rounds in a row, two fifths of the way through.
        let burst = (timed * 2 / 5..timed * 2 / 5 + 5).contains(&number);
        let noise = Noise {
            steal: if number % 13 == 5 { 0.015 } else { 0.003 },
            pressure: Some(if burst { 0.21 } else { 0.004 }),
            others: if burst { 0.31 } else { 0.001 },
            others_ns: None,
            throttled: 0,
        };
        rounds.push(Round { number, kind, cpu: Some(1), noise, layout: None });
        let mut order = names.to_vec();
        for i in (1..order.len()).rev() {
            order.swap(i, (mix.next() % (i as u64 + 1)) as usize);
        }
        let present = if kind == RoundKind::Interrupted { 2 } else { order.len() };
        for (position, name) in order.into_iter().take(present).enumerate() {
            let drift = 1.0 + 0.006 * (f64::from(number) / f64::from(timed + 3) * 5.0).sin();
            let cold = if kind == RoundKind::Warmup { 1.04 } else { 1.0 };
            let load = if burst { 1.02 + 0.03 * mix.uniform() } else { 1.0 };
            let run = one_run(&mut mix, &name, number, position as u32, drift * cold * load, clock);
            clock += run.sample["wall"].value + 30e6;
            runs.push(run);
        }
    }
    let statuses = BTreeMap::from([
        (BASELINE.to_owned(), VariantStatus::Ready),
        (UNSUPPORTED.to_owned(), VariantStatus::Unsupported(UNSUPPORTED_REASON.to_owned())),
        (SLOW.to_owned(), VariantStatus::Ready),
        (DIFFERENT.to_owned(), VariantStatus::OutputMismatch(DIFFERENT_REASON.to_owned())),
    ]);
    let judgement = judged(&experiment, &rounds, &runs, &statuses);
    Laid {
        experiment,
        rounds,
        runs,
        memory: Vec::new(),
        heap: Vec::new(),
        statuses,
        judgement,
        machine: serde_json::json!({
            "kernel": "6.1.0-26-amd64",
            "cpus": [{"cpu": 0, "core": 0}, {"cpu": 1, "core": 1}],
            "thp": "madvise",
        }),
        differences: BTreeMap::from([(DIFFERENT.to_owned(), DIFF.to_owned())]),
        warnings: vec!["transparent huge pages are set to madvise: peak memory can depend on them".to_owned()],
        version: "3.40.1".to_owned(),
        stopped: "every interval is within ±1 %".to_owned(),
        command: ["widthwise", "compare", "experiments/sqlite/widthwise.toml", "--precision", "1%"]
            .map(str::to_owned)
            .to_vec(),
    }
}

const DIFF: &str = "--- x86-64/-O2\n+++ x86-64/fast-math\n@@ -1187,3 +1187,3 @@\n  sum of column b\n\
                    -  avg 40127.338211\n+  avg 40127.338209\n  rows 50000\n@@ -1201,2 +1201,2 @@\n\
                    -  stddev 0.57735026919\n+  stddev 0.57735026918\n  done\n";

fn one_run(mix: &mut Mix, name: &str, round: u32, position: u32, level: f64, clock: f64) -> Run {
    let (time, memory) = match name {
        SLOW => (1.382, 0.848),
        DIFFERENT => (0.985, 1.001),
        _ => (1.0, 1.0),
    };
    let tail = if mix.uniform() > 0.95 { 1.0 + 0.05 * mix.uniform() } else { 1.0 };
    let first = if position == 0 { 1.003 } else { 1.0 };
    // Two layouts of the heap, one a little slower: bimodal, as address randomisation makes it.
    let layout = if name == SLOW && mix.uniform() > 0.7 { 1.018 } else { 1.0 };
    let cpu = 284e6 * time * level * tail * first * layout * (1.0 + 0.004 * mix.normal());
    let system = (cpu * 0.08 / 4e6).round() * 4e6;
    let wall = cpu * 1.01 + 400e3 * mix.uniform();
    let resident = ((13.9e6 * memory + 6000.0 * mix.normal()) / 4096.0).round() * 4096.0;
    let faults = (resident / 4096.0 - 180.0).round();
    let whole = Reading::whole;
    let sample = BTreeMap::from([
        ("cpu", whole(cpu.round(), Source::Rusage)),
        ("wall", whole(wall.round(), Source::Clock)),
        ("user", whole((cpu - system).round(), Source::Rusage)),
        ("system", whole(system, Source::Rusage)),
        ("max_rss", whole(resident, Source::ExitStop)),
        ("peak_virtual", whole((resident * 1.31 / 4096.0).round() * 4096.0, Source::ExitStop)),
        ("page_faults", whole(faults, Source::Rusage)),
        ("minor_faults", whole(faults, Source::Rusage)),
        ("major_faults", whole(0.0, Source::Rusage)),
        ("voluntary_switches", whole((1.0 + mix.uniform() * 2.0).round(), Source::Rusage)),
        ("involuntary_switches", whole((mix.uniform() * 9.0 * level).round(), Source::Rusage)),
    ]);
    let answer = if name == DIFFERENT { "b2:77aa" } else { "b2:51fe" };
    Run {
        variant: name.to_owned(),
        round,
        position,
        began_ns: clock as u64,
        ending: Ending::Done,
        sample,
        output_digest: Some(answer.to_owned()),
    }
}

/// Verdicts by a plain normal interval on the paired log-ratios: good enough for tests.
fn judged(
    experiment: &Experiment,
    rounds: &[Round],
    runs: &[Run],
    statuses: &BTreeMap<String, VariantStatus>,
) -> Judgement {
    let mut names: Vec<String> = experiment.variants.iter().map(|variant| variant.name.clone()).collect();
    names.push(experiment.control());
    let (mut verdicts, mut typical) = (Vec::new(), Vec::new());
    for metric in &experiment.metrics {
        let of = |name: &str| values(rounds, runs, name, metric);
        let base = of(&experiment.baseline);
        let floor = interval(&base, &of(&experiment.control())).map(|(_, low, high)| {
            let width = (low - 1.0).abs().max((high - 1.0).abs());
            width.max(if metric.unit == Unit::Bytes { 0.0004 } else { 0.0 })
        });
        for name in &names {
            typical.extend(typical_of(name, metric, &of(name)));
            if *name != experiment.baseline {
                let found = interval(&base, &of(name));
                verdicts.push(verdict(experiment, statuses, name, metric, floor, found, base.len()));
            }
        }
    }
    Judgement { comparisons: verdicts.len(), verdicts, typical, runtime: Default::default(), rss_lag: None }
}

fn values(rounds: &[Round], runs: &[Run], name: &str, metric: Metric) -> BTreeMap<u32, f64> {
    let timed: Vec<u32> =
        rounds.iter().filter(|round| round.kind == RoundKind::Timed).map(|round| round.number).collect();
    runs.iter()
        .filter(|run| run.variant == name && timed.contains(&run.round))
        .filter_map(|run| Some((run.round, run.sample.get(metric.name)?.value)))
        .collect()
}

fn interval(base: &BTreeMap<u32, f64>, other: &BTreeMap<u32, f64>) -> Option<(f64, f64, f64)> {
    let logs: Vec<f64> = base
        .iter()
        .filter_map(|(round, base)| Some((other.get(round)? / base).ln()))
        .filter(|log| log.is_finite())
        .collect();
    if logs.len() < 2 {
        return None;
    }
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let spread = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
    let half = 1.96 * spread / count.sqrt();
    Some((mean.exp(), (mean - half).exp(), (mean + half).exp()))
}

fn typical_of(name: &str, metric: Metric, values: &BTreeMap<u32, f64>) -> Option<Typical> {
    let mut sorted: Vec<f64> = values.values().copied().collect();
    sorted.sort_by(f64::total_cmp);
    Some(Typical {
        upper: None,
        variant: name.to_owned(),
        metric,
        value: quantile(&sorted, 0.5)?,
        median: quantile(&sorted, 0.5)?,
        low_quartile: quantile(&sorted, 0.25)?,
        high_quartile: quantile(&sorted, 0.75)?,
        min: *sorted.first()?,
        max: *sorted.last()?,
        runs: sorted.len() as u32,
    })
}

fn verdict(
    experiment: &Experiment,
    statuses: &BTreeMap<String, VariantStatus>,
    name: &str,
    metric: Metric,
    floor: Option<f64>,
    found: Option<(f64, f64, f64)>,
    pairs: usize,
) -> Verdict {
    let (word, reason) = match (statuses.get(name), found) {
        (Some(VariantStatus::Unsupported(reason)), _) => (Word::NoData, Some(reason.clone())),
        (Some(VariantStatus::OutputMismatch(reason)), _) => {
            (Word::Withheld, Some(format!("its output differs: {reason}")))
        }
        (_, None) => (Word::NoData, Some("fewer than two rounds with a number above zero".to_owned())),
        (_, Some((ratio, low, high))) => {
            let floor = floor.unwrap_or(0.0);
            let word = if high < 1.0 && ratio < 1.0 - floor {
                Word::Lower
            } else if low > 1.0 && ratio > 1.0 + floor {
                Word::Higher
            } else {
                Word::NoDifference
            };
            (word, None)
        }
    };
    Verdict {
        metric,
        variant: name.to_owned(),
        baseline: experiment.baseline.clone(),
        ratio: found.map(|(ratio, _, _)| ratio),
        difference: None,
        baseline_mean: None,
        low: found.map(|(_, low, _)| low),
        high: found.map(|(_, _, high)| high),
        confidence: experiment.judging.confidence,
        equal_within: experiment.judging.equal_within,
        floor,
        floor_of_decrease: None,
        difference_floor: None,
        pairs: pairs as u32,
        p: found.map(|_| 0.0004),
        adjusted_p: found.map(|_| 0.004),
        coverage: 1.0,
        source: found.map(|_| Source::Rusage),
        unequal: 0,
        word,
        reason,
        rounds_to_decide: None,
        detectable: None,
        spread: None,
    }
}

/// A campaign whose names, reasons, warnings and output try to be markup, control sequences and table cells.
pub fn hostile() -> Laid {
    let mut laid = laid(12);
    laid.rename(SLOW, HOSTILE_NAME);
    laid.rename(DIFFERENT, "a|b\u{1b}[2J`**bold**`<img src=x onerror=alert(2)>\u{202e}txt");
    laid.experiment.program.name = "prog<script>alert(3)</script>\u{1b}]0;title\u{7}".to_owned();
    laid.experiment.program.run = "./run '<b>' \u{1b}[31m | `x`".to_owned();
    laid.version = "1.0\n<h1>x</h1>".to_owned();
    laid.stopped = "stopped <i>\u{1b}[0m".to_owned();
    laid.command.push("--x=<svg onload=alert(4)>\u{1b}[1m".to_owned());
    laid.statuses.insert(UNSUPPORTED.to_owned(), VariantStatus::Unsupported(HOSTILE_REASON.to_owned()));
    laid.differences.insert(
        "a|b\u{1b}[2J`**bold**`<img src=x onerror=alert(2)>\u{202e}txt".to_owned(),
        "-a\n+\u{1b}[31m</pre><script>alert(5)</script>\n+```\n+&lt;\n".to_owned(),
    );
    laid.warnings.push("a warning <b>\u{1b}[5m | pipe".to_owned());
    for run in laid.runs.iter_mut().filter(|run| run.round == 4 && run.position == 0) {
        run.ending = Ending::SpawnFailed { reason: "<u>\u{1b}[7m".to_owned() };
        run.sample.clear();
    }
    laid.judge();
    laid
}

pub const HOSTILE_NAME: &str = "<script>alert(1)</script>";
pub const HOSTILE_REASON: &str = "no x32 \u{1b}[31m<script>alert(6)</script> | \u{9b}2J";

/// The path of a file in the repository.
pub fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
