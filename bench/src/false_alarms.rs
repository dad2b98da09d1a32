//! One program compared with a copy of itself, on a machine with a background load: how often a difference is called.

use std::time::Duration;

use crate::background_load::Load;
use crate::calibration;
use crate::campaign::{self, Campaign};
use crate::hyperfine;
use crate::proportion::Proportion;
use crate::section::{Section, Table};
use crate::welch;
use crate::work_directory::WorkDirectory;

/// As many false differences as are accepted; a test at 95 % may find 5 %.
const MOST: f64 = 0.02;
/// A program this short lets 300 comparisons fit into a quarter of an hour.
const LASTS: Duration = Duration::from_millis(20);

/// How often each way of looking called a difference.
#[derive(Debug, Default)]
struct Alarms {
    any: Proportion,
    cpu: Proportion,
    wall: Proportion,
    peer: Proportion,
}

/// Compares the loop with a copy of itself, by Widthwise and by its peer in turn, under one load.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let (campaigns, rounds) = (work_directory.count(300, 2), work_directory.count(12, 6));
    calibration::build(work_directory, "loop", 1000)?;
    let iterations = calibration::iterations(work_directory, LASTS)?;
    let ours =
        campaign::arguments(&["a=./loop", "b=./loop-copy"], rounds, &[], &format!("{{binary}} {iterations}"));
    let theirs = hyperfine::arguments(
        rounds,
        &[&format!("./loop {iterations}"), &format!("./loop-copy {iterations}")],
    );

    let load = Load::start(work_directory.seed);
    let mut alarms = Alarms::default();
    for number in 1..=campaigns {
        copy_anew(work_directory)?;
        compare(work_directory, &ours, &theirs, &mut alarms)?;
        if number % 10 == 0 || number == campaigns {
            eprintln!("  {number}: any metric {}, cpu {}, hyperfine {}", alarms.any, alarms.cpu, alarms.peer);
        }
    }
    drop(load);

    let mut table = Table::new(["tool and metric", "false differences", "share", "its 95 % interval"]);
    let mut row = |who: &str, share: Proportion| {
        let (low, high) = share.interval();
        let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
        let interval = format!("{:.1} … {:.1} %", low * 100.0, high * 100.0);
        table.row([who.to_owned(), share.to_string(), percent(share.fraction()), interval]);
    };
    row("widthwise, in any of its default metrics", alarms.any);
    row("widthwise, in CPU time", alarms.cpu);
    row("widthwise, in wall time", alarms.wall);
    row("hyperfine, in wall time", alarms.peer);
    Ok(Section {
        bar: format!(
            "{campaigns} comparisons of one program with a copy of its file, on a machine with an intermittent background load, yield at most 2 % false differences, in all metrics together; the method promises at most 5 %."
        ),
        method: format!(
            "A loop of about {} ms, {rounds} runs of each side in each comparison, and a new copy for each; Widthwise and hyperfine ran alternately under the same load. {} A comparison counts against Widthwise if any verdict is `lower` or `higher`, on `b` or on the A/A control. hyperfine itself has no test; its exported times are compared by Welch's t test at 95 %, as its `scripts/welch_ttest.py` does.",
            LASTS.as_millis(),
            Load::ABOUT,
        ),
        commands: vec![campaign::command(&ours), hyperfine::command(&theirs)],
        table,
        reached: alarms.any.fraction() <= MOST,
        sentence: format!(
            "Widthwise reported {} false differences ({} in CPU time alone), hyperfine's times {}.",
            alarms.any, alarms.cpu, alarms.peer
        ),
    })
}

/// A copy has pages of its own in the page cache and in the CPU's caches, as a variant's file has. Each new one lies elsewhere.
fn copy_anew(work_directory: &WorkDirectory) -> anyhow::Result<()> {
    let copy = work_directory.folder().join("loop-copy");
    if copy.exists() {
        std::fs::remove_file(&copy)?;
    }
    std::fs::copy(work_directory.folder().join("loop"), copy)?;
    Ok(())
}

fn compare(
    work_directory: &WorkDirectory,
    ours: &[String],
    theirs: &[String],
    alarms: &mut Alarms,
) -> anyhow::Result<()> {
    let campaign = Campaign::run(work_directory, ours)?;
    let verdicts = campaign.verdicts()?;
    let differs_in = |metric| verdicts.iter().any(|verdict| verdict.metric == metric && verdict.differs());
    alarms.any.add(verdicts.iter().any(|verdict| verdict.differs()));
    alarms.cpu.add(differs_in("cpu"));
    alarms.wall.add(differs_in("wall"));
    let times = hyperfine::times(work_directory, theirs)?;
    alarms.peer.add(matches!(&times[..], [a, b] if welch::ratio(a, b).differs()));
    Ok(())
}
