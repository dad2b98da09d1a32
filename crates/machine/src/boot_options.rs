//! Options on the kernel's command line: how to set one.

use std::path::Path;

/// The step that starts the kernel with one more option from the next boot on.
pub fn boot_with(option: &str) -> String {
    boot_with_at(Path::new("/"), option)
}

fn boot_with_at(root: &Path, option: &str) -> String {
    if root.join("etc/default/grub").is_file() {
        format!("sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{option} /' /etc/default/grub && update-grub && reboot")
    } else {
        format!("boot this kernel with {option} on its command line")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_option_is_set_through_grub_where_there_is_grub() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(boot_with_at(root.path(), "psi=1"), "boot this kernel with psi=1 on its command line");
        std::fs::create_dir_all(root.path().join("etc/default")).unwrap();
        std::fs::write(root.path().join("etc/default/grub"), "GRUB_CMDLINE_LINUX=\"quiet\"\n").unwrap();
        assert!(boot_with_at(root.path(), "psi=1").ends_with("update-grub && reboot"));
    }
}
