//! The types that a line of source allocates: `new T`, `sizeof(T)`, `sizeof *variable`.

use super::factors::{factor, may_be_count, number, times, Counts};
use super::source_text::{
    arguments, assigned, is_word, last_word, opening_bracket, operand, statements, without_texts,
};
use super::sums::{self, is_asked_for, is_term, product_end, sum_around, End};

/// A type that a line names, and how much of it is allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Which type.
    pub named: Named,
    /// How much.
    pub amount: Requested,
}

/// How a line names a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// `new T`, `sizeof(T)`: by its name, as the source writes it.
    Type(String),
    /// `sizeof *variable`: as what a variable or member points to.
    Pointee(String),
}

/// What a line says of the number of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requested {
    /// `new T`: one object.
    New,
    /// `new T[n]`.
    NewArray,
    /// `n * sizeof(T)`: one object or several.
    Any,
    /// `3 * sizeof(T)`, or with an argument of 3 beside it: so many objects, one of two numbers. `sizeof(T)` alone: one object, or a part of
    /// a larger block.
    Counted(Counts),
    /// `sizeof(T) + n`: an object with something behind it, unless nothing is.
    InSum {
        /// The sum is all that the call asks for, and it asks for it once.
        is_whole: bool,
        /// It is a term without factors.
        is_one: bool,
    },
}

impl Mention {
    fn of_type(name: String, amount: Requested) -> Mention {
        Mention { named: Named::Type(name), amount }
    }

    fn of_pointee(variable: String) -> Mention {
        Mention { named: Named::Pointee(variable), amount: Requested::Any }
    }

    /// The same as a term of a sum: not the whole block, unless nothing is behind it.
    fn in_a_sum(self) -> Mention {
        match self.amount {
            Requested::New | Requested::NewArray | Requested::InSum { .. } => self,
            _ => Mention { amount: Requested::InSum { is_whole: false, is_one: false }, ..self },
        }
    }

    /// How many objects the line asks for, if it says so.
    pub fn counts(&self) -> Option<Counts> {
        match self.amount {
            Requested::New => Some([1, 1]),
            Requested::Counted(counts) => Some(counts),
            _ => None,
        }
    }

    /// The same with another name of the type, where the line has one.
    pub fn with_name(self, other: impl Fn(&str) -> String) -> Mention {
        match self.named {
            Named::Type(name) => Mention { named: Named::Type(other(&name)), ..self },
            Named::Pointee(_) => self,
        }
    }

    /// The type's name, where the line has it.
    pub fn type_name(&self) -> Option<&str> {
        match &self.named {
            Named::Type(name) => Some(name),
            Named::Pointee(_) => None,
        }
    }

    /// Whether it is a term of a sum.
    pub fn is_in_a_sum(&self) -> bool {
        matches!(self.amount, Requested::InSum { .. })
    }
}

/// How many calls in a line allocate: `new`, and functions with `alloc` or `memalign` in their names.
pub fn allocating_calls(line: &str) -> usize {
    let code = without_texts(line);
    let made = code.match_indices("new").filter(|(at, _)| is_word(&code, *at, 3)).count();
    made + called(&code).count()
}

/// The brackets that open the arguments of calls that allocate.
pub(super) fn called(code: &str) -> impl Iterator<Item = usize> + '_ {
    code.match_indices('(').map(|(open, _)| open).filter(|open| allocates(last_word(&code[..*open])))
}

/// Whether a function of that name allocates.
pub(super) fn allocates(name: &str) -> bool {
    let name = name.to_lowercase();
    // `allocate(` is the declaration of an allocator's function more often than a call.
    name.contains("memalign") || name.contains("alloc") && !name.contains("dealloc") && name != "allocate"
}

/// Whether a call in the line asks for a sum of bytes: of such a block, no type's size is a factor.
pub fn asks_for_a_sum(line: &str) -> bool {
    let is_sum = |arguments: &[&str]| matches!(arguments, [only] if adds(only));
    arguments_of_calls(&without_texts(line), is_sum).any(|is_sum| is_sum)
}

/// Whether a call in the line that allocates asks for a sum of bytes in one of its arguments.
pub fn asks_for_more(line: &str) -> bool {
    let has_sum = |arguments: &[&str]| arguments.iter().any(|one| adds(one));
    arguments_of_calls(&without_texts(line), has_sum).any(|has_sum| has_sum)
}

/// Whether a line hands the size on that its function is asked for: each call in it that allocates has words as arguments.
pub fn hands_on(line: &str) -> bool {
    let is_word =
        |one: &&str| one.trim().replace("->", ".").chars().all(|c| c.is_alphanumeric() || "_.".contains(c));
    let code = without_texts(line);
    let mut calls = arguments_of_calls(&code, |arguments| arguments.iter().all(is_word)).peekable();
    calls.peek().is_some() && calls.all(|are_words| are_words)
}

/// What holds of the arguments of each call that allocates.
fn arguments_of_calls<'c>(
    code: &'c str,
    holds: impl Fn(&[&str]) -> bool + 'c,
) -> impl Iterator<Item = bool> + 'c {
    called(code).map(move |open| {
        let arguments: Vec<&str> = arguments(code, open).into_iter().map(|(_, argument)| argument).collect();
        holds(&arguments)
    })
}

/// Whether an argument is a sum.
fn adds(argument: &str) -> bool {
    matches!(product_end(argument), End::Sum(_))
}

/// What a line allocates, once for each call. Comments and texts are not looked at. `is_pointer` says which variables are pointers, and
/// `is_called` which functions the line calls: others are macros.
pub fn mentions(
    line: &str,
    is_pointer: impl Fn(&str) -> bool,
    is_called: impl Fn(&str) -> bool,
) -> Vec<Mention> {
    let code = without_texts(line);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("new") {
        if is_word(&code, at, 3) {
            found.extend(made(&code[at + 3..]));
        }
    }
    let mut measured_at = Vec::new();
    for (at, _) in code.match_indices("sizeof") {
        if is_word(&code, at, 6) && !is_of_another_call(&code[..at]) {
            let mention = measured(code[at + 6..].trim_start());
            measured_at.extend(mention.map(|mention| match sum_around(&code, at) {
                Some(sum) => {
                    let amount = Requested::InSum {
                        is_whole: asks_once(&code, sum, &is_called),
                        is_one: is_term(&code, at),
                    };
                    (at, Mention { amount, ..mention })
                }
                None => match counts(&code, sums::measured_at(&code, at), &is_pointer) {
                    Some(counts) => (at, Mention { amount: Requested::Counted(counts), ..mention }),
                    None => (at, mention),
                },
            }));
        }
    }
    keep_arguments(&code, &mut measured_at);
    // Of a sum, no term is the whole block.
    if measured_at.iter().any(|(_, mention)| mention.is_in_a_sum()) {
        found = found.into_iter().map(Mention::in_a_sum).collect();
        measured_at = measured_at.into_iter().map(|(at, mention)| (at, mention.in_a_sum())).collect();
    }
    // A call may name a type several times.
    let is_of_one_call = |from: usize, to: usize| !called(&code).any(|open| (from..to).contains(&open));
    measured_at.dedup_by(|(at, mention), (before, known)| known == mention && is_of_one_call(*before, *at));
    found.extend(measured_at.into_iter().map(|(_, mention)| mention));
    found
}

/// Leaves out what a line measures for something else than its call that allocates, as in `p = get_alloc(n); at += sizeof *q`: what is in
/// no call's arguments, unless it is a variable's value that such a call behind it asks for; and where such a call has one, arrays among other calls'
/// arguments.
fn keep_arguments(code: &str, measured_at: &mut Vec<(usize, Mention)>) {
    if called(code).next().is_none() {
        return;
    }
    let places: Vec<Place> = measured_at.iter().map(|(at, _)| place(code, *at)).collect();
    let has_own = places.contains(&Place::Allocating);
    let mut places = places.into_iter();
    measured_at.retain(|(at, mention)| match places.next() {
        _ if mention.is_in_a_sum() => true,
        Some(Place::Other) => !has_own || mention.counts() == Some([1, 1]),
        Some(Place::Statement) => is_value_that_is_asked_for(code, *at),
        Some(Place::Condition) => false,
        Some(Place::Allocating) | None => true,
    });
}

/// Whether what is measured there is the value of a variable, and a call behind it that allocates asks for that: `n = sizeof(T); p = malloc(n)`.
/// Of `malloc(n + m)`, no type is known.
fn is_value_that_is_asked_for(code: &str, at: usize) -> bool {
    let mut begin = 0;
    for statement in statements(code) {
        let end = begin + statement.len();
        if at < end {
            let variable = assigned(&code[begin..at]);
            return variable.is_some_and(|variable| {
                called(code).any(|open| open > end && is_asked_for(code, open, variable))
            });
        }
        begin = end + 1;
    }
    false
}

/// What a part of a line is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The arguments of a call that allocates.
    Allocating,
    /// Those of other calls.
    Other,
    /// A condition.
    Condition,
    /// No brackets but its own.
    Statement,
}

fn place(code: &str, at: usize) -> Place {
    let (mut before, mut found) = (at, Place::Statement);
    while let Some(open) = opening_bracket(&code[..before]) {
        found = match (last_word(&code[..open]), found) {
            (name, _) if allocates(name) => return Place::Allocating,
            ("" | "return", _) | (_, Place::Other) => found,
            ("if" | "while" | "switch", _) => Place::Condition,
            _ => Place::Other,
        };
        before = open;
    }
    found
}

/// Whether what follows is an argument of a function that allocates nothing: `memset(p, 0, `.
fn is_of_another_call(before: &str) -> bool {
    const OTHERS: [&str; 9] =
        ["memset", "memcpy", "memmove", "memcmp", "bzero", "fread", "fwrite", "qsort", "assert"];
    let is_other = |name: &str| OTHERS.contains(&name) || name.ends_with("printf");
    let mut depth = 0usize;
    for (at, c) in before.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth > 0 => depth -= 1,
            '(' if is_other(last_word(&before[..at])) => return true,
            ';' | '{' | '}' => return false,
            _ => {}
        }
    }
    false
}

/// How many times the term between these places the allocating call asks for, which it is an argument of: the product of the factors in
/// the argument and of another argument that may be a count. None if one of them is no number. Of a line without such a call, the
/// innermost call counts.
fn counts(
    code: &str,
    (mut low, mut high): (usize, usize),
    is_pointer: &impl Fn(&str) -> bool,
) -> Option<Counts> {
    let (mut counts, mut innermost) = (Some([1, 1]), None);
    while let Some(open) = opening_bracket(&code[..low]) {
        let arguments = arguments(code, open);
        let Some(own) = arguments.iter().rposition(|(begin, _)| *begin <= low) else { break };
        let (begin, argument) = arguments[own];
        let beside = format!("{}1{}", &code[begin..low], code.get(high..begin + argument.len())?);
        counts = times(counts, factor(&beside).map(|factor| [factor; 2]));
        let name = last_word(&code[..open]);
        let is_call = !matches!(name, "" | "return") && !code[..open].ends_with('>');
        if is_call {
            for (place, (_, other)) in arguments.iter().enumerate().filter(|(place, _)| *place != own) {
                if may_be_count(name, place, other.trim(), is_pointer) {
                    counts = times(counts, number(other).map(|number| [1, number]));
                }
            }
            if allocates(name) {
                return counts;
            }
            innermost = innermost.or(Some(counts));
        }
        let (last_begin, last) = arguments.last()?;
        low = if is_call { code[..open].trim_end().len() - name.len() } else { open };
        high = last_begin + last.len() + 1;
    }
    innermost.flatten()
}

/// Whether what is between these places is all that a call which allocates asks for, and the call asks for it once.
fn asks_once(code: &str, (mut low, mut high): (usize, usize), is_called: &impl Fn(&str) -> bool) -> bool {
    // A shift is of the whole sum; of a difference, it is not known what is in the block.
    if code[low..high].replace("->", ".").contains(['<', '>', '/', '%', '-']) {
        return false;
    }
    loop {
        let (before, behind) = (code[..low].trim_end(), code[high..].trim_start());
        if !before.ends_with(['(', ',']) || !behind.starts_with([')', ',']) {
            return false;
        }
        let Some(open) = opening_bracket(&code[..low]) else { return false };
        let name = last_word(&code[..open]);
        if name.is_empty() && before.len() == open + 1 && behind.starts_with(')') {
            (low, high) = (open, code.len() - behind.len() + 1);
            continue;
        }
        let is_no_count = |(place, (begin, argument)): (usize, &(usize, &str))| {
            let is_own = (*begin..=begin + argument.len()).contains(&low);
            let is_block = place == 0 && name.to_lowercase().contains("realloc");
            is_own || is_block || name.contains("align") || argument.trim() == "1"
        };
        return is_called(name) && arguments(code, open).iter().enumerate().all(is_no_count);
    }
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
            return type_name(inner).map(|(name, _)| Mention::of_type(name, Requested::New));
        }
    }
    let (name, behind) = type_name(rest)?;
    let is_array = behind.trim_start().starts_with('[');
    Some(Mention::of_type(name, if is_array { Requested::NewArray } else { Requested::New }))
}

/// What `sizeof` measures.
fn measured(behind: &str) -> Option<Mention> {
    let operand = operand(behind)?;
    let inner = operand.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(operand).trim();
    if let Some(variable) = inner.strip_prefix('*') {
        return last_variable(variable).map(Mention::of_pointee);
    }
    if let Some(open) = inner.find('[').filter(|_| !inner.contains(']') || inner.ends_with("[0]")) {
        return last_variable(&inner[..open]).map(Mention::of_pointee);
    }
    if let Some(variable) = inner.strip_suffix("[0]") {
        return last_variable(variable).map(Mention::of_pointee);
    }
    let (name, rest) = type_name(inner)?;
    rest.trim().is_empty().then(|| Mention::of_type(name, Requested::Any))
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

    fn mentions(line: &str) -> Vec<Mention> {
        super::mentions(line, |name| name == "pool" || name == "made->pool", allocates)
    }

    fn object(name: &str) -> Mention {
        Mention::of_type(name.to_owned(), Requested::New)
    }

    fn elements(name: &str) -> Mention {
        Mention::of_type(name.to_owned(), Requested::NewArray)
    }

    fn size(name: &str) -> Mention {
        Mention::of_type(name.to_owned(), Requested::Any)
    }

    fn one(name: &str) -> Mention {
        several(name, [1, 1])
    }

    fn several(name: &str, counts: Counts) -> Mention {
        Mention::of_type(name.to_owned(), Requested::Counted(counts))
    }

    fn header(name: &str) -> Mention {
        Mention::of_type(name.to_owned(), Requested::InSum { is_whole: true, is_one: true })
    }

    fn pointee(variable: &str, amount: Requested) -> Mention {
        Mention { amount, ..Mention::of_pointee(variable.to_owned()) }
    }

    #[test]
    fn what_another_statement_or_another_call_measures_is_not_what_a_call_allocates() {
        let node =
            "node *n = get_alloc(sizeof(pool)); pool *p = (pool *)n->at; n->at += sizeof *p; p->active = n;";
        assert_eq!(mentions(node), [one("pool")]);
        assert_eq!(mentions("node *n = get_alloc(s); pool *p = (pool *)n->at; n->at += sizeof *p;"), []);
        assert_eq!(mentions("if (n < sizeof(T)) p = malloc(n);"), []);
        assert_eq!(mentions("p = malloc(sizeof(T)); fill(p, n * sizeof(U));"), [one("T")]);
        assert_eq!(mentions("p = take(n * sizeof(T)); q = malloc(8);"), [size("T")]);
        assert_eq!(mentions("p = malloc(round(n * sizeof(T)));"), [size("T")]);
        assert_eq!(mentions("need = n * sizeof(T);"), [size("T")]);
        assert_eq!(mentions("put_alloc(n); fprintf(out, \"%zu %d\", sizeof(T), n);"), []);
        for line in [
            "need = n * sizeof(T); p = malloc(need);",
            "if (n == 3) need = sizeof(T); p = calloc(n, (size_t)need);",
            "size_t k = 9, need = n * sizeof(T); p = malloc((k * need));",
        ] {
            assert_eq!(mentions(line), [size("T")], "{line}");
        }
        for line in [
            "size_t a = n * sizeof(T), b = n * sizeof(U); char *p = malloc(a + b);",
            "size_t a = n * sizeof(T), b = n * 24; return malloc(a + b);",
            "size_t a = n * sizeof(T); p = malloc(n); q = take(a);",
            "p->a = n * sizeof(T); p = malloc(a);",
            "a += n * sizeof(T); p = malloc(a);",
            "p = malloc(a); a = n * sizeof(T);",
            "a = n * sizeof(T); p = malloc(ROUND(a));",
        ] {
            assert_eq!(mentions(line), [], "{line}");
        }
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
        assert_eq!(mentions("f(new A, new A)"), [object("A"), object("A")]);
        assert_eq!(mentions("p = malloc(sizeof(a)); q = malloc(sizeof(a));"), [one("a"), one("a")]);
    }

    #[test]
    fn a_size_names_a_type_or_a_variable() {
        let one_pointee = |name: &str| pointee(name, Requested::Counted([1, 1]));
        assert_eq!(mentions("n = malloc(sizeof(struct node));"), [one("node")]);
        assert_eq!(mentions("n = malloc(sizeof *n);"), [one_pointee("n")]);
        assert_eq!(
            mentions("t->table = calloc(size, sizeof(*t->table));"),
            [pointee("table", Requested::Any)]
        );
        assert_eq!(mentions("t = calloc(n, sizeof(struct entry *));"), [size("entry*")]);
        assert_eq!(mentions("x = malloc(n * sizeof(x[0]));"), [pointee("x", Requested::Any)]);
        assert_eq!(mentions("x = malloc(4 * sizeof *x);"), [pointee("x", Requested::Counted([4, 4]))]);
        assert_eq!(mentions("x = malloc(sizeof(a) + 3);"), [header("a")]);
        assert_eq!(mentions("x = malloc(3 + sizeof(struct a));"), [header("a")]);
        let sum_of = |name: &str, is_one| pointee(name, Requested::InSum { is_whole: true, is_one });
        assert_eq!(
            mentions("p = malloc(sizeof *p + k * sizeof p->v[0]);"),
            [sum_of("p", true), sum_of("v", false)]
        );
        assert_eq!(mentions("p = malloc(8 + sizeof *p);"), [sum_of("p", true)]);
        assert_eq!(mentions("p = malloc(sizeof *a->b); x + y;"), [one_pointee("b")]);
        for line in [
            "x = malloc(16 + n * sizeof(a));",
            "x = malloc(sizeof(a) * n + 16);",
            "x = malloc(sizeof(a) * (n + 1) - 16);",
            "x = malloc(m->k + (size_t)n[i + 1] * sizeof(struct a));",
            "x = malloc(16 + static_cast<std::size_t>(n) * sizeof(a));",
            "x = malloc((n * sizeof(a)) + 16);",
            "x = malloc(8 + (k++ * (sizeof(a))));",
        ] {
            let is_term = |one: &Mention| one.is_in_a_sum() && one.type_name() == Some("a");
            assert!(matches!(&mentions(line)[..], [one] if is_term(one)), "{line}");
        }
        let part = |is_whole, is_one| Mention::of_type("a".to_owned(), Requested::InSum { is_whole, is_one });
        for (line, whole, one) in [
            ("x = malloc(sizeof(a) + 3);", true, true),
            ("x = malloc((n + sizeof(a)));", true, true),
            ("x = realloc(x, sizeof(a) + n);", true, true),
            ("x = calloc(1, sizeof(a) + n);", true, true),
            ("x = malloc(16 + n * sizeof(a));", true, false),
            ("x = malloc(sizeof(a) * n + 16);", true, false),
            ("x = malloc(50 * (sizeof(a) + 8));", false, true),
            ("x = malloc(sizeof(a) + n << 5);", false, true),
            ("x = malloc(n ? sizeof(a) + n : 8);", false, false),
            ("x = malloc(ROUND(sizeof(a) + n));", false, true),
            ("x = calloc(y->count, sizeof(a) + n);", false, true),
            ("x = MANY(sizeof(a) + n);", false, true),
            ("x = many(sizeof(a) + n);", false, true),
            ("return (sizeof(a) * n) + 16;", false, false),
            ("x = malloc(n); total += n + sizeof(a);", false, true),
        ] {
            assert_eq!(mentions(line), [part(whole, one)], "{line}");
        }
        let both = [
            header("a"),
            Mention::of_type("b".to_owned(), Requested::InSum { is_whole: true, is_one: false }),
        ];
        assert_eq!(mentions("x = malloc(sizeof(a) + n * sizeof(b));"), both);
        assert_eq!(
            mentions("x = malloc(n); memset(x, 0, sizeof(a)); y = calloc(n, sizeof(b));"),
            [size("b")]
        );
    }

    #[test]
    fn a_size_without_a_factor_and_a_count_is_that_of_one_object() {
        for line in [
            "x = xalloc(sizeof(a));",
            "x = (a *)take((size_t)sizeof(struct a));",
            "if ((x = xalloc(static_cast<size_t>(sizeof(a)))) == NULL || n * 3) {",
            "x = pool_alloc(pool, sizeof(a));",
            "x = pool_alloc(made->pool, sizeof(a), 0);",
            "x = obstack_alloc(&stack, sizeof(a));",
            "x = calloc(1, sizeof(a));",
            "x = aligned_alloc(64, sizeof(a));",
            "x = realloc(x, sizeof(a));",
            "x = debug_malloc(sizeof(a), \"node\", __FILE__, __LINE__);",
            "push(list, 3, xalloc(sizeof(a)));",
            "x = malloc(ROUND(sizeof(a)));",
        ] {
            assert_eq!(mentions(line), [one("a")], "{line}");
        }
        for line in [
            "x = xnmalloc(n, sizeof(a));",
            "x = reallocarray(pool, n, sizeof(a));",
            "x = calloc(sizeof(a), n);",
            "x = malloc(static_cast<size_t>(sizeof(a)) * n);",
            "x = malloc(sizeof(a) << n);",
            "x = malloc(3 * n * sizeof(a));",
            "x = malloc(MANY(3 * sizeof(a), n));",
            "x = calloc(COUNT, sizeof(a) / 2);",
            "x = calloc(n, ROUND(sizeof(a)));",
            "x = malloc(MANY(sizeof(a), n));",
            "x = malloc(ROUND(n * sizeof(a)));",
            "bytes = sizeof(a); x = xalloc(n * bytes);",
            "n, sizeof(a));",
            "x = xalloc(sizeof(a),",
        ] {
            assert_eq!(mentions(line), [size("a")], "{line}");
        }
    }

    #[test]
    fn a_factor_that_is_a_number_says_how_many_objects_there_are() {
        for (line, counts) in [
            ("x = take(pool, 3 * sizeof(a));", [3, 3]),
            ("x = malloc((size_t)3u * sizeof(struct a) * 0x2);", [6, 6]),
            ("x = malloc((2 * sizeof(a)) * (3));", [6, 6]),
            ("x = (a *)malloc(ROUND(010 * (sizeof(a))) << 2);", [32, 32]),
            ("push(n * 2, xalloc(5 * sizeof(a)));", [5, 5]),
            ("x = calloc(3, 2 * sizeof(a));", [2, 6]),
            ("x = take(made->pool, sizeof(a), 8);", [1, 8]),
        ] {
            assert_eq!(mentions(line), [several("a", counts)], "{line}");
        }
    }

    #[test]
    fn a_call_may_ask_for_a_sum() {
        for line in ["a *x = xalloc(length + OVERHEAD);", "x = (a *)malloc(8 * n - 1);"] {
            assert!(asks_for_a_sum(line), "{line}");
        }
        for line in
            ["x = xalloc(n);", "x = calloc(n + 1, 8);", "x = xalloc((n + 1) * 8) + 1;", "x = xalloc(a->n);"]
        {
            assert!(!asks_for_a_sum(line), "{line}");
        }
    }

    #[test]
    fn a_wrapper_hands_on_what_it_is_asked_for_or_asks_for_more() {
        for line in ["p = malloc(n);", "return calloc(count, self->size);", "p = realloc(p, a.n)"] {
            assert!(hands_on(line) && !asks_for_more(line), "{line}");
        }
        for line in ["p = malloc(n-1);", "p = malloc(n + HEADER);", "p = calloc(1, sizeof(a) + n * k);"] {
            assert!(!hands_on(line) && asks_for_more(line), "{line}");
        }
        for line in ["p = malloc(2 * n);", "p = malloc(ROUND(n));", "n = 3;"] {
            assert!(!hands_on(line) && !asks_for_more(line), "{line}");
        }
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
            "malloc(sizeof",
            "é(sizeof é) << ]((",
            "malloc(é, sizeof(é)",
        ] {
            mentions(line);
            allocating_calls(line);
            asks_for_a_sum(line);
        }
    }
}
