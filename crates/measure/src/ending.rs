//! How a run ended, in words.

use std::path::Path;

use widthwise_experiment::outcome::Ending;

/// How a run failed, with the last line of the program's standard error.
pub fn failure(ending: &Ending, stderr: &Path) -> String {
    let how = describe(ending);
    if matches!(ending, Ending::SpawnFailed { .. } | Ending::HookFailed { .. }) {
        return how;
    }
    let text = std::fs::read(stderr).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(4096)..]).into_owned();
    match text.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => format!("{how}: {}", line.trim()),
        None => how,
    }
}

/// How a run ended, in words.
pub fn describe(ending: &Ending) -> String {
    match ending {
        Ending::Done => "it ended well".into(),
        Ending::Exit { status } => format!("it ended with exit status {status}"),
        Ending::Signal { signal } => format!("killed by signal {signal}{}", signal_name(*signal)),
        Ending::Timeout { limit_ns } => {
            format!("still running after {} s, and was killed (--timeout)", *limit_ns as f64 / 1e9)
        }
        Ending::OutputLimit { limit_bytes } => {
            format!("wrote more than {} MB to its standard output, and was killed", limit_bytes / 1_000_000)
        }
        Ending::SpawnFailed { reason } | Ending::HookFailed { reason } => reason.clone(),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGKILL => " (SIGKILL; out of memory?)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGILL => " (SIGILL)",
        libc::SIGFPE => " (SIGFPE)",
        libc::SIGSYS => " (SIGSYS)",
        libc::SIGINT => " (SIGINT)",
        libc::SIGTERM => " (SIGTERM)",
        _ => "",
    }
}
