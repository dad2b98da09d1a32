//! Malicious files yield an error or a campaign, never a panic or an endless wait.

use std::fs;
use std::sync::LazyLock;

use crate::sample;
use proptest::prelude::*;
use widthwise_archive::{Archive, BuildNote};
use widthwise_experiment::outcome::{Ending, RoundKind};
use widthwise_experiment::VariantStatus;

/// An archive with rows in each table.
static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let parent = tempfile::tempdir().unwrap();
    let mut archive = Archive::create(parent.path(), &sample::metadata()).unwrap();
    for number in 0..4 {
        archive.begin_round(number, RoundKind::Timed, 3, None).unwrap();
        for (position, variant) in (0..).zip(sample::VARIANTS) {
            let mut run = sample::run(number, position, variant);
            if (number, position) == (2, 1) {
                run.ending = Ending::SpawnFailed { reason: "execve: Exec format error".into() };
            }
            archive.add_run(&run, &sample::processes(variant)).unwrap();
        }
        archive.end_round(&sample::timed(number)).unwrap();
    }
    archive.set_status("x32/-O2", &VariantStatus::Ready).unwrap();
    archive.set_difference("x32/-O2", &"-1\n+2\n".repeat(1000)).unwrap();
    archive.warn("load").unwrap();
    archive.set_stopped("rounds: 4", std::time::Duration::from_secs(4)).unwrap();
    let build = BuildNote {
        variant: "x32/-O2".into(),
        compiler: "gcc-12".into(),
        cflags: "-O2".into(),
        binary_bytes: Some(7),
        digest: Some("00ff".into()),
        log: "log".into(),
        seconds: 1.0,
        cached: true,
    };
    archive.set_build(&build).unwrap();
    let file = archive.folder().join("campaign.sqlite");
    drop(archive);
    fs::read(file).unwrap()
});

/// Opens it both ways and reads everything. Any result will do; the calls must return.
fn open(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("campaign.sqlite"), bytes).unwrap();
    if let Ok(archive) = Archive::read(folder.path()) {
        let _ = archive.load();
        let _ = archive.changed(&sample::metadata().fingerprint);
    }
    if let Ok(mut archive) = Archive::resume(folder.path()) {
        let number = archive.next_round();
        let _ = archive.begin_round(number, RoundKind::Timed, 3, None);
        let _ = archive.add_run(&sample::run(number, 0, sample::VARIANTS[0]), &[]);
        let _ = archive.end_round(&sample::timed(number));
        let _ = archive.load();
    }
}

#[test]
fn the_undamaged_archive_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("campaign.sqlite"), &*WHOLE).unwrap();
    assert_eq!(Archive::read(folder.path()).unwrap().load().unwrap().runs.len(), 12);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..8)) {
        let mut bytes = WHOLE.clone();
        for (place, change) in changes {
            bytes[place.index(WHOLE.len())] ^= change;
        }
        open(&bytes);
    }

    // Most of a file is cells; the interesting bytes are the first of each page.
    #[test]
    fn flipped_page_headers_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), 0..110usize, any::<u8>()), 1..6)) {
        let mut bytes = WHOLE.clone();
        for (page, offset, value) in changes {
            bytes[page.index(WHOLE.len() / 4096) * 4096 + offset] = value;
        }
        open(&bytes);
    }

    #[test]
    fn truncated_files_never_panic(length in any::<prop::sample::Index>()) {
        open(&WHOLE[..length.index(WHOLE.len())]);
    }
}
