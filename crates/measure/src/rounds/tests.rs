//! The loop with an executor that starts nothing: each participant ends as a script says.

use std::collections::VecDeque;

use widthwise_experiment::schedule::Order;

use super::*;

impl Outcome for Ending {
    fn ending(&self) -> &Ending {
        self
    }
}

const FAILED: Ending = Ending::Exit { status: 1 };

/// Ends the run of each participant as scripted, `done` after the end of its script; up to `depth` runs are in flight.
struct MockExecutor {
    schedule: Schedule,
    scripts: Vec<VecDeque<Ending>>,
    depth: usize,
    in_flight: VecDeque<(u32, Slot)>,
    /// The round from which runs begin, and its slots that have not begun.
    begins: (u32, VecDeque<Slot>),
    started: u32,
    drained: u32,
}

impl MockExecutor {
    fn new(participants: usize, depth: usize) -> MockExecutor {
        MockExecutor {
            schedule: schedule(participants),
            scripts: vec![VecDeque::new(); participants],
            depth,
            in_flight: VecDeque::new(),
            begins: (0, VecDeque::new()),
            started: 0,
            drained: 0,
        }
    }

    fn fails(mut self, participant: usize, endings: &[Ending]) -> MockExecutor {
        self.scripts[participant] = endings.iter().cloned().collect();
        self
    }
}

impl Executor for MockExecutor {
    type Result = Ending;

    fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    fn has_ended(&self) -> bool {
        !self.in_flight.is_empty()
    }

    fn begin(&mut self, (round, slots): (u32, &[Slot]), last: u32, out: &[usize]) -> Result<(), RunError> {
        if self.in_flight.is_empty() {
            self.begins = (round, slots.iter().copied().collect());
        }
        while self.in_flight.len() < self.depth {
            match self.begins.1.pop_front() {
                Some(slot) if out.contains(&slot.participant) => {}
                Some(slot) => {
                    self.in_flight.push_back((self.begins.0, slot));
                    self.started += 1;
                }
                None if self.begins.0 >= last => return Ok(()),
                None => {
                    let next = self.begins.0 + 1;
                    self.begins = (next, self.schedule.round(next).into());
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, cancelled: &dyn Fn() -> bool) -> Result<Option<(u32, Slot, Ending)>, RunError> {
        let Some((round, slot)) = self.in_flight.pop_front() else { return Ok(None) };
        let scripted = self.scripts[slot.participant].pop_front().unwrap_or(Ending::Done);
        let ending = if cancelled() { Ending::Signal { signal: libc::SIGKILL } } else { scripted };
        Ok(Some((round, slot, ending)))
    }

    /// The run that began first is made, all others are skipped.
    fn drain(&mut self, _cancelled: &dyn Fn() -> bool) -> Result<bool, RunError> {
        self.drained += 1;
        self.in_flight.truncate(1);
        Ok(!self.in_flight.is_empty())
    }
}

/// What the loop reported.
#[derive(Debug, Clone, PartialEq)]
enum Event {
    Begins(u32, RoundKind, u32),
    Run(u32, usize, Ending),
    Excluded(usize),
    Ended(u32),
}

/// Notes everything; stops after so many timed rounds; asks for an end after so many runs.
struct Notes {
    events: Vec<Event>,
    rounds: u32,
    certain: u32,
    interrupt: Option<(usize, u8)>,
    asked: AtomicU8,
    timed: u32,
    /// How many events were kept.
    kept: usize,
}

impl Notes {
    fn until(rounds: u32) -> Notes {
        let (events, asked) = (Vec::new(), AtomicU8::new(0));
        Notes { events, rounds, certain: 0, interrupt: None, asked, timed: 0, kept: 0 }
    }

    fn runs(&self) -> Vec<(u32, usize)> {
        let run = |event: &Event| match event {
            Event::Run(round, participant, _) => Some((*round, *participant)),
            _ => None,
        };
        self.events.iter().filter_map(run).collect()
    }
}

impl RoundObserver<Ending> for Notes {
    type Error = &'static str;

    fn interrupted(&self) -> &AtomicU8 {
        &self.asked
    }

    fn round_begins(&mut self, number: u32, kind: RoundKind, planned: u32) -> Result<(), &'static str> {
        self.events.push(Event::Begins(number, kind, planned));
        Ok(())
    }

    fn pauses(&mut self) -> Result<(), &'static str> {
        self.kept = self.events.len();
        Ok(())
    }

    fn certain(&self) -> u32 {
        self.certain
    }

    fn run_ended(
        &mut self,
        place: RunPlace,
        result: &Ending,
        _files: Option<&RunFiles>,
    ) -> Result<(), &'static str> {
        self.events.push(Event::Run(place.round, place.participant, result.clone()));
        if let Some((_, times)) = self.interrupt.filter(|(after, _)| self.runs().len() == *after) {
            self.asked.store(times, Ordering::Relaxed);
        }
        Ok(())
    }

    fn excluded(
        &mut self,
        participant: usize,
        _result: &Ending,
        _files: Option<&RunFiles>,
    ) -> Result<(), &'static str> {
        self.events.push(Event::Excluded(participant));
        Ok(())
    }

    fn round_ended(&mut self, number: u32, kind: RoundKind, _noise: Noise) -> Result<Next, &'static str> {
        self.events.push(Event::Ended(number));
        self.timed += u32::from(kind == RoundKind::Timed);
        Ok(if self.timed >= self.rounds { Next::Stop } else { Next::Round })
    }
}

fn schedule(participants: usize) -> Schedule {
    Schedule { seed: 7, participants, order: Order::Balanced, layouts: 1, rounds_a_layout: 2 }
}

fn plan(participants: usize) -> RoundPlan {
    RoundPlan {
        schedule: schedule(participants),
        first_round: 0,
        warmup: 0,
        kind: RoundKind::Timed,
        most: None,
        most_failures: 3,
        needed: Vec::new(),
        leaders: Vec::new(),
        cancel_at: 2,
        out: Vec::new(),
    }
}

/// The participants of each round in the schedule's order.
fn scheduled(rounds: std::ops::Range<u32>, participants: usize) -> Vec<(u32, usize)> {
    let of =
        |number| schedule(participants).round(number).into_iter().map(move |slot| (number, slot.participant));
    rounds.flat_map(of).collect()
}

#[test]
fn runs_follow_the_schedule_with_any_number_of_runs_in_flight() {
    for depth in [1, 3, 20] {
        let mut notes = Notes { certain: 2, ..Notes::until(4) };
        let plan = RoundPlan { warmup: 1, ..plan(3) };
        let end = make(&plan, &mut MockExecutor::new(3, depth), &mut notes).unwrap();
        assert_eq!(end, End::Enough);
        let runs = notes.runs();
        assert_eq!(runs[..15], scheduled(0..5, 3), "{depth} in flight");
        assert_eq!(notes.events[0], Event::Begins(0, RoundKind::Warmup, 3));
        // Rounds that had begun ahead are completed.
        assert_eq!(runs.len() % 3, 0);
    }
}

#[test]
fn the_last_round_is_kept_when_the_rounds_end_and_not_only_before_a_later_run() {
    for interrupt in [None, Some((4, 1)), Some((4, 2))] {
        let mut notes = Notes { interrupt, ..Notes::until(3) };
        make(&plan(3), &mut MockExecutor::new(3, 1), &mut notes).unwrap();
        assert_eq!(notes.kept, notes.events.len(), "{interrupt:?}");
    }
}

#[test]
fn a_resumed_campaign_has_the_orders_that_it_would_have_had() {
    let mut whole = Notes::until(6);
    make(&plan(4), &mut MockExecutor::new(4, 1), &mut whole).unwrap();
    let mut resumed = Notes::until(3);
    make(&RoundPlan { first_round: 3, ..plan(4) }, &mut MockExecutor::new(4, 1), &mut resumed).unwrap();
    assert_eq!(resumed.runs(), whole.runs()[12..]);
}

#[test]
fn a_participant_is_excluded_after_its_third_failure_and_the_others_continue() {
    let mut notes = Notes::until(5);
    let mut executor = MockExecutor::new(3, 4).fails(1, &[FAILED, FAILED, FAILED]);
    assert_eq!(make(&plan(3), &mut executor, &mut notes).unwrap(), End::Enough);
    let of = |participant| notes.runs().iter().filter(|(_, one)| *one == participant).count();
    assert_eq!((of(0), of(1), of(2)), (5, 3, 5));
    assert_eq!(notes.events.iter().filter(|event| **event == Event::Excluded(1)).count(), 1);
    let planned: Vec<u32> = notes
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Begins(_, _, planned) => Some(*planned),
            _ => None,
        })
        .collect();
    assert_eq!(planned, [3, 3, 3, 2, 2]);
}

#[test]
fn one_failure_in_a_warm_up_round_excludes() {
    let mut notes = Notes::until(2);
    let mut executor = MockExecutor::new(2, 1).fails(1, &[FAILED]);
    make(&RoundPlan { warmup: 1, ..plan(2) }, &mut executor, &mut notes).unwrap();
    assert!(notes.events.contains(&Event::Excluded(1)));
    assert_eq!(notes.runs().iter().filter(|(_, one)| *one == 1).count(), 1);
}

#[test]
fn a_failure_excludes_those_that_it_leads_in_the_same_round() {
    let leaders = vec![0, 1, 0, 1];
    let mut notes = Notes::until(2);
    let mut executor = MockExecutor::new(4, 1).fails(0, &[FAILED]);
    let plan = RoundPlan { leaders, most_failures: 1, ..plan(4) };
    make(&plan, &mut executor, &mut notes).unwrap();
    let order: Vec<usize> = notes.runs().iter().map(|(_, one)| *one).collect();
    let failed = order.iter().position(|one| *one == 0).unwrap();
    assert!(!order[failed + 1..].contains(&2), "{order:?}");
    assert_eq!(order.iter().filter(|one| **one == 1).count(), 2);
}

#[test]
fn the_failure_of_one_that_is_led_excludes_itself_alone() {
    let mut notes = Notes::until(3);
    let mut executor = MockExecutor::new(3, 1).fails(1, &[FAILED]);
    let plan = RoundPlan { leaders: vec![0, 0, 0], most_failures: 1, ..plan(3) };
    make(&plan, &mut executor, &mut notes).unwrap();
    let made = |one: usize| notes.runs().iter().filter(|(_, other)| *other == one).count();
    assert_eq!([made(0), made(1), made(2)], [3, 1, 3]);
}

#[test]
fn without_the_baseline_the_rounds_end() {
    let mut notes = Notes::until(9);
    let mut executor = MockExecutor::new(3, 1).fails(2, &[FAILED, FAILED, FAILED]);
    let plan = RoundPlan { needed: vec![0, 2], ..plan(3) };
    assert_eq!(make(&plan, &mut executor, &mut notes).unwrap(), End::NoBaseline);
    assert_eq!(notes.events.last(), Some(&Event::Excluded(2)));
}

#[test]
fn when_all_are_excluded_the_rounds_end() {
    let mut notes = Notes::until(9);
    let mut executor = MockExecutor::new(2, 1).fails(0, &[FAILED]).fails(1, &[FAILED]);
    let plan = RoundPlan { most_failures: 1, ..plan(2) };
    assert_eq!(make(&plan, &mut executor, &mut notes).unwrap(), End::Enough);
    assert_eq!(notes.runs().len(), 2);
}

#[test]
fn a_number_of_rounds_is_kept() {
    let mut notes = Notes::until(100);
    make(&RoundPlan { most: Some(3), ..plan(2) }, &mut MockExecutor::new(2, 1), &mut notes).unwrap();
    assert_eq!(notes.events.last(), Some(&Event::Ended(2)));
}

#[test]
fn asked_once_the_present_run_ends_and_what_is_in_flight_is_drained() {
    let mut notes = Notes { interrupt: Some((4, 1)), certain: 9, ..Notes::until(9) };
    let mut executor = MockExecutor::new(3, 5);
    assert_eq!(make(&plan(3), &mut executor, &mut notes).unwrap(), End::Interrupted);
    // The run that the launcher had started is made, and kept; no other begins.
    assert_eq!(notes.runs(), scheduled(0..2, 3)[..5]);
    assert!(executor.drained > 0);
    assert!(!notes.events.contains(&Event::Ended(1)));
}

#[test]
fn asked_twice_the_present_run_is_cancelled_and_not_kept() {
    let mut notes = Notes { interrupt: Some((4, 2)), ..Notes::until(9) };
    let end = make(&plan(3), &mut MockExecutor::new(3, 1), &mut notes).unwrap();
    assert_eq!(end, End::Interrupted);
    assert_eq!(notes.runs().len(), 4);
}

#[test]
fn an_interruption_at_the_end_of_a_round_keeps_the_whole_round() {
    let mut notes = Notes { interrupt: Some((3, 1)), ..Notes::until(9) };
    let end = make(&plan(3), &mut MockExecutor::new(3, 1), &mut notes).unwrap();
    assert_eq!((end, notes.events.last()), (End::Interrupted, Some(&Event::Ended(0))));
}

#[test]
fn runs_that_began_for_an_excluded_participant_are_dropped() {
    let mut notes = Notes { certain: 9, ..Notes::until(6) };
    let mut executor = MockExecutor::new(2, 12).fails(1, &[FAILED, FAILED, FAILED]);
    assert_eq!(make(&plan(2), &mut executor, &mut notes).unwrap(), End::Enough);
    assert_eq!(notes.runs().iter().filter(|(_, one)| *one == 1).count(), 3);
    assert!(executor.started as usize > notes.runs().len());
}

#[test]
fn an_observer_that_cannot_keep_a_round_ends_the_rounds() {
    struct Full(AtomicU8);
    impl RoundObserver<Ending> for Full {
        type Error = &'static str;
        fn interrupted(&self) -> &AtomicU8 {
            &self.0
        }
        fn round_begins(&mut self, _: u32, _: RoundKind, _: u32) -> Result<(), &'static str> {
            Err("the disk is full")
        }
        fn run_ended(&mut self, _: RunPlace, _: &Ending, _: Option<&RunFiles>) -> Result<(), &'static str> {
            Ok(())
        }
        fn round_ended(&mut self, _: u32, _: RoundKind, _: Noise) -> Result<Next, &'static str> {
            Ok(Next::Round)
        }
    }
    let end = make(&plan(1), &mut MockExecutor::new(1, 1), &mut Full(AtomicU8::new(0)));
    assert_eq!(end.unwrap_err().to_string(), "the disk is full");
}
