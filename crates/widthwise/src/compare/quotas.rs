//! CPU quotas of control groups during the timed rounds.

use std::time::{Duration, Instant};

use widthwise_proc::cgroup::Throttling;

/// From this share of the rounds' time on, a quota is mentioned.
const NOTEWORTHY: f64 = 0.01;

/// How long quotas had stopped this process's groups when the rounds began.
pub struct Quotas {
    throttling: Throttling,
    before: Vec<u64>,
    began: Instant,
}

impl Quotas {
    /// The rounds begin.
    pub fn watch() -> Quotas {
        let throttling = Throttling::find();
        Quotas { before: throttling.read(), throttling, began: Instant::now() }
    }

    /// What a reader of wall times must know, when the rounds have ended.
    pub fn remark(&self) -> Option<String> {
        remark(self.throttling.since(&self.before), self.began.elapsed())
    }
}

fn remark(stopped: Duration, rounds: Duration) -> Option<String> {
    let share = stopped.as_secs_f64() / rounds.as_secs_f64();
    (share >= NOTEWORTHY).then(|| {
        format!(
            "the CPU quota of this process's control group stopped it and the programs for {:.1} s, summed over CPUs, in the {:.1} s of \
             the rounds: this waiting is in the wall times",
            stopped.as_secs_f64(),
            rounds.as_secs_f64()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_that_stopped_the_programs_for_a_hundredth_of_the_time_is_mentioned() {
        let seconds = Duration::from_secs_f64;
        assert_eq!(remark(seconds(0.05), seconds(10.0)), None);
        assert_eq!(remark(Duration::ZERO, Duration::ZERO), None);
        let text = remark(seconds(8.2), seconds(10.0)).unwrap();
        assert!(text.contains("for 8.2 s, summed over CPUs, in the 10.0 s of the rounds"), "{text}");
    }
}
