//! Every x32 call that can be made many times over, each beside the same call of an x86-64 program with the same dispatch armed.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::Context;

use crate::section::{Section, Table};
use crate::work_directory::{typed, words, WorkDirectory};

const MOST: f64 = 2.0;
const SIDES: [(&str, &[&str]); 2] =
    [("x86-64", &[]), ("x32", &["-mx32", "-idirafter", "/usr/include/x86_64-linux-gnu"])];

/// What docs/x32.md says why of.
const EXPLAINED: [&str; 1] = ["io_setup"];

/// Measures all of them.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let runtime = widthwise_x32run::place_in(work_directory.folder())?;
    for (abi, options) in SIDES {
        work_directory.build("bench/programs/every_call.c", &format!("every_call-{abi}"), options)?;
    }
    let spells = words([&work_directory.count(20, 2).to_string(), &work_directory.count(50, 5).to_string()]);
    let armed = [spells.clone(), words(["armed"])].concat();
    let mut least: [BTreeMap<String, f64>; 2] = Default::default();
    for _ in 0..work_directory.count(10, 1) {
        let mut native = Command::new(work_directory.folder().join("every_call-x86-64"));
        native.args(&armed);
        let mut x32 = Command::new(&runtime);
        x32.arg("./every_call-x32").args(&spells);
        for (mut command, least) in [native, x32].into_iter().zip(&mut least) {
            for line in work_directory.output(&mut command)?.lines() {
                let mut printed = line.split(' ');
                let name = printed.next().unwrap_or_default().to_owned();
                let time: f64 = printed
                    .next_back()
                    .and_then(|time| time.parse().ok())
                    .with_context(|| line.to_owned())?;
                let known = least.entry(name).or_insert(time);
                *known = known.min(time);
            }
        }
    }
    let mut table = Table::new(["", "x86-64, armed, ns", "x32, ns", "ratio"]);
    let mut ratios = Vec::new();
    let mut missed = Vec::new();
    for (name, native) in &least[0] {
        let x32 = *least[1].get(name).with_context(|| format!("{name} is not in the output of x32"))?;
        let ratio = x32 / native;
        ratios.push(ratio);
        if ratio > MOST && !EXPLAINED.contains(&name.as_str()) {
            missed.push(format!("{name} {ratio:.2}"));
        }
        table.row([name.clone(), format!("{native:.0}"), format!("{x32:.0}"), format!("{ratio:.2}")]);
    }
    ratios.sort_by(f64::total_cmp);
    Ok(Section {
        bar: "no call costs more than twice what it costs an x86-64 program with the same dispatch armed, except those that docs/x32.md explains."
            .into(),
        method: "Nanoseconds, the least of many short spells, both sides in turns. Most calls are cheap: they do nothing, or the kernel refuses their arguments, which shows the cost of the way to the kernel."
            .into(),
        commands: vec![
            typed("./every_call-x86-64", &armed),
            typed("x32run", &[words(["./every_call-x32"]), spells].concat()),
        ],
        table,
        reached: missed.is_empty(),
        sentence: format!(
            "of {} calls the middle one costs {:.2} times as much, nine of ten at most {:.2} times{}.",
            ratios.len(),
            ratios[ratios.len() / 2],
            ratios[ratios.len() * 9 / 10],
            if missed.is_empty() { String::new() } else { format!("; missed: {}", missed.join(", ")) },
        ),
    })
}
