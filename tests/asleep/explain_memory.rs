//! `explain` of two variants: programs whose memory differs by known parts, in three ABIs.

use crate::browser::Browser;
use crate::laboratory::alone::asleep;
use crate::laboratory::{sums, unfolded, Laboratory};
use crate::schema::{complaints, EXPLANATION};
use serde_json::Value;

/// Pointers of `known_parts.c`.
const COUNT: i64 = 500_000;
const MIB: i64 = 1 << 20;
/// Pointers of a stack.
const STACK_COUNT: i64 = 900_000;

/// A campaign of `known_parts.c` in three ABIs, with that part of its memory.
fn compared(lab: &Laboratory, part: &str, words: &str) {
    lab.program("known_parts.c");
    let output = lab.compare(&format!(
        "known_parts.c --flags '-O1 -g -pthread -fno-builtin' --run '{{build}}/known_parts {part}' --warmup 0 \
         --metric max_rss {words}"
    ));
    assert_eq!(output.status, Some(0), "{part}: {output:?}");
}

/// The document of two ABIs, which is valid and whose parts sum.
fn explained(lab: &Laboratory, a: &str, b: &str) -> Value {
    let names = [a, b].map(|abi| format!("'{abi}/-O1 -g -pthread -fno-builtin'")).join(" ");
    let output = lab.widthwise(&format!("explain --json {names}"));
    assert_eq!(output.status, Some(0), "{names}: {output:?}");
    let document = output.json();
    assert_eq!(complaints(EXPLANATION, &document), [""; 0], "{names}");
    sums(&document);
    document
}

/// The sum of a metric's parts whose cause contains these words.
fn amount(document: &Value, metric: &str, cause: &str) -> i64 {
    let parts = document["parts"].as_array().unwrap().iter();
    let own =
        parts.filter(|part| part["metric"] == metric && part["cause"].as_str().unwrap().contains(cause));
    own.map(|part| part["amount"].as_i64().unwrap()).sum()
}

fn rest<'d>(document: &'d Value, metric: &str) -> &'d Value {
    let all = document["unexplained"].as_array().unwrap().iter();
    all.clone().find(|rest| rest["metric"] == metric).unwrap_or_else(|| panic!("no {metric}: {document:#}"))
}

/// The difference without what the parts leave of it is at least that share.
fn covers(document: &Value, share: f64) {
    let rest = rest(document, "max_rss");
    assert!(rest["explained_share"].as_f64().unwrap() >= share, "{rest:#} {:#}", document["parts"]);
}

/// As [`covers`], without the pages of libraries: of these, fault-around maps some 0.4 MB more in one run than in another,
/// and what recorded runs have of it the timed rounds need not have.
fn covers_beside_libraries(document: &Value, share: f64) {
    let rest = rest(document, "max_rss");
    let [left, baseline, variant] =
        ["amount", "baseline", "variant"].map(|name| rest[name].as_f64().unwrap());
    let left = left + amount(document, "max_rss", "pages of lib") as f64;
    let most = (1.0 - share) * (variant - baseline).abs();
    assert!(left.abs() <= most, "{left} of {most}: {rest:#} {:#}", document["parts"]);
}

#[test]
fn nodes_of_pointers_are_the_parts_of_the_heap_and_of_max_rss() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    compared(&lab, "pointers", "--rounds 6 --memory=1 --heap=2");
    for variant in ["x32", "i386"] {
        let document = explained(&lab, "x86-64", variant);
        // Two pointers of 8 bytes become two of 4, in each of so many nodes.
        for metric in ["peak_heap", "max_rss"] {
            assert_eq!(amount(&document, metric, "pointers in node"), -8 * COUNT, "{metric} {variant}");
        }
        assert_eq!(rest(&document, "peak_heap")["amount"], 0, "{variant}");
        // A header before each block: 8 bytes become 4. With 16 bytes a chunk has 32 bytes, with 8 it has 16.
        let blocks = document["sections"]["memory"]["baseline"]["allocated"]["blocks"].as_i64().unwrap();
        assert!((COUNT..COUNT + 10).contains(&blocks), "{variant}: {blocks}");
        assert_eq!(amount(&document, "max_rss", "glibc's block headers"), -4 * blocks, "{variant}");
        let rounding = amount(&document, "max_rss", "glibc's rounding");
        assert!((rounding + 4 * COUNT).abs() < 10_000, "{variant}: {rounding}");
        covers(&document, 0.9);
        let reversed = explained(&lab, variant, "x86-64");
        assert_eq!(amount(&reversed, "max_rss", "pointers in node"), 8 * COUNT, "{variant}");
    }
    let text = unfolded(&lab.widthwise("explain").stdout);
    assert!(text.contains("less memory at its peak than x86-64"), "{text}");
    assert!(text.contains("pointers in node (known_parts.c:"), "{text}");
    the_page_shows_it(&lab);
}

/// The page of the same campaign, at two widths, with its pictures.
fn the_page_shows_it(lab: &Laboratory) {
    assert_eq!(lab.widthwise("explain --html=why.html").status, Some(0));
    let page = lab.read("why.html");
    for words in
        ["pointers in node", "class=\"step lower\"", "class=\"bytes\"", "class=\"flame\"", "not explained"]
    {
        assert!(page.contains(words), "{words}");
    }
    let browser = Browser::new();
    for (content, frame) in browser.widths(&lab.path("why.html"), &[1280, 400]) {
        assert!(content <= frame, "{frame}: the page is {content} wide");
    }
    let (_, messages) = browser.load(&lab.path("why.html"));
    assert_eq!(messages, [""; 0]);
    let bodies = "[...inner.querySelectorAll('.waterfall')].length + ' ' + [...inner.querySelectorAll('svg.bytes')].length";
    let counts: Vec<u32> = browser
        .ask(&lab.path("why.html"), 1280, bodies)
        .split(' ')
        .map(|count| count.parse().unwrap())
        .collect();
    assert!(counts[0] >= 2 && counts[1] >= 2, "{counts:?}");
    the_campaigns_page_holds_it(lab, &browser);
}

/// The section of the campaign's page, which links to a page of each variant beside it.
fn the_campaigns_page_holds_it(lab: &Laboratory, browser: &Browser) {
    let report = lab.path(".widthwise/latest/report.html");
    let page = lab.read(".widthwise/latest/report.html");
    let section = page.split("id=\"why\"").nth(1).expect("the section").split("</section>").next().unwrap();
    for words in ["less memory at its peak than x86-64", "pointers in node", "class=\"step lower\""] {
        assert!(section.contains(words), "{words}: {section}");
    }
    let links: Vec<&str> =
        section.split("href=\"").skip(1).map(|link| link.split('"').next().unwrap()).collect();
    assert_eq!(links.len(), 2, "{links:?}");
    for link in links {
        let whole = lab.read(&format!(".widthwise/latest/{link}"));
        assert!(whole.contains("class=\"bytes\"") && whole.contains("pointers in node"), "{link}");
    }
    for (content, frame) in browser.widths(&report, &[1280, 400]) {
        assert!(content <= frame, "{frame}: the page is {content} wide");
    }
    let (_, messages) = browser.load(&report);
    assert_eq!(messages, [""; 0]);
}

#[test]
fn variables_are_parts_by_name() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    compared(&lab, "variables", "--rounds 1");
    // Nothing was recorded: the command that does it is named, and the sections that are there are shown.
    let document = explained(&lab, "x86-64", "i386");
    let missing = document["sections"]["memory"]["missing"].to_string();
    assert!(missing.contains("compare --resume") && missing.contains("--heap"), "{missing}");
    assert!(document["sections"]["size"].is_object() && document["sections"]["heap"].is_null());
    let output = lab.widthwise("compare --resume .widthwise/latest --heap=2");
    assert_eq!(output.status, Some(0), "{output:?}");
    for variant in ["x32", "i386"] {
        let document = explained(&lab, "x86-64", variant);
        for name in ["table", "numbers"] {
            let bytes = amount(&document, "max_rss", &format!("variable {name}"));
            assert_eq!(bytes, -4 * COUNT, "{variant} {name}");
        }
        let others = amount(&document, "max_rss", "other variables");
        assert!(others.abs() <= 8 << 12, "{variant}: {others}");
        covers_beside_libraries(&document, 0.8);
    }
}

#[test]
fn what_a_program_maps_itself_is_a_part() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    compared(&lab, "mapped", "--rounds 1 --heap=2");
    for variant in ["x32", "i386"] {
        let document = explained(&lab, "x86-64", variant);
        let own = amount(&document, "max_rss", "memory that the program maps itself");
        // To whole pages.
        assert!((own + 4 * 4 * COUNT).abs() <= 4096, "{variant}: {own}");
        covers(&document, 0.8);
    }
}

#[test]
fn shared_memory_is_one_part_and_not_memory_that_the_program_maps_itself() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    compared(&lab, "shared", "--rounds 1 --heap=2");
    for variant in ["x32", "i386"] {
        let document = explained(&lab, "x86-64", variant);
        let shared = amount(&document, "max_rss", "shared memory");
        // To whole pages.
        assert!((shared + 4 * 4 * COUNT).abs() <= 4096, "{variant}: {shared}");
        for cause in ["memory that the program maps itself", "allocated memory that is not resident"] {
            let other = amount(&document, "max_rss", cause);
            assert!(other.abs() <= 8 << 12, "{variant}: {cause}: {other}");
        }
        covers(&document, 0.8);
    }
}

#[test]
fn pages_that_a_child_copies_are_not_memory_that_the_allocator_keeps() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    compared(&lab, "forked", "--rounds 1 --heap=1 --memory=1");
    for variant in ["x32", "i386"] {
        let document = explained(&lab, "x86-64", variant);
        assert!(amount(&document, "tree_peak", "glibc's block headers") < 0, "{:#}", document["parts"]);
        assert_eq!(certainties(&document, "tree_peak", "keeps"), [""; 0], "{:#}", document["parts"]);
        // The child's copies of as many nodes.
        let copied = amount(&document, "tree_peak", "memory copied after a fork");
        assert!((-9 * MIB..=-7 * MIB).contains(&copied), "{:#}", document["parts"]);
        assert_eq!(certainties(&document, "tree_peak", "memory copied after a fork"), ["low"]);
    }
    let names = ["x86-64", "i386"].map(|abi| format!("'{abi}/-O1 -g -pthread -fno-builtin'")).join(" ");
    let text = unfolded(&lab.widthwise(&format!("explain --heap {names}")).stdout);
    assert!(!text.contains("keeps") && !text.contains("The system sees"), "{text}");
}

#[test]
fn blocks_of_another_moment_than_the_readings_are_not_unwritten_memory() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    compared(&lab, "moved", "--rounds 1 --heap=1 --memory=1 --exit-stop");
    for variant in ["x32", "i386"] {
        let document = explained(&lab, "x86-64", variant);
        // Each has half as many bytes as the baseline, which are 2 MB. Max RSS is exact at the exit.
        for cause in ["allocated memory that is not resident", "anonymous mappings of no known owner"] {
            let other = amount(&document, "max_rss", cause);
            assert!(other.abs() <= 512 << 10, "{variant}: {cause}: {other}: {:#}", document["parts"]);
            assert!(certainties(&document, "max_rss", cause).iter().all(|one| one == "low"), "{variant}");
        }
        assert_eq!(amount(&document, "max_rss", "pointers in node"), -8 * COUNT, "{variant}");
        let remarks = document["sections"]["memory"]["remarks"].to_string();
        for name in ["x86-64", variant] {
            let read = format!("The largest reading of {name}/-O1 -g -pthread -fno-builtin saw ");
            assert!(remarks.contains(&read), "{name}: {remarks}");
        }
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn constants_and_relocations_are_not_code() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    lab.program("constants.c");
    let output = lab.compare(
        "constants.c --flags '-O1 -g -pthread -fno-builtin' --warmup 0 --metric max_rss --rounds 1 --heap=1 --memory=1",
    );
    assert_eq!(output.status, Some(0), "{output:?}");
    // A relocation record has 24 bytes in x86-64.
    for (variant, record) in [("x32", 12), ("i386", 8)] {
        let document = explained(&lab, "x86-64", variant);
        let of = |cause| amount(&document, "max_rss", cause);
        let data = of("read-only data of the program's file") + COUNT * (4 + 24 - record);
        assert!(data.abs() <= 128 << 10, "{variant}: {data}: {:#}", document["parts"]);
        assert!(of("executable pages of the program's file").abs() <= 64 << 10, "{variant}");
        assert_eq!(of("variable names"), -4 * COUNT, "{variant}: {:#}", document["parts"]);
        let parts = document["parts"].as_array().unwrap().iter();
        let of_runs = parts.filter(|part| part["metric"] == "max_rss");
        let mut causes = of_runs.map(|part| part["cause"].as_str().unwrap());
        assert!(causes.all(|cause| !cause.contains("code")), "{:#}", document["parts"]);
        let resident = &document["sections"]["memory"]["baseline"]["resident"];
        assert!(resident["program-text constants"].as_i64() > resident["program-text code"].as_i64());
    }
}

/// The certainties of a metric's parts whose cause contains these words.
fn certainties(document: &Value, metric: &str, cause: &str) -> Vec<String> {
    let parts = document["parts"].as_array().unwrap().iter();
    let own =
        parts.filter(|part| part["metric"] == metric && part["cause"].as_str().unwrap().contains(cause));
    own.map(|part| part["certainty"].as_str().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn the_certainty_of_a_part_is_by_the_spread_of_one_variants_recordings() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    compared(&lab, &format!("alternating {}", lab.path("runs").display()), "--rounds 1 --heap=1");
    let mapped = "memory that the program maps itself";
    let nodes = "pointers in node";
    let document = explained(&lab, "x86-64", "i386");
    // One recording of each: nothing is certain.
    assert_eq!(certainties(&document, "max_rss", nodes), ["medium"], "{:#}", document["parts"]);
    let parts = document["parts"].as_array().unwrap().iter();
    let of_runs = parts.filter(|part| ["max_rss", "peak_heap"].contains(&part["metric"].as_str().unwrap()));
    assert!(of_runs.clone().count() > 3 && of_runs.clone().all(|part| part["certainty"] != "high"));
    let output = lab.widthwise("compare --resume .widthwise/latest --heap=2");
    assert_eq!(output.status, Some(0), "{output:?}");
    for variant in ["x32", "i386"] {
        let document = explained(&lab, "x86-64", variant);
        for (cause, certainty) in [(nodes, "high"), ("glibc's block headers", "high"), (mapped, "low")] {
            let found = certainties(&document, "max_rss", cause);
            assert_eq!(found, [certainty], "{variant} {cause}: {:#}", document["parts"]);
        }
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn stacks_are_a_part() {
    let _asleep = asleep();
    // One stack cannot be larger than 8 MB. Beside it, what the C library has of pages varies by up to 0.4 MB from run to run, as
    // fault-around maps its neighbours: that is a tenth of the difference, and of eight stacks a hundredth.
    for (part, stacks, pages, share, more) in
        [("stack", 1, 8, 0.8, "--rounds 12 --heap=4"), ("threads", 8, 32, 0.95, "--rounds 6 --heap=2")]
    {
        let lab = Laboratory::new();
        compared(&lab, part, more);
        for variant in ["x32", "i386"] {
            let document = explained(&lab, "x86-64", variant);
            let amount = amount(&document, "max_rss", "stacks");
            // STACK_COUNT pointers each; the pages at the ends, and what the environment's padding moves.
            assert!((amount + stacks * 4 * STACK_COUNT).abs() <= pages * 4096, "{part} {variant}: {amount}");
            if part == "stack" {
                covers_beside_libraries(&document, share);
            } else {
                covers(&document, share);
            }
        }
    }
}
