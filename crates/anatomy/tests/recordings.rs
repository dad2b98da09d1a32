//! What massif and heaptrack recorded of one program, read back; and files that they never wrote.

use widthwise_anatomy::heap::Column;
use widthwise_anatomy::import::folded;
use widthwise_anatomy::import::heaptrack::{self, HeaptrackError};
use widthwise_anatomy::import::massif::{self, MassifError};
use widthwise_anatomy::import::recording::{Clock, Recording};

const MASSIF: &str = include_str!("recordings/massif.out.1");
const HEAPTRACK: &[u8] = include_bytes!("recordings/heaptrack.steps.1.zst");

/// Stacks that begin with `main`, from there on.
fn stacks(recording: &Recording, column: Column) -> Vec<String> {
    let text = folded::write(&recording.profile, column, folded::SourceLines::Shown);
    let mut lines: Vec<String> = text
        .lines()
        .filter_map(|line| {
            let line = format!(";{line}");
            line.rfind(";main (").map(|at| line[at + 1..].replace("/srv/program/", ""))
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn massifs_peak_and_its_stacks_are_those_of_the_program() {
    let recording = massif::read(MASSIF.as_bytes()).expect("a file of massif");
    assert_eq!((recording.command.as_str(), recording.clock), ("./steps", Clock::Bytes));
    assert_eq!(
        (recording.peak.bytes, recording.peak.extra_bytes, recording.peak.time),
        (139_104, Some(1616), 144_720)
    );
    assert_eq!(recording.detailed, Some(recording.peak));
    assert_eq!(recording.profile.sum().peak_bytes, 139_104);
    assert_eq!(
        stacks(&recording, Column::PeakBytes),
        ["main (steps.cc:30);chain(int) (steps.cc:13);made (steps.cc:9) 2400", "main (steps.cc:31) 64000"]
    );
    let course: Vec<u64> = recording.course.iter().map(|point| point.bytes).collect();
    assert_eq!(course, [0, 72_704, 82_384, 139_104, 75_104, 2400]);
}

#[test]
fn massifs_largest_snapshot_is_shown_whichever_massif_calls_the_peak() {
    let snapshot = |number: u32, bytes: u64, kind: &str| {
        format!(
            "#-----------\nsnapshot={number}\n#-----------\ntime={number}\nmem_heap_B={bytes}\nmem_heap_extra_B=8\n\
             mem_stacks_B=0\nheap_tree={kind}\nn1: {bytes} (heap allocation functions)\n n0: {bytes} 0x1: f{number} (a.c:7)\n"
        )
    };
    let of = |options: &str| {
        let text = format!(
            "desc: --massif-out-file=m {options}\ncmd: ./r\ntime_unit: i\n{}{}{}",
            snapshot(0, 300, "detailed"),
            snapshot(1, 2_311_477, "detailed"),
            snapshot(2, 316_573, "peak")
        );
        massif::read(text.as_bytes()).expect("a file of massif")
    };
    let recording = of("--peak-inaccuracy=0.0");
    assert_eq!(recording.profile.sum().peak_bytes, 2_311_477);
    assert_eq!(recording.detailed, Some(recording.peak));
    assert!(!recording.is_of_pages && of("--pages-as-heap=yes").is_of_pages);
}

#[test]
fn heaptracks_peak_and_its_stacks_are_those_of_the_program() {
    let recording = heaptrack::read(HEAPTRACK).expect("a recording");
    assert_eq!((recording.command.as_str(), recording.clock), ("./steps", Clock::Milliseconds));
    assert_eq!((recording.peak.bytes, recording.peak.count), (139_104, Some(102)));
    let sum = recording.profile.sum();
    assert_eq!((sum.peak_bytes, sum.peak_count), (139_104, 102));
    assert_eq!((sum.count, sum.bytes), (153, 72_704 + 8000 + 150 * 24 + 64_000));
    // What the C++ library frees at the end is gone by then.
    assert_eq!((sum.live_count, sum.live_bytes), (100, 2400));
    assert_eq!(
        stacks(&recording, Column::PeakBytes),
        ["main (steps.cc:30);chain(int) (steps.cc:13);made (steps.cc:9) 2400", "main (steps.cc:31) 64000"]
    );
    let end = recording.course.last().expect("an end");
    assert_eq!((end.bytes, end.resident_bytes), (2400, Some(0x3c5 * 4096)));
}

#[test]
fn both_see_the_same_program() {
    let (massif, heaptrack) = (massif::read(MASSIF.as_bytes()), heaptrack::read(HEAPTRACK));
    let [massif, heaptrack] = [massif.expect("a file"), heaptrack.expect("a recording")];
    assert_eq!(stacks(&massif, Column::PeakBytes), stacks(&heaptrack, Column::PeakBytes));
    // Inlined calls are marked in both.
    for recording in [massif, heaptrack] {
        let inlined =
            |name| recording.profile.frames.iter().find(|frame| frame.function == name).map(|f| f.inlined);
        assert_eq!((inlined("made"), inlined("chain(int)")), (Some(true), Some(false)));
    }
}

#[test]
fn a_heaptrack_recording_may_be_packed_by_gzip_or_not_at_all() {
    let plain = zstd::decode_all(HEAPTRACK).expect("zstd");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packer, &plain).expect("memory");
    let expected = heaptrack::read(HEAPTRACK);
    assert_eq!(heaptrack::read(&plain), expected);
    assert_eq!(heaptrack::read(&packer.finish().expect("memory")), expected);
}

fn massif_error(from: &str, to: &str) -> String {
    assert!(MASSIF.contains(from), "{from}");
    massif::read(MASSIF.replacen(from, to, 1).as_bytes())
        .expect_err("a file that massif does not write")
        .to_string()
}

#[test]
fn what_massif_does_not_write_is_named_with_its_line() {
    assert_eq!(
        massif_error("desc: ", ""),
        format!("line 1: should be `desc: ` and massif's options, and is \"{}\"", &MASSIF[6..66])
    );
    assert_eq!(
        massif_error("time_unit: B", "time_unit: h"),
        "line 3: should be `i`, `ms` or `B`, and is \"h\""
    );
    assert_eq!(
        massif_error("mem_heap_B=0", "mem_heap_B=-1"),
        "line 8: should be `mem_heap_B=` and a number, and is \"-1\""
    );
    assert_eq!(
        massif_error("heap_tree=empty", "heap_tree=odd\u{1b}"),
        "line 11: should be `empty`, `detailed` or `peak`, and is \"odd\\u{1b}\""
    );
    let tree = "`n`, how many children, `: `, bytes and a location, indented by its depth";
    assert!(massif_error(" n0: 64000 ", "n0: 64000 ").starts_with(&format!("line 42: should be {tree}")));
    assert!(massif_error("n4: 139104", "n5: 139104").starts_with(&format!("line 48: should be {tree}")));
    assert!(massif_error("n4: 139104", "n99999999999999999999: 1").contains(tree));
    let cut = &MASSIF[..MASSIF.find("  n2: 2400").expect("a line")];
    assert_eq!(massif::read(cut.as_bytes()), Err(MassifError::CutOff { line: 43, expected: tree }));
    let deep: String = (0..300).map(|depth| format!("{}n1: 8 0x1: f (f.c:1)\n", " ".repeat(depth))).collect();
    let at = MASSIF.find("n4: ").expect("a tree");
    let deep = massif::read(format!("{}{deep}", &MASSIF[..at]).as_bytes());
    assert!(matches!(deep, Err(MassifError::TooDeep { .. })), "{deep:?}");
}

#[test]
fn without_a_peak_the_largest_snapshot_with_stacks_is_taken() {
    let text = MASSIF.replace("heap_tree=peak", "heap_tree=detailed");
    let small = "#-----------\nsnapshot=6\n#-----------\ntime=300000\nmem_heap_B=10\nmem_heap_extra_B=0\nmem_stacks_B=0\n\
                 heap_tree=detailed\nn0: 10 (heap allocation functions)\n";
    let recording = massif::read(format!("{text}{small}").as_bytes()).expect("a file of massif");
    assert_eq!(recording.profile.sum().peak_bytes, 139_104);
    // So it is if massif calls another one the peak.
    let recording = massif::read(
        format!("{MASSIF}{}", small.replace("B=10", "B=200000").replace("n0: 10", "n0: 200000")).as_bytes(),
    );
    let recording = recording.expect("a file of massif");
    assert_eq!((recording.peak.bytes, recording.detailed.map(|point| point.bytes)), (200_000, Some(200_000)));
}

#[test]
fn massifs_small_places_keep_their_bytes() {
    let text = MASSIF.replace("n0: 0 in 1 place,", "n0: 16 in 2 places,").replace("n4: 139104", "n4: 139120");
    let recording = massif::read(text.as_bytes()).expect("a file of massif");
    let text = folded::write(&recording.profile, Column::PeakBytes, folded::SourceLines::Hidden);
    assert!(text.contains("\n[in 2 places, below massif's threshold (1.00%)] 16\n"), "{text}");
}

/// A recording in plain text: its head, and these lines.
fn heaptrack_of(lines: &str) -> Result<Recording, HeaptrackError> {
    heaptrack::read(format!("v 10400 3\nX ./p\nI 1000 10\n{lines}").as_bytes())
}

#[test]
fn texts_with_ends_of_lines_and_mangled_names_are_read() {
    let recording = heaptrack_of("s 3 /p\n\ns 5 a\nb\ns\ns 9 _Z4growim\ni 10 1 3 2 7\nt 1 0\na 8 1\n+ 0\n")
        .expect("a recording");
    assert_eq!(recording.profile.frames[0].function, "grow(int, unsigned long)");
    assert_eq!(
        (recording.profile.frames[0].file.as_deref(), recording.profile.frames[0].line),
        (Some("a\nb\ns"), Some(7))
    );
    // Paths may have what separates a symbol's version.
    let paths =
        heaptrack_of("s d /srv/p@2/my@a\ns c /w@2/tree.cc\ns 8 f@@LIB_1\ni 10 1 3 2 7\nt 1 0\na 8 1\n+ 0\n")
            .expect("a recording");
    let frame = &paths.profile.frames[0];
    assert_eq!((frame.function.as_str(), frame.file.as_deref()), ("f", Some("/w@2/tree.cc")));
    assert_eq!(frame.module, "my@a");
    let older = heaptrack::read(b"v 10100 2\ns /p\ns main f\ni 10 1 2 0 0\nt 1 0\na 8 1\n+ 0\n")
        .expect("a recording");
    assert_eq!(older.profile.frames[0].function, "main f");
}

#[test]
fn blocks_that_come_and_go_are_accounted_for_at_the_peak_and_at_the_end() {
    let tables = "s 1 p\ns 1 f\ns 1 g\ni 10 1 2\ni 20 1 3\nt 1 0\nt 2 1\na 10 1\na 40 2\n";
    let recording = heaptrack_of(&format!("{tables}c 1\n+ 0\n+ 1\n+ 1\n- 1\nc 2\n- 0\n- 0\n+ 1\nc 3\n- 1\n"))
        .expect("a recording");
    assert_eq!((recording.peak.time, recording.peak.bytes, recording.peak.count), (1, 0x90, Some(3)));
    assert_eq!(
        folded::write(&recording.profile, Column::PeakBytes, folded::SourceLines::Hidden),
        "f 16\nf;g 128\n"
    );
    assert_eq!(
        folded::write(&recording.profile, Column::AllocCount, folded::SourceLines::Hidden),
        "f 1\nf;g 3\n"
    );
    assert_eq!(folded::write(&recording.profile, Column::LiveBytes, folded::SourceLines::Hidden), "f;g 64\n");
    let course: Vec<(u64, u64)> = recording.course.iter().map(|point| (point.time, point.bytes)).collect();
    assert_eq!(course, [(0, 0), (1, 0x90), (2, 0x80), (3, 0x80), (3, 0x40)]);
}

#[test]
fn what_heaptrack_does_not_write_is_named_with_its_line() {
    let reported =
        |lines: &str| heaptrack_of(lines).expect_err("a recording that heaptrack does not write").to_string();
    assert!(reported("+ 0\n").starts_with(
        "line 4: should be `+` or `-` and a kind of block from an earlier line, and is \"+ 0\""
    ));
    assert!(reported("t 1 0\n")
        .starts_with("line 4: should be `t`, a code address and a stack, both from earlier lines"));
    assert!(reported("i 10\nt 1 1\n").starts_with("line 5: should be `t`"), "a stack around itself");
    assert!(reported("i 10 1\n").starts_with("line 4: should be `i`"));
    assert!(reported("a 10 1\n").starts_with("line 4: should be `a`"));
    assert!(reported("s 9 short\n").starts_with("line 4: should be `s`"));
    assert!(reported("s 2 long\n").starts_with("line 4: should be `s`"));
    assert!(reported("s ffffffffffffffff x\n").starts_with("line 4: has a text beyond"));
    assert!(reported("s\n").starts_with("line 4: should be `s`"));
    assert!(reported("c soon\n").starts_with("line 4: should be `c` and milliseconds, and is \"c soon\""));
    assert!(reported("?\n").starts_with("line 4: should be one of heaptrack's lines"));
    assert!(reported("x a\n").starts_with("line 4: is raw data"));
    for none in [&b""[..], b"hello\n", b"\x7fELF", b"v\n", b"v 10400 0\n"] {
        assert_eq!(heaptrack::read(none), Err(HeaptrackError::NotARecording));
    }
    assert_eq!(heaptrack::read(b"v 20000 4\n"), Err(HeaptrackError::TooNew(4)));
}

#[test]
fn a_packed_recording_that_is_cut_off_is_an_error() {
    for length in 4..HEAPTRACK.len() {
        let error = heaptrack::read(&HEAPTRACK[..length]).expect_err("half a file");
        assert!(matches!(error, HeaptrackError::Packing { .. } | HeaptrackError::NotARecording), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_them_panic(at in 0..3000_usize, byte in proptest::num::u8::ANY, length in 0..3000_usize) {
        let plain = zstd::decode_all(HEAPTRACK).expect("zstd");
        for whole in [MASSIF.as_bytes(), &plain, HEAPTRACK] {
            let mut changed = whole.to_vec();
            let at = at % changed.len();
            changed[at] = byte;
            let _ = massif::read(&changed);
            let _ = heaptrack::read(&changed);
            changed.truncate(length);
            let _ = massif::read(&changed);
            let _ = heaptrack::read(&changed);
        }
    }
}
