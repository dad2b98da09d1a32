//! Synthetic campaigns: values in, evidence out.

// Each test file and the example use a part of this.
#![allow(dead_code)]

use std::collections::BTreeMap;

use widthwise_experiment::model::{
    Estimator, Experiment, FlagSet, Judging, Launch, Origin, OutputCheck, Program, Stopping, Thp, Variant,
};
use widthwise_experiment::outcome::{Ending, Noise, Reading, Round, RoundKind, Run, Source};
use widthwise_experiment::VariantStatus;
use widthwise_experiment::{metric, Metric};
use widthwise_verdict::{judge, Evidence, Judgement, Verdict};

pub const BASELINE: &str = "x86-64";

/// What an [`Evidence`] borrows from.
#[derive(Clone)]
pub struct Laid {
    pub experiment: Experiment,
    pub rounds: Vec<Round>,
    pub runs: Vec<Run>,
    pub statuses: BTreeMap<String, VariantStatus>,
    pub rss_lag: u64,
}

pub fn named(name: &str) -> Metric {
    metric::find(name).expect("a metric of that name")
}

/// An experiment with the baseline and these variants.
pub fn experiment(variants: &[&str], metrics: &[&str]) -> Experiment {
    let variant = |name: &str| Variant {
        name: name.to_owned(),
        abi: None,
        compiler: None,
        flags: FlagSet {
            name: "-O2".to_owned(),
            cflags: "-O2".to_owned(),
            cxxflags: "-O2".to_owned(),
            ldflags: String::new(),
            profile_guided: false,
            train: None,
        },
        allocator: "glibc".to_owned(),
        thp: Thp::System,
        environment: BTreeMap::new(),
        kernel: Default::default(),
        binary: None,
    };
    Experiment {
        program: Program {
            name: "tree".to_owned(),
            origin: Origin::Binaries { files: BTreeMap::new() },
            run: "{binary}".to_owned(),
        },
        variants: std::iter::once(BASELINE).chain(variants.iter().copied()).map(variant).collect(),
        baseline: BASELINE.to_owned(),
        metrics: metrics.iter().map(|name| named(name)).collect(),
        launch: Launch::default(),
        check: OutputCheck::default(),
        stopping: Stopping::default(),
        warmup: 0,
        memory: 0,
        judging: Judging { confidence: 0.95, equal_within: 0.01, estimator: Estimator::Paired },
        order: widthwise_experiment::schedule::Order::Random,
        cache_model: Default::default(),
        kvm: false,
        layouts: 0,
        seed: 7,
    }
}

impl Laid {
    /// A campaign of the baseline, these variants and the A/A control, with so many timed rounds and no readings yet.
    pub fn new(variants: &[&str], metrics: &[&str], rounds: u32) -> Laid {
        let experiment = experiment(variants, metrics);
        let everyone: Vec<String> = experiment
            .variants
            .iter()
            .map(|variant| variant.name.clone())
            .chain([experiment.control()])
            .collect();
        let mut laid =
            Laid { experiment, rounds: Vec::new(), runs: Vec::new(), statuses: BTreeMap::new(), rss_lag: 0 };
        for number in 0..rounds {
            laid.rounds.push(Round {
                number,
                kind: RoundKind::Timed,
                cpu: None,
                noise: Noise::default(),
                layout: None,
            });
            for (position, variant) in everyone.iter().enumerate() {
                laid.runs.push(Run {
                    variant: variant.clone(),
                    round: number,
                    position: position as u32,
                    began_ns: laid.runs.len() as u64,
                    ending: Ending::Done,
                    sample: BTreeMap::new(),
                    output_digest: None,
                });
            }
        }
        laid
    }

    pub fn control(&self) -> String {
        self.experiment.control()
    }

    /// Gives a variant its readings of a metric, round by round.
    pub fn read(&mut self, variant: &str, metric: &str, values: impl IntoIterator<Item = f64>) -> &mut Laid {
        let metric = named(metric).name;
        let mut values = values.into_iter();
        for run in self.runs.iter_mut().filter(|run| run.variant == variant) {
            if let Some(value) = values.next() {
                run.sample.insert(metric, Reading::whole(value, Source::Rusage));
            }
        }
        self
    }

    /// Gives the baseline, the A/A control and every variant the same reading in every round.
    pub fn read_alike(&mut self, metric: &str, value: f64) -> &mut Laid {
        let metric = named(metric).name;
        for run in &mut self.runs {
            run.sample.insert(metric, Reading::whole(value, Source::Rusage));
        }
        self
    }

    /// The run of a variant in a round.
    pub fn run(&mut self, variant: &str, round: u32) -> &mut Run {
        self.runs
            .iter_mut()
            .find(|run| run.variant == variant && run.round == round)
            .expect("a run of that variant in that round")
    }

    pub fn evidence(&self) -> Evidence<'_> {
        self.evidence_of(self.rounds.len())
    }

    /// The evidence of the first rounds only.
    pub fn evidence_of(&self, rounds: usize) -> Evidence<'_> {
        let runs = self.runs.len() / self.rounds.len().max(1) * rounds;
        Evidence {
            experiment: &self.experiment,
            rounds: &self.rounds[..rounds],
            runs: &self.runs[..runs],
            statuses: &self.statuses,
            rss_lag: self.rss_lag,
        }
    }

    pub fn judged(&self) -> Judgement {
        judge(&self.evidence())
    }

    /// The verdict on a variant's metric.
    pub fn verdict(&self, variant: &str, metric: &str) -> Verdict {
        pick(&self.judged(), variant, metric).clone()
    }
}

/// The verdict on a variant's metric.
pub fn pick<'a>(judgement: &'a Judgement, variant: &str, metric: &str) -> &'a Verdict {
    judgement
        .verdicts
        .iter()
        .find(|verdict| verdict.variant == variant && verdict.metric.name == metric)
        .expect("a verdict on that variant and metric")
}
