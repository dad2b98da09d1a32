use std::collections::BTreeMap;

use super::*;
use crate::ability::Technique;
use crate::compiler::{Compiler, Family};
use crate::system_settings::Settings;
use crate::topology::{Cache, Core, CoreKind, Topology};
use crate::valgrind::ValgrindAbi;

fn compiler(name: &str, family: Family, version: &str, default: bool) -> Compiler {
    Compiler {
        name: name.into(),
        family,
        version: version.into(),
        banner: format!("{name} {version}"),
        cc: format!("/usr/bin/{name}").into(),
        cxx: None,
        ar: "/usr/bin/ar".into(),
        ranlib: "/usr/bin/ranlib".into(),
        nm: "/usr/bin/nm".into(),
        profdata: None,
        default,
    }
}

fn unavailable(reason: &str, fix: &str) -> Unavailable {
    Unavailable::with_fix(reason, fix)
}

/// x32 builds and does not start, clang has no i386 and no profiles.
fn abilities() -> (Vec<Ability>, Vec<TechniqueAbility>) {
    let no_x32 = unavailable("this kernel has no x32", "boot another kernel");
    let no_i386 =
        |packages: &str| unavailable("ld: cannot find Scrt1.o", &format!("apt-get install {packages}"));
    let mut abilities = Vec::new();
    let mut techniques = Vec::new();
    for abi in ["x86-64", "x32", "i386"] {
        for compiler in ["gcc-12", "clang-14"] {
            for language in [Language::C, Language::Cxx] {
                let builds = match (abi, compiler, language) {
                    ("i386", "clang-14", Language::C) => Err(no_i386("gcc-12-multilib")),
                    ("i386", "clang-14", Language::Cxx) => Err(no_i386("g++-12-multilib gcc-12-multilib")),
                    _ => Ok(()),
                };
                let runs = match (abi, &builds) {
                    ("x32", _) => Err(no_x32.clone()),
                    (_, Ok(())) => Ok(()),
                    _ => Err(Unavailable::permanent("does not build")),
                };
                let (abi, compiler) = (abi.to_string(), compiler.to_string());
                abilities.push(Ability { abi, compiler, language, builds, runs });
            }
            let builds =
                if compiler == "gcc-12" { Ok(()) } else { Err(Unavailable::permanent("no library")) };
            for (technique, builds) in [(Technique::Lto, Ok(())), (Technique::Pgo, builds)] {
                let (abi, compiler) = (abi.to_string(), compiler.to_string());
                techniques.push(TechniqueAbility { abi, compiler, technique, builds });
            }
        }
    }
    (abilities, techniques)
}

/// A machine with many missing parts: x32 builds and does not start, clang has no i386, no PMU, no QEMU.
pub(crate) fn lacking() -> Diagnosis {
    let compilers = BTreeMap::from([
        ("gcc-12".to_string(), compiler("gcc-12", Family::Gcc, "12.2.0", true)),
        ("clang-14".to_string(), compiler("clang-14", Family::Clang, "14.0.6", false)),
    ]);
    let set = |cpus: &[u32]| cpus.iter().copied().collect::<BTreeSet<u32>>();
    let core = |cpu| Core { package: 0, cpus: set(&[cpu]), kind: CoreKind::Performance };
    let (abilities, techniques) = abilities();
    let counter = |name: &str, hardware, counts| Counter { name: name.into(), hardware, counts };
    let no_pmu = || Err(unavailable("no PMU in this virtual machine", "give it one"));
    let allocator = |name: &str, abi: &str, file| Allocator { name: name.into(), abi: abi.into(), file };
    Diagnosis {
        schema: SCHEMA,
        machine: MachineRecord {
            settings: Settings {
                cpu_model: Some("Some \x1b[31mCPU".into()),
                kernel: Some("6.1.0-32-amd64".into()),
                distribution: Some("Debian GNU/Linux 12 (bookworm)".into()),
                memory_bytes: Some(25_274_000_000),
                swap_bytes: Some(0),
                hypervisor: true,
                thp: Some("madvise".into()),
                aslr: Some(2),
                load: Some(0.31),
                pressure: Ok(()),
                taskstats: Ok(()),
                ..Settings::default()
            },
            topology: Topology {
                source: Source::Hwloc,
                packages: 1,
                cores: vec![core(0), core(1)],
                caches: vec![Cache { level: 3, size: 32 << 20, cpus: set(&[0, 1]) }],
                allowed: set(&[0, 1]),
                ..Topology::default()
            },
            compilers,
            allocators: BTreeMap::new(),
        },
        abilities,
        techniques,
        allocators: vec![
            allocator("jemalloc", "x86-64", Ok("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2".into())),
            allocator(
                "mimalloc",
                "x86-64",
                Err(unavailable("not installed", "apt-get install libmimalloc2.0")),
            ),
            allocator(
                "jemalloc",
                "x32",
                Err(Unavailable::permanent("no distribution builds jemalloc for x32")),
            ),
        ],
        counters: vec![
            counter("cycles", true, no_pmu()),
            counter("instructions", true, no_pmu()),
            counter("task_clock", false, Ok(())),
        ],
        valgrind: Valgrind {
            version: Ok("3.19.0".into()),
            abis: vec![
                ValgrindAbi { abi: "x86-64".into(), runs: Ok(()) },
                ValgrindAbi {
                    abi: "x32".into(),
                    runs: Err(Unavailable::permanent("it ended without a word")),
                },
            ],
        },
        qemu: Qemu {
            version: Err(unavailable(
                "qemu-system-x86_64 is not on the PATH",
                "apt-get install qemu-system-x86",
            )),
            kvm: Ok(()),
        },
        foreign: vec![
            ForeignAbi { abi: "ppc64".into(), runs: Ok(()) },
            ForeignAbi {
                abi: "s390x".into(),
                runs: Err(unavailable("qemu-s390x is not on the PATH", "apt-get install qemu-user")),
            },
        ],
        cgroup: Cgroup { groups: Ok(()), memory: Ok(()), ..Cgroup::default() },
        noise: Noise { steal: 0.003, pressure: Some(0.01), others: 0.012, throttled: 0 },
        measured_cpu: Some(1),
        noise_floor: None,
        no_noise_floor: None,
        missing: Vec::new(),
    }
}

/// A Debian with nothing installed.
fn bare_debian() -> (tempfile::TempDir, Packages) {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("var/lib/dpkg/info")).unwrap();
    let packages = Packages::at(root.path());
    (root, packages)
}

fn missing_of(diagnosis: &Diagnosis) -> BTreeMap<String, Unavailable> {
    let (_root, packages) = bare_debian();
    missing(diagnosis, &packages).into_iter().map(|one| (one.what, one.unavailable)).collect()
}

fn fix<'a>(missing: &'a BTreeMap<String, Unavailable>, what: &str) -> Option<&'a str> {
    missing.get(what).unwrap_or_else(|| panic!("{what} is not in {missing:#?}")).fix.as_deref()
}

#[test]
fn each_missing_thing_is_named_with_its_fix() {
    let missing = missing_of(&lacking());
    assert_eq!(fix(&missing, "starting x32"), Some("boot another kernel"));
    assert_eq!(fix(&missing, "counters"), Some("give it one"));
    assert_eq!(fix(&missing, "QEMU"), Some("apt-get install qemu-system-x86"));
    assert_eq!(fix(&missing, "valgrind for x32"), None);
    assert_eq!(fix(&missing, "allocators for x86-64"), Some("apt-get install libmimalloc2.0"));
    assert!(!missing.contains_key("allocators for x32"), "no distribution builds any");
    assert!(
        !missing.contains_key("starting i386"),
        "what does not build with one compiler starts with another"
    );
}

#[test]
fn a_compiler_without_an_abi_is_one_entry_with_the_fix_for_both_languages() {
    let missing = missing_of(&lacking());
    assert_eq!(fix(&missing, "clang-14 for i386"), Some("apt-get install g++-12-multilib gcc-12-multilib"));
    assert!(!missing.keys().any(|what| what.contains("C++")), "{missing:?}");
}

#[test]
fn each_fix_is_listed_once() {
    let mut diagnosis = lacking();
    for ability in diagnosis.abilities.iter_mut().filter(|ability| ability.abi == "i386") {
        ability.builds = Err(unavailable("cannot find -lgcc", "apt-get install gcc-12-multilib"));
    }
    let missing = missing_of(&diagnosis);
    assert_eq!(fix(&missing, "clang-14 for i386, gcc-12 for i386"), Some("apt-get install gcc-12-multilib"));
}

#[test]
fn names_that_differ_only_in_the_abi_are_merged() {
    assert_eq!(
        both("PGO with clang-14 for x86-64", "PGO with clang-14 for i386"),
        "PGO with clang-14 for x86-64, i386"
    );
    assert_eq!(both("gcc-12 for x32", "QEMU"), "gcc-12 for x32, QEMU");
}

#[test]
fn a_machine_without_compilers_lists_the_fix() {
    let mut diagnosis = lacking();
    diagnosis.machine.compilers.clear();
    diagnosis.abilities.clear();
    diagnosis.techniques.clear();
    let missing = missing_of(&diagnosis);
    assert_eq!(fix(&missing, "gcc"), Some("apt-get install gcc g++"));
    assert_eq!(fix(&missing, "clang"), Some("apt-get install clang lld"));
}

#[test]
fn only_a_governor_that_follows_the_load_has_a_fix() {
    let mut diagnosis = lacking();
    diagnosis.machine.settings.governor = Some("powersave".into());
    assert_eq!(
        fix(&missing_of(&diagnosis), "steady frequency"),
        Some("apt-get install linux-cpupower && cpupower frequency-set -g performance")
    );
    diagnosis.machine.settings.governor = Some("performance".into());
    assert!(!missing_of(&diagnosis).contains_key("steady frequency"));
}

#[test]
fn a_group_without_a_whole_cpu_is_no_machine_to_measure_on() {
    let mut diagnosis = lacking();
    for (limit, is_named) in [(None, false), (Some(4.0), false), (Some(0.5), true)] {
        diagnosis.cgroup.cpu_limit = limit;
        assert_eq!(missing_of(&diagnosis).contains_key("a whole CPU"), is_named, "{limit:?}");
    }
}

#[test]
fn noise_is_judged_by_its_worst_part() {
    let noise = |steal, others, throttled| quietness(&Noise { steal, pressure: None, others, throttled });
    assert_eq!(noise(0.0, 0.004, 0), Quietness::Quiet);
    assert_eq!(noise(0.02, 0.0, 0), Quietness::Fair);
    assert_eq!(noise(0.0, 0.2, 0), Quietness::Noisy);
    assert_eq!(noise(0.0, 0.0, 1), Quietness::Noisy);
}

#[test]
fn the_diagnosis_survives_json_with_reasons_and_fixes_in_it() {
    let (_root, packages) = bare_debian();
    let mut diagnosis = lacking();
    diagnosis.missing = missing(&diagnosis, &packages);
    let text = serde_json::to_string(&diagnosis).unwrap();
    assert_eq!(serde_json::from_str::<Diagnosis>(&text).unwrap(), diagnosis);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], 1);
    assert_eq!(value["qemu"]["version"]["no"]["fix"], "apt-get install qemu-system-x86");
    assert_eq!(value["valgrind"]["version"]["yes"], "3.19.0");
    let x32 = value["missing"].as_array().unwrap().iter().find(|one| one["what"] == "starting x32").unwrap();
    assert_eq!(x32["reason"], "this kernel has no x32");
}
