//! Summaries of runs whose times follow from known costs.

use widthwise_experiment::role::control_of;
use widthwise_experiment::scale::{CpuWait, GroupRun, MemberMemory, Memory, Mode, Moment, Plan, Purpose};

use super::{summarise, Question, Summary, Table};
use crate::scaling::{Cause, Figure, Unfitted};

/// A job or child begins in this time, and needs this time for an event; nanoseconds.
const START: u64 = 1_000_000;
const EVENT: u64 = 10_000_000;

/// The memory that processes have to fit into.
const LIMIT: u64 = 1_000_000_000;

/// A run of so many processes that share the events, each on a CPU of its own.
fn run(mode: Mode, round: u32, processes: u64, purpose: Purpose, events: u64) -> GroupRun {
    let starts = if mode == Mode::Jobs { processes } else { 1 };
    let member = r#"{"pid":1,"cpu":0,"began_ns":0,"ended_ns":0,"cpu_ns":0,"exact":true,"max_rss":null,"reported":null}"#;
    let text = format!(
        r#"{{"round":{round},"position":0,"cell":{{"variant":"a","mode":"{mode}","placement":"cores","processes":{processes}}},
            "purpose":"{}","events":{events},"ending":{{"ended":"done"}},"failure":null,"elapsed_ns":{},"spread_ns":0,
            "cpu_ns":{},"before_fork":null,"members":[{}],"counters":{{}},"memory":null,"output_digest":null,"remarks":[]}}"#,
        purpose.name(),
        START + events.div_ceil(processes) * EVENT,
        starts * START + events * EVENT,
        vec![member; processes as usize].join(",")
    );
    serde_json::from_str(&text).unwrap()
}

/// The table of a campaign of six rounds with these numbers of processes.
fn table(mode: Mode, counts: &[usize], events: u64) -> Table {
    changed_table(mode, counts, events, |_| {})
}

/// The same, of runs that were changed.
fn changed_table(mode: Mode, counts: &[usize], events: u64, change: impl Fn(&mut GroupRun)) -> Table {
    let mut runs = Vec::new();
    for round in 0..6 {
        for &processes in counts {
            runs.push(run(mode, round, processes as u64, Purpose::Timed, events));
        }
        let smallest = counts[0] as u64;
        // Each job has one event at least.
        for purpose in [Purpose::OneEvent, Purpose::HalfOfEvents] {
            let whole = run(mode, round, smallest, Purpose::Timed, events);
            runs.push(run(
                mode,
                round,
                smallest,
                purpose,
                purpose.events(Some(events), &whole.cell).unwrap(),
            ));
        }
    }
    runs.iter_mut().for_each(change);
    summary(mode, counts, events, &["a"], &[], &runs).tables.remove(0)
}

/// The summary of a campaign that shares so many events.
fn summary(
    mode: Mode,
    counts: &[usize],
    events: u64,
    variants: &[&str],
    cores: &[Vec<u32>],
    runs: &[GroupRun],
) -> Summary {
    let plan = Plan {
        counts: counts.to_vec(),
        modes: vec![mode],
        placements: vec!["cores".into()],
        kinds: "all".into(),
        events: Some(events),
        events_each: false,
        memory_rounds: 0,
        sequential: true,
        load: None,
        jobs_run: None,
        event_pattern: None,
        event_files: None,
        event_marks: false,
        memory_limit: LIMIT,
    };
    let question = Question {
        plan: &plan,
        variants: &variants.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(),
        placements: &[("cores".to_owned(), vec![0, 1, 2, 3])],
        cores,
        confidence: 0.95,
        seed: 1,
        memory: 0,
    };
    summarise(question, runs)
}

/// Eight timed rounds of these cells: a variant and its number of jobs.
fn rounds(cells: &[(&str, u64)]) -> Vec<GroupRun> {
    let of_round = |round| {
        cells.iter().map(move |(variant, processes)| {
            let mut run = run(Mode::Jobs, round, *processes, Purpose::Timed, 20);
            run.cell.variant = (*variant).to_owned();
            // No two rounds and no two variants are alike.
            run.elapsed_ns += u64::from(round) * 1_000 + u64::from(variant.as_bytes()[0]) * 10;
            run
        })
    };
    (0..8).flat_map(of_round).collect()
}

/// The run of a cell in a round.
fn of<'a>(runs: &'a mut [GroupRun], variant: &str, processes: usize, round: u32) -> &'a mut GroupRun {
    let is_it = |run: &&mut GroupRun| {
        run.cell.variant == variant && run.cell.processes == processes && run.round == round
    };
    runs.iter_mut().find(is_it).unwrap()
}

#[track_caller]
fn about(value: f64, truth: f64) {
    assert!((value / truth - 1.0).abs() < 1e-6, "{value} is not {truth}");
}

#[test]
fn the_sequential_part_does_not_depend_on_the_smallest_number_of_processes() {
    for (counts, events) in [(&[1, 2][..], 20), (&[2, 4], 20), (&[2], 21), (&[4], 22)] {
        for mode in [Mode::Fork, Mode::Jobs] {
            let table = table(mode, counts, events);
            about(table.sequential.chosen(), START as f64 / 1e9);
            let processes = counts[0] as u64;
            let parallel = (events.div_ceil(processes) * processes * EVENT) as f64 / 1e9;
            about(table.rows[0].parallel_time.as_ref().unwrap().estimate, parallel);
        }
    }
}

#[test]
fn the_cpu_time_of_an_event_does_not_depend_on_the_smallest_number_of_jobs() {
    for counts in [&[1, 2][..], &[2, 4], &[4]] {
        for row in table(Mode::Jobs, counts, 20).rows {
            about(row.event.as_ref().unwrap().0.estimate, EVENT as f64 / 1e9);
        }
    }
}

/// Nothing forks if one child is asked for: the only member is the program, with its start.
fn childless_at_one(run: &mut GroupRun) {
    match run.cell.processes {
        1 => {
            run.childless = true;
            run.members[0].cpu_ns = run.cpu_ns;
        }
        _ => run.parent_cpu_ns = Some(START),
    }
}

#[test]
fn the_cpu_time_of_an_event_is_without_the_start_of_a_program_that_forks_no_child_for_one() {
    for row in changed_table(Mode::Fork, &[1, 2], 20, childless_at_one).rows {
        about(row.event.as_ref().unwrap().0.estimate, EVENT as f64 / 1e9);
    }
    let mut runs = Vec::new();
    for round in 0..6 {
        runs.extend([1, 2].map(|processes| run(Mode::Fork, round, processes, Purpose::Timed, 20)));
        runs.push(run(Mode::Fork, round, 1, Purpose::OneEvent, 1));
    }
    runs.iter_mut().for_each(childless_at_one);
    let by_event =
        |runs: &[GroupRun]| summary(Mode::Fork, &[1, 2], 20, &["a"], &[vec![0, 1]], runs).smt[0].2.by_event;
    about(1.0 + by_event(&runs).unwrap().estimate, 2.0);
    // Without a run with one event the start is not known, which the children of the other cell do not have.
    runs.retain(|run| run.purpose == Purpose::Timed);
    assert!(by_event(&runs).is_err());
}

#[test]
fn the_failure_of_a_run_with_one_event_leaves_the_cell_as_it_is() {
    let failed = |purpose: Purpose| {
        changed_table(Mode::Jobs, &[2, 4], 20, |run| {
            if run.purpose == purpose && run.cell.processes == 2 && run.round == 5 {
                run.failure = Some("exit 1".into());
            }
        })
    };
    let table = failed(Purpose::OneEvent);
    assert_eq!((&table.rows[0].failure, table.rows[0].runs), (&None, 6));
    about(table.sequential.chosen(), START as f64 / 1e9);
    assert_eq!(failed(Purpose::Timed).rows[0].failure.as_deref(), Some("exit 1"));
}

#[test]
fn a_cell_with_a_failed_run_is_withheld_as_are_the_comparisons_and_laws_that_use_it() {
    let mut runs = rounds(&[("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3)]);
    of(&mut runs, "b", 2, 7).failure = Some("killed by signal 11".to_owned());
    let summary = summary(Mode::Jobs, &[1, 2, 3], 20, &["a", "b"], &[], &runs);
    let failed = Unfitted::Withheld(Cause::Failed { processes: 2, failed: 1, runs: 8 });
    assert_eq!(failed.to_string(), "with 2, 1 of 8 runs failed");
    let row = &summary.tables[1].rows[1];
    assert_eq!(row.failure.as_deref(), Some("killed by signal 11"));
    assert_eq!([row.throughput, row.speed_up, row.efficiency], [Err(failed); 3]);
    assert_eq!(row.parallel_time.err(), Some(failed));
    assert!(row.elapsed.is_ok(), "what was measured is shown");
    assert_eq!(summary.tables[1].amdahl.err(), Some(failed));
    assert!(summary.tables[1].rows[2].speed_up.is_ok() && summary.tables[0].amdahl.is_ok());
    let of = |processes| summary.comparisons.iter().find(|one| one.cell.processes == processes).unwrap();
    assert_eq!(of(2).throughput.err(), Some(failed));
    assert!(of(1).throughput.is_ok());
}

#[test]
fn a_failed_control_leaves_no_floor() {
    let mut runs = rounds(&[("a", 1), ("b", 1)]);
    let missing = summary(Mode::Jobs, &[1], 20, &["a", "b"], &[], &runs);
    assert_eq!(missing.floor.err(), Some(Unfitted::Nothing));
    runs.extend(rounds(&[("a", 1)]).into_iter().map(|mut run| {
        run.cell.variant = control_of("a");
        run
    }));
    assert!(summary(Mode::Jobs, &[1], 20, &["a", "b"], &[], &runs).floor.is_ok());
    of(&mut runs, &control_of("a"), 1, 7).failure = Some("killed".to_owned());
    let failed = Unfitted::Withheld(Cause::Failed { processes: 1, failed: 1, runs: 8 });
    assert_eq!(summary(Mode::Jobs, &[1], 20, &["a", "b"], &[], &runs).floor.err(), Some(failed));
}

#[test]
fn the_output_of_every_timed_run_is_compared_with_the_baselines_first() {
    let control = control_of("a");
    let cells = [("a", 1), ("a", 2), (control.as_str(), 1), ("b", 1), ("b", 2)];
    let different = |variant: &str, processes: usize, round: u32| {
        let mut runs = rounds(&cells);
        runs.iter_mut().for_each(|run| run.output_digest = Some(format!("of {}", run.cell.processes)));
        of(&mut runs, variant, processes, round).output_digest = Some("another".to_owned());
        let found = summary(Mode::Jobs, &[1, 2], 20, &["a", "b"], &[], &runs).different;
        found.into_iter().map(|(variant, cell)| (variant, cell.processes)).collect::<Vec<_>>()
    };
    for (variant, processes) in cells {
        for round in [1, 7] {
            assert_eq!(
                different(variant, processes as usize, round),
                [(variant.to_owned(), processes as usize)]
            );
        }
    }
    assert_eq!(different("b", 2, 0), [("b".to_owned(), 2)]);
}

#[test]
fn the_smt_yield_leaves_the_start_out_and_is_unknown_without_the_sequential_part() {
    // Two cores of two threads: four jobs share the work of two, and each has its own CPU.
    let cores = [vec![0, 2], vec![1, 3]];
    let mut runs = Vec::new();
    for round in 0..6 {
        runs.extend([2, 4].map(|processes| run(Mode::Jobs, round, processes, Purpose::Timed, 20)));
        runs.push(run(Mode::Jobs, round, 2, Purpose::OneEvent, 1));
        runs.push(run(Mode::Jobs, round, 2, Purpose::HalfOfEvents, 10));
    }
    let found = |runs: &[GroupRun]| summary(Mode::Jobs, &[2, 4], 20, &["a"], &cores, runs).smt[0].2;
    about(1.0 + found(&runs).by_event.unwrap().estimate, 2.0);
    about(1.0 + found(&runs).by_elapsed_less_sequential.unwrap().estimate, 2.0);
    let timed: Vec<GroupRun> = runs.iter().filter(|run| run.purpose == Purpose::Timed).cloned().collect();
    let reason = found(&timed).by_elapsed_less_sequential.unwrap_err();
    assert_eq!(reason.to_string(), "2 different numbers of events are needed, and there is 1");
    assert!(found(&timed).by_elapsed.is_ok());
    for run in runs.iter_mut().filter(|run| run.purpose == Purpose::HalfOfEvents) {
        let of_others = run.elapsed_ns;
        run.cpu_wait = Some(CpuWait {
            cpus: 2,
            wanting: 2,
            waited_ns: Some(of_others),
            longest_ns: Some(of_others),
            others_ns: of_others,
            ..CpuWait::default()
        });
    }
    let reason = found(&runs).by_elapsed_less_sequential.unwrap_err();
    assert!(matches!(reason, Unfitted::Withheld(Cause::Starved(_))), "{reason}");
    assert!(found(&runs).by_elapsed.is_ok());
}

/// A memory run of jobs that have written so much each, 20 kB of it the x32 runtime's, and map a library of 1 MB, of which the
/// kernel's PSS has `library`.
fn memory_run(variant: &str, round: u32, processes: u64, each: u64, library: u64) -> GroupRun {
    let mut run = run(Mode::Jobs, round, processes, Purpose::Memory, 20);
    run.cell.variant = variant.to_owned();
    let private = each * processes;
    let moment = Moment {
        pss: private + library,
        tree: Some(private - 20_000 * processes + 1_000_000),
        runtime: 20_000 * processes,
        ..Moment::default()
    };
    let member = MemberMemory { private_dirty: each, runtime_dirty: 20_000, ..MemberMemory::default() };
    run.memory = Some(Memory {
        moments: vec![moment],
        frozen: true,
        highest: Some(0),
        members: vec![member; processes as usize],
        ..Memory::default()
    });
    run
}

#[test]
fn memory_of_variants_does_not_depend_on_who_else_maps_their_libraries() {
    let with = |trees: bool| {
        let mut runs = rounds(&[("a", 1), ("b", 1)]);
        // The whole system maps the library of a; b's has no other user.
        runs.extend([
            memory_run("a", 8, 1, 10_020_000, 50_000),
            memory_run("b", 8, 1, 10_020_000, 1_000_000),
        ]);
        for moment in
            runs.iter_mut().filter_map(|run| run.memory.as_mut()).flat_map(|memory| &mut memory.moments)
        {
            moment.tree = moment.tree.filter(|_| trees);
        }
        summary(Mode::Jobs, &[1], 20, &["a", "b"], &[], &runs)
    };
    let found = with(true);
    assert_eq!(found.comparisons[0].memory, Some(Figure { estimate: 1.0, bounds: None, rounds: 1 }));
    let memory = found.tables[1].rows[0].memory.clone().unwrap();
    assert_eq!((memory.tree, memory.runtime), (Some(11_000_000.0), 20_000.0));
    // Campaigns recorded before have PSS alone, which says nothing of variants.
    assert_eq!(with(false).comparisons[0].memory, None);
}

#[test]
fn the_ratio_of_memory_has_an_interval_of_as_many_rounds_as_throughput_needs() {
    let of = |rounds_of_memory: u64| {
        let mut runs = rounds(&[("a", 1), ("b", 1)]);
        for round in 0..rounds_of_memory {
            // The rounds differ, and so a little do the ratios, about 1.5.
            let size = 10_000_000 + 500_000 * round;
            let number = 8 + round as u32;
            runs.push(memory_run("a", number, 1, size, 0));
            runs.push(memory_run("b", number, 1, size * 3 / 2 + 10_000 * round, 0));
        }
        summary(Mode::Jobs, &[1], 20, &["a", "b"], &[], &runs).comparisons[0].memory.unwrap()
    };
    let known = of(6);
    let bounds = known.bounds.unwrap();
    assert!(bounds.low < known.estimate && known.estimate < bounds.high, "{known:?}");
    assert!(bounds.low > 1.4 && bounds.high < 1.5 && known.rounds == 6, "{known:?}");
    assert_eq!((of(5).bounds, of(5).rounds), (None, 5));
}

#[test]
fn one_more_process_takes_no_less_than_each_has_written_for_itself() {
    // Two have less memory each than one alone: the line is below both.
    for (each, line, one_more, is_too_low) in
        [(8_020_000, 6_000_000.0, 8_000_000.0, true), (10_020_000, 10_000_000.0, 10_000_000.0, false)]
    {
        let runs = [memory_run("a", 0, 1, 10_020_000, 0), memory_run("a", 0, 2, each, 0)];
        let found = summary(Mode::Jobs, &[1, 2], 20, &["a"], &[], &runs);
        let table = &found.tables[0];
        about(table.marginal.as_ref().unwrap().slope.estimate, line);
        about(table.one_more().unwrap(), one_more);
        assert_eq!(table.is_line_too_low(), is_too_low);
        about(found.capacity[0].each, one_more);
        let fixed = found.capacity[0].fixed;
        assert_eq!(found.capacity[0].fit, ((LIMIT as f64 - fixed) / one_more) as u64);
    }
}

#[test]
fn capacities_are_compared_where_their_intervals_are_apart() {
    let gain = |rounds: u32, of_b: u64| {
        let mut runs = Vec::new();
        for round in 0..rounds {
            for (variant, each) in [("a", 10_020_000), ("b", of_b)] {
                let noise = u64::from(round * 3 % 7) * 20_000;
                runs.extend([1, 2, 4].map(|n| memory_run(variant, round, n, each + noise, 0)));
            }
        }
        let found = summary(Mode::Jobs, &[1, 2, 4], 20, &["a", "b"], &[], &runs).capacity;
        found[1].gain_over(&found[0])
    };
    assert_eq!(gain(1, 5_020_000), None, "one round has no interval");
    assert_eq!(gain(8, 10_000_000), None, "within the spread of rounds");
    assert!(gain(8, 5_020_000).is_some_and(|gain| (0.9..1.1).contains(&gain)));
}

#[test]
fn a_time_that_does_not_depend_on_the_events_has_no_throughput_and_no_time_of_an_event() {
    let constant = Unfitted::Withheld(Cause::Constant);
    // Times of 1 ms, which differ from run to run and not with the events.
    let noise = |run: &GroupRun| u64::from(run.round * 3 % 7) * 10_000 + run.events.unwrap_or(0) % 3 * 4_000;
    let table = |elapsed: bool, cpu: bool| {
        changed_table(Mode::Jobs, &[1, 2], 20, |run| {
            let noise = noise(run);
            if elapsed {
                run.elapsed_ns = START + noise;
            }
            if cpu {
                run.cpu_ns = START + noise;
            }
        })
    };
    for row in table(true, true).rows {
        assert_eq!([row.throughput, row.speed_up], [Err(constant); 2]);
        assert_eq!((row.parallel_time.is_err(), row.event.err()), (true, Some(constant)));
        assert!(row.elapsed.is_ok(), "what was measured is shown");
    }
    // A program that sleeps; a program that waits for its work.
    let sleeping = table(true, false);
    assert!(sleeping.rows[0].throughput == Err(constant) && sleeping.rows[0].event.is_ok());
    let waiting = table(false, true);
    assert!(waiting.rows[0].throughput.is_ok() && waiting.rows[0].event.as_ref().err() == Some(&constant));
    assert_eq!(table(true, true).amdahl.err().map(|why| why.to_string()), Some(constant.to_string()));
}
