//! What the system gives two variants, and what for: known without any recording of their heaps.

use unicode_width::UnicodeWidthStr;
use widthwise_experiment::metric;

use super::{lines, portraits, Line, Portrait};
use crate::campaign::Campaign;
use crate::heap::{bytes, paragraph, percent, signed};
use crate::terminal::Palette;
use crate::visible;

/// For the terminal, `width` columns wide: of one variant, or of two. Nothing where the campaign knows nothing of one of them.
pub fn terminal(
    campaign: &Campaign,
    a: &str,
    b: Option<&str>,
    width: usize,
    palette: &Palette,
) -> Option<String> {
    let all = portraits(campaign);
    let portrait = |name: &str| all.iter().copied().find(|portrait| portrait.variant == name);
    let series = match b {
        None => portrait(a).map(|a| vec![a]),
        Some(b) => portrait(a).zip(portrait(b)).map(|(a, b)| vec![a, b]),
    };
    let (sentence, table) = match series {
        Some(series) => (of_series(&series), table(&series, palette)),
        None => (of_peaks(campaign, a, b)?, String::new()),
    };
    let (strong, program) = (palette.strong, visible::line(&campaign.experiment.program.name));
    let names: Vec<String> = [Some(a), b].into_iter().flatten().map(visible::line).collect();
    let sentence = paragraph(&visible::line(&sentence), width, anstyle::Style::new());
    let gap = if table.is_empty() { "" } else { "\n" };
    let heading =
        format!("{strong}{program}{strong:#} · memory of {}, as the system sees it\n\n", names.join(" and "));
    Some(format!("{heading}{sentence}{gap}{table}"))
}

/// `x32 has 1.29 MB (20 %) less than x86-64 at its peak: 6.4 MB → 5.1 MB`.
fn compared(a: (&str, f64), b: (&str, f64), what: &str) -> String {
    let more = if b.1 > a.1 { "more" } else { "less" };
    let by = bytes((a.1 - b.1).abs() as u64);
    let share = percent((a.1 - b.1).abs(), a.1);
    let (from, to) = (bytes(a.1 as u64), bytes(b.1 as u64));
    if a.1 == b.1 {
        return format!("{} and {} have as much {what}: {from}", a.0, b.0);
    }
    format!("{} has {by} ({share}) {more} {what} than {}: {from} → {to}", b.0, a.0)
}

fn of_series(series: &[Portrait]) -> String {
    let resident = |portrait: &Portrait| portrait.peak.tree.amounts.resident as f64;
    match series {
        [a, b] => format!(
            "{}. Of each variant, the run whose peak is the middle one.",
            compared((a.variant, resident(a)), (b.variant, resident(b)), "resident memory at its peak")
        ),
        all => all
            .iter()
            .map(|a| format!("{} has {} resident at its peak.", a.variant, bytes(resident(a) as u64)))
            .collect(),
    }
}

/// Without a series: the peaks that the kernel keeps, typical of all rounds.
fn of_peaks(campaign: &Campaign, a: &str, b: Option<&str>) -> Option<String> {
    let peak = metric::find("peak_resident")?;
    let typical = |name: &str| campaign.typical(name, peak).map(|typical| typical.value);
    let said = match b {
        Some(b) => compared((a, typical(a)?), (b, typical(b)?), "memory at its peak"),
        None => format!("{a} has {} at its peak", bytes(typical(a)? as u64)),
    };
    Some(format!("{said}. What it is for was not read: widthwise compare --memory does that."))
}

/// By what the memory is for, the largest differences first; they add up to the last row.
fn table(series: &[Portrait], palette: &Palette) -> String {
    let all = lines(series);
    let whole = all.iter().find(|line| line.is_sum);
    let classes: Vec<&Line> = all.iter().take_while(|line| !line.is_sum).collect();
    let difference = |line: &Line| match line.amounts.as_slice() {
        [a, b] => (b - a) as i128,
        amounts => amounts.iter().sum::<f64>() as i128,
    };
    let sum = whole.map_or(0, difference);
    let mut rows: Vec<&Line> = classes.into_iter().filter(|line| difference(line) != 0).collect();
    rows.sort_by_key(|line| std::cmp::Reverse(difference(line).abs()));
    let of_two = series.len() == 2;
    let cells = |line: &Line| {
        let amounts: Vec<String> = line
            .amounts
            .iter()
            .map(|amount| if *amount > 0.0 { bytes(*amount as u64) } else { "none".to_owned() })
            .collect();
        let amount = difference(line);
        let share = percent(amount as f64, sum as f64);
        match of_two {
            true => [signed(amount), share, amounts.join(" → "), line.title.clone()],
            false => [amounts.join(""), share, String::new(), line.title.clone()],
        }
    };
    let head = if of_two {
        ["difference", "share", "resident", "what for"]
    } else {
        ["resident", "share", "", "what for"]
    };
    let mut table = vec![head.map(str::to_owned)];
    table.extend(rows.into_iter().chain(whole.filter(|_| sum != 0)).map(cells));
    if table.len() == 1 {
        return String::new();
    }
    let widths: Vec<usize> =
        (0..3).map(|column| table.iter().map(|row| row[column].width()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (index, row) in table.iter().enumerate() {
        let mut line = String::from("  ");
        for (cell, width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
            line += &format!("{}{cell}   ", " ".repeat(width - cell.width()));
        }
        line += &row[3];
        let style = if index == 0 { palette.faint } else { Default::default() };
        text += &format!("{style}{line}{style:#}\n");
    }
    text
}
