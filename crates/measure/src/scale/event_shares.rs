//! How events are divided among jobs.

/// A job's part of the events, and the number of its first: parts that differ by one at most, in the order of the jobs.
pub(crate) fn share(events: u64, jobs: u64, index: u64) -> (u64, u64) {
    let (part, rest) = (events / jobs.max(1), events % jobs.max(1));
    (part + u64::from(index < rest), part * index + index.min(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_share_events_without_a_gap() {
        for (events, jobs) in [(800, 8), (10, 3), (2, 5), (0, 4)] {
            let mut next = 0;
            for index in 0..jobs {
                let (part, first) = share(events, jobs, index);
                assert_eq!(first, next, "{events} {jobs} {index}");
                next += part;
            }
            assert_eq!(next, events);
        }
    }
}
