//! Summaries of runs whose times follow from known costs.

use widthwise_experiment::scale::{GroupRun, Mode, Plan, Purpose};

use super::{summarise, Question, Table};

/// A job or child begins in this time, and needs this time for an event; nanoseconds.
const START: u64 = 1_000_000;
const EVENT: u64 = 10_000_000;

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
        memory_limit: 0,
    };
    let question = Question {
        plan: &plan,
        variants: &["a".to_owned()],
        placements: &[("cores".to_owned(), vec![0, 1, 2, 3])],
        cores: &[],
        confidence: 0.95,
        seed: 1,
        memory: 0,
    };
    runs.iter_mut().for_each(change);
    summarise(question, &runs).tables.remove(0)
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
            about(table.rows[0].time.as_ref().unwrap().estimate, parallel);
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
