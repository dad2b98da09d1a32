//! The heap recorder does not change the program that it records: its stacks, forks, limits, descriptors and signals
//! are unaffected, and no allocation is lost because of them.

use std::path::Path;

use crate::laboratory::fixture::Fixture;
use crate::laboratory::outcomes::{is_lane, skipped};
use crate::laboratory::recording::{Ended, Facts, Run, ABIS};
use crate::laboratory::{is_root, names, Laboratory};

/// The stack that a hook may use of its caller's.
const MOST_STACK: i64 = 2048;

/// The address space that the recorder may use in a program with one heap and 17 threads.
const MOST_MEMORY: u64 = 8 << 20;

/// Builds one of the programs. C++'s are linked with libstdc++.
fn build(lab: &Laboratory, name: &str, options: &str) {
    lab.program(name);
    let (program, ending) = name.split_once('.').unwrap();
    let library = if ending == "cpp" { "-lstdc++" } else { "" };
    lab.gcc(&format!("{options} -g -O1 -w -fno-builtin -pthread {name} -o {program} {library}"));
}

fn build_library(lab: &Laboratory, name: &str, options: &str, to: &str) {
    lab.program(name);
    lab.gcc(&format!("{options} -g -O1 -w -fno-builtin -shared -fPIC {name} -o {to}"));
}

/// The complete log of a program that succeeds.
fn whole(lab: &Laboratory, program: &str) -> (Ended, Facts) {
    let ended = Run::of(lab, program).recorded().well();
    let facts = ended.explained(lab).whole();
    (ended, facts)
}

/// `stack_depth`'s lines: a function's name and three depths.
fn depths(ended: &Ended) -> Vec<(String, [i64; 3])> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        (words[0].to_owned(), [1, 2, 3].map(|i| words[i].parse().unwrap()))
    };
    ended.stdout.lines().map(row).collect()
}

#[test]
fn no_hook_uses_more_than_two_kib_of_its_callers_stack() {
    let lab = Laboratory::new();
    lab.program("stack_depth.c");
    for (abi, options) in ABIS {
        for language in ["-x c", "-x c++ -std=c++17 -lstdc++"] {
            // Lazy binding would need more stack than a hook, and hide the hook's use.
            let options = format!("{options} -w -O1 -fno-builtin -pthread -Wl,-z,now -Wl,--no-as-needed");
            lab.gcc(&format!("{options} {language} stack_depth.c -o stack_depth"));
            let without = depths(&Run::of(&lab, "./stack_depth").alone().well());
            let with = depths(&Run::of(&lab, "./stack_depth").recorded().well());
            assert!(with.len() > 20 && with.len() == without.len(), "{abi}: {with:?}");
            let mut too_deep = Vec::new();
            for ((name, without), (same, with)) in without.iter().zip(&with) {
                assert_eq!(name, same, "{abi}");
                let most = (0..3).map(|i| with[i] - without[i]).max().unwrap();
                if most > MOST_STACK {
                    too_deep.push(format!("{name}: {most}"));
                }
            }
            assert_eq!(too_deep, [""; 0], "{abi}, {language}: deeper than {MOST_STACK} bytes");
        }
    }
}

#[test]
fn every_block_of_threads_and_coroutines_with_small_stacks_is_recorded() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "small_stacks.c", options);
        for (what, executor) in [("threads", 8 * 4000), ("coroutines", 4 * 4000), ("neighbour", 4000)] {
            let (_, facts) = whole(&lab, &format!("./small_stacks {what}"));
            assert_eq!(facts.blocks_of("work"), (5 * executor, 0), "{abi}, {what}");
        }
    }
}

#[test]
fn a_handler_on_a_small_stack_may_allocate_after_a_walked_stack_was_unmapped() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "small_stacks.c", options);
        let (_, facts) = whole(&lab, "./small_stacks handler");
        assert_eq!(facts.blocks_of("handler"), (200, 0), "{abi}");
    }
}

#[test]
fn short_threads_lose_no_block_not_even_their_last() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "small_stacks.c", options);
        let (_, facts) = whole(&lab, "./small_stacks crowd");
        assert_eq!(facts.blocks_of("work"), (5 * 400 * 100, 0), "{abi}");
        assert_eq!(facts.blocks_of("one_of_the_crowd"), (400, 0), "{abi}");
        assert_eq!(facts.blocks_of("farewell"), (400, 0), "{abi}");
    }
}

#[test]
fn threads_that_free_after_their_keys_were_destroyed_leave_no_memory_of_the_recorder() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "small_stacks.c", options);
        let (ended, _) = whole(&lab, "./small_stacks errors");
        // A thread's stream alone has 250.
        let [grown_kib] = ended.numbers()[..] else { panic!("{ended:?}") };
        assert!(grown_kib < 20 * 250, "{abi}: {grown_kib}");
    }
}

#[test]
fn operators_and_new_handlers_may_throw_through_the_recorder() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "jumps.cpp", options);
        let (_, facts) = whole(&lab, "./jumps throw");
        assert_eq!(facts.blocks_of("succeeds"), (4000, 2000), "{abi}");
        // One block for each exception: operators throw two thousand, new-handlers a thousand each.
        for (function, blocks) in [("fails", 2000), ("throws_its_own", 1000), ("throws_bad_alloc", 1000)] {
            assert_eq!(facts.blocks_of(function), (blocks, 0), "{abi}, {function}");
        }
    }
}

#[test]
fn a_handler_may_jump_out_of_a_hook_and_later_events_are_recorded_exactly() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "jumps.cpp", options);
        build_library(&lab, "own_allocator.c", options, "libown.so");
        for what in ["malloc", "context", "mmap"] {
            let mut run = Run::of(&lab, &format!("./jumps {what}"));
            if what != "mmap" {
                run = run.preload("libown.so");
            }
            let ended = run.recorded().well();
            let facts = ended.explained(&lab).whole();
            let [_, at_least, at_most] = ended.numbers()[..] else { panic!("{ended:?}") };
            assert_eq!(facts.blocks_of("after"), (100_000, 50_000), "{abi}, {what}");
            let (during, _) = facts.blocks_of("during");
            assert!((at_least..=at_most).contains(&during), "{abi}, {what}: {during} of {}", ended.stdout);
            // Every page mapped while handlers jump is unmapped at the end.
            assert_eq!(facts.sum("own_mapped_bytes"), 0, "{abi}, {what}");
        }
    }
}

#[test]
fn a_handler_may_allocate_inside_a_hook_and_both_events_are_recorded() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "jumps.cpp", options);
        build_library(&lab, "own_allocator.c", options, "libown.so");
        let ended = Run::of(&lab, "./jumps handler").preload("libown.so").recorded().well();
        let facts = ended.explained(&lab).whole();
        let [handled, during, _] = ended.numbers()[..] else { panic!("{ended:?}") };
        assert_eq!(facts.blocks_of("allocates"), (handled, 0), "{abi}");
        assert_eq!(facts.blocks_of("during"), (during, 0), "{abi}");
        assert_eq!(facts.blocks_of("after"), (100_000, 50_000), "{abi}");
    }
}

/// `forks` does not use libstdc++, which would allocate. Its many lines take seconds to compile: it is built once for each ABI.
fn build_forks(lab: &Laboratory, options: &str) {
    static FORKS: [Fixture; ABIS.len()] = [const { Fixture::new() }; ABIS.len()];
    let abi = ABIS.iter().position(|(_, own)| *own == options).unwrap();
    let built = FORKS[abi].folder(lab, |lab| {
        lab.program("forks.cpp");
        let options = format!("{options} -g -O1 -w -fno-builtin -fno-exceptions -fno-rtti -pthread");
        lab.gcc(&format!("{options} forks.cpp -o forks"));
    });
    lab.copy(&built.join("forks"), "forks");
}

/// Every process except one has two blocks.
fn assert_children(facts: &Facts, children: u64, abi: &str) {
    assert_eq!(facts.blocks_of("place"), (2 * children, 2 * children), "{abi}, {}", facts.what);
    assert_eq!(facts.sum("processes"), children + 1, "{abi}, {}", facts.what);
    let processes = facts.processes();
    let with_two = processes.iter().filter(|process| process["blocks"] == 2).count() as u64;
    assert_eq!((processes.len() as u64, with_two), (children + 1, children), "{abi}, {}", facts.what);
}

#[test]
fn thousands_of_children_of_a_threaded_program_allocate_at_new_sites_and_none_hangs() {
    let lab = Laboratory::new();
    if !is_lane("more") {
        skipped("1500 of the children as x32 and as i386: `make test-all PARTS=more`");
    }
    let fewer = if is_lane("more") { 2000 } else { 500 };
    for ((abi, options), children) in ABIS.into_iter().zip([2000, fewer, fewer]) {
        build_forks(&lab, options);
        let (_, facts) = whole(&lab, &format!("./forks fork {children} threads"));
        assert_children(&facts, children, abi);
    }
}

#[test]
fn children_made_without_fork_handlers_map_memory_and_none_hangs() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build_forks(&lab, options);
        for way in ["_Fork", "clone"] {
            let (_, facts) = whole(&lab, &format!("./forks {way} 200 threads"));
            assert_eq!(facts.sum("own_mapped_bytes"), 200 * 8192, "{abi}, {way}");
            assert_eq!(facts.sum("processes"), 201, "{abi}, {way}");
        }
    }
}

#[test]
fn children_are_recorded_for_every_way_of_forking() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build_forks(&lab, options);
        for way in ["fork", "_Fork", "clone"] {
            let (_, facts) = whole(&lab, &format!("./forks {way} 50"));
            assert_children(&facts, 50, abi);
        }
        let (_, facts) = whole(&lab, "./forks tree 4");
        // 31 processes; the first is not a child.
        assert_eq!(facts.blocks_of("place"), (2 * 31, 2 * 31), "{abi}");
        assert_eq!(facts.sum("processes"), 31, "{abi}");
    }
}

#[test]
fn executed_programs_are_recorded_with_an_empty_environment_too() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build_forks(&lab, options);
        for (way, places) in [("execve", 2), ("posix_spawn", 1), ("vfork", 1), ("system", 1)] {
            // A shell starts x32 programs only if the kernel does.
            if (abi, way) != ("x32", "system") {
                let (_, facts) = whole(&lab, &format!("./forks exec {way}"));
                assert_eq!(facts.blocks_of("leaf"), (7, 7), "{abi}, {way}");
                assert_eq!(facts.blocks_of("place"), (2 * places, 2 * places), "{abi}, {way}");
            }
        }
        // The variables that the recorder needs are restored.
        let (_, facts) = whole(&lab, "./forks exec clearenv");
        assert_eq!(facts.blocks_of("leaf"), (7, 7), "{abi}");
        assert_eq!(facts.blocks_of("place"), (4, 4), "{abi}");
    }
}

#[test]
fn the_heap_of_widthwise_exec_is_not_that_of_the_program_which_it_starts() {
    let lab = Laboratory::new();
    lab.write("one.c", "#include <stdlib.h>\nint main(void) {\n    return malloc(1000) == 0;\n}\n");
    lab.gcc("-g -mx32 -idirafter /usr/include/x86_64-linux-gnu one.c -o one");
    lab.copy(Path::new(env!("CARGO_BIN_EXE_widthwise")), "widthwise");
    let ended = Run::of(&lab, "./widthwise exec ./one").recorded().well();
    assert_eq!(ended.logs.len(), 1, "{:?}", ended.logs);
    let facts = ended.explained(&lab).whole();
    assert_eq!((facts.sum("processes"), facts.sum("peak_bytes"), facts.sum("peak_blocks")), (1, 1000, 1));
}

#[test]
fn a_log_that_cannot_be_made_is_reported() {
    let lab = Laboratory::new();
    lab.write("one.c", "#include <stdlib.h>\nint main(void) {\n    return malloc(1000) == 0;\n}\n");
    let absent = lab.path("absent/log").to_str().unwrap().to_owned();
    for (abi, options) in ABIS {
        lab.gcc(&format!("-g {options} one.c -o one"));
        for (log, reason) in [("log", "must be an absolute path"), (&*absent, "no file can be created")] {
            let ended = Run::of(&lab, "./one").recorded_to(log);
            assert_eq!(ended.status.code(), Some(0), "{ended:?}");
            assert!(ended.stderr.contains(reason) && ended.stderr.contains(log), "{abi} {ended:?}");
        }
    }
}

/// What a program restricts before it allocates most of its blocks: `limits.c` has all.
const LIMITS: [&str; 11] = [
    "nothing",
    "file-size 65536",
    "descriptors",
    "close",
    "close-all",
    "close_range",
    "closefrom",
    "close-listed",
    "dup2",
    "clearenv",
    "daemon",
];

/// The program prints the same descriptor numbers with and without the recorder, and each of its blocks is in the log.
fn assert_unlimited(lab: &Laboratory, abi: &str, program: &str) {
    let alone = Run::of(lab, program).alone().well();
    let (ended, facts) = whole(lab, program);
    assert_eq!(ended.stdout, alone.stdout, "{abi}, {program}");
    assert_eq!(facts.blocks_of("ask"), (46_000, 2000), "{abi}, {program}");
}

#[test]
fn limits_and_closed_descriptors_lose_no_block_and_no_descriptor() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "limits.c", options);
        for what in LIMITS {
            assert_unlimited(&lab, abi, &format!("./limits {what}"));
        }
    }
}

#[test]
fn a_program_that_changes_its_user_or_root_is_recorded_to_the_end() {
    assert!(is_root(), "this test needs root: run it as root, or leave it out by --skip becomes_nobody");
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "limits.c", options);
        for what in ["setuid", "chroot"] {
            assert_unlimited(&lab, abi, &format!("./limits {what}"));
        }
    }
}

#[test]
fn a_program_that_limits_its_files_and_executes_itself_is_recorded_to_the_end() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "limits.c", options);
        for what in ["file-size 65536", "close", "close_range", "dup2"] {
            assert_unlimited(&lab, abi, &format!("./limits exec {what}"));
        }
    }
}

#[test]
fn without_a_campaign_an_earlier_limit_on_files_is_named_and_lost_events_are_counted() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "limits.c", options);
        let program = "./limits keep 100000";
        let all = whole(&lab, program).1.sum("blocks");
        let ended = Run::of(&lab, program).limit(libc::RLIMIT_FSIZE, 256 << 10).recorded().well();
        let size: u64 = ended.logs.iter().map(|log| log.metadata().unwrap().len()).sum();
        assert!(size <= 256 << 10, "{abi}: {size}");
        let facts = ended.explained(&lab);
        let (recorded, lost) = (facts.sum("blocks"), facts.sum("lost_events"));
        assert!(recorded > 10_000 && lost > 10_000, "{abi}: {recorded}, {lost}");
        // Recorded and lost events add up to all: no block is freed.
        assert_eq!(recorded + lost, all, "{abi}");
        let remarks = facts.remarks().join("\n");
        assert!(remarks.contains("RLIMIT_FSIZE") && !remarks.contains("disk was full"), "{abi}: {remarks}");
        // If no log can be created, the program runs anyway.
        Run::of(&lab, program).limit(libc::RLIMIT_FSIZE, 0).recorded().well();
    }
}

#[test]
fn a_campaign_records_every_block_of_programs_that_limit_themselves() {
    assert!(is_root(), "this test needs root: run it as root, or leave it out by --skip a_campaign");
    let lab = Laboratory::new();
    lab.program("limits.c");
    for what in ["file-size 65536", "exec file-size 65536", "descriptors", "setuid", "daemon"] {
        let report = lab.compare_json(&format!(
            "limits.c --flags '-g -O1 -fno-builtin -pthread' --heap=1 --rounds 1 --warmup 0 -- {what}"
        ));
        let variants: Vec<&str> = names(&report).into_iter().filter(|name| name.contains('/')).collect();
        for (abi, _) in ABIS {
            let variant = variants.iter().find(|name| name.starts_with(&format!("{abi}/")));
            let variant = variant.unwrap_or_else(|| panic!("no {abi}: {variants:?}"));
            let output = lab.widthwise(&["explain", "--heap", variant, "--json"]);
            assert_eq!(output.status, Some(0), "{abi}, {what}: {output:?}");
            let facts = Facts { what: format!("{abi}, {what}"), documents: vec![output.json()] }.whole();
            assert_eq!(facts.blocks_of("ask"), (46_000, 2000), "{abi}, {what}");
        }
    }
}

#[test]
fn a_program_with_little_memory_runs_unchanged_and_lost_events_are_counted() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "memory_limit.c", options);
        let (_, all) = whole(&lab, "./memory_limit 0 1000");
        let events = |facts: &Facts| 2 * facts.sum("blocks") - facts.sum("left_blocks");
        for megabytes in [64, 256] {
            let program = format!("./memory_limit {megabytes}");
            let alone = Run::of(&lab, &program).alone().well().numbers();
            let ended = Run::of(&lab, &program).recorded().well();
            let [filled, starved] = ended.numbers()[..] else { panic!("{ended:?}") };
            assert_eq!((starved, alone[1]), (1600, 1600), "{abi}, {megabytes}");
            assert!(filled * 65536 + MOST_MEMORY >= alone[0] * 65536, "{abi}: {filled} of {}", alone[0]);
            let facts = ended.explained(&lab);
            let lost = facts.sum("lost_events");
            assert_eq!(events(&facts) + lost + 1000, events(&all) + filled, "{abi}, {megabytes}");
            let remarks = facts.remarks().join("\n");
            assert_eq!(lost > 0, remarks.contains("memory"), "{abi}: {lost} lost: {remarks}");
            assert!(!remarks.contains("disk") && !remarks.contains("handler"), "{abi}: {remarks}");
        }
    }
}

#[test]
fn only_a_program_with_its_own_malloc_is_reported_as_such() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        for position in ["-fPIE -pie", "-fno-pie -no-pie"] {
            build(&lab, "addresses.c", &format!("{options} {position}"));
            let (_, facts) = whole(&lab, "./addresses");
            assert_eq!(facts.blocks_of("main"), (10, 5), "{abi}, {position}");
            build(&lab, "addresses.c", &format!("{options} {position} -DOWN_MALLOC"));
            let facts = Run::of(&lab, "./addresses").recorded().well().explained(&lab);
            let remarks = facts.remarks().join("\n");
            assert!(remarks.contains("brings its own malloc"), "{abi}, {position}: {remarks}");
        }
    }
}

#[test]
fn a_program_in_c_may_load_and_unload_plugins_in_cxx() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "plugins.c", options);
        for library in ["-lstdc++", "-Wl,-Bstatic -lstdc++ -Wl,-Bdynamic -static-libgcc"] {
            lab.program("plugin.cpp");
            lab.gcc(&format!("{options} -g -O1 -shared -fPIC plugin.cpp -o plugin.so {library}"));
            for scope in ["local", "global"] {
                let (_, facts) = whole(&lab, &format!("./plugins {scope} ./plugin.so 20"));
                let what = format!("{abi}, {scope}, {library}");
                assert_eq!(facts.blocks_of("plugin_work"), (20 * 300, 0), "{what}");
                // And the C library's blocks for the first exception of a thread.
                assert!(facts.blocks_of("refuse").0 >= 20 * 10, "{what}");
                assert_eq!(facts.blocks_of("between"), (20, 20), "{what}");
            }
        }
    }
}

#[test]
fn functions_of_eleven_hundred_loaded_modules_have_their_names() {
    let lab = Laboratory::new();
    lab.write(
        "ask.c",
        "#include <stdlib.h>\nvoid *ask(void) { void *volatile block = malloc(10); return block; }\n",
    );
    std::fs::create_dir(lab.path("modules")).unwrap();
    for (abi, options) in ABIS {
        build(&lab, "plugins.c", options);
        lab.gcc(&format!("{options} -O1 -shared -fPIC ask.c -o ask.so"));
        for number in 0..1100 {
            std::fs::copy(lab.path("ask.so"), lab.path(&format!("modules/lib{number}.so"))).unwrap();
        }
        let ended = Run::of(&lab, "./plugins many modules 1100").recorded().well();
        ended.explained(&lab).whole();
        let mut bytes = 0;
        for log in &ended.logs {
            let output = lab.widthwise(&["explain", "--folded", "-", log.to_str().unwrap()]);
            assert_eq!(output.status, Some(0), "{abi}: {output:?}");
            let asked = output.stdout.lines().filter_map(|line| line.rsplit_once(";ask "));
            bytes += asked.map(|(_, bytes)| bytes.parse::<u64>().unwrap()).sum::<u64>();
        }
        assert_eq!(bytes, 11_000, "{abi}");
    }
}

#[test]
fn other_threads_never_see_a_descriptor_of_the_recorder() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        build(&lab, "descriptor_race.c", options);
        let ended = Run::of(&lab, "./descriptor_race own-file").recorded().well();
        assert_eq!(
            ended.stdout, "other numbers 0, lost 0, children with more 0, size 1\n",
            "{abi}: {}",
            ended.stderr
        );
        assert_eq!(ended.explained(&lab).sum("lost_events"), 0, "{abi}");
    }
}
