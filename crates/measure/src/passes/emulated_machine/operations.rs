//! Instructions of the micro suite's operations on emulated machines. With `--marked` the suite makes loops of n and of 2 n iterations,
//! each between two markers, and writes which of these stretches belong to an operation:
//!
//! `metric stretches NAME ITERATIONS OPERATIONS LESS NUMBER... [once NUMBER...]`: n; the operations of an iteration; the loop that is
//! subtracted; the numbers of stretches of n and 2 n iterations in turns. If the kernel's clock ticked in these, stretches of one
//! iteration follow, in which it did not: the kernel's instructions in them are the operation's.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use widthwise_experiment::outcome::{Reading, Source};
use widthwise_experiment::Metric;

use crate::passes::emulated_machine::counts::{CountFile, Counts};
use crate::run::launch_spec::LaunchSpec;

/// Iterations of the shorter loop.
const ITERATIONS: &str = "20";
/// What the names of the metrics begin with.
const PREFIX: &str = "micro.";
/// The loop that every other one includes.
const EMPTY: &str = "empty";
/// What `exec` starts, beside the suite; what `shell` starts.
const NOTHING: &str = "nothing";
const SHELL: &str = "/bin/sh";

/// The operations whose instructions are counted.
#[derive(Debug, Clone, Default)]
pub struct Operations {
    /// `micro.NAME.instructions_user` and `micro.NAME.instructions_kernel`.
    pub metrics: Vec<Metric>,
}

/// What was counted, and why something was not: sentences whose subject is the variant.
type Counted = (BTreeMap<&'static str, Reading>, Vec<String>);

impl Operations {
    /// How the suite is started for this; `is_user`: only user mode is emulated.
    pub(super) fn asked(&self, start: &LaunchSpec, is_user: bool) -> LaunchSpec {
        let mut start = start.clone();
        let words = ["--marked", ITERATIONS].into_iter().chain(is_user.then_some("--user"));
        start.arguments.extend(words.map(OsString::from));
        start
    }

    /// Whether a metric is one of these.
    pub(super) fn has(&self, name: &str) -> bool {
        self.metrics.iter().any(|metric| metric.name == name)
    }

    /// The programs that operations start.
    pub(super) fn started(&self, start: &LaunchSpec) -> Vec<PathBuf> {
        let beside = start.file.parent().map(|folder| folder.join(NOTHING));
        beside.into_iter().chain([Path::new(SHELL).to_owned()]).filter(|path| path.is_file()).collect()
    }

    /// Adds the instructions of each operation to a sample, from the suite's output and the plugin's file; why some are missing.
    ///
    /// # Errors
    /// The file's markers are not those of stretches.
    pub(super) fn put(
        &self,
        sample: &mut BTreeMap<&'static str, Reading>,
        output: &[u8],
        file: &CountFile,
        is_user: bool,
    ) -> Result<Vec<String>, String> {
        let (counted, missing) = self.read(&String::from_utf8_lossy(output), &file.stretches()?, is_user);
        sample.extend(counted);
        Ok(missing)
    }

    /// The instructions of each operation, from the suite's output and the counts of its stretches.
    fn read(&self, output: &str, stretches: &[Counts], is_user: bool) -> Counted {
        let loops: BTreeMap<&str, Loop> =
            output.lines().filter_map(|line| Loop::parse(line, stretches)).collect();
        let mut sample = BTreeMap::new();
        // A reason, and of what.
        let mut missing: Vec<(String, Vec<&str>)> = Vec::new();
        for metric in &self.metrics {
            let Some((name, side)) =
                metric.name.strip_prefix(PREFIX).and_then(|rest| rest.split_once(".instructions_"))
            else {
                continue;
            };
            if is_user && side == "kernel" {
                continue;
            }
            let reason = |metric: &str| {
                let mut lines = output.lines();
                lines
                    .find_map(|line| line.strip_prefix("no-metric ")?.strip_prefix(metric)?.strip_prefix(' '))
            };
            let of_less = || {
                let less = loops.get(name)?.less;
                reason(&format!("{PREFIX}{less}.instructions_{side}"))
            };
            let refused = reason(metric.name).or_else(of_less);
            let count = match refused {
                Some(reason) => Err(reason.to_owned()),
                None => instructions(name, side, &loops),
            };
            match count {
                Ok(count) => drop(sample.insert(metric.name, Reading::whole(count, Source::Qemu))),
                Err(reason) => match missing.iter_mut().find(|(own, _)| *own == reason) {
                    Some((_, names)) => names.push(metric.name),
                    None => missing.push((reason, vec![metric.name])),
                },
            }
        }
        let sentence =
            |(reason, names): (String, Vec<&str>)| format!("has no {}: {reason}", names.join(", "));
        (sample, missing.into_iter().map(sentence).collect())
    }
}

/// A loop that was counted.
#[derive(Debug, Clone, PartialEq)]
struct Loop<'a> {
    /// Of an iteration, the loop's own among them.
    user: f64,
    kernel: f64,
    /// Operations in an iteration.
    operations: f64,
    /// The loop that is subtracted.
    less: &'a str,
}

impl<'a> Loop<'a> {
    /// Reads a line; nothing if it is none of these, or names a stretch that is not there.
    fn parse(line: &'a str, stretches: &[Counts]) -> Option<(&'a str, Loop<'a>)> {
        let mut words = line.strip_prefix("metric stretches ")?.split(' ');
        let name = words.next()?;
        let (iterations, operations) =
            (words.next()?.parse::<u32>().ok()?, words.next()?.parse::<u32>().ok()?);
        let less = words.next()?;
        let numbers: Vec<&str> = words.collect();
        let (both, once) = match numbers.iter().position(|word| *word == "once") {
            Some(at) => (&numbers[..at], &numbers[at + 1..]),
            None => (&numbers[..], &[][..]),
        };
        let of = |numbers: &[&str]| -> Option<Vec<Counts>> {
            numbers.iter().map(|word| stretches.get(word.parse::<usize>().ok()?).copied()).collect()
        };
        let (both, once) = (of(both)?, of(once)?);
        if both.is_empty() || !both.len().is_multiple_of(2) {
            return None;
        }
        let each = |count: fn(&Counts) -> u64| {
            let more = both.chunks(2).map(|pair| count(&pair[1]) as f64 - count(&pair[0]) as f64);
            middle(more.collect()) / f64::from(iterations)
        };
        let user = each(|counts| counts.user);
        let kernel = match once.len() {
            0 => each(|counts| counts.kernel),
            _ => middle(once.iter().map(|counts| counts.kernel as f64).collect()),
        };
        let known = iterations > 0 && operations > 0;
        known.then_some((name, Loop { user, kernel, operations: operations.into(), less }))
    }

    fn side(&self, side: &str) -> f64 {
        if side == "kernel" {
            self.kernel
        } else {
            self.user
        }
    }
}

/// The median of an odd number of values: a tick that did not move the coarse clock, which the suite therefore did not notice, is in one
/// of them. (Linux moves that clock only by whole intervals: timekeeping_advance, kernel/time/timekeeping.c.)
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The instructions of one operation: those of its loop, less the empty one's and those of the loop that is subtracted.
fn instructions(name: &str, side: &str, loops: &BTreeMap<&str, Loop>) -> Result<f64, String> {
    let absent = || "the suite did not count it".to_owned();
    let own = loops.get(name).ok_or_else(absent)?;
    let empty = loops.get(EMPTY).ok_or_else(absent)?;
    let mut count = (own.side(side) - empty.side(side)) / own.operations;
    if own.less != EMPTY {
        count -= loops.get(own.less).ok_or_else(absent)?.side(side) - empty.side(side);
    }
    if count.is_finite() && count >= 0.0 {
        Ok(count)
    } else {
        let less = if own.less == EMPTY { "the empty loop" } else { own.less };
        Err(format!("nothing is left of it without {less}, which is subtracted"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use widthwise_experiment::metric;

    fn metrics(names: &[&str]) -> Operations {
        let both = |name: &&str| metric::operation_on_machine(&format!("micro.{name}"), name);
        Operations { metrics: names.iter().flat_map(both).collect() }
    }

    fn counts(all: &[(u64, u64)]) -> Vec<Counts> {
        all.iter().map(|&(user, kernel)| Counts { user, kernel }).collect()
    }

    #[test]
    fn an_operation_has_what_2_n_iterations_have_more_than_n_without_the_loop() {
        let stretches = counts(&[
            (45, 0),
            (85, 0),
            // A tick of the clock: named by no line.
            (1, 9999),
            (205, 8000),
            (405, 16000),
            (205, 8000),
            (405, 16000),
            // One that the suite did not notice.
            (205, 8000),
            (405, 19000),
        ]);
        let output = "micro 1\nmetric stretches empty 20 1 empty 0 1\nmetric stretches getpid 20 1 empty 3 4 5 6 7 8\n";
        let (sample, missing) = metrics(&["getpid"]).read(output, &stretches, false);
        assert_eq!(sample["micro.getpid.instructions_user"].value, 8.0);
        assert_eq!(sample["micro.getpid.instructions_kernel"].value, 400.0);
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn an_operation_longer_than_half_a_tick_has_the_kernels_instructions_of_one_iteration() {
        let stretches = counts(&[(2, 0), (4, 0), (12, 999), (22, 2999), (12, 501), (12, 501), (12, 3000)]);
        let output =
            "metric stretches empty 1 1 empty 0 1\nmetric stretches shell 1 1 empty 2 3 once 4 5 6\n";
        let (sample, _) = metrics(&["shell"]).read(output, &stretches, false);
        assert_eq!(sample["micro.shell.instructions_user"].value, 8.0);
        assert_eq!(sample["micro.shell.instructions_kernel"].value, 501.0);
    }

    #[test]
    fn a_difference_of_two_loops_has_neither_loops_instructions() {
        let stretches = counts(&[(2, 0), (4, 0), (12, 100), (24, 200), (42, 500), (84, 1000)]);
        let output = "metric stretches empty 1 1 empty 0 1\nmetric stretches own_pipe 1 1 empty 2 3\n\
                      metric stretches context_switch 1 2 own_pipe 4 5\n";
        let (sample, _) = metrics(&["context_switch"]).read(output, &stretches, false);
        // (42 - 2) / 2 - (12 - 2), and 500 / 2 - 100.
        assert_eq!(sample["micro.context_switch.instructions_user"].value, 10.0);
        assert_eq!(sample["micro.context_switch.instructions_kernel"].value, 150.0);
    }

    #[test]
    fn a_difference_is_not_counted_where_what_is_subtracted_is_not() {
        let stretches = counts(&[(2, 0), (4, 0), (12, 100), (24, 200), (42, 500), (84, 1000)]);
        let output = "metric stretches empty 1 1 empty 0 1\nmetric stretches own_pipe 1 1 empty 2 3\n\
                      no-metric micro.own_pipe.instructions_kernel too long\nmetric stretches context_switch 1 2 own_pipe 4 5\n";
        let (sample, missing) = metrics(&["context_switch"]).read(output, &stretches, false);
        assert_eq!(sample.keys().collect::<Vec<_>>(), [&"micro.context_switch.instructions_user"]);
        assert_eq!(missing, ["has no micro.context_switch.instructions_kernel: too long"]);
    }

    #[test]
    fn what_was_not_counted_has_its_reason_once_for_all_operations() {
        let output =
            "metric stretches empty 1 1 empty 0 1\nno-metric micro.fork.instructions_user two processes\n\
                      no-metric micro.exec.instructions_user two processes\n";
        let asked = metrics(&["fork", "exec", "stat"]);
        let (sample, missing) = asked.read(output, &counts(&[(2, 0), (4, 0)]), true);
        assert!(sample.is_empty());
        assert_eq!(
            missing,
            [
                "has no micro.fork.instructions_user, micro.exec.instructions_user: two processes",
                "has no micro.stat.instructions_user: the suite did not count it"
            ]
        );
    }

    proptest! {
        #[test]
        fn no_output_makes_it_panic(output in "((metric stretches|no-metric) ?(empty|getpid)? ?[0-9 a-z]{0,30}( once [0-9 ]{0,4})?\n){0,6}") {
            let _ = metrics(&["getpid"]).read(&output, &counts(&[(2, 0), (4, 0)]), false);
        }
    }
}
