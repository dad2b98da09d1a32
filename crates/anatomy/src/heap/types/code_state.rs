//! What is known at an instruction while code is followed: which registers and places of the stack hold a new block or the address of
//! a virtual table.

use std::collections::BTreeMap;

use iced_x86::{Instruction, Mnemonic, OpAccess, Register};

use crate::elf::type_information::Class;

/// What a register or a place on the stack holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Held {
    /// The new block's address.
    Block,
    /// A virtual table of this class.
    Table(Class),
    /// The beginning of the class's virtual table: objects have the address two words behind it.
    Beginning(Class),
}

/// What is known at an instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct State {
    pub(super) registers: BTreeMap<Register, Held>,
    /// By the frame's register and the displacement from it; by the stack pointer's, from where it was when the function began or
    /// aligned it.
    pub(super) stack: BTreeMap<(Register, i64), Held>,
    /// Bytes pushed since then; none where that is not known.
    pub(super) pushed: Option<i64>,
    pub(super) is_frame: bool,
    /// Whether the block is the function's first argument, which i386 has on the stack.
    pub(super) takes_block: bool,
    pub(super) last: Last,
}

/// What was last stored at the block's beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Last {
    #[default]
    Nothing,
    Table,
    /// What is no table that is known: the class is not known either.
    Other,
}

impl State {
    /// Whether something holds the block, or may yet load it from the function's arguments.
    pub(super) fn has_argument_or_block(&self) -> bool {
        self.takes_block
            || self.registers.values().chain(self.stack.values()).any(|held| *held == Held::Block)
    }

    /// What holds on both ways.
    pub(super) fn merged(&self, other: &State) -> State {
        fn both<Key: Ord + Copy>(a: &BTreeMap<Key, Held>, b: &BTreeMap<Key, Held>) -> BTreeMap<Key, Held> {
            let same = a.iter().filter(|(key, held)| b.get(key) == Some(held));
            same.map(|(key, held)| (*key, held.clone())).collect()
        }
        State {
            registers: both(&self.registers, &other.registers),
            stack: both(&self.stack, &other.stack),
            pushed: self.pushed.filter(|_| self.pushed == other.pushed),
            is_frame: self.is_frame && other.is_frame,
            takes_block: self.takes_block && other.takes_block,
            last: self.last.max(other.last),
        }
    }
}

/// The register that holds all of it: `rax` of `eax`, `zmm0` of `xmm0`.
pub(super) fn full(register: Register) -> Register {
    register.full_register()
}

pub(super) fn is_write(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite)
}

/// Whether the first operand is only written.
pub(super) fn is_store(instruction: &Instruction) -> bool {
    use Mnemonic::{
        Mov, Movaps, Movd, Movdqa, Movdqu, Movhps, Movlps, Movq, Movsd, Movss, Movups, Vmovaps, Vmovd,
        Vmovdqa, Vmovdqu, Vmovq, Vmovups,
    };
    matches!(
        instruction.mnemonic(),
        Mov | Movaps
            | Movd
            | Movdqa
            | Movdqu
            | Movhps
            | Movlps
            | Movq
            | Movsd
            | Movss
            | Movups
            | Vmovaps
            | Vmovd
            | Vmovdqa
            | Vmovdqu
            | Vmovq
            | Vmovups
    )
}

/// Whether the low half of the vector register stays: compilers store the table and the next member at once.
pub(super) fn is_high_half(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{Movhps, Pinsrd, Pinsrq, Punpckldq, Punpcklqdq, Unpcklps};
    matches!(mnemonic, Movhps | Pinsrd | Pinsrq | Punpckldq | Punpcklqdq | Unpcklps)
}

pub(super) fn stack_moves(instruction: &Instruction, state: &mut State, word: i64) {
    let moved = match instruction.mnemonic() {
        Mnemonic::Push => Some(word),
        Mnemonic::Pop => Some(-word),
        Mnemonic::Sub => instruction.try_immediate(1).ok().map(|bytes| bytes as i64),
        Mnemonic::Add => instruction.try_immediate(1).ok().map(|bytes| -(bytes as i64)),
        _ => None,
    };
    match moved {
        Some(moved) => state.pushed = state.pushed.map(|pushed| pushed + moved),
        // An aligned stack: places count from here on.
        None => {
            state.stack.retain(|(base, _), _| *base != Register::RSP);
            state.pushed = Some(0);
            state.takes_block = false;
        }
    }
}

pub(super) fn set(stack: &mut BTreeMap<(Register, i64), Held>, place: (Register, i64), held: Option<Held>) {
    match held {
        Some(held) => stack.insert(place, held),
        None => stack.remove(&place),
    };
}
