//! One function of two programs, side by side.

use std::collections::BTreeSet;

use crate::explain::close_names::close_names;
use widthwise_anatomy::code::compare::Pair;
use widthwise_anatomy::code::{align, listing, Line};
use widthwise_anatomy::elf::named::Named;
use widthwise_anatomy::elf::{Elf, Symbol};
use widthwise_anatomy::names;
use widthwise_report::explanation::code::Code;
use widthwise_report::explanation::function;
use widthwise_report::text::Palette;

use super::program::Program;
use crate::failure::Failure;
use crate::output;

/// Prints the function with that name: demangled, with or without its parameters, or mangled.
///
/// # Errors
/// No program has it, or several functions are meant.
pub fn show(
    programs: &[Program; 2],
    elves: [&Elf; 2],
    named: [&[Named]; 2],
    code: Option<&Code>,
    name: &str,
) -> Result<(), Failure> {
    let code = code.ok_or_else(|| Failure::request("--function: there is no decoder for these programs"))?;
    let pair = find(code, elves, name)?;
    let lines = |side: usize| -> Result<Vec<Line>, Failure> {
        match pair.symbols[side].as_slice() {
            [] => Ok(Vec::new()),
            symbol => listing(elves[side], named[side], symbol).map_err(Failure::request),
        }
    };
    let (a, b) = (lines(0)?, lines(1)?);
    let aligned = align(&a, &b);
    let names = [programs[0].name.as_str(), programs[1].name.as_str()];
    let shown = function::Function { name: &pair.name, names, lines: [&a, &b], aligned: &aligned };
    output::print(&shown.terminal(output::width(), &Palette::coloured()))
}

fn find<'a>(code: &'a Code, elves: [&Elf; 2], name: &str) -> Result<&'a Pair, Failure> {
    let wanted = names::key(name);
    let all: Vec<&Pair> = code.pairs.iter().filter(|pair| !pair.name.is_empty()).collect();
    let is_whole = |pair: &&&Pair| {
        names::key(&pair.name) == wanted || pair.symbols.iter().any(|symbol| symbol == name.as_bytes())
    };
    if let Some(pair) = all.iter().find(is_whole) {
        return Ok(pair);
    }
    // Without the parameters.
    let short = |pair: &&&Pair| names::key(pair.name.split('(').next().unwrap_or_default()) == wanted;
    let found: Vec<&&Pair> = all.iter().filter(short).collect();
    match found.as_slice() {
        [only] => Ok(only),
        [] => {
            let others = elves.map(|elf| names_of_alias(elf, name));
            let is_other = |pair: &&&Pair| {
                pair.symbols.iter().zip(&others).any(|(own, others)| others.contains(&own.as_slice()))
            };
            if let Some(pair) = all.iter().find(is_other) {
                return Ok(pair);
            }
            // The parameters would count as a distance.
            let bare = |pair: &&Pair| pair.name.split('(').next().unwrap_or_default().to_owned();
            let names = all.iter().map(bare).collect();
            Err(Failure::request(format!(
                "--function {name}: neither program has a function of that name{}",
                close_names(name, &names)
            )))
        }
        several => {
            let names: Vec<&str> = several.iter().take(5).map(|pair| pair.name.as_str()).collect();
            Err(Failure::request(format!(
                "--function {name}: {} functions have that name; name the parameters, too: {}",
                several.len(),
                names.join("; ")
            )))
        }
    }
}

/// The names of the code that this name stands for, if it is another name of it (`__attribute__((alias))`, a weak symbol): code is
/// listed under one.
fn names_of_alias<'a>(elf: &Elf<'a>, name: &str) -> Vec<&'a [u8]> {
    let wanted = names::key(name);
    let symbols = elf.symbol_table().map_or(Vec::new(), |table| elf.symbols(table));
    let is_named = |symbol: &Symbol| {
        let (full, _) = names::key_of_symbol(symbol.name);
        symbol.name == name.as_bytes()
            || names::key(&full) == wanted
            || names::key(full.split('(').next().unwrap_or_default()) == wanted
    };
    let place = |symbol: &Symbol| (symbol.section, symbol.value);
    let own = symbols.iter().filter(|symbol| symbol.section != 0 && is_named(symbol));
    let places: BTreeSet<(usize, u64)> = own.map(place).collect();
    symbols.iter().filter(|symbol| places.contains(&place(symbol))).map(|symbol| symbol.name).collect()
}
