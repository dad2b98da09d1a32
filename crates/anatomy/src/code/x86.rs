//! x86-64, x32 and i386, decoded by iced-x86.

use std::sync::OnceLock;

use iced_x86::{
    Code, CpuidFeature, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, Mnemonic, OpKind,
    Register,
};

use crate::code::class::Class;
use crate::code::counts::Counts;
use crate::code::line::{with_target, Line};
use crate::code::places::Places;
use crate::code::stretch::Stretch;

/// Instructions at a function's beginning among which its frame is set up.
const PROLOGUE: usize = 3;

/// Counts the instructions of one stretch. Zeros between functions are no instructions.
pub fn count(stretch: &Stretch, bits: u32, places: &Places) -> Counts {
    let mut counts = Counts::default();
    let mut decoder = Decoder::with_ip(bits, stretch.bytes, stretch.address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let (mut number, mut has_frame_pointer, mut has_thunk) = (0, false, false);
    let is_named = !stretch.name.is_empty();
    while decoder.can_decode() {
        let at = decoder.position();
        if !is_named {
            let zeros = padding_zeros(&stretch.bytes[at..]);
            if zeros > 0 && decoder.set_position(at + zeros).is_ok() {
                decoder.set_ip(stretch.address.wrapping_add((at + zeros) as u64));
                continue;
            }
        }
        decoder.decode_out(&mut instruction);
        let bytes = &stretch.bytes[at..decoder.position()];
        let class = class(&instruction);
        counts.one(class, bytes.len() as u64);
        if class == Class::Invalid {
            continue;
        }
        let (has_address_size, has_rex) = prefixes(bytes, bits);
        counts.address_size += u64::from(has_address_size);
        counts.rex += u64::from(has_rex);
        if is_named && number < PROLOGUE && begins_frame(&instruction) && counts.prologues == 0 {
            counts.prologues = 1;
        }
        number += usize::from(!is_marker(instruction.mnemonic()));
        let is_move = instruction.mnemonic() == Mnemonic::Mov;
        if is_move
            && is_frame_pointer(instruction.op0_register())
            && is_stack_pointer(instruction.op1_register())
        {
            has_frame_pointer = true;
        }
        has_thunk |= memory_and_calls(&instruction, stretch, places, &mut counts);
        let base = instruction.memory_base();
        if is_stack_pointer(base) || (has_frame_pointer && is_frame_pointer(base)) {
            let moves = matches!(class, Class::LoadStore) || is_scalar_or_packed(class);
            let store = moves
                && instruction.op0_kind() == OpKind::Memory
                && instruction.op1_kind() == OpKind::Register;
            let load = moves
                && instruction.op_count() == 2
                && instruction.op1_kind() == OpKind::Memory
                && is_plain(&instruction);
            counts.stack_stores += u64::from(store);
            counts.stack_loads += u64::from(load);
        }
        if has_thunk && bits == 32 && base == Register::EBX && is_move {
            let displacement = instruction.memory_displacement32() as i32;
            let got = places.got.first().map_or(0, |(from, to)| to - from);
            counts.got_loads += u64::from(displacement < 0 && u64::from(displacement.unsigned_abs()) <= got);
        }
    }
    counts
}

/// How many of the first bytes are zeros that pad: linkers put them between functions, and behind entries of the procedure linkage table.
///
/// Two zeros are `add %al,(%rax)`, which adds a part of an address to what is there: no compiler makes it. One zero begins other
/// additions, unless it is the last byte.
fn padding_zeros(bytes: &[u8]) -> usize {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    if zeros > 1 || zeros == bytes.len() {
        zeros
    } else {
        0
    }
}

/// Counts what is relative to the instruction pointer and what goes through tables; whether it calls a thunk.
fn memory_and_calls(
    instruction: &Instruction,
    stretch: &Stretch,
    places: &Places,
    counts: &mut Counts,
) -> bool {
    if matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64) {
        let target = instruction.near_branch_target();
        let is_call = instruction.flow_control() == FlowControl::Call;
        // The table's own entries jump to its first.
        let is_in_plt = Places::is_in(&places.plt, stretch.address);
        let is_inside = target.wrapping_sub(stretch.address) < stretch.bytes.len() as u64;
        counts.plt_calls += u64::from(!is_inside && !is_in_plt && Places::is_in(&places.plt, target));
        let is_thunk = is_call && (places.thunks.contains(&target) || target == instruction.next_ip());
        counts.pc_thunks += u64::from(is_thunk);
        return is_thunk;
    }
    if instruction.is_ip_rel_memory_operand() {
        counts.pc_relative += 1;
        counts.got_loads += u64::from(Places::is_in(&places.got, instruction.ip_rel_memory_address()));
    }
    counts.wide_constants +=
        u64::from(instruction.mnemonic() == Mnemonic::Mov && instruction.op1_kind() == OpKind::Immediate64);
    false
}

fn is_marker(mnemonic: Mnemonic) -> bool {
    matches!(mnemonic, Mnemonic::Endbr64 | Mnemonic::Endbr32)
}

fn is_stack_pointer(register: Register) -> bool {
    matches!(register, Register::RSP | Register::ESP)
}

fn is_frame_pointer(register: Register) -> bool {
    matches!(register, Register::RBP | Register::EBP)
}

fn is_scalar_or_packed(class: Class) -> bool {
    use Class::{Avx, SseInteger, SsePackedDouble, SsePackedSingle, SseScalarDouble, SseScalarSingle};
    matches!(class, SseScalarSingle | SsePackedSingle | SseScalarDouble | SsePackedDouble | SseInteger | Avx)
}

/// A move and no arithmetic.
fn is_plain(instruction: &Instruction) -> bool {
    use Mnemonic::{
        Mov, Movapd, Movaps, Movd, Movdqa, Movdqu, Movq, Movsd, Movss, Movsx, Movsxd, Movupd, Movups, Movzx,
    };
    matches!(
        instruction.mnemonic(),
        Mov | Movzx
            | Movsx
            | Movsxd
            | Movss
            | Movsd
            | Movaps
            | Movapd
            | Movups
            | Movupd
            | Movdqa
            | Movdqu
            | Movq
            | Movd
    )
}

fn begins_frame(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Push | Mnemonic::Enter => true,
        Mnemonic::Sub => is_stack_pointer(instruction.op0_register()),
        _ => false,
    }
}

/// Whether the prefixes of an instruction have 0x67, and whether it has a REX (Intel SDM, volume 2, 2.1.1 and 2.2.1).
fn prefixes(bytes: &[u8], bits: u32) -> (bool, bool) {
    let is_legacy = |byte: &u8| {
        matches!(byte, 0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65)
    };
    let end = bytes.iter().position(|byte| !is_legacy(byte)).unwrap_or(bytes.len());
    let has_rex = bits == 64 && bytes.get(end).is_some_and(|byte| (0x40..=0x4f).contains(byte));
    (bytes[..end].contains(&0x67), has_rex)
}

/// Whether bytes are nops and traps alone.
pub fn is_padding(bytes: &[u8], bits: u32) -> bool {
    let mut decoder = Decoder::new(bits, bytes, DecoderOptions::NONE);
    decoder.iter().all(|instruction| is_idle(&instruction) && !is_marker(instruction.mnemonic()))
}

/// The class of the only instruction in these bytes.
pub fn class_of_bytes(bytes: &[u8], bits: u32) -> Class {
    class(&Decoder::new(bits, bytes, DecoderOptions::NONE).decode())
}

/// What compilers put between blocks, or where a branch may lead, and what changes nothing.
pub(crate) fn is_idle(instruction: &Instruction) -> bool {
    class(instruction) == Class::Nop
}

/// The class of an instruction.
pub fn class(instruction: &Instruction) -> Class {
    static OF_CODE: OnceLock<Vec<Class>> = OnceLock::new();
    let of_code = OF_CODE.get_or_init(|| Code::values().map(class_of_code).collect());
    let class = of_code[instruction.code() as usize];
    if class != Class::Integer {
        return class;
    }
    match instruction.mnemonic() {
        Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd
            if instruction.op0_kind() == OpKind::Memory || instruction.op1_kind() == OpKind::Memory =>
        {
            Class::LoadStore
        }
        _ if is_string_move(instruction) => Class::LoadStore,
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::And | Mnemonic::Lea
            if is_stack_pointer(instruction.op0_register()) =>
        {
            Class::Stack
        }
        // `xchg %ax,%ax` and `lea 0(%esi),%esi`, as assemblers pad.
        Mnemonic::Lea if is_idle_lea(instruction) => Class::Nop,
        Mnemonic::Xchg
            if instruction.op0_register() == instruction.op1_register()
                && instruction.op0_kind() == OpKind::Register =>
        {
            Class::Nop
        }
        _ => Class::Integer,
    }
}

/// `movs`, `lods` and `stos` of every width. The string instructions that compare, and those of ports, do more than move.
fn is_string_move(instruction: &Instruction) -> bool {
    use Mnemonic::{
        Cmpsb, Cmpsd, Cmpsq, Cmpsw, Insb, Insd, Insw, Outsb, Outsd, Outsw, Scasb, Scasd, Scasq, Scasw,
    };
    let is_other = matches!(
        instruction.mnemonic(),
        Cmpsb
            | Cmpsw
            | Cmpsd
            | Cmpsq
            | Scasb
            | Scasw
            | Scasd
            | Scasq
            | Insb
            | Insw
            | Insd
            | Outsb
            | Outsw
            | Outsd
    );
    instruction.is_string_instruction() && !is_other
}

/// A `lea` that changes nothing.
fn is_idle_lea(instruction: &Instruction) -> bool {
    instruction.memory_base() == instruction.op0_register()
        && instruction.memory_displacement64() == 0
        && matches!(instruction.memory_index(), Register::None)
}

fn class_of_code(code: Code) -> Class {
    let mnemonic = code.mnemonic();
    let features = code.cpuid_features();
    let has = |feature: CpuidFeature| features.contains(&feature);
    let name = |part: &str| features.iter().any(|feature| format!("{feature:?}").starts_with(part));
    match mnemonic {
        Mnemonic::INVALID => return Class::Invalid,
        // `endbr` has the bytes of a hint nop (Intel SDM, volume 2, ENDBR64): it is no branch, and allows that one leads here.
        Mnemonic::Nop | Mnemonic::Int3 | Mnemonic::Pause | Mnemonic::Endbr32 | Mnemonic::Endbr64 => {
            return Class::Nop
        }
        Mnemonic::Push
        | Mnemonic::Pop
        | Mnemonic::Pusha
        | Mnemonic::Popa
        | Mnemonic::Enter
        | Mnemonic::Leave => return Class::Stack,
        _ => {}
    }
    if code.encoding() == EncodingKind::EVEX || name("AVX512") {
        return Class::Avx512;
    }
    if code.encoding() != EncodingKind::Legacy && !name("BMI") && !name("LZCNT") {
        return Class::Avx;
    }
    if name("FPU") || has(CpuidFeature::MMX) || mnemonic == Mnemonic::Wait {
        return Class::X87;
    }
    if name("SSE") || name("SSSE") || name("AES") || name("PCLMULQDQ") || name("SHA") {
        return sse(&format!("{mnemonic:?}").to_lowercase());
    }
    match code.flow_control() {
        FlowControl::Next | FlowControl::Exception | FlowControl::Interrupt => Class::Integer,
        _ => Class::Branch,
    }
}

/// The class of an SSE instruction by its mnemonic's last letters; a conversion is of the type that it makes, or reads if it
/// makes an integer.
fn sse(mnemonic: &str) -> Class {
    let word = match mnemonic
        .strip_prefix("cvtt")
        .or_else(|| mnemonic.strip_prefix("cvt"))
        .and_then(|types| types.split_once('2'))
    {
        Some((from, "si" | "pi" | "dq")) => from,
        Some((_, to)) => to,
        None => mnemonic,
    };
    match word.get(word.len().saturating_sub(2)..) {
        _ if mnemonic.starts_with('p') && mnemonic != "ps" => Class::SseInteger,
        Some("ss") => Class::SseScalarSingle,
        Some("sd") => Class::SseScalarDouble,
        Some("ps") => Class::SsePackedSingle,
        Some("pd") => Class::SsePackedDouble,
        _ => Class::SseInteger,
    }
}

/// The instructions of a stretch with their text, in AT&T syntax without the addresses of branches inside the function.
pub fn listing(stretch: &Stretch, bits: u32) -> Vec<Line> {
    use iced_x86::Formatter;
    let mut formatter = iced_x86::GasFormatter::new();
    formatter.options_mut().set_space_after_operand_separator(true);
    let mut decoder = Decoder::with_ip(bits, stretch.bytes, stretch.address, DecoderOptions::NONE);
    let mut lines = Vec::new();
    while decoder.can_decode() {
        let at = decoder.position();
        let instruction = decoder.decode();
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        let is_branch = matches!(
            instruction.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        );
        let target = is_branch.then(|| instruction.near_branch_target());
        lines.push(Line {
            offset: at as u64,
            bytes: stretch.bytes[at..decoder.position()].to_vec(),
            text: with_target(text, target, stretch.address, stretch.bytes.len() as u64),
            class: class(&instruction),
        });
    }
    lines
}
