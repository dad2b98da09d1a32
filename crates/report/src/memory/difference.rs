//! The memory that the system gives two variants, and what for: known without heap recordings.

use std::cmp::Ordering;

use unicode_width::UnicodeWidthStr;
use widthwise_experiment::metric;

use super::{judged, lines, moment, portraits, LastReading, Line};
use crate::comparison::Comparison;
use crate::format;
use crate::heap::{bytes, percent, signed};
use crate::sanitize;
use crate::text::{paragraph, Palette};

/// For the terminal, `width` columns wide: of one variant, or of two. None if the campaign has no data on one
/// of them.
pub fn terminal(
    comparison: &Comparison,
    a: &str,
    b: Option<&str>,
    width: usize,
    palette: &Palette,
) -> Option<String> {
    let all = portraits(comparison);
    let portrait = |name: &str| all.iter().copied().find(|portrait| portrait.variant == name);
    let series = match b {
        None => portrait(a).map(|a| vec![a]),
        Some(b) => portrait(a).zip(portrait(b)).map(|(a, b)| vec![a, b]),
    };
    let (sentence, table) = match series {
        Some(series) => (of_series(comparison, &series), table(comparison, &series, palette)),
        None => {
            let max_rss = comparison.max_rss(a, b)?.sentence();
            let how = "What it is for was not read: widthwise compare --memory does that.";
            (format!("{max_rss} {how}"), String::new())
        }
    };
    let (strong, program) = (palette.strong, sanitize::line(&comparison.campaign.experiment.program.name));
    let names: Vec<String> = [Some(a), b].into_iter().flatten().map(sanitize::line).collect();
    let sentence = paragraph(&sentence, width, anstyle::Style::new());
    let gap = if table.is_empty() { "" } else { "\n" };
    let heading =
        format!("{strong}{program}{strong:#} · memory of {}, as the system sees it\n\n", names.join(" and "));
    Some(format!("{heading}{sentence}{gap}{table}"))
}

fn of_series(comparison: &Comparison, series: &[LastReading]) -> String {
    let names: Vec<&str> = series.iter().map(|portrait| portrait.variant).collect();
    let peaks = of_tree_peaks(comparison, names[0], names.get(1).copied());
    // The table may be of less than the peak.
    let table = match moment(series).as_str() {
        "at the peak" => "The table is of the peak".to_owned(),
        moment => format!("The table is of the largest reading, {moment}"),
    };
    let of_run = "the run whose peak is the middle one";
    let table = match series {
        [a, b] if !a.is_at_peak() || !b.is_at_peak() => format!(
            "The table is of the largest reading of each variant, in {of_run}: at {} of {}'s peak and at {} of {}'s. It \
             has no differences, since a reading below 95 % of the peak does not show what the rest is for.",
            a.share_text(),
            a.variant,
            b.share_text(),
            b.variant
        ),
        [_, _] => format!("{table}, of each variant, of {of_run}."),
        _ => format!("{table}, of {of_run}."),
    };
    peaks.map_or(table.clone(), |peaks| format!("{peaks} {table}"))
}

/// The peaks as in the campaign's own table, typical of all rounds: `x32 has 1.29 MB (20 %) less memory at
/// its peak than x86-64: 6.4 MB → 5.1 MB.` It says "less" only if the verdict does.
fn of_tree_peaks(comparison: &Comparison, a: &str, b: Option<&str>) -> Option<String> {
    let peak = metric::find("tree_peak")?;
    let typical = |name: &str| comparison.typical(name, peak);
    let from = typical(a)?;
    let Some(b) = b else {
        return Some(format!("{a} has {} at its peak.", format::typical(from)));
    };
    let to = typical(b)?;
    let (from_text, to_text) = (format::typical(from), format::typical(to));
    let Some(order) = judged(comparison, a, b, peak).flatten() else {
        return Some(format!(
            "At their peaks {a} has {from_text} and {b} has {to_text}; these rounds do not say that one has less."
        ));
    };
    let more = if order == Ordering::Greater { "more" } else { "less" };
    let by = if from.upper.is_some() || to.upper.is_some() {
        more.to_owned()
    } else {
        let by = (from.value - to.value).abs();
        format!("{} ({}) {more}", bytes(by as u64), percent(by, from.value))
    };
    Some(format!("{b} has {by} memory at its peak than {a}: {from_text} → {to_text}."))
}

/// By purpose, the largest differences first; they add up to the last row. If the verdict finds no difference
/// between the peaks, or a reading did not see its peak, the table shows each variant's memory alone: two runs always
/// differ somewhat.
fn table(comparison: &Comparison, series: &[LastReading], palette: &Palette) -> String {
    let all = lines(comparison, series);
    let whole = all.iter().find(|line| line.is_sum);
    let classes: Vec<&Line> = all.iter().take_while(|line| !line.is_sum).collect();
    let difference = |line: &Line| match line.amounts.as_slice() {
        [Some(a), Some(b)] => (b - a) as i128,
        amounts => amounts.iter().flatten().sum::<f64>() as i128,
    };
    let sum = whole.map_or(0, difference);
    let of_two = series.len() == 2;
    let is_clear = || match series {
        [a, b] if a.is_at_peak() && b.is_at_peak() => {
            judged(comparison, a.variant, b.variant, metric::find("tree_peak")?).flatten()
        }
        _ => None,
    };
    let is_clear_or_single = !of_two || is_clear().is_some();
    let mut rows: Vec<&Line> =
        classes.into_iter().filter(|line| !is_clear_or_single || difference(line) != 0).collect();
    let amount = |line: &Line| line.amounts.iter().flatten().sum::<f64>() as i128;
    rows.sort_by_key(|line| {
        std::cmp::Reverse(if is_clear_or_single { difference(line).abs() } else { amount(line) })
    });
    let cells = |line: &Line| {
        let amounts: Vec<String> = line
            .amounts
            .iter()
            .map(|amount| match *amount {
                Some(amount) if amount > 0.0 => bytes(amount as u64),
                Some(_) => "none".to_owned(),
                None => "not read".to_owned(),
            })
            .collect();
        let amount = difference(line);
        let share = percent(amount as f64, sum as f64);
        match of_two {
            true if !is_clear_or_single => {
                [String::new(), String::new(), amounts.join(" and "), line.title.clone()]
            }
            true => [signed(amount), share, amounts.join(" → "), line.title.clone()],
            false => [amounts.join(""), share, String::new(), line.title.clone()],
        }
    };
    let head = if !is_clear_or_single {
        ["", "", "resident", "what for"]
    } else if of_two {
        ["difference", "share", "resident", "what for"]
    } else {
        ["resident", "share", "", "what for"]
    };
    let mut table = vec![head.map(str::to_owned)];
    table.extend(rows.into_iter().chain(whole.filter(|_| !is_clear_or_single || sum != 0)).map(cells));
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
