//! `compare`, as a user calls it.

mod laboratory;

use laboratory::{verdict, Laboratory};

#[test]
fn one_file_is_built_and_compared_in_every_abi() {
    let lab = Laboratory::new();
    lab.write(
        "nodes.cpp",
        "#include <cstdio>\n#include <cstdlib>\n\
         struct Node { Node *left, *right; };\n\
         int main(int, char **v) { long n = atol(v[1]); Node *last = nullptr;\n\
         for (long i = 0; i < n; i++) last = new Node{last, last};\n\
         printf(\"%ld nodes\\n\", n); return last == nullptr; }\n",
    );
    let report = lab.json(&["compare", "nodes.cpp", "--rounds", "8", "--", "1000000"]);
    assert_eq!(report["schema"], 1);
    // A chunk for a node is 32 bytes in LP64 and 16 in ILP32: 32 MB against 16.
    let memory = verdict(&report, "i386", "peak_resident");
    assert_eq!(memory["verdict"], "lower", "{memory}");
    let ratio = memory["ratio"].as_f64().unwrap();
    assert!((0.48..0.58).contains(&ratio), "{memory}");
    assert!(memory["low"].as_f64().unwrap() <= ratio && ratio <= memory["high"].as_f64().unwrap());
    let twin = verdict(&report, "x86-64 again", "peak_resident");
    assert_eq!(twin["verdict"], "same", "{twin}");
    // x32 builds here; whether it starts depends on the kernel. Either way it has its row.
    let x32 = verdict(&report, "x32", "peak_resident");
    if x32["verdict"] == "missing" {
        assert!(x32["reason"].as_str().unwrap().contains("kernel"), "{x32}");
    } else {
        assert_eq!(x32["verdict"], "lower", "{x32}");
    }
}

#[test]
fn the_terminal_says_the_answer_and_the_page_is_written() {
    let lab = Laboratory::new();
    lab.program("allocate.c");
    let said = lab.widthwise(&["compare", "allocate.c", "--abi", "x86-64,i386", "--rounds", "8", "--", "20"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    for word in ["x86-64", "baseline", "i386", "again", "detection floor", "peak resident", "report.html"] {
        assert!(said.stdout.contains(word), "{word} is not in {}", said.stdout);
    }
    assert!(!said.stdout.contains('\u{1b}'), "colours without a terminal");
    let page = std::fs::read_to_string(lab.campaign().join("report.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("http://") && !page.contains("https://"));
}

#[test]
fn a_variant_that_answers_differently_is_never_called_faster() {
    let lab = Laboratory::new();
    lab.program("misbehave.c");
    let arguments = ["compare", "misbehave.c", "--abi", "x86-64,i386", "--rounds", "6", "--", "width"];
    let said = lab.widthwise(&arguments);
    assert_eq!(said.status, Some(1), "{said:?}");
    assert!(
        said.stdout.contains("-long has 8 bytes") && said.stdout.contains("+long has 4 bytes"),
        "{said:?}"
    );
    let report = lab.json(&arguments);
    let withheld = verdict(&report, "i386", "cpu");
    assert_eq!(withheld["verdict"], "withheld", "{withheld}");
    assert!(withheld["reason"].as_str().unwrap().contains("differs"));

    let mut allowed = arguments.to_vec();
    allowed.insert(1, "--allow-different-output");
    let report = lab.json(&allowed);
    assert_ne!(verdict(&report, "i386", "peak_virtual")["verdict"], "withheld");

    let mut filtered = arguments.to_vec();
    filtered.splice(1..1, ["--filter", "sed 's/[48] bytes/N bytes/'"]);
    assert_eq!(lab.widthwise(&filtered).status, Some(0));
}

#[test]
fn a_program_whose_output_changes_from_run_to_run_is_found_out() {
    let lab = Laboratory::new();
    lab.program("misbehave.c");
    let said = lab.widthwise(&["compare", "misbehave.c", "--abi", "x86-64", "--rounds", "6", "--", "random"]);
    assert_eq!(said.status, Some(1), "{said:?}");
    assert!(said.stdout.contains("changes from run to run"), "{}", said.stdout);
}
