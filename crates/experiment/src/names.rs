//! Which names a user may give to programs, variants, metrics and variables.

use crate::request_error::RequestErrorKind;

/// Checks a name that the user gives to something.
pub fn check_name(what: &'static str, name: &str) -> Result<(), RequestErrorKind> {
    let reason = if name.trim().is_empty() {
        "it is empty"
    } else if name.chars().any(char::is_control) {
        "it has a control character, such as the end of a line"
    } else if name.trim() != name {
        "it begins or ends with a space"
    } else {
        return Ok(());
    };
    Err(RequestErrorKind::BadName { what, name: name.to_owned(), reason })
}

/// Direction overrides, isolates and invisible marks: they make text look different from what it is ("Trojan
/// Source", CVE-2021-42574). U+2028/2029 end lines in some viewers.
pub fn misleads(c: char) -> bool {
    matches!(c,
        '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Checks the name of an environment variable.
pub(crate) fn check_variable(name: &str) -> Result<(), RequestErrorKind> {
    check_name("variable", name)?;
    if name.contains('=') {
        return Err(RequestErrorKind::BadName {
            what: "variable",
            name: name.to_owned(),
            reason: "a variable's name cannot contain \"=\"",
        });
    }
    Ok(())
}
