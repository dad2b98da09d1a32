//! The micro suite on other kernels, from the command line: instructions of each operation in user space and in the kernel.

use serde_json::Value;

use crate::kernels::{figures, kernel};
use crate::laboratory::outcomes::{is_lane, skipped};
use crate::laboratory::{names, unfolded, variant, verdict, Laboratory};
use rusqlite::Connection;

/// The figure of an operation in every round, which is the same; none where it was not counted.
fn counted(archive: &Connection, variant: &str, operation: &str, side: &str) -> Option<f64> {
    let all = figures(archive, variant, &format!("micro.{operation}.instructions_{side}"));
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{variant}: {operation} in the {side}: {all:?}");
    assert!(all.is_empty() || all.len() == 2, "{variant}: {operation}: {all:?}");
    all.first().copied()
}

/// A figure that must be there.
fn certain(archive: &Connection, variant: &str, operation: &str, side: &str) -> f64 {
    let found = counted(archive, variant, operation, side);
    found.unwrap_or_else(|| panic!("{variant} has no {side} instructions of {operation}"))
}

fn warnings(report: &Value) -> String {
    let all = report["warnings"].as_array().unwrap().iter();
    all.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// Two boots: one for each round.
#[test]
fn operations_on_another_kernel_have_exact_instructions_and_no_time() {
    if !is_lane("kernels") {
        return skipped("two boots with ten operations: `make test-all PARTS=kernels`; `make test` counts one program there");
    }
    let Some(kernel) = kernel() else { return skipped("no kernel: packaging/install.sh test fetches one") };
    let lab = Laboratory::new();
    let operations =
        "micro:truth_8,truth_32,mul4,memory_read,getpid,clock_gettime,fork,exec,shell,context_switch";
    let report = lab.compare_json(&format!(
        "{operations} --abi x86-64 --kernel host,{kernel} --rounds 1 --warmup 0 -- --repetitions 2"
    ));
    let host = "x86-64/host";
    let guest = names(&report).into_iter().find(|name| name.contains("vmlinuz")).unwrap().to_owned();
    let archive = lab.archive();
    let one = |variant: &str, operation: &str, side: &str| certain(&archive, variant, operation, side);
    for variant in [host, &guest] {
        let user = ["truth_8", "truth_32", "mul4"].map(|operation| one(variant, operation, "user"));
        assert_eq!(user, [8.0, 32.0, 1.0], "{variant}");
    }
    assert_eq!(one(&guest, "getpid", "user"), one(host, "getpid", "user"));
    // What the kernel has no part in has exactly none of its instructions, ticks of its clock included.
    for operation in ["truth_8", "truth_32", "mul4", "memory_read", "clock_gettime"] {
        assert_eq!(one(&guest, operation, "kernel"), 0.0, "{operation}");
    }
    let in_kernel = ["getpid", "context_switch", "fork", "exec", "shell"];
    let in_kernel = in_kernel.map(|operation| one(&guest, operation, "kernel"));
    assert!(in_kernel[0] > 50.0 && in_kernel.is_sorted(), "{in_kernel:?}");
    assert!(one(&guest, "exec", "user") > one(&guest, "fork", "user") + 10_000.0, "a loader has run");

    // On this machine's kernel nothing counts the kernel's part, and QEMU's user mode is no measure of some of the program's.
    assert_eq!(counted(&archive, host, "getpid", "kernel"), None);
    let control = names(&report).into_iter().find(|name| name.ends_with("control")).unwrap().to_owned();
    let of_host = verdict(&report, &control, "micro.getpid.instructions_kernel");
    assert_eq!(of_host["reason"], "this machine's own kernel is not counted", "{of_host}");
    for (operation, why) in [("fork", "another process"), ("clock_gettime", "vDSO")] {
        assert_eq!(counted(&archive, host, operation, "user"), None, "{operation}");
        let warnings = warnings(&report);
        let of =
            warnings.lines().find(|line| line.contains(why)).unwrap_or_else(|| panic!("{why}: {warnings}"));
        assert!(of.contains(&format!("micro.{operation}.instructions_user")), "{of}");
    }
    let time = verdict(&report, &guest, "micro.getpid");
    assert_eq!(time["reason"], "not measured on an emulated machine", "{time}");
    assert_eq!(verdict(&report, &guest, "micro.getpid.instructions_user")["source"], "qemu");

    let text = unfolded(&lab.widthwise("report").stdout);
    assert!(text.contains("user instructions") && text.contains("kernel instructions"), "{text}");
    assert!(
        text.contains("kernel instructions: 0 in every variant that was counted: mul4, memory_read"),
        "{text}"
    );
    let markdown = lab.widthwise("report --markdown").stdout;
    assert!(markdown.contains("| kernel instructions |"), "{markdown}");
    let csv = lab.widthwise("report --csv").stdout;
    assert!(csv.contains("micro.getpid.instructions_kernel,count,"), "{csv}");
    let page = std::fs::read_to_string(lab.campaign().join("report.html")).unwrap();
    assert!(
        page.contains("kernel instructions") && page.contains("0 in every variant that was counted"),
        "the page's tables"
    );
}

/// Every operation in three ABIs on kernels of both widths: one boot for each variant and round.
#[test]
fn every_operation_of_every_width_has_counts_on_kernels_of_both_widths_or_the_reason() {
    if !is_lane("kernels") {
        return skipped("ten boots: `make test-all PARTS=kernels`; `make test` has two, of ten operations");
    }
    let lab = Laboratory::new();
    let [wide, narrow] = ["debian:amd64+x32", "debian:686-pae"];
    let report = lab.compare_json(&format!("micro:all --abi x86-64,x32,i386 --kernel {wide},{narrow}"));
    for abi in ["x86-64", "x32"] {
        let refused = variant(&report, &format!("{abi}/{narrow}"));
        assert_eq!(refused["status"], "unsupported", "{refused}");
    }
    let metrics: Vec<&str> =
        report["metrics"].as_array().unwrap().iter().map(|metric| metric["name"].as_str().unwrap()).collect();
    let operations: Vec<&str> = metrics
        .iter()
        .filter_map(|name| name.strip_prefix("micro.")?.strip_suffix(".instructions_user"))
        .collect();
    assert_eq!(operations.len(), 69, "{operations:?}");
    assert!(!metrics.contains(&"micro.getpid"), "there is no time: {metrics:?}");
    let warnings = warnings(&report);
    let archive = lab.archive();
    let ran = [("x86-64", wide), ("x32", wide), ("i386", wide), ("i386", narrow)];
    for (abi, kernel) in ran {
        let name = format!("{abi}/{kernel}");
        for operation in &operations {
            for side in ["user", "kernel"] {
                let metric = format!("micro.{operation}.instructions_{side}");
                let is_explained =
                    warnings.lines().any(|line| line.contains(&name) && line.contains(&metric));
                assert!(
                    counted(&archive, &name, operation, side).is_some() || is_explained,
                    "{name} has neither {metric} nor a reason: {warnings}"
                );
            }
        }
        let one = |operation: &str, side: &str| certain(&archive, &name, operation, side);
        assert_eq!((one("mul4", "user"), one("mul4", "kernel")), (1.0, 0.0), "{name}");
        assert_eq!((one("chase_1m", "user"), one("chase_1m", "kernel")), (1.0, 0.0), "{name}");
        // A part of the buffers lies between two ticks of the clock.
        for operation in ["memory_read", "memory_write", "memory_copy"] {
            assert_eq!(one(operation, "kernel"), 0.0, "{name}: {operation}");
        }
        assert!(one("getpid", "kernel") > 50.0 && one("fork", "kernel") > one("getpid", "kernel"), "{name}");
    }
    // What a program does without the kernel does not depend on the kernel.
    for operation in ["div8", "strcpy", "memcpy_64k", "malloc", "struct_64", "memory_copy"] {
        let on = |kernel| certain(&archive, &format!("i386/{kernel}"), operation, "user");
        assert_eq!(on(wide), on(narrow), "{operation}");
    }
    // The system's shell is a 64-bit program.
    assert_eq!(counted(&archive, &format!("i386/{narrow}"), "shell", "kernel"), None);
    assert!(warnings.contains("cannot be executed on this kernel"), "{warnings}");
}
