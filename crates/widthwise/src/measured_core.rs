//! The core that a baseline is measured on.

use std::time::Duration;

use widthwise_machine::noise;
use widthwise_machine::topology::Topology;
use widthwise_measure::core_lock::{self, CoreLock};

use crate::interrupt;

/// For how long the machine is watched.
const WATCH: Duration = Duration::from_millis(50);

/// Takes a core on which nothing runs now, or waits for one (`say`). None after an interrupt, too.
pub fn take(say: &mut dyn FnMut(&str)) -> Option<CoreLock> {
    let busy = noise::busy_during(WATCH).unwrap_or_default();
    let mut wait = |is_first: bool| {
        if is_first {
            say("every core is being measured on by another campaign: waiting for one to end");
        }
        !interrupt::is_wanted()
    };
    core_lock::take(&Topology::here(), &busy, &mut wait)
}
