//! What reports say of the x32 runtime, in every format.

use widthwise_experiment::model::Variant;
use widthwise_experiment::outcome::{Reading, Source};
use widthwise_report::{html, markdown, terminal};

use crate::campaign::{laid, Laid, SLOW};

/// A campaign in which the runtime ran the slow variant and this many copies of it, with shares of its CPU time that change from
/// round to round.
fn through_runtime(copies: usize) -> Laid {
    let mut laid = laid(8);
    let first =
        laid.experiment.variants.iter().find(|variant| variant.name == SLOW).expect("a variant").clone();
    let runs: Vec<_> = laid.runs.iter().filter(|run| run.variant == SLOW).cloned().collect();
    for copy in 0..copies {
        let name = format!("x32/copy {copy}");
        let status = laid.statuses[SLOW].clone();
        laid.statuses.insert(name.clone(), status);
        laid.experiment.variants.push(Variant { name: name.clone(), ..first.clone() });
        laid.runs.extend(runs.iter().cloned().map(|mut run| {
            run.variant.clone_from(&name);
            run
        }));
    }
    let ran: Vec<String> =
        (0..copies).map(|copy| format!("x32/copy {copy}")).chain([SLOW.to_owned()]).collect();
    for run in laid.runs.iter_mut().filter(|run| ran.contains(&run.variant)) {
        let place = ran.iter().position(|name| *name == run.variant).unwrap_or_default() as f64;
        let share = (0.03 + 0.004 * place) * [1.0, 1.1, 3.0][run.round as usize % 3];
        let own = [
            ("runtime_cpu", (share * run.sample["cpu"].value).round()),
            ("runtime_calls", 1840.0),
            ("runtime_resident", 196_608.0),
            ("runtime_faults", 48.0),
        ];
        run.sample.extend(own.map(|(name, value)| (name, Reading::whole(value, Source::Rusage))));
    }
    laid.judge_in_earnest();
    laid
}

/// The texts of all formats, with plain spaces.
fn formats(laid: &Laid) -> [String; 3] {
    let comparison = laid.comparison();
    let text = terminal::render(&comparison, &terminal::Options { width: 400, ..Default::default() });
    [text, html::render(&comparison), markdown::render(&comparison)].map(|text| text.replace('\u{a0}', " "))
}

#[test]
fn a_range_of_shares_ends_with_the_shares_of_single_variants() {
    let laid = through_runtime(2);
    let shares = |text: &str| -> Vec<String> {
        let sentences = text.split("the runtime took ").skip(1);
        sentences.filter_map(|rest| Some(rest.split_once(" of ")?.0.to_owned())).collect()
    };
    let [text, page, markdown] = formats(&laid);
    let single: Vec<String> = shares(&markdown)
        .into_iter()
        .filter_map(|share| Some(share.split_once(" (")?.0.to_owned()))
        .collect();
    assert_eq!(single.len(), 3, "{markdown}");
    let number = |share: &String| share.trim_end_matches(" %").parse::<f64>().expect("a share");
    let least = single.iter().min_by(|a, b| number(a).total_cmp(&number(b))).expect("a share");
    let most = single.iter().max_by(|a, b| number(a).total_cmp(&number(b))).expect("a share");
    for text in [&text, &page, &markdown] {
        assert!(
            text.contains(&format!("the runtime took {least} to {most} of their CPU time")),
            "{least} {most}: {text}"
        );
    }
}

#[test]
fn every_format_has_a_row_of_the_runtime_or_none_has() {
    let few = formats(&through_runtime(0));
    let many = formats(&through_runtime(2));
    let has_row = |text: &String| text.contains("· x32run itself");
    assert_eq!(few.each_ref().map(has_row), [true; 3], "{few:#?}");
    assert_eq!(many.each_ref().map(has_row), [false; 3], "{many:#?}");
}
