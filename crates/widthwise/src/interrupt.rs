//! Ctrl-C: once ends the campaign after the current run, twice ends the run too.

use std::sync::atomic::{AtomicU8, Ordering};

static TIMES: AtomicU8 = AtomicU8::new(0);

/// How often the user has asked for an end: 0 not, 1 after this run, 2 at once.
pub fn times() -> &'static AtomicU8 {
    &TIMES
}

/// From here on SIGINT, SIGTERM and SIGHUP are counted instead of ending us.
pub fn listen() -> std::io::Result<()> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        // SAFETY: the handler only touches an atomic.
        unsafe {
            signal_hook::low_level::register(signal, || {
                let _ =
                    TIMES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_add(1)));
            })?;
        }
    }
    Ok(())
}
