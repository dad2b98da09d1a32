//! What a program's types look like in memory: the facts, without the format that they were read from.

use std::path::PathBuf;

use rustc_hash::FxHashMap;

/// A type's place in [`Layouts::types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub u32);

/// The layouts of all types of one program.
#[derive(Debug, Default)]
pub struct Layouts {
    /// The ABI's name: `x86-64`, `x32`, `i386`, or the architecture's.
    pub abi: String,
    /// Bytes of a pointer.
    pub address_size: u8,
    /// Whether an 8-byte number is aligned to 4 bytes inside a structure (System V ABI, Intel386 supplement, figure 3-1).
    pub packs_wide_numbers: bool,
    /// Every type once: the same name with the same layout in several units is one type.
    pub types: Vec<Type>,
    /// The defined structures, classes and unions, by name.
    pub aggregates: Vec<TypeId>,
    /// Whether a unit's language lets members overlap, as C++ does (`[[no_unique_address]]`). Debug information does not say which do.
    pub overlaps_members: bool,
    /// Whether a unit was built with an option that gives members other alignments than the ABI's, such as GCC's `-fpack-struct=4`.
    pub changes_alignments: bool,
    /// How many units were read.
    pub units: usize,
    /// Whether the units describe types of any kind: those of `-g1` have lines alone, and a program may have numbers alone.
    pub describes_types: bool,
    /// What could not be read, each reason once, with the number of its cases.
    pub unread: Vec<Unread>,
    /// Classes with a destructor that is not trivial, or may be none, their members' and bases' aside.
    pub(crate) destructors: FxHashMap<TypeId, Destructor>,
    pub(crate) derived: Vec<Derived>,
}

/// What follows from a type.
#[derive(Debug, Clone)]
pub(crate) struct Derived {
    alignment: u64,
    /// Whether that follows from what debug information says.
    has_known_alignment: bool,
    nonvirtual_end: u64,
    /// The least and the most bytes from the beginning of an object that a member beside it cannot have, if members may overlap.
    own_bytes: [u64; 2],
    may_be_empty: bool,
    is_dynamic: bool,
    /// It is an array without a length, or ends in one.
    is_flexible: bool,
    destructor: Destructor,
}

impl Derived {
    /// Of a type that is no class.
    fn plain(alignment: u64, size: u64, destructor: Destructor) -> Derived {
        let own_bytes = [size; 2];
        Derived {
            alignment,
            has_known_alignment: true,
            nonvirtual_end: size,
            own_bytes,
            may_be_empty: false,
            is_dynamic: false,
            is_flexible: false,
            destructor,
        }
    }
}

/// Whether the end of an object's lifetime runs code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destructor {
    /// It does not.
    Trivial,
    /// A part of the object is declared only, or the compiler does not say whether it is defaulted.
    Unknown,
    /// It does: of the class, a base or a member.
    NonTrivial,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    /// The sentence for the user.
    pub reason: String,
    /// How often.
    pub count: u64,
}

/// A type. Types refer to others only by containment, so that following the references always ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// A number, a character, a truth value.
    Base {
        /// As the language spells it, `long unsigned int`.
        name: Box<str>,
        /// Bytes.
        size: u64,
        /// Whether it is an integer.
        integer: bool,
    },
    /// A pointer, a reference or a pointer to a member.
    Pointer {
        /// `Node*`.
        name: Box<str>,
        /// Bytes.
        size: u64,
    },
    /// An enumeration.
    Enumeration {
        /// Its qualified name.
        name: Box<str>,
        /// Bytes.
        size: u64,
    },
    /// Another name of a type.
    Typedef {
        /// Without its namespace.
        name: Box<str>,
        /// What it names.
        target: TypeId,
    },
    /// An array of all dimensions.
    Array {
        /// The element's type.
        element: TypeId,
        /// Elements of all dimensions together; none if the length is not known (a flexible array member).
        count: Option<u64>,
        /// Bytes.
        size: u64,
    },
    /// A structure, class or union.
    Aggregate(Box<Aggregate>),
    /// A structure without a definition in the whole program.
    Declared {
        /// Its qualified name.
        name: Box<str>,
    },
    /// Any other: `void`, a function, a type of another language.
    Other {
        /// As it is called.
        name: Box<str>,
        /// Bytes; 0 if not known.
        size: u64,
    },
}

/// The kind of an aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `struct`.
    Struct,
    /// `class`.
    Class,
    /// `union`.
    Union,
}

impl Kind {
    /// The keyword.
    pub fn keyword(self) -> &'static str {
        match self {
            Kind::Struct => "struct",
            Kind::Class => "class",
            Kind::Union => "union",
        }
    }
}

/// A structure, class or union.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Aggregate {
    /// The qualified name.
    pub name: Box<str>,
    /// The keyword.
    pub kind: Kind,
    /// Bytes.
    pub size: u64,
    /// The alignment that the source asks for, in bytes.
    pub explicit_alignment: Option<u64>,
    /// Bases, then members, in the order of the declaration.
    pub members: Vec<Member>,
    /// Where it is declared.
    pub location: Option<Location>,
}

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The file's name, without its folders.
    pub file: Box<str>,
    /// From 1.
    pub line: u32,
}

impl std::fmt::Display for Location {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}:{}", self.file, self.line)
    }
}

/// What a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A data member.
    Field,
    /// A base class.
    Base,
    /// A virtual base class.
    VirtualBase,
    /// The pointer to the virtual table.
    VirtualTable,
    /// A member of one variant of a tagged union (Rust's enumerations).
    Variant,
}

/// One member of an aggregate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// None for an anonymous structure or union; a base has its class's name.
    pub name: Option<Box<str>>,
    /// What it is.
    pub role: Role,
    /// Bytes from the beginning of the aggregate. None for a virtual base whose place is not known.
    pub offset: Option<u64>,
    /// The bits of a bit field.
    pub bits: Option<Bits>,
    /// The alignment that the source asks for, in bytes.
    pub explicit_alignment: Option<u64>,
    /// Its type.
    pub ty: TypeId,
}

/// Where a bit field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bits {
    /// Bits from the beginning of the aggregate, counted as the byte order of the program counts them.
    pub offset: u64,
    /// Bits.
    pub size: u64,
}

impl Layouts {
    /// The type.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// The aggregate that an identifier from [`Layouts::aggregates`] names.
    pub fn aggregate(&self, id: TypeId) -> Option<&Aggregate> {
        match self.get(id) {
            Type::Aggregate(aggregate) => Some(aggregate),
            _ => None,
        }
    }

    /// Without typedefs.
    pub fn stripped(&self, mut id: TypeId) -> TypeId {
        while let Type::Typedef { target, .. } = self.get(id) {
            id = *target;
        }
        id
    }

    /// The bytes of one object of the type; 0 where they are not known.
    pub fn size(&self, id: TypeId) -> u64 {
        match self.get(self.stripped(id)) {
            Type::Base { size, .. }
            | Type::Pointer { size, .. }
            | Type::Enumeration { size, .. }
            | Type::Array { size, .. }
            | Type::Other { size, .. } => *size,
            Type::Aggregate(aggregate) => aggregate.size,
            Type::Declared { .. } | Type::Typedef { .. } => 0,
        }
    }

    /// The type as the source calls it.
    pub fn name(&self, id: TypeId) -> String {
        match self.get(id) {
            Type::Base { name, .. }
            | Type::Pointer { name, .. }
            | Type::Enumeration { name, .. }
            | Type::Typedef { name, .. }
            | Type::Declared { name }
            | Type::Other { name, .. } => name.to_string(),
            Type::Array { element, count, .. } => match count {
                Some(count) => format!("{}[{count}]", self.name(*element)),
                None => format!("{}[]", self.name(*element)),
            },
            Type::Aggregate(aggregate) => aggregate.name.to_string(),
        }
    }

    /// The alignment of the type as a member, in bytes, by the rules of the ABI; at least 1.
    pub fn alignment(&self, id: TypeId) -> u64 {
        self.derived[id.0 as usize].alignment
    }

    /// The alignment of a member: its own (`alignas`), or its type's; 1 at least.
    pub(crate) fn member_alignment(&self, member: &Member) -> u64 {
        member.explicit_alignment.unwrap_or_else(|| self.alignment(member.ty)).max(1)
    }

    /// The end of what a class has without its virtual bases, in bytes, without padding behind the last member.
    pub(crate) fn nonvirtual_end(&self, id: TypeId) -> u64 {
        self.derived[id.0 as usize].nonvirtual_end
    }

    /// So many bytes of an object of the type no member beside it can have: the least and the most if the member is declared to overlap
    /// and its class is no plain data.
    pub(crate) fn own_bytes(&self, id: TypeId) -> [u64; 2] {
        match self.overlaps_members {
            true => self.derived[id.0 as usize].own_bytes,
            false => [self.size(id); 2],
        }
    }

    /// Whether the type is a class without members, or with such members alone, which may have no bytes of their own.
    pub(crate) fn may_be_empty(&self, id: TypeId) -> bool {
        self.derived[id.0 as usize].may_be_empty
    }

    /// Whether the type is a structure that ends in an array without a length: each object has a block of its own, and C has no arrays of
    /// such structures (C17, 6.7.2.1). GCC's older form of it has the length 0.
    pub fn ends_in_flexible_array(&self, id: TypeId) -> bool {
        let is_aggregate = matches!(self.get(self.stripped(id)), Type::Aggregate(_));
        is_aggregate && self.derived[id.0 as usize].is_flexible
    }

    /// The array without a length that a structure ends in: the type of its elements, and where in the structure it begins.
    pub fn flexible_array(&self, id: TypeId) -> Option<(TypeId, u64)> {
        let (mut at, mut offset) = (self.stripped(id), 0_u64);
        while self.derived[at.0 as usize].is_flexible {
            match self.get(at) {
                Type::Array { element, .. } => return Some((*element, offset)),
                Type::Aggregate(aggregate) => {
                    let is_it = |member: &&Member| self.derived[member.ty.0 as usize].is_flexible;
                    let member = aggregate.members.iter().rev().find(is_it)?;
                    offset = offset.checked_add(member.offset?)?;
                    at = self.stripped(member.ty);
                }
                _ => return None,
            }
        }
        None
    }

    /// Whether the end of an object's lifetime runs code.
    pub fn destructor(&self, id: TypeId) -> Destructor {
        self.derived[id.0 as usize].destructor
    }

    /// Whether objects of the class have a pointer to a virtual table.
    pub(crate) fn is_dynamic(&self, id: TypeId) -> bool {
        self.derived[id.0 as usize].is_dynamic
    }

    /// The alignment of an aggregate that may not be one of the list.
    pub(crate) fn alignment_of_aggregate(&self, aggregate: &Aggregate) -> u64 {
        self.derived_of(aggregate).alignment
    }

    /// Whether the alignment of an aggregate is known, and those of its members are. `__attribute__((aligned(2)))` has no effect on an
    /// `int` unless it is packed, too: Clang notes the 2 in either case.
    pub(crate) fn has_known_alignment(&self, aggregate: &Aggregate) -> bool {
        self.derived_of(aggregate).has_known_alignment
    }

    /// Computes what follows from the types. Each type stands behind those that it contains.
    pub(crate) fn derive(&mut self) {
        self.derived = Vec::with_capacity(self.types.len());
        for index in 0..self.types.len() {
            let derived = match &self.types[index] {
                Type::Base { name, size, .. } | Type::Enumeration { name, size } => {
                    Derived::plain(self.number_alignment(name, *size), *size, Destructor::Trivial)
                }
                Type::Pointer { size, .. } => {
                    let alignment = (*size).min(u64::from(self.address_size)).max(1);
                    Derived::plain(alignment, *size, Destructor::Trivial)
                }
                Type::Typedef { target, .. } => self.derived[target.0 as usize].clone(),
                Type::Array { element, size, count, .. } => {
                    let Derived { alignment, has_known_alignment, destructor, .. } =
                        self.derived[element.0 as usize];
                    let is_flexible = count.is_none_or(|count| count == 0);
                    Derived {
                        has_known_alignment,
                        is_flexible,
                        ..Derived::plain(alignment, *size, destructor)
                    }
                }
                Type::Aggregate(aggregate) => {
                    let mut of = self.derived_of(aggregate);
                    if let Some(own) = self.destructors.get(&TypeId(index as u32)) {
                        of.destructor = of.destructor.max(*own);
                    }
                    of
                }
                // Clang only declares some classes of members that it does not construct: their size and alignment are not known.
                Type::Declared { .. } => {
                    Derived { has_known_alignment: false, ..Derived::plain(1, 0, Destructor::Unknown) }
                }
                Type::Other { size, .. } => Derived::plain(1, *size, Destructor::Trivial),
            };
            self.derived.push(derived);
        }
    }

    /// The alignment is the largest of a member that the members' places do not contradict: a packed structure's is smaller.
    fn derived_of(&self, aggregate: &Aggregate) -> Derived {
        let mut of = Derived::plain(1, 0, Destructor::Trivial);
        of.may_be_empty = true;
        let mut is_packed = false;
        for member in &aggregate.members {
            let below = &self.derived[member.ty.0 as usize];
            // The last member's, or of a union any one's.
            of.is_flexible = below.is_flexible || of.is_flexible && aggregate.kind == Kind::Union;
            // A union destroys none of its members ([class.dtor]).
            if aggregate.kind != Kind::Union {
                of.destructor = of.destructor.max(below.destructor);
            }
            let mut own = member.explicit_alignment.unwrap_or(below.alignment);
            of.has_known_alignment &= below.has_known_alignment && own >= below.alignment;
            of.is_dynamic |= match member.role {
                Role::VirtualTable | Role::VirtualBase => true,
                Role::Base => below.is_dynamic,
                Role::Field | Role::Variant => false,
            };
            let has_no_bytes = below.may_be_empty && member.bits.is_none();
            of.may_be_empty &= has_no_bytes && matches!(member.role, Role::Base | Role::Field);
            for (own, bytes) in of.own_bytes.iter_mut().zip(self.member_bytes(member, below)) {
                *own = (*own).max(bytes);
            }
            if let Some(offset) = member.offset {
                let end = match (member.role, member.bits) {
                    (Role::VirtualBase, _) => 0,
                    (_, Some(bits)) => bits.offset.saturating_add(bits.size).div_ceil(8),
                    (Role::Base, None) if below.nonvirtual_end == 0 => 0,
                    (Role::Base, None) => offset.saturating_add(below.nonvirtual_end),
                    (_, None) => offset.saturating_add(self.size(member.ty)),
                };
                of.nonvirtual_end = of.nonvirtual_end.max(end);
                if member.bits.is_none() {
                    is_packed |= own > largest_power(offset);
                    own = own.min(largest_power(offset));
                }
            }
            of.alignment = of.alignment.max(own);
        }
        of.has_known_alignment &= aggregate.explicit_alignment.is_none_or(|own| own >= of.alignment);
        of.alignment = match aggregate.explicit_alignment {
            Some(alignment) => alignment.max(1),
            None => {
                is_packed |= of.alignment > largest_power(aggregate.size);
                let most = of.alignment.min(largest_power(aggregate.size));
                // A packed structure may have a smaller one: `#pragma pack(2)`, and members that need no more where they are.
                of.has_known_alignment &= !is_packed || most == 1;
                most
            }
        };
        of
    }

    /// Up to which byte of the class a member has it for itself: the least and the most. What is behind virtual bases is not known.
    fn member_bytes(&self, member: &Member, of: &Derived) -> [u64; 2] {
        let Some(offset) = member.offset else { return [0, u64::MAX] };
        let size = self.size(member.ty);
        let [least, most] = match (member.role, member.bits) {
            (_, Some(bits)) => return [bits.offset.saturating_add(bits.size).div_ceil(8); 2],
            (_, None) if of.may_be_empty => return [0, offset.saturating_add(size)],
            // No class with a virtual table is plain data (Itanium C++ ABI, 1.1, "POD").
            (Role::Base, None) if of.is_dynamic => of.own_bytes,
            (_, None) => [of.own_bytes[0], size],
        };
        [offset.saturating_add(least), offset.saturating_add(most)]
    }

    fn number_alignment(&self, name: &str, size: u64) -> u64 {
        let natural = match size {
            // Complex numbers are aligned as their parts.
            _ if name.contains("complex") => largest_power(size / 2),
            12 => 4,
            _ => largest_power(size),
        };
        // Intel386 supplement: `double` and `long long` to 4; `__float128` keeps 16 (psABI 1.1, table 2.1).
        match (self.packs_wide_numbers, size) {
            (true, ..=12) => natural.min(4),
            (true, 16) if name.contains("complex") => 4,
            _ => natural.min(16),
        }
    }
}

/// The largest power of two that divides the number; a large one for 0.
pub(crate) fn largest_power(number: u64) -> u64 {
    match number {
        0 => 1 << 32,
        _ => 1 << number.trailing_zeros().min(32),
    }
}

/// A file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// It cannot be opened.
    #[error("{}: {source}", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no file that programs are in.
    #[error("{}: {reason}", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
}
