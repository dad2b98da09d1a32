//! The topology from hwloc's XML (hwloc 2, `hwloc2.dtd`).

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use quick_xml::events::{BytesStart, Event};
use quick_xml::Reader;

use crate::cpulist::{read_bitmap, Cpu};
use crate::tool_output;
use crate::topology::model::{Cache, Core, CoreKind, Node, Source, Topology};

/// Runs `lstopo`; None if hwloc is not installed or its output is not understood.
pub(super) fn ask() -> Option<Topology> {
    let mut command = Command::new("lstopo-no-graphics");
    // Devices are not asked for: probing GPUs takes seconds. CPUs that a cpuset withholds are: one of them may be the
    // busy sibling of one we may use.
    command.args(["--no-io", "--disallowed", "--of", "xml"]);
    // A topology that the user feeds to other programs is not this machine's.
    for variable in ["HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_COMPONENTS"] {
        command.env_remove(variable);
    }
    let output = tool_output::run(&mut command, Duration::from_secs(10)).ok()?;
    output.status.success().then(|| parse(&output.stdout).ok())?
}

/// A set of CPUs of one kind.
#[derive(Default)]
struct Kind {
    cpus: BTreeSet<Cpu>,
    /// Intel reports the kind: `IntelAtom` or `IntelCore`.
    core_type: Option<String>,
    /// Relative performance, from device tree or ACPI (`cpu_capacity`).
    capacity: Option<u64>,
}

/// Reads hwloc's XML.
pub(super) fn parse(xml: &str) -> Result<Topology, String> {
    let mut topology = Topology { source: Source::Hwloc, ..Topology::default() };
    let mut packages: Vec<BTreeSet<Cpu>> = Vec::new();
    let mut cores: Vec<BTreeSet<Cpu>> = Vec::new();
    let mut units: Vec<Cpu> = Vec::new();
    let mut kinds: Vec<Kind> = Vec::new();
    let mut in_kind = false;
    let mut machine_seen = false;

    let mut reader = Reader::from_str(xml);
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Eof => break,
            Event::End(element) if element.name().as_ref() == "cpukind" => in_kind = false,
            event @ (Event::Start(_) | Event::Empty(_)) => {
                let (element, open) = match &event {
                    Event::Start(element) => (element, true),
                    Event::Empty(element) => (element, false),
                    _ => continue,
                };
                match element.name().as_ref() {
                    "topology" => {
                        let version = attribute(element, "version")?.unwrap_or_default();
                        if !version.starts_with("2.") {
                            return Err(format!("hwloc XML version {version:?}, expected 2"));
                        }
                    }
                    "object" => {
                        let cpus = set(element, "cpuset")?;
                        match attribute(element, "type")?.unwrap_or_default().as_str() {
                            "Machine" => {
                                machine_seen = true;
                                topology.allowed = set(element, "allowed_cpuset")?;
                                let complete = set(element, "complete_cpuset")?;
                                topology.offline = complete.difference(&cpus).copied().collect();
                            }
                            "Package" => packages.push(cpus),
                            "Core" => cores.push(cpus),
                            "PU" => units.extend(cpus),
                            "NUMANode" => {
                                let number = number(element, "os_index")?.unwrap_or(0);
                                topology.nodes.push(Node { number, cpus });
                            }
                            // "L1iCache" and the like hold instructions only.
                            "L1Cache" | "L2Cache" | "L3Cache" | "L4Cache" | "L5Cache" => {
                                let level = number(element, "depth")?.unwrap_or(0);
                                let size = number(element, "cache_size")?.unwrap_or(0);
                                topology.caches.push(Cache { level, size, cpus });
                            }
                            _ => {}
                        }
                    }
                    "cpukind" => {
                        in_kind = open;
                        kinds.push(Kind { cpus: set(element, "cpuset")?, ..Kind::default() });
                    }
                    "info" if in_kind => {
                        let value = attribute(element, "value")?.unwrap_or_default();
                        if let Some(kind) = kinds.last_mut() {
                            match attribute(element, "name")?.as_deref() {
                                Some("CoreType") => kind.core_type = Some(value),
                                Some("LinuxCapacity") => kind.capacity = value.parse().ok(),
                                _ => {}
                            }
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    if !machine_seen || units.is_empty() {
        return Err("no machine in it".into());
    }
    if cores.is_empty() {
        // Some virtual machines do not report which CPUs make a core.
        cores = units.iter().map(|cpu| BTreeSet::from([*cpu])).collect();
    }
    let fastest = kinds.iter().filter_map(|kind| kind.capacity).max();
    topology.packages = packages.len().max(1);
    topology.cores = cores
        .into_iter()
        .filter(|cpus| !cpus.is_empty())
        .map(|cpus| Core {
            package: packages.iter().position(|package| cpus.is_subset(package)).unwrap_or(0),
            kind: kinds
                .iter()
                .find(|kind| !kind.cpus.is_disjoint(&cpus))
                .map_or(CoreKind::Performance, |kind| kind_of(kind, fastest)),
            cpus,
        })
        .collect();
    Ok(topology)
}

fn kind_of(kind: &Kind, fastest: Option<u64>) -> CoreKind {
    let slower = match (kind.core_type.as_deref(), kind.capacity, fastest) {
        (Some(core_type), ..) => core_type == "IntelAtom",
        (None, Some(capacity), Some(fastest)) => super::sysfs::is_slower(capacity, fastest),
        _ => false,
    };
    if slower {
        CoreKind::Efficiency
    } else {
        CoreKind::Performance
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    let Some(attribute) = element.try_get_attribute(name).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let value = attribute.value.as_ref();
    let value = quick_xml::escape::unescape(value).map_err(|error| error.to_string())?;
    Ok(Some(value.into_owned()))
}

fn number<T: std::str::FromStr>(element: &BytesStart<'_>, name: &str) -> Result<Option<T>, String> {
    attribute(element, name)?
        .map(|text| text.parse().map_err(|_| format!("{name}={text:?} is no number")))
        .transpose()
}

fn set(element: &BytesStart<'_>, name: &str) -> Result<BTreeSet<Cpu>, String> {
    match attribute(element, name)? {
        // Devices have no CPUs.
        None => Ok(BTreeSet::new()),
        Some(text) => read_bitmap(&text).ok_or_else(|| format!("{name}={text:?} is no set of CPUs")),
    }
}
