//! The estimators by name.

use std::fmt;

use crate::model::Estimator;

impl Estimator {
    /// Every estimator; the first is the default.
    pub const ALL: [Estimator; 2] = [Estimator::Paired, Estimator::TenRunTrim];

    /// The name in spec files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Estimator::Paired => "paired",
            Estimator::TenRunTrim => "ten-run-trim",
        }
    }

    /// The estimator of that name, if there is one.
    pub fn find(name: &str) -> Option<Estimator> {
        Estimator::ALL.into_iter().find(|estimator| estimator.name() == name)
    }
}

impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
