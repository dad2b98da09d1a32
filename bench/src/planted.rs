//! A slowdown of known size: how often it is found, with the truth inside the interval.

use std::time::Duration;

use crate::calibration;
use crate::campaign::{self, Campaign};
use crate::hyperfine;
use crate::load::Load;
use crate::section::{Section, Table};
use crate::share::Share;
use crate::welch::{self, Ratio};
use crate::work_directory::WorkDirectory;

/// How often it must be found: 9 times of 10.
const OFTEN: f64 = 0.9;
/// How long the loop runs.
const LASTS: Duration = Duration::from_millis(100);

/// One slowdown.
#[derive(Debug, Clone, Copy)]
struct Plant {
    name: &'static str,
    per_mille: u32,
    rounds: u32,
    loaded: bool,
    together: bool,
}

const PLANTS: [Plant; 3] = [
    Plant { name: "slowed-1-percent", per_mille: 1010, rounds: 30, loaded: false, together: false },
    Plant { name: "slowed-1-percent", per_mille: 1010, rounds: 30, loaded: false, together: true },
    Plant { name: "slowed-3-percent", per_mille: 1030, rounds: 60, loaded: true, together: false },
];

/// What came of the campaigns on one slowdown.
#[derive(Debug, Default)]
struct Harvest {
    /// A difference was called, and with the right sign.
    signed: Share,
    /// The truth was inside the interval.
    inside: Share,
    /// Both.
    found: Share,
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

/// Plants each slowdown so many times, and has Widthwise and its peer look for it in turn.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let campaigns = work_directory.count(20, 1);
    calibration::build(work_directory, "loop", 1000)?;
    let lasts = if work_directory.quick { LASTS / 10 } else { LASTS };
    let iterations = calibration::iterations(work_directory, lasts)?;
    let start_up = calibration::start_up(work_directory, iterations)?;

    let mut table =
        Table::new(["slowdown", "tool", "right sign", "truth inside", "both", "median half-width"]);
    let mut commands = Vec::new();
    let mut outcomes = Vec::new();
    for plant in PLANTS {
        let plant = Plant { rounds: work_directory.count(plant.rounds, 6), ..plant };
        calibration::build(work_directory, plant.name, plant.per_mille)?;
        let ours = ours(&plant, iterations);
        let theirs = theirs(&plant, iterations);
        let (own, peer) = harvest(work_directory, &plant, campaigns, &ours, &theirs)?;
        let what = what(&plant);
        for (who, harvest) in
            std::iter::once(("widthwise", &own)).chain(peer.iter().map(|peer| ("hyperfine", peer)))
        {
            table.row([
                what.clone(),
                who.to_owned(),
                harvest.signed.to_string(),
                harvest.inside.to_string(),
                harvest.found.to_string(),
                format!("{:.2} %", harvest.median_half_width() * 100.0),
            ]);
        }
        commands.push(campaign::command(&ours));
        commands.extend(peer.iter().map(|_| hyperfine::command(&theirs)));
        outcomes.push((plant, what, own.found, peer.map(|peer| peer.found)));
    }
    // One way of running is enough to find a slowdown; the sentence names the ways that do not.
    let is_found =
        |name: &str| outcomes.iter().any(|(plant, _, own, _)| plant.name == name && own.fraction() >= OFTEN);
    let missed: Vec<&str> = outcomes
        .iter()
        .filter(|(_, _, own, _)| own.fraction() < OFTEN)
        .map(|(_, what, _, _)| what.as_str())
        .collect();
    let missed = match missed.as_slice() {
        [] => String::new(),
        all => format!("; below the threshold: {}", all.join("; ")),
    };
    let told: Vec<String> = outcomes
        .iter()
        .map(|(_, what, own, peer)| {
            let peer = peer.map_or(String::new(), |peer| format!(", by hyperfine in {peer}"));
            format!("{what} was found by Widthwise in {own} campaigns{peer}")
        })
        .collect();
    Ok(Section {
        bar: "a slowdown planted in a loop of about 0.1 s is found, with the right sign and the truth inside the interval, in at \
              least 9 of 10 campaigns: 1 % in at most 30 rounds on an idle machine, 3 % in at most 60 rounds under a background \
              load."
            .into(),
        method: format!(
            "The two programs are the same instructions at the same addresses; one number in their data makes the chain of dependent multiplications longer by exactly this share. The constant part, start and end, is {:.2} % \
             of a run. {} The speed of an idle machine may change, too. The slowdown of 1 % is therefore measured twice, in successive runs and in concurrent runs (`--concurrent`); one of the two must find it. \
             Widthwise has found it if its verdict on CPU time is `higher` and the interval includes the truth; hyperfine, which measures wall time, if Welch's interval of as many exported times lies above 1 and includes it.",
            start_up * 100.0,
            Load::ABOUT,
        ),
        commands,
        table,
        reached: PLANTS.iter().all(|plant| is_found(plant.name)),
        sentence: format!("{}{missed}.", told.join("; ")),
    })
}

fn what(plant: &Plant) -> String {
    let percent = f64::from(plant.per_mille - 1000) / 10.0;
    let machine = if plant.loaded { "under load" } else { "idle" };
    let way = if plant.together { ", concurrent" } else { "" };
    format!("{percent} %, {} rounds, {machine}{way}", plant.rounds)
}

fn ours(plant: &Plant, iterations: u64) -> Vec<String> {
    let slowed = format!("slowed=./{}", plant.name);
    let more: &[&str] = if plant.together { &["--concurrent"] } else { &[] };
    campaign::arguments(&["loop=./loop", &slowed], plant.rounds, more, &format!("{{binary}} {iterations}"))
}

fn theirs(plant: &Plant, iterations: u64) -> Vec<String> {
    let commands = ["loop", plant.name].map(|name| format!("./{name} {iterations}"));
    hyperfine::arguments(plant.rounds, &commands.each_ref().map(String::as_str))
}

/// Campaigns of Widthwise and of hyperfine, which has no concurrent runs.
fn harvest(
    work_directory: &WorkDirectory,
    plant: &Plant,
    campaigns: u32,
    ours: &[String],
    theirs: &[String],
) -> anyhow::Result<(Harvest, Option<Harvest>)> {
    let truth = f64::from(plant.per_mille) / 1000.0;
    let mut own = Harvest::default();
    let mut peer = (!plant.together).then(Harvest::default);
    let load = plant.loaded.then(|| Load::start(work_directory.seed));
    for number in 1..=campaigns {
        let campaign = Campaign::run(work_directory, ours)?;
        let verdict = campaign.verdict("slowed", "cpu")?;
        own.add(verdict.word == "higher", verdict.interval, truth);
        if let Some(peer) = &mut peer {
            if let [a, b] = &hyperfine::times(work_directory, theirs)?[..] {
                let interval = welch::ratio(a, b);
                peer.add(interval.low > 1.0, Some(interval), truth);
            }
        }
        eprintln!("  {}: {number}: widthwise {}", what(plant), own.found);
    }
    drop(load);
    Ok((own, peer))
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
