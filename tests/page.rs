//! Campaigns of many variants: the answer first, then the table, all else folded; on the terminal and in a real browser.

mod laboratory;

use laboratory::{many, unfolded, Laboratory};

#[test]
fn sixty_variants_are_summed_up_and_ordered_on_the_terminal() {
    let lab = Laboratory::new();
    lab.made_up(60, 12);
    let said = lab.widthwise("report");
    assert_eq!(said.status, Some(0), "{said:?}");
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert!(lines.len() <= 90, "{} lines:\n{}", lines.len(), said.stdout);
    // The common beginning of the names stands at the head of the column, and there alone.
    let head = lines.iter().position(|line| line.contains("variant of tree/ ")).expect("a head");
    let rows = &lines[head + 1..];
    let label = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    assert_eq!(label(rows[0]), "x86-64/level-00");
    let place =
        |name: &str| rows.iter().position(|line| label(line) == name).unwrap_or_else(|| panic!("{name}"));
    let (least, most) = extremes(60);
    assert_eq!(place(least.trim_start_matches(many::PREFIX)), 1, "{}", said.stdout);
    assert!(place(most.trim_start_matches(many::PREFIX)) > 50, "{}", said.stdout);
    let text = unfolded(&said.stdout);
    assert!(text.contains(" variants beside tree/x86-64/level-00: 20 need less, "), "{text}");
    assert!(
        text.contains(&format!("Least: {least}, −")) && text.contains(&format!("Most: {most}, +")),
        "{text}"
    );
    assert!(text.contains("were not measured: no C++ library for this ABI"), "{text}");
}

#[test]
fn two_variants_are_told_of_in_a_sentence_each() {
    let lab = Laboratory::new();
    lab.made_up(3, 12);
    let text = unfolded(&lab.widthwise("report").stdout);
    assert!(text.contains("tree/x32/level-00 needs") && text.contains("tree/i386/level-00 needs"), "{text}");
    assert!(!text.contains("Least:") && !text.contains("variant of"), "{text}");
}

/// Who was given the least CPU time, and the most.
fn extremes(variants: usize) -> (String, String) {
    let mut names: Vec<String> = many::names(variants)
        .into_iter()
        .enumerate()
        .filter(|(i, _)| i % 24 != 23)
        .map(|(_, name)| name)
        .collect();
    names.sort_by(|a, b| many::planted(a).0.total_cmp(&many::planted(b).0));
    (names[0].clone(), names[names.len() - 1].clone())
}
