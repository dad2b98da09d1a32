//! Verdicts on campaigns that are cut out of a recorded series: how often a planted difference is found, and how often one
//! that does not exist.

use std::collections::BTreeMap;

use anyhow::Context;
use widthwise_experiment::outcome::{Ending, Noise, Reading, Round, RoundKind, Run, Source};
use widthwise_experiment::{spec, Experiment, Facts};
use widthwise_verdict::{judge, Evidence, Word};

/// The default metrics, of which only CPU time varies: its verdict pays for the others, as it does in a campaign.
const SPEC: &str = "[program]\nrun = \"{binary}\"\n[program.binaries]\nplain = \"a\"\nslowed = \"b\"\n";

/// What a verdict on CPU time says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The variant is called slower, and the interval includes the truth.
    pub is_found: bool,
    /// The variant is called different.
    pub is_different: bool,
}

/// Judges campaigns with one variant.
#[derive(Debug)]
pub struct Judge {
    /// How many campaigns are judged.
    pub campaigns: u32,
    experiment: Experiment,
}

impl Judge {
    pub fn new(campaigns: u32) -> anyhow::Result<Judge> {
        let request = spec::parse(SPEC, "the experiment of the bench")?;
        let facts = Facts { compilers: Vec::new(), default_seed: 1, folder: Default::default() };
        let experiment = request.resolve(&facts).context("the experiment of the bench")?;
        Ok(Judge { campaigns, experiment })
    }

    /// The verdict on rounds of variant, baseline and control (logarithms of CPU time), the variant slowed by this fraction.
    pub fn outcome(&self, laid: &[[f64; 3]], planted: f64) -> Outcome {
        let control = self.experiment.control();
        let names = ["slowed", self.experiment.baseline.as_str(), &control];
        let (mut rounds, mut runs) = (Vec::new(), Vec::new());
        for (number, values) in (0..).zip(laid) {
            rounds.push(Round {
                number,
                kind: RoundKind::Timed,
                cpu: None,
                noise: Noise::default(),
                layout: None,
            });
            for (position, (name, value)) in (0..).zip(names.iter().zip(values)) {
                let slower = if position == 0 { 1.0 + planted } else { 1.0 };
                let value_of = |name| if name == "cpu" { 1e8 * slower * value.exp() } else { 1e6 };
                let read = |name: &'static str| (name, Reading::whole(value_of(name), Source::Rusage));
                runs.push(Run {
                    variant: (*name).to_owned(),
                    round: number,
                    position,
                    began_ns: u64::from(3 * number + position),
                    ending: Ending::Done,
                    sample: self.experiment.metrics.iter().map(|metric| read(metric.name)).collect(),
                    output_digest: None,
                });
            }
        }
        let evidence = Evidence {
            experiment: &self.experiment,
            rounds: &rounds,
            runs: &runs,
            statuses: &BTreeMap::new(),
            rss_lag: 0,
        };
        let verdicts = judge(&evidence).verdicts;
        let own = verdicts.iter().find(|one| one.variant == "slowed" && one.metric.name == "cpu");
        let is = |word| own.is_some_and(|verdict| verdict.word == word);
        let holds = own.is_some_and(|verdict| {
            verdict.low.is_some_and(|low| low <= 1.0 + planted)
                && verdict.high.is_some_and(|high| high >= 1.0 + planted)
        });
        Outcome { is_found: is(Word::Higher) && holds, is_different: is(Word::Higher) || is(Word::Lower) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_difference_is_found_in_small_noise_and_none_where_there_is_none() {
        let judge = Judge::new(1).unwrap();
        let laid: Vec<[f64; 3]> =
            (0..30).map(|round| [0, 1, 2].map(|run| 1e-4 * f64::from((7 * round + 3 * run) % 5))).collect();
        assert_eq!(judge.outcome(&laid, 0.01), Outcome { is_found: true, is_different: true });
        assert!(!judge.outcome(&laid, 0.0).is_different);
    }
}
