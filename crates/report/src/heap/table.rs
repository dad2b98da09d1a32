//! The table of sites.

use unicode_width::UnicodeWidthStr;
use widthwise_anatomy::heap::site::Pair;

use super::differences::FLOOR;
use super::quantities::{bytes, number, percent, signed};
use super::{change, described, each, median_lifetimes, Explanation};
use crate::format::counted;
use crate::sanitize;
use crate::text::Palette;

const COLUMNS: usize = 6;

/// Sites, by whether they are shown.
#[derive(Default)]
struct Sites<'a> {
    clear: Vec<&'a Pair>,
    /// They differ by less than the smallest difference that is reported.
    small: Vec<&'a Pair>,
    /// They differ by no more than recordings of one variant do.
    inside: Vec<&'a Pair>,
}

impl Explanation<'_> {
    pub(crate) fn table(&self, palette: &Palette) -> String {
        if let Some(b) = self.b {
            if let Some(reason) = self.a.incompleteness().or_else(|| b.incompleteness()) {
                return format!("  sites are not compared, since {}\n", sanitize::line(&reason));
            }
        }
        let rows = self.rows();
        if rows.len() == 1 {
            return match self.b {
                Some(_) if self.is_repeated() => {
                    "  no site differs by 1 KiB or more, and by more than recordings of one variant do\n"
                }
                Some(_) => "  no site differs by 1 KiB or more\n",
                None => "  no site has memory at the peak\n",
            }
            .to_owned();
        }
        let widths: Vec<usize> = (0..COLUMNS - 1)
            .map(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for (index, row) in rows.iter().enumerate() {
            let mut line = String::from("  ");
            for (cell, width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
                let pad = " ".repeat(width - cell.width());
                line += &format!("{pad}{cell}   ");
            }
            // The last column may exceed the width: it is not truncated, since users copy it.
            line += &row[COLUMNS - 1];
            let style = if index == 0 { palette.faint } else { Default::default() };
            text += &format!("{style}{}{style:#}\n", line.trim_end());
        }
        text
    }

    /// Whether both sides were recorded more than once.
    pub(super) fn is_repeated(&self) -> bool {
        self.b.is_some_and(|b| self.a.recordings.len().min(b.recordings.len()) > 1)
    }

    /// The sites to show: of two sides, those that differ by 1 KiB or more, and by more than recordings of
    /// one side do. Then the other differing ones.
    fn sites(&self) -> Sites<'_> {
        if self.b.is_none() {
            let clear = self.pairs.iter().filter(|pair| pair.a.peak_bytes > 0).collect();
            return Sites { clear, ..Sites::default() };
        }
        let differs =
            |index: usize| self.site_peaks.get(index).is_none_or(|peaks| peaks.differ(self.site_peaks.len()));
        let differing = self.pairs.iter().enumerate().filter(|(_, pair)| pair.saving() != 0);
        let mut sites = Sites::default();
        for (index, pair) in differing {
            let list = if (pair.saving().unsigned_abs() as f64) < FLOOR {
                &mut sites.small
            } else if differs(index) {
                &mut sites.clear
            } else {
                &mut sites.inside
            };
            list.push(pair);
        }
        sites
    }

    /// The heading, a row for each shown site, and the remainder.
    fn rows(&self) -> Vec<[String; COLUMNS]> {
        let whole: f64 = match self.b {
            Some(b) => self.a.peak_bytes as f64 - b.peak_bytes as f64,
            None => self.a.peak_bytes as f64,
        };
        // Without a clear difference there are no shares of it.
        let is_shared = self.differences().is_none_or(|differences| differences.peak_heap.is_clear());
        let amount = |pair: &Pair| match self.b {
            Some(_) => -pair.saving(),
            None => i128::from(pair.a.peak_bytes),
        };
        let shown_amount = |value: i128| match self.b {
            Some(_) => signed(value),
            None => bytes(value as u64),
        };
        let share = |value: i128| match self.b {
            _ if !is_shared => String::new(),
            Some(_) => percent(-(value as f64), whole),
            None => percent(value as f64, whole),
        };
        let has_lifetimes =
            self.pairs.iter().any(|pair| pair.a.lifetimes_are_known() || pair.b.lifetimes_are_known());
        let has_blocks = self.pairs.iter().any(|pair| pair.a.peak_count > 0 || pair.b.peak_count > 0);
        let of_blocks = |text: &dyn Fn() -> String| if has_blocks { text() } else { String::new() };
        let mut rows: Vec<[String; COLUMNS]> = vec![[
            match (self.b, self.a.incomplete.is_empty()) {
                (Some(_), _) => "difference",
                (None, true) => "at peak",
                (None, false) => "at peak, at least",
            }
            .to_owned(),
            if is_shared { "share".to_owned() } else { String::new() },
            of_blocks(&|| "blocks".to_owned()),
            of_blocks(&|| "bytes each".to_owned()),
            if has_lifetimes { "median lifetime".to_owned() } else { String::new() },
            "what, by whom, where".to_owned(),
        ]];
        let Sites { clear: shown, small, inside } = self.sites();
        for pair in shown.iter().take(self.top) {
            let b = self.b.map(|_| &pair.b);
            rows.push([
                shown_amount(amount(pair)),
                share(amount(pair)),
                of_blocks(&|| change(Some(number(pair.a.peak_count)), b.map(|b| Some(number(b.peak_count))))),
                of_blocks(&|| each(&pair.a, b)),
                if has_lifetimes { median_lifetimes(&pair.a, b) } else { String::new() },
                described(&pair.site),
            ]);
        }
        let mut rest = |pairs: &[&Pair], what: String| {
            if !pairs.is_empty() {
                let sum: i128 = pairs.iter().map(|pair| amount(pair)).sum();
                let none = String::new;
                rows.push([shown_amount(sum), share(sum), none(), none(), none(), what]);
            }
        };
        let hidden = &shown[shown.len().min(self.top)..];
        rest(hidden, format!("{} (--top)", counted(hidden.len(), "other site")));
        if !shown.is_empty() {
            let what = counted(inside.len(), "other site");
            rest(&inside, format!("{what}, within the differences between recordings of one variant"));
            let what = counted(small.len(), "other site");
            let each = if small.len() == 1 { "" } else { " each" };
            rest(&small, format!("{what}, less than 1 KiB{each}"));
        }
        rows
    }
}
