//! Classes of instructions against small programs in assembly of which each has one class, and PowerPC's code against
//! objdump's listing of the same file.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use widthwise_anatomy::code::{self, align, listing, Class, Code};
use widthwise_anatomy::elf::Elf;

/// Instructions of one class, one a line, in AT&T syntax (Intel SDM, volume 2).
const TRUTHS: [(Class, &str); 13] = [
    (Class::Integer, "add %eax,%ebx\nxor %ecx,%ecx\nimul $3,%eax,%ebx\nmov %eax,%ebx\nlea 8(%eax,%ebx),%ecx\nadd (%eax),%ebx\ncmp $1,%eax\nsete %al\nbsf %eax,%ebx\ntzcnt %eax,%ebx\ncmove %eax,%ebx\ncltd\npopcnt %eax,%ebx\nrepe cmpsb\nrepne scasl\noutsb"),
    (Class::Branch, "jmp 1f\n1: je 1b\ncall 1b\nret\njmp *%eax\nloop 1b"),
    (Class::LoadStore, "mov (%eax),%ebx\nmov %ebx,(%eax)\nmovzbl (%eax),%ebx\nmovswl (%eax),%ebx\nmovl $1,(%eax)\nmovsb\nmovsw\nmovsl\nrep movsl\nstosb\nstosw\nstosl\nlodsb\nlodsw\nlodsl"),
    (Class::Stack, "push %eax\npop %eax\npush $1\nsub $16,%esp\nadd $16,%esp\nleave\nand $-16,%esp\nlea -8(%esp),%esp"),
    (Class::Nop, "nop\nnopl (%eax)\nnopw 0(%eax,%eax)\nint3\nxchg %ax,%ax\nendbr32\nendbr64"),
    (Class::X87, "fldl (%eax)\nfaddp\nfstpl (%eax)\nfxch\nfsqrt\nfildl (%eax)\nfchs\nfnstcw (%eax)\npaddb %mm0,%mm1\nemms"),
    (Class::SseScalarSingle, "addss %xmm0,%xmm1\nmovss (%eax),%xmm0\ncvtsi2ss %eax,%xmm0\ncvttss2si %xmm0,%eax\nsqrtss %xmm0,%xmm0\nucomiss %xmm0,%xmm1\ncvtsd2ss %xmm0,%xmm1"),
    (Class::SsePackedSingle, "addps %xmm0,%xmm1\nmovaps (%eax),%xmm0\nmovups %xmm0,(%eax)\nmulps %xmm0,%xmm1\nshufps $1,%xmm0,%xmm1\nxorps %xmm0,%xmm0\ncvtdq2ps %xmm0,%xmm1\nhaddps %xmm0,%xmm1"),
    (Class::SseScalarDouble, "addsd %xmm0,%xmm1\nmovsd (%eax),%xmm0\nmovsd %xmm0,(%eax)\ncvtsi2sd %eax,%xmm0\ncvttsd2si %xmm0,%eax\nucomisd %xmm0,%xmm1\ncvtss2sd %xmm0,%xmm1"),
    (Class::SsePackedDouble, "addpd %xmm0,%xmm1\nmovapd (%eax),%xmm0\nmulpd %xmm0,%xmm1\nunpcklpd %xmm0,%xmm1\nxorpd %xmm0,%xmm0\ncvtdq2pd %xmm0,%xmm1"),
    (Class::SseInteger, "paddd %xmm0,%xmm1\npxor %xmm0,%xmm0\nmovdqa (%eax),%xmm0\nmovdqu %xmm0,(%eax)\npshufd $1,%xmm0,%xmm1\npcmpeqb %xmm0,%xmm1\naesenc %xmm0,%xmm1\npclmulqdq $1,%xmm0,%xmm1\npshufb %xmm0,%xmm1"),
    (Class::Avx, "vaddps %ymm0,%ymm1,%ymm2\nvaddsd %xmm0,%xmm1,%xmm2\nvmovaps (%eax),%ymm0\nvpaddd %ymm0,%ymm1,%ymm2\nvfmadd231pd %ymm0,%ymm1,%ymm2\nvzeroupper\nvgatherdps %ymm0,(%eax,%ymm1,4),%ymm2"),
    (Class::Avx512, "vaddps %zmm0,%zmm1,%zmm2\nvaddpd %zmm0,%zmm1,%zmm2{%k1}\nkmovw %eax,%k1\nvmovdqu64 (%eax),%zmm0\nvpternlogd $1,%zmm0,%zmm1,%zmm2\nkandw %k1,%k2,%k3"),
];

/// Moves of strings that 64-bit mode alone has.
const WIDE_MOVES: &str = "movsq\nrep movsq\nstosq\nlodsq";

/// The instructions of a class in one mode.
fn truth(class: Class, lines: &str, is_64: bool) -> String {
    match class {
        Class::LoadStore if is_64 => format!("{lines}\n{WIDE_MOVES}"),
        _ => lines.to_owned(),
    }
}

/// Assembles a program with a function for each class, for 32 bits or with 64-bit registers as addresses.
fn assembled(folder: &Path, is_64: bool) -> std::path::PathBuf {
    let mut text = String::from(".text\n");
    for (class, lines) in TRUTHS {
        let name = class.name();
        text.push_str(&format!(".globl {name}\n.type {name},@function\n{name}:\n"));
        for line in truth(class, lines, is_64).lines() {
            let wide = is_64 && class != Class::Nop;
            let line = match wide {
                // Addresses and the stack are 64 bits wide; a 32-bit push does not exist.
                true => line
                    .replace("%esp", "%rsp")
                    .replace("(%eax", "(%rax")
                    .replace("%eax,%ebx)", "%rax,%rbx)")
                    .replace("push %eax", "push %rax")
                    .replace("pop %eax", "pop %rax")
                    .replace("*%eax", "*%rax")
                    .replace("(%rax,%ebx)", "(%rax,%rbx)"),
                false => line.to_owned(),
            };
            let line = if is_64 && class == Class::Nop { line.replace("%eax", "%rax") } else { line };
            text.push_str(&line);
            text.push('\n');
        }
        text.push_str(&format!(".size {name},.-{name}\n"));
    }
    let (source, object) = (folder.join("classes.s"), folder.join("classes.o"));
    std::fs::write(&source, text).unwrap();
    let option = if is_64 { "--64" } else { "--32" };
    let output = Command::new("as").arg(option).arg(&source).arg("-o").arg(&object).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    object
}

#[test]
fn every_instruction_has_the_class_of_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    for is_64 in [true, false] {
        let bytes = std::fs::read(assembled(folder.path(), is_64)).unwrap();
        let elf = Elf::read(&bytes).unwrap();
        let named = elf.named();
        for (class, lines) in TRUTHS {
            let found = listing(&elf, &named, class.name().as_bytes()).unwrap();
            let others: Vec<_> = found.iter().filter(|line| line.class != class).collect();
            assert!(others.is_empty(), "64 bits: {is_64}; {class:?}: {others:#?}");
            assert_eq!(
                found.len(),
                truth(class, lines, is_64).lines().count(),
                "64 bits: {is_64}; {class:?}: {found:#?}"
            );
        }
    }
}

#[test]
fn compilers_vectors_are_in_the_class_of_their_option() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("vector.c");
    std::fs::write(
        &source,
        "void add(float *a, const float *b) { for (int i = 0; i < 1024; i++) a[i] += b[i]; }\n",
    )
    .unwrap();
    for (option, class, other) in [
        ("-msse2", Class::SsePackedSingle, Class::Avx),
        ("-mavx", Class::Avx, Class::SsePackedSingle),
        ("-mavx512f", Class::Avx512, Class::SsePackedSingle),
    ] {
        let object = folder.path().join("vector.o");
        let vectors = if class == Class::Avx512 { "-mprefer-vector-width=512" } else { "-O3" };
        let mut gcc = Command::new("gcc");
        gcc.args(["-O3", "-c", option, vectors]).arg(&source).arg("-o").arg(&object);
        assert!(gcc.status().unwrap().success());
        let bytes = std::fs::read(&object).unwrap();
        let elf = Elf::read(&bytes).unwrap();
        let total = code::read(&elf, &elf.named()).unwrap().total();
        assert!(total.of(class) >= 2, "{option}: {total:?}");
        assert_eq!(total.of(other), 0, "{option}: {total:?}");
    }
}

/// Assembles a source for 32 or 64 bits.
fn object(folder: &Path, source: &str, option: &str) -> std::path::PathBuf {
    let (text, object) = (folder.join("source.s"), folder.join("source.o"));
    std::fs::write(&text, source).unwrap();
    let output = Command::new("as").arg(option).arg(&text).arg("-o").arg(&object).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    object
}

/// Three functions between which zeros pad, as gold pads, and a table of procedure linkage as GNU ld makes it for i386. The second function
/// ends with `add %al,(%rax)`, which is two zeros.
const PADDED: &str = r#"
.text
.type first,@function
first: ret
.size first,.-first
.balign 16,0
.type second,@function
second: nop
ret
.byte 0,0
.size second,.-second
.balign 16,0
call first
.zero 11
.type third,@function
third: mov $1,%eax
ret
.size third,.-third
nop
.zero 9
.section .plt,"ax",@progbits
.byte 0xff,0xb3,4,0,0,0,0xff,0xa3,8,0,0,0,0,0,0,0
.byte 0xff,0xa3,12,0,0,0,0x68,0,0,0,0,0xe9,0,0,0,0
"#;

#[test]
fn zeros_that_pad_code_are_no_instructions() {
    let folder = tempfile::tempdir().unwrap();
    for option in ["--64", "--32"] {
        let bytes = std::fs::read(object(folder.path(), PADDED, option)).unwrap();
        let elf = Elf::read(&bytes).unwrap();
        let code = code::read(&elf, &elf.named()).unwrap();
        let of = |name: &[u8], section: &str| {
            let found = code.functions.iter().filter(|one| one.name == name && one.section == section);
            found.map(|one| one.counts.instructions).sum::<u64>()
        };
        assert_eq!([&b"first"[..], b"second", b"third"].map(|name| of(name, ".text")), [1, 3, 2], "{option}");
        // The call and the nop; and the table's five.
        assert_eq!((of(b"", ".text"), of(b"", ".plt")), (2, 5), "{option}");
        let total = code.total();
        assert_eq!((total.instructions, total.of(Class::Integer)), (13, 2), "{option}: {total:?}");
        let padding = 15 + 12 + 11 + 9 + 4;
        assert_eq!(code.undecoded, padding, "{option}");
        let size: u64 = elf
            .sections
            .iter()
            .filter(|one| [".text", ".plt"].contains(&&*one.name))
            .map(|one| one.size)
            .sum();
        assert_eq!(total.bytes + padding, size, "{option}");
        // Without symbols, the functions' own zeros are not told from padding.
        let stripped = code::read(&elf, &[]).unwrap();
        assert_eq!(stripped.total().instructions, 12, "{option}");
    }
}

/// A file of `tests/powerpc`.
fn powerpc(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/powerpc").join(name)).unwrap()
}

#[test]
fn powerpc_functions_have_the_instructions_that_objdump_lists() {
    // From `objdump -d`; the words of traceback tables are no instructions.
    let wide = [("through_pointer", 18), ("constant", 6), ("sum", 14), ("scale", 4), ("_start", 1)];
    let narrow = [("through_pointer", 12), ("constant", 5), ("sum", 14), ("_start", 1)];
    for (file, truths) in [("call-ppc64", &wide[..]), ("call-ppc", &narrow[..])] {
        let bytes = powerpc(file);
        let elf = Elf::read(&bytes).unwrap();
        let named = elf.named();
        let code: Code = code::read(&elf, &named).unwrap();
        let counts: BTreeMap<String, u64> = code
            .functions
            .iter()
            .map(|function| {
                (String::from_utf8_lossy(function.name).into_owned(), function.counts.instructions)
            })
            .collect();
        for (name, count) in truths {
            assert_eq!(counts.get(*name), Some(count), "{file} {name}: {counts:?}");
        }
        assert_eq!(code.total().of(Class::Invalid), 0, "{file}: {:?}", code.total());
    }
}

#[test]
fn a_powerpc_function_is_aligned_over_both_widths() {
    let files = ["call-ppc64", "call-ppc"].map(powerpc);
    let lines = files.each_ref().map(|bytes| {
        let elf = Elf::read(bytes).unwrap();
        listing(&elf, &elf.named(), b"sum").unwrap()
    });
    // `ld` is `lwz` and `cmpdi` is `cmpwi`: the loop is the same in both.
    let rows = align(&lines[0], &lines[1]);
    assert!(rows.iter().all(|row| row.is_equal), "{rows:?} {lines:#?}");
    let lines = files.each_ref().map(|bytes| {
        let elf = Elf::read(bytes).unwrap();
        listing(&elf, &elf.named(), b"through_pointer").unwrap()
    });
    let rows = align(&lines[0], &lines[1]);
    let only = |is_it: fn(&code::Row) -> bool| rows.iter().filter(|row| is_it(row)).count();
    // The descriptor's words, and the TOC saved and restored.
    let (a, b) = (only(|row| row.variant.is_none()), only(|row| row.baseline.is_none()));
    assert_eq!(a as i64 - b as i64, 18 - 12, "{rows:?}");
}
