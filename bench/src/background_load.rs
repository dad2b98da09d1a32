//! A background load that comes and goes: what shares the machine with a benchmark in an office or a cloud.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How long a pause or a burst lasts, in milliseconds.
const LASTS: RangeInclusive<u64> = 200..=3000;

/// As many workers as there are CPUs, each busy for about half of the time on one CPU or another, until dropped.
#[derive(Debug)]
pub struct Load {
    over: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
}

impl Load {
    /// In one sentence, for the page.
    pub const ABOUT: &'static str =
        "The load is a thread for each CPU that pauses for 0.2 to 3 s, computes for 0.2 to 3 s on a \
                                     CPU chosen at random, and so on.";

    /// From here on.
    pub fn start(seed: u64) -> Load {
        let over = Arc::new(AtomicBool::new(false));
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = (0..cpus)
            .map(|worker| {
                let spells = Spells::new(seed, worker, cpus);
                let over = over.clone();
                std::thread::spawn(move || work(spells, &over))
            })
            .collect();
        Load { over, workers }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            let _ = worker.join();
        }
    }
}

/// A pause, and a burst after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spell {
    pause: Duration,
    cpu: usize,
    burst: Duration,
}

/// One worker's spells, without end: a function of the seed and the worker's number.
#[derive(Debug)]
struct Spells {
    random: ChaCha8Rng,
    cpus: usize,
}

impl Spells {
    fn new(seed: u64, worker: usize, cpus: usize) -> Spells {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(worker as u64);
        Spells { random, cpus }
    }
}

impl Iterator for Spells {
    type Item = Spell;

    fn next(&mut self) -> Option<Spell> {
        Some(Spell {
            pause: Duration::from_millis(self.random.random_range(LASTS)),
            cpu: self.random.random_range(0..self.cpus),
            burst: Duration::from_millis(self.random.random_range(LASTS)),
        })
    }
}

fn work(spells: Spells, over: &AtomicBool) {
    for spell in spells {
        let awake = Instant::now() + spell.pause;
        while let Some(left) = awake.checked_duration_since(Instant::now()) {
            if over.load(Ordering::Relaxed) {
                return;
            }
            std::thread::park_timeout(left);
        }
        stay_on(spell.cpu);
        let end = Instant::now() + spell.burst;
        while Instant::now() < end {
            if over.load(Ordering::Relaxed) {
                return;
            }
            (0..10_000u64).for_each(|n| {
                std::hint::black_box(n);
            });
        }
    }
}

/// Moves the calling thread; where that CPU may not be used, it stays where it is, which is load too.
fn stay_on(cpu: usize) {
    // SAFETY: plain data, and a call that only reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_load_again_and_another_for_each_worker() {
        let first = |seed, worker| Spells::new(seed, worker, 4).take(50).collect::<Vec<_>>();
        assert_eq!(first(7, 0), first(7, 0));
        assert_ne!(first(7, 0), first(7, 1));
        assert_ne!(first(7, 0), first(8, 0));
        let all = first(7, 0);
        assert!((0..4).all(|cpu| all.iter().any(|spell| spell.cpu == cpu)));
        let lasts = Duration::from_millis(200)..=Duration::from_secs(3);
        assert!(all.iter().all(|spell| lasts.contains(&spell.pause) && lasts.contains(&spell.burst)));
    }

    #[test]
    fn a_load_that_is_dropped_ends_at_once() {
        let began = Instant::now();
        drop(Load::start(1));
        // A pause alone would last as long as 3 s; most seeds begin with a longer one than this.
        assert!(Spells::new(1, 0, 1).next().is_some_and(|spell| began.elapsed() < spell.pause));
    }
}
