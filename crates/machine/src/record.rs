//! The machine record of a campaign, and its changes since.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::allocator;
use crate::compiler::Compiler;
use crate::system_settings::Settings;
use crate::topology::Topology;

/// The properties of a machine that affect a measurement. Gathered without compiling anything, in well under a second;
/// written the same way each time, so that two records can be compared as text.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineRecord {
    /// What it is and how it is set.
    pub settings: Settings,
    /// What it is made of.
    pub topology: Topology,
    /// The compilers that the campaign builds with, by name; `doctor` has every compiler.
    pub compilers: BTreeMap<String, Compiler>,
    /// Every allocator that can be preloaded: by ABI, then by name.
    pub allocators: BTreeMap<String, BTreeMap<String, PathBuf>>,
}

impl MachineRecord {
    /// The record of this machine, now, with these compilers.
    pub fn with(compilers: Vec<Compiler>) -> MachineRecord {
        let mut allocators: BTreeMap<String, BTreeMap<String, PathBuf>> = BTreeMap::new();
        for found in allocator::discover() {
            if let Ok(file) = found.file {
                allocators.entry(found.abi).or_default().insert(found.name, file);
            }
        }
        let mut by_name = BTreeMap::new();
        for compiler in compilers {
            // A cross compiler has the name of the machine's own, which stands before it.
            by_name.entry(compiler.name.clone()).or_insert(compiler);
        }
        MachineRecord {
            settings: Settings::here(),
            topology: Topology::here(),
            compilers: by_name,
            allocators,
        }
    }
}

impl MachineRecord {
    /// The record as text: a name and a value each. Unknown values are left out.
    pub fn lines(&self) -> Vec<(String, String)> {
        let settings = &self.settings;
        let mut lines = Vec::new();
        let mut line = |name: &str, value: Option<String>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                lines.push((name.to_owned(), value));
            }
        };
        let virtual_machine = if settings.hypervisor { " (in a virtual machine)" } else { "" };
        line("processor", settings.cpu_model.as_ref().map(|model| format!("{model}{virtual_machine}")));
        line("cores", Some(self.cores()));
        line("memory", settings.memory_bytes.map(|bytes| format!("{:.1} GB", bytes as f64 / 1e9)));
        line("swap", settings.swap_bytes.map(|bytes| format!("{:.1} GB", bytes as f64 / 1e9)));
        line("kernel", settings.kernel.clone());
        line("system", settings.distribution.clone());
        line("huge pages", settings.thp.clone());
        line("governor", settings.governor.clone());
        line("turbo", settings.turbo.map(|on| if on { "on" } else { "off" }.to_owned()));
        line(
            "address randomisation",
            settings.aslr.map(|level| match level {
                0 => "off".to_owned(),
                1 => "on, without the heap".to_owned(),
                _ => "on".to_owned(),
            }),
        );
        line("load at the beginning", settings.load.map(|load| format!("{load:.2}")));
        for compiler in self.compilers.values() {
            line(&compiler.name, Some(compiler.banner.clone()));
        }
        for (abi, allocators) in &self.allocators {
            let names: Vec<&str> = allocators.keys().map(String::as_str).collect();
            line(&format!("allocators for {abi}"), Some(names.join(", ")));
        }
        lines
    }

    fn cores(&self) -> String {
        let cores = self.topology.cores.len();
        let threads = self.topology.threads_per_core();
        let smt = if threads > 1 { format!(", {threads} SMT siblings each") } else { ", no SMT".to_owned() };
        let packages = self.topology.packages;
        let sockets = if packages > 1 { format!(" in {packages} packages") } else { String::new() };
        format!("{cores}{sockets}{smt}")
    }
}

/// A balloon driver gives and takes a little memory of a virtual machine, and a kernel update moves MemTotal by some
/// megabytes: such changes do not count.
const MEMORY_TOLERANCE: f64 = 0.02;

/// The changes between two records that prevent resuming a campaign, as text: `kernel: 6.1.0-1 → 6.1.0-2`. Empty if the
/// campaign may be resumed.
///
/// Compilers that only one of them has, additional allocators, load, swap and `perf_event_paranoid` do not count: earlier
/// records have every compiler of the machine, and a campaign cannot be resumed without a compiler that it builds with.
pub fn changes(old: &MachineRecord, new: &MachineRecord) -> Vec<String> {
    let mut changes = Vec::new();
    let mut note = |what: &str, then: &str, now: &str| {
        if then != now {
            changes.push(format!("{what}: {then} → {now}"));
        }
    };
    let (then, now) = (&old.settings, &new.settings);
    note("processor", shown(&then.cpu_model), shown(&now.cpu_model));
    let cpus = |record: &MachineRecord| record.topology.online().len().to_string();
    note("CPUs", &cpus(old), &cpus(new));
    if memory_changed(then.memory_bytes, now.memory_bytes) {
        note("memory", &mebibytes(then.memory_bytes), &mebibytes(now.memory_bytes));
    }
    note("kernel", shown(&then.kernel), shown(&now.kernel));
    for (name, compiler) in &old.compilers {
        if let Some(now) = new.compilers.get(name) {
            note(name, &compiler.banner, &now.banner);
        }
    }
    for (abi, files) in &old.allocators {
        for (name, file) in files {
            let now = new.allocators.get(abi).and_then(|files| files.get(name));
            let now = now.map_or("gone".to_string(), |file| file.display().to_string());
            note(&format!("{name} for {abi}"), &file.display().to_string(), &now);
        }
    }
    note("THP", shown(&then.thp), shown(&now.thp));
    note("THP defrag", shown(&then.thp_defrag), shown(&now.thp_defrag));
    note("governor", shown(&then.governor), shown(&now.governor));
    note("turbo", &switch(then.turbo), &switch(now.turbo));
    note("SMT", shown(&then.smt), shown(&now.smt));
    note("ASLR", &number(then.aslr), &number(now.aslr));
    changes
}

fn shown(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("unknown")
}

fn switch(on: Option<bool>) -> String {
    on.map_or("unknown", |on| if on { "on" } else { "off" }).to_string()
}

fn number(value: Option<impl Display>) -> String {
    value.map_or("unknown".to_string(), |value| value.to_string())
}

fn memory_changed(then: Option<u64>, now: Option<u64>) -> bool {
    match (then, now) {
        (Some(then), Some(now)) => then.abs_diff(now) as f64 > MEMORY_TOLERANCE * then.max(now) as f64,
        _ => then != now,
    }
}

fn mebibytes(bytes: Option<u64>) -> String {
    bytes.map_or("unknown".to_string(), |bytes| format!("{} MiB", bytes >> 20))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::compiler::Family;
    use crate::topology::{Core, CoreKind};

    fn gcc(banner: &str) -> Compiler {
        Compiler {
            name: "gcc-12".into(),
            family: Family::Gcc,
            version: "12.2.0".into(),
            banner: banner.into(),
            cc: "/usr/bin/gcc-12".into(),
            cxx: None,
            ar: "/usr/bin/gcc-ar-12".into(),
            ranlib: "/usr/bin/gcc-ranlib-12".into(),
            nm: "/usr/bin/gcc-nm-12".into(),
            profdata: None,
            default: true,
        }
    }

    fn core(cpu: u32) -> Core {
        Core { package: 0, cpus: BTreeSet::from([cpu]), kind: CoreKind::Performance }
    }

    fn record() -> MachineRecord {
        MachineRecord {
            settings: Settings {
                cpu_model: Some("Some CPU".into()),
                kernel: Some("6.1.0-1".into()),
                memory_bytes: Some(16 << 30),
                thp: Some("madvise".into()),
                governor: Some("performance".into()),
                aslr: Some(2),
                ..Settings::default()
            },
            topology: Topology { cores: vec![core(0), core(1)], ..Topology::default() },
            compilers: BTreeMap::from([("gcc-12".to_string(), gcc("gcc-12 (Debian 12.2.0-14) 12.2.0"))]),
            allocators: BTreeMap::from([(
                "i386".to_string(),
                BTreeMap::from([("jemalloc".to_string(), PathBuf::from("/usr/lib/libjemalloc.so.2"))]),
            )]),
        }
    }

    #[test]
    fn a_machine_that_is_the_same_has_not_changed() {
        let mut later = record();
        later.settings.load = Some(3.0);
        later.settings.memory_bytes = Some((16 << 30) - (64 << 20));
        later
            .compilers
            .insert("clang-14".into(), Compiler { name: "clang-14".into(), ..gcc("clang version 14") });
        assert_eq!(changes(&record(), &later), Vec::<String>::new());
    }

    #[test]
    fn each_relevant_change_is_described() {
        let mut later = record();
        later.settings.kernel = Some("6.1.0-2".into());
        later.settings.thp = Some("always".into());
        later.settings.governor = None;
        later.settings.aslr = Some(0);
        later.settings.memory_bytes = Some(8 << 30);
        later.settings.cpu_model = Some("Other CPU".into());
        later.topology.cores.pop();
        later.compilers.insert("gcc-12".into(), gcc("gcc-12 (Debian 12.2.0-15) 12.2.0"));
        later.allocators.clear();
        assert_eq!(
            changes(&record(), &later),
            [
                "processor: Some CPU → Other CPU",
                "CPUs: 2 → 1",
                "memory: 16384 MiB → 8192 MiB",
                "kernel: 6.1.0-1 → 6.1.0-2",
                "gcc-12: gcc-12 (Debian 12.2.0-14) 12.2.0 → gcc-12 (Debian 12.2.0-15) 12.2.0",
                "jemalloc for i386: /usr/lib/libjemalloc.so.2 → gone",
                "THP: madvise → always",
                "governor: performance → unknown",
                "ASLR: 2 → 0",
            ]
        );
    }

    #[test]
    fn a_compiler_that_the_campaign_does_not_use_is_no_change() {
        let mut later = record();
        later.compilers.clear();
        assert_eq!(changes(&record(), &later), Vec::<String>::new());
    }

    #[test]
    fn this_machines_record_survives_json_and_is_written_the_same_way_twice() {
        let here = MachineRecord::with(crate::compiler::discover());
        let text = serde_json::to_string(&here).unwrap();
        let back: MachineRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(here, back);
        assert_eq!(text, serde_json::to_string(&back).unwrap());
        assert_eq!(changes(&here, &back), Vec::<String>::new());
    }

    #[test]
    fn a_record_from_before_a_field_existed_is_still_read() {
        let old: MachineRecord = serde_json::from_str(r#"{"settings": {"kernel": "6.1.0-1"}}"#).unwrap();
        assert_eq!(old.settings.kernel.as_deref(), Some("6.1.0-1"));
        assert!(serde_json::from_str::<MachineRecord>(r#"{"settings": 5}"#).is_err());
    }
}
