//! callgrind's files and valgrind's log of system calls: any bytes are counts or an error, and costs sum to what the file says.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use widthwise_anatomy::time::callgrind;
use widthwise_anatomy::time::symbols::CodeNames;
use widthwise_anatomy::time::mappings::Mappings;
use widthwise_anatomy::time::Profile;

fuzz_target!(|bytes: &[u8]| {
    let log = String::from_utf8_lossy(bytes).into_owned();
    let maps = Mappings::of_processes(&BTreeMap::from([(1, log)]));
    if let Some(maps) = maps.get(&1) {
        let _ = maps.resolve(0x400000);
    }
    let Ok(output) = callgrind::read(bytes) else { return };
    let of_costs = output.costs.iter().fold(0u64, |sum, cost| sum.saturating_add(cost.counts.instructions));
    let mut profile = Profile::default();
    if profile.add(&[output], None, &[], &mut CodeNames::default()).is_ok() {
        let sum = profile.total().instructions.saturating_add(profile.tool.instructions);
        assert_eq!(sum, of_costs);
    }
});
