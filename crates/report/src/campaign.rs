//! What every report shows of its campaign, whatever the campaign's kind.

use std::collections::BTreeMap;
use std::time::Duration;

use widthwise_experiment::outcome::{Round, RoundKind};
use widthwise_experiment::{Experiment, Role, VariantStatus};

/// A campaign without its runs. The caller fills it from the archive.
#[derive(Debug, Clone)]
pub struct Campaign<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The program's version, or the text of its origin; may be empty.
    pub version: String,
    /// The campaign's folder, as the user would type it.
    pub folder: String,
    /// When it began, RFC 3339.
    pub created: String,
    /// The text of the spec file; empty if the command line has everything.
    pub spec: &'a str,
    /// The command line that started it.
    pub command: Vec<String>,
    /// The version of Widthwise that measured.
    pub widthwise: &'a str,
    /// The machine record.
    pub machine: &'a serde_json::Value,
    /// The machine record for people: name and value.
    pub machine_lines: Vec<(String, String)>,
    /// Every round, in order.
    pub rounds: &'a [Round],
    /// Whether each variant took part, by name.
    pub statuses: &'a BTreeMap<String, VariantStatus>,
    /// How each variant was built.
    pub builds: Vec<BuildNote>,
    /// Why it stopped: `every interval is within ±1 %`, `interrupted`.
    pub stopped: String,
    /// How long it took.
    pub elapsed: Duration,
    /// What a reader must know before trusting the numbers, one sentence each.
    pub warnings: Vec<String>,
}

/// How one variant was built.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BuildNote {
    /// The variant.
    pub variant: String,
    /// The compiler's own version line; empty for a finished binary.
    pub compiler: String,
    /// Its compiler options.
    pub cflags: String,
    /// Size of the binary, in bytes.
    pub binary_bytes: Option<u64>,
    /// Digest of the binary.
    pub digest: String,
    /// The build log, as the user would type it.
    pub log: String,
    /// How long the build took; absent if it came from the cache.
    pub seconds: Option<f64>,
}

impl Campaign<'_> {
    /// The rounds that verdicts use.
    pub fn timed_rounds(&self) -> usize {
        self.rounds.iter().filter(|round| round.kind == RoundKind::Timed).count()
    }

    /// The rounds that the extent of the campaign names: the timed ones or, where nothing is timed, those on emulated machines.
    pub fn judged_rounds(&self) -> usize {
        match self.timed_rounds() {
            0 if self.experiment.is_emulated(&self.experiment.baseline) => {
                self.rounds.iter().filter(|round| round.kind == RoundKind::Emulated).count()
            }
            timed => timed,
        }
    }

    /// The status of a variant; a control without one has the baseline's.
    pub fn status(&self, variant: &str) -> &VariantStatus {
        const READY: &VariantStatus = &VariantStatus::Ready;
        let is_control = self.experiment.role(variant) == Role::Control;
        let of_baseline = || is_control.then(|| self.statuses.get(&self.experiment.baseline)).flatten();
        self.statuses.get(variant).or_else(of_baseline).unwrap_or(READY)
    }

    /// Why the participant has no numbers at all, if it has none. The baseline has none either if its second
    /// run ended the campaign before the first timed round.
    pub fn not_measured(&self, variant: &str) -> Option<&str> {
        let of = |name: &str| self.status(name).not_measured();
        let is_baseline = variant == self.experiment.baseline;
        of(variant).or_else(|| {
            (is_baseline && self.judged_rounds() == 0).then(|| of(&self.experiment.control())).flatten()
        })
    }
}
