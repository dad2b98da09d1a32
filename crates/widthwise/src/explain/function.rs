//! One function of two programs, side by side.

use std::collections::{BTreeMap, BTreeSet};

use crate::explain::close_names::close_names;
use widthwise_anatomy::code::compare::Pair;
use widthwise_anatomy::code::{align, listing, Line};
use widthwise_anatomy::elf::named::Named;
use widthwise_anatomy::elf::{Elf, Symbol, SymbolKind};
use widthwise_anatomy::function_name::without_parameters;
use widthwise_anatomy::names;
use widthwise_report::explanation::code::Code;
use widthwise_report::explanation::function;
use widthwise_report::sanitize;
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
    let same = [0, 1].map(|side| symbols_of(elves[side], &pair.symbols[side]));
    let symbols =
        [0, 1].map(|side| match same[side].iter().flatten().find(|symbol| **symbol == name.as_bytes()) {
            Some(named) => named,
            None => pair.symbols[side].as_slice(),
        });
    let lines = |side: usize| -> Result<Vec<Line>, Failure> {
        match symbols[side] {
            [] => Ok(Vec::new()),
            symbol => listing(elves[side], named[side], symbol).map_err(Failure::request),
        }
    };
    let (a, b) = (lines(0)?, lines(1)?);
    let aligned = align(&a, &b);
    let names = [programs[0].name.as_str(), programs[1].name.as_str()];
    let shown = function::Function { name: &pair.name, names, lines: [&a, &b], aligned: &aligned };
    let mut text = shown.terminal(output::width(), &Palette::coloured());
    for (side, same) in same.iter().enumerate().filter(|(_, same)| same.len() > 1) {
        text.push_str(&others(names[side], same, symbols[side]));
    }
    output::print(&text)
}

/// That a name stands for several functions, such as the destructors of one class; which is shown, and how the others are.
fn others(program: &str, same: &[Vec<&[u8]>], shown: &[u8]) -> String {
    /// So many are named.
    const MOST: usize = 5;
    let text = |symbol: &[u8]| sanitize::line(&String::from_utf8_lossy(symbol));
    let others = same.iter().filter(|names| !names.contains(&shown));
    let others: Vec<String> =
        others.filter_map(|names| names.first()).take(MOST).map(|symbol| text(symbol)).collect();
    format!(
        "{} functions of {} have this name; {} is shown. The others: --function {}\n",
        same.len(),
        sanitize::line(program),
        text(shown),
        others.join(", ")
    )
}

/// The symbols of the functions of that symbol's demangled name, by function: one may have several.
fn symbols_of<'a>(elf: &Elf<'a>, symbol: &[u8]) -> Vec<Vec<&'a [u8]>> {
    let wanted = names::function_name_key(&names::names_of_symbol(symbol).shown);
    let symbols = elf.symbol_table().map_or(Vec::new(), |table| elf.symbols(table));
    let is_one = |symbol: &&Symbol| {
        symbol.kind == SymbolKind::Function
            && symbol.section != 0
            && names::function_name_key(&names::names_of_symbol(symbol.name).shown) == wanted
    };
    let mut places: BTreeMap<(usize, u64), Vec<&[u8]>> = BTreeMap::new();
    for symbol in symbols.iter().filter(is_one) {
        places.entry((symbol.section, symbol.value)).or_default().push(symbol.name);
    }
    places.into_values().collect()
}

fn find<'a>(code: &'a Code, elves: [&Elf; 2], name: &str) -> Result<&'a Pair, Failure> {
    let all: Vec<&Pair> = code.pairs.iter().filter(|pair| !pair.name.is_empty()).collect();
    let demangled = names::names_of_symbol(name.as_bytes()).shown;
    let is_whole = |pair: &Pair, key: fn(&str) -> String| {
        let own = key(&pair.name);
        own == key(name)
            || own == key(&demangled)
            || pair.symbols.iter().any(|symbol| symbol == name.as_bytes())
    };
    // Without the parameters, and without the type of the result, which demanglers write in front of templates.
    let is_short = |pair: &Pair, key: fn(&str) -> String| {
        let short = without_parameters(&pair.name);
        key(short) == key(name) || key(names::without_result(short)) == key(name)
    };
    // `long` and `int` are two in one program: they are one only where the other ABI's name was given.
    let keys = [names::function_name_key, names::key];
    if let Some(pair) = keys.iter().find_map(|key| all.iter().find(|pair| is_whole(pair, *key))) {
        return Ok(pair);
    }
    let shorts = keys.map(|key| all.iter().filter(|pair| is_short(pair, key)).collect::<Vec<_>>());
    let found = shorts.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
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
            let bare = |pair: &&Pair| without_parameters(&pair.name).to_owned();
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
    let symbols = elf.symbol_table().map_or(Vec::new(), |table| elf.symbols(table));
    let is_named = |symbol: &Symbol, key: fn(&str) -> String| {
        let full = names::names_of_symbol(symbol.name).shown;
        let wanted = key(name);
        symbol.name == name.as_bytes() || key(&full) == wanted || key(without_parameters(&full)) == wanted
    };
    let place = |symbol: &Symbol| (symbol.section, symbol.value);
    let places = |key: fn(&str) -> String| -> BTreeSet<(usize, u64)> {
        symbols.iter().filter(|symbol| symbol.section != 0 && is_named(symbol, key)).map(place).collect()
    };
    let own = places(names::function_name_key);
    let places = if own.is_empty() { places(names::key) } else { own };
    symbols.iter().filter(|symbol| places.contains(&place(symbol))).map(|symbol| symbol.name).collect()
}
