//! The picture of the components of a run's noise: a bar for each program, its parts as long as their share of the variance.

use std::fmt::Write;

/// The components, in the order of the bar, with their colours.
pub const COMPONENTS: [(&str, &str); 6] = [
    ("start and end", "#7f8c8d"),
    ("the run itself", "#4878a8"),
    ("stack position", "#9b72b0"),
    ("address space layout", "#e08e45"),
    ("drift within ten runs", "#d9b44a"),
    ("drift within a hundred runs", "#b5473c"),
];

/// The variance of a run of one program, by component.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The program.
    pub name: String,
    /// In the order of [`COMPONENTS`].
    pub variances: [f64; COMPONENTS.len()],
}

impl Bar {
    /// The standard deviation of all components together.
    pub fn deviation(&self) -> f64 {
        self.variances.iter().sum::<f64>().sqrt()
    }

    /// Each component's share of the variance.
    pub fn shares(&self) -> [f64; COMPONENTS.len()] {
        let total = self.variances.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        self.variances.map(|variance| variance / total)
    }
}

/// The picture, as SVG.
pub fn svg(bars: &[Bar]) -> String {
    const LEFT: usize = 260;
    const WIDTH: usize = 480;
    const ROW: usize = 28;
    const TOP: usize = 70;
    let height = TOP + ROW * bars.len() + 10;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>Components of the variance of a run's CPU time</title>\n\
         <rect width=\"860\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    // Writing to a String cannot fail.
    for (place, (name, colour)) in COMPONENTS.iter().enumerate() {
        let (x, y) = (20 + 280 * (place % 3), 16 + 24 * (place / 3));
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"14\" height=\"14\" fill=\"{colour}\"/><text x=\"{}\" y=\"{}\" fill=\"#222222\">{name}</text>",
            x + 20,
            y + 12
        );
    }
    for (row, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * row;
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#222222\">{}</text>",
            LEFT - 10,
            y + 15,
            bar.name.replace('&', "&amp;").replace('<', "&lt;")
        );
        let mut x = LEFT as f64;
        for (share, (name, colour)) in bar.shares().iter().zip(COMPONENTS) {
            let width = share * WIDTH as f64;
            let _ = writeln!(
                text,
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"20\" fill=\"{colour}\"><title>{name}: {:.0} %</title></rect>",
                100.0 * share
            );
            x += width;
        }
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" fill=\"#222222\">{:.2} %</text>",
            LEFT + WIDTH + 10,
            y + 15,
            100.0 * bar.deviation()
        );
    }
    text.push_str("</svg>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_long_as_their_share_and_the_deviation_is_that_of_their_sum() {
        let bar = Bar { name: "a < b".into(), variances: [0.0, 3e-4, 0.0, 1e-4, 0.0, 0.0] };
        assert!((bar.deviation() - 0.02).abs() < 1e-12);
        assert_eq!(bar.shares()[1], 0.75);
        let text = svg(&[bar]);
        assert!(text.contains("width=\"360.0\"") && text.contains("width=\"120.0\""), "{text}");
        assert!(text.contains("a &lt; b") && text.contains("2.00 %"));
    }
}
