//! Intervals on synthetic data, whose truth is known: the verdict crate's own simulation.

use anyhow::Context;

use crate::section::{Section, Table};
use crate::work_directory::{self, typed, words, WorkDirectory};

/// How often a 95 % interval must hold the truth, in percent.
const BAR: std::ops::RangeInclusive<f64> = 93.0..=97.0;

/// Runs the simulation; its first table is the one on coverage.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let replications = work_directory.count(1000, 1);
    let arguments =
        words(["--package", "widthwise-verdict", "--example", "coverage", "--", &replications.to_string()]);
    let shown = work_directory.output(work_directory::cargo("run")?.args(&arguments))?;
    let table = Table::first_of(&shown).context("the simulation printed no table")?;
    let cells: Vec<f64> = table.cells().filter_map(percent).collect();
    let held = cells.iter().filter(|cell| BAR.contains(cell)).count();
    let lowest = cells.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = cells.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Ok(Section {
        bar: "on synthetic data (drift, autocorrelation, outliers, two modes) the 95 % interval includes the truth in 93 to 97 % of campaigns, also when `--precision` decides when to stop."
            .into(),
        method: format!(
            "{replications} synthetic campaigns for each cell, so that chance alone moves a cell by ±{:.1} points. The last column \
             stops as `--precision` does, after the mean number of rounds in brackets. hyperfine gives no intervals. docs/verdicts.md \
             has the rest of the simulation's output.",
            196.0 * (0.95 * 0.05 / f64::from(replications)).sqrt()
        ),
        commands: vec![typed("cargo run --release", &arguments)],
        table,
        reached: !cells.is_empty() && held == cells.len(),
        sentence: format!(
            "{held} of {} cells are between 93 and 97 %; the lowest is {lowest:.1} %, the highest {highest:.1} %.",
            cells.len()
        ),
    })
}

/// `95.1 % (33)` is 95.1.
fn percent(cell: &str) -> Option<f64> {
    cell.split_once('%')?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Coverage, 1000 campaigns a cell:\n\n\
                        | noise | 10 rounds | `--precision` (rounds) |\n\
                        | --- | ---: | ---: |\n\
                        | 95 % quiet | 95.1 % | 92.9 % (33) |\n\n\
                        Planted:\n\n| truth |\n| ---: |\n| 1 % |\n";

    #[test]
    fn the_first_table_is_read_without_its_heads() {
        let table = Table::first_of(SAID).unwrap();
        assert_eq!(table.cells().filter_map(percent).collect::<Vec<_>>(), [95.1, 92.9]);
        assert!(Table::first_of("nothing").is_none());
    }
}
