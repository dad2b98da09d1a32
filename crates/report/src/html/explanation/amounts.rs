//! Amounts on the page.

use widthwise_experiment::units::{thousands, Unit};

use crate::explanation::Unexplained;
use crate::heap::signed;

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
