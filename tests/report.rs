//! `report`: every format from the archive, hostile names, and the page in a real browser.

use std::collections::BTreeSet;

use crate::browser::Browser;
use crate::laboratory;
use crate::laboratory::fixture::Fixture;
use crate::laboratory::{count, Laboratory};
use crate::schema::{complaints, REPORT};
use serde_json::Value;

/// A campaign whose variants differ; one of them cannot be measured. Each test has a copy of it.
fn measured() -> Laboratory {
    static MEASURED: Fixture = Fixture::new();
    let lab = Laboratory::new();
    let made = MEASURED.folder(&lab, |lab| {
        lab.program("work.c");
        let arguments = "work.c --abi x86-64,i386,x32 --allocator glibc,jemalloc \
                         --exclude abi=i386,allocator=jemalloc --rounds 8 -- 3";
        let shown = lab.compare(arguments);
        assert_eq!(shown.status, Some(0), "{shown:?}");
    });
    lab.copy(&made.join(".widthwise"), ".widthwise");
    lab
}

fn json(lab: &Laboratory) -> Value {
    lab.widthwise("report --json").json()
}

#[test]
fn all_formats_are_rendered_at_once_from_the_archive() {
    let lab = measured();
    let made = std::fs::read(lab.campaign().join("report.html")).unwrap();
    let shown =
        lab.widthwise("report .widthwise/latest --html=out.html --csv=out.csv --markdown=out.md --json");
    assert_eq!((shown.status, shown.stderr.as_str()), (Some(0), ""), "{shown:?}");
    assert_eq!(shown.json()["schema"], 3);
    for name in ["out.html", "out.csv", "out.md"] {
        assert!(!lab.read(name).is_empty(), "{name}");
        assert!(!lab.path(&format!("{name}.partial")).exists());
    }
    // The same samples and the same seed always give the same page.
    assert_eq!(String::from_utf8(made).unwrap(), lab.read("out.html"));
    assert_eq!(lab.widthwise("report --html=-").stdout, lab.read("out.html"));
    assert_eq!(lab.widthwise("report --markdown").stdout, lab.read("out.md"));
    assert_eq!(lab.widthwise("report --csv").stdout, lab.read("out.csv"));
}

#[test]
fn a_report_does_not_change_the_archive() {
    let lab = measured();
    let file = lab.campaign().join("campaign.sqlite");
    let before = std::fs::read(&file).unwrap();
    for format in ["--html", "--csv", "--markdown", "--json"] {
        assert_eq!(lab.widthwise(&format!("report {format}=-")).status, Some(0));
    }
    assert_eq!(lab.widthwise("report --all-metrics").status, Some(0));
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn the_json_matches_its_schema_and_has_every_sample() {
    let lab = measured();
    let report = json(&lab);
    assert_eq!(complaints(REPORT, &report), [""; 0]);

    let samples: usize =
        report["runs"].as_array().unwrap().iter().map(|run| run["sample"].as_object().unwrap().len()).sum();
    assert_eq!(samples as i64, count(&lab.archive(), "SELECT count(*) FROM reading"));
    for verdict in report["verdicts"].as_array().unwrap() {
        let word = verdict["verdict"].as_str().unwrap();
        assert!(
            ["lower", "higher", "no_difference", "inconclusive", "withheld", "no_data"].contains(&word),
            "{verdict}"
        );
        let needs_reason = ["withheld", "no_data"].contains(&word);
        assert!(!needs_reason || verdict["reason"].is_string(), "{verdict}");
    }
}

#[test]
fn the_csv_has_a_row_for_every_sample() {
    let lab = measured();
    let shown = lab.widthwise("report --csv");
    let mut reader = csv::Reader::from_reader(shown.stdout.as_bytes());
    let head: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let place =
        |name: &str| head.iter().position(|column| column == name).unwrap_or_else(|| panic!("{head:?}"));
    let (variant, metric, value, status) =
        (place("variant"), place("metric"), place("value"), place("status"));
    let mut with_value = 0;
    let mut variants = BTreeSet::new();
    for row in reader.records() {
        let row = row.unwrap();
        variants.insert(row[variant].to_owned());
        if row[metric].is_empty() {
            assert_eq!((&row[value], &row[status]), ("", "unsupported"), "{row:?}");
        } else {
            assert!(row[value].parse::<f64>().is_ok(), "{row:?}");
            with_value += 1;
        }
    }
    assert_eq!(with_value, count(&lab.archive(), "SELECT count(*) FROM reading"));
    // Nothing is left out, not even variants without measurements.
    assert_eq!(variants.len() as i64, count(&lab.archive(), "SELECT count(*) FROM variant"));
}

#[test]
fn the_markdown_has_a_row_for_every_variant() {
    let lab = measured();
    let page = lab.widthwise("report --markdown").stdout;
    for name in laboratory::names(&json(&lab)) {
        let name = name.trim_end_matches(" control");
        assert!(
            page.lines().any(|line| line.starts_with('|') && line.contains(name)),
            "{name} is not in {page}"
        );
    }
    assert!(page.contains("Detection floor:"), "{page}");
}

#[test]
fn a_format_that_cannot_be_written_leaves_no_incomplete_file() {
    let lab = measured();
    lab.widthwise("report --html=nowhere/out.html")
        .refuses(2, &["--html: nowhere/out.html cannot be written: No such file"]);
}

#[test]
fn a_folder_in_place_of_a_file_is_refused_with_the_right_command() {
    let lab = measured();
    for format in ["html", "markdown", "json", "csv"] {
        lab.widthwise(&format!("report --{format}=.widthwise/latest")).refuses(
            2,
            &[
                &format!("error: --{format}: .widthwise/latest is a folder"),
                &format!("widthwise report .widthwise/latest --{format}=out."),
            ],
        );
        assert!(!lab.path(".widthwise/latest.partial").exists());
    }
}

#[test]
fn hostile_names_stay_text() {
    let lab = Laboratory::new();
    lab.program("tells.c");
    let script = "<script>document.title='taken over'</script>";
    let image = "<img src=x onerror=\"document.title='taken over'\">";
    lab.write(
        "widthwise.toml",
        &format!(
            "[program]\nsource = \"tells.c\"\nname = {image:?}\narguments = [\"arguments\", {image:?}, \"\\u001b[31mred\\u0007\"]\n\
             [[variant]]\nname = {script:?}\nenv = {script:?}\n[[variant]]\nname = \"</style></title>|`*_[x](javascript:alert(1))\"\n\
             [env.{script:?}]\nA = {image:?}\n[output]\nallow_different = true\n[measure]\nrounds = 6\n"
        ),
    );
    let shown = lab.compare("widthwise.toml");
    assert_eq!(shown.status, Some(0), "{shown:?}");
    assert!(!shown.stdout.contains('\u{1b}') && !shown.stdout.contains('\u{7}'), "{shown:?}");
    let page = lab.campaign().join("report.html");
    let text = std::fs::read_to_string(&page).unwrap();
    for tag in ["<script", "<img", "</style></title>"] {
        assert!(!text.contains(tag), "{tag} is no text");
    }
    let (loaded, console) = Browser::new().load(&page);
    assert_eq!(console, [""; 0]);
    assert!(!loaded.contains("<title>taken over"), "a name has become a program");
    assert!(loaded.contains("&lt;script&gt;"), "the name is not there at all");
    // Hostile text is unchanged where it is data.
    let report = json(&lab);
    assert_eq!(report["program"]["name"], image);
    assert_eq!(laboratory::names(&report)[0], script);
    assert!(lab.answer(script).contains("[\u{1b}[31mred\u{7}]"));
}

#[test]
fn the_page_loads_without_an_error_and_is_not_blank() {
    let lab = measured();
    let page = lab.campaign().join("report.html");
    let browser = Browser::new();
    let (loaded, console) = browser.load(&page);
    assert_eq!(console, [""; 0]);
    assert!(loaded.contains("x32/jemalloc") && loaded.contains("<svg"));
    for (width, height, dark) in [(1280, 900, false), (1280, 900, true), (375, 800, false), (375, 800, true)]
    {
        let picture = browser.picture(&page, width, height, dark);
        assert_eq!((picture.width, picture.height), (width, height));
        let (ground, drawn) = picture.drawn();
        assert!(drawn > 0.03, "{width} wide: only {drawn} of it is drawn on");
        assert!(picture.colours() > 20, "{width} wide: {} colours", picture.colours());
        let light = ground.iter().map(|part| u32::from(*part)).sum::<u32>() / 3;
        assert_eq!(light < 128, dark, "{width} wide: the ground is {ground:?}");
    }
}

#[test]
fn the_page_needs_no_horizontal_scrolling_on_a_phone_or_a_laptop() {
    let lab = measured();
    let page = lab.campaign().join("report.html");
    for (content, frame) in Browser::new().widths(&page, &[375, 768, 1280]) {
        assert!(content <= frame, "{content} px of content in {frame} px");
    }
}

#[test]
fn the_page_prints() {
    let lab = measured();
    let printed = Browser::new().printed(&lab.campaign().join("report.html"));
    assert!(printed.starts_with(b"%PDF") && printed.len() > 20_000, "{} bytes", printed.len());
}

/// The tests above can fail: a page with errors, with horizontal scrolling, or blank is detected.
#[test]
fn a_bad_page_is_detected() {
    let lab = Laboratory::new();
    let browser = Browser::new();
    lab.write("bad.html", "<!doctype html><title>bad</title><script>console.error('boo')</script><p style='width:900px'>wide</p>");
    let (_, console) = browser.load(&lab.path("bad.html"));
    assert_eq!(console.len(), 1, "{console:?}");
    assert!(console[0].contains("boo"));
    let (content, frame) = browser.widths(&lab.path("bad.html"), &[375])[0];
    assert!(content >= 900 && frame <= 375, "{content} {frame}");
    lab.write("blank.html", "<!doctype html><title>blank</title>");
    let picture = browser.picture(&lab.path("blank.html"), 375, 800, false);
    assert_eq!((picture.drawn(), picture.colours()), (([255, 255, 255], 0.0), 1));
}
