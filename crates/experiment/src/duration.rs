//! Durations as users write them: `60s`, `5m`, `1h30m`, `250ms`.

use std::time::Duration;

use crate::request_error::RequestErrorKind;

/// The units, from the largest; each with its length in nanoseconds.
const UNITS: [(&str, u128); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Reads whole numbers with units, the larger unit first.
pub fn parse(text: &str) -> Result<Duration, RequestErrorKind> {
    nanoseconds(text)
        .and_then(|total| {
            let seconds = u64::try_from(total / 1_000_000_000).ok()?;
            Some(Duration::new(seconds, (total % 1_000_000_000) as u32))
        })
        .ok_or_else(|| RequestErrorKind::BadDuration { text: text.to_owned() })
}

fn nanoseconds(text: &str) -> Option<u128> {
    let mut rest = text;
    let mut total: u128 = 0;
    let mut units = UNITS.iter();
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, after) =
            after.split_at(after.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(after.len()));
        // Continuing in the same iterator forbids "5s1m" and "1m1m".
        let (_, size) = units.find(|(name, _)| *name == unit)?;
        total = number.parse::<u128>().ok()?.checked_mul(*size)?.checked_add(total)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

/// Writes a duration so that [`parse`] reads the same one.
pub fn text(duration: Duration) -> String {
    let mut left = duration.as_nanos();
    let mut text = String::new();
    for (unit, size) in UNITS {
        if left >= size {
            text.push_str(&format!("{}{unit}", left / size));
            left %= size;
        }
    }
    if text.is_empty() {
        text.push_str("0s");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_with_one_or_more_units_are_read() {
        for (written, milliseconds) in
            [("60s", 60_000), ("5m", 300_000), ("1h30m", 5_400_000), ("250ms", 250), ("1m1s500ms", 61_500)]
        {
            assert_eq!(parse(written), Ok(Duration::from_millis(milliseconds)), "{written}");
        }
    }

    #[test]
    fn an_invalid_duration_is_refused() {
        let too_long = format!("{}h", "9".repeat(30));
        for wrong in ["", "60", "s", "1.5s", "-1s", "5s1m", "1m1m", "1d", "1 s", "5S", "1h30", "é", &too_long]
        {
            assert_eq!(
                parse(wrong),
                Err(RequestErrorKind::BadDuration { text: wrong.to_owned() }),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_written_duration_is_read_back() {
        for duration in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(5_400), Duration::MAX] {
            assert_eq!(parse(&text(duration)), Ok(duration));
        }
        assert_eq!(text(Duration::from_secs(5_400)), "1h30m");
    }
}
