//! Lists of rounds, shortened to spans.

/// `round 4`, `rounds 4, 17–21`: numbers in ascending order.
pub fn rounds(numbers: &[u32]) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match spans.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => spans.push((number, number)),
        }
    }
    let shown: Vec<String> = spans
        .iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first}–{last}"),
        })
        .collect();
    let noun = if numbers.len() == 1 { "round" } else { "rounds" };
    match shown.len() {
        // Such a long list means "everywhere"; the timeline of the HTML report shows where.
        9.. => format!("{} {noun}", numbers.len()),
        _ => format!("{noun} {}", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_in_a_row_are_written_as_a_span() {
        assert_eq!(rounds(&[4]), "round 4");
        assert_eq!(rounds(&[3, 4, 17, 18, 19]), "rounds 3, 4, 17–19");
    }
}
