//! Tests that read times take the machine alone, and tests whose programs mostly sleep take it together: no other test with a
//! [`Laboratory`](super::Laboratory) of this program runs meanwhile. Other programs and a virtual machine's host are outside the
//! tests' control.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, PoisonError};

/// Which tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Any number that read no times.
    Busy,
    /// Any number whose programs mostly sleep, so that the sampler has a CPU.
    Asleep,
    /// One.
    Alone,
}

/// The group that has the machine, and how many tests of it run; no group, if none run.
static MACHINE: Mutex<(Group, usize)> = Mutex::new((Group::Busy, 0));
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// Whether this thread's test has the machine, alone or with others: it does not wait for itself.
    static ENTERED: Cell<bool> = const { Cell::new(false) };
}

/// The machine, for one test: alone, or with others of its group.
#[must_use]
pub struct Machine {
    has_entered: bool,
    /// Ticks of all CPUs at the beginning: used, and taken by the host.
    began: (f64, f64),
}

/// The ticks for which CPUs worked since boot, and those for which they would have, but the host of this virtual machine ran something
/// else (`steal` of `/proc/stat`).
fn ticks() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let all = text.lines().next().unwrap().split_whitespace().skip(1);
    let ticks: Vec<f64> = all.map(|word| word.parse().unwrap()).collect();
    ([0, 1, 2, 5, 6].map(|place| ticks[place]).iter().sum(), ticks[7])
}

impl Machine {
    /// The share of the time in which CPUs should have worked that the host took, since this test has the machine.
    pub fn host_took(&self) -> f64 {
        let (used, taken) = ticks();
        let (used, taken) = (used - self.began.0, taken - self.began.1);
        taken / (used + taken).max(1.0)
    }
}

fn enter(group: Group) -> Machine {
    ENTERED.set(true);
    let may_not =
        |(other, count): &mut (Group, usize)| *count > 0 && (*other != group || group == Group::Alone);
    let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut machine = CHANGED.wait_while(machine, may_not).unwrap_or_else(PoisonError::into_inner);
    *machine = (group, machine.1 + 1);
    Machine { has_entered: true, began: ticks() }
}

/// Waits until no other test runs. To be called before the test makes its laboratory.
#[track_caller]
pub fn alone() -> Machine {
    assert!(!ENTERED.get(), "this test has a laboratory, and would wait for itself");
    enter(Group::Alone)
}

/// Waits until only tests run whose programs mostly sleep, as this one's do. To be called before the test makes its laboratory.
#[track_caller]
pub fn asleep() -> Machine {
    assert!(!ENTERED.get(), "this test has a laboratory, and would wait for itself");
    enter(Group::Asleep)
}

/// Waits until no test runs alone and none that sleeps, unless this test has the machine already.
pub fn shared() -> Machine {
    if ENTERED.get() {
        return Machine { has_entered: false, began: ticks() };
    }
    enter(Group::Busy)
}

impl Drop for Machine {
    fn drop(&mut self) {
        if self.has_entered {
            MACHINE.lock().unwrap_or_else(PoisonError::into_inner).1 -= 1;
            CHANGED.notify_all();
            ENTERED.set(false);
        }
    }
}
