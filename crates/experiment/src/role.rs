//! A variant's role, and whether it can be measured.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A variant's role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The other variants are compared with it.
    Baseline,
    /// It is compared with the baseline.
    #[default]
    Variant,
    /// The baseline, measured a second time: the A/A control, whose difference is the detection floor.
    Control,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 3] = [Role::Baseline, Role::Variant, Role::Control];

    /// The name in the archive, JSON and tables.
    pub fn name(self) -> &'static str {
        match self {
            Role::Baseline => "baseline",
            Role::Variant => "variant",
            Role::Control => "control",
        }
    }

    /// The role of that name, if there is one.
    pub fn parse(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of the A/A control of a baseline of that name.
pub fn control_of(baseline: &str) -> String {
    format!("{baseline} {}", Role::Control)
}

/// Whether a variant can be measured and compared; each reason is a sentence for the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum VariantStatus {
    /// It was built, it starts, and no output mismatch is known.
    #[default]
    Ready,
    /// This machine cannot build or start it.
    Unsupported(String),
    /// Its build failed.
    BuildFailed(String),
    /// Its runs failed, and it takes no part in later rounds.
    Excluded(String),
    /// A run left processes that still worked and were killed, so that its numbers must not be compared.
    LeftOver(String),
    /// Its output differs from the baseline's, so that its numbers must not be compared.
    OutputMismatch(String),
    /// Its output differs from the baseline's, and the user allows that.
    OutputMismatchAllowed(String),
}

impl VariantStatus {
    /// The name in the archive, JSON and CSV.
    pub fn name(&self) -> &'static str {
        match self {
            VariantStatus::Ready => "ready",
            VariantStatus::Unsupported(_) => "unsupported",
            VariantStatus::BuildFailed(_) => "build_failed",
            VariantStatus::Excluded(_) => "excluded",
            VariantStatus::LeftOver(_) => "left_over",
            VariantStatus::OutputMismatch(_) => "output_mismatch",
            VariantStatus::OutputMismatchAllowed(_) => "output_mismatch_allowed",
        }
    }

    /// The status of that name with this reason, if there is one.
    pub fn parse(name: &str, reason: &str) -> Option<VariantStatus> {
        let reason = reason.to_owned();
        Some(match name {
            "ready" => VariantStatus::Ready,
            "unsupported" => VariantStatus::Unsupported(reason),
            "build_failed" => VariantStatus::BuildFailed(reason),
            "excluded" => VariantStatus::Excluded(reason),
            "left_over" => VariantStatus::LeftOver(reason),
            "output_mismatch" => VariantStatus::OutputMismatch(reason),
            "output_mismatch_allowed" => VariantStatus::OutputMismatchAllowed(reason),
            _ => return None,
        })
    }

    /// The reason, where it is not ready.
    pub fn reason(&self) -> Option<&str> {
        match self {
            VariantStatus::Ready => None,
            VariantStatus::Unsupported(reason)
            | VariantStatus::BuildFailed(reason)
            | VariantStatus::Excluded(reason)
            | VariantStatus::LeftOver(reason)
            | VariantStatus::OutputMismatch(reason)
            | VariantStatus::OutputMismatchAllowed(reason) => Some(reason),
        }
    }

    /// Why there is nothing measured of it: it could not be built, started, or run to its end.
    pub fn not_measured(&self) -> Option<&str> {
        match self {
            VariantStatus::Unsupported(reason)
            | VariantStatus::BuildFailed(reason)
            | VariantStatus::Excluded(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether the program or its build failed; a machine that cannot do something is no failure.
    pub fn is_failure(&self) -> bool {
        matches!(
            self,
            VariantStatus::BuildFailed(_)
                | VariantStatus::Excluded(_)
                | VariantStatus::LeftOver(_)
                | VariantStatus::OutputMismatch(_)
        )
    }

    /// Whether it was measured, and its numbers must not be compared.
    pub fn is_withheld(&self) -> bool {
        matches!(self, VariantStatus::LeftOver(_) | VariantStatus::OutputMismatch(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_back() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.name()), Some(role));
        }
        let reason = || "no compiler".to_owned();
        for status in [
            VariantStatus::Ready,
            VariantStatus::Unsupported(reason()),
            VariantStatus::BuildFailed(reason()),
            VariantStatus::Excluded(reason()),
            VariantStatus::LeftOver(reason()),
            VariantStatus::OutputMismatch(reason()),
            VariantStatus::OutputMismatchAllowed(reason()),
        ] {
            assert_eq!(VariantStatus::parse(status.name(), "no compiler"), Some(status));
        }
        assert_eq!(VariantStatus::parse("doubtful", ""), None);
    }
}
