//! Amounts and names on the page.

use widthwise_experiment::units::{thousands, Unit};

use crate::explanation::Unexplained;
use crate::heap::signed;

/// `Max RSS`.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// A difference with its sign and unit.
pub fn amount(rest: &Unexplained, amount: i64) -> String {
    match rest.unit {
        Unit::Bytes => signed(amount.into()),
        _ => {
            let sign = if amount > 0 { "+" } else { "" };
            format!("{sign}{}", thousands(amount))
        }
    }
}
