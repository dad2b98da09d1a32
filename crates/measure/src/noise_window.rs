//! What the machine did during rounds: read between rounds, and reported by round.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use widthwise_experiment::outcome::Noise;
use widthwise_machine::noise::{self, NoiseReader, Snapshot};

use widthwise_proc::affinity::{is_beside, step_aside};
use widthwise_proc::clock::process_cpu;

/// The shortest time over which the machine's counters are meaningful.
const SHORTEST: Duration = Duration::from_millis(50);

/// Reads the machine's noise. The kernel counts in ticks of 10 ms, and reading its counts takes 0.2 ms. So
/// rounds shorter than [`SHORTEST`] share the last reading, and the CPU time of others counts for the round
/// at whose end it was read.
pub(crate) struct Window {
    reader: Option<NoiseReader>,
    since: Snapshot,
    opened: Instant,
    /// CPU time of the measured programs since the last reading.
    pub busy: Duration,
    cpus: Vec<u32>,
    ours: Ours,
    last: Noise,
}

impl Window {
    /// Starts to observe these CPUs (all, if there are none), on which those launchers start programs.
    pub fn open(cpus: &[u32], launchers: Vec<u32>) -> Window {
        if !is_beside(cpus) {
            cpus.iter().copied().for_each(step_aside);
        }
        let mut reader = NoiseReader::open(cpus.iter().copied()).ok();
        let ours = Ours::new(launchers, cpus);
        let since = reader.as_mut().map(NoiseReader::read).unwrap_or_default();
        Window {
            reader,
            since,
            opened: Instant::now(),
            busy: Duration::ZERO,
            cpus: cpus.to_vec(),
            ours,
            last: Noise::default(),
        }
    }

    pub fn is_due(&self) -> bool {
        self.opened.elapsed() >= SHORTEST
    }

    /// The machine's noise since the last reading. No run may be in flight.
    pub fn heard(&mut self) -> Noise {
        if !self.is_due() {
            return self.not_heard();
        }
        let now = self.reader.as_mut().map(NoiseReader::read).unwrap_or_default();
        let own = self.busy.as_nanos() as u64 + self.ours.since_last();
        let others_ns = noise::others_ns(&self.since, &now, &self.cpus, own);
        let found = noise::between(&self.since, &now, &self.cpus, own);
        self.last = Noise {
            steal: found.steal,
            pressure: found.pressure,
            others: found.others,
            others_ns: Some(others_ns),
            throttled: found.throttled,
        };
        (self.since, self.opened, self.busy) = (now, Instant::now(), Duration::ZERO);
        self.last
    }

    /// The last reading, for a round that ends before the next one.
    pub fn not_heard(&self) -> Noise {
        Noise { others_ns: Some(0), ..self.last }
    }
}

/// The CPU time of our own processes on the measured CPUs, without the programs: of the launchers, which run
/// where the programs do, and of this process where it has no other CPU.
struct Ours {
    launchers: Vec<u32>,
    is_beside: bool,
    last: BTreeMap<u32, u64>,
}

impl Ours {
    fn new(launchers: Vec<u32>, cpus: &[u32]) -> Ours {
        let mut ours = Ours { launchers, is_beside: is_beside(cpus), last: BTreeMap::new() };
        ours.since_last();
        ours
    }

    /// What they have used since the last call, in nanoseconds.
    fn since_last(&mut self) -> u64 {
        let own = self.is_beside.then(std::process::id);
        let now: BTreeMap<u32, u64> = self
            .launchers
            .iter()
            .copied()
            .chain(own)
            .filter_map(|process| Some((process, process_cpu(process)?)))
            .collect();
        let used = |(process, now): (&u32, &u64)| now.saturating_sub(*self.last.get(process).unwrap_or(now));
        let sum = now.iter().map(used).sum();
        self.last = now;
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_cpu_time_is_known_and_counted_once() {
        let mut ours = Ours::new(vec![std::process::id()], &[]);
        let began = process_cpu(std::process::id()).unwrap();
        while process_cpu(std::process::id()).unwrap() - began < 20_000_000 {
            std::hint::spin_loop();
        }
        assert!(ours.since_last() >= 20_000_000);
        assert_eq!(ours.last.len(), 1, "counted once, as itself and as a launcher");
    }

    #[test]
    fn a_round_without_a_reading_leaves_the_time_to_a_later_one() {
        let mut window = Window::open(&[], Vec::new());
        assert_eq!(window.heard().others_ns, Some(0));
        // As if others had run for a while: in 50 ms the kernel may count nothing at all.
        window.since.cpus.values_mut().for_each(|cpu| cpu.tasks_ns = 0);
        std::thread::sleep(SHORTEST);
        let heard = window.heard();
        assert!(heard.others_ns > Some(0), "{heard:?}");
        assert_eq!(window.heard(), Noise { others_ns: Some(0), ..heard });
    }
}
