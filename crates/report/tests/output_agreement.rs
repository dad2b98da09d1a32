//! What reports state of the variants' outputs.

use widthwise_experiment::VariantStatus;
use widthwise_report::report_text::agreement;

use crate::campaign::{laid, BASELINE, DIFFERENT, SLOW};

const CHANGES: &str = "its output changes from run to run; `--filter` leaves out what may change";

#[test]
fn outputs_that_change_are_not_compared_with_the_baselines() {
    let mut laid = laid(6);
    for name in [BASELINE, SLOW, DIFFERENT] {
        laid.statuses.insert(name.to_owned(), VariantStatus::OutputMismatch(CHANGES.to_owned()));
    }
    assert_eq!(
        agreement(&laid.comparison()),
        ["The outputs of x86-64/-O2, i386/-O2 and x86-64/fast-math change from run to run; `--filter` leaves out \
          what may change. Their verdicts are withheld."]
    );
}

#[test]
fn a_baseline_is_in_no_group_of_variants_that_differ_from_it() {
    let mut laid = laid(6);
    for name in [BASELINE, SLOW] {
        laid.statuses.insert(name.to_owned(), VariantStatus::OutputMismatch("line 3".to_owned()));
    }
    laid.statuses.insert(DIFFERENT.to_owned(), VariantStatus::Ready);
    assert_eq!(
        agreement(&laid.comparison()),
        [
            "x86-64/-O2's output differs from one run to another: line 3. Its verdicts are withheld.",
            "i386/-O2's output differs from x86-64/-O2's: line 3. Its verdicts are withheld."
        ]
    );
}

#[test]
fn a_control_whose_output_alone_changes_is_in_the_text() {
    let mut laid = laid(6);
    laid.statuses.insert(DIFFERENT.to_owned(), VariantStatus::Ready);
    let control = laid.experiment.control();
    laid.statuses.insert(control, VariantStatus::OutputMismatch(CHANGES.to_owned()));
    let text = agreement(&laid.comparison()).join(" ");
    assert!(text.starts_with("x86-64/-O2 control's output changes from run to run;"), "{text}");
}

#[test]
fn a_variant_that_left_processes_at_work_may_differ_too() {
    let mut laid = laid(6);
    laid.statuses.insert(DIFFERENT.to_owned(), VariantStatus::LeftOver("it left sleep at work".to_owned()));
    let differs = "x86-64/fast-math's output differs from x86-64/-O2's. Its verdicts are withheld.";
    assert_eq!(agreement(&laid.comparison()), [differs]);

    let of_variant = |laid: &mut crate::campaign::Laid, digest: Option<&str>| {
        for run in laid.runs.iter_mut().filter(|run| run.variant == DIFFERENT) {
            run.output_digest = digest.map(str::to_owned);
        }
    };
    of_variant(&mut laid, Some("b2:51fe"));
    assert_eq!(agreement(&laid.comparison()), ["All variants that ran gave the same output."]);
    of_variant(&mut laid, None);
    let not_compared = "x86-64/fast-math's output could not be compared: no output of its runs was read. \
                        Its verdicts are withheld.";
    assert_eq!(agreement(&laid.comparison()), [not_compared]);
}
