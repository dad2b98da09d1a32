//! Percentages: `"1%"`, or the fraction `0.01`.

use crate::request_error::RequestErrorKind;

/// Reads `1%`, `0.5 %` or the fraction `0.01`; gives the fraction. Every percentage of a request is less than 100 %, so `95` is no
/// fraction.
pub fn parse(text: &str) -> Result<f64, RequestErrorKind> {
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    // `f64::from_str` also reads "inf", "nan", "1e3" and "-1", which are refused here.
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    match number.parse::<f64>() {
        Ok(value) if plain && value.is_finite() && value >= 1.0 && divisor == 1.0 => {
            Err(RequestErrorKind::NoPercentSign { text: text.to_owned() })
        }
        Ok(value) if plain && value.is_finite() => Ok(value / divisor),
        _ => Err(RequestErrorKind::BadPercentage { text: text.to_owned() }),
    }
}

/// Writes a fraction as a percentage that [`parse`] reads as the same number; nothing if no short one does.
pub fn text(fraction: f64) -> Option<String> {
    let digits = format!("{:.8}", fraction * 100.0);
    let written = format!("{}%", digits.trim_end_matches('0').trim_end_matches('.'));
    (parse(&written) == Ok(fraction)).then_some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_and_a_fraction_mean_the_same() {
        assert_eq!(parse("1%"), Ok(0.01));
        assert_eq!(parse("0.5 %"), Ok(0.005));
        assert_eq!(parse("0.01"), Ok(0.01));
    }

    #[test]
    fn an_invalid_percentage_is_refused() {
        for wrong in ["", "%", "one%", "-1%", "inf", "nan%", "1e3", "1%%", "1,5%", "."] {
            assert_eq!(
                parse(wrong),
                Err(RequestErrorKind::BadPercentage { text: wrong.to_owned() }),
                "{wrong}"
            );
        }
        assert!(parse(&"9".repeat(400)).is_err(), "a number too large for its type is not infinite");
    }

    #[test]
    fn a_written_percentage_is_read_back() {
        assert_eq!(text(0.01).as_deref(), Some("1%"));
        assert_eq!(text(0.95).as_deref(), Some("95%"));
        assert_eq!(text(0.07).as_deref(), Some("7%"));
        assert_eq!(text(1.0 / 3.0), None);
    }
}
