//! A recording of another heap profiler.

use std::fmt;

use widthwise_heap_log::profile::Profile;

/// More points than this are downsampled to half.
const MOST_POINTS: usize = 2048;

/// The unit of another profiler's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Instructions that were executed.
    Instructions,
    /// Milliseconds of the program's run.
    Milliseconds,
    /// Bytes that were allocated and freed so far.
    Bytes,
}

/// The state of a heap at one moment. `None`: the profiler does not record it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Point {
    /// By the profiler's clock.
    pub time: u64,
    /// Bytes that were allocated and not freed.
    pub bytes: u64,
    /// The profiler's estimate of what the allocator needs beyond them.
    pub extra_bytes: Option<u64>,
    /// Bytes of stacks.
    pub stack_bytes: Option<u64>,
    /// Live blocks.
    pub count: Option<u64>,
    /// Resident bytes of the process.
    pub resident_bytes: Option<u64>,
}

/// A recording of another profiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The command that it recorded.
    pub command: String,
    /// The unit of its time.
    pub clock: Clock,
    /// The heap over time, at most some two thousand points: of each interval the one with most bytes.
    pub course: Vec<Point>,
    /// The moment with most bytes.
    pub peak: Point,
    /// The moment of the profile's peak. massif records stacks at few moments, so it may differ from `peak`.
    pub detailed: Option<Point>,
    /// Its stacks. massif has only bytes at the peak.
    pub profile: Profile,
    /// Its bytes are of pages that were mapped, not of blocks that were allocated.
    pub is_of_pages: bool,
}

/// Builds the course of a heap.
#[derive(Debug, Default)]
pub(crate) struct Course {
    points: Vec<Point>,
    /// Each point stands for this many that were taken.
    step: usize,
    taken: usize,
}

impl Course {
    /// The next point in time.
    pub(crate) fn take(&mut self, point: Point) {
        let begins = self.taken.is_multiple_of(self.step.max(1));
        self.taken += 1;
        match self.points.last_mut() {
            Some(last) if !begins => *last = higher(*last, point),
            _ => self.points.push(point),
        }
        if self.points.len() > MOST_POINTS {
            self.step = 2 * self.step.max(1);
            self.points =
                self.points.chunks(2).filter_map(|pair| pair.iter().copied().reduce(higher)).collect();
            // The interval of the last point is complete when it is as long as the others.
            self.taken = (self.points.len() - 1) * self.step + self.step / 2;
        }
    }

    /// All of it.
    pub(crate) fn points(self) -> Vec<Point> {
        self.points
    }
}

fn higher(one: Point, other: Point) -> Point {
    if other.bytes > one.bytes {
        other
    } else {
        one
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Clock::Instructions => "instructions",
            Clock::Milliseconds => "ms",
            Clock::Bytes => "bytes",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_course_is_thinned_and_keeps_its_highest_points() {
        let mut course = Course::default();
        for time in 0..1_000_000_u64 {
            let bytes = if time == 777_777 { 5000 } else { time % 1000 };
            course.take(Point { time, bytes, ..Point::default() });
        }
        let points = course.points();
        assert!((MOST_POINTS / 2 - 1..=MOST_POINTS).contains(&points.len()), "{}", points.len());
        assert!(points.iter().any(|point| (point.time, point.bytes) == (777_777, 5000)));
        assert!(points.windows(2).all(|pair| pair[0].time < pair[1].time));
        // Evenly: no stretch is longer than twice the average.
        let longest = points.windows(2).map(|pair| pair[1].time - pair[0].time).max().expect("points");
        assert!(longest <= 2 * 1_000_000 / points.len() as u64 + 1000, "{longest}");
    }

    #[test]
    fn a_short_course_is_kept_as_it_is() {
        let mut course = Course::default();
        for time in 0..MOST_POINTS as u64 {
            course.take(Point { time, ..Point::default() });
        }
        assert_eq!(course.points().len(), MOST_POINTS);
    }
}
