//! Explanations: their texts are harmless, and state no more than what is known.

use serde_json::Value;
use widthwise_experiment::units::Unit;
use widthwise_report::explanation::function::Function;
use widthwise_report::explanation::{Certainty, Explanation, Measured, Part, Section};
use widthwise_report::text::Palette;

const HOSTILE: &str = "name\u{1b}]0;title\u{7}\u{202e}";

/// A section on one metric.
struct One {
    measured: Measured,
    cause: &'static str,
}

impl Section for One {
    fn name(&self) -> &'static str {
        "one"
    }

    fn measured(&self) -> Vec<Measured> {
        vec![self.measured]
    }

    fn parts(&self) -> Vec<Part> {
        vec![self.measured.part(self.cause, "", self.measured.difference(), Certainty::High)]
    }

    fn text(&self, _: usize, _: &Palette) -> String {
        String::new()
    }

    fn json(&self) -> Value {
        Value::Null
    }
}

fn explanation(
    metric: &'static str,
    unit: Unit,
    values: [i64; 2],
    cause: &'static str,
) -> Explanation<'static> {
    let section = One { measured: Measured::counted(metric, unit, values), cause };
    Explanation {
        variant: "x32",
        baseline: "x86-64",
        sections: vec![Box::new(section)],
        remarks: Vec::new(),
        details: None,
    }
}

#[test]
fn names_of_symbols_in_sentences_are_harmless() {
    let text = explanation("file_size", Unit::Bytes, [2000, 1000], HOSTILE).terminal(200, &Palette::plain());
    assert!(text.contains("50 points are name\\x1b]0;title\\x07\\u{202e}"), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
}

#[test]
fn names_of_programs_beside_a_function_are_harmless() {
    let function = Function { name: "main", names: [HOSTILE, "x32"], lines: [&[], &[]], aligned: &[] };
    let text = function.terminal(100, &Palette::plain());
    assert!(text.contains("\\x1b]0;title") && !text.contains('\u{1b}'), "{text:?}");
}
