//! Names of functions and types: demangled, and the key that identifies one in different builds.
//!
//! The same source gives other names in other ABIs: `size_t` is `unsigned long` in LP64 and `unsigned int` in ILP32, `int64_t`
//! is `long` in the one and `long long` in the others (System V ABI, x86-64 supplement, "Data representation"; Intel386
//! supplement, the same), so that `operator new(size_t)` is `_Znwm` here and `_Znwj` there. The compiler's own copies of a
//! function, and its choice of them, differ too.

mod brackets;
mod demangled;
mod numbers;

use crate::function_name;

pub(crate) use brackets::closing_bracket;
use demangled::is_of_thunk;
pub(crate) use demangled::{demangled, is_thunk};
pub use numbers::with_both_numbers;
use numbers::{character, replaced, without_cast, without_suffix};

/// Words that an integer type's name is made of, in any order: `long unsigned int` is what debug information says.
const INTEGER_WORDS: [&str; 6] = ["unsigned", "signed", "long", "short", "int", "char"];

/// Namespaces that a standard library puts around its own versions: libstdc++'s, libc++'s, its NDK's.
const VERSION_NAMESPACES: [&str; 3] = ["__cxx11", "__1", "__ndk1"];

/// The marks of a compiler's copies: GCC's (`clone_function_name` and those who call it), and LLVM's.
const COPIES: [&str; 10] =
    ["constprop", "isra", "part", "cold", "lto_priv", "localalias", "simdclone", "llvm", "ipa", "unlikely"];

/// What glibc's own names for a function begin with (its `include/libc-symbols.h`, `libio/libioP.h`): which of the names of one
/// address a symbol table gives first is chance, `printf` in one ABI and `_IO_printf` in another.
const ALIASES: [&str; 5] = ["__GI_", "_IO_new_", "_IO_", "__libc_", "__"];

/// The name under which a demangled function of one build is looked for in another. It is for comparing, not for showing.
///
/// All integers as wide as `int` or wider have one name, signed and unsigned apart: an overload for `int` and one for `long`
/// become one, unless their source lines differ.
///
/// ```
/// use widthwise_anatomy::names::key;
/// assert_eq!(key("operator new(unsigned long)"), key("operator new(unsigned int)"));
/// ```
pub fn key(function: &str) -> String {
    normalized(without_alias(without_copies(function)), integer)
}

/// The name of a function in one program, whichever copy of it this is: integers keep their width, and overloads for `int` and for
/// `long` are two.
///
/// ```
/// use widthwise_anatomy::names::function_name_key;
/// assert_ne!(function_name_key("f(long)"), function_name_key("f(int)"));
/// assert_eq!(function_name_key("f(unsigned long) [clone .cold]"), function_name_key("f(unsigned long)"));
/// ```
pub fn function_name_key(function: &str) -> String {
    normalized(without_alias(without_copies(function)), exact_integer)
}

/// The name under which a type of one build is looked for in another: as [`key`], and `const` stands where demanglers write it.
///
/// ```
/// use widthwise_anatomy::names::type_key;
/// assert_eq!(type_key("std::pair<const long unsigned int, const char*>"), type_key("std::pair<unsigned int const, char const*>"));
/// ```
pub fn type_key(name: &str) -> String {
    normalized(&east_const(name), integer)
}

/// The name of a type in one program, however it is written there: integers keep their width.
///
/// ```
/// use widthwise_anatomy::names::type_name_key;
/// assert_eq!(type_name_key("A<const long unsigned int>"), type_name_key("A<unsigned long const>"));
/// assert_ne!(type_name_key("A<long>"), type_name_key("A<int>"));
/// ```
pub fn type_name_key(name: &str) -> String {
    normalized(&east_const(name), exact_integer)
}

/// The name of a type under which it is looked for in another build, whatever the integers among its template arguments are.
///
/// ```
/// use widthwise_anatomy::names::numberless_type_key;
/// assert_eq!(numberless_type_key("Pool<104>::Block"), numberless_type_key("Pool<52ul>::Block"));
/// assert_ne!(numberless_type_key("Pool<A, 104>"), numberless_type_key("Pool<B, 104>"));
/// ```
pub fn numberless_type_key(name: &str) -> String {
    type_key(&replaced(name, |_| "0".to_owned()))
}

/// Finds the name of the integer type that a text begins with, and what is behind it.
type IntegerName = fn(&str) -> (Option<&'static str>, &str);

fn normalized(name: &str, integer: IntegerName) -> String {
    let mut key = String::with_capacity(name.len());
    // GCC's debug information has `__int128 unsigned`, whose words have the order of no other integer.
    let wide =
        name.contains("__int128 unsigned").then(|| name.replace("__int128 unsigned", "unsigned __int128"));
    let name = wide.as_deref().unwrap_or(name);
    let with_plain_addresses = name.contains('&').then(|| without_addresses(name));
    let mut rest = with_plain_addresses.as_deref().unwrap_or(name);
    while let Some(first) = rest.chars().next() {
        if let Some(number) = without_cast(rest) {
            rest = number;
        } else if let Some((value, behind)) = character(rest).filter(|_| key.ends_with(['<', ','])) {
            key.push_str(&value.to_string());
            rest = behind;
        } else if first.is_whitespace() {
            let trimmed = rest.trim_start();
            // A space counts between words only: one demangler writes `> >`, the other `>>`.
            if key.ends_with(of_a_word) && trimmed.starts_with(of_a_word) {
                key.push(' ');
            }
            rest = trimmed;
        } else if of_a_word(first) {
            let (integer, behind) = integer(rest);
            if let Some(integer) = integer {
                key.push_str(integer);
                rest = behind;
                continue;
            }
            let (word, behind) = word(rest);
            rest = behind;
            if VERSION_NAMESPACES.contains(&word) && key.ends_with("::") && rest.starts_with("::") {
                rest = &rest[2..];
            } else if word == "__va_list_tag" {
                // `va_list` is an array of these on x86-64 (its supplement, 3.5.7), and a `char*` on i386.
                key.push_str("char");
                rest = rest.strip_prefix("[1]").map_or(rest, |behind| {
                    key.push('*');
                    behind
                });
            } else {
                key.push_str(without_suffix(word));
            }
        } else {
            key.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    key.replace("{anonymous}", "(anonymous namespace)")
}

/// A name whose template arguments that are addresses are those of plain names, as in GCC's debug information: `gf` of `&gf(int)`, and
/// `cell` of `(& cell)`.
fn without_addresses(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('&') {
        let before = rest[..at].trim_end();
        let bracket =
            before.strip_suffix('(').map(str::trim_end).filter(|before| before.ends_with(['<', ',']));
        let inside = rest[at + 1..].trim_start();
        let end = outer(inside, &[',', '>', ')']);
        let Some(end) = end.filter(|_| bracket.is_some() || before.ends_with(['<', ','])) else {
            out.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        };
        out.push_str(bracket.unwrap_or(before));
        out.push_str(function_name::without_parameters(inside[..end].trim()));
        rest = &inside[end..];
        rest = bracket.and_then(|_| rest.strip_prefix(')')).unwrap_or(rest);
    }
    out + rest
}

/// A C function's name without what marks it as another name of the same.
fn without_alias(function: &str) -> &str {
    if !function.chars().all(of_a_word) {
        return function;
    }
    let mut name = function;
    // `__GI___libc_calloc` has two.
    for alias in ALIASES {
        name = name.strip_prefix(alias).filter(|rest| !rest.is_empty()).unwrap_or(name);
    }
    name
}

fn of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The first word, and what is behind it.
fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !of_a_word(c)).unwrap_or(text.len()))
}

/// The common name of the integer type that the text begins with, and what is behind it.
fn integer(text: &str) -> (Option<&'static str>, &str) {
    let (words, behind) = integer_words(text);
    let has = |word| words.contains(&word);
    let name = match (has("unsigned"), has("char"), has("short")) {
        _ if words.is_empty() => return (None, text),
        (true, true, _) => "unsigned char",
        (false, true, _) if has("signed") => "signed char",
        (false, true, _) => "char",
        (true, false, true) => "unsigned short",
        (false, false, true) => "short",
        (true, false, false) => "unsigned int",
        (false, false, false) => "int",
    };
    (Some(name), behind)
}

/// The name of the integer type that the text begins with, its words in one order, and what is behind it.
fn exact_integer(text: &str) -> (Option<&'static str>, &str) {
    let (words, _) = integer_words(text);
    match (words.iter().filter(|word| **word == "long").count(), words.contains(&"unsigned")) {
        (0, _) => integer(text),
        (1, false) => (Some("long"), integer(text).1),
        (1, true) => (Some("unsigned long"), integer(text).1),
        (_, false) => (Some("long long"), integer(text).1),
        (_, true) => (Some("unsigned long long"), integer(text).1),
    }
}

/// The words of the integer type that the text begins with, and what is behind them; none where it is no integer.
fn integer_words(text: &str) -> (Vec<&str>, &str) {
    let mut words: Vec<&str> = Vec::new();
    let mut behind = text;
    loop {
        let start = if words.is_empty() { behind } else { behind.trim_start() };
        let (next, after) = word(start);
        if matches!(next, "double" | "__int128") && !words.is_empty() {
            // `long double` and `unsigned __int128` are what they are.
            return (Vec::new(), text);
        }
        if !INTEGER_WORDS.contains(&next) {
            break;
        }
        words.push(next);
        behind = after;
    }
    (words, behind)
}

/// Moves `const` and `volatile` behind the type that they belong to, also in template arguments: debug information writes
/// `const int`, demanglers `int const`.
fn east_const(name: &str) -> String {
    const DEEPEST: usize = 64;
    fn one(name: &str, depth: usize) -> String {
        let mut out = String::with_capacity(name.len());
        let mut rest = name.trim();
        while let Some(open) = rest.find(['<', '(']) {
            let Some(close) = closing_bracket(&rest[open..]).filter(|_| depth < DEEPEST) else { break };
            let (inner, end) = (&rest[open + 1..open + close], open + close);
            out.push_str(&rest[..=open]);
            let arguments: Vec<String> = split(inner).iter().map(|part| one(part, depth + 1)).collect();
            out.push_str(&arguments.join(","));
            out.push_str(&rest[end..=end]);
            rest = &rest[end + 1..];
        }
        out.push_str(rest);
        let mut marks = String::new();
        let mut base = out.as_str();
        while let Some((mark, behind)) =
            base.split_once(' ').filter(|(mark, _)| matches!(*mark, "const" | "volatile"))
        {
            marks.push(' ');
            marks.push_str(mark);
            base = behind.trim_start();
        }
        if marks.is_empty() {
            return out;
        }
        let end = outer(base, &['*', '&', '(', '[']).unwrap_or(base.len());
        format!("{}{marks}{}", base[..end].trim_end(), &base[end..])
    }
    one(name, 0)
}

/// A demangled function's qualified name and what is behind it, without the type of its result, which demanglers write in front of
/// templates. A thunk stays one.
pub fn without_result(function: &str) -> &str {
    const ANONYMOUS: &str = "(anonymous namespace)";
    if is_of_thunk(function) {
        return function;
    }
    let (mut start, mut depth) = (0, 0usize);
    let mut characters = function.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = characters.next() {
        let rest = &function[at..];
        if depth == 0 {
            // The brackets of `operator<` and `operator()` are none; neither has a space before its parameters.
            if rest.starts_with("operator") && !of_a_word(before) {
                break;
            }
            if rest.starts_with(ANONYMOUS) {
                while characters.next_if(|(next, _)| *next < at + ANONYMOUS.len()).is_some() {}
                before = ')';
                continue;
            }
            match c {
                ' ' => start = at + 1,
                '(' => break,
                _ => {}
            }
        }
        match c {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = c;
    }
    &function[start..]
}

/// The parts between commas outside of brackets.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(comma) = outer(rest, &[',']) {
        parts.push(rest[..comma].trim());
        rest = &rest[comma + 1..];
    }
    parts.push(rest.trim());
    parts
}

/// The place of the first of these characters outside of brackets.
pub(crate) fn outer(text: &str, wanted: &[char]) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        if depth == 0 && wanted.contains(&c) {
            return Some(at);
        }
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// A name without its scope and its template arguments: `Node` of `a::List<b::C>::Node<int>`.
pub(crate) fn plain(name: &str) -> &str {
    let mut last = name;
    while let Some(colon) = outer(last, &[':']) {
        last = last[colon..].trim_start_matches(':');
    }
    last[..outer(last, &['<']).unwrap_or(last.len())].trim()
}

/// `f(int) [clone .cold]`, `f(int) (.cold)` and `f.cold` are `f`: which copies there are is the compiler's choice.
pub(crate) fn without_copies(function: &str) -> &str {
    let mut name = function.trim();
    loop {
        let shorter = name
            .strip_suffix(']')
            .and_then(|open| open.rsplit_once("[clone "))
            .or_else(|| name.strip_suffix(')').and_then(|open| open.rsplit_once('(')))
            .filter(|(_, copy)| copy.starts_with('.'))
            .map(|(before, _)| before)
            .or_else(|| {
                let (before, last) = name.rsplit_once('.')?;
                if COPIES.contains(&last) {
                    return Some(before);
                }
                let (before, mark) = before.rsplit_once('.')?;
                (last.bytes().all(|b| b.is_ascii_digit()) && COPIES.contains(&mark)).then_some(before)
            });
        match shorter.map(str::trim_end) {
            Some(shorter) if !shorter.is_empty() => name = shorter,
            _ => return name,
        }
    }
}

/// The names of a symbol. Marks of the compiler's copies (`.cold`, `.part.0`) are no part of them. Where a name is no UTF-8 it is
/// shown lossily.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SymbolNames {
    /// The key by which it is found in the same build.
    pub own: String,
    /// The key by which it is looked for in another build.
    pub common: String,
    /// The name for readers: demangled.
    pub shown: String,
}

/// The names of a symbol, or of a function that debug information names without one (`copied<long int>`, which is inlined everywhere).
pub fn names_of_symbol(symbol: &[u8]) -> SymbolNames {
    let text = String::from_utf8_lossy(symbol);
    let base = without_copies(&text);
    let shown = demangled(base);
    match shown.chars().all(of_a_word) {
        // A C function has one name in every ABI: aliases are names of their own here.
        true => SymbolNames { own: shown.clone(), common: shown.clone(), shown },
        false => SymbolNames { own: function_name_key(&shown), common: key(&shown), shown },
    }
}

#[cfg(test)]
mod tests {
    use super::{key, names_of_symbol, plain, without_result};

    fn same(one: &str, other: &str) {
        assert_eq!(key(one), key(other), "{one} / {other}");
    }

    fn different(one: &str, other: &str) {
        assert_ne!(key(one), key(other), "{one} / {other}");
    }

    #[test]
    fn a_plain_name_has_neither_scope_nor_arguments() {
        assert_eq!(plain("std::_Rb_tree_node<std::pair<int const, A> >"), "_Rb_tree_node");
        assert_eq!(plain("a::B"), "B");
        assert_eq!(plain("a::List<b::C>::Node"), "Node");
        assert_eq!(plain("node"), "node");
    }

    #[test]
    fn a_function_without_a_symbol_has_the_keys_of_its_name() {
        let [long, long_long] =
            [names_of_symbol(b"copied<long int>"), names_of_symbol(b"copied<long long int>")];
        assert_eq!(long.common, long_long.common);
        assert_ne!(long.own, long_long.own);
        assert_ne!(names_of_symbol(b"__printf").own, names_of_symbol(b"printf").own);
    }

    #[test]
    fn a_size_is_the_same_type_in_every_abi() {
        same("operator new[](unsigned long)", "operator new[](unsigned int)");
        same(
            "std::vector<int*, std::allocator<int*> >::_M_default_append(unsigned long)",
            "std::vector<int*, std::allocator<int*> >::_M_default_append(unsigned int)",
        );
        same(
            "__gnu_cxx::__normal_iterator<long*, A>::operator+(long) const",
            "__gnu_cxx::__normal_iterator<int*, A>::operator+(int) const",
        );
    }

    #[test]
    fn sixty_four_bits_are_the_same_type_in_every_abi() {
        same("store(long, unsigned long)", "store(long long, unsigned long long)");
    }

    #[test]
    fn debug_informations_spelling_of_integers_is_known() {
        same("f<long unsigned int>(short int, long long int)", "f<unsigned long>(short, long)");
        same("f(signed char)", "f(signed  char)");
    }

    #[test]
    fn other_types_stay_apart() {
        different("f(unsigned int)", "f(int)");
        different("f(unsigned short)", "f(unsigned int)");
        different("f(char)", "f(unsigned char)");
        different("f(char)", "f(signed char)");
        different("f(long double)", "f(double)");
        different("f(long double)", "f(int)");
        different("f(unsigned __int128)", "f(unsigned long)");
        same("A<__int128 unsigned>", "A<unsigned __int128>");
        different("A<__int128 unsigned>", "A<__int128>");
        different("f(long*)", "f(long)");
    }

    #[test]
    fn words_that_only_begin_like_types_are_left_alone() {
        assert_eq!(key("longest::int_of(unsigned_t, print)"), "longest::int_of(unsigned_t,print)");
        assert_eq!(key("main"), "main");
        assert_eq!(key("0x401136"), "0x401136");
        assert_eq!(key("md5ul"), "md5ul");
        assert_eq!(key(""), "");
    }

    #[test]
    fn literals_in_template_arguments_have_no_type() {
        same("std::array<Track, 16ul>::fill", "std::array<Track, 16u>::fill");
        same("f<-3l>()", "f<-3ll>()");
        same("std::_Head_base<0UL, T, false>", "std::_Head_base<0U, T, false>");
        different("f<16ul>()", "f<161ul>()");
    }

    #[test]
    fn constants_of_all_types_are_those_of_debug_information() {
        for (demangled, debug) in [
            ("std::array<void*, (unsigned long)4>", "std::array<void*, 4>"),
            ("std::array<void*, (unsigned int)4>", "std::array<void*, 4UL>"),
            ("A<(char)120, (char)44>", "A<'x', ','>"),
            ("A<(char)10, (char)39, (char)92>", "A<'\\012', '\\'', '\\\\'>"),
            ("A<(char)-56, (char)-56>", "A<'\\310', '\\37777777710'>"),
            ("A<(wchar_t)120, (char16_t)960>", "A<L'x', u'\\1700'>"),
            ("A<(long long)-5, (short)7, (unsigned char)200>", "A<-5, 7, 200>"),
            ("A<&n::gf(int), int>", "A<n::gf, int>"),
            ("A<&gf(int (*)(char), B<1>&)>", "A<gf>"),
            ("A<&cell>", "A<(& cell)>"),
        ] {
            same(demangled, debug);
        }
        different("A<(char)120>", "A<'y'>");
        different("A<int&, B const&>", "A<int, B const>");
        different("f(A<int>&, int&)", "f(A<int>, int)");
        assert_eq!(key("operator&(A, B)"), "operator&(A,B)");
        assert_eq!(key("it's <'"), "it's<'");
        assert_eq!(key("A<B<&f"), "A<B<&f");
    }

    #[test]
    fn spaces_count_between_words_only() {
        same("f<g<int> >(int, char *)", "f<g<int>>(int,char*)");
        different("operator new", "operatornew");
        assert_eq!(key("std::map<unsigned long, int> f()"), "std::map<unsigned int,int>f()");
    }

    #[test]
    fn copies_that_a_compiler_makes_are_the_function_itself() {
        for copy in [
            "grow(int) [clone .constprop.0]",
            "grow(int) [clone .isra.0] [clone .cold]",
            "grow(int) (.cold)",
            "grow(int).part.0",
            "grow(int).llvm.1839",
        ] {
            same(copy, "grow(int)");
        }
        same("grow.constprop.0.isra.3", "grow");
        different("grow.table", "grow");
        different("grow.3", "grow");
        assert_eq!(key(".cold"), ".cold");
    }

    #[test]
    fn versions_of_the_standard_library_are_one() {
        same(
            "std::__cxx11::basic_string<char>::reserve(unsigned long)",
            "std::__1::basic_string<char>::reserve(unsigned int)",
        );
        different("mine__1::f()", "mine::f()");
    }

    #[test]
    fn a_c_function_may_have_several_names() {
        same("_IO_printf", "printf");
        same("__libc_calloc", "__GI___libc_calloc");
        same("_IO_new_file_overflow", "_IO_file_overflow");
        different("_IO_file_overflow", "_IO_file_underflow");
        different("A::__grow(int)", "A::grow(int)");
        assert_eq!(key("_start"), "_start");
        assert_eq!(key("__"), "__");
        assert_eq!(key("_IO_"), "_IO_");
    }

    #[test]
    fn argument_lists_are_the_same_type() {
        same("vformat(char const*, __va_list_tag*)", "vformat(char const*, char*)");
    }

    #[test]
    fn what_the_demangler_writes_for_two_abis_has_one_key() {
        let demangled = |name: &str| {
            cpp_demangle::Symbol::new(name).expect("a mangled name").demangle().expect("a demangled name")
        };
        for (lp64, ilp32) in [
            ("_Znwm", "_Znwj"),
            ("_ZnamSt11align_val_t", "_ZnajSt11align_val_t"),
            ("_ZNSt6vectorIPiSaIS0_EE17_M_default_appendEm", "_ZNSt6vectorIPiSaIS0_EE17_M_default_appendEj"),
            ("_ZNSt5arrayIiLm16EE4fillERKi", "_ZNSt5arrayIiLj16EE4fillERKi"),
            ("_ZN5Index3addEl", "_ZN5Index3addEx"),
            ("_Z4growm.constprop.0", "_Z4growj"),
            ("_Z4growm.cold", "_Z4growj.isra.0"),
        ] {
            same(&demangled(lp64), &demangled(ilp32));
        }
    }

    #[test]
    fn thunks_of_one_function_are_one_whatever_the_distances_of_its_bases_and_no_other_function() {
        let common = |symbol: &str| names_of_symbol(symbol.as_bytes()).common;
        let thunk = common("_ZThn16_N2D41bEm");
        assert_eq!(thunk, common("_ZThn8_N2D41bEj"));
        assert_eq!(common("_ZTv0_n24_N2D41cEl"), common("_ZTv0_n12_N2D41cEl"));
        assert_eq!(common("_ZTchn16_h16_N1D5cloneEv"), common("_ZTchn8_h8_N1D5cloneEv"));
        for other in ["_ZN2D41bEm", "_ZTv0_n16_N2D41bEm", "_ZThn16_N2D31bEm"] {
            assert_ne!(thunk, common(other));
        }
        let shown = names_of_symbol(b"_ZThn16_N2D41bEm").shown;
        assert_eq!(without_result(&shown), "non-virtual thunk to D4::b(unsigned long)");
    }
}
