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

/// What has been read of the XML.
#[derive(Default)]
struct Parts {
    topology: Topology,
    packages: Vec<BTreeSet<Cpu>>,
    cores: Vec<BTreeSet<Cpu>>,
    units: Vec<Cpu>,
    kinds: Vec<Kind>,
    in_kind: bool,
    machine_seen: bool,
}

/// Reads hwloc's XML.
pub(super) fn parse(xml: &str) -> Result<Topology, String> {
    let mut parts = Parts::default();
    let mut reader = Reader::from_str(xml);
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Eof => break,
            Event::End(element) if element.name().as_ref() == "cpukind" => parts.in_kind = false,
            Event::Start(element) => parts.element(&element, true)?,
            Event::Empty(element) => parts.element(&element, false)?,
            _ => {}
        }
    }
    parts.topology()
}

impl Parts {
    /// An element; `open` if others are inside it.
    fn element(&mut self, element: &BytesStart, open: bool) -> Result<(), String> {
        match element.name().as_ref() {
            "topology" => {
                let version = attribute(element, "version")?.unwrap_or_default();
                if !version.starts_with("2.") {
                    return Err(format!("hwloc XML version {version:?}, expected 2"));
                }
            }
            "object" => self.object(element)?,
            "cpukind" => {
                self.in_kind = open;
                self.kinds.push(Kind { cpus: set(element, "cpuset")?, ..Kind::default() });
            }
            "info" if self.in_kind => {
                let value = attribute(element, "value")?.unwrap_or_default();
                if let Some(kind) = self.kinds.last_mut() {
                    match attribute(element, "name")?.as_deref() {
                        Some("CoreType") => kind.core_type = Some(value),
                        Some("LinuxCapacity") => kind.capacity = value.parse().ok(),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn object(&mut self, element: &BytesStart) -> Result<(), String> {
        let cpus = set(element, "cpuset")?;
        match attribute(element, "type")?.unwrap_or_default().as_str() {
            "Machine" => {
                self.machine_seen = true;
                self.topology.allowed = set(element, "allowed_cpuset")?;
                let complete = set(element, "complete_cpuset")?;
                self.topology.offline = complete.difference(&cpus).copied().collect();
            }
            "Package" => self.packages.push(cpus),
            "Core" => self.cores.push(cpus),
            "PU" => self.units.extend(cpus),
            "NUMANode" => {
                let number = number(element, "os_index")?.unwrap_or(0);
                self.topology.nodes.push(Node { number, cpus });
            }
            // "L1iCache" and the like hold instructions only.
            "L1Cache" | "L2Cache" | "L3Cache" | "L4Cache" | "L5Cache" => {
                let level = number(element, "depth")?.unwrap_or(0);
                let size = number(element, "cache_size")?.unwrap_or(0);
                self.topology.caches.push(Cache { level, size, cpus });
            }
            _ => {}
        }
        Ok(())
    }

    /// The topology, with its cores.
    fn topology(mut self) -> Result<Topology, String> {
        if !self.machine_seen || self.units.is_empty() {
            return Err("no machine in it".into());
        }
        if self.cores.is_empty() {
            // Some virtual machines do not report which CPUs make a core.
            self.cores = self.units.iter().map(|cpu| BTreeSet::from([*cpu])).collect();
        }
        let fastest = self.kinds.iter().filter_map(|kind| kind.capacity).max();
        let cores = self.cores.into_iter().filter(|cpus| !cpus.is_empty()).map(|cpus| Core {
            package: self.packages.iter().position(|package| cpus.is_subset(package)).unwrap_or(0),
            kind: self
                .kinds
                .iter()
                .find(|kind| !kind.cpus.is_disjoint(&cpus))
                .map_or(CoreKind::Performance, |kind| kind_of(kind, fastest)),
            cpus,
        });
        Ok(Topology {
            source: Source::Hwloc,
            packages: self.packages.len().max(1),
            cores: cores.collect(),
            ..self.topology
        })
    }
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
