//! The options of `compare` alone, besides those of every verb that measures.

use clap::Args;
use widthwise_experiment::metric::{Family, MetricRow, METRICS};
use widthwise_experiment::model::{Cpus, Estimator};
use widthwise_experiment::schedule::Order;
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
    /// Read peak memory by stopping each process at its exit, without privileges: what is resident then is exact to the page; it perturbs the run
    #[arg(long, help_heading = "Run")]
    exit_stop: bool,
    /// Metrics: names, default, or all; `--help` ends with the list
    #[arg(long, value_name = "NAME,…", help_heading = "Measure")]
    metric: Vec<String>,
    /// A metric that the program reports on its standard output, in lines `metric NAME VALUE UNIT`; UNIT is nanoseconds, bytes
    /// or count; once for each
    #[arg(long, value_name = "NAME=UNIT", help_heading = "Measure")]
    reports: Vec<String>,
    /// Estimator: paired, or ten-run-trim (peringer-2007)
    #[arg(long, value_name = "NAME", help_heading = "Measure")]
    estimator: Option<String>,
    /// Build 8 layouts of each variant, or this number, so that verdicts do not depend on one code alignment
    #[arg(long, value_name = "K", num_args = 0..=1, require_equals = true, default_missing_value = "8", help_heading = "Measure")]
    randomize_layout: Option<u32>,
    /// The order of a round: each one equally likely (random), or everyone equally often at each position (balanced)
    #[arg(long, value_name = "NAME", help_heading = "Measure")]
    order: Option<String>,
}

impl Question {
    /// Adds them to the request.
    pub fn say(&self, request: &mut Request) -> Result<(), RequestError> {
        for word in self.metric.iter().flat_map(|words| words.split(',')) {
            request.measure.add_metric(word, SourceLocation::Flag("--metric"))?;
        }
        for report in &self.reports {
            request.measure.add_report_assignment(report, SourceLocation::Flag("--reports"))?;
        }
        set(&mut request.run.cpus, read(&self.cpus, "--cpus", Cpus::parse)?);
        set(
            &mut request.run.concurrent,
            self.concurrent.then(|| Located::new(true, SourceLocation::Flag("--concurrent"))),
        );
        set(
            &mut request.run.exit_stop,
            self.exit_stop.then(|| Located::new(true, SourceLocation::Flag("--exit-stop"))),
        );
        set(
            &mut request.measure.randomize_layout,
            self.randomize_layout.map(|n| Located::new(n, SourceLocation::Flag("--randomize-layout"))),
        );
        set(&mut request.measure.order, read(&self.order, "--order", order_named)?);
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
    let is_apart =
        |metric: &&MetricRow| matches!(metric.family, Family::InstructionClass | Family::CacheModel);
    for metric in METRICS.iter().filter(|metric| !is_apart(metric)) {
        let mark = if metric.default { '*' } else { ' ' };
        text.push_str(&format!("  {mark} {:<20}  {}\n", metric.name, metric.about));
    }
    text.push_str(
        "\nWith --instruction-classes: instructions_user_CLASS and instructions_kernel_CLASS, by the classes of `explain`.\n\
         With --cache-model: l1i_misses, l1d_misses, ll_misses, itlb_misses and dtlb_misses, each with _user and _kernel.\n",
    );
    text
}

fn order_named(name: &str) -> Result<Order, RequestErrorKind> {
    one_of("order", name, &Order::ALL, Order::name)
}

fn estimator_named(name: &str) -> Result<Estimator, RequestErrorKind> {
    one_of("estimator", name, &Estimator::ALL, Estimator::name)
}
