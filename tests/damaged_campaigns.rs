//! Campaigns that cannot be read are refused, and not touched.

use crate::failing_programs::with_programs;
use crate::laboratory::Laboratory;

/// A campaign to be damaged.
pub(crate) fn with_campaign() -> Laboratory {
    let lab = with_programs();
    assert_eq!(lab.compare("tells.c --abi x86-64 --rounds 6").status, Some(0));
    lab
}

/// `report` and `--resume` refuse it with the same message; the file stays unchanged.
fn is_refused(lab: &Laboratory, campaign: &str, words: &[&str]) {
    let file = lab.path(campaign).join("campaign.sqlite");
    let before = std::fs::read(&file).ok();
    lab.widthwise(&["report", campaign]).refuses(2, words);
    lab.widthwise(&["compare", "--resume", campaign]).refuses(2, words);
    assert_eq!(std::fs::read(&file).ok(), before, "an archive that was refused was touched");
}

#[test]
fn a_missing_campaign_and_a_folder_that_is_not_a_campaign_have_different_errors() {
    let lab = with_campaign();
    is_refused(&lab, "nowhere", &["nowhere: there is no such folder"]);
    is_refused(&lab, ".", &["has no campaign in it"]);
    is_refused(&lab, "tells.c", &["not the folder of a campaign"]);
    Laboratory::new().widthwise(&["report"]).refuses(2, &[".widthwise/latest: there is no such folder"]);
}

#[test]
fn an_archive_of_another_kind_or_an_empty_one_is_refused() {
    let lab = with_campaign();
    let file = lab.campaign().join("campaign.sqlite");
    for bytes in [&b""[..], b"hello, this is a text that is much longer than the header of a database ........................................................"] {
        std::fs::write(&file, bytes).unwrap();
        is_refused(&lab, ".widthwise/latest", &["campaign.sqlite: is not a widthwise archive"]);
    }
    std::fs::remove_file(&file).unwrap();
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("CREATE TABLE x (y); PRAGMA application_id = 7;").unwrap();
    drop(other);
    is_refused(&lab, ".widthwise/latest", &["is not a widthwise archive", "another application"]);
}

#[test]
fn a_newer_archive_is_refused_with_both_versions() {
    let lab = with_campaign();
    let archive = rusqlite::Connection::open(lab.campaign().join("campaign.sqlite")).unwrap();
    archive.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(archive);
    is_refused(
        &lab,
        ".widthwise/latest",
        &["written by a newer widthwise", "archive version 99", "upgrade widthwise"],
    );
}

#[test]
fn a_damaged_archive_is_refused_wherever_the_damage_is() {
    let lab = with_campaign();
    let file = lab.campaign().join("campaign.sqlite");
    let whole = std::fs::read(&file).unwrap();
    // Truncated, and overwritten in a page of tables.
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    is_refused(&lab, ".widthwise/latest", &["is damaged and was left as it is"]);
    let mut overwritten = whole.clone();
    overwritten[4096..8192].fill(0xa5);
    std::fs::write(&file, overwritten).unwrap();
    is_refused(&lab, ".widthwise/latest", &["is damaged and was left as it is"]);
    // One wrong byte anywhere: the archive is refused or read, without a crash.
    for seed in 0..40u64 {
        let mut bytes = whole.clone();
        let at = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % bytes.len();
        bytes[at] ^= 1 << (seed % 8);
        std::fs::write(&file, bytes).unwrap();
        let printed = lab.widthwise("report --json");
        match printed.status {
            Some(0) => drop(printed.json()),
            Some(2) => printed.refuses(2, &[]),
            other => panic!("byte {at} flipped: {other:?}: {printed:?}"),
        }
    }
}

#[test]
fn a_specification_that_cannot_be_read_is_named_with_its_campaign() {
    let lab = with_campaign();
    let archive = rusqlite::Connection::open(lab.campaign().join("campaign.sqlite")).unwrap();
    archive.execute_batch("UPDATE campaign SET spec = 'run = 5'").unwrap();
    drop(archive);
    let words = [".widthwise/", "/widthwise.toml:1: \"run\" must be a table"];
    for command in ["report .widthwise/latest", "compare --resume .widthwise/latest"] {
        lab.widthwise(command).refuses(2, &words);
    }
}
