//! The namespaces and classes that functions are declared in.

use gimli::{Dwarf, UnitOffset};
use rustc_hash::FxHashMap;

use super::sections::{text, Slice, LONGEST};

/// The most bytes of the names of one unit's scopes. A hostile unit has a scope in few bytes, and each may have the same long name.
const MOST_BYTES: usize = 64 << 20;

type Unit<'a> = gimli::Unit<Slice<'a>>;

/// The scopes of one unit's functions.
#[derive(Default)]
pub(super) struct Scopes {
    scopes: Vec<Scope>,
    /// The scope of each function in one, by the place of its entry in the unit.
    of_functions: FxHashMap<usize, usize>,
    /// Of all names together.
    bytes: usize,
}

struct Scope {
    /// None where names in it have no qualified form: in a function, or in an unnamed class.
    name: Option<Vec<u8>>,
    outer: Option<usize>,
}

impl Scopes {
    /// Those of a unit; of a damaged one, what is before the damage. C has none.
    pub fn of<'a>(dwarf: &Dwarf<Slice<'a>>, unit: &Unit<'a>) -> Scopes {
        let mut scopes = Scopes::default();
        if !is_of_c(unit) {
            let _ = scopes.read(dwarf, unit);
        }
        scopes
    }

    fn read<'a>(&mut self, dwarf: &Dwarf<Slice<'a>>, unit: &Unit<'a>) -> gimli::Result<()> {
        let mut entries = unit.header.entries_raw(&unit.abbreviations, None)?;
        // The scopes that the next entry is in, with their depths.
        let mut inside: Vec<(isize, usize)> = Vec::new();
        while !entries.is_empty() {
            let (depth, UnitOffset(place)) = (entries.next_depth(), entries.next_offset());
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            inside.truncate(inside.partition_point(|(outer, _)| *outer < depth));
            let outer = inside.last().map(|(_, scope)| *scope);
            let is_namespace = abbreviation.tag() == gimli::DW_TAG_namespace;
            let is_function = abbreviation.tag() == gimli::DW_TAG_subprogram;
            let is_class = matches!(
                abbreviation.tag(),
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type
            );
            if let (true, Some(outer)) = (is_function, outer) {
                self.of_functions.insert(place, outer);
            }
            if !(is_namespace || is_function || is_class) || !abbreviation.has_children() {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let mut name = None;
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(*spec)?;
                if attribute.name() == gimli::DW_AT_name && !is_function {
                    name = text(dwarf, unit, attribute.value());
                }
            }
            let name = name.or_else(|| is_namespace.then(|| b"(anonymous namespace)".to_vec()));
            self.add(name, outer);
            inside.push((depth, self.scopes.len() - 1));
        }
        Ok(())
    }

    fn add(&mut self, name: Option<Vec<u8>>, outer: Option<usize>) {
        self.bytes = self.bytes.saturating_add(name.as_ref().map_or(0, Vec::len));
        self.scopes.push(Scope { name: name.filter(|_| self.bytes <= MOST_BYTES), outer });
    }

    /// The name of the function at that place of the unit with all scopes in front; none where a scope has no name, or the whole is
    /// longer than texts are read.
    pub fn qualified(&self, place: usize, name: &[u8]) -> Option<Vec<u8>> {
        let mut parts = vec![name];
        let mut length = name.len();
        let mut at = self.of_functions.get(&place).copied();
        while let Some(scope) = at {
            let outer = self.scopes[scope].name.as_deref()?;
            length += outer.len() + 2;
            if length > LONGEST {
                return None;
            }
            parts.push(outer);
            at = self.scopes[scope].outer;
        }
        parts.reverse();
        Some(parts.join(&b"::"[..]))
    }
}

/// Whether a unit's language has neither namespaces nor member functions.
fn is_of_c(unit: &Unit) -> bool {
    let mut entries = unit.entries();
    let language = entries.next_dfs().ok().flatten().and_then(|root| root.attr_value(gimli::DW_AT_language));
    matches!(
        language,
        Some(gimli::AttributeValue::Language(
            gimli::DW_LANG_C
                | gimli::DW_LANG_C89
                | gimli::DW_LANG_C99
                | gimli::DW_LANG_C11
                | gimli::DW_LANG_Mips_Assembler
        ))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scopes of one name, each in the one before, with a function in the last.
    fn nested(depth: usize, name: &[u8]) -> Scopes {
        let mut scopes = Scopes::default();
        for scope in 0..depth {
            scopes.add(Some(name.to_vec()), scope.checked_sub(1));
        }
        scopes.of_functions.insert(7, depth - 1);
        scopes
    }

    #[test]
    fn a_name_in_endless_scopes_has_no_qualified_form_and_their_names_have_a_limit() {
        assert_eq!(nested(2, b"a").qualified(7, b"f").as_deref(), Some(&b"a::a::f"[..]));
        assert_eq!(nested(100_000, b"a").qualified(7, b"f"), None);
        assert_eq!(nested(100_000, b"").qualified(7, b"f"), None);
        let kept = |scopes: &Scopes| scopes.scopes.iter().filter_map(|scope| scope.name.as_ref()).count();
        let many = nested(MOST_BYTES / LONGEST + 9, &[b'a'; LONGEST]);
        assert_eq!(kept(&many), MOST_BYTES / LONGEST);
    }
}
