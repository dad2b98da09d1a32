//! Memory that children share, and jobs do not.

use crate::laboratory::alone::asleep;
use crate::laboratory::outcomes::skipped;
use crate::scale::{about, estimate, lab, measured, row, table};
use serde_json::Value;

const MIB: f64 = 1_048_576.0;

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn children_share_memory_jobs_do_not_and_the_copy_on_write_breakdown_is_shown() {
    let _asleep = asleep();
    let lab = lab();
    let memory = "shared=96 touch=16 own=8 hold=400";
    let options = format!(
        "--mode fork,jobs --processes 1,4 --events 4 --rounds 1 --warmup 0 --memory=1 \
     --jobs-run '{{build}}/workers alone 1 {{events}} {memory}'"
    );
    let report =
        measured(&lab, "x86-64,x32,i386", &format!("fork {{processes}} {{events}} {memory}"), &options);
    let variants = ["x86-64", "x32", "i386"];
    let all = variants.iter().flat_map(|variant| ["fork", "jobs"].map(|mode| table(&report, variant, mode)));
    let is_frozen = |table: &Value| [1, 4].iter().all(|count| row(table, *count)["memory"]["frozen"] == true);
    if !all.into_iter().all(is_frozen) {
        // The report notes it: sums are imprecise then.
        return skipped("processes did not stand still while their memory was read");
    }
    for variant in variants {
        let forks = table(&report, variant, "fork");
        // A child's memory is what it has written and its own: 24 MiB; a job's is everything: 104 MiB.
        about(estimate(&forks["marginal"]["slope"]), 24.0 * MIB, 0.05);
        about(estimate(&table(&report, variant, "jobs")["marginal"]["slope"]), 104.0 * MIB, 0.05);
        for processes in [1, 4] {
            let memory = &row(forks, processes)["memory"];
            about(memory["member_uss"].as_f64().unwrap(), 24.0 * MIB, 0.05);
            about(memory["anonymous"].as_f64().unwrap(), (96.0 + 24.0 * processes as f64) * MIB, 0.05);
            let unshared = memory["copy_on_write"].as_array().unwrap();
            let sum = |key: &str| unshared.iter().map(|part| part[key].as_f64().unwrap()).sum::<f64>();
            about(sum("copied") + sum("own"), 24.0 * MIB * processes as f64, 0.06);
            let mapped = unshared.iter().find(|part| part["part"] == "mmapped blocks").unwrap();
            about(mapped["at_fork"].as_f64().unwrap(), 96.0 * MIB, 0.05);
            about(mapped["copied"].as_f64().unwrap(), 16.0 * MIB * processes as f64, 0.05);
            about(mapped["shared"].as_f64().unwrap(), 80.0 * MIB * processes as f64, 0.05);
        }
    }
}
