//! The inner loops of the micro suite's operations: what the compiler left of each in every variant.

/// The inner loop of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerLoop {
    /// The operation.
    pub operation: String,
    /// Its instructions in each variant, in order; none where the function has no loop.
    pub variants: Vec<(String, Vec<String>)>,
}

/// Equal instructions one after the other as one line, with their number.
pub(crate) fn folded(instructions: &[String]) -> Vec<(usize, &str)> {
    let mut lines: Vec<(usize, &str)> = Vec::new();
    for instruction in instructions {
        match lines.last_mut() {
            Some((count, text)) if text == instruction => *count += 1,
            _ => lines.push((1, instruction)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn equal_instructions_are_one_line_with_their_number() {
        let instructions = ["imul rax,rdx", "imul rax,rdx", "dec rcx", "jne +0x8"].map(str::to_owned);
        assert_eq!(folded(&instructions), [(2, "imul rax,rdx"), (1, "dec rcx"), (1, "jne +0x8")]);
        assert_eq!(folded(&[]), []);
    }
}
