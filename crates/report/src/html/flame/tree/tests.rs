use super::*;
use widthwise_anatomy::heap::{Gathering, Values};

/// A profile of stacks written as `main m.c:3;f f.c:8`, with bytes each.
fn profile(stacks: &[(&str, u64)]) -> Profile {
    let mut gathering = Gathering::default();
    for (stack, bytes) in stacks {
        let frames = stack.split(';').filter(|text| !text.is_empty()).map(|text| {
            let (function, place) = text.split_once(" @").unwrap_or((text, ""));
            let place = place.split_once(':');
            gathering.frame(Frame {
                function: function.to_owned(),
                file: place.map(|(file, _)| file.to_owned()),
                line: place.and_then(|(_, line)| line.parse().ok()),
                module: "program".to_owned(),
                inlined: false,
            })
        });
        let frames = frames.collect();
        gathering.sample(frames, &Values { peak_bytes: *bytes, peak_count: 1, ..Values::default() });
    }
    gathering.profile()
}

/// Rows such as `main 5` with their depth as an indent, in the order of drawing within each parent.
fn shown(tree: &Tree) -> Vec<String> {
    fn walk(tree: &Tree, index: usize, rows: &mut Vec<String>) {
        let node = &tree.nodes[index];
        let [first, second] = node.amounts.map(|amount| amount.value);
        rows.push(format!("{}{} {first} {second} {}", " ".repeat(node.depth), node.name, node.width));
        let mut children: Vec<usize> =
            (1..tree.nodes.len()).filter(|child| tree.nodes[*child].parent == index).collect();
        children.sort_by_key(|child| tree.nodes[*child].start);
        for child in children {
            walk(tree, child, rows);
        }
    }
    let mut rows = Vec::new();
    walk(tree, 0, &mut rows);
    rows
}

fn tree(first: &[(&str, u64)], second: &[(&str, u64)]) -> Tree {
    Tree::of(&profile(first), Some(&profile(second)), Column::PeakBytes)
}

#[test]
fn a_function_is_one_node_and_its_lines_are_its_children() {
    let tree = Tree::of(
        &profile(&[("main @m.c:3;f @src/f.c:8", 5), ("main @m.c:4;f @src/f.c:9", 7), ("main @m.c:5", 1)]),
        None,
        Column::PeakBytes,
    );
    assert_eq!(
        shown(&tree),
        ["all 13 0 13", " main 13 0 13", "  f 12 0 12", "   f.c:9 7 0 7", "   f.c:8 5 0 5", "  m.c:5 1 0 1"]
    );
    assert_eq!(tree.nodes[0].amounts[0].blocks, 3);
}

#[test]
fn functions_of_two_abis_are_matched_by_meaning() {
    let tree = tree(
        &[("main;fill(unsigned long) @t.cpp:8", 80)],
        &[("main;fill(unsigned int) @/elsewhere/t.cpp:8", 40)],
    );
    assert_eq!(
        shown(&tree),
        ["all 80 40 80", " main 80 40 80", "  fill(unsigned long) 80 40 80", "   t.cpp:8 80 40 80"]
    );
}

#[test]
fn functions_of_one_profile_that_differ_in_the_width_of_an_integer_are_two_nodes() {
    let stacks = [("main;twice<int>", 20), ("main;twice<long>", 30)];
    let alone = Tree::of(&profile(&stacks), None, Column::PeakBytes);
    assert_eq!(
        shown(&alone),
        ["all 50 0 50", " main 50 0 50", "  twice<long> 30 0 30", "  twice<int> 20 0 20"]
    );
    let both = tree(&stacks, &[("main;twice<int>", 21), ("main;twice<long long>", 31)]);
    assert_eq!(
        shown(&both),
        ["all 50 52 52", " main 50 52 52", "  twice<long> 30 31 31", "  twice<int> 20 21 21"]
    );
}

#[test]
fn a_node_of_one_profile_has_its_width_there() {
    let tree = tree(&[("main;gone", 30), ("main;kept", 10)], &[("main;new", 20), ("main;kept", 15)]);
    assert_eq!(
        shown(&tree),
        ["all 40 35 65", " main 40 35 65", "  gone 30 0 30", "  new 0 20 20", "  kept 10 15 15"]
    );
}

#[test]
fn children_lie_within_their_parents_and_beside_each_other() {
    let tree = tree(&[("a;b", 3), ("a;c", 4), ("d", 5), ("", 2)], &[("a;b", 9), ("e;f;g", 1)]);
    for (index, node) in tree.nodes.iter().enumerate().skip(1) {
        let parent = &tree.nodes[node.parent];
        assert!(node.start >= parent.start && node.start + node.width <= parent.start + parent.width);
        for other in tree
            .nodes
            .iter()
            .skip(index + 1)
            .filter(|other| other.parent == node.parent && other.depth == node.depth)
        {
            assert!(node.start + node.width <= other.start || other.start + other.width <= node.start);
        }
    }
    assert_eq!(tree.nodes[0].width, 9 + 4 + 5 + 2 + 1);
}

#[test]
fn start_up_code_and_unnamed_code_make_no_difference() {
    let tree =
        tree(&[("_start;0x2724a;main;0x10;0x20;f", 4)], &[("_start;__libc_start_call_main;main;0x99;f", 4)]);
    assert_eq!(shown(&tree), ["all 4 4 4", " main 4 4 4", "  ? in program 4 4 4", "   f 4 4 4"]);
}

#[test]
fn the_number_of_nodes_is_limited_and_each_has_its_parent() {
    let stacks: Vec<(String, u64)> = (0..500).map(|n| (format!("main;f{};g", n % 50), n)).collect();
    let stacks: Vec<(&str, u64)> = stacks.iter().map(|(stack, bytes)| (stack.as_str(), *bytes)).collect();
    let tree = Tree::of(&profile(&stacks), None, Column::PeakBytes);
    for most in [1, 2, 10, 60, 1000] {
        let drawn = tree.drawn(most, 1000);
        assert!(drawn.len() <= most.max(1), "{} of {most}", drawn.len());
        assert!(drawn.iter().all(|index| drawn.contains(&tree.nodes[*index].parent)));
    }
    assert_eq!(tree.drawn(1000, 1000).len(), tree.nodes.len());
    assert_eq!(tree.drawn(1000, 1).len(), 2, "all and main");
    assert_eq!(Tree::of(&Profile::default(), None, Column::PeakBytes).drawn(10, 1000), [0]);
}

#[test]
fn an_endless_recursion_is_truncated_and_loses_no_byte() {
    let stack = vec!["f"; 100_000].join(";");
    let tree = tree(&[(&stack, 5)], &[]);
    assert!(tree.cut);
    assert_eq!(tree.nodes.len(), DEEPEST + 1);
    assert!(tree.nodes.iter().all(|node| node.width == 5));
}
