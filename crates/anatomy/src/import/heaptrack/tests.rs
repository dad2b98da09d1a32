use super::*;

const TABLES: &str = "v 10400 3\ns 1 p\ns 1 f\ni 10 1 2\nt 1 0\na 10 1\n";

fn refused(text: &str, limits: Limits) -> String {
    read_within(text.as_bytes(), limits).expect_err("a recording that is too large").to_string()
}

#[test]
fn a_line_without_end_is_not_kept() {
    let limits = Limits { line: 100, ..LIMITS };
    let text = format!("{TABLES}i {}", "10 ".repeat(1000));
    assert_eq!(refused(&text, limits), "line 7: has a line beyond what heaptrack records");
    let text = format!("{TABLES}s 63 {}", "\n".repeat(1000));
    assert_eq!(refused(&text, limits), "line 102: has a line beyond what heaptrack records");
}

#[test]
fn tables_without_end_are_not_kept() {
    let limits = Limits { tables: 10_000, ..LIMITS };
    for line in ["s 1 x\n", "i 10 1 2\n", "t 1 1\n", "a 1 1\n"] {
        let found = refused(&format!("{TABLES}{}", line.repeat(2000)), limits);
        assert!(found.ends_with("has larger tables beyond what heaptrack records"), "{found}");
    }
    assert!(read_within(format!("{TABLES}{}", "+ 0\n".repeat(2000)).as_bytes(), limits).is_ok());
}

#[test]
fn a_bomb_is_not_unpacked_to_its_end() {
    let limits = Limits { unpacked: 10_000, ..LIMITS };
    let text = format!("{TABLES}{}", "+ 0\n".repeat(5000));
    let packed = zstd::encode_all(text.as_bytes(), 3).expect("memory");
    for bytes in [text.as_bytes(), &packed] {
        let found = read_within(bytes, limits).expect_err("too many bytes").to_string();
        assert!(found.ends_with("has more bytes beyond what heaptrack records"), "{found}");
    }
}

#[test]
fn few_bytes_do_not_become_endless_stacks() {
    let limits = Limits { frames: 1000, ..LIMITS };
    // Each stack is one deeper than the one before.
    let stacks: String = (1..200).map(|n| format!("t 1 {n:x}\na 8 {n:x}\n+ {n:x}\n")).collect();
    let found = refused(&format!("{TABLES}{stacks}"), limits);
    assert!(found.ends_with("has longer stacks beyond what heaptrack records"), "{found}");
}
