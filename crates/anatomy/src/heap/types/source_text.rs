//! A line of source without what is no code.

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
