//! What this machine cannot do is refused before anything is built, with what would change it.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::path::Path;

use widthwise_experiment::model::{Cpus, Experiment, Thp, Variant};
use widthwise_experiment::request::MetricWord;
use widthwise_experiment::{Axis, Located, Request, SourceLocation};
use widthwise_machine::package::Packages;
use widthwise_machine::placement::{self, Kinds, Policy};
use widthwise_machine::system_settings::Settings;
use widthwise_machine::topology::Topology;
use widthwise_machine::{counters, qemu, valgrind};
use widthwise_measure::program;

use crate::failure::Failure;
use crate::interrupt;

/// Where the system's setting of transparent huge pages stands (Documentation/admin-guide/mm/transhuge.rst).
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Refuses what can be done for no variant here.
pub fn check(request: &Request, experiment: &Experiment) -> Result<(), Failure> {
    check_cpus(request)?;
    check_allocators(request, experiment)?;
    check_huge_pages(request, experiment)?;
    check_kvm(request)?;
    check_counters(request)
}

fn check_cpus(request: &Request) -> Result<(), Failure> {
    let Some(Located { value: Cpus::List(cpus), location }) = &request.run.cpus else { return Ok(()) };
    placement::place(&Topology::here(), &Policy::List(cpus.clone()), Kinds::All, 1)
        .map(drop)
        .map_err(|error| Failure::request(format!("{location}: {error}")))
}

/// A device that opens is not enough: a test boot has to reach its program.
fn check_kvm(request: &Request) -> Result<(), Failure> {
    let Some(Located { value: true, location }) = &request.measure.kvm else { return Ok(()) };
    let qemu = interrupt::while_examining(|| qemu::probe(&Packages::here()))?;
    qemu.kvm.map_err(|unavailable| {
        let fix = unavailable.fix.as_ref().map(|fix| format!("; {fix}")).unwrap_or_default();
        Failure::request(format!("{location}: nothing can be timed under KVM here: {unavailable}{fix}"))
    })
}

/// Where a value of an axis was named.
fn location<'a>(request: &'a Request, axis: Axis, value: &str) -> Option<&'a SourceLocation> {
    let listed = request.variants.iter().filter_map(|variant| variant.value.point.get(&axis));
    let mut all = request.axes.get(&axis).into_iter().flatten().chain(listed);
    all.find(|located| located.value == value).map(|located| &located.location)
}

fn refused(request: &Request, axis: Axis, value: &str, reason: &str) -> Failure {
    Failure::request(match location(request, axis, value) {
        Some(location) => format!("{location}: {reason}"),
        None => reason.to_owned(),
    })
}

/// An allocator that some variants can have is left to these; the others keep their rows, with the reason.
fn check_allocators(request: &Request, experiment: &Experiment) -> Result<(), Failure> {
    let names: BTreeSet<&str> =
        experiment.variants.iter().map(|variant| variant.allocator.as_str()).collect();
    for name in names {
        let mut reasons = Vec::new();
        for variant in experiment.variants.iter().filter(|variant| variant.allocator == name) {
            match program::abi_name(variant, Path::new("")).map(|abi| program::allocator(variant, abi)) {
                Some(Err(reason)) => reasons.push(reason),
                // What it is for is known after the build.
                None | Some(Ok(_)) => {
                    reasons.clear();
                    break;
                }
            }
        }
        reasons.dedup();
        if !reasons.is_empty() {
            return Err(refused(request, Axis::Allocator, name, &reasons.join("; ")));
        }
    }
    Ok(())
}

/// `always` and `madvise` are settings of the whole system.
fn check_huge_pages(request: &Request, experiment: &Experiment) -> Result<(), Failure> {
    let of_system = |variant: &&Variant| matches!(variant.thp, Thp::Always | Thp::Madvise);
    let Some(variant) = experiment.variants.iter().find(of_system) else { return Ok(()) };
    let reason = match OpenOptions::new().write(true).open(THP) {
        Ok(_) => return Ok(()),
        Err(_) if !Path::new(THP).exists() => {
            "this kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE); leave out the axis".to_owned()
        }
        Err(error) => format!(
            "transparent huge pages cannot be changed ({THP}: {error}); as root they can, and `never` needs no privileges"
        ),
    };
    Err(refused(request, Axis::Thp, variant.thp.name(), &reason))
}

/// A counter that was named is wanted; of `all` those are shown that there are.
fn check_counters(request: &Request) -> Result<(), Failure> {
    let mut probed = None;
    for Located { value, location } in &request.measure.metrics {
        let MetricWord::One(metric) = value else { continue };
        if !counters::is_one(metric.name) {
            continue;
        }
        let found = probed.get_or_insert_with(|| counters::probe(&Settings::here()));
        let counter = found.iter().find(|counter| counter.name == metric.name);
        let Some(Err(unavailable)) = counter.map(|counter| &counter.counts) else { continue };
        let fix = |unavailable: &widthwise_machine::Unavailable| {
            unavailable.fix.as_ref().map_or(String::new(), |fix| format!("; {fix}"))
        };
        let emulated = if metric.can_be_emulated() { Some(valgrind::here()) } else { None };
        let other = match emulated {
            Some(Ok(_)) => continue,
            Some(Err(unavailable)) => {
                format!(". valgrind would emulate it: {unavailable}{}", fix(&unavailable))
            }
            None => String::new(),
        };
        return Err(Failure::request(format!(
            "{location}: {} cannot be counted here: {unavailable}{}{other}",
            metric.name,
            fix(unavailable)
        )));
    }
    Ok(())
}
