//! Classes of instructions: those of innocente-2012 for floating point, and five for the rest.

/// What an instruction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Arithmetic, logic, comparisons and moves between integer registers.
    Integer,
    /// Jumps, calls, returns.
    Branch,
    /// Moves between a register and memory, outside of the stack class.
    LoadStore,
    /// push, pop, enter, leave; changes of the stack pointer.
    Stack,
    /// Nothing: padding, traps between functions, marks of places that branches may lead to.
    Nop,
    /// x87 and MMX.
    X87,
    /// SSE, one float.
    SseScalarSingle,
    /// SSE, packed floats.
    SsePackedSingle,
    /// SSE, one double.
    SseScalarDouble,
    /// SSE, packed doubles.
    SsePackedDouble,
    /// SSE on integers, and moves of whole registers.
    SseInteger,
    /// AVX, AVX2, FMA.
    Avx,
    /// AVX-512.
    Avx512,
    /// Floating point and vectors of other architectures.
    Float,
    /// Bytes that are no instruction.
    Invalid,
}

impl Class {
    /// All, in the order of tables.
    pub const ALL: [Class; 15] = [
        Class::Integer,
        Class::Branch,
        Class::LoadStore,
        Class::Stack,
        Class::Nop,
        Class::X87,
        Class::SseScalarSingle,
        Class::SsePackedSingle,
        Class::SseScalarDouble,
        Class::SsePackedDouble,
        Class::SseInteger,
        Class::Avx,
        Class::Avx512,
        Class::Float,
        Class::Invalid,
    ];

    /// Its name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Class::Integer => "integer",
            Class::Branch => "branch",
            Class::LoadStore => "load_store",
            Class::Stack => "stack",
            Class::Nop => "nop",
            Class::X87 => "x87",
            Class::SseScalarSingle => "sse_scalar_single",
            Class::SsePackedSingle => "sse_packed_single",
            Class::SseScalarDouble => "sse_scalar_double",
            Class::SsePackedDouble => "sse_packed_double",
            Class::SseInteger => "sse_integer",
            Class::Avx => "avx",
            Class::Avx512 => "avx512",
            Class::Float => "float",
            Class::Invalid => "invalid",
        }
    }
}
