//! The languages of programs, as DWARF numbers them.

use gimli::constants as dw;

/// Whether it is C++. Compilers name later versions by the last that their DWARF version has a number for.
pub(crate) fn is_cpp(language: dw::DwLang) -> bool {
    matches!(
        language,
        dw::DW_LANG_C_plus_plus
            | dw::DW_LANG_C_plus_plus_03
            | dw::DW_LANG_C_plus_plus_11
            | dw::DW_LANG_C_plus_plus_14
            | dw::DW_LANG_C_plus_plus_17
            | dw::DW_LANG_C_plus_plus_20
            | dw::DW_LANG_ObjC_plus_plus
    )
}
