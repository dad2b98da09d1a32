//! Demangled names: of C++ by cpp_demangle, of Rust by rustc-demangle.

use super::brackets::closing_bracket;

/// The demangled name, of C++ or of Rust; other names stay as they are.
///
/// The hashes in Rust's names, of both its manglings, are left out: each build has others.
pub(crate) fn demangled(name: &str) -> String {
    // `name@@VERSION` of a symbol table.
    let name = name.split('@').next().unwrap_or(name);
    if !is_mangled(name) {
        return name.to_owned();
    }
    // Rust's older mangling is that of C++ with a hash behind it: asked first.
    if let Ok(shown) = rustc_demangle::try_demangle(name) {
        return format!("{shown:#}");
    }
    let shown = |name: &str| cpp(name).or_else(|| cpp_with_gcc_scopes(name));
    let of_thunk =
        thunk(name).and_then(|(kind, encoding)| Some(format!("{kind}{}", shown(&format!("_Z{encoding}"))?)));
    of_thunk.or_else(|| shown(name)).unwrap_or_else(|| name.to_owned())
}

/// What libiberty's demangler writes in front of the functions that thunks lead to, by the letter of the thunk's kind (Itanium C++ ABI,
/// 5.1.4.2).
const THUNKS: [(char, &str); 3] =
    [('h', "non-virtual thunk to "), ('v', "virtual thunk to "), ('c', "covariant return thunk to ")];

/// Whether a demangled name is a thunk's.
pub(super) fn is_of_thunk(shown: &str) -> bool {
    THUNKS.iter().any(|(_, kind)| shown.starts_with(kind))
}

/// Whether a symbol is a thunk's: its offsets are the distances of bases, which each ABI has its own of.
pub(crate) fn is_thunk(symbol: &str) -> bool {
    thunk(symbol).is_some()
}

/// How a thunk is shown, and the encoding of the function that it leads to.
///
/// cpp_demangle shows the offsets. They are left out: those of two ABIs differ.
fn thunk(symbol: &str) -> Option<(&'static str, &str)> {
    let special = symbol.strip_prefix("_ZT")?;
    let (_, kind) = THUNKS.iter().find(|(kind, _)| special.starts_with(*kind))?;
    let encoding = match special.strip_prefix('c') {
        // The offset of `this`, and that of the result.
        Some(offsets) => behind_offset(behind_offset(offsets)?)?,
        None => behind_offset(special)?,
    };
    (!encoding.is_empty()).then_some((*kind, encoding))
}

/// What is behind a call offset: `hn16_`, `v0_n24_`.
fn behind_offset(text: &str) -> Option<&str> {
    let numbers = if text.starts_with('h') { 1 } else { 2 };
    let mut rest = text.strip_prefix(['h', 'v'])?;
    for _ in 0..numbers {
        let (number, behind) = rest.split_once('_')?;
        let digits = number.strip_prefix('n').unwrap_or(number);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        rest = behind;
    }
    Some(rest)
}

fn cpp(name: &str) -> Option<String> {
    cpp_demangle::Symbol::new(name).ok()?.demangle().ok()
}

/// The demangled name of a function whose signature has a member of a type that depends on a template's parameter, as GCC writes it:
/// `enable_if<is_array<T>::value>` of `std::make_shared`.
///
/// The scope of such a member is any type (`sr <type> <unqualified-name>`: GCC's `write_expression`, and `d_expression_1` of
/// libiberty's demangler), but the Itanium C++ ABI (5.1.6.2, `unresolved-name`) writes names there, and cpp_demangle reads those alone. A
/// member of an object, `typeid (type).name`, has the same types in the same order, so that references to earlier parts of the name stay
/// right. Where such a member is replaced by mistake, in the middle of an identifier, the name cannot be read.
fn cpp_with_gcc_scopes(name: &str) -> Option<String> {
    const MEMBER: &str = "dtti";
    const SCOPE: [&str; 2] = ["(typeid (", "))."];
    if name.contains(MEMBER) {
        return None;
    }
    let mut parts = name.split("sr");
    let mut replaced = parts.next()?.to_owned();
    for part in parts {
        let is_type = part.starts_with(|c: char| matches!(c, 'S' | 'N') || c.is_ascii_digit());
        replaced.push_str(if is_type { MEMBER } else { "sr" });
        replaced.push_str(part);
    }
    let mut shown = cpp(&replaced)?;
    while let Some(start) = shown.find(SCOPE[0]) {
        let open = start + SCOPE[0].len() - 1;
        let close = open + closing_bracket(&shown[open..])?;
        let member = shown[close..].strip_prefix(SCOPE[1])?;
        shown = format!("{}{}::{member}", &shown[..start], &shown[open + 1..close]);
    }
    Some(shown)
}

/// Names of C++'s ABI (Itanium's), which Rust's older mangling looks like, and of Rust's `v0` mangling (RFC 2603).
fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn scopes_that_gcc_writes_as_types_are_read() {
        // What `c++filt` writes, except for brackets around operands.
        for (name, shown) in [
            (
                "_ZSt14__relocate_a_1ImmENSt9enable_ifIXsrSt24__is_bitwise_relocatableIT_vE5valueEPS2_E4typeES4_S4_S4_RSaIT0_E",
                "std::enable_if<std::__is_bitwise_relocatable<unsigned long, void>::value, unsigned long*>::type \
                 std::__relocate_a_1<unsigned long, unsigned long>(unsigned long*, unsigned long*, unsigned long*, \
                 std::allocator<unsigned long>&)",
            ),
            (
                "_Z2f5ImENSt9enable_ifIXsrN1n1m2isIT_E2inIiEE5valueES4_E4typeES4_",
                "std::enable_if<n::m::is<unsigned long>::in<int>::value, unsigned long>::type f5<unsigned long>(unsigned long)",
            ),
            (
                "_Z3f11ImENSt9enable_ifIXsrN12_GLOBAL__N_14anonIT_EE5valueES3_E4typeES3_",
                "std::enable_if<(anonymous namespace)::anon<unsigned long>::value, unsigned long>::type f11<unsigned long>(unsigned long)",
            ),
            (
                "_Z2f7ImENSt9enable_ifIXaantsrSt8is_arrayIT_E5valuesrSt11is_integralIS2_E5valueES2_E4typeES2_",
                "std::enable_if<(!(std::is_array<unsigned long>::value))&&(std::is_integral<unsigned long>::value), \
                 unsigned long>::type f7<unsigned long>(unsigned long)",
            ),
        ] {
            assert_eq!(demangled(name), shown);
        }
    }

    #[test]
    fn a_thunk_is_shown_as_the_function_that_it_leads_to_without_its_offsets() {
        // What `c++filt` writes.
        for (name, shown) in [
            ("_ZThn8_N2D41bEl", "non-virtual thunk to D4::b(long)"),
            ("_ZTv0_n24_N2D41cEl", "virtual thunk to D4::c(long)"),
            ("_ZThn16_N2D4D0Ev", "non-virtual thunk to D4::~D4()"),
            ("_ZTchn16_h16_N1D5cloneEv", "covariant return thunk to D::clone()"),
            ("_ZTcv0_n40_v0_n32_N1D5cloneEv", "covariant return thunk to D::clone()"),
            ("_ZThn8_N12_GLOBAL__N_11D1bENSt7__cxx114listIlSaIlEEE.cold", "non-virtual thunk to (anonymous namespace)::D::b(std::__cxx11::list<long, std::allocator<long> >) [clone .cold]"),
        ] {
            assert_eq!(demangled(name), shown);
        }
    }

    #[test]
    fn names_that_cannot_be_read_stay_as_they_are() {
        for name in [
            "_ZTh",
            "_ZThn8_",
            "_ZTv0_N1D1bEl",
            "_ZTch8_N1D1bEl",
            "_ZThx_N1D1bEl",
            "_ZThn8_N1",
            "_ZsrS_",
            "_Z2f1IXsrSt4usr1E",
            "_ZdttisrS",
            "_Zsr",
        ] {
            assert_eq!(demangled(name), name);
        }
    }
}
