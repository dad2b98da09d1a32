//! What another heap profiler recorded, for comparison with ours.

use std::fmt;

use crate::heap::profile::Profile;

/// More points than this are thinned out to half.
const MOST_POINTS: usize = 2048;

/// What another profiler's time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Instructions that were executed.
    Instructions,
    /// Milliseconds of the program's run.
    Milliseconds,
    /// Bytes that were asked for and given back so far.
    Bytes,
}

/// How a heap stood at a moment. What the profiler does not tell is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Point {
    /// By the recording's clock.
    pub time: u64,
    /// Bytes that were asked for and not given back.
    pub bytes: u64,
    /// What the profiler thinks the allocator needs on top of them.
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
    /// What its time counts.
    pub clock: Clock,
    /// The course of the heap, at most some two thousand points: of each stretch the one with most bytes.
    pub course: Vec<Point>,
    /// The moment with most bytes.
    pub peak: Point,
    /// The moment that the profile's peak is of. massif has no stacks of most moments, so that it may be an earlier one.
    pub detailed: Option<Point>,
    /// Its stacks. massif tells bytes at the peak only.
    pub profile: Profile,
}

/// The course of a heap, in the making.
#[derive(Debug, Default)]
pub(crate) struct Course {
    points: Vec<Point>,
    /// Each point stands for so many that were told.
    step: usize,
    told: usize,
}

impl Course {
    /// The next point in time.
    pub(crate) fn take(&mut self, point: Point) {
        let begins = self.told.is_multiple_of(self.step.max(1));
        self.told += 1;
        match self.points.last_mut() {
            Some(last) if !begins => *last = higher(*last, point),
            _ => self.points.push(point),
        }
        if self.points.len() > MOST_POINTS {
            self.step = 2 * self.step.max(1);
            self.points =
                self.points.chunks(2).filter_map(|pair| pair.iter().copied().reduce(higher)).collect();
            // The stretch that the last one begins is complete when it is as long as the others.
            self.told = (self.points.len() - 1) * self.step + self.step / 2;
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
