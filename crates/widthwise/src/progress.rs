//! Progress: a bar with the time that is left and the current estimate on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// The time between two plain lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Where progress is shown: standard error, so that standard output holds the report alone.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    terminal: bool,
    last_line: Instant,
}

impl Progress {
    /// Shows nothing yet.
    pub fn new() -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Progress { bar, terminal, last_line: Instant::now() }
    }

    /// Prints one permanent line.
    pub fn say(&self, text: &str) {
        let text = widthwise_report::sanitize::block(text);
        if self.terminal {
            self.bar.suspend(|| output::note(&text));
        } else {
            output::note(&text);
        }
    }

    /// Shows the bar, on a terminal.
    pub fn begin(&mut self) {
        if self.terminal {
            self.bar = drawn_bar();
        }
    }

    /// Whether an estimate that is computed now will be shown soon.
    pub fn is_watched(&self) -> bool {
        /// The greatest age of an estimate when its line is written.
        const FRESH: Duration = Duration::from_secs(2);
        self.terminal || self.last_line.elapsed() + FRESH >= PAUSE
    }

    /// Shows the completed share (0 to 1), the time left, and `state`, the current estimate. A round that began within the time
    /// limit ends after it, and how long that takes is not known.
    pub fn at(&mut self, share: f64, left: Option<Duration>, state: &str) {
        let left = match left {
            None | Some(Duration::ZERO) => String::new(),
            Some(left) => format!(" · {} left", widthwise_report::format::duration(left)),
        };
        let message = format!("{state}{left}");
        if self.terminal {
            self.bar.set_position((share.clamp(0.0, 1.0) * 1000.0) as u64);
            self.bar.set_message(message);
        } else if self.last_line.elapsed() >= PAUSE {
            self.last_line = Instant::now();
            output::note(&message);
        }
    }

    /// Removes the bar; printed lines stay.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of one task. A task that takes less than a second shows none.
#[derive(Debug)]
pub struct TaskProgress {
    name: String,
    bar: Option<ProgressBar>,
    terminal: bool,
    began: Instant,
    last_line: Option<Instant>,
}

impl TaskProgress {
    /// A task that begins now.
    pub fn new(name: String) -> TaskProgress {
        let terminal = std::io::stderr().is_terminal();
        TaskProgress { name, bar: None, terminal, began: Instant::now(), last_line: None }
    }

    /// Shows how many of all bytes are done.
    pub fn at(&mut self, done: u64, all: u64) {
        /// A shorter task shows no progress.
        const SHORT: Duration = Duration::from_secs(1);
        let elapsed = self.began.elapsed();
        if elapsed < SHORT {
            return;
        }
        let share = (done as f64 / all.max(1) as f64).clamp(0.0, 1.0);
        let left = elapsed.mul_f64((1.0 - share) / share.max(1e-3));
        if self.terminal {
            let bar = self.bar.get_or_insert_with(drawn_bar);
            bar.set_position((share * 1000.0) as u64);
            bar.set_message(format!("{} · {} left", self.name, widthwise_report::format::duration(left)));
        } else if self.last_line.is_none_or(|last| last.elapsed() >= PAUSE) {
            self.last_line = Some(Instant::now());
            let left = widthwise_report::format::duration(left);
            output::note(&format!("{}: {:.0} % · {left} left", self.name, share * 100.0));
        }
    }
}

impl Drop for TaskProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar of a thousand steps.
fn drawn_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("  {bar:24} {percent:>3} %  {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸ ");
    ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr()).with_style(style)
}
