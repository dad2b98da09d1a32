//! The build options of the running kernel.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::sysfs::text;
use crate::tool_output;

/// Whether the running kernel was built with any of the options (`CONFIG_X86_X32_ABI`). None if its configuration
/// cannot be read here: in a container, or without /boot and /proc/config.gz.
pub fn has_any(options: &[&str]) -> Option<bool> {
    has_any_at(Path::new("/"), options)
}

/// As [`has_any`], for the tree under `root`.
pub(crate) fn has_any_at(root: &Path, options: &[&str]) -> Option<bool> {
    let release = text(root.join("proc/sys/kernel/osrelease"))?;
    let config = text(root.join(format!("boot/config-{release}"))).or_else(|| running_config(root))?;
    Some(is_set(&config, options))
}

fn running_config(root: &Path) -> Option<String> {
    // CONFIG_IKCONFIG_PROC; Debian's kernels have a file in /boot instead.
    let file = root.join("proc/config.gz");
    file.exists().then_some(())?;
    let output = tool_output::run(Command::new("zcat").arg(file), Duration::from_secs(5)).ok()?;
    output.status.success().then_some(output.stdout)
}

fn is_set(config: &str, options: &[&str]) -> bool {
    config.lines().filter_map(|line| line.strip_suffix("=y")).any(|name| options.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_is_only_mentioned_is_not_set() {
        let x32 = ["CONFIG_X86_X32_ABI", "CONFIG_X86_X32"];
        assert!(!is_set("# CONFIG_X86_X32_ABI is not set\nCONFIG_X86_X32_DISABLED=y\n", &x32));
        assert!(is_set("CONFIG_64BIT=y\nCONFIG_X86_X32_ABI=y\n", &x32));
        assert!(is_set("CONFIG_X86_X32=y\n", &x32));
        assert!(!is_set("CONFIG_X86_X32=m\n", &x32));
    }
}
