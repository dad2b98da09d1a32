//! What a statement of the source gives the result of its call to.

use super::handed_over::HandedOver;
use super::source_line::called;
use super::source_text::{is_word, last_word, without_texts};
use crate::names::closing_bracket;

/// Whether the code gives a variable or a member of that name what a call returns: `node *n = get(8)`, `list->head = get(8)`,
/// `n{get(8)}`, `all.push_back(get(8))`, `get(&n, 8)`; and not `n->text = get(8)`, `get(n)` or `get(&n->text, 8)`. Of a call to a function
/// of the program, which has to be the one that the code calls, the result alone counts.
pub fn receives(code: &str, name: &str, from: Option<&HandedOver>) -> bool {
    let code = without_texts(code);
    let from = from.filter(|from| from.is_called_in(&code));
    let is_receiver = |at: usize| {
        let behind = code[at + name.len()..].trim_start();
        let behind = match behind.strip_prefix('[').and_then(|index| index.split_once(']')) {
            Some((_, behind)) => behind.trim_start(),
            None => behind,
        };
        let has_value =
            behind.starts_with(['{', '(', '.']) || behind.starts_with('=') && !behind.starts_with("==");
        match from {
            Some(from) if behind.starts_with('.') => from.is_called_in(value(behind)),
            Some(from) => has_value && from.is_value(value(behind)),
            None => {
                has_value && has_call(value(behind))
                    || code[..at].ends_with('&') && !behind.starts_with("->") && !behind.starts_with('.')
            }
        }
    };
    let is_it = |at: &usize| is_word(&code, *at, name.len());
    !name.is_empty() && code.match_indices(name).map(|(at, _)| at).filter(is_it).any(is_receiver)
}

/// The code up to the end of its statement, or of the brackets that are around it.
fn value(code: &str) -> &str {
    let mut depth = 0usize;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' if depth > 0 => depth -= 1,
            ')' | '}' | ']' | ';' => return &code[..at],
            _ => {}
        }
    }
    code
}

/// Whether brackets of the code may be those of a call: of `(node *)place` and `(node *)(place)` none are.
fn has_call(code: &str) -> bool {
    code.match_indices('(').any(|(open, _)| {
        let before = code[..open].trim_end();
        match before.strip_suffix(')') {
            Some(inside) => !inside.trim_end().ends_with('*'),
            None => before.ends_with(|c: char| c.is_alphanumeric() || "_]>".contains(c)),
        }
    })
}

/// Whether the code returns something; of a call to a function of the program, its result.
pub fn returns(code: &str, from: Option<&HandedOver>) -> bool {
    let code = without_texts(code);
    if let Some(from) = from.filter(|from| from.is_called_in(&code)) {
        return from.is_returned_by(&code);
    }
    code.match_indices("return").any(|(at, word)| is_word(&code, at, word.len()))
}

/// Whether the code constructs an object in the memory that it allocates: by `new T(…)`, where no other call in it allocates, or by `new (p) T`
/// with what such a call returns. Of `View(malloc(n), n)`, the memory is an argument of the constructor.
pub fn constructs(code: &str) -> bool {
    let code = without_texts(code);
    let words = code.match_indices("new").map(|(at, _)| at).filter(|at| is_word(&code, *at, 3));
    let (operators, made): (Vec<usize>, Vec<usize>) =
        words.partition(|at| last_word(&code[..*at]) == "operator");
    let calls: Vec<usize> = called(&code).chain(operators).collect();
    let is_there = |at: &usize| {
        let behind = code[at + 3..].trim_start();
        let place = behind.starts_with('(').then(|| closing_bracket(behind)).flatten();
        let Some(inside) = place.map(|close| &behind[1..close]) else { return calls.is_empty() };
        let begin = code.len() - behind.len() + 1;
        let is_inside = |call: &usize| (begin..begin + inside.len()).contains(call);
        calls.is_empty()
            || calls.iter().any(is_inside)
            || receives(&code, last_word(inside.trim_end_matches([')', ' '])), None)
    };
    made.iter().any(is_there)
}

/// Whether a statement that the line belongs to began before it, as the line before shows.
pub fn continues(before: &str) -> bool {
    let code = without_texts(before);
    let code = code.trim();
    !code.is_empty() && !code.starts_with('#') && !code.ends_with([';', '{', '}', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_or_a_member_receives_what_a_call_returns() {
        for code in [
            "node *n = get(8);",
            "auto n{get(8)};",
            "node *n(get(8));",
            "int i; node *n = (node *)get(8);",
            "list->n = get(8);",
            "pool . n = get(8);",
            "if ((n = get(8)) == NULL)",
            "n[i] = get(8);",
            "n.push_back(get(8));",
            "failed = get(&n, 8);",
        ] {
            assert!(receives(code, "n", None), "{code}");
        }
        for code in [
            "for (node *n = head; n; n = n->next) n->data = get(8);",
            "n->text = get(8);",
            "block = get(8); node *n = (node *)block->at; block->at += 8;",
            "block = get(8); n = (node *)(block + 1);",
            "if (n == get(8))",
            "p = get(n);",
            "get(&n->text, 8);",
            "get(&n.text, 8);",
            "number = get(8);",
            "p = get(\"n = f()\"); // n = get(8)",
            "",
        ] {
            assert!(!receives(code, "n", None), "{code}");
        }
        assert!(!receives("n = get(8);", "", None));
        assert!(returns("if (a) return get(8);", None) && !returns("returned = get(8);", None));
    }

    #[test]
    fn an_object_is_constructed_in_the_memory_that_its_line_allocates_by_new_alone() {
        for code in [
            "return new View(p, 8);",
            "v = new (std::nothrow) View;",
            "v = ::new (room(8)) View(1);",
            "v = new (malloc(8)) View(1);",
            "v = new (::operator new(8)) View;",
            "void *p = malloc(8); v = new (p) View;",
            "void *p = malloc(8); v = new (static_cast<void *>(p)) View;",
        ] {
            assert!(constructs(code), "{code}");
        }
        for code in [
            "return View(malloc(k), k);",
            "Handle h(malloc(k));",
            "all.emplace_back(malloc(k), k);",
            "return View(operator new(k), k);",
            "return new View(malloc(k), k);",
            "v = new (q) View(malloc(k), k);",
            "return View(take(k), k);",
            "renew(k); // new View",
            "",
        ] {
            assert!(!constructs(code), "{code}");
        }
    }

    #[test]
    fn a_statement_may_begin_in_the_line_before() {
        assert!(continues("list->n =") && continues("n = (node *) // one") && continues("int f(void)"));
        for before in ["n = 1;", "{", "}", "", "  // one", "#define N", "case 1:"] {
            assert!(!continues(before), "{before}");
        }
    }
}
