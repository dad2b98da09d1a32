//! The memory of a run is read near its members' peaks, or it is missing, with the reason.

use super::{row, table};
use crate::laboratory::Laboratory;

const MIB: f64 = 1_048_576.0;

/// Its memory grows until it ends: 64 MiB in the given milliseconds.
const GROWS: &str = r#"#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    int wait = count > 1 ? atoi(words[1]) * 1000 / 64 : 0;
    for (int i = 0; i < 64; i++) {
        char *block = malloc(1 << 20);
        memset(block, i + 1, 1 << 20);
        usleep(wait);
    }
    return 0;
}
"#;

/// What a run says whose highest reading is not near the peaks.
const LATE: &str = "its memory is that of the highest of";

#[test]
fn memory_that_grows_until_the_end_is_read_near_its_peak_or_missing() {
    let lab = Laboratory::new();
    lab.write("grows.c", GROWS);
    let mut missing = 0;
    for milliseconds in [40, 130, 1000] {
        let words = format!(
            "scale grows.c --flags=-O0 --abi x86-64 --processes 1,2 --rounds 1 --warmup 0 --memory=1 --json -- {milliseconds}"
        );
        let output = lab.widthwise(&words);
        assert_eq!(output.status, Some(0), "{output:?}");
        let report = output.json();
        for processes in [1, 2] {
            let memory = &row(table(&report, "x86-64", "jobs"), processes)["memory"];
            match memory["member_resident"].as_f64() {
                // The last of many readings may be late on a busy machine: the run says so.
                Some(resident) => assert!(
                    resident >= 0.94 * 64.0 * MIB || report.to_string().contains(LATE),
                    "{milliseconds} ms: {memory}"
                ),
                None => missing += 1,
            }
        }
    }
    assert!(missing < 6, "no run of a second was read near its peak");
}
