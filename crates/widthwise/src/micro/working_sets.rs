//! What operations of the micro suite go through again and again, beside the caches of a core: what does not fit there is in a cache
//! that others use at the same time, and its time varies more.

use widthwise_experiment::model::Experiment;
use widthwise_experiment::reported_metric::MICRO_PREFIX;
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_machine::topology::Topology;
use widthwise_report::by_metric::nodes;

use super::is_measured;

/// Bytes that do not depend on the width (workloads/micro/memory.c and strings.c): a copy has two buffers.
const FIXED: [(&str, u64); 5] = [
    ("memcpy_64k", 128 << 10),
    ("memcpy_1m", 2 << 20),
    ("memory_read", 8 << 20),
    ("memory_write", 8 << 20),
    ("memory_copy", 16 << 20),
];

/// The bytes that an operation touches in every pass; nothing of those that touch few. `pointer`: bytes of a pointer, of which a node
/// of a list has two.
fn working_set(operation: &str, pointer: u64) -> Option<u64> {
    let fixed = FIXED.iter().find(|(name, _)| *name == operation).map(|(_, bytes)| *bytes);
    fixed.or_else(|| Some(nodes(&format!("{MICRO_PREFIX}{operation}"))? * 2 * pointer))
}

/// A sentence on the operations whose working sets exceed what a core has for itself, in the widest ABI that is timed here.
pub fn remark(experiment: &Experiment, topology: &Topology) -> Option<String> {
    if !is_measured(experiment) {
        return None;
    }
    let timed = || experiment.variants.iter().filter(|variant| !variant.is_emulated());
    let is_wide = timed().any(|variant| variant.abi.is_none_or(|abi| abi.data_model == "LP64"));
    let pointer = if is_wide { 8 } else { 4 };
    timed().next()?;
    let [last, ..] = topology.last_level_caches()[..] else { return None };
    let of_core =
        topology.caches.iter().filter(|cache| cache.level < last.level).map(|cache| cache.size).max()?;
    let larger = experiment
        .metrics
        .iter()
        .filter_map(|metric| metric.name.strip_prefix(MICRO_PREFIX))
        .filter(|name| working_set(name, pointer).is_some_and(|bytes| bytes > of_core));
    let larger: Vec<&str> = larger.collect();
    if larger.is_empty() {
        return None;
    }
    let bytes = |bytes: u64| Quantity { value: bytes as f64, unit: Unit::Bytes }.to_string();
    Some(format!(
        "intervals may be wider where an operation goes through more than a core's own caches have ({}): {}; their data are in the last \
         level ({}), which other CPUs share, and in a virtual machine other guests",
        bytes(of_core),
        larger.join(", "),
        bytes(last.size)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_wider_pointers_have_larger_working_sets() {
        assert_eq!(working_set("chase_256", 8), Some(4096));
        assert_eq!(working_set("chase_1m", 8), Some(16 << 20));
        assert_eq!(working_set("chase_1m", 4), Some(8 << 20));
        assert_eq!(working_set("memory_copy", 4), Some(16 << 20));
        assert_eq!(working_set("getpid", 8), None);
    }

    #[test]
    fn fixed_sizes_are_those_of_the_suite() {
        let has = |name: &str, text: &str| {
            let (_, source) = crate::micro::FILES.iter().find(|(own, _)| *own == name).unwrap();
            assert!(source.contains(text), "{name} has no {text:?}");
        };
        has("memory.c", "BUFFER = 8 << 20");
        has("strings.c", "bytes_64k = 65536, bytes_1m = LONGEST");
        has("strings.c", "LONGEST = 1 << 20");
    }
}
