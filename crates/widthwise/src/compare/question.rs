//! The options of `compare` alone, besides those of every verb that measures.

use clap::Args;
use widthwise_experiment::metric::METRICS;
use widthwise_experiment::model::{Cpus, Estimator};
use widthwise_experiment::{Located, Request, RequestError, RequestErrorKind, SourceLocation};

use crate::arguments::{one_of, read, set};

/// The flags.
#[derive(Debug, Args)]
pub struct Question {
    /// CPUs that a run may use: auto (one idle core), any, or a list such as 0,2-3
    #[arg(long, value_name = "CPUS", help_heading = "Run")]
    cpus: Option<String>,
    /// Make the runs of a round share one CPU in time slices; for CPU time on a machine whose speed changes
    #[arg(long, help_heading = "Run")]
    concurrent: bool,
    /// Metrics: names, default, or all; `--help` ends with the list
    #[arg(long, value_name = "NAME,…", help_heading = "Measure")]
    metric: Vec<String>,
    /// Estimator: paired, or ten-run-trim (peringer-2007)
    #[arg(long, value_name = "NAME", help_heading = "Measure")]
    estimator: Option<String>,
}

impl Question {
    /// Adds them to the request.
    pub fn say(&self, request: &mut Request) -> Result<(), RequestError> {
        for word in self.metric.iter().flat_map(|words| words.split(',')) {
            request.measure.add_metric(word, SourceLocation::Flag("--metric"))?;
        }
        set(&mut request.run.cpus, read(&self.cpus, "--cpus", Cpus::parse)?);
        set(
            &mut request.run.concurrent,
            self.concurrent.then(|| Located::new(true, SourceLocation::Flag("--concurrent"))),
        );
        set(&mut request.measure.estimator, read(&self.estimator, "--estimator", estimator_named)?);
        Ok(())
    }

    /// Whether any was given.
    pub fn asks_anything(&self) -> bool {
        let mut location = Request::default();
        self.say(&mut location).is_err() || location != Request::default()
    }
}

/// The list of metrics at the end of the long help.
pub fn metrics() -> String {
    let mut text = "Metrics (default: those with *):\n".to_owned();
    for metric in METRICS {
        let mark = if metric.default { '*' } else { ' ' };
        text.push_str(&format!("  {mark} {:<20}  {}\n", metric.name, metric.about));
    }
    text
}

fn estimator_named(name: &str) -> Result<Estimator, RequestErrorKind> {
    one_of("estimator", name, &Estimator::ALL, Estimator::name)
}
