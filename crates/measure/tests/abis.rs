//! The ABI table exists twice: its names in `experiment`, which imports nothing, its rows in `machine`.

use widthwise_experiment::abi as words;
use widthwise_machine::abi as rows;

#[test]
fn abi_names_and_abi_rows_match_in_name_and_width() {
    let width = |model: &str| if model == "LP64" { 8 } else { 4 };
    let named: Vec<_> = words::ABIS.iter().map(|abi| (abi.name, width(abi.data_model))).collect();
    let known: Vec<_> = rows::ABIS.iter().chain(rows::FOREIGN).map(|abi| (abi.name, abi.word)).collect();
    assert_eq!(named, known);
    assert!(words::ABIS
        .iter()
        .all(|abi| rows::find(abi.name).is_some_and(|row| row.is_foreign() == abi.is_foreign)));
}
