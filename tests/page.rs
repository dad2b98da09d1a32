//! Campaigns of many variants: first the summary, then the table, everything else folded; on the terminal and in a real browser.

use std::path::PathBuf;

use crate::browser::Browser;
use crate::laboratory;
use crate::laboratory::fixture::Fixture;
use crate::laboratory::{many, unfolded, Laboratory};

/// Timed rounds of the campaign of sixty variants.
const ROUNDS: u32 = 167;

/// A folder with a campaign of sixty variants: its page (`out.html`) and its JSON (`out.json`).
fn sixty(lab: &Laboratory) -> PathBuf {
    static SIXTY: Fixture = Fixture::new();
    let folder = SIXTY.folder(lab, |lab| {
        lab.made_up(60, ROUNDS);
        let output = lab.widthwise("report --html=out.html --json=out.json");
        assert_eq!(output.status, Some(0), "{output:?}");
    });
    folder.to_owned()
}

#[test]
fn sixty_variants_are_summarised_and_ordered_on_the_terminal() {
    let lab = Laboratory::new();
    lab.made_up(60, 48);
    let output = lab.widthwise("report");
    assert_eq!(output.status, Some(0), "{output:?}");
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(lines.len() <= 90, "{} lines:\n{}", lines.len(), output.stdout);
    // The common prefix of the names is at the head of the column, and only there.
    let head = lines.iter().position(|line| line.contains("variant of tree/ ")).expect("a head");
    let rows = &lines[head + 1..];
    let label = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    assert_eq!(label(rows[0]), "x86-64/level-00");
    let place =
        |name: &str| rows.iter().position(|line| label(line) == name).unwrap_or_else(|| panic!("{name}"));
    let (least, most) = extremes(60);
    assert_eq!(place(least.trim_start_matches(many::PREFIX)), 1, "{}", output.stdout);
    assert!(place(most.trim_start_matches(many::PREFIX)) > 50, "{}", output.stdout);
    let text = unfolded(&output.stdout);
    assert!(text.contains(" variants beside tree/x86-64/level-00: 20 need less, "), "{text}");
    assert!(
        text.contains(&format!("Least: {least}, −")) && text.contains(&format!("Most: {most}, +")),
        "{text}"
    );
    assert!(text.contains("were not measured: no C++ library for this ABI"), "{text}");
}

#[test]
fn the_markdown_of_many_variants_folds_the_sentence_on_each() {
    let lab = Laboratory::new();
    lab.made_up(14, 12);
    let page = lab.widthwise("report --markdown").stdout;
    let (open, folded) =
        page.split_once("<details><summary>Every variant in a sentence</summary>").expect("a fold");
    let sentence = "- tree/i386/level-01 needs ";
    assert!(!open.contains(&sentence[2..]) && folded.contains(sentence), "{page}");
    assert!(open.contains("variants beside tree/x86-64/level-00"), "{page}");
}

#[test]
fn two_variants_have_one_sentence_each() {
    let lab = Laboratory::new();
    lab.made_up(3, 12);
    let text = unfolded(&lab.widthwise("report").stdout);
    assert!(text.contains("tree/x32/level-00 needs") && text.contains("tree/i386/level-00 needs"), "{text}");
    assert!(!text.contains("Least:") && !text.contains("variant of"), "{text}");
}

/// The variants with the least and the most CPU time.
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

/// The text of the first column of the first table, row by row.
const LABELS: &str = "[...inner.querySelector('table.verdicts').tBodies[0].rows].map(r => \
                      r.querySelector('.variant').textContent)";

#[test]
fn the_page_of_sixty_variants_begins_with_the_table_and_is_a_small_file() {
    let lab = Laboratory::new();
    let sixty = sixty(&lab);
    let page = sixty.join("out.html");
    let bytes = std::fs::metadata(&page).unwrap().len();
    assert!(bytes < 2_000_000, "{bytes} bytes");
    let browser = Browser::new();
    let (_, console) = browser.load(&page);
    assert_eq!(console, [""; 0]);

    let place = "Math.round(inner.querySelector('table.verdicts').getBoundingClientRect().top)";
    let sentences = "inner.querySelectorAll('.answer p').length";
    // An opened fold has every run of every measured variant, and all raw numbers.
    let opened = "(async () => { inner.querySelector('#runs details').open = true; \
                  inner.querySelector('#raw details').open = true; \
                  for (let i = 0; i < 200 && !inner.querySelector('#raw pre'); i++) await new Promise(r => setTimeout(r, 20)); \
                  const dots = [...inner.querySelectorAll('#runs details[open] .strip')]; \
                  const count = dots.map(d => d.querySelector('.dots').getAttribute('d').split('M').length - 1 + \
                      (d.querySelector('.edge')?.getAttribute('d').split('M').length ?? 1) - 1); \
                  return [dots.length, Math.min(...count), Math.max(...count), \
                      inner.querySelector('#raw pre').textContent.split('\\n').length].join(' ') })()";
    let reported = browser.ask_each(&page, &[(1280, place), (1280, sentences), (1280, opened)]);
    let y: i32 = reported[0].parse().unwrap();
    assert!((1..900).contains(&y), "the table begins at {y} px");
    assert_eq!(reported[1], "3");
    let runs = 59 * (ROUNDS as usize + 1);
    assert_eq!(reported[2], format!("59 {ROUNDS} {ROUNDS} {}", runs + 1));

    let report = std::fs::read_to_string(sixty.join("out.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["runs"].as_array().unwrap().len(), runs);
    assert_eq!(laboratory::names(&report).len(), 61);
}

#[test]
fn the_table_is_sorted_and_a_click_or_a_key_sorts_it_by_another_column() {
    let lab = Laboratory::new();
    let page = sixty(&lab).join("out.html");
    let (least, most) = extremes(60);
    let short = |name: &str| name.trim_start_matches(many::PREFIX).to_owned();
    let heads = "[...inner.querySelectorAll('table.verdicts')][0].tHead.rows[0].cells";
    let labels = |before: &str| format!("({before}, {LABELS}.join(' '))");
    let sorts =
        |before: &str| format!("({before}, [...{heads}].map(h => h.getAttribute('aria-sort')).join(' '))");
    let click = |column: usize| format!("{heads}[{column}].querySelector('button').click()");
    let head = format!("{heads}[0].textContent");
    let focus = format!("({heads}[2].querySelector('button').focus(), inner.activeElement.tagName)");
    let asked = [
        labels("0"),
        sorts("0"),
        head,
        labels(&click(1)),
        sorts(&click(1)),
        labels(&click(3)),
        sorts(&click(3)),
        labels(&click(0)),
        focus,
    ];
    let asked: Vec<(u32, &str)> = asked.iter().map(|expression| (1280, expression.as_str())).collect();
    let reported = Browser::new().ask_each(&page, &asked);
    let words = |at: usize| -> Vec<&str> { reported[at].split(' ').collect() };

    let first = words(0);
    assert_eq!((first[0], first[1]), ("x86-64/level-00", short(&least).as_str()));
    assert_eq!(reported[1], " ascending   ");
    assert_eq!(reported[2], "variant of tree/");
    // Descending; the baseline stays above, and rows without a number below.
    let down = words(3);
    assert_eq!((down[0], down[1]), (first[0], short(&most).as_str()));
    assert_eq!(down[57..], first[57..]);
    assert_eq!(reported[4], " descending   ");
    // By memory: the variants with the least.
    assert_eq!(words(5)[1], "x32/level-00");
    assert_eq!(reported[6], "   ascending ");
    // By name; a button can be reached and pressed with keys.
    assert_eq!(words(7)[1], "i386/level-00");
    assert_eq!(reported[8], "BUTTON");
}

#[test]
fn without_its_script_the_page_has_a_summary_of_every_run() {
    let lab = Laboratory::new();
    let text = std::fs::read_to_string(sixty(&lab).join("out.html")).unwrap();
    let (before, rest) = text.split_once("<script>").expect("a script");
    let (_, after) = rest.split_once("</script>").unwrap();
    lab.write("still.html", &format!("{before}{after}"));
    let reported = Browser::new().ask(
        &lab.path("still.html"),
        1280,
        "[inner.querySelectorAll('#runs details:first-of-type tbody tr').length, \
          inner.querySelectorAll('th button').length, \
          inner.querySelector('table.verdicts').tBodies[0].rows.length].join(' ')",
    );
    assert_eq!(reported, "61 0 61");
}

#[test]
fn packed_content_in_no_fold_is_unpacked_at_once() {
    let lab = Laboratory::new();
    let text = std::fs::read_to_string(sixty(&lab).join("out.html")).unwrap();
    let (before, raw) = text.split_once("<section id=\"raw\">").expect("the raw numbers");
    let raw = raw.replace("<details", "<div").replace("</details>", "</div>");
    assert!(raw.contains("<template class=\"packed\">"));
    lab.write("unfolded.html", &format!("{before}<section id=\"raw\">{raw}"));
    let lines = "(async () => { \
                 for (let i = 0; i < 200 && !inner.querySelector('#raw pre'); i++) await new Promise(r => setTimeout(r, 20)); \
                 return inner.querySelector('#raw pre').textContent.split('\\n').length })()";
    let reported = Browser::new().ask(&lab.path("unfolded.html"), 1280, lines);
    assert_eq!(reported, (59 * (ROUNDS + 1) + 1).to_string());
}

#[test]
fn a_table_clipped_on_a_phone_has_a_shaded_edge_and_one_that_fits_has_none() {
    let lab = Laboratory::new();
    lab.made_up(14, 12);
    assert_eq!(lab.widthwise("report --html=out.html").status, Some(0));
    let browser = Browser::new();
    for (name, width, is_cut) in [("phone.html", 390, true), ("screen.html", 1500, false)] {
        let rectangle = "(r => [r.left, r.right, r.top, r.bottom].map(Math.round).join(' '))\
                         (inner.querySelector('.scroll').getBoundingClientRect())";
        let reported = browser.ask(&lab.path("out.html"), width, rectangle);
        let [left, right, top, bottom] =
            reported.split(' ').map(|number| number.parse::<i64>().unwrap()).collect::<Vec<_>>()[..]
        else {
            panic!("{reported}")
        };
        assert!(left >= 0 && right <= i64::from(width) && top < bottom, "{reported}");
        // A screenshot has no scroll bars: the box ends as far from the right as it begins from the left.
        let right = i64::from(width) - left;
        // The page in a frame of that width: `--window-size` does not make a window as narrow as a phone.
        let frame = format!(
            "<!doctype html><body style='margin:0'><iframe src='out.html' style='border:0;width:{width}px;height:1600px'>"
        );
        lab.write(name, &frame);
        let picture = browser.picture(&lab.path(name), 1600, 1600, false);
        // The most frequent brightness in a column of the table's box.
        let usual = |x: i64| {
            let mut column: Vec<u32> = (top + 5..(bottom - 5).min(1600))
                .map(|y| picture.pixels[(y * i64::from(picture.width) + x) as usize])
                .map(|pixel| pixel.iter().map(|part| u32::from(*part)).sum())
                .collect();
            column.sort_unstable();
            column[column.len() / 2]
        };
        let (edge, inside) = (usual(right - 2), usual(right - 40));
        assert_eq!(edge + 60 < inside, is_cut, "{width}: {edge} at the edge, {inside} within");
    }
}

#[test]
fn the_text_of_a_page_has_no_backtick() {
    let lab = Laboratory::new();
    let reported = Browser::new().ask(
        &sixty(&lab).join("out.html"),
        1280,
        "(inner.querySelectorAll('script, style, pre').forEach(e => e.remove()), \
          [inner.body.innerHTML.includes('`'), [...inner.querySelectorAll('td.not-measured code')].map(c => c.textContent).join()].join(' '))",
    );
    let command = many::UNSUPPORTED.split('`').nth(1).unwrap();
    // Two variants, each in three tables.
    assert_eq!(reported, format!("false {}", [command; 6].join(",")));
}
