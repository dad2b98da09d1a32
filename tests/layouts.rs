//! Several layouts of each program: a verdict is about the change, not about where the linker put the code.

use crate::laboratory::{variant, verdict, Laboratory};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A program that needs up to four times the CPU time, depending on the place of its function, and two builds of it that
/// differ in this place alone.
const PLACED: &str = "placed.c --abi x86-64 --flags -DSHIFT=0 --flags -DSHIFT=3 --metric cpu";

fn laboratory() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("placed.c");
    lab
}

#[test]
fn a_difference_that_is_only_a_place_is_called_with_one_layout_and_not_with_several() {
    let lab = laboratory();
    let report = lab.compare_json(&format!("{PLACED} --rounds 8 -- 3000000"));
    let fooled = verdict(&report, "x86-64/-DSHIFT=3", "cpu");
    assert_eq!(fooled["verdict"], "higher", "{fooled}");
    assert_eq!(
        (&fooled["layout_spread"], &report["judging"]["layouts"]),
        (&serde_json::Value::Null, &1.into())
    );

    let report = lab.compare_json(&format!("{PLACED} --randomize-layout=4 --rounds 8 -- 3000000"));
    let honest = verdict(&report, "x86-64/-DSHIFT=3", "cpu");
    assert_eq!(honest["verdict"], "inconclusive", "{honest}");
    assert!(honest["layout_spread"].as_f64().unwrap() > 0.1, "{honest}");
    assert_eq!(report["judging"]["layouts"], 4);
    // The detection floor has the noise of layouts, too: the control has layouts of its own.
    let control = verdict(&report, "x86-64/-DSHIFT=0 control", "cpu");
    assert!(control["floor"].as_f64().unwrap() > 0.1, "{control}");

    // The two rounds of a pair have the same layout, and every layout comes.
    let layouts: Vec<u64> =
        report["rounds"].as_array().unwrap().iter().map(|round| round["layout"].as_u64().unwrap()).collect();
    assert_eq!(layouts.len(), 9);
    assert!(layouts.chunks_exact(2).all(|pair| pair[0] == pair[1]), "{layouts:?}");
    assert!(layouts[..8].iter().copied().collect::<BTreeSet<u64>>().into_iter().eq(1..=4), "{layouts:?}");

    // The table of runs has them, too.
    let csv = lab.widthwise("report --csv").stdout;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let column = reader.headers().unwrap().iter().position(|name| name == "layout").unwrap();
    let in_csv: BTreeSet<u64> = reader.records().map(|row| row.unwrap()[column].parse().unwrap()).collect();
    assert_eq!(in_csv, layouts.iter().copied().collect());

    let output = lab.widthwise("report");
    assert!(output.stdout.contains("4 layouts of each program; their spread is"), "{output:?}");

    // A resumed campaign finds its builds, and continues with the schedule's layouts.
    let campaign = lab.campaign();
    let output = lab.widthwise(&format!("compare --resume {} --rounds 10 --json", campaign.display()));
    assert!(!output.stderr.contains("built "), "{output:?}");
    let rounds = output.json()["rounds"].clone();
    // Nine rounds, another one to warm up, and two.
    assert_eq!(rounds.as_array().unwrap().len(), 12);
    assert_eq!(rounds[9]["layout"], rounds[8]["layout"]);
    assert!(rounds.as_array().unwrap().iter().all(|round| round["layout"].is_u64()));
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn layouts_are_built_for_every_abi_and_by_any_build_command() {
    let lab = laboratory();
    let words = "placed.c --abi x86-64,x32,i386 --metric cpu --randomize-layout=3 --rounds 1 --warmup 0 \
                 --build '$CC $CFLAGS -c {source} -o placed.o; $CC -o program placed.o $LDFLAGS' --run '{build}/program 1'";
    let report = lab.compare_json(words);
    let mut places: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for entry in std::fs::read_dir(lab.path(".widthwise/builds")).unwrap() {
        let folder = entry.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let abi = name.rsplit_once('-').unwrap().0.to_owned();
        let listed = Command::new("nm").arg(folder.path().join("tree/program")).output().unwrap();
        let text = String::from_utf8(listed.stdout).unwrap();
        let line = text.lines().find(|line| line.ends_with(" T work")).unwrap();
        let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        places.entry(abi).or_default().insert(address % 4096);
    }
    for abi in ["x86-64", "x32", "i386"] {
        assert!(variant(&report, abi)["build"].is_object(), "{report}");
        let own = places.iter().find(|(name, _)| name.starts_with(abi)).unwrap().1;
        assert!(own.len() >= 2, "{abi}: the function is at the same place in every layout: {places:?}");
    }
}

#[test]
fn what_has_no_layouts_is_refused_with_the_fix() {
    let lab = laboratory();
    lab.gcc("-o finished placed.c");
    for (words, told) in [
        ("--binary a=./finished --randomize-layout", ["--randomize-layout: ", "--build"]),
        ("placed.c --randomize-layout=1", ["from 2 to 64", "not 1"]),
        ("placed.c --randomize-layout=999", ["from 2 to 64", "not 999"]),
        ("placed.c --randomize-layout --estimator ten-run-trim", ["ten-run-trim", "leave out"]),
        ("placed.c --order sideways", ["--order: unknown order", "balanced"]),
    ] {
        lab.widthwise(&format!("compare {words} -- 1")).refuses(2, &told);
    }
    assert!(!lab.path(".widthwise").exists(), "a request that was refused has left something behind");

    let plain = "compare placed.c --abi x86-64 --randomize-layout=2 --rounds 1 --cpus any";
    let output =
        lab.widthwise(&format!("{plain} --build '$CC -o program {{source}}' --run '{{build}}/program 1'"));
    assert_eq!(output.status, Some(1), "{output:?}");
    assert!(output.stderr.contains("does not pass $LDFLAGS"), "{output:?}");

    let gold = "--flags gold --set 'flags.gold.ldflags = \"-fuse-ld=gold\"'";
    let output = lab.widthwise(&format!("{plain} {gold} -- 1"));
    assert_eq!(output.status, Some(1), "{output:?}");
    assert!(output.stderr.contains("cannot read the layout's script"), "{output:?}");

    std::fs::create_dir(lab.path("two words")).unwrap();
    let output =
        lab.widthwise(&["compare", "placed.c", "--randomize-layout", "--archive", "two words", "--", "1"]);
    output.refuses(2, &["two words", "--archive"]);
}
