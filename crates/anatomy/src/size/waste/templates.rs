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
    let hidden = with_hidden_symbols(name);
    if !hidden.contains('<') {
        return name.to_owned();
    }
    let mut kept: Vec<char> = Vec::new();
    for c in hidden.chars() {
        if c == '*' {
            cut_type(&mut kept);
            kept.push('?');
        }
        kept.push(c);
    }
    kept.into_iter().map(unhidden).collect()
}

/// The first character of Unicode's private use area.
const PRIVATE: u32 = 0xe000;

/// The name with the symbols of operators, as the `*` in `Iterator<Node>::operator*`, in characters of the private use area: they are
/// neither pointers nor brackets. That of a conversion, `operator Node*`, is a type.
fn with_hidden_symbols(name: &str) -> String {
    const OPERATOR: &str = "operator";
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut hidden = String::new();
    let mut rest = name;
    while let Some(at) = rest.find(OPERATOR) {
        let (before, behind) = rest.split_at(at + OPERATOR.len());
        hidden.push_str(before);
        rest = behind;
        if before[..at].ends_with(is_of_word) {
            continue;
        }
        let symbol = match behind.starts_with("()") {
            true => 2,
            false => behind.find(|c| !"+-*/%^&|~!=<>".contains(c)).unwrap_or(behind.len()),
        };
        hidden.extend(behind[..symbol].chars().map(|c| char::from_u32(PRIVATE + u32::from(c)).unwrap_or(c)));
        rest = &behind[symbol..];
    }
    hidden + rest
}

/// The character that the name has there.
fn unhidden(c: char) -> char {
    u32::from(c).checked_sub(PRIVATE).and_then(|code| u8::try_from(code).ok()).map_or(c, char::from)
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
    use crate::names::demangled;

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
    #[test]
    fn symbols_of_operators_are_neither_pointers_nor_brackets() {
        for (mangled, masked) in [
            // Without a pointer a name stays, and so does its class.
            ("_ZNK4RingIlEdeEv", "Ring<long>::operator*() const"),
            ("_ZNK4RingIlEmlERKS0_", "Ring<long>::operator*(Ring<long> const&) const"),
            ("_ZN4RingIlEmLERKS0_", "Ring<long>::operator*=(Ring<long> const&)"),
            ("_ZNK4RingIlEadEv", "Ring<long>::operator&() const"),
            ("_ZN4RingIlEclEv", "Ring<long>::operator()()"),
            ("_ZNK4RingIlEgtERKS0_", "Ring<long>::operator>(Ring<long> const&) const"),
            ("_ZltIiEbRKT_S2_", "bool operator< <int>(int const&, int const&)"),
            ("_ZmlIiEbRKT_S2_", "bool operator*<int>(int const&, int const&)"),
            ("_ZN3RowltERKS_", "Row::operator<(Row const&)"),
            // Without template arguments no type is masked.
            ("_ZN3RowltEP4Node", "Row::operator<(Node*)"),
            ("_ZN3RowptEv", "Row::operator->()"),
            // Types behind and before the symbol are masked as elsewhere.
            ("_ZN4RingIP4NodeEdeEv", "Ring<?*>::operator*()"),
            ("_ZN4RingIP4NodeEptEv", "Ring<?*>::operator->()"),
            ("_ZN4RingIP4NodeEpmES1_", "Ring<?*>::operator->*(?*)"),
            ("_ZN4RingIP4NodeEclES1_", "Ring<?*>::operator()(?*)"),
            ("_ZN4RingIP4NodeEgtES1_", "Ring<?*>::operator>(?*)"),
            ("_ZN4RingIP4NodeElsES1_", "Ring<?*>::operator<<(?*)"),
            ("_ZN4RingIP4NodeEssES1_", "Ring<?*>::operator<=>(?*)"),
            // A conversion's pointer is a type.
            ("_ZNK4RingIP4NodeEcvS1_Ev", "Ring<?*>::operator ?*() const"),
            ("_ZNK4RingIP4NodeEcvbEv", "Ring<?*>::operator bool() const"),
            ("_ZN4RingIP4NodeE11my_operatorEPS1_", "Ring<?*>::my_operator(?*)"),
        ] {
            let shown = demangled(mangled);
            assert_eq!(without_pointees(&shown).replace("?**", "?*"), masked, "{shown}");
        }
    }
}
