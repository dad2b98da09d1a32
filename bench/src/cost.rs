//! What a run costs beyond the program's own: the tool's whole process, over many runs of a program that does nothing.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, Context};

use crate::campaign::{self, Campaign};
use crate::hyperfine;
use crate::section::{Section, Table};
use crate::workshop::{typed, words, Workshop};

/// What a process took from its start to its end, its children included.
#[derive(Debug, Clone, Copy)]
struct Spent {
    wall: Duration,
    cpu: Duration,
}

/// Microseconds for each run.
#[derive(Debug, Clone, Copy)]
struct PerRun {
    wall: f64,
    cpu: f64,
}

/// Measures Widthwise, its peer, and the least that starting a program can cost.
pub fn measure(workshop: &Workshop) -> anyhow::Result<Section> {
    let (runs, times) = (workshop.count(2000, 20), workshop.count(7, 1));
    workshop.build("bench/programs/nothing.c", "nothing", &["-static"])?;
    workshop.build("bench/programs/start.c", "start", &[])?;
    // Two runs in each round: the baseline, and the baseline again.
    let ours = |runs: u32| campaign::arguments(&["nothing=./nothing"], runs / 2, &[], "{binary}");
    let theirs = |runs: u32| hyperfine::arguments(runs, &["./nothing"]);
    let least = |runs: u32| words([&runs.to_string(), "./nothing"]);

    let mut own = Vec::new();
    let mut peer = Vec::new();
    let mut floor = Vec::new();
    for number in 1..=times {
        own.push(per_run(runs, |runs| {
            let spent = spent(workshop, workshop.widthwise(&ours(runs)))?;
            std::fs::remove_dir_all(workshop.folder().join(".widthwise"))?;
            Ok(spent)
        })?);
        peer.push(per_run(runs, |runs| spent(workshop, hyperfine::process(&theirs(runs))))?);
        floor.push(per_run(runs, |runs| {
            let mut command = Command::new(workshop.folder().join("start"));
            command.args(least(runs));
            spent(workshop, command)
        })?);
        eprintln!("  {number} of {times}");
    }
    let (own, peer, floor) = (typical(&own), typical(&peer), typical(&floor));
    let told = told(workshop, &ours(200), &theirs(200))?;

    let mut table = Table::new([
        "for each run",
        "widthwise",
        "hyperfine -N",
        "starting alone",
        "beyond it, widthwise",
        "hyperfine",
        "ratio",
    ]);
    let mut ratios = Vec::new();
    for (what, own, peer, floor) in
        [("wall time, µs", own.wall, peer.wall, floor.wall), ("CPU time, µs", own.cpu, peer.cpu, floor.cpu)]
    {
        let ratio = (own - floor) / (peer - floor);
        ratios.push(ratio);
        let number = |value: f64| format!("{value:.0}");
        table.row([
            what.to_owned(),
            number(own),
            number(peer),
            number(floor),
            number(own - floor),
            number(peer - floor),
            format!("{ratio:.2}"),
        ]);
    }
    let [own_told, peer_told] = told.map(|time| format!("{time:.0}"));
    table.row([
        "wall time it reports for one, µs".into(),
        own_told,
        peer_told,
        String::new(),
        String::new(),
        String::new(),
        String::new(),
    ]);
    Ok(Section {
        bar: "what a run costs beyond the program's own cost is at most what it costs with `hyperfine -N`: a ratio of 1, in wall \
              time and in CPU time."
            .into(),
        method: format!(
            "`nothing` is a static program that ends at once. Each tool's whole process was measured, children and report \
             included, over {runs} runs and over {}: the difference is free of what it costs to begin. The median of {times} such \
             differences is shown. `start` does nothing but vfork, execve and waitpid: what it takes is the program's own. \
             Widthwise keeps every sample of 11 metrics in a database and every answer's digest meanwhile; hyperfine keeps times.",
            runs / 2
        ),
        commands: vec![
            campaign::command(&ours(runs)),
            hyperfine::command(&theirs(runs)),
            typed("./start", &least(runs)),
        ],
        table,
        reached: ratios.iter().all(|ratio| (0.0..=1.0).contains(ratio)),
        sentence: format!(
            "a run's cost beyond the program's own is {:.2} times hyperfine's in wall time and {:.2} times in CPU time.",
            ratios[0], ratios[1]
        ),
    })
}

/// The cost of a run: the second half of so many.
fn per_run(runs: u32, mut spend: impl FnMut(u32) -> anyhow::Result<Spent>) -> anyhow::Result<PerRun> {
    let (half, whole) = (spend(runs / 2)?, spend(runs)?);
    let each = |half: Duration, whole: Duration| {
        (whole.as_secs_f64() - half.as_secs_f64()) * 1e6 / f64::from(runs - runs / 2)
    };
    Ok(PerRun { wall: each(half.wall, whole.wall), cpu: each(half.cpu, whole.cpu) })
}

fn typical(all: &[PerRun]) -> PerRun {
    let median = |of: fn(&PerRun) -> f64| {
        let mut values: Vec<f64> = all.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    PerRun { wall: median(|one| one.wall), cpu: median(|one| one.cpu) }
}

/// The wall time that each tool reports for the program: its median, in microseconds.
fn told(workshop: &Workshop, ours: &[String], theirs: &[String]) -> anyhow::Result<[f64; 2]> {
    let own = Campaign::run(workshop, ours)?.median("nothing", "wall")? / 1e3;
    let mut times =
        hyperfine::times(workshop, theirs)?.into_iter().next().context("hyperfine timed nothing")?;
    times.sort_by(f64::total_cmp);
    let peer = times.get(times.len() / 2).context("hyperfine timed nothing")? * 1e6;
    Ok([own, peer])
}

/// Runs it to its end.
fn spent(workshop: &Workshop, mut command: Command) -> anyhow::Result<Spent> {
    let name = command.get_program().to_string_lossy().into_owned();
    let began = Instant::now();
    let child = command
        .current_dir(workshop.folder())
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
