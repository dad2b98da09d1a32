//! The heap as the process sees it beside the heap as the system sees it, and where they part: what rauschmayr-2013 found to
//! unmask an allocator (section 3.5, stressEvents).

use crate::heap::history::Moment;

/// What the system has given the process for its heap at one moment. Bytes, resident.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemMoment {
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub at_ns: u64,
    /// What `brk(2)` grows.
    pub heap: u64,
    /// Anonymous mappings that are no stacks.
    pub mmapped: u64,
}

/// The course of one process of the tree.
#[derive(Debug, Clone, Copy)]
pub struct Course<'a> {
    /// When its log began, by CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// In the order of time.
    pub moments: &'a [Moment],
}

/// Both views at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Both {
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub at_ns: u64,
    /// Bytes that the program has asked for and not given back, those that it mapped by itself among them.
    pub asked: u64,
    /// What the allocator uses for its live blocks, and the program's own mappings.
    pub live: u64,
    /// Of `live`: in the main arena, which is the heap.
    pub live_main: u64,
    /// What is resident of it all.
    pub resident: u64,
    /// Of `resident`: the heap.
    pub resident_heap: u64,
}

impl Both {
    /// What is resident although nobody asks for it: kept by the allocator. 0 where blocks were asked for and never touched.
    pub fn kept(&self) -> u64 {
        self.resident.saturating_sub(self.live)
    }

    /// Of [`Both::kept`]: within the heap, whose top alone can be given back.
    pub fn kept_in_heap(&self) -> u64 {
        self.resident_heap.saturating_sub(self.live_main).min(self.kept())
    }

    /// What was asked for and never touched, so that the system has not given it yet.
    pub fn untouched(&self) -> u64 {
        self.live.saturating_sub(self.resident)
    }
}

/// Both views over a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Views {
    /// In the order of time, from the first reading of the system's view on: whenever one of the two changed, and at the end.
    pub moments: Vec<Both>,
    /// Means over time; `at_ns` is the length of time.
    pub mean: Both,
}

impl Views {
    /// Puts them beside each other, up to `end_ns`. `None`: the system's view was never read.
    pub fn of(courses: &[Course], system: &[SystemMoment], end_ns: u64) -> Option<Views> {
        let first = system.first()?;
        let ends = courses.iter().filter_map(|course| {
            course.moments.last().map(|last| course.began_ns.saturating_add(last.time_ns))
        });
        let end = ends.max().unwrap_or(0).max(system.last()?.at_ns).max(end_ns);
        // Each view holds until it changes: what the system gave until the next reading, and a reading follows every change
        // that is seen.
        let of_courses = courses.iter().flat_map(|course| {
            course.moments.iter().map(|moment| course.began_ns.saturating_add(moment.time_ns))
        });
        let of_system = system.iter().map(|moment| moment.at_ns);
        let mut times: Vec<u64> =
            of_courses.chain(of_system).chain([end]).filter(|at| *at >= first.at_ns).collect();
        times.sort_unstable();
        times.dedup();
        let moments: Vec<Both> = times
            .into_iter()
            .map(|at_ns| {
                let index = system.partition_point(|moment| moment.at_ns <= at_ns);
                let given = index.checked_sub(1).map_or(*first, |index| system[index]);
                both(courses, &SystemMoment { at_ns, ..given })
            })
            .collect();
        let length = end.saturating_sub(first.at_ns);
        let mut sums = [0f64; 5];
        for pair in moments.windows(2) {
            let time = pair[1].at_ns.saturating_sub(pair[0].at_ns) as f64;
            let now = &pair[0];
            for (sum, value) in
                sums.iter_mut().zip([now.asked, now.live, now.live_main, now.resident, now.resident_heap])
            {
                *sum += value as f64 * time;
            }
        }
        let mean = if length == 0 {
            Both { at_ns: 0, ..moments[0] }
        } else {
            let [asked, live, live_main, resident, resident_heap] =
                sums.map(|sum| (sum / length as f64).round() as u64);
            Both { at_ns: length, asked, live, live_main, resident, resident_heap }
        };
        Some(Views { moments, mean })
    }

    /// The moment at which the system gave most.
    pub fn peak(&self) -> Both {
        self.moments.iter().copied().rev().max_by_key(|both| both.resident).unwrap_or_default()
    }
}

fn both(courses: &[Course], system: &SystemMoment) -> Both {
    let mut both = Both {
        at_ns: system.at_ns,
        resident: system.heap + system.mmapped,
        resident_heap: system.heap,
        ..Both::default()
    };
    for course in courses {
        let Some(since) = system.at_ns.checked_sub(course.began_ns) else { continue };
        let index = course.moments.partition_point(|moment| moment.time_ns <= since);
        let Some(now) = index.checked_sub(1).map(|index| &course.moments[index]) else { continue };
        both.asked += now.bytes + now.own_bytes;
        both.live += now.main_bytes + now.mapped_bytes + now.arena_bytes + now.own_bytes;
        both.live_main += now.main_bytes;
    }
    both
}

/// A saving seen by the system that the program's own asking does not explain, or the other way round: shares of the first
/// variant's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parting {
    /// `(a - b) / a` of what the system gave.
    pub system: f64,
    /// Of what the program asked for.
    pub program: f64,
}

/// Compares the means of two runs; `None` where either has nothing.
pub fn parting(a: &Both, b: &Both) -> Option<Parting> {
    let saving = |a: u64, b: u64| (a > 0).then(|| (a as f64 - b as f64) / a as f64);
    Some(Parting { system: saving(a.resident, b.resident)?, program: saving(a.asked, b.asked)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(time_ns: u64, bytes: u64) -> Moment {
        Moment { time_ns, bytes, main_bytes: bytes, ..Moment::default() }
    }

    #[test]
    fn what_was_given_back_and_is_still_resident_is_kept_by_the_allocator() {
        let moments = [moment(0, 100), moment(50, 20)];
        let system = [
            SystemMoment { at_ns: 1000, heap: 100, mmapped: 0 },
            SystemMoment { at_ns: 1050, heap: 100, mmapped: 0 },
            SystemMoment { at_ns: 1100, heap: 100, mmapped: 0 },
        ];
        let views = Views::of(&[Course { began_ns: 1000, moments: &moments }], &system, 0).unwrap();
        assert_eq!(views.moments[2].kept(), 80);
        assert_eq!(views.moments[2].kept_in_heap(), 80);
        assert_eq!((views.mean.asked, views.mean.resident), (60, 100));
    }

    #[test]
    fn what_the_program_gave_back_after_the_last_reading_counts_from_then_on() {
        let moments = [moment(0, 100), moment(20, 0)];
        let system = [SystemMoment { at_ns: 10, heap: 100, mmapped: 0 }];
        let views = Views::of(&[Course { began_ns: 0, moments: &moments }], &system, 110).unwrap();
        assert_eq!((views.mean.asked, views.mean.resident), (10, 100));
    }

    #[test]
    fn what_was_asked_for_and_never_touched_is_not_kept_by_anybody() {
        let moments = [moment(0, 500)];
        let system = [SystemMoment { at_ns: 1, heap: 20, mmapped: 10 }];
        let views = Views::of(&[Course { began_ns: 0, moments: &moments }], &system, 0).unwrap();
        assert_eq!((views.moments[0].kept(), views.moments[0].untouched()), (0, 470));
    }

    #[test]
    fn a_saving_of_half_that_the_program_does_not_ask_for_is_told_from_one_that_it_does() {
        let a = Both { asked: 100, resident: 200, ..Both::default() };
        let b = Both { asked: 95, resident: 100, ..Both::default() };
        assert_eq!(parting(&a, &b), Some(Parting { system: 0.5, program: 0.05 }));
        assert_eq!(parting(&Both::default(), &b), None);
    }
}
