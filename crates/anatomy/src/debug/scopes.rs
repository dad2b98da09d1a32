//! The namespaces and classes that functions are declared in.

use gimli::{Dwarf, UnitOffset};
use rustc_hash::FxHashMap;

use super::sections::{text, Slice};

type Unit<'a> = gimli::Unit<Slice<'a>>;

/// The scopes of one unit's functions.
#[derive(Default)]
pub(super) struct Scopes {
    scopes: Vec<Scope>,
    /// The scope of each function in one, by the place of its entry in the unit.
    of_functions: FxHashMap<usize, usize>,
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
            self.scopes.push(Scope { name, outer });
            inside.push((depth, self.scopes.len() - 1));
        }
        Ok(())
    }

    /// The name of the function at that place of the unit with all scopes in front; none where a scope has no name.
    pub fn qualified(&self, place: usize, name: &[u8]) -> Option<Vec<u8>> {
        let mut parts = vec![name];
        let mut at = self.of_functions.get(&place).copied();
        while let Some(scope) = at {
            parts.push(self.scopes[scope].name.as_deref()?);
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
