//! Errors of the command line, and their exit statuses: 1 the measured program, a build or the machine; 2 the request; 130 Ctrl-C.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use widthwise_report::sanitize;

/// The exit status that shells report for a process that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// An error that ends the command.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    /// Empty if the report already has the error.
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

    /// The machine failed: a full disk, a killed launcher.
    pub fn machine(error: impl Display) -> Failure {
        Failure { status: 1, message: error.to_string() }
    }

    /// A variant failed, and the report already shows it.
    pub fn reported() -> Failure {
        Failure { status: 1, message: String::new() }
    }

    /// The user interrupted the campaign; a message has named the command that continues it. The exit status is that of
    /// Ctrl-C, so that a script does not continue as if everything had been measured.
    pub fn interrupted() -> Failure {
        Failure { status: INTERRUPTED, message: String::new() }
    }

    /// Whether the user interrupted the campaign.
    pub fn is_interrupted(&self) -> bool {
        self.status == INTERRUPTED
    }

    /// The message, for a report that continues without the failed part.
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

    /// Prints the message once; returns the exit status.
    pub fn print(self) -> ExitCode {
        if !self.message.is_empty() {
            let style = anstyle::AnsiColor::Red.on_default().bold();
            // A closed or full standard error is no reason for another exit status.
            let _ = writeln!(anstream::stderr(), "{style}error:{style:#} {}", sanitize::block(&self.message));
        }
        ExitCode::from(self.status)
    }
}
