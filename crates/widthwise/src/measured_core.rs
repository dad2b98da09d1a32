//! The core that a baseline is measured on.

use std::time::Duration;

use widthwise_machine::noise::{busy_cpus, NoiseReader, BUSY};
use widthwise_machine::topology::Topology;
use widthwise_measure::core_lock::{self, CoreLock};

/// For how long the machine is watched.
const WATCH: Duration = Duration::from_millis(50);

/// Takes a core on which nothing runs now, or waits for one (`say`).
pub fn take(say: &mut dyn FnMut(&str)) -> Option<CoreLock> {
    let busy = NoiseReader::open([])
        .map(|mut reader| {
            let before = reader.read();
            std::thread::sleep(WATCH);
            busy_cpus(&before, &reader.read(), BUSY)
        })
        .unwrap_or_default();
    core_lock::take(&Topology::here(), &busy, say)
}
