//! What a run costs beyond the program's own: the tool's whole process, over many runs of a program that does nothing.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, Context};

use crate::campaign::{self, Campaign};
use crate::hyperfine;
use crate::ratio::{of_means, Estimate};
use crate::section::{Section, Table};
use crate::work_directory::{typed, words, WorkDirectory};

/// What a process took from its start to its end, its children included.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    /// By the clock.
    pub wall: Duration,
    /// In user and system mode.
    pub cpu: Duration,
}

/// Microseconds for each run.
#[derive(Debug, Clone, Copy)]
struct PerRun {
    wall: f64,
    cpu: f64,
}

/// What each of them takes for a run.
struct Costs {
    /// `widthwise compare`, from its start to its end.
    own: Vec<PerRun>,
    /// Judging and reporting once more, which is what `compare` does after its last run.
    report: Vec<PerRun>,
    /// `hyperfine`.
    peer: Vec<PerRun>,
    /// The least that starting a program can cost.
    floor: Vec<PerRun>,
}

/// Measures Widthwise, its peer, and the least that starting a program can cost.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let (runs, times) = (work_directory.count(2000, 20), work_directory.count(20, 2));
    work_directory.build("bench/programs/nothing.c", "nothing", &["-static"])?;
    work_directory.build("bench/programs/start.c", "start", &[])?;
    let mut costs = Costs { own: Vec::new(), report: Vec::new(), peer: Vec::new(), floor: Vec::new() };
    for number in 1..=times {
        costs.add(work_directory, runs, number)?;
        eprintln!("  {number} of {times}");
    }
    let [own, report, peer, floor] =
        [&costs.own, &costs.report, &costs.peer, &costs.floor].map(|all| mean(all));
    let reported_wall = reported_wall(work_directory, &ours(200), &theirs(200))?;

    let mut table = Table::new(["for each run, µs", "widthwise", "hyperfine -N", "ratio"]);
    let mut row = |what: &str, own: f64, peer: f64, ratio: String| {
        table.row([what.to_owned(), format!("{own:.0}"), format!("{peer:.0}"), ratio]);
    };
    let plain = |own: f64, peer: f64| format!("{:.2}", own / peer);
    let wall = costs.beyond(|one| one.wall, false);
    let cpu = costs.beyond(|one| one.cpu, false);
    let without =
        [costs.beyond(|one| one.wall, true), costs.beyond(|one| one.cpu, true)].map(|ratio| ratio.text(2));
    row("wall time of the whole process", own.wall, peer.wall, plain(own.wall, peer.wall));
    row("wall time beyond the program's own", own.wall - floor.wall, peer.wall - floor.wall, wall.text(2));
    let [without_wall, without_cpu] = without;
    let unjudged = "the same without judging and reporting";
    row(unjudged, own.wall - report.wall - floor.wall, peer.wall - floor.wall, without_wall);
    row("CPU time of the whole process", own.cpu, peer.cpu, plain(own.cpu, peer.cpu));
    row("CPU time beyond the program's own", own.cpu - floor.cpu, peer.cpu - floor.cpu, cpu.text(2));
    row(unjudged, own.cpu - report.cpu - floor.cpu, peer.cpu - floor.cpu, without_cpu);
    let [own_reported, peer_reported] = reported_wall;
    row(
        "wall time that it reports for the program",
        own_reported,
        peer_reported,
        plain(own_reported, peer_reported),
    );
    let measured = wall.interval.is_some() && cpu.interval.is_some();
    Ok(Section {
        bar: "what a run costs beyond the program's own cost is at most what it costs with `hyperfine -N`: a ratio of 1, in wall \
              time and in CPU time."
            .into(),
        method: format!(
            "`nothing` is a static program that ends at once. Each tool's whole process was measured, children and report \
             included, over {runs} runs and over {}: the difference excludes the cost of the start. The mean of {times} such \
             differences is shown; the tools were measured in turn {times} times, in another order each time, and a ratio beyond the \
             program's own has its 95 % interval by Fieller's theorem. The program's own cost is that of `start`, which only calls vfork, execve and waitpid: {:.0} \
             µs of wall time, {:.0} µs of CPU time. Widthwise stores every reading and an output digest of each run in a database, and ends with bootstrap intervals and a page on which every run is a dot; hyperfine stores wall times and ends with their mean. Judging and reporting is the time of `widthwise report` on the same campaign.",
            runs / 2,
            floor.wall,
            floor.cpu,
        ),
        commands: vec![
            campaign::command(&ours(runs)),
            hyperfine::command(&theirs(runs)),
            typed("./start", &least(runs)),
            typed("widthwise", &report_again()),
        ],
        table,
        reached: measured && [wall, cpu].iter().all(|ratio| ratio.ratio <= 1.0 && !ratio.straddles(1.0)),
        sentence: if measured {
            format!(
                "a run's cost beyond the program's own is {} times hyperfine's in wall time and {} times in CPU time{}.",
                wall.text(2),
                cpu.text(2),
                if [wall, cpu].iter().any(|ratio| ratio.straddles(1.0)) {
                    "; an interval with 1 inside does not say which costs more"
                } else {
                    ""
                }
            )
        } else {
            "the machine was too busy for a ratio: what hyperfine costs could not be told from nothing.".into()
        },
    })
}

/// Two runs in each round: the baseline, and the baseline again.
fn ours(runs: u32) -> Vec<String> {
    campaign::arguments(&["nothing=./nothing"], runs / 2, &[], "{binary}")
}

fn report_again() -> Vec<String> {
    words(["report", ".widthwise/latest", "--html=report.html"])
}

fn theirs(runs: u32) -> Vec<String> {
    hyperfine::arguments(runs, &["./nothing"])
}

fn least(runs: u32) -> Vec<String> {
    words([&runs.to_string(), "./nothing"])
}

/// What is measured in turn.
#[derive(Debug, Clone, Copy)]
enum Part {
    Own,
    Peer,
    Floor,
}

impl Costs {
    /// Measures each once more, in the order of that number: what comes first is not always the same.
    fn add(&mut self, work_directory: &WorkDirectory, runs: u32, number: u32) -> anyhow::Result<()> {
        let mut order = [Part::Own, Part::Peer, Part::Floor];
        order.rotate_left(number as usize % 3);
        for part in order {
            match part {
                Part::Own => self.add_own(work_directory, runs)?,
                Part::Peer => {
                    let spend = |runs| spent(work_directory, hyperfine::process(&theirs(runs)));
                    self.peer.push(per_run(runs, spend)?);
                }
                Part::Floor => self.floor.push(per_run(runs, |runs| {
                    let mut command = Command::new(work_directory.folder().join("start"));
                    command.args(least(runs));
                    spent(work_directory, command)
                })?),
            }
        }
        Ok(())
    }

    fn add_own(&mut self, work_directory: &WorkDirectory, runs: u32) -> anyhow::Result<()> {
        let mut reports = Vec::new();
        self.own.push(per_run(runs, |runs| {
            let measured = spent(work_directory, work_directory.widthwise(&ours(runs)))?;
            reports.push(spent(work_directory, work_directory.widthwise(&report_again()))?);
            std::fs::remove_dir_all(work_directory.folder().join(".widthwise"))?;
            Ok(measured)
        })?);
        let mut reports = reports.into_iter();
        self.report.push(per_run(runs, |_| reports.next().context("a campaign was not reported"))?);
        Ok(())
    }

    /// What Widthwise costs beyond the program's own, to what the peer does; on request without judging and reporting.
    fn beyond(&self, time: fn(&PerRun) -> f64, is_unjudged: bool) -> Estimate {
        let beyond = |all: &[PerRun], less: &[PerRun]| -> Vec<f64> {
            all.iter().zip(less).map(|(one, less)| time(one) - time(less)).collect()
        };
        let mut own = beyond(&self.own, &self.floor);
        if is_unjudged {
            own.iter_mut().zip(&self.report).for_each(|(own, report)| *own -= time(report));
        }
        of_means(&own, &beyond(&self.peer, &self.floor))
    }
}

/// The cost of a run: the second half of so many.
fn per_run(runs: u32, mut spend: impl FnMut(u32) -> anyhow::Result<Spent>) -> anyhow::Result<PerRun> {
    let (half, whole) = (spend(runs / 2)?, spend(runs)?);
    let each = |half: Duration, whole: Duration| {
        (whole.as_secs_f64() - half.as_secs_f64()) * 1e6 / f64::from(runs - runs / 2)
    };
    Ok(PerRun { wall: each(half.wall, whole.wall), cpu: each(half.cpu, whole.cpu) })
}

fn mean(all: &[PerRun]) -> PerRun {
    let mean = |of: fn(&PerRun) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    PerRun { wall: mean(|one| one.wall), cpu: mean(|one| one.cpu) }
}

/// The wall time that each tool reports for the program: its median, in microseconds.
fn reported_wall(
    work_directory: &WorkDirectory,
    ours: &[String],
    theirs: &[String],
) -> anyhow::Result<[f64; 2]> {
    let own = Campaign::run(work_directory, ours)?.median("nothing", "wall")? / 1e3;
    let mut times =
        hyperfine::times(work_directory, theirs)?.into_iter().next().context("hyperfine timed nothing")?;
    times.sort_by(f64::total_cmp);
    let peer = times.get(times.len() / 2).context("hyperfine timed nothing")? * 1e6;
    Ok([own, peer])
}

/// Runs it to its end.
pub fn spent(work_directory: &WorkDirectory, mut command: Command) -> anyhow::Result<Spent> {
    let name = command.get_program().to_string_lossy().into_owned();
    let began = Instant::now();
    let child = command
        .current_dir(work_directory.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{name} could not be started"))?;
    let mut status = 0;
    // SAFETY: plain data, zero of which is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both places are ours. The child is waited for here and nowhere else.
    if unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) } < 0 {
        return Err(io::Error::last_os_error()).context(name);
    }
    let wall = began.elapsed();
    if status != 0 {
        bail!("{name} failed");
    }
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Ok(Spent { wall, cpu: time(usage.ru_utime) + time(usage.ru_stime) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_costs_to_begin_is_not_in_the_cost_of_a_run() {
        let spend = |runs: u32| {
            let time = Duration::from_secs(5) + Duration::from_micros(3) * runs;
            Ok(Spent { wall: 2 * time, cpu: time })
        };
        let found = per_run(1001, spend).unwrap();
        assert!((found.wall - 6.0).abs() < 1e-6 && (found.cpu - 3.0).abs() < 1e-6, "{found:?}");
    }
}
