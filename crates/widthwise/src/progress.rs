//! Progress: a bar with the time that is left and the current estimate on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Between two plain lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Where progress is shown: standard error, so that standard output holds the report alone.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    terminal: bool,
    last_line: Instant,
}

impl Progress {
    /// Nothing is shown until something happens.
    pub fn new() -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Progress { bar, terminal, last_line: Instant::now() }
    }

    /// One line that stays.
    pub fn say(&self, text: &str) {
        if self.terminal {
            self.bar.suspend(|| anstream::eprintln!("{text}"));
        } else {
            anstream::eprintln!("{text}");
        }
    }

    /// From here on there is a share that is done.
    pub fn begin(&mut self) {
        if self.terminal {
            let style = ProgressStyle::with_template("  {bar:24} {percent:>3} %  {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("━╸ ");
            self.bar =
                ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr()).with_style(style);
        }
    }

    /// Whether an estimate that is made now will be seen soon.
    pub fn is_watched(&self) -> bool {
        /// What an estimate may be old when its line is written.
        const FRESH: Duration = Duration::from_secs(2);
        self.terminal || self.last_line.elapsed() + FRESH >= PAUSE
    }

    /// So much is done (0 to 1), so long it may still take; `state` is the current estimate.
    pub fn at(&mut self, share: f64, left: Option<Duration>, state: &str) {
        let left = left
            .map_or(String::new(), |left| format!(" · {} left", widthwise_report::amounts::duration(left)));
        let message = format!("{state}{left}");
        if self.terminal {
            self.bar.set_position((share.clamp(0.0, 1.0) * 1000.0) as u64);
            self.bar.set_message(message);
        } else if self.last_line.elapsed() >= PAUSE {
            self.last_line = Instant::now();
            anstream::eprintln!("{message}");
        }
    }

    /// The bar goes; what was said stays.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
