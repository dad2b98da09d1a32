//! The parts of a function's demangled name.

/// Operators whose names have brackets in them, the longest first.
const BRACKETED: [&str; 13] =
    ["<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=", ">=", "->", "<", ">"];

/// A name without its parameters and what follows them: `A::operator()` of `A::operator()(int) const`, and
/// `f(int)::{lambda(long)#1}::operator()` of `f(int)::{lambda(long)#1}::operator()(long) const`. The names of types stay as they are.
pub fn without_parameters(name: &str) -> &str {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(first) = name[at..].chars().next() {
        let rest = &name[at..];
        if let Some(symbol) = BRACKETED.iter().find(|symbol| rest.starts_with(**symbol)) {
            if depth == 0 && is_operator(&name[..at]) {
                at += symbol.len();
                continue;
            }
        }
        match first {
            '(' if depth == 0 && at > 0 && !is_in_scope(rest) => {
                return match is_of_pointer(rest) {
                    true => name,
                    false => name[..at].trim_end(),
                };
            }
            '<' | '{' | '[' | '(' => depth += 1,
            '>' if name[..at].ends_with('-') => {}
            '>' | '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += first.len_utf8();
    }
    name
}

/// Whether a name ends with the word `operator`.
fn is_operator(before: &str) -> bool {
    before
        .trim_end()
        .strip_suffix("operator")
        .is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Whether the brackets at the beginning belong to a scope: `(anonymous namespace)::f`, `f(int) const::Local`.
fn is_in_scope(text: &str) -> bool {
    let Some(end) = balanced(text) else { return false };
    let behind = &text[end..];
    let behind = behind.trim_start_matches([' ', '&']);
    let behind = behind.strip_prefix("const").unwrap_or(behind).trim_start_matches([' ', '&']);
    behind.starts_with("::")
}

/// Whether they are those of a type: `int (*)(char)`, `int (A::*)(char)`, `int (&)[3]`.
fn is_of_pointer(text: &str) -> bool {
    let Some(end) = balanced(text) else { return false };
    let inside = &text[1..end - 1];
    inside == "&" || inside == "&&" || inside.ends_with('*') && text[end..].starts_with(['(', '['])
}

/// The length of the text up to the bracket that closes its first one.
fn balanced(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::without_parameters;

    #[test]
    fn only_the_parameters_of_the_function_itself_are_left_out() {
        for (name, without) in [
            ("fill(Node&, int)", "fill"),
            ("(anonymous namespace)::grow(int)", "(anonymous namespace)::grow"),
            ("a::(anonymous namespace)::grow(int)", "a::(anonymous namespace)::grow"),
            ("A::operator()(int) const", "A::operator()"),
            ("operator()", "operator()"),
            ("operator<<(std::ostream&, A)", "operator<<"),
            ("A::operator->() const", "A::operator->"),
            ("operator new(unsigned long)", "operator new"),
            ("lam::{lambda(int)#1}::operator()(int) const", "lam::{lambda(int)#1}::operator()"),
            ("f(int)::{lambda(long)#1}::operator()(long) const", "f(int)::{lambda(long)#1}::operator()"),
            (
                "A::f(int) const::{lambda()#1}::operator()() const",
                "A::f(int) const::{lambda()#1}::operator()",
            ),
            ("main::<lambda(int)>", "main::<lambda(int)>"),
            ("f_local()::L", "f_local()::L"),
            ("f_local(int (*)(char))::L::g(int)", "f_local(int (*)(char))::L::g"),
            ("apply(int (*)(char))", "apply"),
            ("std::map<int, int (*)(char)>::insert(int)", "std::map<int, int (*)(char)>::insert"),
            ("int (*)(char)", "int (*)(char)"),
            ("int (A::*)(char)", "int (A::*)(char)"),
            ("cooperator(int)", "cooperator"),
            (
                "[in 26 places, all below massif's threshold (1.00%)]",
                "[in 26 places, all below massif's threshold (1.00%)]",
            ),
            ("", ""),
            ("f(", "f"),
        ] {
            assert_eq!(without_parameters(name), without);
        }
    }
}
