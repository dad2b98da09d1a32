//! The ABI table stands twice: its names in `experiment`, which imports nothing, its rows in `machine`.

use widthwise_experiment::abi as words;
use widthwise_machine::abi as rows;

#[test]
fn every_abi_that_an_experiment_may_name_has_a_row_of_the_same_width_and_the_other_way_round() {
    let width = |model: &str| if model == "LP64" { 8 } else { 4 };
    let named: Vec<_> = words::ABIS.iter().map(|abi| (abi.name, width(abi.data_model))).collect();
    let known: Vec<_> = rows::ABIS.iter().map(|abi| (abi.name, abi.word)).collect();
    assert_eq!(named, known);
}
