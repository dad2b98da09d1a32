//! Tests that read times take the machine alone: no other test with a [`Laboratory`](super::Laboratory) of this program
//! runs meanwhile. Other programs and a virtual machine's host are outside the tests' control.

use std::cell::Cell;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::new(());

thread_local! {
    /// Whether this thread's test has the machine, alone or with others: it does not wait for itself.
    static ENTERED: Cell<bool> = const { Cell::new(false) };
}

/// The machine, for one test.
pub struct Alone {
    _guard: RwLockWriteGuard<'static, ()>,
}

/// The machine, with other tests.
pub struct Shared {
    guard: Option<RwLockReadGuard<'static, ()>>,
}

/// Waits until no other test runs. To be called before the test makes its laboratory.
#[track_caller]
pub fn alone() -> Alone {
    assert!(!ENTERED.get(), "this test has a laboratory, and would wait for itself");
    let guard = MACHINE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    ENTERED.set(true);
    Alone { _guard: guard }
}

/// Waits until no test runs alone, unless this test has the machine already.
pub fn shared() -> Shared {
    let guard =
        (!ENTERED.replace(true)).then(|| MACHINE.read().unwrap_or_else(|poisoned| poisoned.into_inner()));
    Shared { guard }
}

impl Drop for Alone {
    fn drop(&mut self) {
        ENTERED.set(false);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.guard.is_some() {
            ENTERED.set(false);
        }
    }
}
