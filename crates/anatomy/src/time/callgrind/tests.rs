use super::*;
use proptest::prelude::*;

/// callgrind's own example of its manual, "Callgrind Format Specification", with names and positions compressed.
const FILE: &str = "\
# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 4711
cmd:  ./x 1
desc: Trigger: Program termination
desc: I1 cache: 32768 B, 64 B, 8-way associative
desc: D1 cache: 49152 B, 64 B, 12-way associative
desc: LL cache: 268435456 B, 64 B, direct-mapped

positions: line
events: Ir I1mr ILmr Bcm
summary: 900 2 3 4

ob=(1) /x
fl=(1) file1.c
fn=(1) main
16 20 1
cfn=(2) func1
calls=1 50
16 400
cob=(2) /lib/libc.so.6
cfi=(2) file2.c
cfn=(3) func2
calls=3 20
* 400 0 9
+1 5

fn=(2)
51 100 0 0 2
fi=(2)
-30 7
fe=(1)
51 3
jcnd=1/2 +3
*

ob=(2)
fl=(2)
fn=(3)
20 700

totals: 835 1 0 2
";

fn found<'a>(output: &'a Output, function: &str) -> &'a Cost {
    output.costs.iter().find(|cost| output.function(cost) == function).expect("a function")
}

#[test]
fn costs_are_exclusive_and_names_are_uncompressed() {
    let output = read(FILE.as_bytes()).expect("a file");
    assert_eq!((output.command.as_str(), output.process), ("./x 1", 4711));
    assert_eq!(output.trigger, "Program termination");
    assert_eq!(output.caches, ["I1 32 KiB 8-way", "D1 48 KiB 12-way", "LL 256 MiB direct-mapped"]);
    let main = found(&output, "main");
    assert_eq!((output.object(main), output.file(main)), ("/x", "file1.c"));
    assert_eq!((main.counts.instructions, main.counts.first_level_misses), (25, 1));
    let inlining = found(&output, "func1");
    // One line is of another file, that of an inlined function.
    assert_eq!(output.file(inlining), "file1.c");
    assert_eq!((inlining.counts.instructions, inlining.counts.branch_misses), (110, 2));
    let library = found(&output, "func2");
    assert_eq!((output.object(library), library.counts.instructions), ("/lib/libc.so.6", 700));
}

#[test]
fn code_addresses_stay_apart_and_are_relative_to_the_one_before() {
    let text = "positions: instr line\nevents: Ir\nfn=???\n0x400000 0 1\n+4 0 2\n* 0 3\n-4 0 4\ntotals: 10\n";
    let output = read(text.as_bytes()).expect("a file");
    let costs: Vec<(Option<u64>, u64)> =
        output.costs.iter().map(|cost| (cost.address, cost.counts.instructions)).collect();
    assert_eq!(costs, [(Some(0x400000), 5), (Some(0x400004), 5)]);
    assert_eq!((output.function(&output.costs[0]), output.object(&output.costs[0])), ("", ""));
}

#[test]
fn a_position_is_relative_to_that_of_the_costs_before_not_to_a_call_or_jump_between() {
    // As valgrind 3.19 writes a child that was forked after a thread had ended: calls stand apart from their instructions' costs.
    let text = "positions: instr line\nevents: Ir\nfn=f\n0x1000 10 1\ncfn=g\ncalls=1 0x10 0\n-2048 -5 70\n\
                -2048 -5 2\njump=3 +9 *\n+8 +1\n+8 +1 3\ntotals: 6\n";
    let output = read(text.as_bytes()).expect("a file");
    let costs: Vec<(Option<u64>, u64)> =
        output.costs.iter().map(|cost| (cost.address, cost.counts.instructions)).collect();
    assert_eq!(costs, [(Some(0x1000), 1), (Some(0x800), 2), (Some(0x808), 3)]);
}

#[test]
fn a_repeated_instruction_counts_once_however_often_it_repeats() {
    // 4 times `rep stosb`, of 25 repetitions, and a loop: written by valgrind 3.19, which counts 4 · 26 instructions.
    let text = "positions: instr line\nevents: Ir Bc\nfl=(1) a.c\nfn=(1) f\n0x1000 0 4\n+3 0 4 4\njcnd=4/4 * *\n* *\n* * 100 100\n\
                jcnd=96/100 * *\n* *\n+2 * 8 8\njfi=(2) b.h\njfn=(2) g\njcnd=4/8 -5 *\n* *\nfn=(2)\n0x1003 0 7 7\n\
                jump=2 +9 *\n* *\ntotals: 123 119\n";
    let output = read(text.as_bytes()).expect("a file");
    let costs: Vec<(&str, u64)> =
        output.costs.iter().map(|cost| (output.function(cost), cost.counts.instructions)).collect();
    assert_eq!(costs, [("f", 4), ("f", 4), ("f", 8), ("g", 7)]);
    assert_eq!(output.repetitions, 100);
    let error = |text: &str| read(text.as_bytes()).expect_err("damage").to_string();
    assert_eq!(
        error("positions: instr\nevents: Ir\nfn=f\n0x1 5\njump=x *\n"),
        "line 5: is no jump of the format"
    );
}

#[test]
fn cachegrinds_files_are_read_too() {
    let text = "desc: I1 cache: x\ncmd: ./x 1\nevents: Ir Dr DLmr\nfl=a.c\nfn=f\n1 2 3 4\nfn=g\n8 1\nsummary: 3 3 4\n";
    let output = read(text.as_bytes()).expect("a file");
    assert_eq!(found(&output, "f").counts.last_level_misses, 4);
    assert_eq!((output.process, output.file(found(&output, "g"))), (0, "a.c"));
}

#[test]
fn a_truncated_file_is_refused_wherever_it_ends() {
    let end = FILE.find("totals").expect("totals");
    for at in 0..end + "totals: 835 1".len() - 1 {
        assert!(read(&FILE.as_bytes()[..at]).is_err(), "{at}");
    }
}

#[test]
fn damage_is_named_with_its_line() {
    let error = |text: &str| read(text.as_bytes()).expect_err("damage").to_string();
    assert_eq!(error("hello\n"), "line 1: is no line of the format");
    assert_eq!(error("events: Ir\nfn=(3)\n"), "line 2: a name's number was not given a name before");
    assert_eq!(error("events: Ir\nfn=f\n1 2 3\n"), "line 3: has more counts than there are events");
    assert_eq!(error("events: Ir\nfn=f\n-1 2\n"), "line 3: a position is beyond all positions");
    assert_eq!(error("fn=f\n1 2\n"), "line 2: counts come before the names of the events");
    assert_eq!(error("events: Ir\nfn=f\n1 x\n"), "line 3: a count is no whole number");
    assert_eq!(
        error("events: Ir\nfn=f\n1 5\ntotals: 6\n"),
        "its counts of Ir add up to 5, and it says 6: it is damaged"
    );
    assert!(error("events: Ir\nfn=f\n1 5\n").contains("truncated"));
    assert!(error("").contains("truncated"));
}

#[test]
fn a_name_may_have_line_ends() {
    let text =
        "cmd: ./x one\ntwo\nevents: Ir\nfl=(1) a.c\nfn=(1) main\n1 2\ncfn=(2) new\nline,comma\"quote_\n\
                calls=1 5\n1 3\n\nfn=(2)\n5 3\nfn=(3) a\n2nd\nc=d\n7 4\ntotals: 9\n";
    let output = read(text.as_bytes()).expect("a file");
    assert_eq!(output.command, "./x one\ntwo");
    for (name, count) in [("main", 2), ("new\nline,comma\"quote_", 3), ("a\n2nd\nc=d", 4)] {
        assert_eq!(found(&output, name).counts.instructions, count, "{name}");
    }
}

#[test]
fn a_symbol_has_no_version_and_no_level_of_recursion() {
    assert_eq!(symbol("fork@@GLIBC_2.2.5"), Some("fork"));
    assert_eq!(symbol("spin'2"), Some("spin"));
    assert_eq!([symbol("0x0000000000001100"), symbol("")], [None; 2]);
    assert_eq!([symbol("0xyz"), symbol("a'b")], [Some("0xyz"), Some("a'b")]);
}

/// What is written of one function: its number, and lines with counts.
type Written = (u8, Vec<(u32, u32, u32)>);

fn functions() -> impl Strategy<Value = Vec<Written>> {
    let costs = proptest::collection::vec((1u32..9999, 0u32..99999, 0u32..99), 1..6);
    proptest::collection::vec((0u8..5, costs), 1..20)
}

proptest! {
    #[test]
    fn what_is_written_compressed_is_read_back(functions in functions()) {
        let mut text = String::from("positions: line\nevents: Ir Bcm\n");
        let mut wanted = std::collections::BTreeMap::<String, (u64, u64)>::new();
        let (mut known, mut last) = (std::collections::BTreeSet::new(), 0i64);
        for (number, costs) in &functions {
            let name = format!("f{number}");
            match known.insert(*number) {
                true => text.push_str(&format!("fn=({number}) {name}\n")),
                false => text.push_str(&format!("fn=({number})\n")),
            }
            for (line, instructions, misses) in costs {
                let step = i64::from(*line) - last;
                let position = match step { 0 => "*".to_owned(), 1.. => format!("+{step}"), _ => step.to_string() };
                last = i64::from(*line);
                text.push_str(&format!("{position} {instructions} {misses}\n"));
                let sum = wanted.entry(name.clone()).or_default();
                *sum = (sum.0 + u64::from(*instructions), sum.1 + u64::from(*misses));
            }
        }
        let sums = wanted.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        text.push_str(&format!("totals: {} {}\n", sums.0, sums.1));
        let output = read(text.as_bytes()).expect("a file");
        let mut got = std::collections::BTreeMap::new();
        for cost in &output.costs {
            got.insert(output.function(cost).to_owned(), (cost.counts.instructions, cost.counts.branch_misses));
        }
        prop_assert_eq!(got, wanted);
    }

    #[test]
    fn no_bytes_make_the_reader_fail_otherwise_than_with_an_error(
        at in 0usize..700, bytes in proptest::collection::vec(any::<u8>(), 0..40)
    ) {
        let mut file = FILE.as_bytes().to_vec();
        let at = at.min(file.len());
        file.splice(at..(at + bytes.len()).min(file.len()), bytes.iter().copied());
        let _ = read(&file);
        let _ = read(&bytes);
    }
}
