//! Other architectures, decoded by capstone. Its groups have no loads and stores for PowerPC, so classes go by mnemonic.

use capstone::arch::{self, BuildsCapstone, BuildsCapstoneEndian, BuildsCapstoneExtraMode};
use capstone::{Capstone, Endian};

use crate::code::class::Class;
use crate::code::counts::Counts;
use crate::code::line::Line;
use crate::code::model::CodeError;
use crate::code::stretch::Stretch;

/// Instructions at a function's beginning among which its frame is set up.
const PROLOGUE: usize = 6;

/// The architectures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit PowerPC, big endian.
    Ppc64,
    /// 64-bit PowerPC, little endian.
    Ppc64Le,
    /// 32-bit PowerPC, big endian.
    Ppc,
    /// AArch64.
    Arm64,
    /// 32-bit ARM, little endian, ARM and Thumb.
    Arm,
    /// RISC-V, 64 bits.
    RiscV64,
    /// z/Architecture.
    S390x,
}

impl Kind {
    fn disassembler(self, is_thumb: bool) -> capstone::CsResult<Capstone> {
        let new = Capstone::new();
        let ppc = arch::ppc::ArchMode::Mode64;
        match self {
            Kind::Ppc64 => new.ppc().mode(ppc).endian(Endian::Big).build(),
            Kind::Ppc64Le => new.ppc().mode(ppc).endian(Endian::Little).build(),
            Kind::Ppc => new.ppc().mode(arch::ppc::ArchMode::Mode32).endian(Endian::Big).build(),
            Kind::Arm64 => new.arm64().mode(arch::arm64::ArchMode::Arm).build(),
            Kind::Arm if is_thumb => new.arm().mode(arch::arm::ArchMode::Thumb).build(),
            Kind::Arm => new.arm().mode(arch::arm::ArchMode::Arm).build(),
            Kind::RiscV64 => {
                let compressed = std::iter::once(arch::riscv::ArchExtraMode::RiscVC);
                new.riscv().mode(arch::riscv::ArchMode::RiscV64).extra_mode(compressed).build()
            }
            Kind::S390x => new.sysz().mode(arch::sysz::ArchMode::Default).build(),
        }
    }

    /// The size of the unknown instruction that these bytes begin with, as each architecture's first bits say.
    fn unknown(self, bytes: &[u8], is_thumb: bool) -> usize {
        let first = bytes[0];
        match self {
            // Principles of Operation, "Instruction formats": the first two bits.
            Kind::S390x => [2, 4, 4, 6][usize::from(first >> 6)],
            // The RISC-V Instruction Set Manual I, 1.5: the lowest two bits.
            Kind::RiscV64 => {
                if first & 3 == 3 {
                    4
                } else {
                    2
                }
            }
            // Arm ARM, A6.1: 0b11101, 0b11110 and 0b11111 begin 32-bit Thumb instructions.
            Kind::Arm if is_thumb => {
                if bytes.get(1).is_some_and(|byte| byte >> 3 >= 0b11101) {
                    4
                } else {
                    2
                }
            }
            _ => 4,
        }
    }
}

/// Nops of each architecture, as bytes of a little- or big-endian word.
pub fn is_padding(kind: Kind, bytes: &[u8]) -> bool {
    let nop: &[&[u8]] = match kind {
        Kind::Ppc64 | Kind::Ppc => &[&[0x60, 0, 0, 0]],
        Kind::Ppc64Le => &[&[0, 0, 0, 0x60]],
        Kind::Arm64 => &[&[0x1f, 0x20, 0x03, 0xd5]],
        Kind::Arm => &[&[0x00, 0xf0, 0x20, 0xe3], &[0x00, 0xbf], &[0xaf, 0xf3, 0x00, 0x80]],
        Kind::RiscV64 => &[&[0x13, 0, 0, 0], &[0x01, 0]],
        Kind::S390x => &[&[0x07, 0x07], &[0x07, 0x00], &[0x47, 0, 0, 0]],
    };
    let mut rest = bytes;
    while !rest.is_empty() {
        match nop.iter().find_map(|nop| rest.strip_prefix(*nop)).or_else(|| rest.strip_prefix(&[0])) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    true
}

/// Counts the instructions of each stretch.
pub fn count(kind: Kind, stretches: &[Stretch]) -> Result<Vec<Counts>, CodeError> {
    let mut all = Vec::with_capacity(stretches.len());
    let disassemblers = Disassemblers::new(kind)?;
    for stretch in stretches {
        let mut counts = Counts::default();
        disassemblers.each(stretch, |_, bytes, mnemonic, operands| {
            let class = class(kind, mnemonic, operands);
            let is_early = counts.without_padding() < PROLOGUE as u64;
            counts.one(class, bytes.len() as u64);
            if is_early && counts.prologues == 0 && begins_frame(mnemonic, operands) {
                counts.prologues = 1;
            }
            if class == Class::LoadStore && is_on_stack(kind, operands) {
                let slot =
                    if is_store(mnemonic) { &mut counts.stack_stores } else { &mut counts.stack_loads };
                *slot += 1;
            }
        })?;
        all.push(counts);
    }
    Ok(all)
}

/// The classes of instructions, of each the bytes.
pub fn classes(kind: Kind, instructions: &[&[u8]]) -> Result<Vec<Class>, CodeError> {
    let disassemblers = Disassemblers::new(kind)?;
    let mut classes = Vec::with_capacity(instructions.len());
    for bytes in instructions {
        let stretch = Stretch { name: b"", section: 0, address: 0, bytes, is_thumb: false };
        let mut own = Class::Invalid;
        disassemblers.each(&stretch, |offset, _, mnemonic, operands| {
            if offset == 0 {
                own = class(kind, mnemonic, operands);
            }
        })?;
        classes.push(own);
    }
    Ok(classes)
}

/// The instructions of a stretch with their text.
pub fn listing(kind: Kind, stretch: &Stretch) -> Result<Vec<Line>, CodeError> {
    let mut lines = Vec::new();
    Disassemblers::new(kind)?.each(stretch, |offset, bytes, mnemonic, operands| {
        let class = class(kind, mnemonic, operands);
        let text = match operands {
            "" => mnemonic.to_owned(),
            operands => format!("{mnemonic} {operands}"),
        };
        lines.push(Line { offset, bytes: bytes.to_vec(), text, class });
    })?;
    Ok(lines)
}

/// One for each instruction set of an architecture.
struct Disassemblers {
    kind: Kind,
    plain: Capstone,
    thumb: Option<Capstone>,
}

impl Disassemblers {
    fn new(kind: Kind) -> Result<Disassemblers, CodeError> {
        let failed = |error: capstone::Error| CodeError::Disassembler(error.to_string());
        let thumb = (kind == Kind::Arm).then(|| kind.disassembler(true)).transpose().map_err(failed)?;
        Ok(Disassemblers { kind, plain: kind.disassembler(false).map_err(failed)?, thumb })
    }

    /// Calls `found` with each instruction: its offset, its bytes, mnemonic and operands. An unknown one is `.word`.
    fn each(
        &self,
        stretch: &Stretch,
        mut found: impl FnMut(u64, &[u8], &str, &str),
    ) -> Result<(), CodeError> {
        let disassembler = self.thumb.as_ref().filter(|_| stretch.is_thumb).unwrap_or(&self.plain);
        let mut at = 0;
        while at < stretch.bytes.len() {
            let rest = &stretch.bytes[at..];
            let address = stretch.address.wrapping_add(at as u64);
            let decoded = disassembler.disasm_all(rest, address);
            let decoded = decoded.map_err(|error| CodeError::Disassembler(error.to_string()))?;
            for instruction in decoded.as_ref() {
                let bytes = instruction.bytes();
                let (mnemonic, operands) =
                    (instruction.mnemonic().unwrap_or(""), instruction.op_str().unwrap_or(""));
                found(at as u64, bytes, mnemonic, operands);
                at += bytes.len();
            }
            if at < stretch.bytes.len() {
                let rest = &stretch.bytes[at..];
                let size = match is_traceback(self.kind, rest) {
                    true => rest.len(),
                    false => self.kind.unknown(rest, stretch.is_thumb).min(rest.len()),
                };
                found(at as u64, &rest[..size], ".word", "");
                at += size;
            }
        }
        Ok(())
    }
}

/// Whether these last bytes of a function are its traceback table, which a word of zeros begins (64-bit PowerPC ELF ABI
/// Supplement 1.9, 3.3 "Traceback Tables"). Its fields are no instructions, though some look like one.
fn is_traceback(kind: Kind, rest: &[u8]) -> bool {
    /// gcc writes three words.
    const MOST: usize = 64;
    matches!(kind, Kind::Ppc64 | Kind::Ppc64Le) && rest.len() <= MOST && rest.starts_with(&[0; 4])
}

fn is_store(mnemonic: &str) -> bool {
    mnemonic.starts_with("st")
        || matches!(
            mnemonic,
            "sb" | "sh"
                | "sw"
                | "sd"
                | "fsw"
                | "fsd"
                | "c.sw"
                | "c.sd"
                | "c.swsp"
                | "c.sdsp"
                | "c.fsd"
                | "c.fsdsp"
        )
}

fn is_on_stack(kind: Kind, operands: &str) -> bool {
    match kind {
        Kind::Ppc64 | Kind::Ppc64Le | Kind::Ppc => operands.ends_with("(r1)"),
        Kind::S390x => operands.contains("%r15)"),
        Kind::RiscV64 => operands.ends_with("(sp)"),
        Kind::Arm64 | Kind::Arm => operands.contains("[sp"),
    }
}

fn begins_frame(mnemonic: &str, operands: &str) -> bool {
    match mnemonic {
        "stwu" | "stdu" => operands.starts_with("r1,"),
        "stmg" | "stg" => operands.contains("%r15)"),
        "push" | "push.w" | "stmdb" | "c.addi16sp" => true,
        "stp" | "str" => operands.ends_with("]!") && operands.contains("[sp"),
        "sub" => operands.starts_with("sp, sp"),
        "addi" | "c.addi" | "c.add" => operands.starts_with("sp,") && operands.contains('-'),
        _ => false,
    }
}

/// The class by mnemonic (Power ISA 3.0, Arm ARM, RISC-V manual, z/Architecture's Principles of Operation).
fn class(kind: Kind, mnemonic: &str, operands: &str) -> Class {
    if matches!(mnemonic, ".word" | ".byte" | "") {
        return Class::Invalid;
    }
    // `bti` is a hint that a branch may lead here (Arm ARM, C6.2, "BTI").
    if matches!(mnemonic, "nop" | "c.nop" | "nop.w" | "nopr" | "hint" | "bti") {
        return Class::Nop;
    }
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| mnemonic.starts_with(prefix));
    match kind {
        Kind::Ppc64 | Kind::Ppc64Le | Kind::Ppc => ppc(mnemonic, operands),
        Kind::Arm64 | Kind::Arm => {
            // Other words of three letters that begin with a b move bits: bic, bfi, bfm, bit, bsl.
            let is_conditional = mnemonic.strip_prefix('b').is_some_and(|condition| {
                matches!(
                    condition,
                    "" | "eq"
                        | "ne"
                        | "cs"
                        | "hs"
                        | "cc"
                        | "lo"
                        | "mi"
                        | "pl"
                        | "vs"
                        | "vc"
                        | "hi"
                        | "ls"
                        | "ge"
                        | "lt"
                        | "gt"
                        | "le"
                        | "al"
                )
            });
            if is_conditional
                || starts(&["b.", "bl", "bx", "br", "ret", "cbz", "cbnz", "tbz", "tbnz", "svc", "tbb", "tbh"])
            {
                Class::Branch
            } else if matches!(mnemonic, "push" | "pop" | "push.w" | "pop.w" | "vpush" | "vpop")
                || operands.starts_with("sp, sp")
            {
                Class::Stack
            } else if starts(&[
                "ldr", "str", "ldp", "stp", "ldm", "stm", "ldu", "stu", "ldx", "stx", "lda", "stl", "ldn",
                "stn", "vldr", "vstr", "ldrd", "strd",
            ]) {
                Class::LoadStore
            } else if starts(&["v", "f", "scvtf", "ucvtf"]) || has_vector(operands) {
                Class::Float
            } else {
                Class::Integer
            }
        }
        Kind::RiscV64 => {
            let word = mnemonic.strip_prefix("c.").unwrap_or(mnemonic);
            if matches!(word, "j" | "jal" | "jalr" | "jr" | "ret" | "call" | "tail" | "ecall" | "ebreak")
                || word.starts_with('b')
            {
                Class::Branch
            } else if matches!(word, "addi" | "add" | "addi16sp") && operands.starts_with("sp,")
                || word == "addi16sp"
            {
                Class::Stack
            } else if operands.ends_with(')') {
                Class::LoadStore
            } else if word.starts_with('f') && word != "fence" && word != "fence.i" {
                Class::Float
            } else {
                Class::Integer
            }
        }
        Kind::S390x => s390(mnemonic, operands),
    }
}

fn has_vector(operands: &str) -> bool {
    let first = operands.split([',', '.', ' ']).next().unwrap_or("");
    matches!(first.as_bytes(), [b'v' | b'q' | b'd' | b's', b'0'..=b'9', ..])
}

fn ppc(mnemonic: &str, operands: &str) -> Class {
    let name = mnemonic.trim_end_matches(['+', '-', '.']);
    if name.starts_with('b') && !name.starts_with("bpermd") && !name.starts_with("brinc")
        || matches!(name, "sc" | "scv" | "trap")
        || name.starts_with("tw")
        || name.starts_with("td")
    {
        return Class::Branch;
    }
    if matches!(name, "stwu" | "stdu") && operands.starts_with("r1,")
        || name == "addi" && operands.starts_with("r1, r1")
    {
        return Class::Stack;
    }
    if name.starts_with('f') || name.starts_with("xs") || name.starts_with("xv") || name.starts_with("xx") {
        return Class::Float;
    }
    if name.starts_with('v') || name.starts_with("mtvsr") || name.starts_with("mfvsr") {
        return Class::Float;
    }
    let is_load = name.starts_with('l') && !matches!(name, "li" | "lis" | "lnia");
    let is_store = name.starts_with("st");
    if is_load || is_store {
        return Class::LoadStore;
    }
    Class::Integer
}

fn s390(mnemonic: &str, operands: &str) -> Class {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| mnemonic.starts_with(prefix));
    let is_branch =
        starts(&["j", "br", "bas", "bc", "cij", "cgij", "clij", "clgij", "crj", "cgrj", "clrj", "clgrj"])
            || matches!(mnemonic, "b" | "svc" | "bre" | "bne");
    if is_branch {
        return Class::Branch;
    }
    if matches!(mnemonic, "aghi" | "lay" | "la") && operands.starts_with("%r15") {
        return Class::Stack;
    }
    let has_memory = operands.contains(')');
    if has_memory && starts(&["l", "st", "mv"]) && !matches!(mnemonic, "la" | "lay" | "larl") {
        return Class::LoadStore;
    }
    let is_float = starts(&[
        "v", "ldr", "ldgr", "lgdr", "adb", "sdb", "mdb", "ddb", "cdb", "aeb", "seb", "meb", "deb", "ceb",
        "cdf", "cdg", "cef", "ceg", "cgd", "cfd", "lzdr", "lzer", "wf",
    ]);
    if is_float {
        Class::Float
    } else {
        Class::Integer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_arm_that_begin_with_a_b_are_branches_only_with_a_condition() {
        for mnemonic in ["b", "beq", "bhs", "b.eq", "bl", "blr", "br", "bx"] {
            assert_eq!(class(Kind::Arm64, mnemonic, "#0x10"), Class::Branch, "{mnemonic}");
        }
        assert_eq!(class(Kind::Arm64, "bit", "v0.16b, v1.16b, v2.16b"), Class::Float);
        for mnemonic in ["bic", "bfi", "bfm", "bfc"] {
            assert_eq!(class(Kind::Arm64, mnemonic, "w0, w1, #3, #4"), Class::Integer, "{mnemonic}");
        }
    }
}
