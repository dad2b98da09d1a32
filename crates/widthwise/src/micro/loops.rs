//! The loops of the operations as the compiler left them. Each operation must still be in its loop: the instructions of
//! `micro_NAME` must have it.

use std::path::Path;

use widthwise_anatomy::code::{listing, Line};
use widthwise_anatomy::elf::Elf;
use widthwise_archive::Archive;
use widthwise_experiment::reported_metric::MICRO_PREFIX;
use widthwise_experiment::Metric;
use widthwise_report::inner_loops::InnerLoop;
use widthwise_report::Comparison;

use super::operation::{self, Operation};
use crate::explain::variants;

/// What the loop of an operation must have: so many instructions whose mnemonics begin with one of these.
struct Sought {
    mnemonics: &'static [&'static str],
    least: usize,
}

const CHAIN: usize = 32;

/// By operation; then by family, for those that have no row of their own. An i386 program divides 8 bytes by a function of
/// libgcc, and computes with doubles in x87 registers unless it is asked otherwise.
#[rustfmt::skip]
const SOUGHT: [(&str, Sought); 23] = [
    ("add4", Sought { mnemonics: &["add", "lea"], least: CHAIN }),
    ("add8", Sought { mnemonics: &["add", "lea"], least: CHAIN }),
    ("shift8", Sought { mnemonics: &["shl", "sal"], least: CHAIN }),
    ("mul4", Sought { mnemonics: &["imul", "mul"], least: CHAIN }),
    ("mul8", Sought { mnemonics: &["imul", "mul"], least: CHAIN }),
    ("div4", Sought { mnemonics: &["div"], least: CHAIN }),
    ("div8", Sought { mnemonics: &["div", "call"], least: CHAIN }),
    ("addf", Sought { mnemonics: &["addsd", "vaddsd", "fadd"], least: CHAIN }),
    ("mulf", Sought { mnemonics: &["mulsd", "vmulsd", "fmul"], least: CHAIN }),
    ("divf", Sought { mnemonics: &["divsd", "vdivsd", "fdiv"], least: CHAIN }),
    ("thread_local", Sought { mnemonics: &["add", "inc", "mov"], least: 4 }),
    ("memory_read", Sought { mnemonics: &["add", "mov"], least: 16 }),
    ("memory_write", Sought { mnemonics: &["mov"], least: 16 }),
    ("memory_copy", Sought { mnemonics: &["mov"], least: 32 }),
    ("page_fault", Sought { mnemonics: &["mov"], least: 1 }),
    ("truth_8", Sought { mnemonics: &["imul", "mul"], least: 8 }),
    ("truth_32", Sought { mnemonics: &["imul", "mul"], least: CHAIN }),
    ("atomic", Sought { mnemonics: &["lock"], least: 4 }),
    ("string", Sought { mnemonics: &["call"], least: 1 }),
    ("call", Sought { mnemonics: &["call"], least: 4 }),
    ("chase", Sought { mnemonics: &["mov"], least: CHAIN }),
    ("system", Sought { mnemonics: &["call"], least: 1 }),
    ("", Sought { mnemonics: &["call"], least: 1 }),
];

/// The loops of a campaign of the suite, in every variant whose program is still there; nothing of any other campaign.
pub fn of_campaign(archive: &Archive, comparison: &Comparison) -> Vec<InnerLoop> {
    let experiment = comparison.campaign.experiment;
    if !super::is_measured(experiment) {
        return Vec::new();
    }
    let read = |name: &str| {
        let [program, _] = variants::programs([name, name], archive.folder()).ok()?;
        std::fs::read(program.path).ok().map(|bytes| (name.to_owned(), bytes))
    };
    let programs: Vec<(String, Vec<u8>)> =
        experiment.variants.iter().filter_map(|variant| read(&variant.name)).collect();
    let elves: Vec<(&str, Elf)> =
        programs.iter().filter_map(|(name, bytes)| Some((name.as_str(), Elf::read(bytes).ok()?))).collect();
    let sides: Vec<(&str, &Elf, _)> = elves.iter().map(|(name, elf)| (*name, elf, elf.named())).collect();
    let of_operation = |operation: &Operation| {
        let symbol = format!("micro_{}", operation.name);
        let own = sides.iter().map(|(name, elf, named)| {
            let lines = listing(elf, named, symbol.as_bytes()).unwrap_or_default();
            ((*name).to_owned(), repeated(&lines))
        });
        InnerLoop { operation: operation.name.to_owned(), variants: own.collect() }
    };
    let loops = operation::all().into_iter().filter(|one| is_asked(one, &experiment.metrics));
    loops.map(|one| of_operation(&one)).filter(|one| !one.variants.is_empty()).collect()
}

fn is_asked(operation: &Operation, metrics: &[Metric]) -> bool {
    // A count has a suffix after the operation's name.
    let of = |name: &'static str| name.strip_prefix(MICRO_PREFIX)?.split('.').next();
    metrics.iter().any(|metric| of(metric.name) == Some(operation.name))
}

/// The instructions that are repeated: those of the longest loop, from the target of its jump back to the jump.
fn repeated(lines: &[Line]) -> Vec<String> {
    let target = |line: &Line| {
        let offset = line.text.strip_prefix('j')?.split_once("+0x")?.1;
        u64::from_str_radix(offset, 16).ok().filter(|target| *target <= line.offset)
    };
    let back = lines.iter().filter_map(|line| Some((target(line)?, line.offset)));
    let Some((first, last)) = back.max_by_key(|(first, last)| last - first) else { return Vec::new() };
    let is_inside = |line: &&Line| (first..=last).contains(&line.offset);
    lines.iter().filter(is_inside).map(|line| line.text.clone()).collect()
}

/// Refuses a program in which the loop of an operation has lost it; `metrics` name the operations.
///
/// # Errors
/// What is missing where, as a sentence.
pub fn check(program: &Path, metrics: &[Metric]) -> Result<(), String> {
    let bytes = std::fs::read(program).map_err(|error| error.to_string())?;
    let elf = Elf::read(&bytes).map_err(|error| error.to_string())?;
    let named = elf.named();
    let mut faults = Vec::new();
    for operation in operation::all().into_iter().filter(|operation| is_asked(operation, metrics)) {
        let symbol = format!("micro_{}", operation.name);
        let lines = listing(&elf, &named, symbol.as_bytes()).map_err(|error| error.to_string())?;
        if let Some(fault) = fault(&operation, &lines) {
            faults.push(fault);
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the compiler left an operation out: {}; `micro:` without it measures the others",
        faults.join("; ")
    ))
}

/// What a loop lacks.
fn fault(operation: &Operation, lines: &[Line]) -> Option<String> {
    let name = operation.name;
    if lines.is_empty() {
        return Some(format!("there is no function micro_{name}"));
    }
    let instructions = repeated(lines);
    if instructions.is_empty() {
        return Some(format!("micro_{name} has no loop"));
    }
    let of = |key: &str| SOUGHT.iter().find(|(own, _)| *own == key).map(|(_, sought)| sought);
    let sought = of(name).or_else(|| of(operation.family)).or_else(|| of(""))?;
    let has = |text: &&String| sought.mnemonics.iter().any(|mnemonic| text.starts_with(mnemonic));
    let found = instructions.iter().filter(has).count();
    let mnemonics = sought.mnemonics.join(" or ");
    (found < sought.least)
        .then(|| format!("the loop of micro_{name} has {found} of {} {mnemonics} instructions", sought.least))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions of one byte each.
    fn lines(texts: &[&str]) -> Vec<Line> {
        let line = |(offset, text): (u64, &&str)| Line {
            offset,
            bytes: Vec::new(),
            text: (*text).to_owned(),
            class: widthwise_anatomy::code::Class::Integer,
        };
        (0..).zip(texts).map(line).collect()
    }

    fn of(name: &str, instructions: &[&str]) -> Option<String> {
        let operation = operation::all().into_iter().find(|operation| operation.name == name).unwrap();
        fault(&operation, &lines(instructions))
    }

    #[test]
    fn a_loop_is_from_the_target_of_its_jump_back_to_the_jump() {
        let lines = lines(&["test edi,edi", "je +0x20", "nop", "imul rax,rdx", "jne +0x3", "ret"]);
        assert_eq!(repeated(&lines), ["imul rax,rdx", "jne +0x3"]);
        assert!(repeated(&lines[..4]).is_empty());
    }

    #[test]
    fn a_loop_without_its_operation_is_a_fault() {
        let mut multiplies = vec!["imul rax,rdx"; 32];
        multiplies.push("jne +0x0");
        assert_eq!(of("mul8", &multiplies), None);
        let missing = of("mul8", &multiplies[1..]).unwrap();
        assert_eq!(missing, "the loop of micro_mul8 has 31 of 32 imul or mul instructions");
        assert_eq!(of("mul8", &multiplies[..32]).unwrap(), "micro_mul8 has no loop");
        assert_eq!(of("getpid", &[]).unwrap(), "there is no function micro_getpid");
        let inc = "inc dword ptr gs:[0FFFFFFFCh]";
        assert_eq!(of("thread_local", &[inc, inc, inc, inc, "jne +0x0"]), None);
        let missing = of("getpid", &["nop", "jne +0x0"]).unwrap();
        assert_eq!(missing, "the loop of micro_getpid has 0 of 1 call instructions");
    }

    #[test]
    fn a_jump_forward_makes_no_loop_and_instructions_outside_the_loop_do_not_count() {
        let mut multiplies = vec!["imul rax,rdx"; 32];
        multiplies.push("jne +0x22");
        assert_eq!(of("mul8", &multiplies).unwrap(), "micro_mul8 has no loop");
        multiplies[32] = "jne +0x20";
        assert_eq!(
            of("mul8", &multiplies).unwrap(),
            "the loop of micro_mul8 has 0 of 32 imul or mul instructions"
        );
    }
}
