//! What an emulated machine has no figures of, and what cannot be asked of one.

use crate::axis::Axis;
use crate::location::{Located, SourceLocation};
use crate::metric::{Family, Metric, ON_MACHINE};
use crate::model::{Thp, Variant};
use crate::reported_metric::ReportedMetric;
use crate::request::{MetricWord, Request};
use crate::request_error::{RequestError, RequestErrorKind};

/// Whether some of these variants can have a figure of the metric; `kvm`: other kernels run under KVM, too.
pub(crate) fn has(variants: &[Variant], kvm: bool, metric: &Metric) -> bool {
    let on_kernel = variants.iter().any(|variant| variant.kernel.is_emulated());
    let natively = variants.iter().any(|variant| !variant.is_emulated());
    let emulated = variants.iter().any(Variant::is_emulated);
    match metric.name {
        _ if needs_kernel(metric) => on_kernel,
        _ if metric.is_of_machine() => emulated,
        _ if on_kernel && kvm && metric.is_under_kvm() => true,
        name => natively || (on_kernel && ON_MACHINE.contains(&name)),
    }
}

/// A program of another processor runs without a kernel of its own, and has no physical addresses, by which caches are modelled.
fn needs_kernel(metric: &Metric) -> bool {
    metric.family == Family::CacheModel || metric.is_of_kernel()
}

/// Refuses a pass over native programs if the baseline is not one of them: nothing would be compared. `what` names the pass.
pub fn native_baseline(
    what: &'static str,
    variants: &[Variant],
    baseline: &str,
) -> Result<(), RequestErrorKind> {
    match variants.iter().find(|variant| variant.name == baseline) {
        Some(variant) if variant.is_emulated() => Err(RequestErrorKind::EmulatedBaseline {
            what,
            baseline: baseline.to_owned(),
            native: variants
                .iter()
                .find(|variant| !variant.is_emulated())
                .map(|variant| variant.name.clone()),
        }),
        _ => Ok(()),
    }
}

/// Why a metric that no variant can have is refused.
fn no_metric(metric: &Metric, location: &SourceLocation) -> RequestError {
    if needs_kernel(metric) {
        return location.wrong(RequestErrorKind::OnlyOnKernel { metric: metric.name });
    }
    if metric.is_of_machine() {
        return location.wrong(RequestErrorKind::OnlyEmulated { metric: metric.name });
    }
    let why = if metric.family == Family::Counter { "is not counted" } else { "is not measured" };
    refused(location, format!("metric {:?}", metric.name), why)
}

impl Request {
    /// Refuses what no emulated machine can do.
    pub(crate) fn check_emulation(&self, variants: &[Variant]) -> Result<(), RequestError> {
        for Located { value, location } in &self.measure.metrics {
            match value {
                MetricWord::One(metric) if !has(variants, self.is_under_kvm(), metric) => {
                    return Err(no_metric(metric, location))
                }
                _ => {}
            }
        }
        let on_kernel = variants.iter().any(|variant| variant.kernel.is_emulated());
        if let Some(Located { location, .. }) = self.measure.cache_model.as_ref().filter(|_| !on_kernel) {
            return Err(location.wrong(RequestErrorKind::OnlyOnKernel { metric: "cache_model" }));
        }
        let is_counted = variants.iter().any(Variant::is_emulated);
        if let Some(Located { value: true, location }) =
            self.measure.instruction_classes.as_ref().filter(|_| !is_counted)
        {
            return Err(location.wrong(RequestErrorKind::OnlyEmulated { metric: "instruction_classes" }));
        }
        if variants.iter().all(Variant::is_emulated) && !variants.is_empty() {
            self.check_reports(on_kernel)?;
            self.check_measured_natively()?;
        }
        if on_kernel {
            self.check_guest()?;
        }
        self.check_variants(variants)
    }

    /// Whether programs on other kernels are timed.
    pub(crate) fn is_under_kvm(&self) -> bool {
        self.measure.kvm.as_ref().is_some_and(|kvm| kvm.value)
    }

    /// Times under KVM have the cost of a virtual machine: they are compared with each other alone.
    pub(crate) fn check_kvm(&self, variants: &[Variant], baseline: &str) -> Result<(), RequestError> {
        let Some(Located { value: true, location }) = &self.measure.kvm else { return Ok(()) };
        let baseline = variants.iter().find(|variant| variant.name == baseline);
        match baseline.is_some_and(|variant| variant.kernel.is_emulated()) {
            true => Ok(()),
            false => Err(location.wrong(RequestErrorKind::KvmBaseline {
                baseline: baseline.map(|variant| variant.name.clone()).unwrap_or_default(),
            })),
        }
    }

    /// Memory is read over time of native programs, and compared with a native baseline's.
    pub(crate) fn check_memory_baseline(
        &self,
        variants: &[Variant],
        baseline: &str,
    ) -> Result<(), RequestError> {
        let is_series = |word: &&Located<MetricWord>| matches!(word.value, MetricWord::One(metric) if metric.family == Family::Series);
        let rounds = self.measure.memory.as_ref().map(|rounds| &rounds.location);
        let metric = self.measure.metrics.iter().find(is_series).map(|word| &word.location);
        match (rounds.or(metric), native_baseline("the memory series", variants, baseline)) {
            (Some(location), Err(kind_of_error)) => Err(location.wrong(kind_of_error)),
            (None, Err(kind_of_error)) => Err(kind_of_error.nowhere()),
            (_, Ok(())) => Ok(()),
        }
    }

    /// What a program reports may depend on time. Operations of the micro suite have instruction counts on another kernel.
    fn check_reports(&self, on_kernel: bool) -> Result<(), RequestError> {
        if on_kernel && self.is_under_kvm() {
            return Ok(());
        }
        let has_none = |report: &&Located<ReportedMetric>| !(on_kernel && report.value.on_machines);
        match self.measure.reports.iter().find(has_none) {
            Some(Located { value, location }) if value.on_machines => {
                Err(refused(location, "the micro suite".to_owned(), "is not timed"))
            }
            Some(Located { value, location }) => {
                let what = format!("{:?}, which the program reports,", value.name);
                Err(refused(location, what, "is not measured"))
            }
            None => Ok(()),
        }
    }

    /// What needs a variant that runs natively.
    fn check_measured_natively(&self) -> Result<(), RequestError> {
        if let Some(Located { value: true, location }) = &self.run.concurrent {
            return Err(refused(location, "concurrent".to_owned(), "compares times, and there are none,"));
        }
        match &self.measure.memory {
            Some(Located { value, location }) if *value > 0 => {
                Err(refused(location, "the memory series".to_owned(), "cannot be read"))
            }
            _ => Ok(()),
        }
    }

    /// A kernel of its own has files of its own.
    fn check_guest(&self) -> Result<(), RequestError> {
        for (name, command) in [("setup", &self.run.setup), ("teardown", &self.run.teardown)] {
            if let Some(command) = command {
                return Err(refused(&command.location, name.to_owned(), "cannot be run"));
            }
        }
        match self.output.files.first() {
            Some(file) => Err(refused(
                &file.location,
                "an output file".to_owned(),
                "does not come back (standard output does) from the kernel",
            )),
            None => Ok(()),
        }
    }

    fn check_variants(&self, variants: &[Variant]) -> Result<(), RequestError> {
        for variant in variants.iter().filter(|variant| variant.is_emulated()) {
            if variant.thp != Thp::System {
                let location = self.axes.get(&Axis::Thp).and_then(|values| values.first());
                let what = format!("thp = {:?}", variant.thp.name());
                let kind_of_error = not_emulated(what, "cannot be set");
                let location = location.map(|value| value.location.clone());
                return Err(RequestError { location, kind_of_error });
            }
            if variant.flags.profile_guided && variant.abi.is_some_and(|abi| abi.is_foreign) {
                let what = format!("the profile-guided set {:?}", variant.flags.name);
                let kind_of_error = not_emulated(what, "cannot be trained");
                return Err(RequestError { location: None, kind_of_error });
            }
        }
        Ok(())
    }
}

fn not_emulated(what: String, why: &'static str) -> RequestErrorKind {
    RequestErrorKind::NotEmulated { what, why }
}

fn refused(location: &SourceLocation, what: String, why: &'static str) -> RequestError {
    location.wrong(not_emulated(what, why))
}
