//! Files that are no x32 programs, or only nearly: the runtime says so in one line and ends with 126 or 127, or runs
//! what is left of them. It never hangs, and never fails in code of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::{open_to_all, programs, Place};

const HEADER: usize = 52;
const ENTRY: usize = 32;
const CODE_AT: usize = 0x1000;
/// mov $0x4000003c,%eax; mov $7,%edi; syscall
const EXIT_7: [u8; 12] = [0xb8, 0x3c, 0, 0, 0x40, 0xbf, 7, 0, 0, 0, 0x0f, 0x05];
const BASE: u32 = 0x0040_0000;

const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const PT_GNU_STACK: u32 = 0x6474_e551;

/// One program header, in the file's order.
#[derive(Clone, Copy)]
struct Segment {
    kind: u32,
    offset: u32,
    address: u32,
    file_size: u32,
    memory_size: u32,
    flags: u32,
    alignment: u32,
}

const TEXT: Segment = Segment {
    kind: PT_LOAD,
    offset: CODE_AT as u32,
    address: BASE + CODE_AT as u32,
    file_size: EXIT_7.len() as u32,
    memory_size: EXIT_7.len() as u32,
    flags: 5,
    alignment: 0x1000,
};
const HEADERS: Segment =
    Segment { offset: 0, address: BASE, file_size: 0x200, memory_size: 0x200, flags: 4, ..TEXT };
const DATA: Segment =
    Segment { offset: 0x1800, address: BASE + 0x3800, file_size: 16, memory_size: 0x2000, flags: 6, ..TEXT };

/// A program that does nothing but end with 7.
fn program(kind: u16, entry: u32, segments: &[Segment]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend([0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(kind.to_le_bytes());
    file.extend(62u16.to_le_bytes());
    for word in [1, entry, HEADER as u32, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    for half in [HEADER as u16, ENTRY as u16, segments.len() as u16, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for s in segments {
        for word in [s.kind, s.offset, s.address, s.address, s.file_size, s.memory_size, s.flags, s.alignment]
        {
            file.extend(word.to_le_bytes());
        }
    }
    file.resize(CODE_AT, 0);
    file.extend(EXIT_7);
    file.resize(0x1800, 0);
    file.extend(*b"/not/there\0.....");
    file
}

fn plain() -> Vec<u8> {
    program(2, TEXT.address, &[HEADERS, TEXT, DATA])
}

/// The same, with segments and the name of an interpreter.
fn with_interpreter(kind: u16, interpreter: &Path, segments: &[Segment]) -> Vec<u8> {
    let mut name = interpreter.to_str().unwrap().as_bytes().to_vec();
    name.push(0);
    let size = name.len() as u32;
    let named = Segment { kind: PT_INTERP, offset: 0x1900, file_size: size, memory_size: size, ..HEADERS };
    let mut file = program(kind, TEXT.address, &[&[named], segments].concat());
    file.resize(0x1900, 0);
    file.extend(name);
    file
}

/// Everything a run may come to: what was printed, and `exit 126` or the like.
struct CommandOutput {
    text: String,
    end: String,
}

struct Bench {
    place: Place,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let place = Place::new(&crate::runtime());
        let folder = tempfile::tempdir().unwrap();
        open_to_all(folder.path(), 0o755);
        Bench { place, folder }
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join("file");
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn run(&self, path: &Path) -> CommandOutput {
        let report = self.place.stage("file", 10, path);
        let transcript = programs::transcripts(&report).remove("file").unwrap();
        let (text, end) = transcript.trim_end().rsplit_once("-- ").unwrap();
        CommandOutput { text: text.to_string(), end: end.to_string() }
    }

    fn run_bytes(&self, bytes: &[u8]) -> CommandOutput {
        self.run(&self.file(bytes))
    }

    /// One line that says what is wrong.
    fn refuses(&self, what: &str, path: &Path, end: &str) {
        let output = self.run(path);
        assert_eq!(output.end, end, "{what}: {}", output.text);
        assert!(output.text.starts_with("x32run: "), "{what}: {}", output.text);
        assert_eq!(output.text.matches('\n').count(), 1, "{what}: {}", output.text);
        assert!(!output.text.contains("mistake"), "{what}: {}", output.text);
    }

    fn refuses_bytes(&self, what: &str, bytes: &[u8]) {
        self.refuses(what, &self.file(bytes), "exit 126");
    }
}

#[test]
fn a_program_of_a_few_bytes_runs() {
    let bench = Bench::new();
    for (what, bytes) in [
        ("fixed", plain()),
        ("movable", program(3, TEXT.address, &[HEADERS, TEXT, DATA])),
        ("text alone", program(2, TEXT.address, &[TEXT])),
        (
            "a segment of nothing",
            program(2, TEXT.address, &[Segment { memory_size: 0, file_size: 0, ..HEADERS }, TEXT]),
        ),
        (
            "an executable stack",
            program(2, TEXT.address, &[TEXT, Segment { kind: PT_GNU_STACK, flags: 7, ..HEADERS }]),
        ),
    ] {
        let output = bench.run_bytes(&bytes);
        assert_eq!((output.text.as_str(), output.end.as_str()), ("", "exit 7"), "{what}");
    }
}

#[test]
fn a_program_that_is_cut_short_is_refused() {
    let bench = Bench::new();
    let whole = plain();
    let lengths = (0..160).chain((160..whole.len()).step_by(211)).chain(0x1800..0x1810);
    for length in lengths {
        bench.refuses_bytes(&format!("the first {length} bytes"), &whole[..length]);
    }
}

#[test]
fn what_is_no_program_is_refused() {
    let bench = Bench::new();
    let folder = bench.folder.path();
    let fifo = folder.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    open_to_all(&fifo, 0o777);
    bench.refuses("a pipe with a name", &fifo, "exit 126");
    bench.refuses("a folder", folder, "exit 126");
    bench.refuses("a device", Path::new("/dev/zero"), "exit 126");
    bench.refuses("nothing", &folder.join("nothing"), "exit 127");
    bench.refuses("something in a file", &Path::new("/dev/null").join("x"), "exit 127");
    bench.refuses("a 64-bit program", &programs::built().join("child-x86-64"), "exit 126");
    bench.refuses_bytes("text", b"echo hello\n");
    bench.refuses_bytes("a script of nothing", b"#!\n");
    let own = format!("#!{}\n", folder.join("file").display());
    bench.refuses_bytes("a script that is its own interpreter", own.as_bytes());
    let pipe = format!("#!{}\n", fifo.display());
    bench.refuses_bytes("a script for a pipe", pipe.as_bytes());
}

#[test]
fn headers_that_lie_are_refused() {
    let bench = Bench::new();
    let with = |segments: &[Segment]| program(2, TEXT.address, segments);
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = plain();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    let named = |offset: u32, size: u32| Segment {
        kind: PT_INTERP,
        offset,
        file_size: size,
        memory_size: size,
        ..HEADERS
    };
    for (what, bytes) in [
        ("class 64", changed(4, &[2])),
        ("big-endian", changed(5, &[2])),
        ("another machine", changed(18, &[3])),
        ("an object", changed(16, &[1])),
        ("a core", changed(16, &[4])),
        ("65535 program headers", changed(44, &[0xff, 0xff])),
        ("no program headers", changed(44, &[0, 0])),
        ("program headers of 1 byte", changed(42, &[1, 0])),
        ("program headers beyond the end", changed(28, &[0, 0, 0, 0x7f])),
        ("program headers at the end of 4 GiB", changed(28, &[0xff, 0xff, 0xff, 0xff])),
        ("nothing to load", with(&[Segment { kind: PT_GNU_STACK, ..HEADERS }])),
        ("overlapping", with(&[TEXT, Segment { address: TEXT.address + 4, offset: 0x1004, ..TEXT }])),
        ("out of order", with(&[DATA, TEXT])),
        ("larger in the file", with(&[Segment { memory_size: 4, ..TEXT }])),
        ("all of 4 GiB", with(&[Segment { address: 0x1000, memory_size: 0xffff_0000, ..TEXT }])),
        ("nearly all of 4 GiB", with(&[Segment { address: 0x20_1000, memory_size: 0xffdf_c000, ..TEXT }])),
        ("beyond 4 GiB", with(&[TEXT, Segment { address: 0xffff_f800, ..DATA }])),
        ("over the stack", with(&[TEXT, Segment { address: 0xf000_0800, memory_size: 0xfff_d000, ..DATA }])),
        ("at address 0", program(2, 0, &[Segment { address: 0, ..TEXT }])),
        ("not aligned alike", with(&[Segment { address: TEXT.address + 8, ..TEXT }])),
        ("an alignment of 3 pages", with(&[Segment { alignment: 0x3000, ..TEXT }])),
        ("beyond the end of the file", with(&[Segment { offset: 0x00ff_1000, ..TEXT }])),
        ("65 segments", {
            let many: Vec<Segment> =
                (0..65).map(|i| Segment { address: TEXT.address + i * 0x1000, ..TEXT }).collect();
            with(&many)
        }),
        ("an interpreter without a name", with(&[named(0x1800, 1), TEXT])),
        ("an interpreter of 5000 bytes", with(&[named(0, 5000), TEXT])),
        ("an interpreter beyond the end", with(&[named(0x1808, 100), TEXT])),
        ("an interpreter whose name does not end", with(&[named(0x1800, 5), TEXT])),
    ] {
        bench.refuses_bytes(what, &bytes);
    }
    let missing = with(&[named(0x1800, 11), TEXT]);
    bench.refuses("an interpreter that is not there", &bench.file(&missing), "exit 127");
}

#[test]
fn an_interpreter_that_is_none_is_refused() {
    let bench = Bench::new();
    let with = |interpreter: &Path| with_interpreter(2, interpreter, &[HEADERS, TEXT]);
    let other = bench.folder.path().join("other");
    std::fs::write(&other, b"no interpreter").unwrap();
    open_to_all(&other, 0o755);
    bench.refuses_bytes("its own interpreter", &with(&bench.folder.path().join("file")));
    bench.refuses_bytes("text", &with(&other));
    bench.refuses_bytes("a folder", &with(bench.folder.path()));
    let fifo = bench.folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    open_to_all(&fifo, 0o777);
    bench.refuses_bytes("a pipe", &with(&fifo));
    bench.refuses_bytes("a 64-bit program", &with(&programs::built().join("child-x86-64")));
}

#[test]
fn an_interpreter_with_a_fixed_place_runs() {
    const PLACE: u32 = 0x1000_0000;
    let bench = Bench::new();
    let interpreter = bench.folder.path().join("interpreter");
    let text = Segment { address: PLACE + CODE_AT as u32, ..TEXT };
    std::fs::write(&interpreter, program(2, text.address, &[Segment { address: PLACE, ..HEADERS }, text]))
        .unwrap();
    open_to_all(&interpreter, 0o755);
    // What ends with 7 is the interpreter: the program's own text cannot be executed.
    let stack = Segment { kind: PT_GNU_STACK, ..HEADERS };
    let of_program = [HEADERS, Segment { flags: 4, ..TEXT }, stack];
    for kind in [2, 3] {
        let output = bench.run_bytes(&with_interpreter(kind, &interpreter, &of_program));
        assert_eq!((output.text.as_str(), output.end.as_str()), ("", "exit 7"), "kind {kind}");
    }
}

#[test]
fn behind_a_segment_its_last_page_is_cleared_only_where_the_segment_goes_on_in_memory() {
    let bench = Bench::new();
    for (memory_size, status) in [(16, "exit 9"), (17, "exit 0")] {
        let data = Segment { memory_size, ..DATA };
        let mut file = program(2, TEXT.address, &[HEADERS, TEXT, data]);
        file.push(9);
        // movzbl address,%edi; mov $0x4000003c,%eax; syscall
        let mut code = vec![0x0f, 0xb6, 0x3c, 0x25];
        code.extend((data.address + data.file_size).to_le_bytes());
        code.extend([0xb8, 0x3c, 0, 0, 0x40, 0x0f, 0x05]);
        file[CODE_AT..CODE_AT + code.len()].copy_from_slice(&code);
        let output = bench.run_bytes(&file);
        assert_eq!((output.text.as_str(), output.end.as_str()), ("", status), "{memory_size} bytes");
    }
}

/// Numbers that are the same in every run: xorshift64, G. Marsaglia, "Xorshift RNGs", 2003.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

#[test]
fn changed_headers_are_refused_or_run() {
    const VALUES: [u8; 8] = [0, 1, 0x0f, 0x7f, 0x80, 0xf0, 0xfe, 0xff];
    let bench = Bench::new();
    let mut random = Random(20260523);
    let bases = [
        plain(),
        program(3, TEXT.address, &[HEADERS, TEXT, DATA, Segment { kind: PT_GNU_STACK, ..HEADERS }]),
        program(2, TEXT.address, &[Segment { kind: PT_INTERP, file_size: 11, ..DATA }, HEADERS, TEXT, DATA]),
    ];
    let (mut result, mut refused) = (0, 0);
    for round in 0..400 {
        let mut bytes = bases[round % bases.len()].clone();
        let entries = usize::from(bytes[44]);
        for _ in 0..=random.below(3) {
            // The first four bytes alone make a file an ELF file at all.
            let at = 4 + random.below(HEADER + entries * ENTRY - 4);
            bytes[at] = if random.below(2) == 0 {
                VALUES[random.below(VALUES.len())]
            } else {
                bytes[at] ^ (1 << random.below(8))
            };
        }
        let output = bench.run_bytes(&bytes);
        let what = format!(
            "round {round}: {:02x?}\n{}{}",
            &bytes[..HEADER + entries * ENTRY],
            output.text,
            output.end
        );
        assert!(!output.text.contains("mistake"), "{what}");
        match output.end.as_str() {
            "exit 126" | "exit 127" => {
                assert!(
                    output.text.starts_with("x32run: ") && output.text.matches('\n').count() == 1,
                    "{what}"
                );
                refused += 1;
            }
            // The program's own end, or its fault: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV.
            "exit 7" | "signal 4" | "signal 5" | "signal 7" | "signal 8" | "signal 11" => result += 1,
            _ => panic!("{what}"),
        }
    }
    assert!(
        result > 40 && refused > 40,
        "{result} ran, {refused} were refused: the changes hit too little or too much"
    );
}
