//! The memory of a run is read near its members' peaks, or it is missing, with the reason.

use super::{row, runs, table};
use crate::laboratory::outcomes::skipped;
use crate::laboratory::{is_root, Laboratory};

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

/// Each child shares 200 MiB of its parent, and has 8 MiB of its own for a moment between two readings.
const SPIKE: &str = r#"#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    char *shared = malloc(200 << 20);
    memset(shared, 1, 200 << 20);
    for (int left = atoi(words[1]); left > 0; left--)
        if (fork() == 0) {
            usleep(200000);
            char *own = mmap(0, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(own, 2, 8 << 20);
            munmap(own, 8 << 20);
            usleep(100000);
            _exit(0);
        }
    while (wait(NULL) > 0) {
    }
    return 0;
}
"#;

#[test]
fn a_childs_own_memory_that_was_not_read_is_missed_however_much_it_shares() {
    if !is_root() {
        return skipped("the kernel's peaks of children need root");
    }
    let lab = Laboratory::new();
    lab.write("spike.c", SPIKE);
    let words = "scale spike.c --flags=-O0 --abi x86-64 --mode fork --processes 1,2 --rounds 1 --warmup 0 --memory=1 --json --run";
    let output =
        lab.widthwise(&words.split(' ').chain(["{build}/spike {processes}"]).collect::<Vec<_>>()[..]);
    assert_eq!(output.status, Some(0), "{output:?}");
    let report = output.json();
    for run in runs(&report).iter().filter(|run| run["purpose"] == "memory") {
        let memory = &run["memory"];
        let seen: f64 =
            memory["members"].as_array().unwrap().iter().map(|one| one["uss"].as_f64().unwrap()).sum();
        let all = 8.0 * MIB * run["cell"]["processes"].as_f64().unwrap();
        let is_missing = memory["highest"].is_null();
        assert!(seen >= 0.95 * all || is_missing || report.to_string().contains(LATE), "{run}");
    }
}
