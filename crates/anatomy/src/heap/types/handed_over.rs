//! How a line of source gets a block from a function of the program that allocates: by which call, and as its result or not.

use super::source_line::allocates;
use super::source_text::{
    arguments, assigned, is_word, last_word, opening_bracket, statements, without_texts,
};
use super::sums::is_asked_for;
use crate::function_name::without_parameters;
use crate::names::{closing_bracket, plain, without_copies, without_result};

/// The function that a line has a block from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HandedOver {
    /// Its name, as the source writes it; none if that is no word.
    name: Option<String>,
    /// It returns a pointer, which may be the block. Otherwise it may store the block where an argument of the call points to.
    pub is_returned: bool,
}

impl HandedOver {
    /// By a function with this demangled name.
    pub fn by(function: &str, is_returned: bool) -> HandedOver {
        let name = plain(without_parameters(without_result(without_copies(function))));
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        HandedOver { name: is_name.then(|| name.to_owned()), is_returned }
    }

    /// Whether the code calls the function by its name. A macro or a pointer to the function may call it by another one.
    pub fn is_called_in(&self, code: &str) -> bool {
        self.calls(&without_texts(code)).next().is_some()
    }

    /// The brackets of its calls.
    fn calls<'c>(&'c self, code: &'c str) -> impl Iterator<Item = usize> + 'c {
        let opened = code.match_indices('(').map(|(open, _)| open);
        opened.filter(|open| self.name.as_deref() == Some(callee(&code[..*open])))
    }

    /// The statements of the code that call it by its name, and those that compute the size which they ask for; all of them if none does.
    pub fn statements(&self, code: &str) -> String {
        let code = without_texts(code);
        let all = statements(&code);
        let calls: Vec<&str> =
            all.iter().copied().filter(|statement| self.calls(statement).next().is_some()).collect();
        if calls.is_empty() {
            return code;
        }
        let is_size = |statement: &str| {
            let mut opened = calls.iter().flat_map(|call| self.calls(call).map(move |open| (call, open)));
            let variable = assigned(statement);
            variable.is_some_and(|variable| opened.any(|(call, open)| is_asked_for(call, open, variable)))
        };
        let kept = all.iter().filter(|one| self.calls(one).next().is_some() || is_size(one));
        kept.fold(String::new(), |kept, one| kept + one + ";")
    }

    /// The same, without the types that other calls in these statements ask for. None if the function returns nothing and gets no address
    /// to store the block at.
    pub fn request(&self, code: &str) -> Option<String> {
        let code = self.statements(code);
        let calls: Vec<usize> = self.calls(&code).collect();
        if !self.is_returned && !calls.iter().any(|open| has_address(&code, *open)) {
            return None;
        }
        if calls.is_empty() {
            return Some(code);
        }
        let is_other = |(at, word): &(usize, &str)| {
            is_word(&code, *at, word.len())
                && match *word {
                    "new" => !self.is_placed_in(&code[at + word.len()..]),
                    _ => !self.is_of_call(&code, *at),
                }
        };
        let mut others: Vec<(usize, &str)> =
            ["sizeof", "new"].iter().flat_map(|word| code.match_indices(word)).filter(is_other).collect();
        others.sort_unstable();
        let (mut request, mut copied) = (String::new(), 0);
        for (at, word) in others {
            request.push_str(&code[copied..at]);
            copied = at + word.len();
        }
        request.push_str(&code[copied..]);
        Some(request)
    }

    /// Whether what is at that place is in the arguments of a call to the function, or computes a size for one.
    fn is_of_call(&self, code: &str, at: usize) -> bool {
        let mut before = at;
        while let Some(open) = opening_bracket(&code[..before]) {
            let name = callee(&code[..open]);
            if self.name.as_deref() == Some(name) {
                return true;
            }
            if allocates(name) {
                return false;
            }
            before = open;
        }
        let begin = code[..at].rfind([';', '{', '}']).map_or(0, |end| end + 1);
        let end = code[at..].find(';').map_or(code.len(), |end| at + end);
        self.calls(&code[begin..end]).next().is_none()
    }

    /// Whether an object is placed in what the function returns: `new (take(8)) T`.
    fn is_placed_in(&self, behind: &str) -> bool {
        let behind = behind.trim_start();
        let close = behind.starts_with('(').then(|| closing_bracket(behind)).flatten();
        close.is_some_and(|close| self.calls(&behind[..close]).next().is_some())
    }

    /// Whether this value is the function's result: of `other(take(8))`, it is what the other function returns. Names of macros have no
    /// small letters.
    pub fn is_value(&self, value: &str) -> bool {
        let is_open = |open: usize| {
            let mut before = open;
            while let Some(outer) = opening_bracket(&value[..before]) {
                let name = last_word(&value[..outer]);
                let is_call = !value[..outer].trim_end().ends_with('>') && name != "return";
                if is_call && name.contains(|c: char| c.is_lowercase()) {
                    return false;
                }
                before = outer;
            }
            true
        };
        self.calls(value).any(is_open)
    }

    /// Whether the code returns what the function returns.
    pub fn is_returned_by(&self, code: &str) -> bool {
        code.match_indices("return").any(|(at, word)| {
            let behind = &code[at + word.len()..];
            let value = &behind[..behind.find(';').unwrap_or(behind.len())];
            is_word(code, at, word.len()) && self.is_value(value)
        })
    }
}

/// The name in front of a bracket, without template arguments.
fn callee(before: &str) -> &str {
    let before = before.trim_end();
    if !before.ends_with('>') || before.ends_with("->") {
        return last_word(before);
    }
    let mut depth = 0usize;
    for (at, c) in before.char_indices().rev() {
        match c {
            '>' => depth += 1,
            '<' if depth <= 1 => return last_word(&before[..at]),
            '<' => depth -= 1,
            ';' | '{' | '}' => break,
            _ => {}
        }
    }
    ""
}

/// Whether an argument of a call is an address, with or without a cast.
fn has_address(code: &str, open: usize) -> bool {
    let is_address = |argument: &str| {
        let argument = argument.trim();
        let cast = argument.starts_with('(').then(|| closing_bracket(argument)).flatten();
        argument[cast.map_or(0, |close| close + 1)..].trim_start().starts_with('&')
    };
    arguments(code, open).into_iter().any(|(_, argument)| is_address(argument))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_that_call_a_function_and_compute_its_size_are_kept_and_others_are_not() {
        let take = HandedOver::by("take(unsigned long)", true);
        for (code, kept) in [
            ("a = malloc(8); take(&a->b, 4); return a;", " take(&a->b, 4);"),
            ("struct a *x = malloc(8), *y = take(4);", " *y = take(4);"),
            ("size_t n = 3 * 4, m = 9; p = take(n);", "size_t n = 3 * 4; p = take(n);"),
            ("n = 4; m = 3; p = take(n * m);", "n = 4; m = 3; p = take(n * m);"),
            ("n = 4; m = 3; p = take(n + m);", " p = take(n + m);"),
            ("for (p = take(4); p; p++) q = malloc(8);", "for (p = take(4);"),
            ("void *all[] = {take(4), take(8)};", "void *all[] = {take(4), take(8)};"),
            ("if (p) { q = pool.take<T>(4); }", " q = pool.take<T>(4);"),
            // A macro calls it.
            ("p = TAKE(4); q = mistake(4);", "p = TAKE(4); q = mistake(4);"),
        ] {
            assert_eq!(take.statements(code), kept, "{code}");
        }
    }

    #[test]
    fn types_count_that_the_arguments_of_the_call_itself_have() {
        let take = HandedOver::by("void* own::take<int>(int) [clone .part.0]", true);
        for (code, request) in [
            ("x = take(sizeof(a))", "x = take(sizeof(a));"),
            ("f(sizeof(a), take(8))", "f((a), take(8));"),
            ("x = take(size(malloc(sizeof(a))))", "x = take(size(malloc((a))));"),
            ("n = sizeof(a); x = take(n)", "n = sizeof(a); x = take(n);"),
            ("x = new (take(8)) a; y = new b(take(8))", "x = new (take(8)) a; y =  b(take(8));"),
        ] {
            assert_eq!(take.request(code).as_deref(), Some(request), "{code}");
        }
        let fill = HandedOver::by("fill", false);
        assert!(fill.request("fill((void **)&x, sizeof(a));").is_some());
        for code in ["fill(x, sizeof(a));", "x = FILL(sizeof(a));", "fill(x & y);"] {
            assert_eq!(fill.request(code), None, "{code}");
        }
    }

    #[test]
    fn a_value_is_the_result_of_a_call_but_not_where_another_function_gets_it() {
        let take = HandedOver::by("take", true);
        for value in ["= (a *)take(8)", "= static_cast<a *>(take(8))", "= CHECKED(take(8))", "(take(8))"] {
            assert!(take.is_value(value), "{value}");
        }
        for value in ["= make(take(8))", "= malloc(8)", "= take"] {
            assert!(!take.is_value(value), "{value}");
        }
        assert!(take.is_returned_by("return take(8);") && !take.is_returned_by("return make(take(8));"));
        assert!(!take.is_returned_by("p = take(8); return p;"));
    }

    #[test]
    fn any_code_can_be_read() {
        let take = HandedOver::by("take", false);
        for code in ["", "take", "take(", "<>(", "}é{;=", "take(é, &", "= take(é) }", "new take((", "a<<b>(é"]
        {
            take.statements(code);
            take.request(code);
            take.is_value(code);
            HandedOver::by(code, true);
        }
    }
}
