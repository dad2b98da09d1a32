//! The kernel's i386 entry, through which the x32 runtime makes the calls that have no 64-bit form.

use std::process::Command;
use std::time::Duration;

use crate::lack::Lack;
use crate::process;

const LIMIT: Duration = Duration::from_secs(5);

/// What is missing where x32 programs run by the runtime and the kernel has no such entry.
pub fn missing() -> Option<Lack> {
    if widthwise_x32run::kernel_has_x32() {
        return None;
    }
    let said = process::run(Command::new(widthwise_x32run::place().ok()?).arg("--check"), LIMIT).ok()?;
    lack(&said.stdout)
}

/// From what `x32run --check` says.
fn lack(said: &str) -> Option<Lack> {
    let reason = said.trim().strip_prefix("i386 entry: no (")?.replacen("): ", ": ", 1);
    Some(Lack::mended(reason, "boot a kernel with CONFIG_IA32_EMULATION, without ia32_emulation=0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_runtime_says_is_what_is_missing() {
        assert_eq!(lack("i386 entry: yes\n"), None);
        let lack = lack("i386 entry: no (the kernel has none): requests fail\n").unwrap();
        assert_eq!(lack.reason, "the kernel has none: requests fail");
        assert!(lack.mend.unwrap().contains("IA32_EMULATION"));
    }
}
