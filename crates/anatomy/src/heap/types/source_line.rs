//! The types that a line of source allocates: `new T`, `sizeof(T)`, `sizeof *variable`.

/// A type that a line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mention {
    /// `new T`: one object of a type, by its name as the source writes it.
    Object(String),
    /// `new T[n]`: elements of a type.
    Elements(String),
    /// `sizeof(T)`: one object or several.
    Size(String),
    /// `sizeof(T) + n`: an object with something behind it, unless nothing is.
    Header(String),
    /// The type that a variable or member points to.
    Pointee(String),
    /// `sizeof *variable + n`: as [`Mention::Header`].
    PointeeHeader(String),
}

impl Mention {
    /// The same as a term of a sum: not the whole block, unless nothing is behind it.
    fn in_a_sum(self) -> Mention {
        match self {
            Mention::Size(name) => Mention::Header(name),
            Mention::Pointee(name) => Mention::PointeeHeader(name),
            mention => mention,
        }
    }

    /// Whether it is a term of a sum.
    pub fn is_in_a_sum(&self) -> bool {
        matches!(self, Mention::Header(_) | Mention::PointeeHeader(_))
    }
}

/// How many calls in a line allocate: `new`, and functions with `alloc` or `memalign` in their names.
pub fn allocating_calls(line: &str) -> usize {
    let code = without_texts(line);
    let made = code.match_indices("new").filter(|(at, _)| is_word(&code, *at, 3)).count();
    let called = code.match_indices('(').filter(|(open, _)| {
        let name = last_word(&code[..*open]).to_lowercase();
        // `allocate(` is the declaration of an allocator's function more often than a call.
        name.contains("memalign") || name.contains("alloc") && !name.contains("dealloc") && name != "allocate"
    });
    made + called.count()
}

/// The word at the end.
fn last_word(text: &str) -> &str {
    let text = text.trim_end();
    let begin = text.rfind(|c: char| !(c.is_alphanumeric() || c == '_'));
    begin.map_or(text, |at| text[at..].trim_start_matches(|c: char| !(c.is_alphanumeric() || c == '_')))
}

/// What a line allocates. Comments and texts are not looked at.
pub fn mentions(line: &str) -> Vec<Mention> {
    let code = without_texts(line);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("new") {
        if is_word(&code, at, 3) {
            found.extend(made(&code[at + 3..]));
        }
    }
    for (at, _) in code.match_indices("sizeof") {
        if is_word(&code, at, 6) && !is_of_another_call(&code[..at]) {
            let mention = measured(code[at + 6..].trim_start());
            found.extend(mention.map(|mention| match is_in_a_sum(&code, at) {
                true => mention.in_a_sum(),
                false => mention,
            }));
        }
    }
    // Of a sum, no term is the whole block.
    if found.iter().any(Mention::is_in_a_sum) {
        found = found.into_iter().map(Mention::in_a_sum).collect();
    }
    found.dedup();
    found
}

/// Whether the word stands alone.
fn is_word(code: &str, at: usize, length: usize) -> bool {
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    !code[..at].ends_with(of_word) && !code[at + length..].starts_with(of_word)
}

/// Whether what follows is an argument of a function that allocates nothing: `memset(p, 0, `.
fn is_of_another_call(before: &str) -> bool {
    const OTHERS: [&str; 9] =
        ["memset", "memcpy", "memmove", "memcmp", "bzero", "fread", "fwrite", "snprintf", "qsort"];
    let mut depth = 0usize;
    for (at, c) in before.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth > 0 => depth -= 1,
            '(' if OTHERS.contains(&last_word(&before[..at])) => return true,
            ';' | '{' | '}' => return false,
            _ => {}
        }
    }
    false
}

/// Whether the `sizeof` at that place is in a term of a sum: the product that it is a factor of ends at a plus or a minus, also
/// if it is in brackets of its own.
fn is_in_a_sum(code: &str, at: usize) -> bool {
    let behind = code[at + 6..].trim_start();
    let (mut low, mut high) = (at, code.len() - behind.len() + operand(behind).map_or(0, str::len));
    loop {
        let open = match product_start(&code[..low]) {
            End::Sum => return true,
            End::Bracket(open) => Some(open),
            End::Other => None,
        };
        let close = match product_end(&code[high..]) {
            End::Sum => return true,
            End::Bracket(close) => Some(high + close),
            End::Other => None,
        };
        let (Some(open), Some(close)) = (open, close) else { return false };
        if !matches!(last_word(&code[..open]), "" | "return") || code[..open].ends_with('>') {
            // The arguments of a call.
            return false;
        }
        (low, high) = (open, close + 1);
    }
}

/// What a product ends at.
enum End {
    /// A plus or a minus.
    Sum,
    /// A round bracket that is not opened and closed within it.
    Bracket(usize),
    /// A comma, another operator, the end of the text.
    Other,
}

/// Where the product begins that continues behind this text.
fn product_start(text: &str) -> End {
    product_edge(text, text.char_indices().rev(), ")]", "([")
}

/// Where the product ends that began before this text.
fn product_end(text: &str) -> End {
    product_edge(text, text.char_indices(), "([", ")]")
}

/// Where a product ends in the direction of these characters, in which brackets `open` and `close` so, round ones first.
fn product_edge(text: &str, characters: impl Iterator<Item = (usize, char)>, open: &str, close: &str) -> End {
    let mut depth = 0usize;
    for (at, c) in characters {
        if open.contains(c) {
            depth += 1;
        } else if close.contains(c) && depth > 0 {
            depth -= 1;
        } else if close.starts_with(c) {
            return End::Bracket(at);
        } else if depth == 0 {
            if let Some(end) = end_of_product(text, at, c) {
                return end;
            }
        }
    }
    End::Other
}

/// Whether a character outside of brackets ends a product: not in `++`, `--`, `->` and `::`.
fn end_of_product(text: &str, at: usize, c: char) -> Option<End> {
    let (before, behind) = (&text[..at], &text[at + c.len_utf8()..]);
    let is_double = before.ends_with(c) || behind.starts_with(c);
    match c {
        '+' | '-' if is_double || behind.starts_with('>') => None,
        '+' | '-' => Some(End::Sum),
        ':' if is_double => None,
        ',' | ';' | '{' | '}' | '[' | ']' | '=' | '?' | ':' | '&' | '|' | '^' => Some(End::Other),
        _ => None,
    }
}

/// What `sizeof` is of, at the beginning of the text: `(type)`, `*variable`, `variable->member[0]`.
fn operand(text: &str) -> Option<&str> {
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

/// The code outside of comments, with texts emptied.
fn without_texts(line: &str) -> String {
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

/// The type behind `new`, without a placement.
fn made(behind: &str) -> Option<Mention> {
    let mut rest = behind.trim_start();
    if rest.starts_with('(') {
        let close = crate::names::closing_bracket(rest)?;
        let inner = rest[1..close].trim();
        rest = rest[close + 1..].trim_start();
        if !rest.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == ':') {
            // `new (T)`.
            return type_name(inner).map(|(name, _)| Mention::Object(name));
        }
    }
    let (name, behind) = type_name(rest)?;
    Some(match behind.trim_start().starts_with('[') {
        true => Mention::Elements(name),
        false => Mention::Object(name),
    })
}

/// What `sizeof` measures.
fn measured(behind: &str) -> Option<Mention> {
    let operand = operand(behind)?;
    let inner = operand.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(operand).trim();
    if let Some(variable) = inner.strip_prefix('*') {
        return last_variable(variable).map(Mention::Pointee);
    }
    if let Some(open) = inner.find('[').filter(|_| !inner.contains(']') || inner.ends_with("[0]")) {
        return last_variable(&inner[..open]).map(Mention::Pointee);
    }
    if let Some(variable) = inner.strip_suffix("[0]") {
        return last_variable(variable).map(Mention::Pointee);
    }
    let (name, rest) = type_name(inner)?;
    rest.trim().is_empty().then_some(Mention::Size(name))
}

/// `table` of `self->table`.
fn last_variable(text: &str) -> Option<String> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.' || c == '-' || c == '>'))
        .unwrap_or(text.len());
    let name = text[..end].rsplit(['.', '>']).next()?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// The type at the beginning, with its pointers, and what is behind it.
fn type_name(text: &str) -> Option<(String, &str)> {
    const KEYWORDS: [&str; 6] = ["struct ", "class ", "union ", "enum ", "typename ", "const "];
    let mut rest = text.trim_start();
    while let Some(behind) = KEYWORDS.iter().find_map(|keyword| rest.strip_prefix(keyword)) {
        rest = behind.trim_start();
    }
    let mut name = String::new();
    loop {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
        name.push_str(&rest[..end]);
        rest = &rest[end..];
        if rest.starts_with('<') {
            let close = crate::names::closing_bracket(rest)?;
            name.push_str(&rest[..=close]);
            rest = &rest[close + 1..];
            continue;
        }
        // Integers have several words.
        let next = rest.trim_start();
        let is_integer =
            |word: &str| ["unsigned", "signed", "long", "short", "int", "char", "double"].contains(&word);
        let word = next.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let last = name.rsplit(' ').next().unwrap_or_default();
        if next.len() < rest.len() && is_integer(last) && is_integer(word) {
            name.push(' ');
            rest = next;
            continue;
        }
        break;
    }
    let name = name.trim_start_matches("::").to_owned();
    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return None;
    }
    let stars = rest.trim_start();
    let pointers = stars.chars().take_while(|c| *c == '*' || c.is_whitespace()).filter(|c| *c == '*').count();
    let behind = stars.trim_start_matches(['*', ' ']);
    Some((name + &"*".repeat(pointers), if pointers > 0 { behind } else { rest }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> Mention {
        Mention::Object(name.to_owned())
    }

    fn elements(name: &str) -> Mention {
        Mention::Elements(name.to_owned())
    }

    fn size(name: &str) -> Mention {
        Mention::Size(name.to_owned())
    }

    #[test]
    fn a_new_expression_names_its_type() {
        assert_eq!(mentions("    list = new Node(1, 2);"), [object("Node")]);
        assert_eq!(mentions("return new (std::nothrow) a::B<int, C>{};"), [object("a::B<int, C>")]);
        assert_eq!(mentions("keep[k++] = new Q*[n];"), [elements("Q*")]);
        assert_eq!(mentions("auto p = new unsigned long[n];"), [elements("unsigned long")]);
        assert_eq!(mentions("renew Node; // new Other"), []);
        assert_eq!(mentions("puts(\"new Node\");"), []);
        assert_eq!(
            mentions("p = malloc(9); /* once sizeof(Node), or new Node */ q = new Other;"),
            [object("Other")]
        );
        assert_eq!(
            mentions("a new Node */ q = new Other; puts(\"/*\"); r = new Third; /* new Fourth"),
            [object("Other"), object("Third")]
        );
        assert_eq!(mentions("f(new A, new B)"), [object("A"), object("B")]);
    }

    #[test]
    fn a_size_names_a_type_or_a_variable() {
        let pointee = |name: &str| Mention::Pointee(name.to_owned());
        assert_eq!(mentions("n = malloc(sizeof(struct node));"), [size("node")]);
        assert_eq!(mentions("n = malloc(sizeof *n);"), [pointee("n")]);
        assert_eq!(mentions("t->table = calloc(size, sizeof(*t->table));"), [pointee("table")]);
        assert_eq!(mentions("t = calloc(n, sizeof(struct entry *));"), [size("entry*")]);
        assert_eq!(mentions("x = malloc(n * sizeof(x[0]));"), [pointee("x")]);
        assert_eq!(mentions("x = malloc(sizeof(a) + 3);"), [Mention::Header("a".to_owned())]);
        assert_eq!(mentions("x = malloc(3 + sizeof(struct a));"), [Mention::Header("a".to_owned())]);
        let header = |name: &str| Mention::PointeeHeader(name.to_owned());
        assert_eq!(mentions("p = malloc(sizeof *p + k * sizeof p->v[0]);"), [header("p"), header("v")]);
        assert_eq!(mentions("p = malloc(8 + sizeof *p);"), [header("p")]);
        assert_eq!(mentions("p = malloc(sizeof *a->b); x + y;"), [pointee("b")]);
        for line in [
            "x = malloc(16 + n * sizeof(a));",
            "x = malloc(sizeof(a) * n + 16);",
            "x = malloc(sizeof(a) * (n + 1) - 16);",
            "x = malloc(m->k + (size_t)n[i + 1] * sizeof(struct a));",
            "x = malloc(16 + static_cast<std::size_t>(n) * sizeof(a));",
            "x = malloc((n * sizeof(a)) + 16);",
            "x = malloc(8 + (k++ * (sizeof(a))));",
            "return (sizeof(a) * n) + 16;",
        ] {
            assert_eq!(mentions(line), [Mention::Header("a".to_owned())], "{line}");
        }
        for line in [
            "x = malloc(m->n * sizeof(a));",
            "x = malloc(n++ * sizeof(a)), y + 1;",
            "x = malloc((n + 1) * sizeof(a) * (k - 1));",
            "x = calloc(n + 1, sizeof(a));",
            "x = (char *)malloc(std::size_t(n) * sizeof(a)) + 16;",
            "x = malloc(n + 1 > 4 ? n * sizeof(a) : k[i + 1] * sizeof(a));",
        ] {
            assert_eq!(mentions(line), [size("a")], "{line}");
        }
        let both = ["a", "b"].map(|name| Mention::Header(name.to_owned()));
        assert_eq!(mentions("x = malloc(sizeof(a) + n * sizeof(b));"), both);
        assert_eq!(
            mentions("x = malloc(n); memset(x, 0, sizeof(a)); y = calloc(n, sizeof(b));"),
            [size("b")]
        );
    }

    #[test]
    fn the_calls_of_a_line_that_allocate_are_counted() {
        for (line, calls) in [
            ("a = malloc(sizeof *a); a->base = xmalloc (9);", 2),
            ("p = new Node(new Leaf);", 2),
            ("if (posix_memalign(&q, 16, 156) || !(p = aligned_alloc(16, sizeof *p))) abort();", 2),
            ("p = PyMem_Malloc(renew(4)); dealloc(q); // malloc(1)", 1),
            ("T *allocate(size_t n) { return (T *)malloc(n * sizeof(T)); }", 1),
            ("free(p); puts(\"malloc(\");", 0),
        ] {
            assert_eq!(allocating_calls(line), calls, "{line}");
        }
    }

    #[test]
    fn any_line_can_be_read() {
        for line in [
            "new",
            "sizeof",
            "sizeof(",
            "new (",
            "new <",
            "sizeof(*",
            "'",
            "\"\\\\\" new é::<",
            "new ::",
            "/*é",
            "é*/ /",
            "'é\\",
            "/*/ *//",
            "sizeof *é->",
            "é(",
        ] {
            mentions(line);
            allocating_calls(line);
        }
    }
}
