//! Whether the source asks for several elements, where a variable alone names their type: a size that is a multiple of the type's by chance
//! shows none. It may be that of a larger structure, which begins with the variable's.

use std::rc::Rc;

use super::found::Found;
use super::named_types::structure;
use super::program_types::ProgramTypes;
use super::source_line::{called, mentions, Mention, Requested};
use super::source_text::{arguments, last_word, without_texts};
use widthwise_heap_log::sizes::Sizes;

/// What the source says of the number of elements that a call asks for.
#[derive(Default)]
pub(super) struct Requests {
    /// The line of the call, and those behind it that the call continues in.
    pub own: String,
    /// The line may name the type of an array by its size.
    pub name_array: bool,
    /// The lines that ask the function for the size which it hands on; empty if it does not, or if some are not known.
    pub around: Vec<String>,
}

impl Requests {
    /// Whether the blocks, which call for call have these sizes, are elements of a variable's type. A structure's size is a factor of that of
    /// larger ones which begin with it, however many these are. Of numbers and pointers, several sizes show an array.
    pub fn show_array(&self, found: &Found, sizes: Sizes, files: &[Rc<ProgramTypes>]) -> bool {
        let is_named = |name: &str| {
            let name = ["struct ", "union ", "class "]
                .iter()
                .find_map(|word| name.strip_prefix(word))
                .unwrap_or(name);
            name.trim() == found.name
                || structure(name.trim(), files).is_some_and(|named| named.is_same_type(found))
        };
        let names_it = |line: &String| {
            let named = mentions(line, |_| false, |_| true);
            let is_it = |mention: &Mention| mention.type_name().is_some_and(is_named);
            named.iter().any(is_it) && asks_for_several(line, is_named)
        };
        found.size == Some(1)
            || self.name_array
            || found.id.is_none() && sizes.are_several() && !asks_for_one(&self.own)
            || asks_for_several(&self.own, is_named)
            || !self.around.is_empty() && self.around.iter().all(names_it)
    }
}

/// Whether a line's mention of a type may be that of an array.
pub(super) fn may_be_array(mention: &Mention) -> bool {
    matches!(mention.amount, Requested::NewArray | Requested::Any)
        || mention.counts().is_some_and(|counts| counts != [1, 1])
}

/// Whether a call in the code asks for one element: `calloc(1, size)`.
fn asks_for_one(code: &str) -> bool {
    let code = without_texts(code);
    let is_one = |open: usize| {
        takes_a_count(last_word(&code[..open]))
            && arguments(&code, open).iter().any(|(_, argument)| argument.trim() == "1")
    };
    let mut calls = called(&code);
    calls.any(is_one)
}

/// Whether a call in the code asks for a product, for a number of elements with the size of each (`calloc(n, size)`), or for a number of
/// the type that it names (`NEW(node, n)`). `is_named` says which arguments name the type.
pub(super) fn asks_for_several(code: &str, is_named: impl Fn(&str) -> bool) -> bool {
    let code = without_texts(code);
    let mut calls: Vec<usize> = called(&code).collect();
    if calls.is_empty() {
        let opened = code.match_indices('(').map(|(open, _)| open);
        calls = opened.filter(|open| is_call(&code[..*open])).collect();
    }
    calls.into_iter().any(|open| {
        let arguments = arguments(&code, open);
        let arguments: Vec<&str> = arguments.into_iter().map(|(_, argument)| argument.trim()).collect();
        let has_count = arguments.len() > 1 && !arguments.contains(&"1");
        let is_counted = takes_a_count(last_word(&code[..open])) || arguments.iter().any(|one| is_named(one));
        has_count && is_counted || arguments.iter().any(|one| is_product(one))
    })
}

/// Whether a bracket behind this text is that of a call.
fn is_call(before: &str) -> bool {
    !matches!(last_word(before), "" | "if" | "while" | "switch" | "for" | "return" | "sizeof")
}

/// Whether a function of that name takes a number of elements.
fn takes_a_count(name: &str) -> bool {
    let name = name.to_lowercase();
    ["calloc", "array", "nalloc", "nmalloc"].iter().any(|part| name.contains(part))
}

/// Whether something is multiplied there. Stars of pointers' types and those in front of pointers multiply nothing.
fn is_product(argument: &str) -> bool {
    argument.contains("<<")
        || argument.match_indices('*').any(|(at, _)| {
            let (before, behind) = (argument[..at].trim_end(), argument[at + 1..].trim_start());
            let is_behind_value = before.ends_with(|c: char| c.is_alphanumeric() || "_)]".contains(c));
            let is_value = !matches!(last_word(before), "sizeof" | "const" | "return");
            is_behind_value && is_value && !behind.is_empty() && !behind.starts_with([')', ',', '*'])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_or_a_count_asks_for_several_and_a_size_alone_does_not() {
        let several = |code: &str| asks_for_several(code, |argument| argument == "node");
        for code in [
            "p = malloc(n * 8);",
            "p = (node *)malloc(ROUND(n * SIZE));",
            "p = malloc(n << 3);",
            "p = calloc(n, c->size);",
            "p = reallocarray(p, n, size);",
            "p = NEW(node, n);",
            "if (!(p = xmalloc((size_t)n * c->size)))",
            "p = take(sizeof *p * n);",
            "p = malloc(\n  n * 8);",
        ] {
            assert!(several(code), "{code}");
        }
        for code in [
            "node *o = calloc(1, c->size);",
            "node *o = malloc(size);",
            "rv = do_alloc(allocator, desc->sizeof_message);",
            "o = (node *)malloc(*size);",
            "o = malloc(sizeof *x);",
            "o = malloc(c->size); fill(o, n * 2);",
            "o = NEW(node, 1);",
            "node * o = get(8);",
            "o = malloc(",
        ] {
            assert!(!several(code), "{code}");
        }
    }
}
