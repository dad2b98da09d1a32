//! Flame graphs in a real browser: they zoom, search, handle keys, and are complete without their script.

use std::path::{Path, PathBuf};

use crate::browser::Browser;
use widthwise_anatomy::heap::{Column, Profile};
use widthwise_anatomy::import::folded;
use widthwise_report::html::flame::{page, Flame, Side};

const FIRST: &str = "main (m.cpp:4);fill(unsigned long) (m.cpp:8);std::vector<int*, A<int*> >::grow(unsigned long) (vector:3) 600\n\
                     main (m.cpp:5);chain(int) (m.cpp:9) 300\n\
                     main (m.cpp:6) 100\n";
const SECOND: &str = "main (m.cpp:4);fill(unsigned int) (m.cpp:8);std::vector<int*, A<int*> >::grow(unsigned int) (vector:3) 300\n\
                      main (m.cpp:5);chain(int) (m.cpp:9) 330\n\
                      main (m.cpp:6) 100\n\
                      main (m.cpp:7);fresh() (m.cpp:11) 20\n";

fn profile(folded: &str) -> Profile {
    folded::read(folded.as_bytes(), Column::PeakBytes).expect("folded stacks")
}

/// A page in a folder of its own.
struct Drawn {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn drawn(change: impl Fn(String) -> String) -> Drawn {
    let (first, second) = (profile(FIRST), profile(SECOND));
    let text = page(&Flame {
        title: "Bytes at the peak",
        column: Column::PeakBytes,
        first: Side { name: "x86-64", profile: &first, program: "" },
        second: Some(Side { name: "x32", profile: &second, program: "" }),
        through: &[],
    });
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("flame.html");
    std::fs::write(&path, change(text)).expect("a page");
    Drawn { _folder: folder, path }
}

/// Looks at the page in frames 1000 wide.
fn ask(page: &Path, expressions: &[String]) -> Vec<String> {
    let asked: Vec<(u32, &str)> = expressions.iter().map(|expression| (1000, expression.as_str())).collect();
    Browser::new().ask_each(page, &asked)
}

fn lines(reported: &str) -> Vec<&str> {
    reported.lines().collect()
}

/// Does something to the page, and returns a line for each visible box: its text, position and width in pixels.
fn boxes(first: &str) -> String {
    format!(
        "((find, key) => {{ {first}; return [...inner.querySelectorAll('[role=treeitem]')] \
           .filter(box => getComputedStyle(box).display !== 'none') \
           .map(box => {{ const part = box.querySelector('rect').getBoundingClientRect(), all = box.parentNode.getBoundingClientRect(); \
             const share = x => Math.round(100 * x / all.width); \
             return [box.querySelector('text').textContent, share(part.left - all.left), share(part.width), \
               box.classList.contains('hit') ? 'hit' : ''].join('|') }}).join('\\n') }}) \
         (words => [...inner.querySelectorAll('[role=treeitem]')].find(box => box.textContent.includes(words)), \
          name => inner.activeElement.dispatchEvent(new frame.contentWindow.KeyboardEvent('keydown', {{ key: name, bubbles: true }})))"
    )
}

const CLICK: &str = "new frame.contentWindow.MouseEvent('click', { bubbles: true })";

const ALL: [&str; 10] = [
    "▼ all −25 %|0|100|",
    "▼ main −25 %|0|100|",
    "▼ fill −50 %|0|57|",
    "▲ chain +10 %|57|31|",
    "m.cpp:6 same|89|10|",
    "▲ fresh second only|98|2|",
    "▼ std::vector<…>::grow −50 %|0|57|",
    "▲ m.cpp:9 +10 %|57|31|",
    "▲ m.cpp:11 second only|98|2|",
    "▼ vector:3 −50 %|0|57|",
];

#[test]
fn every_box_has_its_position_and_there_are_no_errors() {
    let drawn = drawn(|page| page);
    assert_eq!(lines(&ask(&drawn.path, &[boxes("")])[0]), ALL);
    let (loaded, console) = Browser::new().load(&drawn.path);
    assert_eq!(console, [""; 0]);
    assert!(loaded.contains("<strong>all</strong> x86-64: 1.00 kB · x32: 750 B · −25 %"), "{loaded}");
}

#[test]
fn without_its_script_the_graph_is_complete() {
    let drawn = drawn(|page| page.split("<script>").next().expect("a page").to_owned());
    assert_eq!(lines(&ask(&drawn.path, &[boxes("")])[0]), ALL);
}

#[test]
fn a_click_zooms_in_and_escape_zooms_out() {
    let drawn = drawn(|page| page);
    let zoomed =
        ["▼ all −25 %|0|100|", "▼ main −25 %|0|100|", "▲ chain +10 %|0|100|", "▲ m.cpp:9 +10 %|0|100|"];
    let click = format!("find('▲ chain').querySelector('rect').dispatchEvent({CLICK})");
    let back = format!("find('▲ chain').dispatchEvent({CLICK}); key('Escape')");
    let button = format!("find('▲ chain').dispatchEvent({CLICK}); inner.querySelector('button').click()");
    let reported = ask(&drawn.path, &[click, back, button].map(|first| boxes(&first)));
    assert_eq!(lines(&reported[0]), zoomed);
    assert_eq!(lines(&reported[1]), ALL);
    assert_eq!(lines(&reported[2]), ALL);
}

#[test]
fn keys_move_in_the_tree_and_zoom() {
    let drawn = drawn(|page| page);
    let after = |keys: &str| {
        let press: String = keys.split(' ').map(|name| format!("key('{name}');")).collect();
        let focus = "inner.querySelector('[tabindex=\"0\"]').focus();";
        format!(
            "(key => {{ {focus} {press} return inner.activeElement.querySelector('text').textContent + '|' + \
               inner.querySelectorAll('[tabindex=\"0\"]').length + '|' + inner.querySelector('.details strong').textContent }}) \
             (name => inner.activeElement.dispatchEvent(new frame.contentWindow.KeyboardEvent('keydown', {{ key: name, bubbles: true }})))"
        )
    };
    let zoom =
        "inner.querySelector('[tabindex=\"0\"]').focus(); for (const name of ['ArrowDown', 'ArrowDown', 'Enter']) key(name)";
    let expressions = [
        after("ArrowDown ArrowDown"),
        after("ArrowDown ArrowDown ArrowRight"),
        after("ArrowDown ArrowDown ArrowRight ArrowLeft ArrowUp"),
        after("ArrowUp ArrowLeft"),
        boxes(zoom),
    ];
    let reported = ask(&drawn.path, &expressions);
    assert_eq!(
        reported[..4],
        [
            "▼ fill −50 %|1|fill(unsigned long)",
            "▲ chain +10 %|1|chain(int)",
            "▼ main −25 %|1|main",
            "▼ all −25 %|1|all"
        ]
    );
    assert_eq!(
        lines(&reported[4])[2..],
        ["▼ fill −50 %|0|100|", "▼ std::vector<…>::grow −50 %|0|100|", "▼ vector:3 −50 %|0|100|"]
    );
}

#[test]
fn a_search_marks_boxes_and_shows_their_share() {
    let drawn = drawn(|page| page);
    let search = |words: &str| {
        format!(
            "const field = inner.querySelector('input'); field.value = '{words}'; \
             field.dispatchEvent(new frame.contentWindow.Event('input', {{ bubbles: true }}))"
        )
    };
    let output = |words: &str| {
        format!("(() => {{ {}; return inner.querySelector('output').textContent }})()", search(words))
    };
    let expressions =
        [boxes(&search("CHAIN")), output("m.cpp:9"), output("unsigned long"), output("nowhere"), output("")];
    let reported = ask(&drawn.path, &expressions);
    let hits: Vec<&str> = reported[0].lines().filter(|line| line.ends_with("|hit")).collect();
    assert_eq!(hits, ["▲ chain +10 %|57|31|hit"]);
    // 1050 is the whole width; boxes within a hit are not counted twice.
    assert_eq!(reported[1..], ["31.4 % of the width", "57.1 % of the width", "nothing found", ""]);
}

#[test]
fn it_fits_a_phone_and_is_drawn_in_light_and_dark() {
    let drawn = drawn(|page| page);
    let browser = Browser::new();
    for (content, frame) in browser.widths(&drawn.path, &[360, 768, 1280]) {
        assert!(content <= frame, "{content} px of content in {frame} px");
    }
    for dark in [false, true] {
        let picture = browser.picture(&drawn.path, 1000, 700, dark);
        assert_eq!((picture.width, picture.height), (1000, 700));
        let (ground, drawn) = picture.drawn();
        assert!(drawn > 0.08, "only {drawn} of it is drawn on");
        assert!(picture.colours() > 20, "{} colours", picture.colours());
        let light = ground.iter().map(|part| u32::from(*part)).sum::<u32>() / 3;
        assert_eq!(light < 128, dark, "the background is {ground:?}");
        // Blue and vermilion: less and more.
        let coloured = |test: fn(i32, i32, i32) -> bool| {
            picture
                .pixels
                .iter()
                .filter(|[r, g, b]| test(i32::from(*r), i32::from(*g), i32::from(*b)))
                .count()
        };
        assert!(coloured(|r, g, b| b > r + 40 && b > g) > 5000, "no blue");
        assert!(coloured(|r, _, b| r > b + 25) > 3000, "no vermilion");
    }
}

#[test]
fn it_prints() {
    let drawn = drawn(|page| page);
    let printed = Browser::new().printed(&drawn.path);
    assert!(printed.starts_with(b"%PDF") && printed.len() > 5000, "{} bytes", printed.len());
}
