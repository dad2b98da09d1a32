//! Two listings of one function, aligned.

use similar::{capture_diff_slices, Algorithm, DiffOp};

use crate::code::line::Line;

/// A row of the alignment: the numbers of the instructions in the baseline and in the variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// In the baseline, if it has one here.
    pub baseline: Option<usize>,
    /// In the variant, if it has one here.
    pub variant: Option<usize>,
    /// Whether both are the same operation on the same kinds of operands.
    pub is_equal: bool,
}

/// Aligns by operations: registers of another width or number, and distances, do not part two instructions.
pub fn align(baseline: &[Line], variant: &[Line]) -> Vec<Row> {
    let a: Vec<String> = baseline.iter().map(|line| shape(&line.text)).collect();
    let b: Vec<String> = variant.iter().map(|line| shape(&line.text)).collect();
    let mut rows = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &a, &b) {
        let is_equal = matches!(op, DiffOp::Equal { .. });
        let (old, new) = (op.old_range(), op.new_range());
        for at in 0..old.len().max(new.len()) {
            let of = |range: &std::ops::Range<usize>| (at < range.len()).then(|| range.start + at);
            rows.push(Row { baseline: of(&old), variant: of(&new), is_equal });
        }
    }
    rows
}

/// Operations on 64 bits, and the same on a word of 32: the suffixes of AT&T syntax, and PowerPC's mnemonics (Power ISA 3.0, books I
/// and appendix E).
const OF_A_WORD: [(&str, &str); 43] = [
    ("movq", "mov"),
    ("movl", "mov"),
    ("leaq", "lea"),
    ("leal", "lea"),
    ("addq", "add"),
    ("addl", "add"),
    ("subq", "sub"),
    ("subl", "sub"),
    ("cmpq", "cmp"),
    ("cmpl", "cmp"),
    ("testq", "test"),
    ("testl", "test"),
    ("pushq", "push"),
    ("pushl", "push"),
    ("popq", "pop"),
    ("popl", "pop"),
    ("callq", "call"),
    ("calll", "call"),
    ("retq", "ret"),
    ("retl", "ret"),
    ("jmpq", "jmp"),
    ("jmpl", "jmp"),
    ("ld", "lwz"),
    ("ldx", "lwzx"),
    ("ldu", "lwzu"),
    ("std", "stw"),
    ("stdx", "stwx"),
    ("stdu", "stwu"),
    ("cmpd", "cmpw"),
    ("cmpdi", "cmpwi"),
    ("cmpld", "cmplw"),
    ("cmpldi", "cmplwi"),
    ("sld", "slw"),
    ("srd", "srw"),
    ("srad", "sraw"),
    ("sldi", "slwi"),
    ("srdi", "srwi"),
    ("sradi", "srawi"),
    ("rotldi", "rotlwi"),
    ("mulld", "mullw"),
    ("divd", "divw"),
    ("divdu", "divwu"),
    ("cntlzd", "cntlzw"),
];

/// The operation and what kinds of operands it has: `mov r,(r)`.
fn shape(text: &str) -> String {
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
    let same = OF_A_WORD.iter().find(|(wide, _)| *wide == mnemonic);
    let mut shape = same.map_or(mnemonic, |(_, narrow)| narrow).to_owned();
    shape.push(' ');
    let mut is_inside = false;
    for c in operands.chars() {
        match c {
            '%' | '$' | '(' | ')' | ',' | '*' => {
                shape.push(c);
                is_inside = false;
            }
            c if c.is_whitespace() => is_inside = false,
            _ if !is_inside => {
                shape.push('x');
                is_inside = true;
            }
            _ => {}
        }
    }
    shape
}
