//! Calibrated programs: how many steps of a program take so long here.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::work_directory::WorkDirectory;

/// The first guess of the steps: some 40 ms of the loop.
const GUESS: u64 = 20_000_000;

/// A program whose last argument is the number of its steps, and whose PER_MILLE makes it take so many thousandths of them.
#[derive(Debug, Clone, Copy)]
pub struct Calibrated {
    /// The source.
    pub source: &'static str,
    /// The name of the program without a slowdown.
    pub name: &'static str,
    /// The arguments before the steps.
    pub before: &'static [&'static str],
}

/// The loop of dependent multiplications.
const LOOP: Calibrated = Calibrated { source: "bench/programs/loop.c", name: "loop", before: &[] };

/// Builds `./loop` under a name, with so many thousandths of its iterations.
pub fn build(work_directory: &WorkDirectory, name: &str, per_mille: u32) -> anyhow::Result<()> {
    LOOP.build(work_directory, name, per_mille)
}

/// How many iterations of `./loop` take about `wanted`: a multiple of 1000, so that thousandths of it are whole.
pub fn iterations(work_directory: &WorkDirectory, wanted: Duration) -> anyhow::Result<u64> {
    LOOP.steps(work_directory, wanted)
}

impl Calibrated {
    /// Builds it under a name, with so many thousandths of its steps.
    pub fn build(&self, work_directory: &WorkDirectory, name: &str, per_mille: u32) -> anyhow::Result<()> {
        work_directory.build(self.source, name, &["-static", &format!("-DPER_MILLE={per_mille}")])
    }

    /// How many steps take about `wanted`, besides its start: a multiple of 1000, so that thousandths of it are whole.
    pub fn steps(&self, work_directory: &WorkDirectory, wanted: Duration) -> anyhow::Result<u64> {
        let start = self.fastest(work_directory, 0)?.as_secs_f64();
        // Steps of unknown length: the guess is made in two parts, the second of which lasts long enough.
        let of = |steps: u64| -> anyhow::Result<f64> {
            let took = (self.fastest(work_directory, steps)?.as_secs_f64() - start).max(1e-6);
            Ok(steps as f64 * wanted.as_secs_f64() / took)
        };
        let first = of(GUESS / 100)?;
        Ok(rounded(of(rounded(first))?))
    }

    /// The arguments of a run of so many steps.
    pub fn words(&self, steps: u64) -> String {
        let words = self.before.iter().map(|word| word.to_string()).chain([steps.to_string()]);
        words.collect::<Vec<_>>().join(" ")
    }

    /// The fastest of a few runs: what disturbs only ever adds.
    fn fastest(&self, work_directory: &WorkDirectory, steps: u64) -> anyhow::Result<Duration> {
        let mut command = Command::new(work_directory.folder().join(self.name));
        command.args(self.before).arg(steps.to_string());
        let mut all = Vec::new();
        for _ in 0..work_directory.count(15, 3) {
            let began = Instant::now();
            work_directory.output(&mut command)?;
            all.push(began.elapsed());
        }
        all.into_iter().min().context("no run was made")
    }
}

fn rounded(iterations: f64) -> u64 {
    (iterations / 1000.0).round().max(1.0) as u64 * 1000
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
