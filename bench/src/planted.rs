//! A slowdown of known size: how often it is found, with the truth inside the interval.

use std::time::Duration;

use anyhow::Context;

use crate::background_load::Load;
use crate::calibration::Calibrated;
use crate::campaign::{self, Campaign};
use crate::hyperfine;
use crate::proportion::Proportion;
use crate::section::{Section, Table};
use crate::welch::{self, Ratio};
use crate::work_directory::WorkDirectory;

/// How often a slowdown must be found on an idle machine, and under load.
const IDLE: f64 = 0.9;
const LOADED: f64 = 0.95;
/// How long a run lasts. Campaigns under load have more rounds, of shorter runs, so that all of them take half an hour.
const LASTS: Duration = Duration::from_millis(40);
const LASTS_UNDER_LOAD: Duration = Duration::from_millis(15);
/// The memory of the program that is bound by it, in KiB.
const RING: &str = "4096";

/// One slowdown of one program.
#[derive(Debug, Clone, Copy)]
struct Plant {
    program: Program,
    per_mille: u32,
    rounds: u32,
    is_loaded: bool,
}

/// What is slowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    /// Bound by computing.
    Loop,
    /// Bound by memory.
    Chase,
}

impl Program {
    fn title(self) -> &'static str {
        match self {
            Program::Loop => "loop",
            Program::Chase => "pointer chase",
        }
    }

    fn calibrated(self) -> Calibrated {
        match self {
            Program::Loop => Calibrated { source: "bench/programs/loop.c", name: "loop", before: &[] },
            Program::Chase => Calibrated { source: "bench/programs/chase.c", name: "chase", before: &[RING] },
        }
    }
}

const PLANTS: [Plant; 4] = [
    Plant { program: Program::Loop, per_mille: 1010, rounds: 30, is_loaded: false },
    Plant { program: Program::Chase, per_mille: 1010, rounds: 30, is_loaded: false },
    Plant { program: Program::Loop, per_mille: 1030, rounds: 60, is_loaded: true },
    Plant { program: Program::Chase, per_mille: 1030, rounds: 60, is_loaded: true },
];

/// How runs are made and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The default: every order of a round is equally likely.
    Random,
    /// Everyone is equally often at each position.
    Balanced,
    /// The runs of a round share one CPU.
    Concurrent,
    /// By the peer.
    Hyperfine,
}

impl Way {
    fn title(self) -> &'static str {
        match self {
            Way::Random => "widthwise",
            Way::Balanced => "widthwise, `--order balanced`",
            Way::Concurrent => "widthwise, `--concurrent`",
            Way::Hyperfine => "hyperfine",
        }
    }

    /// The ways in which this slowdown is looked for, in turn. Runs under load are too short to share a CPU, and hyperfine
    /// looks at the program that is easier.
    fn of(plant: &Plant) -> Vec<Way> {
        let peer = (plant.program == Program::Loop).then_some(Way::Hyperfine);
        let concurrent = (plant.program == Program::Loop && !plant.is_loaded).then_some(Way::Concurrent);
        [Way::Random, Way::Balanced].into_iter().chain(concurrent).chain(peer).collect()
    }
}

/// What came of the campaigns on one slowdown.
#[derive(Debug, Default)]
struct Harvest {
    /// A difference was called, and with the right sign.
    signed: Proportion,
    /// The truth was inside the interval.
    inside: Proportion,
    /// Both.
    found: Proportion,
    half_widths: Vec<f64>,
}

impl Harvest {
    fn add(&mut self, signed: bool, interval: Option<Ratio>, truth: f64) {
        let inside = interval.is_some_and(|interval| interval.holds(truth));
        self.signed.add(signed);
        self.inside.add(inside);
        self.found.add(signed && inside);
        self.half_widths.extend(interval.map(Ratio::half_width));
    }

    fn median_half_width(&self) -> f64 {
        let mut all = self.half_widths.clone();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Plants each slowdown so many times, and looks for it in each way in turn, so that all meet the same machine.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let campaigns = work_directory.count(40, 1);
    let mut table =
        Table::new(["slowdown", "tool", "right sign", "truth inside", "both", "median half-width"]);
    let mut commands = Vec::new();
    let mut outcomes = Vec::new();
    let mut constants = Vec::new();
    for plant in PLANTS {
        let plant = Plant { rounds: work_directory.count(plant.rounds, 6), ..plant };
        let slowed = Slowed::build(work_directory, &plant)?;
        let ways = Way::of(&plant);
        let load = plant.is_loaded.then(|| Load::start(work_directory.seed));
        let constant = slowed.constant(work_directory)?;
        constants.push(format!("{:.1} % ({})", constant * 100.0, what(&plant)));
        let truths =
            Truths { cpu: slowed.truth(constant), wall: slowed.truth(slowed.wall_constant(work_directory)?) };
        let harvests = harvest(work_directory, &slowed, truths, &ways, campaigns)?;
        drop(load);
        for (way, harvest) in ways.iter().zip(&harvests) {
            table.row([
                what(&plant),
                way.title().to_owned(),
                harvest.signed.to_string(),
                harvest.inside.to_string(),
                harvest.found.to_string(),
                format!("{:.2} %", harvest.median_half_width() * 100.0),
            ]);
            if plant.program == Program::Loop {
                commands.push(slowed.command(*way));
            }
        }
        outcomes.push((plant, ways.into_iter().zip(harvests).collect::<Vec<_>>()));
    }
    let found = |outcome: &(Plant, Vec<(Way, Harvest)>)| outcome.1[0].1.found;
    let is_enough = |outcome: &&(Plant, Vec<(Way, Harvest)>)| {
        found(outcome).fraction() >= if outcome.0.is_loaded { LOADED } else { IDLE }
    };
    let missed: Vec<String> =
        outcomes.iter().filter(|outcome| !is_enough(outcome)).map(|outcome| what(&outcome.0)).collect();
    let reported: Vec<String> = outcomes
        .iter()
        .map(|(plant, ways)| {
            let others: Vec<String> = ways[1..]
                .iter()
                .map(|(way, harvest)| format!("{} by {}", harvest.found, way.title()))
                .collect();
            format!("{}: found in {} campaigns ({})", what(plant), ways[0].1.found, others.join(", "))
        })
        .collect();
    let missed = match missed.as_slice() {
        [] => String::new(),
        all => format!("; below the threshold: {}", all.join("; ")),
    };
    Ok(Section {
        bar: "a slowdown planted in a program is found, with the right sign and the truth inside the interval: 1 % in at most 30 \
              rounds on an idle machine in at least 9 of 10 campaigns, 3 % in at most 60 rounds under a background load in at \
              least 19 of 20; in a program that is bound by computing and in one that is bound by memory."
            .into(),
        method: format!(
            "The two builds of a program are the same instructions at the same addresses; one number in their data makes its work longer by exactly this share: a chain of dependent multiplications (loop), or of dependent loads in 4 MiB (pointer chase). What a run takes besides its work, {}, is not slowed; the truth allows for it. It is the CPU time of a build without work, measured by a campaign of its own under the same load; the truth for hyperfine allows for the wall time that hyperfine reads of that build. \
             The work lasts about {} ms, and {} ms under load. {} \
             All ways look for a slowdown in turn, campaign by campaign. Widthwise has found it if its verdict on CPU time is `higher` and the interval includes the truth; `--order balanced` is the other order of a round; hyperfine, which measures wall time, has found it if Welch's interval of as many exported times lies above 1 and includes it. \
             The cache below the loads of the pointer chase may be shared with other virtual machines: what these do is then in its time, and no order or estimator removes it ([measuring.md](measuring.md#where-the-noise-comes-from-and-which-order-and-estimator-help)).",
            constants.join(", "),
            LASTS.as_millis(),
            LASTS_UNDER_LOAD.as_millis(),
            Load::ABOUT,
        ),
        commands,
        table,
        reached: outcomes.iter().all(|outcome| is_enough(&outcome)),
        sentence: format!("{}{missed}.", reported.join("; ")),
    })
}

/// What was planted, as a ratio of the metric that is compared.
#[derive(Debug, Clone, Copy)]
struct Truths {
    /// Of CPU time.
    cpu: f64,
    /// Of the wall time that the peer reads.
    wall: f64,
}

/// The build that does no work.
fn start_of(program: &str) -> String {
    format!("{program}-start")
}

fn what(plant: &Plant) -> String {
    let percent = f64::from(plant.per_mille - 1000) / 10.0;
    let machine = if plant.is_loaded { "under load" } else { "idle" };
    format!("{}, {percent} %, {} rounds, {machine}", plant.program.title(), plant.rounds)
}

/// A program, built with and without its slowdown.
#[derive(Debug)]
struct Slowed {
    plant: Plant,
    name: String,
    program: Calibrated,
    /// The arguments of a run.
    words: String,
}

impl Slowed {
    fn build(work_directory: &WorkDirectory, plant: &Plant) -> anyhow::Result<Slowed> {
        let program = plant.program.calibrated();
        let name = format!("{}-slowed-{}", program.name, plant.per_mille);
        program.build(work_directory, program.name, 1000)?;
        program.build(work_directory, &name, plant.per_mille)?;
        let lasts = if plant.is_loaded { LASTS_UNDER_LOAD } else { LASTS };
        let lasts = if work_directory.quick { lasts / 4 } else { lasts };
        let steps = program.steps(work_directory, lasts)?;
        program.build(work_directory, &start_of(program.name), 0)?;
        Ok(Slowed { plant: *plant, name, program, words: program.words(steps) })
    }

    /// The share of a run's CPU time that is not slowed, here and now: that of a build without any work.
    fn constant(&self, work_directory: &WorkDirectory) -> anyhow::Result<f64> {
        let start = start_of(self.program.name);
        let binaries = [format!("plain=./{}", self.program.name), format!("start=./{start}")];
        let rounds = work_directory.count(100, 6);
        let run = format!("{{binary}} {}", self.words);
        let words =
            campaign::arguments(&binaries.each_ref().map(String::as_str), rounds, &["--metric", "cpu"], &run);
        let campaign = Campaign::run(work_directory, &words)?;
        Ok(campaign.median("start", "cpu")? / campaign.median("plain", "cpu")?)
    }

    /// The same share of the wall time that the peer reads.
    fn wall_constant(&self, work_directory: &WorkDirectory) -> anyhow::Result<f64> {
        let commands = [self.program.name.to_owned(), start_of(self.program.name)]
            .map(|name| format!("./{name} {}", self.words));
        let words =
            hyperfine::arguments(work_directory.count(100, 6), &commands.each_ref().map(String::as_str));
        let mut medians = hyperfine::times(work_directory, &words)?.into_iter().map(|mut times| {
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
        });
        let plain = medians.next().context("hyperfine timed nothing")?;
        Ok(medians.next().context("hyperfine timed one of two commands")? / plain)
    }

    fn truth(&self, constant: f64) -> f64 {
        1.0 + f64::from(self.plant.per_mille - 1000) / 1000.0 * (1.0 - constant)
    }

    fn ours(&self, way: Way) -> Vec<String> {
        let binaries = [format!("plain=./{}", self.program.name), format!("slowed=./{}", self.name)];
        let more: &[&str] = match way {
            Way::Balanced => &["--order", "balanced"],
            Way::Concurrent => &["--concurrent"],
            Way::Random | Way::Hyperfine => &[],
        };
        let run = format!("{{binary}} {}", self.words);
        campaign::arguments(&binaries.each_ref().map(String::as_str), self.plant.rounds, more, &run)
    }

    fn theirs(&self) -> Vec<String> {
        let commands = [self.program.name, &self.name].map(|name| format!("./{name} {}", self.words));
        hyperfine::arguments(self.plant.rounds, &commands.each_ref().map(String::as_str))
    }

    fn command(&self, way: Way) -> String {
        match way {
            Way::Hyperfine => hyperfine::command(&self.theirs()),
            _ => campaign::command(&self.ours(way)),
        }
    }

    /// One campaign: whether a slowdown was seen, and the interval.
    fn look(&self, work_directory: &WorkDirectory, way: Way) -> anyhow::Result<(bool, Option<Ratio>)> {
        if way == Way::Hyperfine {
            let times = hyperfine::times(work_directory, &self.theirs())?;
            let [a, b] = &times[..] else { return Ok((false, None)) };
            let interval = welch::ratio(a, b);
            return Ok((interval.low > 1.0, Some(interval)));
        }
        let campaign = Campaign::run(work_directory, &self.ours(way))?;
        let verdict = campaign.verdict("slowed", "cpu")?;
        Ok((verdict.word == "higher", verdict.interval))
    }
}

/// Campaigns in each way in turn.
fn harvest(
    work_directory: &WorkDirectory,
    slowed: &Slowed,
    truths: Truths,
    ways: &[Way],
    campaigns: u32,
) -> anyhow::Result<Vec<Harvest>> {
    let mut harvests: Vec<Harvest> = ways.iter().map(|_| Harvest::default()).collect();
    for number in 1..=campaigns {
        for (way, harvest) in ways.iter().zip(&mut harvests) {
            let (signed, interval) = slowed.look(work_directory, *way)?;
            let truth = if *way == Way::Hyperfine { truths.wall } else { truths.cpu };
            harvest.add(signed, interval, truth);
        }
        let all: Vec<String> =
            ways.iter().zip(&harvests).map(|(way, own)| format!("{} {}", way.title(), own.found)).collect();
        eprintln!("  {}: {number}: {}", what(&slowed.plant), all.join(", "));
    }
    Ok(harvests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slowdown_is_found_only_with_the_right_sign_and_the_truth_inside() {
        let mut harvest = Harvest::default();
        harvest.add(true, Some(Ratio { low: 1.005, high: 1.015 }), 1.01);
        harvest.add(true, Some(Ratio { low: 1.012, high: 1.015 }), 1.01);
        harvest.add(false, Some(Ratio { low: 0.99, high: 1.03 }), 1.01);
        harvest.add(false, None, 1.01);
        let Harvest { signed, inside, found, .. } = &harvest;
        assert_eq!((signed.count, inside.count, found.count, found.of), (2, 2, 1, 4));
        assert!((harvest.median_half_width() - 0.005).abs() < 1e-9);
    }
}
