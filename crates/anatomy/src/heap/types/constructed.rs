//! The class of the object that code constructs in a new block: the virtual table whose address it stores at the block's beginning,
//! itself or in a constructor that it calls (Itanium C++ ABI, 2.5.2). x86-64, x32 and i386.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::code_state::{full, is_high_half, is_store, is_write, set, stack_moves, Held, Last, State};
use crate::code::is_idle;
use crate::elf::loaded::Loaded;
use crate::elf::relocations::Pointee;
use crate::elf::type_information::{of_symbol, Class, TypeInformation};
use crate::elf::{section_flag, Elf, I386, RELOCATABLE, X86_64};

/// So many instructions behind an allocation are followed, those of constructors included.
const MOST_INSTRUCTIONS: usize = 4096;
/// So many constructors within each other.
const DEEPEST: u32 = 6;
/// No function in which values are followed up to a call is larger.
const LARGEST_FUNCTION: u64 = 1 << 16;
/// What calls keep (System V ABI, x86-64 supplement, figure 3.4; Intel386 supplement, figure 2.3), in 64-bit and 32-bit code.
const KEPT_64: &[Register] =
    &[Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];
const KEPT_32: &[Register] = &[Register::RBX, Register::RBP, Register::RSI, Register::RDI];

/// The class of the object that is constructed behind each call of the allocator, by the address to which the call returns. Nothing
/// for calls behind which no class with virtual functions is constructed, or several that are no bases of one.
pub fn read(path: &Path, returns: &FxHashSet<u64>) -> FxHashMap<u64, String> {
    std::fs::read(path).map(|bytes| read_bytes(&bytes, returns)).unwrap_or_default()
}

/// The same of a program in memory.
pub fn read_bytes(bytes: &[u8], returns: &FxHashSet<u64>) -> FxHashMap<u64, String> {
    let Ok(elf) = Elf::read(bytes) else { return FxHashMap::default() };
    let bits = match elf.machine {
        X86_64 => 64,
        I386 => 32,
        _ => return FxHashMap::default(),
    };
    if elf.kind == RELOCATABLE {
        return FxHashMap::default();
    }
    let loaded = Loaded::new(&elf);
    let classes = TypeInformation::of(&elf, &loaded);
    // The address that position-independent code of i386 adds offsets to (System V ABI, Intel386 supplement, "Global Offset Table").
    let table = elf.section(".got.plt").or_else(|| elf.section(".got"));
    let global_offsets = table.filter(|_| bits == 32).map(|section| section.address);
    let records = elf.section(".eh_frame").map(|section| elf.unwind_records(section)).unwrap_or_default();
    let mut functions: Vec<Range<u64>> = records.into_iter().map(|record| record.code).collect();
    functions.sort_unstable_by_key(|function| function.start);
    let program = Program { elf: &elf, loaded: &loaded, classes: &classes, bits, global_offsets, functions };
    let mut addresses: Vec<u64> = returns.iter().copied().collect();
    addresses.sort_unstable();
    // Calls of one function follow each other: it is followed once.
    let mut last: Option<(&Range<u64>, BTreeMap<u64, State>)> = None;
    let of_address = |address: u64| {
        let function = program.function(address);
        if last.as_ref().map(|(last, _)| *last) != function {
            last = function.map(|function| (function, program.states(function)));
        }
        let states = last.as_ref().map(|(_, states)| states);
        let state = states.and_then(|states| states.get(&address)).cloned().unwrap_or_default();
        Some((address, program.constructed(address, state)?))
    };
    addresses.into_iter().filter_map(of_address).collect()
}

struct Program<'r, 'a> {
    elf: &'r Elf<'a>,
    loaded: &'r Loaded<'r, 'a>,
    classes: &'r TypeInformation<'r, 'a>,
    bits: u32,
    global_offsets: Option<u64>,
    /// The code of each function, or of a part of it, in order.
    functions: Vec<Range<u64>>,
}

/// One function that is followed.
struct Walk<'p, 'r, 'a> {
    program: &'p Program<'r, 'a>,
    found: Vec<Class>,
    left: usize,
    /// Where branches have led, and what was known there.
    seen: BTreeSet<(u64, State)>,
}

impl Program<'_, '_> {
    /// The class that is constructed behind the call that returns to this address. `state` is what was known before.
    fn constructed(&self, address: u64, mut state: State) -> Option<String> {
        let mut walk = self.walk();
        // Where nothing is known, places count from the call on.
        state.pushed = state.pushed.or(Some(0));
        state.registers.insert(Register::RAX, Held::Block);
        if walk.follow(address, state, 0) == Last::Other {
            return None;
        }
        // A constructor stores the tables of its bases before its own, and a destructor after it.
        let is_most_derived =
            |class: &&Class| walk.found.iter().all(|other| other == *class || self.is_base(other, class));
        walk.found.iter().find(is_most_derived).map(|class| class.name.clone())
    }

    /// The function that has an address, or whose call returns to it.
    fn function(&self, address: u64) -> Option<&Range<u64>> {
        let behind = self.functions.partition_point(|function| function.start < address);
        let function = self.functions.get(behind.checked_sub(1)?)?;
        (address <= function.end).then_some(function)
    }

    /// The tables that registers and places of the frame hold at each instruction of a function, whatever way it has come there:
    /// compilers load them before loops. Nothing is known of large functions, and of those whose ways are not all known.
    fn states(&self, function: &Range<u64>) -> BTreeMap<u64, State> {
        let mut states = BTreeMap::new();
        if function.end.wrapping_sub(function.start) > LARGEST_FUNCTION {
            return states;
        }
        let begin = State { pushed: Some(0), ..State::default() };
        if !self.spread(function, function.start, begin, &mut states) {
            return BTreeMap::new();
        }
        // Code that no branch leads to, as that of exceptions, comes back with anything.
        let mut decoder = self.decoder(function.start);
        while decoder.can_decode() && decoder.ip() < function.end {
            let at = decoder.ip();
            let instruction = decoder.decode();
            let is_reached = states.contains_key(&at) || is_idle(&instruction);
            if !is_reached && !self.spread(function, at, State::default(), &mut states) {
                return BTreeMap::new();
            }
        }
        states
    }

    /// Follows a function's code from an address on, and notes what is known at each instruction. Whether all its
    /// ways are known: a jump through a table may lead anywhere.
    fn spread(
        &self,
        function: &Range<u64>,
        from: u64,
        begin: State,
        states: &mut BTreeMap<u64, State>,
    ) -> bool {
        let (mut walk, mut factory) = (self.walk(), InstructionInfoFactory::new());
        let mut ways = vec![(from, begin)];
        while let Some((address, mut state)) = ways.pop() {
            let mut decoder = self.decoder(address);
            while decoder.can_decode() && function.contains(&decoder.ip()) {
                if let Some(known) = states.get(&decoder.ip()) {
                    state = known.merged(&state);
                    if state == *known {
                        break;
                    }
                }
                states.insert(decoder.ip(), state.clone());
                let instruction = decoder.decode();
                match instruction.flow_control() {
                    _ if instruction.is_invalid() => break,
                    FlowControl::Next => walk.step(&instruction, &mut state, &mut factory),
                    FlowControl::ConditionalBranch => {
                        ways.push((instruction.near_branch_target(), state.clone()));
                    }
                    FlowControl::UnconditionalBranch => {
                        ways.push((instruction.near_branch_target(), state.clone()));
                        break;
                    }
                    FlowControl::Call | FlowControl::IndirectCall => self.returned(&mut state),
                    FlowControl::IndirectBranch => return false,
                    _ => break,
                }
            }
        }
        true
    }

    /// What a call leaves.
    fn returned(&self, state: &mut State) {
        state.registers.retain(|register, _| self.kept().contains(register));
    }

    fn kept(&self) -> &'static [Register] {
        if self.bits == 64 {
            KEPT_64
        } else {
            KEPT_32
        }
    }

    fn walk(&self) -> Walk<'_, '_, '_> {
        Walk { program: self, found: Vec::new(), left: MOST_INSTRUCTIONS, seen: BTreeSet::new() }
    }

    fn is_base(&self, base: &Class, derived: &Class) -> bool {
        base.information != 0
            && derived.information != 0
            && self.classes.is_same_or_base(base.information, derived.information)
    }

    fn code(&self, address: u64) -> &[u8] {
        let is_code = self.elf.sections.iter().any(|section| {
            section.has(section_flag::EXECINSTR)
                && address.checked_sub(section.address).is_some_and(|at| at < section.size)
        });
        if is_code {
            self.loaded.bytes(address)
        } else {
            &[]
        }
    }

    /// What an address is: the one that objects have, or the beginning of a table.
    fn held_at(&self, address: u64) -> Option<Held> {
        self.classes.with_table(address).map(Held::Table).or_else(|| {
            let table = address.checked_add(2 * self.word())?;
            self.classes.with_table(table).map(Held::Beginning)
        })
    }

    /// What a word of the file holds once it is loaded.
    fn held_in(&self, address: u64) -> Option<Held> {
        match self.loaded.pointee(address)? {
            Pointee::Address(value) => self.held_at(value),
            Pointee::External(name) => of_symbol(name).map(Held::Beginning),
        }
    }

    /// Where a jump through a table leads: the entry of the linkage table is `jmp *slot`.
    fn through_table(&self, address: u64) -> u64 {
        let mut decoder = self.decoder(address);
        for _ in 0..2 {
            if !decoder.can_decode() {
                break;
            }
            let instruction = decoder.decode();
            let slot = match instruction.mnemonic() {
                Mnemonic::Jmp if instruction.op0_kind() == OpKind::Memory => self.absolute(&instruction),
                Mnemonic::Endbr32 | Mnemonic::Endbr64 => continue,
                _ => None,
            };
            if let Some(Pointee::Address(target)) = slot.and_then(|slot| self.loaded.pointee(slot)) {
                return target;
            }
            break;
        }
        address
    }

    fn decoder(&self, address: u64) -> Decoder<'_> {
        Decoder::with_ip(self.bits, self.code(address), address, DecoderOptions::NONE)
    }

    /// The address of a memory operand without a register, or relative to the instruction or to the global offset table.
    fn absolute(&self, instruction: &Instruction) -> Option<u64> {
        if instruction.memory_index() != Register::None {
            return None;
        }
        match instruction.memory_base() {
            Register::RIP | Register::EIP => Some(instruction.ip_rel_memory_address()),
            Register::None => Some(instruction.memory_displacement64()),
            Register::ESP | Register::EBP => None,
            _ => {
                let displacement = i64::from(instruction.memory_displacement32() as i32);
                let table = self.global_offsets?;
                Some(table.wrapping_add_signed(displacement) & 0xffff_ffff)
            }
        }
    }

    /// Bytes of a pointer in registers.
    fn word(&self) -> u64 {
        self.elf.word()
    }
}

impl Walk<'_, '_, '_> {
    /// Follows the code from an address on, and both ways of a branch, as long as something holds the block: what is at the block's
    /// beginning in the end.
    fn follow(&mut self, address: u64, state: State, depth: u32) -> Last {
        let mut ways = vec![(address, state)];
        let mut factory = InstructionInfoFactory::new();
        let mut last = Last::Nothing;
        while let Some((address, mut state)) = ways.pop() {
            if !self.seen.insert((address, state.clone())) {
                continue;
            }
            let program = self.program;
            // Behind a call that does not return there is another function.
            let end = program.function(address.saturating_add(1)).map_or(u64::MAX, |function| function.end);
            let mut decoder = program.decoder(address);
            while decoder.can_decode() && decoder.ip() < end && state.has_argument_or_block() {
                if self.left == 0 {
                    return Last::Other;
                }
                self.left -= 1;
                let instruction = decoder.decode();
                match instruction.flow_control() {
                    _ if instruction.is_invalid() => break,
                    FlowControl::Next => self.step(&instruction, &mut state, &mut factory),
                    FlowControl::ConditionalBranch => {
                        ways.push((instruction.near_branch_target(), state.clone()));
                    }
                    FlowControl::UnconditionalBranch => {
                        ways.push((instruction.near_branch_target(), state.clone()));
                        break;
                    }
                    FlowControl::Call | FlowControl::IndirectCall => {
                        self.call(&instruction, &mut state, depth)
                    }
                    _ => break,
                }
            }
            last = last.max(state.last);
        }
        last
    }

    /// A constructor that is called with the block as its first argument.
    fn call(&mut self, instruction: &Instruction, state: &mut State, depth: u32) {
        let has_block = match self.program.bits {
            64 => state.registers.get(&Register::RDI) == Some(&Held::Block),
            _ => state
                .pushed
                .is_some_and(|pushed| state.stack.get(&(Register::RSP, -pushed)) == Some(&Held::Block)),
        };
        let is_direct = instruction.flow_control() == FlowControl::Call;
        if has_block && is_direct && depth < DEEPEST {
            let target = self.program.through_table(instruction.near_branch_target());
            let is_32 = self.program.bits == 32;
            let mut inner = State { pushed: Some(0), takes_block: is_32, ..State::default() };
            if !is_32 {
                inner.registers.insert(Register::RDI, Held::Block);
            }
            match self.follow(target, inner, depth + 1) {
                Last::Nothing => {}
                last => state.last = last,
            }
        }
        self.program.returned(state);
    }

    fn step(&mut self, instruction: &Instruction, state: &mut State, factory: &mut InstructionInfoFactory) {
        let moved = self.moved(instruction, state);
        let place = self.place(instruction, state);
        if instruction.op0_kind() == OpKind::Memory && instruction.op_count() >= 2 && is_store(instruction) {
            self.store(instruction, state, moved.as_ref());
            if let Some(place) = place {
                set(&mut state.stack, place, moved);
            }
            return;
        }
        let keeps_low = is_high_half(instruction.mnemonic());
        for used in factory.info(instruction).used_registers() {
            if !is_write(used.access()) || keeps_low && used.register().is_vector_register() {
                continue;
            }
            let register = used.register().full_register();
            if register == Register::RSP {
                stack_moves(instruction, state, i64::from(self.program.bits / 8));
            } else {
                state.registers.remove(&register);
                if register == Register::RBP {
                    state.stack.retain(|(base, _), _| *base != Register::RBP);
                    state.is_frame = instruction.mnemonic() == Mnemonic::Mov
                        && instruction.op1_register().full_register() == Register::RSP
                        && state.pushed == Some(i64::from(self.program.bits / 8));
                }
            }
        }
        match (instruction.mnemonic(), moved) {
            (Mnemonic::Push, held) => {
                if let Some(pushed) = state.pushed {
                    set(&mut state.stack, (Register::RSP, -pushed), held);
                }
            }
            (_, Some(held)) if instruction.op0_kind() == OpKind::Register => {
                let register = instruction.op0_register();
                if register.size() as u64 >= self.program.word() {
                    state.registers.insert(full(register), held);
                }
            }
            _ => {}
        }
    }

    /// What an instruction moves, loads or computes, if that is known.
    fn moved(&self, instruction: &Instruction, state: &State) -> Option<Held> {
        use Mnemonic::{
            Add, Lea, Mov, Movaps, Movd, Movdqa, Movdqu, Movq, Movss, Movups, Push, Vmovaps, Vmovd, Vmovdqa,
            Vmovdqu, Vmovq, Vmovups,
        };
        let source = match instruction.mnemonic() {
            Push => 0,
            Mov | Movq | Movd | Movaps | Movups | Movdqa | Movdqu | Movss | Vmovq | Vmovd | Vmovaps
            | Vmovups | Vmovdqa | Vmovdqu => 1,
            Lea => {
                let base = full(instruction.memory_base());
                let behind = instruction.memory_displacement64();
                let is_plain = instruction.memory_index() == Register::None;
                return match state.registers.get(&base) {
                    Some(held) if is_plain => self.behind_beginning(held, behind),
                    Some(_) => None,
                    None => self.program.held_at(self.program.absolute(instruction)?),
                };
            }
            Add => {
                let held = state.registers.get(&full(instruction.op0_register()))?;
                return self.behind_beginning(held, instruction.try_immediate(1).ok()?);
            }
            _ => return None,
        };
        match instruction.op_kind(source) {
            OpKind::Register => state.registers.get(&full(instruction.op_register(source))).cloned(),
            OpKind::Memory => match self.place(instruction, state) {
                Some(place) => state.stack.get(&place).cloned().or_else(|| self.argument(place, state)),
                // A member of the block is no entry of a table.
                None if state.registers.contains_key(&full(instruction.memory_base())) => None,
                None => self.program.held_in(self.program.absolute(instruction)?),
            },
            _ => {
                let value = instruction.try_immediate(source).ok()?;
                let value = if self.program.elf.is_64 { value } else { value & 0xffff_ffff };
                self.program.held_at(value)
            }
        }
    }

    /// The address that objects have, behind the beginning of a table that was loaded.
    fn behind_beginning(&self, held: &Held, bytes: u64) -> Option<Held> {
        match held {
            Held::Beginning(class) if bytes == 2 * self.program.word() => Some(Held::Table(class.clone())),
            Held::Block if bytes == 0 => Some(Held::Block),
            _ => None,
        }
    }

    /// The first argument of an i386 function, on the stack above the address that it returns to.
    fn argument(&self, (base, displacement): (Register, i64), state: &State) -> Option<Held> {
        let is_first = match base {
            Register::RBP => state.is_frame && displacement == 8,
            _ => displacement == 4,
        };
        (state.takes_block && is_first).then_some(Held::Block)
    }

    /// The place on the stack that a memory operand is.
    fn place(&self, instruction: &Instruction, state: &State) -> Option<(Register, i64)> {
        let has_memory =
            (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
        let base = full(instruction.memory_base());
        let is_stack = base == Register::RSP || base == Register::RBP && !state.registers.contains_key(&base);
        let is_plain = has_memory && is_stack && instruction.memory_index() == Register::None;
        let displacement = i64::from(instruction.memory_displacement32() as i32);
        match base {
            _ if !is_plain => None,
            Register::RSP => Some((base, displacement - state.pushed?)),
            _ => Some((base, displacement)),
        }
    }

    /// A store at the block's beginning.
    fn store(&mut self, instruction: &Instruction, state: &mut State, held: Option<&Held>) {
        let is_beginning = instruction.memory_index() == Register::None
            && instruction.memory_displacement64() == 0
            && state.registers.get(&full(instruction.memory_base())) == Some(&Held::Block);
        match held {
            _ if !is_beginning => {}
            Some(Held::Table(class)) => {
                state.last = Last::Table;
                if !self.found.contains(class) {
                    self.found.push(class.clone());
                }
            }
            _ => state.last = Last::Other,
        }
    }
}
