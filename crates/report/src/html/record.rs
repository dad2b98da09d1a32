//! How the numbers were made: outputs, builds, processes, machine, how to repeat the campaign, and what the
//! words mean.

use maud::{html, Markup};
use widthwise_experiment::model::Estimator;
use widthwise_experiment::schedule::Order;
use widthwise_experiment::units::Unit;
use widthwise_verdict::wording::{self, share};

use super::wording::{amount, name, prose, unbroken};
use crate::campaign::Campaign;
use crate::comparison::Comparison;
use crate::{report_text, sanitize};

/// A longer spec is folded.
const LONGEST_SPEC: usize = 60;

pub fn sections(comparison: &Comparison) -> Markup {
    html! {
        (outputs(comparison))
        (builds(comparison))
        (machine(comparison))
        (reproduce(&comparison.campaign))
        (words(comparison))
    }
}

fn outputs(comparison: &Comparison) -> Markup {
    let agreement = report_text::agreement(comparison);
    html! {
        section id="outputs" {
            h2 { "Outputs" }
            @for sentence in &agreement { p { (super::wording::prose(sentence)) } }
            @if agreement.is_empty() { p class="none" { "No run has an output." } }
            @for (variant, difference) in &comparison.differences {
                details {
                    summary { (name(comparison, variant)) " against " (name(comparison, &comparison.campaign.experiment.baseline)) }
                    pre class="diff" { code {
                        @for line in sanitize::block(difference).lines() { (diff_line(line)) "\n" }
                    } }
                }
            }
        }
    }
}

fn diff_line(line: &str) -> Markup {
    match line.chars().next() {
        Some('+') => html! { ins { (line) } },
        Some('-') => html! { del { (line) } },
        Some('@') => html! { span class="quiet" { (line) } },
        _ => html! { (line) },
    }
}

fn builds(comparison: &Comparison) -> Markup {
    let some = |text: &str| if text.is_empty() { "–".to_owned() } else { sanitize::line(text) };
    html! {
        section id="builds" {
            h2 { "Builds" }
            @if comparison.campaign.builds.is_empty() { p class="none" { "Nothing was built: the binaries were finished." } }
            @else {
                div class="scroll" tabindex="0" role="region" aria-label="Builds" { table class="facts" {
                    thead { tr {
                        @for head in ["variant", "compiler", "CFLAGS"] { th scope="col" { (head) } }
                        th scope="col" class="number" { "binary" }
                        th scope="col" { "digest" }
                        th scope="col" class="number" { "time" }
                        th scope="col" { "log" }
                    } }
                    tbody { @for build in &comparison.campaign.builds { tr {
                        th scope="row" { (name(comparison, &build.variant)) }
                        td { (some(&build.compiler)) }
                        td { code { (some(&build.cflags)) } }
                        td class="number" {
                            (build.binary_bytes.map_or("–".to_owned(), |bytes| amount(bytes as f64, Unit::Bytes)))
                        }
                        td { code title=(some(&build.digest)) { (short(&some(&build.digest))) } }
                        td class="number" { (seconds(build.seconds)) }
                        td { code { (some(&build.log)) } }
                    } } }
                } }
            }
            @let trees = report_text::processes(comparison);
            @if !trees.is_empty() {
                h3 { "Processes" }
                @for sentence in trees { p { (prose(&sentence)) } }
                (processes(comparison))
            }
        }
    }
}

fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

fn seconds(length: Option<f64>) -> String {
    match length {
        Some(length) if length.is_finite() => amount(length * 1e9, Unit::Nanoseconds),
        _ => "cached".to_owned(),
    }
}

fn processes(comparison: &Comparison) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Processes" { table class="facts" {
            thead { tr {
                @for head in ["variant", "command"] { th scope="col" { (head) } }
                @for head in ["processes", "peak of the largest", "share of CPU time"] {
                    th scope="col" class="number" { (head) }
                }
            } }
            tbody { @for note in &comparison.processes { tr {
                th scope="row" { (name(comparison, &note.variant)) }
                td { code { (sanitize::line(&note.comm)) } }
                td class="number" { (note.count) }
                td class="number" { (amount(note.max_rss as f64, Unit::Bytes)) }
                td class="number" { (prose(&share(note.cpu_share))) }
            } } }
        } }
    }
}

fn machine(comparison: &Comparison) -> Markup {
    html! {
        section id="machine" {
            h2 { "Machine" }
            dl {
                @for (name, value) in &comparison.campaign.machine_lines {
                    div { dt { (sanitize::line(name)) } dd { (sanitize::line(value)) } }
                }
            }
            @if comparison.campaign.machine_lines.is_empty() { p class="none" { "There is no machine record." } }
            details {
                summary { "The whole record" }
                pre { code {
                    (sanitize::block(&serde_json::to_string_pretty(comparison.campaign.machine).unwrap_or_default()))
                } }
            }
        }
    }
}

/// How a campaign is repeated: its command, its seed and its spec.
pub(crate) fn reproduce(campaign: &Campaign) -> Markup {
    let words: Vec<String> = campaign.command.iter().map(|word| quoted(&sanitize::line(word))).collect();
    html! {
        section id="reproduce" {
            h2 { "Repeat the campaign" }
            @if !words.is_empty() { pre { code { (words.join(" ")) } } }
            p {
                "Seed " code { (campaign.experiment.seed) } " gives the same orders and paddings. The samples of "
                "this campaign are in " code { (sanitize::line(&campaign.folder)) } "; "
                code { "widthwise report" } " renders them again."
            }
            @if !campaign.spec.trim().is_empty() {
                details open[campaign.spec.lines().count() <= LONGEST_SPEC] {
                    summary { "The experiment" }
                    pre { code { (sanitize::block(campaign.spec)) } }
                }
            }
        }
    }
}

/// A word as it can be typed in a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn words(comparison: &Comparison) -> Markup {
    let experiment = &comparison.campaign.experiment;
    let judging = &experiment.judging;
    let confidence = unbroken(&share(judging.confidence));
    let order = match experiment.order {
        Order::Random => "in a random order",
        Order::Balanced => "each equally often at each position",
    };
    let method = match judging.estimator {
        Estimator::Paired => format!(
            "In every round the baseline, the variants and the A/A control run once each, on the same core, {order}. \
             A round gives a ratio to each of the baseline's runs, in which a slowdown of the whole round cancels out. The \
             estimate is the trimmed mean of their logarithms; resampling rounds (BCa) gives the interval. Counts that \
             are 0 in some runs have no ratio: the difference of their means is shown, with its interval and unit."
        ),
        Estimator::TenRunTrim => "Of ten runs the two slowest and the two fastest are left out and six are averaged; the ratio of the \
             averages is shown, and resampling the rounds gives the interval. The user requested this, for comparison with work that did so."
            .to_owned(),
    };
    let within = wording::margin(judging.equal_within);
    let terms: [(&str, String); 9] = [
        (
            "lower, higher",
            "There is a difference: it is outside the detection floor, and chance is an unlikely \
          explanation of it even among all comparisons of the campaign."
                .to_owned(),
        ),
        (
            "no difference",
            format!(
                "The two are equivalent: the whole interval lies within {within} (--equal-within), and there is no \
                 lower or higher. This is a claim, by two one-sided tests: a difference as large as the margin is taken for \
                 none in at most {} of all cases.",
                unbroken(&share(0.5 * (1.0 - judging.confidence)))
            ),
        ),
        (
            "inconclusive",
            format!(
                "Neither a difference nor equivalence is shown: the interval reaches beyond {within}. More rounds, or a \
                 quieter machine, narrow it."
            ),
        ),
        (
            "A/A",
            "The baseline against its A/A control: the difference is noise, and the detection floor is made from it.".to_owned(),
        ),
        (
            "withheld",
            "There are numbers, but they must not be compared: most often the variant's output differs \
          from the baseline's."
                .to_owned(),
        ),
        (
            "no data",
            "There are no numbers; the reason is beside the word. Missing is never zero.".to_owned(),
        ),
        (
            "interval",
            format!(
                "If campaigns like this one were repeated, {confidence} of such intervals would contain the \
          true ratio."
            ),
        ),
        (
            "detection floor",
            "The A/A control is the baseline measured a second time. The floor combines their measured difference \
          and its uncertainty: the middle of their interval and its half-width, added in squares."
                .to_owned(),
        ),
        (
            "round",
            "One run of every variant. Rounds are numbered from 0 over the whole campaign, warm-up rounds \
          among them, here as in JSON and CSV."
                .to_owned(),
        ),
    ];
    html! {
        section id="words" {
            h2 { "What the words mean" }
            p { (method) }
            @if let Some(sentence) = report_text::control(comparison) { p { (prose(&sentence)) } }
            dl class="terms" {
                @for (term, meaning) in terms { div { dt { (term) } dd { (meaning) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_needs_it() {
        assert_eq!(["a-b", "a b", "it's", ""].map(quoted), ["a-b", "'a b'", "'it'\\''s'", "''"]);
    }
}
