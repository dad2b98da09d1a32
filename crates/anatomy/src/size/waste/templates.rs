//! Templates that differ in nothing but a pointer's type, although their code is the same.

use rustc_hash::FxHashMap;

use super::model::{Waste, WasteKind};
use crate::code::identical;
use crate::elf::named::Named;
use crate::elf::Elf;
use crate::names::demangled;

/// All groups of such functions.
pub(super) fn pointer_templates(elf: &Elf, named: &[Named]) -> Vec<Waste> {
    let mut all = Vec::new();
    for group in identical::groups(elf, named) {
        let mut by_template: FxHashMap<String, Vec<u64>> = FxHashMap::default();
        for function in group {
            let name = String::from_utf8_lossy(function.name);
            // A template's arguments are between `I` and `E`; most names have none.
            if !name.starts_with("_Z") || !name.contains('I') {
                continue;
            }
            let shown = demangled(&name);
            let masked = without_pointees(&shown);
            if masked != shown {
                by_template.entry(masked).or_default().push(function.size);
            }
        }
        for (name, sizes) in by_template.into_iter().filter(|(_, sizes)| sizes.len() > 1) {
            let largest = sizes.iter().max().copied().unwrap_or(0);
            let bytes = sizes.iter().sum::<u64>() - largest;
            all.push(Waste { kind: WasteKind::PointerTemplates, name, count: sizes.len() as u64, bytes });
        }
    }
    all
}

/// `vector<Node*>::push_back(Node* const&)` as `vector<?*>::push_back(?* const&)`. Without template arguments a name stays.
fn without_pointees(name: &str) -> String {
    if !name.contains('<') {
        return name.to_owned();
    }
    let mut kept: Vec<char> = Vec::new();
    for c in name.chars() {
        if c == '*' {
            cut_type(&mut kept);
            kept.push('?');
        }
        kept.push(c);
    }
    kept.into_iter().collect()
}

/// Removes the type at the end: its name with qualifications, template arguments and `const`.
fn cut_type(kept: &mut Vec<char>) {
    let text: String = kept.iter().collect();
    let text = text.strip_suffix(" const").unwrap_or(&text);
    let mut depth = 0_u32;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        match c {
            '>' | ')' if depth > 0 || c == '>' => depth += 1,
            '<' if depth > 0 => depth -= 1,
            '(' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            c if c.is_alphanumeric() || matches!(c, '_' | ':' | '*' | '?') => {}
            // `unsigned int*` is one type; `operator delete` has no pointer.
            ' ' if is_integer_word(&text[..at]) => {}
            _ => break,
        }
        start = at;
    }
    let count = text[..start].chars().count();
    kept.truncate(count);
}

fn is_integer_word(before: &str) -> bool {
    ["unsigned", "signed", "long", "short"].iter().any(|word| before.ends_with(word))
}

#[cfg(test)]
mod tests {
    use super::without_pointees;

    #[test]
    fn pointees_of_template_functions_are_masked() {
        for (name, masked) in [
            ("std::vector<Node*>::push_back(Node* const&)", "std::vector<?*>::push_back(?* const&)"),
            ("f<a::B<int, C> const*>(int)", "f<?*>(int)"),
            ("g<unsigned int*, char**>()", "g<?*, ?*>()"),
            ("h<int>(int)", "h<int>(int)"),
            ("plain(Node*)", "plain(Node*)"),
        ] {
            let found = without_pointees(name);
            assert_eq!(found.replace("?**", "?*"), masked, "{name}");
        }
    }
}
