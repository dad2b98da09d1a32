//! Variants on emulated machines: what they are named, what is counted of them, what cannot be asked of them.

use widthwise_experiment::{spec, spec_text, CacheModel, Experiment, Facts, Kernel};

const FILE: &str = "[program]\nsource = \"a.c\"\n";
const AMD64: &str = "[axes]\nkernel = [\"debian:amd64\"]\n";

fn resolved(rest: &str) -> Result<Experiment, String> {
    let facts = Facts { folder: "lua".into(), ..Facts::default() };
    let request = spec::parse(&format!("{FILE}{rest}"), "widthwise.toml").expect("the text is valid");
    request.resolve(&facts).map_err(|error| error.to_string())
}

fn metrics(rest: &str) -> Vec<&'static str> {
    resolved(rest).unwrap().metrics.iter().map(|metric| metric.name).collect()
}

#[test]
fn the_kernel_is_the_last_part_of_a_name_and_a_path_begins_at_the_spec_file() {
    let kernels = "kernel = [\"host\", \"debian:686-pae\", \"./bzImage\"]";
    let experiment = resolved(&format!("[axes]\nabi = [\"i386\"]\n{kernels}\n")).unwrap();
    let names: Vec<&str> = experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["i386/host", "i386/debian:686-pae", "i386/bzImage"]);
    assert_eq!(experiment.variants[0].kernel, Kernel::Host);
    assert_eq!(experiment.variants[2].kernel, Kernel::File("lua/./bzImage".into()));
    assert!(experiment.is_emulated("i386/debian:686-pae") && !experiment.is_emulated(&experiment.control()));
}

#[test]
fn an_abi_of_another_processor_is_used_only_where_it_is_named() {
    let experiment = resolved("").unwrap();
    let names: Vec<&str> = experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["x86-64", "x32", "i386"]);
    assert!(!experiment.has_emulated());
    assert!(resolved("[axes]\nabi = [\"ppc64\"]\n").unwrap().has_emulated());
}

#[test]
fn no_time_is_a_metric_of_emulated_machines_alone() {
    let on_machine = [
        "max_rss",
        "page_faults",
        "minor_faults",
        "major_faults",
        "instructions_user",
        "instructions_kernel",
    ];
    assert_eq!(metrics(AMD64), on_machine);
    assert_eq!(metrics("[axes]\nabi = [\"ppc64\", \"ppc\"]\n"), ["instructions_user"]);
    let mixed = metrics("[axes]\nabi = [\"x86-64\", \"ppc64\"]\n");
    assert!(mixed.contains(&"cpu") && mixed.contains(&"instructions_user"), "{mixed:?}");
    let refused = resolved(&format!("{AMD64}[measure]\nmetrics = [\"cpu\"]\n")).unwrap_err();
    assert!(refused.contains("metric \"cpu\" is not measured on an emulated machine"), "{refused}");
    let refused = resolved("[measure]\nmetrics = [\"instructions_user\"]\n").unwrap_err();
    assert!(refused.contains("is counted on an emulated machine alone"), "{refused}");
}

#[test]
fn times_are_metrics_of_other_kernels_under_kvm() {
    let kvm = "[measure]\nkvm = true\n";
    let times = ["cpu", "wall", "user", "system"];
    assert_eq!(metrics(&format!("{AMD64}{kvm}"))[..4], times);
    let experiment = resolved(&format!("{AMD64}{kvm}")).unwrap();
    let deciding: Vec<&str> = experiment.deciding().iter().map(|metric| metric.name).collect();
    assert_eq!(deciding, ["cpu"]);
    assert!(experiment.is_timed(&experiment.baseline) && experiment.is_timed(&experiment.control()));
    let reports = format!("{kvm}[measure.reports]\nlatency = \"nanoseconds\"\n");
    assert_eq!(metrics(&format!("{AMD64}{reports}")), ["latency"]);
    // A program of another processor has no kernel that the processor could execute.
    let foreign = "[axes]\nabi = [\"x86-64\", \"ppc\"]\n";
    for axes in ["", foreign, "[axes]\nkernel = [\"host\", \"debian:amd64\"]\n"] {
        let refused = resolved(&format!("{axes}{kvm}")).unwrap_err();
        assert!(
            refused.contains("kvm times programs on other kernels") && refused.contains("baseline"),
            "{refused}"
        );
    }
    let text = format!("{FILE}{AMD64}{kvm}");
    let request = spec::parse(&text, "widthwise.toml").unwrap();
    assert_eq!(spec::parse(&spec_text(&request), "widthwise.toml").as_ref(), Ok(&request));
}

#[test]
fn instructions_decide_where_every_variant_is_emulated() {
    let deciding = |rest: &str| -> Vec<&str> {
        resolved(rest).unwrap().deciding().iter().map(|metric| metric.name).collect()
    };
    assert_eq!(deciding(AMD64), ["max_rss", "instructions_user", "instructions_kernel"]);
    assert_eq!(deciding("[axes]\nkernel = [\"host\", \"debian:amd64\"]\n"), ["cpu", "max_rss"]);
}

#[test]
fn what_a_program_reports_is_measured_natively_alone() {
    let reports = "[measure.reports]\nlatency = \"nanoseconds\"\nitems = \"count\"\n";
    assert_eq!(metrics(reports), ["latency", "items"]);
    for emulated in [AMD64, "[axes]\nabi = [\"ppc64\", \"ppc\"]\n"] {
        let refused = resolved(&format!("{emulated}{reports}")).unwrap_err();
        let reason = "\"latency\", which the program reports, is not measured on an emulated machine";
        assert!(refused.contains(reason), "{refused}");
    }
    let mixed = metrics(&format!("[axes]\nabi = [\"x86-64\", \"ppc64\"]\n{reports}"));
    assert_eq!(mixed, ["latency", "items"]);
}

#[test]
fn operations_are_counted_on_kernels_and_timed_where_there_is_time() {
    let reports = "[measure.reports]\n\"micro.x\" = \"nanoseconds machine-instructions time for x\"\n\
                   \"micro.y\" = \"nanoseconds instructions machine-instructions time for y\"\n";
    let of = |axes: &str| metrics(&format!("{axes}{reports}"));
    let counts = [
        "micro.x.instructions_user",
        "micro.y.instructions_user",
        "micro.x.instructions_kernel",
        "micro.y.instructions_kernel",
    ];
    let times = ["micro.x", "micro.y", "micro.y.instructions"];
    assert_eq!(of(AMD64), counts);
    let mixed = of("[axes]\nkernel = [\"host\", \"debian:amd64\"]\n");
    assert_eq!(mixed, [&times[..], &counts[..]].concat());
    assert_eq!(of(""), times);
}

#[test]
fn a_noun_of_the_user_may_begin_with_a_word_of_the_micro_suite() {
    let reports = "[measure.reports]\nipc = \"count instructions per cycle\"\nmips = \"count machine-instructions a second\"\n";
    let experiment = resolved(reports).unwrap();
    let found: Vec<(&str, &str)> = experiment.metrics.iter().map(|one| (one.name, one.noun)).collect();
    assert_eq!(found, [("ipc", "instructions per cycle"), ("mips", "machine-instructions a second")]);
}

#[test]
fn classes_and_caches_are_metrics_only_where_they_are_asked_for() {
    let asked = "[measure]\ninstruction_classes = true\ncache_model = \"bulldozer\"\n";
    let with = |axes: &str, rest: &str| metrics(&format!("{axes}{rest}"));
    let of = |names: &[&'static str], part: &str| names.iter().filter(|name| name.contains(part)).count();
    let guest = with(AMD64, asked);
    assert_eq!((of(&guest, "instructions_user_"), of(&guest, "instructions_kernel_")), (15, 15), "{guest:?}");
    assert_eq!(of(&guest, "_misses_"), 10, "{guest:?}");
    // A program of another processor has no kernel.
    let ppc = with("[axes]\nabi = [\"ppc\"]\n", "[measure]\ninstruction_classes = true\n");
    assert_eq!((of(&ppc, "instructions_user_"), of(&ppc, "instructions_kernel")), (15, 0), "{ppc:?}");
    // "all" does not include what costs much, and a name does.
    let all = with(AMD64, "[measure]\nmetrics = [\"all\"]\n");
    assert_eq!((of(&all, "instructions_user_"), of(&all, "_misses_")), (0, 0), "{all:?}");
    assert_eq!(with(AMD64, "[measure]\nmetrics = [\"ll_misses_user\"]\n"), ["ll_misses_user"]);

    let text = format!("{FILE}{AMD64}{asked}");
    let request = spec::parse(&text, "widthwise.toml").unwrap();
    assert_eq!(spec::parse(&spec_text(&request), "widthwise.toml").as_ref(), Ok(&request));
    assert_eq!(
        resolved(&format!("{AMD64}{asked}")).unwrap().cache_model,
        CacheModel::find("bulldozer").unwrap()
    );
    assert_eq!(resolved(AMD64).unwrap().cache_model, CacheModel::Host);
    for asked in ["instruction_classes = true", "cache_model = \"host\""] {
        let refused = resolved(&format!("[measure]\n{asked}\n")).unwrap_err();
        assert!(
            refused.contains(":4: ") && refused.contains("is counted on an") && refused.contains("alone"),
            "{refused}"
        );
    }
}

#[test]
fn what_an_emulated_machine_cannot_do_is_refused_with_its_line() {
    let refused = |rest: &str, wanted: &str| {
        let error = resolved(rest).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    };
    let on_amd64 = |rest: &str, wanted: &str| refused(&format!("{AMD64}{rest}\n"), wanted);
    on_amd64("[run]\nsetup = \"touch a\"", ":6: setup cannot be run on an emulated machine");
    on_amd64("[output]\nfiles = [\"a\"]", ":6: an output file does not come back");
    on_amd64("[measure]\nmemory = 6", ":6: the memory series cannot be read");
    on_amd64("thp = [\"never\"]", ":5: thp = \"never\" cannot be set");
    let counts = "[axes]\nabi = [\"ppc\"]\n[measure]\nmetrics = [\"instructions_kernel\"]\n";
    refused(counts, ":6: \"instructions_kernel\" is counted on another kernel alone");
    let pgo = "[axes]\nabi = [\"ppc\"]\nflags = [\"pgo\"]\n";
    refused(pgo, "the profile-guided set \"pgo\" cannot be trained");
}

#[test]
fn memory_over_time_needs_a_native_baseline() {
    let kernels = "[axes]\nabi = [\"x86-64\"]\nkernel = [\"debian:amd64\", \"host\"]\n[measure]\n";
    let refused = |rest: &str| resolved(&format!("{kernels}{rest}")).unwrap_err();
    let expected = "the memory series needs a baseline on this machine's kernel and processor, and \"x86-64/debian:amd64\" runs \
                    on an emulated machine; name a native one, as by --baseline x86-64/host";
    assert_eq!(refused("memory = 6"), format!("widthwise.toml:7: {expected}"));
    assert_eq!(refused("metrics = [\"default\", \"tree_peak\"]"), format!("widthwise.toml:7: {expected}"));
    for rest in ["memory = 0", "memory = 6\nbaseline = \"x86-64/host\""] {
        assert!(resolved(&format!("{kernels}{rest}")).is_ok());
    }
}
