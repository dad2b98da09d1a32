//! The text of a line of source: its code without comments, words, the operand of `sizeof`.

/// The code outside of comments, with texts emptied.
pub(super) fn without_texts(line: &str) -> String {
    let line = without_blocks(line);
    let mut code = String::with_capacity(line.len());
    let mut quote: Option<char> = None;
    let mut before = ' ';
    for c in line.chars() {
        match quote {
            Some(end) if c == end && before != '\\' => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '/' && before == '/' => {
                code.pop();
                break;
            }
            None => code.push(c),
        }
        before = if before == '\\' && c == '\\' { ' ' } else { c };
    }
    code
}

/// The line without its comments in `/* */`, one that began before or continues behind it among them.
fn without_blocks(line: &str) -> String {
    let mut code = String::with_capacity(line.len());
    let mut rest = line;
    if let Some(end) = rest.find("*/").filter(|end| !rest[..*end].contains("/*")) {
        rest = &rest[end + 2..];
    }
    let (mut quoted, mut at) = (None, 0);
    let bytes = rest.as_bytes();
    while at < bytes.len() {
        let c = bytes[at];
        match quoted {
            Some(_) if c == b'\\' => at += 1,
            Some(quote) if c == quote => quoted = None,
            Some(_) => {}
            None if c == b'"' || c == b'\'' => quoted = Some(c),
            None if bytes[at..].starts_with(b"//") => break,
            None if bytes[at..].starts_with(b"/*") => {
                code.push_str(&rest[..at]);
                code.push(' ');
                let Some(end) = rest[at + 2..].find("*/") else { return code };
                let behind = without_blocks(&rest[at + 2 + end + 2..]);
                return code + &behind;
            }
            None => {}
        }
        at += 1;
    }
    code + rest
}

/// The word at the end.
pub(super) fn last_word(text: &str) -> &str {
    let text = text.trim_end();
    let begin = text.rfind(|c: char| !(c.is_alphanumeric() || c == '_'));
    begin.map_or(text, |at| text[at..].trim_start_matches(|c: char| !(c.is_alphanumeric() || c == '_')))
}

/// Whether the word stands alone.
pub(super) fn is_word(code: &str, at: usize, length: usize) -> bool {
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    !code[..at].ends_with(of_word) && !code[at + length..].starts_with(of_word)
}

/// What `sizeof` is of, at the beginning of the text: `(type)`, `*variable`, `variable->member[0]`.
pub(super) fn operand(text: &str) -> Option<&str> {
    if text.starts_with('(') {
        return crate::names::closing_bracket(text).map(|close| &text[..=close]);
    }
    let of_variable = |c: char| c.is_alphanumeric() || "_.-[]".contains(c);
    let stars = text.len() - text.trim_start_matches(['*', ' ']).len();
    let mut before = ' ';
    let end = text[stars..].find(|c: char| {
        let is_arrow = c == '>' && before == '-';
        before = c;
        !is_arrow && !of_variable(c)
    });
    Some(&text[..end.map_or(text.len(), |end| stars + end)])
}

/// The round bracket around what follows this text, in the same statement.
pub(super) fn opening_bracket(before: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in before.char_indices().rev() {
        match c {
            ')' | ']' => depth += 1,
            '(' if depth == 0 => return Some(at),
            '(' | '[' => depth = depth.checked_sub(1)?,
            ';' | '{' | '}' => return None,
            _ => {}
        }
    }
    None
}

/// The arguments behind an opening bracket, each with its place; nothing if the bracket is not closed in the line.
pub(super) fn arguments(code: &str, open: usize) -> Vec<(usize, &str)> {
    let (mut depth, mut begin, mut found) = (0usize, open + 1, Vec::new());
    for (at, c) in code[open + 1..].char_indices().map(|(at, c)| (open + 1 + at, c)) {
        match c {
            ')' if depth == 0 => {
                found.push((begin, &code[begin..at]));
                return found;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push((begin, &code[begin..at]));
                begin = at + 1;
            }
            _ => {}
        }
    }
    Vec::new()
}

/// The statements of a code, and the declarators of each.
pub(super) fn statements(code: &str) -> Vec<&str> {
    let (mut open, mut begin, mut found) = (Vec::new(), 0, Vec::new());
    for (at, c) in code.char_indices() {
        let is_end = match c {
            '(' | '[' => {
                open.push(c);
                false
            }
            // The values of a variable: `{take(8)}`.
            '{' if is_behind_value(&code[..at]) => {
                open.push(c);
                false
            }
            ')' | ']' => {
                open.pop();
                false
            }
            '}' => open.pop_if(|open| *open == '{').is_none(),
            ';' => true,
            '{' | ',' => open.is_empty(),
            _ => false,
        };
        if is_end {
            found.push(&code[begin..at]);
            begin = at + 1;
        }
    }
    found.push(&code[begin..]);
    found
}

/// Whether a brace behind this text is that of a value, and not of statements.
fn is_behind_value(before: &str) -> bool {
    let before = before.trim_end();
    before.ends_with(['=', '(', ',', '{', ']'])
        || before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && !matches!(last_word(before), "else" | "do" | "try" | "const" | "noexcept" | "override")
}

/// The variable that a statement gives a value to, by its last `=`.
pub(super) fn assigned(statement: &str) -> Option<&str> {
    let before = statement[..statement.rfind('=')?].trim_end();
    let variable = last_word(before);
    let is_member = before[..before.len() - variable.len()].ends_with(['.', '>']);
    (before.ends_with(variable) && !variable.is_empty() && !is_member).then_some(variable)
}
