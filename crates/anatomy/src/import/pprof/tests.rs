use super::*;
use widthwise_heap_log::profile;

fn a_frame(function: &str, file: Option<&str>, line: Option<u32>, module: &str, inlined: bool) -> Frame {
    Frame { function: function.into(), file: file.map(str::to_owned), line, module: module.into(), inlined }
}

fn a_profile() -> Profile {
    let frames = vec![
        a_frame("main", Some("m.cpp"), Some(7), "program", false),
        a_frame("std::vector<int>::grow(unsigned long)", Some("vector"), Some(80), "program", false),
        a_frame("std::allocator<int>::allocate", Some("alloc"), None, "program", true),
        a_frame("operator new(unsigned long)", None, None, "libstdc++.so.6", false),
        a_frame("0x7f0012", None, None, "", false),
    ];
    let values = Values {
        peak_count: 1,
        peak_bytes: 2,
        peak_chunk_bytes: 3,
        count: 4,
        bytes: 5,
        live_count: 6,
        live_bytes: 7,
        ..Values::default()
    };
    let samples = vec![
        profile::Sample { stack: vec![0, 1, 2, 3], values },
        profile::Sample { stack: vec![0, 1, 3], values: Values { bytes: 1 << 40, ..values } },
        profile::Sample { stack: vec![4], values: Values { live_bytes: 9, ..Values::default() } },
        profile::Sample { stack: vec![], values },
    ];
    Profile { frames, samples }
}

/// A profile of one sample, which names everything but what `change` takes away.
fn a_message(change: impl Fn(&mut Whole)) -> Vec<u8> {
    let strings = ["", "inuse_space", "bytes", "f", "f.c", "/usr/lib/libf.so"];
    let mut message = Whole {
        sample_type: vec![ValueType { kind: 1, unit: 2 }],
        sample: vec![Sample { location_id: vec![9], value: vec![64] }],
        mapping: vec![Mapping { id: 5, filename: 5, ..Mapping::default() }],
        location: vec![Location {
            id: 9,
            mapping_id: 5,
            address: 0x1234,
            line: vec![Line { function_id: 3, line: 12 }],
        }],
        function: vec![Function { id: 3, name: 3, system_name: 3, filename: 4 }],
        string_table: strings.map(str::to_owned).to_vec(),
        ..Whole::default()
    };
    change(&mut message);
    message.encode_to_vec()
}

fn error_of(change: impl Fn(&mut Whole)) -> String {
    read(&a_message(change)).expect_err("a profile that cannot be read").to_string()
}

/// Frames may be numbered otherwise.
fn stacks(profile: &Profile) -> Vec<(Vec<&Frame>, Values)> {
    let stack = |sample: &profile::Sample| {
        sample.stack.iter().map(|frame| &profile.frames[*frame as usize]).collect()
    };
    profile.samples.iter().map(|sample| (stack(sample), sample.values)).collect()
}

#[test]
fn what_is_written_comes_back() {
    let back = read(&write(&a_profile())).expect("a profile");
    assert_eq!(stacks(&back), stacks(&a_profile()));
    assert_eq!(back.frames.len(), a_profile().frames.len());
    assert_eq!(read(&write(&Profile::default())), Ok(Profile::default()));
}

#[test]
fn an_inlined_function_is_a_line_of_the_location_that_has_its_code() {
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(write(&a_profile()).as_slice()).read_to_end(&mut unpacked).expect("gzip");
    let message = Whole::decode(unpacked.as_slice()).expect("a profile");
    let text = |index: i64| message.string_table[index as usize].as_str();
    let types: Vec<_> = message.sample_type.iter().map(|kind| (text(kind.kind), text(kind.unit))).collect();
    assert_eq!(types[..2], [("peak_bytes", "bytes"), ("peak_blocks", "count")]);
    assert_eq!(text(message.default_sample_type), "peak_bytes");
    // The innermost location first.
    let location = |id: u64| message.location.iter().find(|location| location.id == id).expect("a location");
    let names: Vec<Vec<&str>> = message.sample[0]
        .location_id
        .iter()
        .map(|id| {
            let lines = location(*id).line.iter();
            lines.map(|line| text(message.function[line.function_id as usize - 1].name)).collect()
        })
        .collect();
    assert_eq!(
        names,
        [
            vec!["operator new(unsigned long)"],
            vec!["std::allocator<int>::allocate", "std::vector<int>::grow(unsigned long)"],
            vec!["main"],
        ]
    );
    assert_eq!(message.mapping.len(), 2);
    assert!(message.mapping.iter().all(|mapping| mapping.has_functions && mapping.has_inline_frames));
}

#[test]
fn the_programs_own_file_is_the_first_mapping() {
    let mut profile = a_profile();
    profile.samples[0].stack = vec![3, 0];
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(write(&profile).as_slice()).read_to_end(&mut unpacked).expect("gzip");
    let message = Whole::decode(unpacked.as_slice()).expect("a profile");
    assert_eq!(message.string_table[message.mapping[0].filename as usize], "program");
}

#[test]
fn the_same_profile_is_the_same_file() {
    assert_eq!(write(&a_profile()), write(&a_profile()));
}

#[test]
fn other_writers_columns_are_understood() {
    let profile = read(&a_message(|_| {})).expect("a profile");
    assert_eq!(profile.frames, [a_frame("f", Some("f.c"), Some(12), "libf.so", false)]);
    assert_eq!(profile.sum(), Values { live_bytes: 64, ..Values::default() });
}

#[test]
fn a_location_without_names_is_its_address() {
    let profile = read(&a_message(|message| message.location[0].line.clear())).expect("a profile");
    assert_eq!(profile.frames[0].function, "0x1234");
}

#[test]
fn a_profile_of_something_else_is_refused_with_what_it_counts() {
    let error = error_of(|message| message.string_table[1] = "cpu".into());
    assert!(error.starts_with("counts cpu, and none of peak_bytes"), "{error}");
    assert!(error_of(|message| message.sample_type.clear()).starts_with("counts nothing"));
}

#[test]
fn what_a_sample_names_and_the_profile_lacks_is_named() {
    let lacks = |what: &str| format!("sample 1: names {what}, which the profile does not have");
    assert_eq!(error_of(|message| message.location.clear()), lacks("location 9"));
    assert_eq!(error_of(|message| message.function.clear()), lacks("function 3"));
    assert_eq!(error_of(|message| message.mapping.clear()), lacks("mapping 5"));
    assert_eq!(error_of(|message| message.string_table.truncate(4)), lacks("string 5"));
}

#[test]
fn less_than_nothing_is_refused() {
    let error = error_of(|message| message.sample[0].value[0] = -1);
    assert_eq!(error, "sample 1: has a negative live_bytes: a difference of two profiles cannot be read");
}

#[test]
fn a_file_cut_off_anywhere_is_an_error_or_a_shorter_profile() {
    let packed = write(&a_profile());
    for length in 2..packed.len() {
        assert!(matches!(read(&packed[..length]), Err(PprofError::Packing(_))), "{length} bytes");
    }
    let whole = a_message(|_| {});
    for length in 0..whole.len() {
        let _ = read(&whole[..length]);
    }
    let error = read(&whole[..whole.len() - 1]).expect_err("a cut-off string").to_string();
    assert!(error.contains("field 6 has 16 bytes, and 15 are left"), "{error}");
}

#[test]
fn a_bomb_is_not_unpacked_to_its_end() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&vec![0_u8; 1 << 20]).expect("memory");
    let limits = Limits { unpacked: 1 << 16, ..LIMITS };
    assert_eq!(read_within(&packer.finish().expect("memory"), limits), Err(PprofError::TooLarge));
}

#[test]
fn few_bytes_do_not_become_endless_stacks() {
    // 4096 functions inlined into one, which each sample names ten times.
    let bytes = a_message(|message| {
        message.location[0].line = vec![Line { function_id: 3, line: 12 }; 4096];
        message.sample = (1..20).map(|n| Sample { location_id: vec![9; 10], value: vec![n] }).collect();
    });
    let limits = Limits { frames: 100_000, ..LIMITS };
    assert_eq!(read_within(&bytes, limits), Err(PprofError::TooManyFrames { sample: 3 }));
    assert!(read(&bytes).is_ok());
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), at in 0..100_usize) {
        let _ = read(&bytes);
        let mut whole = a_message(|_| {});
        for (index, byte) in bytes.iter().enumerate().take(3) {
            let position = (at + index * 7) % whole.len();
            whole[position] = *byte;
        }
        let _ = read(&whole);
    }
}
