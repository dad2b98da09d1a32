//! RSS against heap: what the system gives beside what the program allocates. The difference shows the allocator's influence
//! (rauschmayr-2013, section 3.5, stressEvents).

use widthwise_heap_log::history::Moment;

/// The RSS of a process's heap at one moment, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemMoment {
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub at_ns: u64,
    /// What `brk(2)` grows.
    pub heap: u64,
    /// Anonymous mappings that are no stacks.
    pub mmapped: u64,
    /// For how long the sample is known to be valid, in nanoseconds. Absent: until the next sample.
    pub valid_ns: Option<u64>,
}

impl SystemMoment {
    /// When it ceases to be valid.
    fn valid_until_ns(&self) -> u64 {
        self.valid_ns.map_or(u64::MAX, |valid_ns| self.at_ns.saturating_add(valid_ns))
    }
}

/// The heap of one process of the tree, over time.
#[derive(Debug, Clone, Copy)]
pub struct Course<'a> {
    /// When its log began, by CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// When the process ended, by CLOCK_MONOTONIC: it has no memory afterwards. Absent: it ran to the end.
    pub ended_ns: Option<u64>,
    /// In the order of time.
    pub moments: &'a [Moment],
}

/// RSS and heap at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RssAndHeap {
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub at_ns: u64,
    /// Bytes that the program has allocated and not freed, and those that it mapped itself.
    pub asked: u64,
    /// What the allocator uses for its live blocks, and the program's own mappings.
    pub live: u64,
    /// Of `live`: in the main arena, which is the heap.
    pub live_main: u64,
    /// The RSS of heap and anonymous mappings.
    pub resident: u64,
    /// Of `resident`: the heap.
    pub resident_heap: u64,
    /// Whether the RSS sample is known to be valid from this moment to the next.
    pub is_valid: bool,
}

impl RssAndHeap {
    /// Resident but not allocated: kept by the allocator. At least so much: untouched blocks in mappings may hide what it keeps in
    /// mappings, and those in the heap segment what it keeps there, but the former hide nothing of the latter.
    pub fn kept(&self) -> u64 {
        self.resident.saturating_sub(self.live).max(self.kept_in_heap())
    }

    /// Of [`RssAndHeap::kept`]: within the heap segment, of which only the top can be returned to the system.
    pub fn kept_in_heap(&self) -> u64 {
        self.resident_heap.saturating_sub(self.live_main)
    }

    /// Allocated but never touched, so that the system has not given the pages yet: as much at least.
    pub fn untouched(&self) -> u64 {
        self.live.saturating_add(self.kept()).saturating_sub(self.resident)
    }
}

/// RSS and heap over a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RssAgainstHeap {
    /// In the order of time, from the first RSS sample on: each moment at which one of the two changed, and the end.
    pub moments: Vec<RssAndHeap>,
    /// Means over time; `at_ns` is the length of time.
    pub mean: RssAndHeap,
    /// The bytes that the allocator kept for at least [`LONG`] of the time, while samples were valid. Unlike a mean, this does
    /// not depend on how long the phases of a program take; unlike a peak, it does not depend on the time between a release
    /// and the next sample.
    pub kept_long: u64,
    /// Likewise for untouched bytes.
    pub untouched_long: u64,
}

/// The share of a run that counts as long.
pub const LONG: f64 = 0.05;

impl RssAgainstHeap {
    /// Compares heap and RSS up to `end_ns`. `None`: there is no RSS sample.
    pub fn of(courses: &[Course], system: &[SystemMoment], end_ns: u64) -> Option<RssAgainstHeap> {
        let first = system.first()?;
        let ends = courses.iter().filter_map(|course| {
            course.moments.last().map(|last| course.began_ns.saturating_add(last.time_ns))
        });
        let end = ends.max().unwrap_or(0).max(system.last()?.at_ns).max(end_ns);
        // A heap holds until its next change, and an RSS sample until the next sample.
        let of_courses = courses.iter().flat_map(|course| {
            course.moments.iter().map(|moment| course.began_ns.saturating_add(moment.time_ns))
        });
        let ends = courses.iter().filter_map(|course| course.ended_ns);
        let of_system = system.iter().flat_map(|moment| [moment.at_ns, moment.valid_until_ns().min(end)]);
        let mut times: Vec<u64> =
            of_courses.chain(ends).chain(of_system).chain([end]).filter(|at| *at >= first.at_ns).collect();
        times.sort_unstable();
        times.dedup();
        let mut programs = Sum::of(courses);
        let moments: Vec<RssAndHeap> = times
            .into_iter()
            .map(|at_ns| {
                let index = system.partition_point(|moment| moment.at_ns <= at_ns);
                let given = index.checked_sub(1).map_or(*first, |index| system[index]);
                programs.at(at_ns, &given)
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
            RssAndHeap { at_ns: 0, ..moments[0] }
        } else {
            let [asked, live, live_main, resident, resident_heap] =
                sums.map(|sum| (sum / length as f64).round() as u64);
            RssAndHeap { at_ns: length, asked, live, live_main, resident, resident_heap, is_valid: true }
        };
        let (kept_long, untouched_long) =
            (long(&moments, RssAndHeap::kept), long(&moments, RssAndHeap::untouched));
        Some(RssAgainstHeap { moments, mean, kept_long, untouched_long })
    }

    /// The moment with the largest RSS.
    pub fn peak(&self) -> RssAndHeap {
        self.moments.iter().copied().rev().max_by_key(|point| point.resident).unwrap_or_default()
    }
}

/// The most that there was for [`LONG`] of the time. Times without a valid sample show no amount: on a busy machine they may
/// be longer than that, and the sample before them may be that of an earlier phase.
fn long(moments: &[RssAndHeap], of: fn(&RssAndHeap) -> u64) -> u64 {
    let level = |pair: &[RssAndHeap]| {
        let amount = if pair[0].is_valid { of(&pair[0]) } else { 0 };
        (amount, pair[1].at_ns.saturating_sub(pair[0].at_ns))
    };
    let mut levels: Vec<(u64, u64)> = moments.windows(2).map(level).collect();
    levels.sort_unstable_by(|a, b| b.cmp(a));
    let length: f64 = levels.iter().map(|(_, time)| *time as f64).sum();
    let mut passed = 0.0;
    let mut at_least = levels.iter().skip_while(|(_, time)| {
        passed += *time as f64;
        passed < LONG * length
    });
    at_least.next().map_or(0, |(level, _)| *level)
}

/// The sum over several processes' courses, as time goes on.
struct Sum<'a> {
    courses: &'a [Course<'a>],
    /// The moments of all courses that are still to come, the next one last: when it is, and its course and index. The index
    /// behind a course's last moment is its process's end.
    coming: Vec<(u64, usize, usize)>,
    asked: u64,
    live: u64,
    live_main: u64,
}

impl<'a> Sum<'a> {
    fn of(courses: &'a [Course<'a>]) -> Sum<'a> {
        let mut coming = Vec::new();
        for (course, of) in courses.iter().enumerate() {
            let at = of.moments.iter().map(|moment| of.began_ns.saturating_add(moment.time_ns));
            coming.extend(at.enumerate().map(|(index, at_ns)| (at_ns, course, index)));
            let last = of.moments.last().map_or(0, |last| of.began_ns.saturating_add(last.time_ns));
            coming.extend(of.ended_ns.map(|ended_ns| (ended_ns.max(last), course, of.moments.len())));
        }
        coming.sort_unstable_by(|a, b| b.cmp(a));
        Sum { courses, coming, asked: 0, live: 0, live_main: 0 }
    }

    /// RSS and heap at a moment, which must not be earlier than that of the last call.
    fn at(&mut self, at_ns: u64, system: &SystemMoment) -> RssAndHeap {
        while let Some((_, course, index)) = self.coming.pop_if(|(coming, _, _)| *coming <= at_ns) {
            let moments = self.courses[course].moments;
            let before = index.checked_sub(1).map_or(Moment::default(), |before| moments[before]);
            let now = moments.get(index).copied().unwrap_or_default();
            // The sums saturate: a hostile log may hold any number of bytes.
            let live = |moment: &Moment| moment.chunk_bytes().saturating_add(moment.own_bytes);
            let change = |sum: u64, before: u64, now: u64| sum.saturating_sub(before).saturating_add(now);
            self.asked = change(self.asked, before.asked_bytes(), now.asked_bytes());
            self.live = change(self.live, live(&before), live(&now));
            self.live_main = change(self.live_main, before.main_bytes, now.main_bytes);
        }
        RssAndHeap {
            at_ns,
            asked: self.asked,
            live: self.live,
            live_main: self.live_main,
            resident: system.heap.saturating_add(system.mmapped),
            resident_heap: system.heap,
            is_valid: at_ns < system.valid_until_ns(),
        }
    }
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
            SystemMoment { at_ns: 1000, heap: 100, mmapped: 0, valid_ns: None },
            SystemMoment { at_ns: 1050, heap: 100, mmapped: 0, valid_ns: None },
            SystemMoment { at_ns: 1100, heap: 100, mmapped: 0, valid_ns: None },
        ];
        let compared =
            RssAgainstHeap::of(&[Course { began_ns: 1000, ended_ns: None, moments: &moments }], &system, 0)
                .unwrap();
        assert_eq!(compared.moments[2].kept(), 80);
        assert_eq!(compared.moments[2].kept_in_heap(), 80);
        assert_eq!((compared.mean.asked, compared.mean.resident), (60, 100));
    }

    #[test]
    fn what_is_kept_for_a_moment_is_not_kept_for_long() {
        let moments = [moment(0, 100), moment(50, 20), moment(52, 90)];
        let system = [SystemMoment { at_ns: 0, heap: 100, mmapped: 0, valid_ns: None }];
        let compared =
            RssAgainstHeap::of(&[Course { began_ns: 0, ended_ns: None, moments: &moments }], &system, 100)
                .unwrap();
        assert_eq!((compared.kept_long, compared.untouched_long), (10, 0));
    }

    #[test]
    fn a_sample_that_is_not_known_to_be_valid_shows_nothing_that_is_kept_for_long() {
        let moments = [moment(0, 100), moment(20, 10)];
        let sample =
            |at_ns, heap, valid_ns| SystemMoment { at_ns, heap, mmapped: 0, valid_ns: Some(valid_ns) };
        let kept = |valid_ns| {
            let system = [sample(0, 100, valid_ns), sample(40, 10, 60)];
            let course = Course { began_ns: 0, ended_ns: None, moments: &moments };
            RssAgainstHeap::of(&[course], &system, 100).unwrap().kept_long
        };
        // From 20 to 40 the program has 10 of the 100 bytes that the first sample saw.
        assert_eq!((kept(40), kept(26), kept(23), kept(20)), (90, 90, 0, 0));
    }

    #[test]
    fn what_the_program_gave_back_after_the_last_reading_counts_from_then_on() {
        let moments = [moment(0, 100), moment(20, 0)];
        let system = [SystemMoment { at_ns: 10, heap: 100, mmapped: 0, valid_ns: None }];
        let compared =
            RssAgainstHeap::of(&[Course { began_ns: 0, ended_ns: None, moments: &moments }], &system, 110)
                .unwrap();
        assert_eq!((compared.mean.asked, compared.mean.resident), (10, 100));
    }

    #[test]
    fn the_courses_of_several_processes_are_summed_from_their_own_beginnings_on() {
        let (parent, child) = ([moment(0, 100), moment(30, 10)], [moment(0, 7), moment(15, 0)]);
        let system = [SystemMoment { at_ns: 10, heap: 5, mmapped: 0, valid_ns: None }];
        let course = |began_ns, moments| Course { began_ns, ended_ns: None, moments };
        let courses = [course(10, &parent[..]), course(30, &child[..])];
        let compared = RssAgainstHeap::of(&courses, &system, 60).unwrap();
        let asked: Vec<(u64, u64)> =
            compared.moments.iter().map(|point| (point.at_ns, point.asked)).collect();
        assert_eq!(asked, [(10, 100), (30, 107), (40, 17), (45, 10), (60, 10)]);
    }

    #[test]
    fn a_process_that_is_gone_has_nothing_whatever_it_did_not_give_back() {
        let (parent, child) = ([moment(0, 100)], [moment(0, 7)]);
        let system = [SystemMoment { at_ns: 10, heap: 5, mmapped: 0, valid_ns: None }];
        let courses = [
            Course { began_ns: 10, ended_ns: None, moments: &parent },
            Course { began_ns: 20, ended_ns: Some(30), moments: &child },
        ];
        let compared = RssAgainstHeap::of(&courses, &system, 60).unwrap();
        let asked: Vec<(u64, u64)> =
            compared.moments.iter().map(|point| (point.at_ns, point.asked)).collect();
        assert_eq!(asked, [(10, 100), (20, 107), (30, 100), (60, 100)]);
    }

    #[test]
    fn what_was_asked_for_and_never_touched_is_not_kept_by_anybody() {
        let moments = [moment(0, 500)];
        let system = [SystemMoment { at_ns: 1, heap: 20, mmapped: 10, valid_ns: None }];
        let compared =
            RssAgainstHeap::of(&[Course { began_ns: 0, ended_ns: None, moments: &moments }], &system, 0)
                .unwrap();
        assert_eq!((compared.moments[0].kept(), compared.moments[0].untouched()), (0, 470));
    }

    #[test]
    fn an_untouched_mapping_does_not_hide_what_the_allocator_keeps_in_the_heap() {
        let moments = [Moment { bytes: 2_020, main_bytes: 20, mapped_bytes: 2_000, ..Moment::default() }];
        let system = [SystemMoment { at_ns: 1, heap: 40, mmapped: 1, valid_ns: None }];
        let courses = [Course { began_ns: 0, ended_ns: None, moments: &moments }];
        let mean = RssAgainstHeap::of(&courses, &system, 0).unwrap().mean;
        assert_eq!((mean.live, mean.live_main, mean.resident), (2_020, 20, 41));
        assert_eq!((mean.kept(), mean.kept_in_heap(), mean.untouched()), (20, 20, 1_999));
    }
}
