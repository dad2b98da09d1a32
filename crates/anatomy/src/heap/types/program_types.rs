//! The types of the recorded programs, by name: their debug information is read once.

use std::path::Path;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::function_name::without_parameters;
use crate::layout::{self, Layouts, Type, TypeId};
use crate::names::{self, plain};

/// Names that C++ gives to instances of its templates ([string.syn], [sstream.syn]): debug information may have the instance alone.
pub(super) const STANDARD_NAMES: [(&str, &str); 8] = [
    ("std::string", "std::basic_string<char>"),
    ("std::wstring", "std::basic_string<wchar_t>"),
    ("std::u8string", "std::basic_string<char8_t>"),
    ("std::u16string", "std::basic_string<char16_t>"),
    ("std::u32string", "std::basic_string<char32_t>"),
    ("std::stringstream", "std::basic_stringstream<char>"),
    ("std::istringstream", "std::basic_istringstream<char>"),
    ("std::ostringstream", "std::basic_ostringstream<char>"),
];

/// How the name of a type without one begins.
const UNNAMED: &str = "(unnamed ";

/// A type with its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Bytes.
    pub size: u64,
    /// The structure, class or union; none for numbers, pointers and enumerations.
    pub id: Option<TypeId>,
}

/// The types of one object file.
#[derive(Debug)]
pub struct ProgramTypes {
    /// All of them.
    pub layouts: Layouts,
    by_name: FxHashMap<String, Vec<TypeId>>,
    by_plain_name: FxHashMap<String, Vec<TypeId>>,
    /// Structures and classes without a name.
    unnamed: Vec<TypeId>,
}

impl ProgramTypes {
    /// Of these layouts.
    pub fn new(layouts: Layouts) -> ProgramTypes {
        let mut by_name: FxHashMap<String, Vec<TypeId>> = FxHashMap::default();
        let mut by_plain_name: FxHashMap<String, Vec<TypeId>> = FxHashMap::default();
        let mut unnamed = Vec::new();
        for (index, ty) in layouts.types.iter().enumerate() {
            let name = match ty {
                Type::Aggregate(aggregate) => &aggregate.name,
                Type::Enumeration { name, .. } | Type::Typedef { name, .. } => name,
                _ => continue,
            };
            let id = TypeId(index as u32);
            if name.contains(UNNAMED) {
                unnamed.push(id);
            }
            by_name.entry(names::type_name_key(name)).or_default().push(id);
            by_plain_name.entry(plain(name).to_owned()).or_default().push(id);
        }
        ProgramTypes { layouts, by_name, by_plain_name, unnamed }
    }

    /// The type of that name. None if there is none, or several of other sizes.
    pub fn find(&self, name: &str) -> Option<Known> {
        let known = |id: TypeId| {
            let id = self.layouts.stripped(id);
            let is_aggregate = self.layouts.aggregate(id).is_some();
            Known { size: self.layouts.size(id), id: is_aggregate.then_some(id) }
        };
        if let Some(size) = self.scalar(name) {
            return Some(Known { size, id: None });
        }
        match self.by_name.get(&names::type_name_key(name)).map(Vec::as_slice) {
            Some([first, rest @ ..]) => {
                let first = known(*first);
                let is_one = rest.iter().all(|id| known(*id).size == first.size);
                (is_one && first.size > 0).then_some(first)
            }
            _ if name.starts_with("std::") && self.number_name(&name[5..]).is_some() => self.find(&name[5..]),
            _ => {
                let whole = STANDARD_NAMES.iter().find(|(alias, _)| *alias == name);
                self.with_first_argument(whole.map_or(name, |(_, whole)| *whole)).map(known)
            }
        }
    }

    /// The name nearest to the number that a typedef of that name is: of `my_time` and `time_t`, it is `time_t`, as in layouts.
    pub fn number_name(&self, name: &str) -> Option<String> {
        let by_name = |name: &str| self.by_name.get(&names::type_name_key(name));
        let ids = by_name(name).or_else(|| by_name(name.strip_prefix("std::")?))?;
        let is_number = |id: &&TypeId| {
            let is_typedef = matches!(self.layouts.get(**id), Type::Typedef { .. });
            is_typedef && matches!(self.layouts.get(self.layouts.stripped(**id)), Type::Base { .. })
        };
        layout::innermost_typedef(&self.layouts, *ids.iter().find(is_number)?)
    }

    /// Whether that is a typedef of a pointer.
    pub fn is_pointer(&self, name: &str) -> bool {
        let ids = self.by_name.get(&names::type_name_key(name));
        let is_it =
            |id: &TypeId| matches!(self.layouts.get(self.layouts.stripped(*id)), Type::Pointer { .. });
        ids.is_some_and(|ids| ids.iter().all(is_it))
    }

    /// A template's instance with typedefs among its arguments as what they stand for: `Box<long>` for `Box<mylong>`. None if it has
    /// none of these.
    pub fn without_typedefs(&self, name: &str) -> Option<String> {
        let of_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let open = name.find('<')?;
        let (mut shown, mut rest) = (name[..open].to_owned(), &name[open..]);
        while !rest.is_empty() {
            let begin = rest.find(of_name).unwrap_or(rest.len());
            shown += &rest[..begin];
            rest = &rest[begin..];
            let (word, behind) = rest.split_at(rest.find(|c| !of_name(c)).unwrap_or(rest.len()));
            shown += self.typedef(word).as_deref().unwrap_or(word);
            rest = behind;
        }
        (shown != name).then_some(shown)
    }

    /// What typedefs of that name, with or without a scope, stand for. None if they are of several types.
    fn typedef(&self, name: &str) -> Option<String> {
        let own = self.by_name.get(&names::type_name_key(name));
        let all = own.or_else(|| self.by_plain_name.get(plain(name)))?;
        let target = |id: &TypeId| match self.layouts.get(*id) {
            Type::Typedef { .. } => Some(self.layouts.name(self.layouts.stripped(*id))),
            _ => None,
        };
        let first = target(all.first()?)?;
        all.iter().all(|id| target(id).as_ref() == Some(&first)).then_some(first)
    }

    /// The only type of that name whose first template argument is the same: compilers write constants among the others in several
    /// ways, such as `(std::Policy)2` and `std::two`.
    fn with_first_argument(&self, name: &str) -> Option<TypeId> {
        let key = first_argument(name)?;
        let ids = self.with_plain_name(plain(name));
        let mut same = ids.into_iter().filter(|id| {
            let own = self.layouts.name(*id);
            first_argument(&own).as_ref() == Some(&key) && scope(&own) == scope(name)
        });
        let first = same.next()?;
        same.next().is_none().then_some(first)
    }

    /// Structures, classes and unions whose name without scope and template arguments is that one.
    pub fn with_plain_name(&self, name: &str) -> Vec<TypeId> {
        let all = self.by_plain_name.get(name).into_iter().flatten();
        let mut ids: Vec<TypeId> = all.map(|id| self.layouts.stripped(*id)).collect();
        ids.retain(|id| self.layouts.aggregate(*id).is_some());
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// What may be the closure of a lambda, by the name that functions' names have for it: `f(int)::<lambda()>` is any structure
    /// without a name in `f()`. Debug information has no name for a closure.
    pub fn closures(&self, name: &str) -> Vec<TypeId> {
        let Some(scope) = scope_of_lambda(name) else { return Vec::new() };
        let scope = names::type_name_key(without_parameters(names::without_result(scope)));
        let is_in_scope = |id: &TypeId| {
            let own = self.layouts.name(*id);
            let own =
                own.split_once(UNNAMED).filter(|(_, behind)| behind.find(')') == Some(behind.len() - 1));
            own.is_some_and(|(own, _)| {
                let own = own.strip_suffix("::").unwrap_or(own);
                names::type_name_key(own.strip_suffix("()").unwrap_or(own)) == scope
            })
        };
        self.unnamed.iter().copied().filter(is_in_scope).collect()
    }

    /// The bytes of a number or a pointer (System V ABI, x86-64 supplement, figure 3.1; Intel386 supplement, table 2.1).
    pub fn scalar(&self, name: &str) -> Option<u64> {
        let word = u64::from(self.layouts.address_size);
        let name = names::type_name_key(name);
        let name = name.trim_end_matches(" const").trim_end_matches(" volatile");
        // Those among template arguments are no scalars' own.
        let own = without_arguments(name);
        if own.ends_with(['*', '&']) || own.contains("(*)") {
            return Some(word);
        }
        if own.contains("::*)(") {
            return Some(2 * word);
        }
        Some(match name {
            "bool" | "char" | "signed char" | "unsigned char" | "char8_t" => 1,
            "short" | "unsigned short" | "char16_t" => 2,
            "int" | "unsigned int" | "float" | "wchar_t" | "char32_t" => 4,
            "long" | "unsigned long" => word,
            "long long" | "unsigned long long" | "double" => 8,
            "long double" if self.layouts.packs_wide_numbers => 12,
            "long double" | "__int128" | "unsigned __int128" | "__float128" => 16,
            _ => return None,
        })
    }
}

/// The function that a lambda is in, by the lambda's name: GCC's `f()::<lambda()>`, Clang's `f()::$_0`, and how names of symbols are
/// written out, `f()::{lambda()#1}` and `f()::'lambda'()`.
fn scope_of_lambda(name: &str) -> Option<&str> {
    let at = ["<lambda", "{lambda", "$_", "'lambda"].iter().find_map(|begin| name.rfind(begin))?;
    let (scope, own) = name.split_at(at);
    let is_last = match own.chars().next()? {
        '<' => names::closing_bracket(own) == Some(own.len() - 1),
        '{' => own.find('}') == Some(own.len() - 1),
        '$' => own[2..].chars().all(|c| c.is_ascii_digit()),
        _ => own.ends_with(')'),
    };
    let scope = if scope.is_empty() { Some(scope) } else { scope.strip_suffix("::") };
    scope.filter(|_| is_last)
}

/// A name without what its template arguments say.
fn without_arguments(name: &str) -> String {
    let mut depth = 0usize;
    let mut before = ' ';
    let mut own = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => own.push(c),
            _ => {}
        }
        before = c;
    }
    own
}

/// The key of a name's first template argument.
fn first_argument(name: &str) -> Option<String> {
    let open = names::outer(name, &['<'])?;
    let close = open + names::closing_bracket(&name[open..])?;
    names::split(&name[open + 1..close]).first().map(|argument| names::type_name_key(argument))
}

/// A name up to its template arguments, without the namespaces of a library's versions.
fn scope(name: &str) -> String {
    names::type_name_key(name.split('<').next().unwrap_or(name))
}

/// The types of several object files.
#[derive(Default)]
pub struct Programs {
    read: FxHashMap<Rc<str>, Rc<ProgramTypes>>,
    threads: usize,
}

impl Programs {
    /// Files are read with that many threads.
    pub fn new(threads: usize) -> Programs {
        Programs { read: FxHashMap::default(), threads }
    }

    /// The types of a file. A file that cannot be read has none; [`Layouts::unread`] says why.
    pub fn of(&mut self, path: &str) -> Rc<ProgramTypes> {
        if let Some(known) = self.read.get(path) {
            return known.clone();
        }
        let layouts = layout::read(Path::new(path), self.threads.max(1)).unwrap_or_else(|error| Layouts {
            unread: vec![layout::Unread { reason: error.to_string(), count: 1 }],
            ..Layouts::default()
        });
        let types = Rc::new(ProgramTypes::new(layouts));
        self.read.insert(path.into(), types.clone());
        types
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_among_template_arguments_may_be_written_in_several_ways() {
        let (one, other) = ("std::Block<Square, (std::Policy)2>", "std::Block<Square, std::two>");
        assert_eq!((first_argument(one), scope(one)), (first_argument(other), scope(other)));
        assert_ne!(first_argument(one), first_argument("std::Block<Circle, std::two>"));
        assert_eq!(first_argument("node"), None);
    }

    #[test]
    fn numbers_have_the_sizes_of_their_abi() {
        let of = |address_size, packs_wide_numbers| {
            ProgramTypes::new(Layouts { address_size, packs_wide_numbers, ..Layouts::default() })
        };
        let (lp64, i386) = (of(8, false), of(4, true));
        for (name, wide, narrow) in [
            ("int*", 8, 4),
            ("long", 8, 4),
            ("long unsigned int", 8, 4),
            ("long long int", 8, 8),
            ("long double", 16, 12),
            ("int (*)(char)", 8, 4),
            ("int (A::*)(char)", 16, 8),
            ("char const", 1, 1),
        ] {
            assert_eq!((lp64.scalar(name), i386.scalar(name)), (Some(wide), Some(narrow)), "{name}");
        }
        assert_eq!(lp64.scalar("Track"), None);
        assert_eq!(lp64.scalar("std::_Rb_tree_node<std::pair<int const, int (*)(char)> >"), None);
        assert_eq!(lp64.scalar("std::pair<int, int (A::*)(char)>"), None);
        assert_eq!(lp64.scalar("std::pair<int, char>*"), Some(8));
    }
}
