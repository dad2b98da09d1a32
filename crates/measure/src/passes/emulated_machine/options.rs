//! What the plugin counts beside the plain instructions, and the metrics that this becomes.

use std::collections::BTreeMap;
use std::fmt;

use widthwise_experiment::metric;
use widthwise_experiment::outcome::{Reading, Source};

use crate::passes::emulated_machine::counts::{Executed, Misses};
use crate::passes::emulated_machine::operations::Operations;

/// The names of the classes of instructions (of an ABI, of each instruction the bytes); an error is a sentence.
pub type Classify<'a> = dyn Fn(&str, &[&[u8]]) -> Result<Vec<&'static str>, String> + 'a;

/// What is counted beside the plain instructions.
#[derive(Default)]
pub struct Options<'a> {
    /// Decides the class of instructions; they are counted by class if it is there.
    pub classify: Option<&'a Classify<'a>>,
    /// The geometry of the caches that are modelled, as the plugin's options.
    pub caches: Option<String>,
    /// Operations of the micro suite, which are counted one by one.
    pub operations: Option<Operations>,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes = self.classify.is_some();
        f.debug_struct("Options")
            .field("classes", &classes)
            .field("caches", &self.caches)
            .field("operations", &self.operations)
            .finish()
    }
}

/// The names of [`Misses`]' metrics, in its order.
const MISSES: [&str; 10] = [
    "l1i_misses_user",
    "l1d_misses_user",
    "ll_misses_user",
    "itlb_misses_user",
    "dtlb_misses_user",
    "l1i_misses_kernel",
    "l1d_misses_kernel",
    "ll_misses_kernel",
    "itlb_misses_kernel",
    "dtlb_misses_kernel",
];

/// The readings of a sample.
type Sample = BTreeMap<&'static str, Reading>;

/// The misses of a program without those of an empty one. A cache that the empty program has left in another state may make the
/// difference negative: that metric has no reading.
pub fn put_misses(sample: &mut Sample, program: Misses, empty: Misses) {
    for (place, name) in MISSES.into_iter().enumerate() {
        if let Some(count) = program[place].checked_sub(empty[place]) {
            sample.insert(name, Reading::whole(count as f64, Source::Qemu));
        }
    }
}

/// Instructions of one side (`user` or `kernel`) by class.
pub struct ClassCounts<'a> {
    classify: &'a Classify<'a>,
    abi: &'a str,
    by_class: BTreeMap<&'static str, i64>,
}

impl<'a> ClassCounts<'a> {
    /// None yet, of instructions of this ABI.
    pub fn new(classify: &'a Classify<'a>, abi: &'a str) -> ClassCounts<'a> {
        ClassCounts { classify, abi, by_class: BTreeMap::new() }
    }

    /// Adds executed instructions, or takes them away.
    pub fn add<'e>(
        &mut self,
        executed: impl Iterator<Item = &'e Executed>,
        count: impl Fn(&Executed) -> u64,
        sign: i64,
    ) -> Result<(), String> {
        let some: Vec<&Executed> = executed.filter(|one| count(one) > 0).collect();
        let bytes: Vec<&[u8]> = some.iter().map(|one| one.bytes.as_slice()).collect();
        let classes = (self.classify)(self.abi, &bytes)?;
        for (class, one) in classes.into_iter().zip(some) {
            *self.by_class.entry(class).or_default() += sign * count(one) as i64;
        }
        Ok(())
    }

    /// The readings; they sum to `all`, or it is an error.
    pub fn put(self, sample: &mut Sample, side: &str, all: u64) -> Result<(), String> {
        let sum: i64 = self.by_class.values().sum();
        if sum != all as i64 {
            return Err(format!("the classes of {side} instructions sum to {sum}, not to {all}"));
        }
        // A class of which nothing was executed has 0.
        let names = metric::METRICS.iter().filter(|metric| metric.family == metric::Family::InstructionClass);
        for metric in names {
            let class = metric.name.strip_prefix(&format!("instructions_{side}_"));
            let Some(class) = class else { continue };
            let count = self.by_class.get(class).copied().unwrap_or_default();
            if let Ok(count) = u64::try_from(count) {
                sample.insert(metric.name, Reading::whole(count as f64, Source::Qemu));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::emulated_machine::counts::Counts;

    fn one(user: u64, byte: u8) -> Executed {
        Executed { counts: Counts { user, kernel: 0 }, bytes: vec![byte] }
    }

    #[test]
    fn classes_sum_to_all_instructions_or_are_none() {
        let classify = |_: &str, all: &[&[u8]]| {
            Ok(all.iter().map(|bytes| if bytes[0] == 0x90 { "nop" } else { "integer" }).collect())
        };
        let counted = |all: u64| {
            let mut counts = ClassCounts::new(&classify, "x86-64");
            let user = |one: &Executed| one.counts.user;
            counts.add([one(7, 0x90), one(5, 1)].iter(), user, 1).unwrap();
            counts.add([one(2, 0x90), one(0, 3)].iter(), user, -1).unwrap();
            let mut sample = Sample::new();
            counts.put(&mut sample, "user", all).map(|()| sample)
        };
        let sample = counted(10).unwrap();
        let value = |name: &str| sample[name].value;
        assert_eq!((value("instructions_user_nop"), value("instructions_user_integer")), (5.0, 5.0));
        assert_eq!(value("instructions_user_avx"), 0.0);
        assert!(sample.keys().all(|name| name.starts_with("instructions_user_")), "{sample:?}");
        assert!(counted(11).unwrap_err().contains("sum to 10, not to 11"));
    }

    #[test]
    fn a_negative_difference_of_misses_is_no_reading() {
        let mut sample = Sample::new();
        put_misses(&mut sample, [5; 10], [3, 6, 0, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(sample["l1i_misses_user"].value, 2.0);
        assert!(!sample.contains_key("l1d_misses_user"));
        assert_eq!(sample["dtlb_misses_kernel"].value, 0.0);
    }
}
