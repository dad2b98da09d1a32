//! What the functions between the allocator and the program's own line say of the allocated type.

use crate::names::{closing_bracket, split, type_name_key, without_result};
use widthwise_heap_log::profile::Frame;

use super::program_types::STANDARD_NAMES;
use super::source::Source;

/// Functions that hand a request on unchanged.
///
/// Those of C are frames of imported recordings and of programs that the recorder is linked into; glibc's `reallocarray` also
/// elsewhere, since it calls `realloc` as a program does.
const PASSING: [&str; 17] = [
    "operator new(",
    "operator new[](",
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "__libc_reallocarray",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "void* std::__1::__libcpp_operator_new<",
    "std::__1::__libcpp_allocate",
    "std::__1::__libcpp_operator_new<",
    "std::__1::__allocate_at_least<",
    "std::__1::allocator_traits<",
];

/// Allocators of the standard libraries, whose first template argument is the element's type. Their function is `allocate`.
const ALLOCATORS: [&str; 6] = [
    "std::__new_allocator<",
    "__gnu_cxx::new_allocator<",
    "__gnu_cxx::malloc_allocator<",
    "std::allocator<",
    "std::__1::allocator<",
    "std::allocator_traits<std::allocator<",
];

/// Templates whose functions call `new T` themselves, with `T` as the first argument.
const MAKERS: [&str; 6] = [
    "std::make_unique<",
    "std::__detail::_MakeUniq<",
    "std::__1::make_unique<",
    "std::_Function_base::_Base_manager<",
    "std::any::_Manager_external<",
    "std::make_unique_for_overwrite<",
];

/// Containers whose elements are arrays: what is behind the name says the element's type again.
const CONTAINERS: [(&str, &str); 10] = [
    ("std::vector<", "std::vector"),
    ("std::_Vector_base<", "std::vector"),
    ("std::deque<", "std::deque"),
    ("std::_Deque_base<", "std::deque"),
    ("std::_Hashtable<", "a hash table"),
    ("std::__detail::_Hashtable_alloc<", "a hash table"),
    ("std::__1::vector<", "std::vector"),
    ("std::__1::deque<", "std::deque"),
    ("std::__1::__hash_table<", "a hash table"),
    ("std::valarray<", "std::valarray"),
];

/// A function that asks an allocator, its first template argument, for one object.
const GUARDED: &str = "std::__allocate_guarded<";

/// Containers whose elements are in nodes: how their functions' names begin, which template argument is the element's type, and the
/// node's template, whose first argument that is.
const NODES: [(&str, usize, &str); 8] = [
    ("std::__cxx11::_List_base<", 0, "std::_List_node<"),
    ("std::__cxx11::list<", 0, "std::_List_node<"),
    ("std::_List_base<", 0, "std::_List_node<"),
    ("std::list<", 0, "std::_List_node<"),
    ("std::_Fwd_list_base<", 0, "std::_Fwd_list_node<"),
    ("std::forward_list<", 0, "std::_Fwd_list_node<"),
    ("std::_Rb_tree<", 1, "std::_Rb_tree_node<"),
    ("std::_Hashtable<", 1, HASH_NODE),
];
/// A hash table has blocks of other kinds, too.
const HASH_NODE: &str = "std::__detail::_Hash_node<";
/// The control block of `make_shared`, with the object in it.
const SHARED: &str = "std::_Sp_counted_ptr_inplace<";

/// Strings of the standard libraries: their functions are in the library, without debug information.
const STRINGS: [&str; 5] = [
    "std::__cxx11::basic_string<",
    "std::basic_string<",
    "std::__1::basic_string<",
    "std::__cxx11::basic_stringbuf<",
    "std::basic_stringbuf<",
];

/// Functions of the C library that allocate characters (their manual pages).
const CHARACTERS: [&str; 12] = [
    "strdup",
    "__strdup",
    "strndup",
    "__strndup",
    "getline",
    "getdelim",
    "_IO_getline",
    "_IO_getdelim",
    "_IO_file_doallocate",
    "asprintf",
    "vasprintf",
    "__vasprintf_internal",
];

/// What is in the blocks beside elements of the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// Their number, where `new T[n]` stores it.
    Length,
    /// A control block of the library, in the space of some elements.
    ControlBlock,
}

/// A type by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The type of one object or element.
    pub name: String,
    /// The container that has it as elements.
    pub container: Option<String>,
    /// What else is in the blocks.
    pub beside: Beside,
    /// What names it.
    pub source: Source,
    /// Whether the frames agree: a compiler may use one function for several types, if its code for them is the same.
    pub is_sure: bool,
}

/// The type that the frames name, the innermost first; the last one is the site's own.
pub fn named<'f>(frames: impl Iterator<Item = &'f Frame>) -> Option<Named> {
    let mut frames = frames.skip_while(|frame| is_passing(&frame.function));
    let first = frames.next()?;
    if let Some(name) = element(&first.function) {
        return Some(of_element(name, frames));
    }
    let function = first.function.as_str();
    if let Some(name) = made(function).or_else(|| shared(function)) {
        let (element, beside) = match name.strip_suffix("[]") {
            // `make_unique<T[]>` calls `new T[n]`.
            Some(element) => (element.trim_end().to_owned(), Beside::Length),
            None => (name, Beside::Nothing),
        };
        let source = Source::Allocator;
        return Some(Named { name: element, container: None, beside, source, is_sure: true });
    }
    if let Some(characters) = of_string(function) {
        return Some(characters);
    }
    let is_library = first.module.starts_with("libc.so") && CHARACTERS.contains(&function);
    is_library.then(|| Named {
        name: "char".to_owned(),
        container: Some(function.to_owned()),
        beside: Beside::Nothing,
        source: Source::Library,
        is_sure: true,
    })
}

/// The characters that a string's function allocates.
fn of_string(function: &str) -> Option<Named> {
    let name = STRINGS.iter().find_map(|string| argument(function, string))?;
    let instance = format!("std::basic_string<{name}>");
    let container = match STANDARD_NAMES.iter().find(|(_, of)| *of == instance) {
        Some((standard, _)) => (*standard).to_owned(),
        None => instance,
    };
    let (beside, source) = (Beside::Nothing, Source::Library);
    Some(Named { name, container: Some(container), beside, source, is_sure: true })
}

/// Whether a function hands a request on unchanged.
pub fn is_passing(function: &str) -> bool {
    PASSING
        .iter()
        .any(|name| function == *name || name.ends_with(['(', '<', 'e']) && function.starts_with(name))
}

/// The first template argument of a function whose name begins so. Types of its template arguments, parameters and result
/// begin so, too, and say nothing of what it allocates.
fn argument(function: &str, beginning: &str) -> Option<String> {
    let name = without_result(function);
    name.strip_prefix(beginning).and_then(|_| first_argument(&name[beginning.len() - 1..]))
}

/// The first argument of the template arguments that the text begins with.
fn first_argument(text: &str) -> Option<String> {
    let close = closing_bracket(text)?;
    let first = split(&text[1..close]).first()?.to_string();
    (!first.is_empty()).then_some(first)
}

/// `T` of an allocator's `allocate`, also of one that the program brings.
fn element(function: &str) -> Option<String> {
    if let Some(allocator) = argument(function, GUARDED) {
        return argument(&allocator, "std::allocator<");
    }
    for allocator in ALLOCATORS {
        if !function.starts_with(allocator) {
            continue;
        }
        let open = allocator.len() - 1;
        let close = open + closing_bracket(&function[open..])?;
        let behind = function[close + 1..].trim_start_matches([' ', '>']);
        if behind.starts_with("::allocate(")
            || behind.starts_with("::allocate_at_least(")
            || behind == "::allocate"
        {
            return first_argument(&function[open..]);
        }
    }
    None
}

/// `T` of a function that makes one object of a type, `T []` of one that makes elements.
fn made(function: &str) -> Option<String> {
    MAKERS.iter().find_map(|maker| argument(function, maker))
}

/// The control block of a `shared_ptr` that takes over a pointer.
fn shared(function: &str) -> Option<String> {
    let rest = function.strip_prefix("std::__shared_count<")?;
    let close = closing_bracket(&function["std::__shared_count".len()..])? - 1;
    let policy = &rest[..close];
    let pointer = rest[close..]
        .strip_prefix(">::__shared_count<")
        .and_then(|_| first_argument(&rest[close + ">::__shared_count".len()..]))?;
    pointer.ends_with('*').then(|| format!("std::_Sp_counted_ptr<{pointer}, {policy}>"))
}

/// The node that the outermost function of a container has its elements in, if that is another one than an allocator inside was
/// asked for. `frames` are those around the allocator's.
fn own_node(element: &str, frames: &[&Frame]) -> Option<String> {
    if let Some(block) = frames.first().and_then(|frame| control_block(&frame.function)) {
        return (type_name_key(&block) != type_name_key(element)).then_some(block);
    }
    let mut own: Option<(&str, String)> = None;
    for frame in frames {
        let name = without_result(&frame.function);
        let found = NODES.iter().find_map(|(beginning, place, node)| {
            let arguments = name.strip_prefix(beginning).map(|_| &name[beginning.len() - 1..])?;
            let close = closing_bracket(arguments)?;
            Some((*node, split(&arguments[1..close]).get(*place)?.to_string()))
        });
        match found {
            Some(found) if own.as_ref().is_none_or(|(known, _)| *known == found.0) => own = Some(found),
            _ => break,
        }
    }
    let (node, value) = own?;
    match argument(element, node) {
        Some(known) if type_name_key(&known) == type_name_key(&value) => None,
        Some(known) => Some(format!("{node}{value}{}", element.get(node.len() + known.len()..)?)),
        None => (node != HASH_NODE).then(|| format!("{node}{value} >")),
    }
}

/// The control block that `make_shared` allocates, by the function that asks for it.
fn control_block(function: &str) -> Option<String> {
    let rest = function.strip_prefix("std::__shared_count").filter(|rest| rest.starts_with('<'))?;
    let close = closing_bracket(rest)?;
    let own = rest[close + 1..].strip_prefix("::__shared_count").filter(|own| own.starts_with('<'))?;
    let of_own = split(&own[1..closing_bracket(own)?]);
    // With a deleter, the first is a pointer or the second no allocator.
    let (object, allocator) = (of_own.first()?, of_own.get(1)?);
    let is_block = allocator.starts_with("std::allocator<") && !object.ends_with('*');
    is_block.then(|| format!("{SHARED}{object}, {allocator}, {}>", &rest[1..close]))
}

/// An element that an allocator is asked for, and the container whose function asks. Containers further out have that one as an
/// element.
///
/// GCC merges functions whose code is the same (`-fipa-icf`, part of `-O2`): that of `vector<void*>` may call that of
/// `vector<Track*>`. The outermost function of the container was called by its own name.
fn of_element<'f>(element: String, frames: impl Iterator<Item = &'f Frame>) -> Named {
    // Inlined, with a type of an anonymous namespace, it has its last word as its name.
    let is_allocator = |frame: &Frame| {
        frame.function == "allocate"
            || ALLOCATORS.iter().any(|name| frame.function.starts_with(name))
            || without_result(&frame.function).starts_with(GUARDED)
    };
    let mut frames = frames.peekable();
    let (mut element, mut is_merged) = (element, false);
    while let Some(frame) = frames.next_if(|frame| is_allocator(frame)) {
        // The compiler may have merged this one, too, but the outer one was called by its own name.
        if let Some(outer) = self::element(&frame.function) {
            is_merged |= type_name_key(&outer) != type_name_key(&element);
            element = outer;
        }
    }
    let frames: Vec<&Frame> = frames.collect();
    if let Some(node) = own_node(&element, &frames) {
        (element, is_merged) = (node, true);
    }
    let is_sure = !is_merged;
    // `make_shared<T[]>` asks for so many elements more that its control block has space in them (libstdc++, bits/shared_ptr_base.h).
    let is_counted = |frame: &&Frame| frame.function.starts_with("std::_Sp_counted_array_base<");
    let beside = if frames.first().is_some_and(is_counted) { Beside::ControlBlock } else { Beside::Nothing };
    // Whether a string's own function is seen with the allocator's inside, or alone in the library, is the compiler's choice.
    let characters = frames.first().and_then(|frame| of_string(&frame.function));
    if let Some(characters) = characters.filter(|one| type_name_key(&one.name) == type_name_key(&element)) {
        return characters;
    }
    in_container(
        Named { name: element, container: None, beside, source: Source::Allocator, is_sure },
        &frames,
    )
}

/// Elements with the container that has them, by the functions around its allocator's.
fn in_container(named: Named, frames: &[&Frame]) -> Named {
    let mut own: Option<(&str, String)> = None;
    for frame in frames {
        let found = CONTAINERS.iter().find_map(|(beginning, name)| {
            let element = argument(&frame.function, beginning)?;
            Some((*name, element))
        });
        match found {
            Some((name, element)) if own.as_ref().is_none_or(|(known, _)| *known == name) => {
                own = Some((name, element));
            }
            _ => break,
        }
    }
    let Some((name, of_container)) = own else { return named };
    let Some(_) = name.strip_prefix("std::") else {
        // A hash table allocates nodes, too, which are no elements of it.
        return Named { container: Some(name.to_owned()), ..named };
    };
    let of_allocator = type_name_key(&named.name);
    // A deque has a table of pointers to its pieces.
    let is_table = name == "std::deque" && of_allocator == type_name_key(&of_container) + "*";
    let is_sure = named.is_sure && (is_table || of_allocator == type_name_key(&of_container));
    let container = Some(format!("{name}<{of_container}>"));
    Named { name: if is_table { named.name } else { of_container }, container, is_sure, ..named }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(functions: &[&str]) -> Vec<Frame> {
        let frame = |function: &&str| Frame {
            function: (*function).to_owned(),
            file: None,
            line: None,
            module: if function.starts_with("str") { "libc.so.6" } else { "prog" }.to_owned(),
            inlined: false,
        };
        functions.iter().map(frame).collect()
    }

    fn name(functions: &[&str]) -> Option<(String, Option<String>)> {
        named(frames(functions).iter()).map(|named| (named.name, named.container))
    }

    #[test]
    fn an_allocator_names_the_type_of_its_elements() {
        let vector = [
            "std::__new_allocator<int*>::allocate(unsigned long, void const*)",
            "std::allocator_traits<std::allocator<int*> >::allocate(std::allocator<int*>&, unsigned long)",
            "std::_Vector_base<int*, std::allocator<int*> >::_M_allocate(unsigned long)",
            "fill()",
        ];
        assert_eq!(name(&vector), Some(("int*".to_owned(), Some("std::vector<int*>".to_owned()))));
        let inside = [
            "std::__new_allocator<std::_List_node<int> >::allocate(unsigned long, void const*)",
            "std::__cxx11::_List_base<int, std::allocator<int> >::_M_get_node()",
            "std::vector<std::list<int>, std::allocator<std::list<int> > >::vector()",
        ];
        assert_eq!(name(&inside), Some(("std::_List_node<int>".to_owned(), None)));
        let tree = "__gnu_cxx::new_allocator<std::_Rb_tree_node<std::pair<int const, int> > >::allocate(unsigned int, void const*)";
        assert_eq!(name(&[tree]), Some(("std::_Rb_tree_node<std::pair<int const, int> >".to_owned(), None)));
        let clang = [
            "void* std::__1::__libcpp_operator_new<unsigned long>(unsigned long)",
            "std::__1::__libcpp_allocate(unsigned long, unsigned long)",
            "std::__1::allocator<std::__1::__list_node<int, void*> >::allocate(unsigned long)",
        ];
        assert_eq!(name(&clang), Some(("std::__1::__list_node<int, void*>".to_owned(), None)));
    }

    #[test]
    fn a_container_among_the_arguments_of_another_is_not_the_one_that_allocates() {
        let node = "std::_Rb_tree_node<std::pair<int const, std::vector<Node> > >";
        let tree = "std::_Rb_tree<int, std::pair<int const, std::vector<Node> >, std::less<int> >";
        let in_map = [
            format!("std::__new_allocator<{node} >::allocate(unsigned long, void const*)"),
            format!("{tree}::_M_get_node()"),
            "fill()".to_owned(),
        ];
        assert_eq!(name(&in_map.each_ref().map(String::as_str)), Some((node.to_owned(), None)));
        let result = [
            "std::__new_allocator<Node>::allocate(unsigned long, void const*)",
            "std::vector<int>* copy<Node>(std::vector<Node>, std::vector<int>*)",
        ];
        assert_eq!(name(&result), Some(("Node".to_owned(), None)));
        let strings =
            "std::_Rb_tree<int, std::basic_string<char>, std::less<int> >::_M_copy(std::basic_string<char>)";
        assert_eq!(name(&[strings]), None);
        let behind_result = [
            "std::__new_allocator<A>::allocate(unsigned long)",
            "A* std::_Vector_base<A, std::allocator<A> >::f(long)",
        ];
        assert_eq!(name(&behind_result), Some(("A".to_owned(), Some("std::vector<A>".to_owned()))));
    }

    #[test]
    fn of_functions_that_the_compiler_merged_the_outermost_has_the_containers_own_name() {
        let allocate = "std::__new_allocator<Track>::allocate(unsigned long, void const*)";
        let merged = [
            allocate,
            "std::_Vector_base<Track, std::allocator<Track> >::_M_allocate(unsigned long)",
            "std::_Vector_base<void*, std::allocator<void*> >::_M_allocate(unsigned long)",
            "std::vector<void*, std::allocator<void*> >::reserve(unsigned long)",
            "main",
        ];
        let found = named(frames(&merged).iter()).expect("a type");
        assert_eq!((found.name.as_str(), found.is_sure), ("void*", false));
        assert_eq!(found.container.as_deref(), Some("std::vector<void*>"));
        let node = [
            allocate,
            "std::allocator_traits<std::allocator<std::_List_node<Shape> > >::allocate",
            "std::__cxx11::_List_base<Shape, std::allocator<Shape> >::_M_get_node",
        ];
        let found = named(frames(&node).iter()).expect("a type");
        assert_eq!((found.name.as_str(), found.is_sure), ("std::_List_node<Shape>", false));
        let inner = [
            allocate,
            "std::vector<Track, std::allocator<Track> >::vector(unsigned long)",
            "void std::_Construct<std::vector<Track, std::allocator<Track> > >(std::vector<Track, std::allocator<Track> >*)",
            "std::vector<std::vector<Track, std::allocator<Track> >, std::allocator<std::vector<Track, std::allocator<Track> > > >::resize(unsigned long)",
        ];
        let found = named(frames(&inner).iter()).expect("a type");
        assert_eq!((found.name.as_str(), found.is_sure), ("Track", true));
        let table = [
            "std::__new_allocator<Track*>::allocate(unsigned long, void const*)",
            "std::_Deque_base<Track, std::allocator<Track> >::_M_allocate_map(unsigned long)",
            "std::deque<Track, std::allocator<Track> >::deque()",
        ];
        let found = named(frames(&table).iter()).expect("a type");
        assert_eq!((found.name.as_str(), found.is_sure), ("Track*", true));
        assert_eq!(found.container.as_deref(), Some("std::deque<Track>"));
    }

    #[test]
    fn of_functions_that_the_compiler_merged_the_outermost_has_the_nodes_own_name() {
        let node = "std::__new_allocator<std::_List_node<Track> >::allocate";
        let shared = "std::__shared_count<(__gnu_cxx::_Lock_policy)2>::__shared_count<Shape, std::allocator<void>, int>";
        let block = "std::_Sp_counted_ptr_inplace<Shape, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>";
        let guarded = format!("std::__allocated_ptr<std::allocator<{block} > > std::__allocate_guarded<std::allocator<{block} > >(std::allocator<{block} >&)");
        let tree = "std::_Rb_tree<int, std::pair<const int, Shape>, std::_Select1st<std::pair<const int, Shape> >, std::less<int> >::_M_create_node";
        let of_tree = "std::__new_allocator<std::_Rb_tree_node<std::pair<int const, Shape> > >::allocate";
        let hash = "std::_Hashtable<int, std::pair<const int, Shape>, std::allocator<int>, int>::_M_allocate_buckets";
        let bucket = "std::__new_allocator<std::__detail::_Hash_node_base*>::allocate";
        // The name of the element is a part of the node's.
        let of_node = "std::__new_allocator<std::_List_node<node> >::allocate";
        for (functions, expected, is_sure) in [
            (&[node, &guarded, shared][..], block, false),
            (&[of_node, "std::list<Shape, A>::_M_create_node"], "std::_List_node<Shape>", false),
            (&[node, shared], block, false),
            (&[node, "std::__cxx11::_List_base<Track, A>::_M_get_node"], "std::_List_node<Track>", true),
            (
                &[node, "std::list<Track, A>::_M_create_node", "std::list<Shape, A>::push_back"],
                "std::_List_node<Shape>",
                false,
            ),
            (&[node, tree], "std::_Rb_tree_node<std::pair<const int, Shape> >", false),
            (&[of_tree, tree], "std::_Rb_tree_node<std::pair<int const, Shape> >", true),
            (&[bucket, hash], "std::__detail::_Hash_node_base*", true),
            (
                &[
                    "std::__new_allocator<Deleted>::allocate",
                    "std::__shared_count<2>::__shared_count<Shape*, Own>",
                ],
                "Deleted",
                true,
            ),
        ] {
            let found = named(frames(functions).iter()).expect("a type");
            assert_eq!(
                (type_name_key(&found.name), found.is_sure),
                (type_name_key(expected), is_sure),
                "{functions:?}"
            );
        }
    }

    #[test]
    fn a_function_that_only_has_an_allocator_around_it_names_nothing() {
        let copied = [
            "copy(char const*)",
            "void std::allocator_traits<std::allocator<std::_List_node<Text> > >::construct<Text>(int)",
        ];
        assert_eq!(name(&copied), None);
        assert_eq!(name(&["std::pmr::polymorphic_allocator<int>::allocate(unsigned long)"]), None);
        assert_eq!(name(&["std::vector<int, std::allocator<int> >::push_back(int&&)"]), None);
    }

    #[test]
    fn makers_name_one_object() {
        let unique = "std::_MakeUniq<Track>::__single_object std::make_unique<Track, int>(int&&)";
        assert_eq!(name(&[unique]).map(|found| found.0).as_deref(), Some("Track"));
        let shared = "std::__shared_count<(__gnu_cxx::_Lock_policy)2>::__shared_count<Track*>(Track*)";
        let block = "std::_Sp_counted_ptr<Track*, (__gnu_cxx::_Lock_policy)2>";
        assert_eq!(name(&[shared]).map(|found| found.0).as_deref(), Some(block));
    }

    #[test]
    fn strings_are_characters() {
        let string = "std::__cxx11::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >::_M_create(unsigned long&, unsigned long)";
        assert_eq!(name(&[string]).map(|found| found.0).as_deref(), Some("wchar_t"));
        assert_eq!(name(&["strdup", "main"]), Some(("char".to_owned(), Some("strdup".to_owned()))));
        assert_eq!(name(&["strange", "main"]), None);
    }

    #[test]
    fn the_characters_of_a_string_are_named_alike_whether_its_allocators_function_is_seen_or_not() {
        for (character, string) in [
            ("char", "std::string"),
            ("wchar_t", "std::wstring"),
            ("char16_t", "std::u16string"),
            ("char32_t", "std::u32string"),
            ("Glyph", "std::basic_string<Glyph>"),
        ] {
            let whole = format!("std::__cxx11::basic_string<{character}, std::char_traits<{character}>, std::allocator<{character}> >");
            let create = format!("{whole}::_M_create(unsigned long&, unsigned long)");
            let allocate = format!("std::__new_allocator<{character}>::allocate(unsigned long, void const*)");
            let traits = format!("std::allocator_traits<std::allocator<{character}> >::allocate(std::allocator<{character}>&, unsigned long)");
            let expected = Some((character.to_owned(), Some(string.to_owned())));
            assert_eq!(name(&[&create, "main"]), expected);
            assert_eq!(name(&[&allocate, &traits, &create, "main"]), expected);
        }
        let in_string =
            ["std::__new_allocator<Track>::allocate(unsigned long)", "std::basic_string<char>::assign(long)"];
        assert_eq!(name(&in_string), Some(("Track".to_owned(), None)));
    }

    #[test]
    fn functions_of_c_that_allocate_pass_the_request_on_and_those_that_begin_so_do_not() {
        for function in ["malloc", "reallocarray", "__libc_reallocarray", "realloc", "posix_memalign"] {
            assert!(is_passing(function), "{function}");
            assert!(!is_passing(&format!("{function}_table")), "{function}");
        }
    }
}
