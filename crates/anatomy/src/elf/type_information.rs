//! The classes with virtual functions that a program's own tables describe (Itanium C++ ABI, 2.5.2 and 2.9.5): no symbols and no debug
//! information are needed.

use super::loaded::Loaded;
use super::named::without_version;
use super::relocations::Pointee;
use super::Elf;
use crate::names;

/// What the name of each kind of type information begins with, behind `_ZTV` in symbols: `__cxxabiv1::__class_type_info` and others.
const KINDS: &str = "N10__cxxabiv1";
const WITHOUT_BASES: &str = "N10__cxxabiv117__class_type_infoE";
const SINGLE: &str = "N10__cxxabiv120__si_class_type_infoE";
const SEVERAL: &str = "N10__cxxabiv121__vmi_class_type_infoE";
/// No name of a type is longer.
const LONGEST: usize = 1 << 16;
/// No class has more bases, and no chain of bases is longer.
const MOST: u64 = 256;

/// A class with virtual functions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// The address of its type information; 0 where another file has it.
    pub information: u64,
    /// Demangled.
    pub name: String,
}

/// One base of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// The address of its type information; none if another file has it.
    pub information: Option<u64>,
    /// Where it is in the class, in bytes; of a virtual base, where the table has that.
    pub offset: i64,
    /// Whether it is a virtual base.
    pub is_virtual: bool,
}

/// The type information of one file.
#[derive(Debug)]
pub struct TypeInformation<'r, 'a> {
    loaded: &'r Loaded<'r, 'a>,
    word: u64,
}

impl<'r, 'a> TypeInformation<'r, 'a> {
    /// Reads it as it is asked for.
    pub fn of(elf: &Elf<'a>, loaded: &'r Loaded<'r, 'a>) -> TypeInformation<'r, 'a> {
        TypeInformation { loaded, word: elf.word() }
    }

    /// The class whose objects begin with this address: of its virtual table, behind the offset to the top, which is 0, and the
    /// pointer to the type information. None if no such table is there.
    pub fn with_table(&self, table: u64) -> Option<Class> {
        if let Some(symbol) = self.copied(table) {
            return of_symbol(symbol);
        }
        let top = self.loaded.pointee(table.checked_sub(2 * self.word)?)?;
        let information = self.loaded.pointee(table.checked_sub(self.word)?)?;
        match (top, information) {
            (Pointee::Address(0), Pointee::Address(information)) => {
                self.kind(information)?;
                let name = self.type_name(information)?;
                Some(Class { information, name })
            }
            _ => None,
        }
    }

    /// Whether one class is the other, or a base of it.
    pub fn is_same_or_base(&self, base: u64, derived: u64) -> bool {
        let mut next = vec![derived];
        for _ in 0..MOST {
            match next.pop() {
                None => return false,
                Some(class) if class == base => return true,
                Some(class) => {
                    next.extend(self.bases(class).into_iter().flatten().filter_map(|base| base.information))
                }
            }
        }
        false
    }

    /// The bases of the class whose type information is at an address. None if they are not known.
    pub fn bases(&self, information: u64) -> Option<Vec<Base>> {
        let at = information.wrapping_add(2 * self.word);
        match self.kind(information)?.as_str() {
            WITHOUT_BASES => Some(Vec::new()),
            SINGLE => Some(vec![Base { information: self.address(at), offset: 0, is_virtual: false }]),
            SEVERAL => {
                // Flags and the number of bases are two `unsigned int`, then each base is a pointer and a `long`.
                let count =
                    self.loaded.number(at.wrapping_add(4)).map(u64::from).filter(|count| *count <= MOST)?;
                let base = |number: u64| {
                    let at = at.wrapping_add(8 + number * 2 * self.word);
                    let flags = self.address(at.wrapping_add(self.word))?;
                    let flags = if self.word == 8 { flags as i64 } else { i64::from(flags as u32 as i32) };
                    let information = self.address(at);
                    Some(Base { information, offset: flags >> 8, is_virtual: flags & 1 != 0 })
                };
                (0..count).map(base).collect()
            }
            _ => None,
        }
    }

    /// The word at an address, if it is one of this file or a number.
    fn address(&self, at: u64) -> Option<u64> {
        match self.loaded.pointee(at) {
            Some(Pointee::Address(address)) => Some(address),
            _ => None,
        }
    }

    /// The mangled name of the kind of type information that an address has. None if it has none.
    fn kind(&self, information: u64) -> Option<String> {
        let table = |symbol: &[u8]| {
            Some(std::str::from_utf8(without_version(symbol).strip_prefix(b"_ZTV")?).ok()?.to_owned())
        };
        let name = match self.loaded.pointee(information)? {
            Pointee::External(symbol) => table(symbol)?,
            Pointee::Address(address) if self.copied(address).is_some() => table(self.copied(address)?)?,
            // A static program: the table of `__class_type_info` has type information of its own.
            Pointee::Address(table) => match self.loaded.pointee(table.checked_sub(self.word)?)? {
                Pointee::Address(own) => self.mangled(own)?,
                Pointee::External(_) => return None,
            },
        };
        name.starts_with(KINDS).then_some(name)
    }

    /// The symbol of another file's table, a copy of which a program at a fixed address has.
    fn copied(&self, table: u64) -> Option<&'a [u8]> {
        self.loaded.relocations.copied(table.checked_sub(2 * self.word)?)
    }

    fn type_name(&self, information: u64) -> Option<String> {
        named(&self.mangled(information)?)
    }

    /// The name that type information holds; `*` before it says that another file's class of that name is another one.
    fn mangled(&self, information: u64) -> Option<String> {
        let Pointee::Address(name) = self.loaded.pointee(information.checked_add(self.word)?)? else {
            return None;
        };
        let bytes = self.loaded.bytes(name);
        let length = bytes.iter().take(LONGEST).position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(&bytes[..length]).ok()?;
        let text = text.strip_prefix('*').unwrap_or(text);
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| text.to_owned())
    }
}

/// The class that a symbol of another file names: `_ZTV5Shape`.
pub fn of_symbol(symbol: &[u8]) -> Option<Class> {
    let mangled = std::str::from_utf8(without_version(symbol)).ok()?.strip_prefix("_ZTV")?;
    Some(Class { information: 0, name: named(mangled)? })
}

/// The name of a mangled type.
fn named(mangled: &str) -> Option<String> {
    names::demangled(&format!("_ZTS{mangled}")).strip_prefix("typeinfo name for ").map(str::to_owned)
}
