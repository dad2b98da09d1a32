//! What code is made of.

use crate::code::class::Class;

/// Counts of instructions, or of bytes where the name says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// All instructions, nops included.
    pub instructions: u64,
    /// All bytes.
    pub bytes: u64,
    /// Bytes of the class nop.
    pub nop_bytes: u64,
    /// By class, in the order of [`Class::ALL`].
    pub classes: [u64; Class::ALL.len()],
    /// Functions that begin with a frame: a frame pointer, saved registers, or room on the stack.
    pub prologues: u64,
    /// Stores of a register to the stack, pushes excepted.
    pub stack_stores: u64,
    /// Loads of a register from the stack, pops excepted.
    pub stack_loads: u64,
    /// Address-size prefixes (0x67).
    pub address_size: u64,
    /// REX prefixes.
    pub rex: u64,
    /// Constants of 64 bits in an instruction (`movabs`).
    pub wide_constants: u64,
    /// Operands relative to the instruction pointer.
    pub pc_relative: u64,
    /// Loads from the global offset table.
    pub got_loads: u64,
    /// Calls and jumps through the procedure linkage table.
    pub plt_calls: u64,
    /// Calls of `__x86.get_pc_thunk`, and the same by call and pop.
    pub pc_thunks: u64,
}

impl Counts {
    /// Adds another's.
    pub fn add(&mut self, other: &Counts) {
        for (sum, more) in self.classes.iter_mut().zip(other.classes) {
            *sum += more;
        }
        self.instructions += other.instructions;
        self.bytes += other.bytes;
        self.nop_bytes += other.nop_bytes;
        self.prologues += other.prologues;
        self.stack_stores += other.stack_stores;
        self.stack_loads += other.stack_loads;
        self.address_size += other.address_size;
        self.rex += other.rex;
        self.wide_constants += other.wide_constants;
        self.pc_relative += other.pc_relative;
        self.got_loads += other.got_loads;
        self.plt_calls += other.plt_calls;
        self.pc_thunks += other.pc_thunks;
    }

    /// One more instruction of a class.
    pub(super) fn one(&mut self, class: Class, bytes: u64) {
        self.instructions += 1;
        self.bytes += bytes;
        self.classes[class as usize] += 1;
        if class == Class::Nop {
            self.nop_bytes += bytes;
        }
    }

    /// Instructions of a class.
    pub fn of(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }

    /// Instructions without those that do nothing.
    pub fn without_padding(&self) -> u64 {
        self.instructions - self.of(Class::Nop)
    }
}
