//! The kernel's i386 entry, through which the x32 runtime makes the calls that have no 64-bit form.

use std::process::Command;
use std::time::Duration;

use crate::tool_output;
use crate::unavailable::Unavailable;

const LIMIT: Duration = Duration::from_secs(5);

/// What is missing where x32 programs run by the runtime and the kernel has no such entry.
pub fn missing() -> Option<Unavailable> {
    if widthwise_x32run::kernel_has_x32() {
        return None;
    }
    let output =
        tool_output::run(Command::new(widthwise_x32run::place().ok()?).arg("--check"), LIMIT).ok()?;
    unavailable(&output.stdout)
}

/// Parses the output of `x32run --check`.
fn unavailable(output: &str) -> Option<Unavailable> {
    let reason = output.trim().strip_prefix("i386 entry: no (")?.replacen("): ", ": ", 1);
    Some(Unavailable::with_fix(reason, "boot a kernel with CONFIG_IA32_EMULATION, without ia32_emulation=0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_runtimes_message() {
        assert_eq!(unavailable("i386 entry: yes\n"), None);
        let unavailable = unavailable("i386 entry: no (the kernel has none): requests fail\n").unwrap();
        assert_eq!(unavailable.reason, "the kernel has none: requests fail");
        assert!(unavailable.fix.unwrap().contains("IA32_EMULATION"));
    }
}
