//! A variant that is ready to be measured, or the reason why it is not.

use std::path::PathBuf;

use widthwise_archive::BuildNote;
use widthwise_experiment::VariantStatus;
use widthwise_measure::plan::Machine;
use widthwise_measure::run::launch_spec::LaunchSpec;

/// One variant.
pub struct Ready {
    /// Its name.
    pub name: String,
    /// A safe name for its files.
    pub slug: String,
    /// How to start it, the first of its layouts; or why that cannot be done.
    pub start: Result<LaunchSpec, VariantStatus>,
    /// Where it runs.
    pub machine: Machine,
    /// How to start its further layouts.
    pub further_layouts: Vec<LaunchSpec>,
    /// How it was built.
    pub build: Option<BuildNote>,
    /// The build log, to be kept with the campaign.
    pub log: Option<PathBuf>,
    /// Warnings for the report.
    pub warnings: Vec<String>,
}
