//! The x32 runtime's own costs are not costs of x32: they are subtracted from memory and page faults, shown beside CPU time, and listed
//! by call. On a kernel with x32 there are none.

use crate::laboratory::outcomes::skipped;
use crate::laboratory::{unfolded, variant, verdict, Laboratory};
use serde_json::Value;

/// The known number of `getdents64` calls: two each time that the folder is read, in two processes or threads.
const TIMES: u64 = 300;

/// A thread whose call is rewritten while the first thread exists, and which delays no other.
const CALLS_IN_A_THREAD: &str = "#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *calls(void *nothing) {
    for (int i = 0; i < 50; i++)
        syscall(SYS_getppid);
    return nothing;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, calls, 0);
    return pthread_join(thread, 0);
}
";

fn lists(lab: &Laboratory, way: &str, options: &str) -> Value {
    lab.program("lists.c");
    for name in ["a", "b", "c"] {
        lab.write(&format!("folder/{name}"), "");
    }
    let folder = lab.path("folder");
    lab.compare_json(&format!("lists.c --abi x86-64,x32 {options} -- {} {TIMES} {way}", folder.display()))
}

fn runtime_of<'a>(report: &'a Value, name: &str) -> Option<&'a Value> {
    report["runtime"].as_array().unwrap().iter().find(|note| note["variant"] == name)
}

fn typical(report: &Value, name: &str, metric: &str) -> Option<f64> {
    let own = variant(report, name)["typical"].as_array().unwrap();
    own.iter().find(|typical| typical["metric"] == metric).map(|typical| typical["value"].as_f64().unwrap())
}

#[test]
fn translated_calls_are_counted_in_threads_forks_and_executed_programs() {
    for (way, processes) in [("", 1), ("thread", 2), ("fork", 2), ("exec", 2)] {
        let lab = Laboratory::new();
        let report = lists(&lab, way, "--rounds 2 --warmup 0");
        let note = runtime_of(&report, "x32");
        if widthwise_x32run::kernel_has_x32() {
            assert_eq!(note, None, "{way}");
            continue;
        }
        let calls = note.unwrap()["calls"].as_array().unwrap();
        let of = |name: &str| calls.iter().find(|call| call["call"] == name).unwrap();
        let counted = ["entered", "trapped"].map(|kind| of("getdents64")[kind].as_f64().unwrap());
        assert_eq!(counted[0] + counted[1], (2 * TIMES * processes) as f64, "{way}: {note:?}");
        // The sites of a page trap twelve times before they are rewritten.
        assert!(counted[1] >= 1.0 && counted[1] <= 14.0 * 2.0 * processes as f64, "{way}: {note:?}");
        let warnings = report["warnings"].to_string();
        assert!(!warnings.contains("could not all be counted"), "{way}: {warnings}");
    }
}

#[test]
fn the_runtimes_own_time_makes_no_verdict_on_x32() {
    let lab = Laboratory::new();
    // On a busy machine the intervals of twelve rounds may include a ratio of 1.
    let report = lists(&lab, "", "--rounds 40");
    let cpu = verdict(&report, "x32", "cpu");
    let Some(note) = runtime_of(&report, "x32") else {
        assert!(widthwise_x32run::kernel_has_x32(), "{report:#}");
        return assert_ne!(cpu["verdict"], "withheld", "{cpu}");
    };
    let share = note["shares"].as_array().unwrap().iter().find(|share| share["metric"] == "cpu").unwrap();
    let [low, share, high] = ["low", "share", "high"].map(|end| share[end].as_f64().unwrap());
    assert!(0.2 < low && low <= share && share <= high && high < 0.95, "{note}");
    if cpu["verdict"] == "inconclusive" && cpu["floor"].as_f64() > Some(0.1) {
        return skipped("the machine is too busy: the baseline differs from itself by more than 10 %");
    }
    // Nearly all of the difference is the runtime's: the cost of x32 itself cannot be inferred.
    assert_eq!(cpu["verdict"], "withheld", "{cpu}");
    assert!(cpu["ratio"].as_f64().unwrap() > 1.2, "{cpu}");
    let reason = cpu["reason"].as_str().unwrap();
    assert!(reason.contains("the x32 runtime's own work") && reason.contains(" with it, "), "{reason}");
    let without = note["without"].as_array().unwrap().iter().find(|own| own["metric"] == "cpu").unwrap();
    assert!(without["ratio"].as_f64().unwrap() < cpu["ratio"].as_f64().unwrap(), "{without}");
    for text in [lab.widthwise("report").stdout, lab.widthwise("report --markdown").stdout] {
        let text = unfolded(&text).replace('\\', "");
        for words in
            ["x32 runs in user space here (x32run): the runtime took", "went the slow way: getdents64 600"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(text.contains("x32 · x32run itself") && text.contains("left out"), "{text}");
    }
}

/// A site is rewritten at once beside other threads: the runtime does not sleep in the kernel until every core is notified.
#[test]
fn the_first_thread_of_a_program_does_not_make_the_runtime_wait() {
    let lab = Laboratory::new();
    lab.write("calls.c", CALLS_IN_A_THREAD);
    let report =
        lab.compare_json("calls.c --flags=-pthread --abi x86-64,x32 --rounds 12 --metric voluntary_switches");
    let [plain, x32] =
        ["x86-64/-pthread", "x32/-pthread"].map(|name| typical(&report, name, "voluntary_switches").unwrap());
    assert!(x32 < plain + 1.0, "x32 {x32}, x86-64 {plain}");
}

#[test]
fn pages_and_faults_of_the_runtime_are_subtracted_and_shown() {
    let lab = Laboratory::new();
    lab.write("tiny.c", "int main(void) { return 0; }\n");
    let report = lab.compare_json("tiny.c --abi x86-64,x32 --rounds 20");
    let own =
        ["runtime_resident", "runtime_faults", "runtime_calls"].map(|name| typical(&report, "x32", name));
    assert_eq!(typical(&report, "x86-64", "runtime_resident"), None);
    if widthwise_x32run::kernel_has_x32() {
        return assert_eq!(own, [None; 3]);
    }
    let [resident, faults, calls] = own.map(Option::unwrap);
    assert!((100_000.0..500_000.0).contains(&resident), "{resident}");
    assert!((12.0..60.0).contains(&faults), "{faults}");
    // The loader searches the folders of LD_LIBRARY_PATH.
    assert!(calls >= 5.0, "{calls}");
    // The same small program: without the runtime its pages are about those of x86-64, or fewer. The kernel's account of max RSS
    // lags. At its exit, this program has its peak, and it is read exactly.
    let exact = lab.compare_json("tiny.c --abi x86-64,x32 --rounds 12 --exit-stop");
    for (report, metric, most) in [(&exact, "max_rss", 1.02), (&report, "page_faults", 1.05)] {
        let found = verdict(report, "x32", metric);
        assert!(found["ratio"].as_f64().unwrap() < most, "{found}");
    }
}
