//! The kinds of evidence of a type.

/// What a type was found by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A template of the standard library in the stack: `std::__new_allocator<T>::allocate`.
    Allocator,
    /// A function of a library that allocates one kind of memory: `std::string`, `strdup`, the C++ library's reserve.
    Library,
    /// The constructor that is called, or inlined, behind the allocation.
    Constructor,
    /// The call's debug information, where the compiler notes what it allocates (clang).
    Call,
    /// The source line: `new T`, `sizeof(T)`.
    SourceLine,
    /// The virtual table that the code behind the allocation stores into the block.
    VirtualTable,
    /// The types of pointers that the calling function names: variables, parameters, its result, members.
    Variables,
    /// Nothing names a type.
    #[default]
    None,
}

impl Source {
    /// As JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Source::Allocator => "allocator",
            Source::Library => "library",
            Source::Constructor => "constructor",
            Source::Call => "call",
            Source::SourceLine => "source_line",
            Source::VirtualTable => "virtual_table",
            Source::Variables => "variables",
            Source::None => "none",
        }
    }
}
