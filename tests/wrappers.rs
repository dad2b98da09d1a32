//! Programs that allocate all memory through one function: its callers are the sites.

use crate::laboratory::{unfolded, Laboratory};
use serde_json::Value;

/// 60 % for one, 40 % for the other, through NAME and a function around malloc.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define APART __attribute__((noinline, noclone))
APART void *inner(size_t n) {
    void *block = malloc(n);
    if (block == NULL) abort();
    *(char *)block = 1;
    return block;
}
APART void *NAME(size_t n) {
    void *block = inner(n);
    *(char *)block = 2;
    return block;
}
static char *volatile kept;
APART void rooms(void) { for (int i = 0; i < 60; i++) kept = NAME(10000); }
APART void doors(void) { for (int i = 0; i < 40; i++) kept = NAME(10000); }
int main(void) { rooms(); doors(); puts("ok"); return 0; }
"#;

fn recorded(name: &str, inner: &str) -> Laboratory {
    let lab = Laboratory::new();
    lab.write("rooms.c", &PROGRAM.replace("NAME", name).replace("inner", inner));
    let output =
        lab.compare("rooms.c --abi x86-64 --flags '-O1 -g' --rounds 1 --warmup 0 --metric cpu --heap=1");
    assert_eq!(output.status, Some(0), "{output:?}");
    lab
}

fn functions(lab: &Laboratory, options: &str) -> (Vec<String>, Value) {
    let report = lab.widthwise(&format!("explain --heap x86-64/-O1\\ -g --json {options}")).json();
    let sites = report["sites"].as_array().unwrap().iter();
    let large = sites.filter(|site| site["a"]["peak_bytes"].as_u64() > Some(100_000));
    (large.map(|site| site["function"].as_str().unwrap().to_owned()).collect(), report)
}

#[test]
fn the_callers_of_a_wrapper_are_the_sites_and_the_text_says_so() {
    let lab = recorded("xmalloc", "checked_alloc");
    let (sites, report) = functions(&lab, "");
    assert_eq!(sites, ["rooms", "doors"]);
    let names: Vec<&Value> =
        report["wrappers"].as_array().unwrap().iter().map(|one| &one["function"]).collect();
    assert_eq!(names, ["checked_alloc", "xmalloc"]);
    let text = unfolded(&lab.widthwise(&["explain", "--heap", "x86-64/-O1 -g"]).stdout);
    assert!(
        text.contains("is taken for a wrapper by its name: its callers are the sites (`--keep-wrappers`"),
        "{text}"
    );
    assert_eq!(functions(&lab, "--keep-wrappers").0, ["checked_alloc"]);
    assert_eq!(functions(&lab, "--skip-frames checked_alloc --keep-wrappers").0, ["xmalloc"]);
    // What the user names is skipped beside what is found.
    let (sites, report) = functions(&lab, "--skip-frames checked_alloc");
    assert_eq!(sites, ["rooms", "doors"]);
    assert_eq!(report["wrappers"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["wrappers"][0]["function"], "xmalloc");
}

#[test]
fn a_possible_wrapper_is_named_with_the_option_that_skips_it() {
    let lab = recorded("furnish", "room");
    assert_eq!(functions(&lab, "").0, ["room"]);
    let text = unfolded(&lab.widthwise(&["explain", "--heap", "x86-64/-O1 -g"]).stdout);
    assert!(text.contains("room requests") && !text.contains("is taken for a wrapper"), "{text}");
}

/// Small pieces of chunks, and what is too large for them, as in mawk. A chunk is as large as 64 rooms.
const POOL: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define APART __attribute__((noinline, noclone))
struct door { void *next; char letters[40]; };
struct room { long numbers[4]; };
#define ZMALLOC(type) ((type *)zmalloc(sizeof(type)))
static char *chunk;
static size_t left;
APART void *zmalloc(size_t size) {
    if (size > 128)
        return malloc(size);
    if (left < size) {
        chunk = malloc(2048);
        left = 2048;
    }
    left -= size;
    return chunk + left;
}
static void *volatile kept;
APART void doors(void) { struct door *door = zmalloc(sizeof(*door)); kept = door; }
APART void rooms(void) { struct room *room = ZMALLOC(struct room); kept = room; }
APART void wide(int i) { char *text = zmalloc(3000 + i); *text = 1; kept = text; }
int main(void) {
    for (int i = 0; i < 6400; i++) { doors(); rooms(); }
    wide(1);
    wide(2);
    puts("ok");
    return 0;
}
"#;

#[test]
fn the_chunks_of_a_pool_that_is_named_like_a_wrapper_stay_at_its_line_and_have_no_type_of_its_callers() {
    let lab = Laboratory::new();
    lab.write("rooms.c", POOL);
    let output = lab.compare(
        "rooms.c --abi x86-64 --flags '-O1 -g -fno-builtin' --rounds 1 --warmup 0 --metric cpu --heap=1",
    );
    assert_eq!(output.status, Some(0), "{output:?}");
    let report = lab.widthwise(&["explain", "--heap", "x86-64/-O1 -g -fno-builtin", "--json"]).json();
    assert_eq!(report["sites"][0]["function"], "zmalloc", "{report:#}");
    assert_eq!(report["wrappers"][0]["is_site"], true, "{report:#}");
    let types = report["types"]["types"].as_array().unwrap();
    let large = types.iter().filter(|row| row["a"]["bytes"].as_u64() > Some(100_000));
    assert!(large.clone().all(|row| row["type"].is_null()) && large.count() == 1, "{types:#?}");
    let text = unfolded(&lab.widthwise(&["explain", "--heap", "x86-64/-O1 -g -fno-builtin"]).stdout);
    // That it is a pool is an inference, and the text says from what.
    assert!(
        text.contains(
            "One of its lines always asks for 2 048 bytes, for 2 callers, so that it is taken for a pool"
        ),
        "{text}"
    );
    assert!(text.contains("If it is a wrapper, `--skip-frames 'zmalloc'` shows them"), "{text}");
    let skipped = ["explain", "--heap", "x86-64/-O1 -g -fno-builtin", "--json", "--skip-frames", "zmalloc"];
    let report = lab.widthwise(&skipped).json();
    let shown = |index: usize| report["sites"][index]["function"].as_str().unwrap().to_owned();
    let mut shown = [shown(0), shown(1)];
    shown.sort();
    assert_eq!(shown, ["doors", "rooms"], "{report:#}");
}

/// `new_object` makes objects of two types through a wrapper, and has two thirds of the bytes. The C library's pool asks the wrapper for
/// its chunks.
const OBJECTS: &str = r#"
#include <obstack.h>
#include <stdlib.h>
#define obstack_chunk_alloc my_malloc
#define obstack_chunk_free free
struct table { struct table *next; long values[6]; };
struct text { struct text *next; char bytes[24]; };
void *kept;
__attribute__((noinline)) static void *my_malloc(size_t size) { void *p = malloc(size); __asm__ volatile("" ::: "memory"); return p; }
__attribute__((noinline)) static void *new_object(size_t size) { void *p = my_malloc(size); __asm__ volatile("" ::: "memory"); return p; }
__attribute__((noinline)) static void tables(void) {
    for (int i = 0; i < 10000; i++) { struct table *t = new_object(sizeof(struct table)); t->next = kept; kept = t; }
}
__attribute__((noinline)) static void texts(void) {
    for (int i = 0; i < 10000; i++) { struct text *t = new_object(sizeof(struct text)); t->next = kept; kept = t; }
}
__attribute__((noinline)) static void numbers(void) {
    long *n = my_malloc(200000); n[0] = 1; kept = n;
}
struct piece { struct piece *next; long value; };
static struct obstack pool;
__attribute__((noinline)) static void piece(void) {
    struct piece *p = obstack_alloc(&pool, sizeof(struct piece)); p->next = kept; kept = p;
}
int main(void) {
    tables(); texts(); numbers();
    obstack_init(&pool);
    for (int i = 0; i < 15000; i++) piece();
    return 0;
}
"#;

#[test]
fn a_function_with_most_bytes_is_suggested_and_the_suggestion_names_its_callers() {
    let lab = Laboratory::new();
    lab.write("objects.c", OBJECTS);
    let options = "--flags '-O1 -g' --rounds 1 --warmup 0 --metric cpu --heap=1";
    let output = lab.compare(&format!("objects.c --abi x86-64 {options}"));
    assert_eq!(output.status, Some(0), "{output:?}");
    let (sites, report) = functions(&lab, "");
    assert_eq!(sites, ["new_object", "_obstack_newchunk", "numbers"], "{report}");
    let types = report["types"]["types"].as_array().unwrap();
    assert!(types.iter().all(|row| row["type"] != "piece"), "{types:#?}");
    let text = unfolded(&lab.widthwise(&["explain", "--heap", "x86-64/-O1 -g"]).stdout);
    assert!(text.contains("`--skip-frames 'new_object'` shows them"), "{text}");
    let (sites, report) = functions(&lab, "--skip-frames new_object");
    assert_eq!(sites, ["tables", "texts", "_obstack_newchunk", "numbers"], "{report}");
}
