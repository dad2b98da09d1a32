//! The calibrated loop: how many iterations take so long here.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::work_directory::WorkDirectory;

/// The loop's source.
const SOURCE: &str = "bench/programs/loop.c";
/// The first guess: some 40 ms.
const GUESS: u64 = 20_000_000;

/// Builds `./loop` under a name, with so many thousandths of its iterations.
pub fn build(work_directory: &WorkDirectory, name: &str, per_mille: u32) -> anyhow::Result<()> {
    work_directory.build(SOURCE, name, &["-static", &format!("-DPER_MILLE={per_mille}")])
}

/// How many iterations of `./loop` take about `wanted`: a multiple of 1000, so that thousandths of it are whole.
pub fn iterations(work_directory: &WorkDirectory, wanted: Duration) -> anyhow::Result<u64> {
    let took = fastest(work_directory, GUESS)?;
    Ok(rounded(GUESS as f64 * wanted.as_secs_f64() / took.as_secs_f64()))
}

/// What is not proportional to the iterations, as a share of a run.
pub fn start_up(work_directory: &WorkDirectory, iterations: u64) -> anyhow::Result<f64> {
    Ok(fastest(work_directory, 0)?.as_secs_f64() / fastest(work_directory, iterations)?.as_secs_f64())
}

fn rounded(iterations: f64) -> u64 {
    (iterations / 1000.0).round().max(1.0) as u64 * 1000
}

/// The fastest of a few runs: what disturbs only ever adds.
fn fastest(work_directory: &WorkDirectory, iterations: u64) -> anyhow::Result<Duration> {
    let mut command = Command::new(work_directory.folder().join("loop"));
    command.arg(iterations.to_string());
    let mut all = Vec::new();
    for _ in 0..work_directory.count(15, 3) {
        let began = Instant::now();
        work_directory.output(&mut command)?;
        all.push(began.elapsed());
    }
    all.into_iter().min().context("no run was made")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_with_a_planted_slowdown_differ_in_one_number_alone() {
        let work_directory = WorkDirectory::open(Some("/bin/true".into()), true, 1).unwrap();
        build(&work_directory, "loop", 1000).unwrap();
        build(&work_directory, "slowed", 1010).unwrap();
        let read = |name| std::fs::read(work_directory.folder().join(name)).unwrap();
        let (fast, slow) = (read("loop"), read("slowed"));
        assert_eq!(fast.len(), slow.len());
        // 1000 is 0x3e8, and 1010 0x3f2.
        let different: Vec<_> = fast.iter().zip(&slow).filter(|(a, b)| a != b).collect();
        assert_eq!(different, [(&0xe8, &0xf2)]);
    }

    #[test]
    fn a_thousandth_of_the_iterations_is_whole() {
        assert_eq!(rounded(51_234_567.8), 51_235_000);
        assert_eq!(rounded(0.1), 1000);
    }
}
