use super::*;
use widthwise_anatomy::heap::{Frame, Gathering, Values};

fn profile(stacks: &[(&[&str], u64)]) -> Profile {
    let mut gathering = Gathering::default();
    for (stack, bytes) in stacks {
        let stack = stack.iter().map(|function| {
            let (function, line) = (*function).split_once('@').unwrap_or((*function, ""));
            gathering.frame(Frame {
                function: function.to_owned(),
                file: Some("t.cpp".to_owned()),
                line: line.parse().ok(),
                module: "program".to_owned(),
                inlined: false,
            })
        });
        let stack = stack.collect();
        gathering.sample(stack, &Values { peak_bytes: *bytes, peak_count: 2, ..Values::default() });
    }
    gathering.profile()
}

fn flame<'a>(first: &'a Profile, second: Option<&'a Profile>) -> Flame<'a> {
    let side = |name, profile| Side { name, profile, program: "program" };
    Flame {
        title: "Bytes at the peak",
        column: Column::PeakBytes,
        first: side("x86-64", first),
        second: second.map(|second| side("x32", second)),
        through: &[],
    }
}

/// The boxes, as `class x width title text`.
fn boxes(figure: &str) -> Vec<String> {
    let part = |text: &str, from: &str, to: &str| {
        text.split(from).nth(1).and_then(|rest| rest.split(to).next()).unwrap_or_default().to_owned()
    };
    let drawing = part(figure, "role=\"tree\"", "</svg></svg>");
    drawing
        .split("<svg ")
        .skip(1)
        .map(|text| {
            let [class, x, width] = ["class=\"", "x=\"", " width=\""].map(|name| part(text, name, "\""));
            let width = width
                .parse::<f64>()
                .unwrap_or_else(|_| width.trim_end_matches('%').parse().expect("a share"));
            let x: f64 = x.trim_end_matches('%').parse().expect("a share");
            format!("{class}|{x:.0}|{width:.0}|{}", part(text, "y=\"14\">", "</text>"))
        })
        .collect()
}

#[test]
fn a_box_is_as_wide_as_its_bytes_and_coloured_by_its_object_file() {
    let profile = profile(&[(&["main", "fill(unsigned long)@8"], 75), (&["main", "chain(int)@9"], 25)]);
    let figure = figure(&flame(&profile, None));
    assert_eq!(
        boxes(&figure),
        [
            "root even|0|100|all",
            "call tint0|0|100|main",
            "call tint0|0|75|fill",
            "call tint0|75|25|chain",
            "line tint0|0|75|t.cpp:8",
            "line tint0|75|25|t.cpp:9",
        ]
    );
    assert!(
        figure.contains("<title>fill(unsigned long)\n75 B in 2 blocks · 75.0 %\nprogram</title>"),
        "{figure}"
    );
}

#[test]
fn a_difference_has_a_colour_and_a_number() {
    let first = profile(&[(&["main", "half(unsigned long)@8"], 80), (&["main", "same@9"], 20)]);
    let second = profile(&[
        (&["main", "half(unsigned int)@8"], 40),
        (&["main", "same@9"], 20),
        (&["main", "fresh@1"], 50),
    ]);
    let figure = figure(&flame(&first, Some(&second)));
    assert_eq!(
        boxes(&figure)[..5],
        [
            "root more1|0|100|▲ all +10 %",
            "call more1|0|100|▲ main +10 %",
            "call less3|0|53|▼ half −50 %",
            "call more3|53|33|▲ fresh second only",
            "call even|87|13|same same",
        ]
    );
    assert!(figure.contains("x86-64: 80 B in 2 blocks · x32: 40 B in 2 blocks · −50 %"), "{figure}");
}

#[test]
fn the_table_has_the_largest_differences_first() {
    let first = profile(&[(&["main", "a@1"], 80), (&["main", "b@2"], 100), (&["main", "c", "a@1"], 10)]);
    let second = profile(&[(&["main", "a@1"], 60), (&["main", "b@2"], 75), (&["main", "c", "a@1"], 2)]);
    let figure = figure(&flame(&first, Some(&second)));
    let table = figure.split("<tbody>").nth(1).expect("a table");
    let rows: Vec<&str> = table.split("<tr>").skip(1).collect();
    assert_eq!(rows.len(), 2);
    assert!(
        rows[0].contains("t.cpp:1") && rows[0].contains("90 B in 4 blocks") && rows[0].contains("−31 %"),
        "{}",
        rows[0]
    );
    assert!(rows[1].contains("t.cpp:2") && rows[1].contains("−25 %"), "{}", rows[1]);
}

#[test]
fn the_table_names_the_programs_line_and_the_type_made_there() {
    let maker = "std::__new_allocator<Node>::allocate(unsigned long)@137";
    let all = profile(&[
        (&["main@3", "fill@8", maker], 60),
        (&["main@3", "fill@8", "operator new(unsigned long)"], 5),
    ]);
    let rows = |flame: &Flame| {
        let figure = figure(flame);
        let table =
            figure.split("<tbody>").nth(1).expect("a table").split("</tbody>").next().unwrap_or_default();
        table.split("<tr>").skip(1).map(str::to_owned).collect::<Vec<String>>()
    };
    let shown = rows(&flame(&all, None));
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(
        shown[0].contains(">fill<") && shown[0].contains("t.cpp:8") && shown[0].contains(">Node<"),
        "{}",
        shown[0]
    );
    assert!(!shown[0].contains("t.cpp:137"), "{}", shown[0]);
    let through = ["fill".to_owned()];
    let shown = rows(&Flame { through: &through, ..flame(&all, None) });
    assert!(shown[0].contains(">main<") && shown[0].contains("t.cpp:3"), "{}", shown[0]);
}

#[test]
fn hostile_names_stay_text_and_the_page_runs_only_its_script() {
    let hostile = "</title><script>alert(1)</script>\u{1b}[31m\u{202e}";
    let profile = profile(&[(&["main", hostile, "\"><img src=x onerror=alert(1)>@8"], 75)]);
    let mut flame = flame(&profile, Some(&profile));
    flame.title = hostile;
    flame.first.name = hostile;
    let page = page(&flame);
    assert_eq!(page.matches("<script").count(), 1, "its own only");
    assert!(!page.contains("<img") && !page.contains('\u{1b}') && !page.contains('\u{202e}'));
    assert!(page.contains(&format!("script-src {}", script_source())));
    for forbidden in ["<link", "<iframe", "@import", "url(", "http://", "https://", "innerHTML", "eval("] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn an_empty_profile_has_a_message() {
    let figure = figure(&flame(&Profile::default(), None));
    assert!(figure.contains("No stack requested any memory") && !figure.contains("<svg"), "{figure}");
}

#[test]
fn left_out_boxes_are_counted() {
    let stacks: Vec<(String, u64)> =
        (0..10_000).map(|n| (format!("f{n}"), if n < 10 { 1_000_000 } else { 1 })).collect();
    let names: Vec<[&str; 1]> = stacks.iter().map(|(name, _)| [name.as_str()]).collect();
    let stacks: Vec<(&[&str], u64)> =
        names.iter().zip(&stacks).map(|(name, (_, bytes))| (&name[..], *bytes)).collect();
    let figure = figure(&flame(&profile(&stacks), None));
    assert_eq!(boxes(&figure).len(), 11);
    assert!(figure.contains("9\u{202f}990 boxes are too narrow and left out."), "{figure}");
}

#[test]
fn a_large_profile_makes_a_page_of_limited_size() {
    let stacks: Vec<Vec<String>> = (0..20_000)
        .map(|n| {
            (0..8)
                .map(|depth| format!("space::function_{}<int>(unsigned long)", (n * 31 + depth * 7) % 97))
                .collect()
        })
        .collect();
    let stacks: Vec<Vec<&str>> =
        stacks.iter().map(|stack| stack.iter().map(String::as_str).collect()).collect();
    let stacks: Vec<(&[&str], u64)> = stacks.iter().map(|stack| (&stack[..], 64)).collect();
    let page = page(&flame(&profile(&stacks), None));
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}
