//! Settings of the kernel and the firmware that affect a measurement.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::boot_options;
use crate::kernel_config;
use crate::sysfs::{bracketed, number, text};
use crate::unavailable::{outcome, Unavailable};

/// What this machine is and how it is set. What cannot be read is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The processor's name.
    pub cpu_model: Option<String>,
    /// The kernel's release, as `uname -r` has it.
    pub kernel: Option<String>,
    /// The distribution's name and version.
    pub distribution: Option<String>,
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Swap space, in bytes.
    pub swap_bytes: Option<u64>,
    /// Whether a hypervisor is underneath.
    pub hypervisor: bool,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub thp: Option<String>,
    /// What a fault does to get a huge page: `always`, `defer`, `madvise`, …
    pub thp_defrag: Option<String>,
    /// The frequency governor; several, with commas, where CPUs differ; absent where frequency is not ours to set.
    pub governor: Option<String>,
    /// Whether the processor may exceed its nominal frequency.
    pub turbo: Option<bool>,
    /// SMT: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub smt: Option<String>,
    /// Address space layout randomisation: 0 off, 1 without the heap, 2 full.
    pub aslr: Option<u8>,
    /// The load average over one minute.
    pub load: Option<f64>,
    /// Who may count events: `kernel.perf_event_paranoid`.
    pub perf_event_paranoid: Option<i32>,
    /// Whether pressure stall information is there.
    #[serde(with = "outcome")]
    pub pressure: Result<(), Unavailable>,
    /// Whether this process may ask the kernel for every process's account at its exit.
    #[serde(with = "outcome")]
    pub taskstats: Result<(), Unavailable>,
}

impl Default for Settings {
    fn default() -> Settings {
        let unknown = || Err(Unavailable::permanent("unknown"));
        Settings {
            cpu_model: None,
            kernel: None,
            distribution: None,
            memory_bytes: None,
            swap_bytes: None,
            hypervisor: false,
            thp: None,
            thp_defrag: None,
            governor: None,
            turbo: None,
            smt: None,
            aslr: None,
            load: None,
            perf_event_paranoid: None,
            pressure: unknown(),
            taskstats: unknown(),
        }
    }
}

impl Settings {
    /// Those of this machine.
    pub fn here() -> Settings {
        Settings::at(Path::new("/"))
    }

    /// Those of the machine whose `/proc`, `/sys` and `/etc` are under `root`.
    pub fn at(root: &Path) -> Settings {
        let proc = root.join("proc");
        let sys = root.join("sys");
        let cpuinfo = text(proc.join("cpuinfo")).unwrap_or_default();
        let meminfo = text(proc.join("meminfo")).unwrap_or_default();
        let sysctl = |name: &str| text(proc.join("sys/kernel").join(name));
        let thp = |name: &str| {
            let text = text(sys.join("kernel/mm/transparent_hugepage").join(name))?;
            bracketed(&text).map(str::to_string)
        };
        Settings {
            cpu_model: field(&cpuinfo, "model name").map(str::to_string),
            kernel: sysctl("osrelease"),
            distribution: text(root.join("etc/os-release")).and_then(|text| pretty_name(&text)),
            memory_bytes: field(&meminfo, "MemTotal").and_then(kilobytes),
            swap_bytes: field(&meminfo, "SwapTotal").and_then(kilobytes),
            hypervisor: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor")),
            thp: thp("enabled"),
            thp_defrag: thp("defrag"),
            governor: governor(&sys),
            turbo: turbo(&sys),
            smt: text(sys.join("devices/system/cpu/smt/control")),
            aslr: sysctl("randomize_va_space").and_then(|text| text.parse().ok()),
            load: text(proc.join("loadavg"))
                .and_then(|text| text.split_ascii_whitespace().next()?.parse().ok()),
            perf_event_paranoid: sysctl("perf_event_paranoid").and_then(|text| text.parse().ok()),
            pressure: pressure(root),
            taskstats: taskstats(&proc),
        }
    }
}

/// The value of a `name : value` line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// `24680000 kB`, where the kernel's kB are 1024 bytes.
fn kilobytes(value: &str) -> Option<u64> {
    value.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn pretty_name(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches(['"', '\'']).to_string())
}

fn governor(sys: &Path) -> Option<String> {
    // One folder per group of CPUs that share a frequency.
    let policies = std::fs::read_dir(sys.join("devices/system/cpu/cpufreq")).ok()?;
    let governors: BTreeSet<String> =
        policies.filter_map(|policy| text(policy.ok()?.path().join("scaling_governor"))).collect();
    let governors: Vec<String> = governors.into_iter().collect();
    (!governors.is_empty()).then(|| governors.join(", "))
}

fn turbo(sys: &Path) -> Option<bool> {
    // intel_pstate has a switch of its own, with the sense reversed (admin-guide/pm/intel_pstate.rst); other drivers
    // share one (admin-guide/pm/cpufreq.rst).
    let cpu = sys.join("devices/system/cpu");
    if let Some(no_turbo) = number::<u8>(cpu.join("intel_pstate/no_turbo")) {
        return Some(no_turbo == 0);
    }
    number::<u8>(cpu.join("cpufreq/boost")).map(|boost| boost != 0)
}

fn pressure(root: &Path) -> Result<(), Unavailable> {
    const REASON: &str = "this kernel reports no pressure stall information";
    // Kernels that have it switched off have no file, or one that cannot be read (kernel/sched/psi.c).
    match text(root.join("proc/pressure/cpu")) {
        Some(_) => Ok(()),
        None if kernel_config::has_any_at(root, &["CONFIG_PSI"]) == Some(false) => {
            Err(Unavailable::permanent(format!("{REASON} (it was built without CONFIG_PSI)")))
        }
        None => Err(Unavailable::with_fix(REASON, boot_options::boot_with("psi=1"))),
    }
}

/// Whether taskstats is available. The kernel demands CAP_NET_ADMIN for the request (GENL_ADMIN_PERM), and that the
/// listener is in the first PID and user namespaces (kernel/taskstats.c, add_del_listener).
fn taskstats(proc: &Path) -> Result<(), Unavailable> {
    const CAP_NET_ADMIN: u32 = 12; // include/uapi/linux/capability.h
    const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]"; // PROC_PID_INIT_INO, include/linux/proc_ns.h
    const FIRST_USER_NAMESPACE: &str = "user:[4026531837]"; // PROC_USER_INIT_INO
    let status = text(proc.join("self/status")).unwrap_or_default();
    let effective = field(&status, "CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    if effective >> CAP_NET_ADMIN & 1 == 0 {
        return Err(Unavailable::with_fix(
            "taskstats needs the right CAP_NET_ADMIN",
            "setcap cap_net_admin+ep \"$(command -v widthwise)\"",
        ));
    }
    let in_first = |name: &str, first: &str| {
        std::fs::read_link(proc.join("self/ns").join(name)).is_ok_and(|link| link.as_os_str() == first)
    };
    if in_first("pid", FIRST_PID_NAMESPACE) && in_first("user", FIRST_USER_NAMESPACE) {
        Ok(())
    } else {
        Err(Unavailable::permanent("taskstats is unavailable inside a container"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let file = root.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            match content.strip_prefix("-> ") {
                Some(target) => std::os::unix::fs::symlink(target, file).unwrap(),
                None => std::fs::write(file, content).unwrap(),
            }
        }
        root
    }

    #[test]
    fn a_laptops_settings_are_read() {
        let root = tree(&[
            ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\nflags\t\t: fpu vme\n"),
            ("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\nSwapTotal:          0 kB\n"),
            ("proc/sys/kernel/osrelease", "6.1.0-32-amd64\n"),
            ("proc/sys/kernel/randomize_va_space", "2\n"),
            ("proc/sys/kernel/perf_event_paranoid", "-1\n"),
            ("proc/loadavg", "0.42 0.30 0.20 1/200 4242\n"),
            ("proc/pressure/cpu", "some avg10=0.00 total=1\n"),
            ("etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never\n"),
            ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
            ("sys/devices/system/cpu/smt/control", "on\n"),
        ]);
        let settings = Settings::at(root.path());
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        assert_eq!(text(&settings.cpu_model), "Some CPU @ 2.0GHz");
        assert_eq!(text(&settings.kernel), "6.1.0-32-amd64");
        assert_eq!(text(&settings.distribution), "Debian GNU/Linux 12 (bookworm)");
        assert_eq!((settings.memory_bytes, settings.swap_bytes), (Some(16 << 20), Some(0)));
        assert!(!settings.hypervisor);
        assert_eq!((text(&settings.thp), text(&settings.thp_defrag)), ("madvise".into(), "madvise".into()));
        assert_eq!(text(&settings.governor), "performance, powersave");
        assert_eq!((settings.turbo, text(&settings.smt)), (Some(true), "on".into()));
        assert_eq!(
            (settings.aslr, settings.load, settings.perf_event_paranoid),
            (Some(2), Some(0.42), Some(-1))
        );
        assert_eq!(settings.pressure, Ok(()));
    }

    #[test]
    fn missing_files_are_absent_rather_than_zero() {
        let root = tree(&[("proc/cpuinfo", "model name : X\nflags : fpu hypervisor\n")]);
        let settings = Settings::at(root.path());
        assert!(settings.hypervisor);
        assert_eq!((settings.memory_bytes, settings.turbo, settings.aslr), (None, None, None));
        assert_eq!((&settings.governor, &settings.thp), (&None, &None));
        assert!(settings.pressure.unwrap_err().fix.unwrap().contains("psi=1"));
    }

    #[test]
    fn a_kernel_without_pressure_has_no_boot_option_for_it() {
        let fix = |config: &str| {
            let files = [("proc/sys/kernel/osrelease", "6.1.0\n"), ("boot/config-6.1.0", config)];
            Settings::at(tree(&files).path()).pressure.unwrap_err().fix
        };
        assert_eq!(fix("# CONFIG_PSI is not set\n"), None);
        assert!(fix("CONFIG_PSI=y\nCONFIG_PSI_DEFAULT_DISABLED=y\n").unwrap().contains("psi=1"));
    }

    #[test]
    fn turbo_is_read_from_either_switch() {
        let boost = tree(&[("sys/devices/system/cpu/cpufreq/boost", "0\n")]);
        assert_eq!(Settings::at(boost.path()).turbo, Some(false));
        let intel = tree(&[("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n")]);
        assert_eq!(Settings::at(intel.path()).turbo, Some(false));
    }

    #[test]
    fn taskstats_needs_the_right_and_the_first_namespaces() {
        let at = |capabilities: &str, namespace: &str| {
            Settings::at(
                tree(&[
                    ("proc/self/status", &format!("CapEff:\t{capabilities}\n")),
                    ("proc/self/ns/pid", &format!("-> {namespace}")),
                    ("proc/self/ns/user", "-> user:[4026531837]"),
                ])
                .path(),
            )
            .taskstats
        };
        assert_eq!(at("000001ffffffffff", "pid:[4026531836]"), Ok(()));
        assert!(at("0000000000000000", "pid:[4026531836]").unwrap_err().fix.unwrap().contains("setcap"));
        assert!(at("0000000000001000", "pid:[4026532001]").unwrap_err().reason.contains("container"));
    }
}
