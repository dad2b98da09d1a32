//! The comparisons of a campaign that share the risk of a false alarm.

use widthwise_experiment::{Experiment, Metric};

use crate::comparison::{Comparison, Obstacle};
use crate::decision::Significance;
use crate::multiple_testing::{adjusted, weights, Member};

/// The Holm family: every requested comparison that has a figure. The A/A pair only sets floors.
pub(crate) struct Family<'a> {
    /// The variant and the metric of each member.
    names: Vec<(&'a str, &'static str)>,
    members: Vec<Member>,
}

impl<'a> Family<'a> {
    pub fn of(experiment: &Experiment, made: &[(&'a str, Vec<Result<Comparison, Obstacle>>)]) -> Family<'a> {
        let deciding = experiment.deciding();
        let (mut names, mut ps, mut decide) = (Vec::new(), Vec::new(), Vec::new());
        for (variant, comparisons) in made {
            for (comparison, metric) in comparisons.iter().zip(&experiment.metrics) {
                let Ok(comparison) = comparison else { continue };
                names.push((*variant, metric.name));
                ps.push(comparison.p);
                decide.push(deciding.contains(metric));
            }
        }
        let members = ps.into_iter().zip(weights(&decide)).map(|(p, weight)| Member { p, weight }).collect();
        Family { names, members }
    }

    /// The significance of each member, in the order in which the comparisons were made.
    pub fn significances(&self) -> impl Iterator<Item = Significance> + '_ {
        let significance =
            |(adjusted, member): (f64, &Member)| Significance { adjusted, multiplicity: 1.0 / member.weight };
        adjusted(&self.members).into_iter().zip(&self.members).map(significance)
    }

    /// How many comparisons share the risk of a false alarm.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// The significance that one member has with another p-value, beside the same others.
    pub fn with(&self, variant: &str, metric: Metric, p: f64) -> Option<Significance> {
        let place = self.names.iter().position(|name| *name == (variant, metric.name))?;
        let mut members = self.members.clone();
        members[place].p = p;
        Some(Significance { adjusted: adjusted(&members)[place], multiplicity: 1.0 / members[place].weight })
    }
}
