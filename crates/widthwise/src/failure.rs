//! What goes wrong, and the exit status it has: 1 the measured program, a build or this machine; 2 the request; 130 Ctrl-C.

use std::fmt::Display;
use std::process::ExitCode;

use widthwise_report::sanitize;

/// The exit status that shells give to what Ctrl-C has ended.
pub const INTERRUPTED: u8 = 130;

/// An error on its way out.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    /// Empty if everything has been said already.
    message: String,
}

impl Failure {
    /// The request was wrong: a flag, the spec file, a folder that is no campaign.
    pub fn request(error: impl Display) -> Failure {
        Failure { status: 2, message: error.to_string() }
    }

    /// The measured program or a build failed.
    pub fn program(error: impl Display) -> Failure {
        Failure { status: 1, message: error.to_string() }
    }

    /// This machine failed us: a full disk, a launcher that was killed.
    pub fn machine(error: impl Display) -> Failure {
        Failure { status: 1, message: error.to_string() }
    }

    /// A variant failed, and the report has said so.
    pub fn told() -> Failure {
        Failure { status: 1, message: String::new() }
    }

    /// The user asked for an end, and has been told how to go on: the status that shells give to what Ctrl-C has ended, so
    /// that a script does not go on as if all had been measured.
    pub fn interrupted() -> Failure {
        Failure { status: INTERRUPTED, message: String::new() }
    }

    /// Whether the user asked for an end.
    pub fn is_interrupted(&self) -> bool {
        self.status == INTERRUPTED
    }

    /// What went wrong, for a report that goes on without it.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// With one more sentence, if the request was wrong.
    pub fn with_hint(mut self, hint: Option<String>) -> Failure {
        if let (Some(hint), 2) = (hint, self.status) {
            self.message.push_str(&format!("\n       {hint}"));
        }
        self
    }

    /// Prints it once, and gives the exit status.
    pub fn tell(self) -> ExitCode {
        if !self.message.is_empty() {
            let style = anstyle::AnsiColor::Red.on_default().bold();
            anstream::eprintln!("{style}error:{style:#} {}", sanitize::block(&self.message));
        }
        ExitCode::from(self.status)
    }
}
