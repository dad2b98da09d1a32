//! The core that a baseline is measured on.

use std::sync::atomic::Ordering;
use std::time::Duration;

use widthwise_machine::noise::{busy_cpus, NoiseReader, BUSY};
use widthwise_machine::topology::Topology;
use widthwise_measure::core_lock::{self, CoreLock};

use crate::interrupt;

/// For how long the machine is watched.
const WATCH: Duration = Duration::from_millis(50);

/// Takes a core on which nothing runs now, or waits for one (`say`). None after an interrupt, too.
pub fn take(say: &mut dyn FnMut(&str)) -> Option<CoreLock> {
    let busy = NoiseReader::open([])
        .map(|mut reader| {
            let before = reader.read();
            std::thread::sleep(WATCH);
            busy_cpus(&before, &reader.read(), BUSY)
        })
        .unwrap_or_default();
    let mut wait = |is_first: bool| {
        if is_first {
            say("every core is being measured on by another campaign: waiting for one to end");
        }
        interrupt::times().load(Ordering::SeqCst) == 0
    };
    core_lock::take(&Topology::here(), &busy, &mut wait)
}
