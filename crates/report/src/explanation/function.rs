//! One function of both variants, side by side on the terminal.

use unicode_width::UnicodeWidthStr;
use widthwise_anatomy::code::{Class, Line, Row};

use crate::format::counted;
use crate::sanitize;
use crate::text::Palette;

/// One function of both variants.
pub struct Function<'a> {
    /// Its demangled name.
    pub name: &'a str,
    /// The names of the baseline and of the variant.
    pub names: [&'a str; 2],
    /// Its instructions in each.
    pub lines: [&'a [Line]; 2],
    /// How they are aligned.
    pub aligned: &'a [Row],
}

impl Function<'_> {
    /// Both listings, the differences marked: `-` the baseline alone, `+` the variant alone, `|` another operation, `~` the
    /// same operation with other operands or of another length.
    pub fn terminal(&self, width: usize, palette: &Palette) -> String {
        let (strong, faint) = (palette.strong, palette.faint);
        let side = |at: usize| {
            let (name, lines) = (sanitize::line(self.names[at]), self.lines[at]);
            // What is no instruction of the architecture is data, such as a table behind the function.
            let count = lines.iter().filter(|line| line.class != Class::Invalid).count();
            let bytes: usize = lines.iter().map(|line| line.bytes.len()).sum();
            match lines.len() {
                0 => format!("{name}: no such function"),
                all if all == count => format!("{name}: {count} instructions, {bytes} bytes"),
                _ => format!("{name}: {count} instructions and data, {bytes} bytes"),
            }
        };
        let half = (width.max(40) - 3) / 2;
        let cell = |line: Option<&Line>| {
            let text = line.map_or(String::new(), |line| {
                format!("{:>4x} {:>2} {}", line.offset, line.bytes.len(), sanitize::line(&line.text))
            });
            let cut: String = text.chars().take(half).collect();
            let room = " ".repeat(half.saturating_sub(cut.width()));
            cut + &room
        };
        let mut text = format!("{strong}{}{strong:#}\n{}; {}\n", sanitize::line(self.name), side(0), side(1));
        text.push_str(&format!("{faint}offset, bytes, instruction; - + only in one, | another operation, ~ other operands or length{faint:#}\n"));
        for row in self.aligned {
            let a = row.baseline.and_then(|at| self.lines[0].get(at));
            let b = row.variant.and_then(|at| self.lines[1].get(at));
            let (mark, style) = match (a, b) {
                (Some(_), None) => ('-', palette.lower),
                (None, _) => ('+', palette.higher),
                (Some(_), Some(_)) if !row.is_equal => ('|', palette.warning),
                (Some(a), Some(b)) if a.text != b.text || a.bytes.len() != b.bytes.len() => {
                    ('~', palette.faint)
                }
                _ => (' ', anstyle::Style::new()),
            };
            text.push_str(format!("{} {style}{mark}{style:#} {}", cell(a), cell(b)).trim_end());
            text.push('\n');
        }
        text.push_str(&format!("{faint}{}{faint:#}\n", self.costs()));
        text
    }

    /// What the differences cost: the bytes of all kinds sum to the difference of the function.
    fn costs(&self) -> String {
        let mut costs = [(0_usize, 0_i64); 4];
        for row in self.aligned {
            let a = row.baseline.and_then(|at| self.lines[0].get(at));
            let b = row.variant.and_then(|at| self.lines[1].get(at));
            let size = |line: Option<&Line>| line.map_or(0, |line| line.bytes.len() as i64);
            let kind = match (a, b) {
                (Some(_), None) => 0,
                (None, _) => 1,
                (Some(_), Some(_)) if !row.is_equal => 2,
                (Some(_), Some(_)) => 3,
            };
            costs[kind].0 += usize::from(kind != 3 || size(a) != size(b));
            costs[kind].1 += size(b) - size(a);
        }
        let words =
            ["only in the baseline", "only in the variant", "of another operation", "of another length"];
        let cost = |((count, bytes), words): (&(usize, i64), &str)| {
            let bytes = format!("{bytes:+}").replace('-', "−");
            (*count > 0).then(|| format!("{} {words}: {bytes} bytes", counted(*count, "instruction")))
        };
        let shown: Vec<String> = costs.iter().zip(words).filter_map(cost).collect();
        match shown.is_empty() {
            true => "no instruction differs in length".to_owned(),
            false => shown.join("; "),
        }
    }
}
