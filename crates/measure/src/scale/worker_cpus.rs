//! Which CPU each worker of a cell is put on.
//!
//! A cell of N processes has N *lanes*, each with a CPU. Workers come and go: a pool may end and another
//! begin, a thread may start threads, and there may be more workers than lanes. A new worker gets the lane
//! with the fewest living workers. When some workers turn out to sleep, those that work are spread over the
//! lanes again. Pure: facts about the workers in, lanes out.

use std::collections::{BTreeMap, BTreeSet};

/// A worker is judged to work or to sleep over at least this time, in nanoseconds.
const LEAST_SPAN: u64 = 20_000_000;
/// It works if it used, or waited for, a CPU for this share of that time.
const WORKS: f64 = 0.25;

/// A worker: a thread or process.
#[derive(Debug, Clone)]
struct Worker {
    lane: usize,
    lives: bool,
    /// Whether it works; unknown at first.
    works: Option<bool>,
    /// When it was last judged, and its used and waited CPU time until then.
    judged: Option<(u64, u64)>,
    /// It has set its own affinity.
    is_fixed: bool,
    /// The order of arrival.
    number: usize,
}

/// The lanes of a cell, and the workers in them.
#[derive(Debug, Clone)]
pub struct Lanes {
    count: usize,
    /// The CPUs of the lanes, in turn; empty if no affinity is set.
    cpus: Vec<u32>,
    workers: BTreeMap<u32, Worker>,
}

impl Lanes {
    /// `count` lanes, with these CPUs in turn.
    pub fn new(count: usize, cpus: &[u32]) -> Lanes {
        Lanes { count: count.max(1), cpus: cpus.to_vec(), workers: BTreeMap::new() }
    }

    /// The CPU of a lane.
    pub fn cpu(&self, lane: usize) -> Option<u32> {
        (!self.cpus.is_empty()).then(|| self.cpus[lane % self.cpus.len()])
    }

    /// The lane that a worker is or was in.
    pub fn lane(&self, pid: u32) -> Option<usize> {
        self.workers.get(&pid).map(|worker| worker.lane)
    }

    /// The lanes that never had a worker.
    pub fn unused(&self) -> Vec<usize> {
        (0..self.count).filter(|lane| !self.workers.values().any(|worker| worker.lane == *lane)).collect()
    }

    /// Records which workers live; a new one gets a lane. A worker that has ended stays in its lane's
    /// account.
    pub fn live(&mut self, pids: &[u32]) {
        for (pid, worker) in &mut self.workers {
            worker.lives = pids.contains(pid);
        }
        for &pid in pids {
            self.add(pid, true);
        }
    }

    /// Records a worker that ended before it was seen.
    pub fn ended(&mut self, pid: u32) {
        self.add(pid, false);
    }

    /// Removes a task that turned out to be no worker.
    pub fn remove(&mut self, pid: u32) {
        self.workers.remove(&pid);
    }

    /// Fixes a worker that has set its own affinity: it is not moved.
    pub fn fix(&mut self, pid: u32) {
        if let Some(worker) = self.workers.get_mut(&pid) {
            worker.is_fixed = true;
        }
    }

    fn add(&mut self, pid: u32, lives: bool) {
        if self.workers.contains_key(&pid) {
            return;
        }
        let load = |lane: usize| {
            let inside = self.workers.values().filter(|worker| worker.lane == lane);
            let (mut working, mut living, mut all) = (0, 0, 0);
            for worker in inside {
                all += 1;
                living += usize::from(worker.lives);
                working += usize::from(worker.lives && worker.works != Some(false));
            }
            // A worker that has ended uses no CPU, but has an account: of equally free lanes it gets the
            // least used.
            if lives {
                (working, living, all)
            } else {
                (0, 0, all)
            }
        };
        let lane = (0..self.count).min_by_key(|lane| load(*lane)).unwrap_or(0);
        let number = self.workers.len();
        let worker = Worker { lane, lives, works: None, judged: None, is_fixed: false, number };
        self.workers.insert(pid, worker);
    }

    /// Records the CPU time that a living worker has used and waited for, in total until `at_ns`.
    pub fn judge(&mut self, pid: u32, used_ns: u64, at_ns: u64) {
        let Some(worker) = self.workers.get_mut(&pid).filter(|worker| worker.lives) else { return };
        match worker.judged {
            Some((then, _)) if at_ns.saturating_sub(then) < LEAST_SPAN => {}
            Some((then, before)) => {
                worker.works = Some(works(used_ns.saturating_sub(before), at_ns - then));
                worker.judged = Some((at_ns, used_ns));
            }
            None => worker.judged = Some((at_ns, used_ns)),
        }
    }

    /// Spreads the working tasks evenly over the CPUs, with as few moves as possible: the newest is moved
    /// first.
    pub fn spread(&mut self) {
        let cpus: BTreeSet<u32> = (0..self.count).filter_map(|lane| self.cpu(lane)).collect();
        for _ in 0..self.workers.len() {
            let fullest = cpus.iter().copied().max_by_key(|cpu| self.working(*cpu));
            let freest = cpus.iter().copied().min_by_key(|cpu| self.perhaps_working(*cpu));
            let (Some(full), Some(free)) = (fullest, freest) else { return };
            if self.working(full) < self.perhaps_working(free) + 2 {
                return;
            }
            let movable = |worker: &&Worker| {
                worker.lives
                    && worker.works == Some(true)
                    && !worker.is_fixed
                    && self.cpu(worker.lane) == Some(full)
            };
            let last = self.workers.values().filter(movable).max_by_key(|worker| worker.number);
            let Some((number, from)) = last.map(|worker| (worker.number, worker.lane)) else { return };
            let inside =
                |lane: usize| self.workers.values().filter(move |worker| worker.lane == lane).count();
            let lanes = (0..self.count).filter(|lane| self.cpu(*lane) == Some(free));
            let Some(to) = lanes.min_by_key(|lane| inside(*lane)) else { return };
            // No lane may become empty: sleeping workers change places with a worker that is alone.
            let changes = inside(from) == 1;
            for worker in self.workers.values_mut() {
                if worker.number == number {
                    worker.lane = to;
                } else if changes && worker.lane == to && !worker.is_fixed {
                    worker.lane = from;
                }
            }
        }
    }

    /// The number of workers on that CPU that are known to work.
    fn working(&self, cpu: u32) -> usize {
        self.on(cpu).filter(|worker| worker.works == Some(true)).count()
    }

    /// The number of workers on that CPU that are not known to sleep.
    fn perhaps_working(&self, cpu: u32) -> usize {
        self.on(cpu).filter(|worker| worker.works != Some(false)).count()
    }

    fn on(&self, cpu: u32) -> impl Iterator<Item = &Worker> {
        self.workers.values().filter(move |worker| worker.lives && self.cpu(worker.lane) == Some(cpu))
    }
}

/// Whether this much CPU time in this span counts as work.
pub fn works(used_ns: u64, span_ns: u64) -> bool {
    used_ns as f64 >= WORKS * span_ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn of(lanes: &Lanes, pids: &[u32]) -> Vec<usize> {
        pids.iter().map(|pid| lanes.lane(*pid).unwrap()).collect()
    }

    #[test]
    fn a_second_pool_gets_the_lanes_of_the_first() {
        let mut lanes = Lanes::new(2, &[4, 6]);
        lanes.live(&[10, 11]);
        lanes.live(&[]);
        lanes.live(&[12, 13]);
        assert_eq!(of(&lanes, &[10, 11, 12, 13]), [0, 1, 0, 1]);
        assert_eq!((lanes.cpu(0), lanes.cpu(1)), (Some(4), Some(6)));
    }

    #[test]
    fn more_workers_than_lanes_are_spread_evenly() {
        let mut lanes = Lanes::new(2, &[0, 1]);
        lanes.live(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(of(&lanes, &[1, 2, 3, 4, 5, 6]), [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn workers_that_share_a_cpu_while_another_is_idle_are_separated() {
        let mut lanes = Lanes::new(2, &[0, 1]);
        // The first and the third sleep: the working ones are on the same CPU.
        lanes.live(&[1, 2, 3, 4]);
        assert_eq!(lanes.lane(2), lanes.lane(4));
        for pid in 1..=4 {
            lanes.judge(pid, 0, 0);
            lanes.judge(pid, if pid % 2 == 0 { 15 * MS } else { 0 }, 30 * MS);
        }
        lanes.spread();
        assert_eq!(of(&lanes, &[2, 4]), [1, 0]);
        // A second call changes nothing.
        let before = lanes.clone();
        lanes.spread();
        assert_eq!(of(&lanes, &[1, 2, 3, 4]), of(&before, &[1, 2, 3, 4]));
    }

    #[test]
    fn no_lane_is_left_empty() {
        // Four children on two CPUs; those on one of them sleep.
        let mut lanes = Lanes::new(4, &[0, 1]);
        lanes.live(&[1, 2, 3, 4]);
        for pid in 1..=4 {
            lanes.judge(pid, 0, 0);
            lanes.judge(pid, if pid % 2 == 0 { 30 * MS } else { 0 }, 30 * MS);
        }
        lanes.spread();
        assert!(lanes.unused().is_empty());
        assert_ne!(lanes.cpu(lanes.lane(2).unwrap()), lanes.cpu(lanes.lane(4).unwrap()));
    }

    #[test]
    fn a_worker_that_follows_an_ended_one_takes_an_unused_lane() {
        let mut lanes = Lanes::new(3, &[0]);
        lanes.live(&[1]);
        lanes.live(&[]);
        lanes.live(&[2]);
        lanes.live(&[2, 3]);
        assert_eq!(of(&lanes, &[1, 2, 3]), [0, 1, 2]);
    }

    #[test]
    fn a_worker_with_its_own_affinity_or_unknown_activity_is_not_moved() {
        let mut lanes = Lanes::new(2, &[0, 1]);
        lanes.live(&[1, 2, 3, 4]);
        for pid in [2, 4] {
            lanes.judge(pid, 0, 0);
            lanes.judge(pid, 30 * MS, 30 * MS);
        }
        lanes.spread();
        assert_eq!(lanes.lane(2), lanes.lane(4), "the others may work");
        for pid in [1, 3] {
            lanes.judge(pid, 0, 30 * MS);
            lanes.judge(pid, 0, 60 * MS);
        }
        lanes.fix(2);
        lanes.fix(4);
        lanes.spread();
        assert_eq!(lanes.lane(2), lanes.lane(4));
    }

    #[test]
    fn workers_that_ended_unseen_are_spread_over_the_accounts() {
        let mut lanes = Lanes::new(3, &[]);
        assert_eq!(lanes.unused(), [0, 1, 2]);
        for pid in 1..=4 {
            lanes.ended(pid);
        }
        assert_eq!(of(&lanes, &[1, 2, 3, 4]), [0, 1, 2, 0]);
        assert_eq!((lanes.unused().len(), lanes.cpu(0)), (0, None));
    }
}
