//! The diagnosis: everything this machine can do, what it cannot, and what fixes that.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::abi::{Abi, ABIS, FOREIGN};
use crate::ability::{self, Ability, Language, TechniqueAbility};
use crate::allocator::{self, Allocator, ALLOCATORS};
use crate::cgroup::{self, Cgroup};
use crate::compiler;
use crate::counters::{self, Counter};
use crate::foreign::{self, ForeignAbi};
use crate::i386_entry;
use crate::noise::{self, Noise, NoiseReader};
use crate::package::Packages;
use crate::qemu::{self, Qemu};
use crate::record::MachineRecord;
use crate::topology::{choose_core, Source};
use crate::unavailable::Unavailable;
use crate::valgrind::{self, Valgrind};

/// The version of the JSON below. It grows when a field changes its meaning or is removed, not when one is added.
pub const SCHEMA: u32 = 1;

/// How long noise is observed.
const WATCH: Duration = Duration::from_secs(1);

/// The output of `widthwise doctor`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What the machine is, and how it is set.
    pub machine: MachineRecord,
    /// What builds and starts: one entry for each ABI, compiler and language.
    pub abilities: Vec<Ability>,
    /// Which compilers can use link-time and profile-guided optimisation, for which ABI.
    pub techniques: Vec<TechniqueAbility>,
    /// Allocators, for each ABI.
    pub allocators: Vec<Allocator>,
    /// Events that can be counted.
    pub counters: Vec<Counter>,
    /// Emulated counters.
    pub valgrind: Valgrind,
    /// Other kernels.
    pub qemu: Qemu,
    /// ABIs of other processors.
    #[serde(default)]
    pub foreign: Vec<ForeignAbi>,
    /// Control groups.
    pub cgroup: Cgroup,
    /// The noise of one second without work of ours.
    pub noise: Noise,
    /// The CPU a campaign would measure on now.
    pub measured_cpu: Option<u32>,
    /// The detection floor from an A/A test; absent if none was made.
    pub noise_floor: Option<NoiseFloor>,
    /// Why the A/A test that was asked for gave no floor.
    #[serde(default)]
    pub no_noise_floor: Option<String>,
    /// Everything that is missing, with its fix.
    pub missing: Vec<Missing>,
}

/// The result of an A/A test: one program measured under two names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// The metric's name.
    pub metric: String,
    /// The half-width of the interval, as a share: 0.009 for 0.9 %.
    pub share: f64,
    /// How long the test took, in seconds.
    pub seconds: f64,
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What, in a few words: `clang for i386`.
    pub what: String,
    /// Why, and what fixes it.
    #[serde(flatten)]
    pub unavailable: Unavailable,
}

/// Examines this machine. Takes some seconds: it compiles, starts and emulates small programs, and then observes noise.
pub fn examine() -> Diagnosis {
    let packages = Packages::here();
    let compilers = compiler::discover();
    let machine = MachineRecord::with(compilers.clone());
    // Noise first: the following steps would disturb it.
    let (noise, busy) = watch(machine.topology.online());
    // Waits, and needs little of the CPU.
    let qemu = std::thread::spawn(|| qemu::probe(&Packages::here()));
    let (abilities, valgrind, foreign) = match tempfile::Builder::new().prefix("widthwise-doctor-").tempdir()
    {
        Ok(folder) => {
            let abilities = ability::probe_in(folder.path(), &compilers, &packages);
            let valgrind = valgrind::probe(folder.path(), &abilities, &packages);
            let foreign = foreign::probe(folder.path(), compiler::default(&compilers), &packages);
            (abilities, valgrind, foreign)
        }
        Err(error) => {
            let unavailable = Unavailable::permanent(format!("no folder for trial programs: {error}"));
            let valgrind = Valgrind { version: Err(unavailable), abis: Vec::new() };
            (ability::probe(&compilers), valgrind, Vec::new())
        }
    };
    let techniques = ability::probe_techniques(&abilities, &compilers);
    let mut diagnosis = Diagnosis {
        schema: SCHEMA,
        measured_cpu: choose_core(&machine.topology, &busy, &BTreeSet::new()),
        counters: counters::probe(&machine.settings),
        machine,
        abilities,
        techniques,
        allocators: allocator::discover(),
        valgrind,
        qemu: qemu.join().unwrap_or_else(|_| qemu::probe(&packages)),
        foreign,
        cgroup: cgroup::look(),
        noise,
        noise_floor: None,
        no_noise_floor: None,
        missing: Vec::new(),
    };
    diagnosis.missing = missing(&diagnosis, &packages);
    let entry = i386_entry::missing()
        .map(|unavailable| Missing { what: "the i386 entry for x32".into(), unavailable });
    diagnosis.missing.extend(entry);
    diagnosis
}

/// Observes the machine while idle: noise, and which CPUs are in use.
fn watch(cpus: BTreeSet<u32>) -> (Noise, BTreeSet<u32>) {
    let Ok(mut reader) = NoiseReader::open(cpus) else { return Default::default() };
    let before = reader.read();
    std::thread::sleep(WATCH);
    let after = reader.read();
    (noise::between(&before, &after, &[], 0), noise::busy_cpus(&before, &after, noise::BUSY))
}

/// How noisy a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quietness {
    /// No disturbance.
    Quiet,
    /// Small differences take more rounds.
    Fair,
    /// Small differences may not be found at all.
    Noisy,
}

/// Judges the noise of the idle machine. At the bounds, an intermittent disturbance moves a mean by 0.5 % and by 5 %.
pub fn quietness(noise: &Noise) -> Quietness {
    let worst = noise.steal.max(noise.others);
    if noise.throttled > 0 || worst > 0.05 {
        Quietness::Noisy
    } else if worst > 0.005 {
        Quietness::Fair
    } else {
        Quietness::Quiet
    }
}

/// Everything that is missing, the most important first; one entry for each fix.
fn missing(diagnosis: &Diagnosis, packages: &Packages) -> Vec<Missing> {
    let mut missing = Vec::new();
    missing.extend(missing_compilers(diagnosis, packages));
    for abi in ABIS {
        missing.extend(missing_abilities(diagnosis, abi));
    }
    missing.extend(missing_techniques(diagnosis));
    missing.extend(missing_allocators(diagnosis, packages));
    let note = |what: &str, unavailable: &Unavailable| Missing {
        what: what.to_string(),
        unavailable: unavailable.clone(),
    };
    let hardware = diagnosis.counters.iter().filter(|counter| counter.hardware);
    missing.extend(hardware.filter_map(|c| c.counts.as_ref().err()).next().map(|l| note("counters", l)));
    let software = diagnosis.counters.iter().filter(|counter| !counter.hardware);
    missing
        .extend(software.filter_map(|c| c.counts.as_ref().err()).next().map(|l| note("kernel counters", l)));
    missing
        .extend(diagnosis.valgrind.version.as_ref().err().map(|unavailable| note("valgrind", unavailable)));
    for entry in &diagnosis.valgrind.abis {
        let what = format!("valgrind for {}", entry.abi);
        missing.extend(entry.runs.as_ref().err().map(|unavailable| note(&what, unavailable)));
    }
    missing.extend(diagnosis.qemu.version.as_ref().err().map(|unavailable| note("QEMU", unavailable)));
    missing.extend(diagnosis.qemu.kvm.as_ref().err().map(|unavailable| note("KVM", unavailable)));
    missing.extend(missing_processors(diagnosis, packages));
    if diagnosis.machine.topology.source != Source::Hwloc {
        // The package with a graphical lstopo holds everything that the one without does.
        let package = if packages.installed("hwloc") { "hwloc" } else { "hwloc-nox" };
        let unavailable =
            Unavailable { reason: "topology is read from /sys".into(), fix: packages.provide(&[package]) };
        missing.push(note("hwloc", &unavailable));
    }
    let cgroup = diagnosis.cgroup.groups.as_ref().err().or(diagnosis.cgroup.memory.as_ref().err());
    missing.extend(cgroup.map(|unavailable| note("control groups", unavailable)));
    missing.extend(throttled(&diagnosis.cgroup));
    let settings = &diagnosis.machine.settings;
    missing.extend(settings.pressure.as_ref().err().map(|unavailable| note("pressure", unavailable)));
    missing.extend(settings.taskstats.as_ref().err().map(|unavailable| note("taskstats", unavailable)));
    missing.extend(unsteady_frequency(diagnosis, packages));
    once_for_each_fix(missing)
}

/// Without any compiler nothing can be built; with gcc alone, the compiler axis has one value.
fn missing_compilers(diagnosis: &Diagnosis, packages: &Packages) -> Vec<Missing> {
    ["gcc", "clang"]
        .into_iter()
        .filter(|family| !diagnosis.machine.compilers.values().any(|found| found.family.cc() == *family))
        .filter_map(|family| {
            compiler::missing(family, packages)
                .map(|unavailable| Missing { what: family.to_string(), unavailable })
        })
        .collect()
}

/// What does not build, per compiler; and, once per ABI, why programs do not start.
fn missing_abilities(diagnosis: &Diagnosis, abi: Abi) -> Vec<Missing> {
    let of_abi = || diagnosis.abilities.iter().filter(|ability| ability.abi == abi.name);
    let lack_of = |compiler: &str, language| {
        of_abi().find(|a| a.compiler == compiler && a.language == language)?.builds.as_ref().err()
    };
    let mut missing = Vec::new();
    for compiler in diagnosis.machine.compilers.keys() {
        match (lack_of(compiler, Language::C), lack_of(compiler, Language::Cxx)) {
            // What fixes C++ fixes C too.
            (Some(c), cxx) => missing.push(Missing {
                what: format!("{compiler} for {}", abi.name),
                unavailable: Unavailable {
                    reason: c.reason.clone(),
                    fix: cxx.and_then(|cxx| cxx.fix.clone()).or_else(|| c.fix.clone()),
                },
            }),
            (None, Some(cxx)) => {
                missing.push(Missing {
                    what: format!("{compiler} C++ for {}", abi.name),
                    unavailable: cxx.clone(),
                });
            }
            (None, None) => {}
        }
    }
    let refused = of_abi().filter(|ability| ability.builds.is_ok()).find_map(|a| a.runs.as_ref().err());
    missing.extend(refused.map(|unavailable| Missing {
        what: format!("starting {}", abi.name),
        unavailable: unavailable.clone(),
    }));
    missing
}

fn missing_techniques(diagnosis: &Diagnosis) -> Vec<Missing> {
    let entry = |ability: &TechniqueAbility| {
        let unavailable = ability.builds.as_ref().err()?.clone();
        let what = format!("{} with {} for {}", ability.technique, ability.compiler, ability.abi);
        Some(Missing { what, unavailable })
    };
    diagnosis.techniques.iter().filter_map(entry).collect()
}

/// Allocators: for each ABI one entry, with one command for all that are missing.
fn missing_allocators(diagnosis: &Diagnosis, packages: &Packages) -> Vec<Missing> {
    ABIS.iter()
        .filter_map(|abi| {
            let suffix = abi.package_suffix?;
            let absent: Vec<&str> = diagnosis
                .allocators
                .iter()
                .filter(|allocator| allocator.abi == abi.name && allocator.file.is_err())
                .map(|allocator| allocator.name.as_str())
                .collect();
            let names: Vec<String> = ALLOCATORS
                .iter()
                .filter(|row| absent.contains(&row.name))
                .map(|row| format!("{}{suffix}", row.package))
                .collect();
            let reason = format!("{} not installed", absent.join(", "));
            (!absent.is_empty()).then(|| Missing {
                what: format!("allocators for {}", abi.name),
                unavailable: Unavailable { reason, fix: packages.install(&names) },
            })
        })
        .collect()
}

/// Other processors: one entry, with one command for all.
fn missing_processors(diagnosis: &Diagnosis, packages: &Packages) -> Option<Missing> {
    let missing: Vec<&ForeignAbi> = diagnosis.foreign.iter().filter(|one| one.runs.is_err()).collect();
    let first = missing.first()?.runs.as_ref().err()?;
    let names: Vec<&str> = missing.iter().map(|one| one.abi.as_str()).collect();
    let major = compiler_major(diagnosis);
    let mut wanted = vec!["qemu-user".to_owned()];
    for abi in FOREIGN.iter().filter(|abi| names.contains(&abi.name)) {
        wanted.extend(major.iter().flat_map(|major| {
            [format!("gcc-{major}-{}", abi.triplet), format!("g++-{major}-{}", abi.triplet)]
        }));
    }
    let fix = first.fix.as_ref().and_then(|_| packages.install(&wanted));
    Some(Missing {
        what: format!("programs of {}", names.join(", ")),
        unavailable: Unavailable { reason: first.reason.clone(), fix },
    })
}

/// The version of the default compiler, if it is gcc.
fn compiler_major(diagnosis: &Diagnosis) -> Option<u32> {
    let mut all = diagnosis.machine.compilers.values();
    all.find(|found| found.default && found.family == compiler::Family::Gcc).map(|found| found.major())
}

/// A governor that follows the load makes the first part of every run slower than the rest.
fn unsteady_frequency(diagnosis: &Diagnosis, packages: &Packages) -> Option<Missing> {
    let governor = diagnosis.machine.settings.governor.as_deref()?;
    if governor == "performance" {
        return None;
    }
    let set = "cpupower frequency-set -g performance";
    let fix = match packages.install(&["linux-cpupower"]) {
        Some(install) => format!("{install} && {set}"),
        None => set.to_string(),
    };
    Some(Missing {
        what: "steady frequency".into(),
        unavailable: Unavailable::with_fix(format!("the governor is {governor}"), fix),
    })
}

/// A group that may not have a whole CPU is stopped for a part of each period (100 ms), also while a program is measured.
fn throttled(cgroup: &Cgroup) -> Option<Missing> {
    let limit = cgroup.cpu_limit.filter(|limit| *limit < 1.0)?;
    let reason =
        format!("the control group allows {limit} CPUs: runs are throttled, and their times mean little");
    Some(Missing { what: "a whole CPU".into(), unavailable: Unavailable::permanent(reason) })
}

/// Merges entries with the same fix: the first is kept, with both names.
fn once_for_each_fix(all: Vec<Missing>) -> Vec<Missing> {
    let mut kept: Vec<Missing> = Vec::new();
    for one in all {
        let control = kept.iter_mut().find(|seen| {
            seen.unavailable == one.unavailable
                || (seen.unavailable.fix.is_some() && seen.unavailable.fix == one.unavailable.fix)
        });
        match control {
            Some(seen) => seen.what = both(&seen.what, &one.what),
            None => kept.push(one),
        }
    }
    kept
}

/// `clang-14 for x32` and `clang-14 for i386` are `clang-14 for x32, i386`.
fn both(first: &str, second: &str) -> String {
    match (first.split_once(" for "), second.split_once(" for ")) {
        (Some((whose, _)), Some((same, abi))) if whose == same => format!("{first}, {abi}"),
        _ => format!("{first}, {second}"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
