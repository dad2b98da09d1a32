//! How a campaign gets what takes runs of their own, such as recorded heaps, of a variant that has none.

use std::path::Path;

use widthwise_experiment::VariantStatus;

use crate::output;

/// What gives a variant these runs, as a sentence's subject: the command that resumes the campaign. A variant that is not compared has no
/// such runs, whatever is resumed: what is needed is another campaign.
pub fn needed(folder: &Path, flag: &str, status: &VariantStatus) -> String {
    match status {
        VariantStatus::Ready | VariantStatus::OutputMismatchAllowed(_) => {
            format!("widthwise compare --resume {} {flag}", output::word(folder))
        }
        VariantStatus::OutputMismatch(_) => {
            format!("a new campaign with {flag}, and with --filter or --allow-different-output,")
        }
        VariantStatus::Unsupported(_)
        | VariantStatus::BuildFailed(_)
        | VariantStatus::Excluded(_)
        | VariantStatus::LeftOver(_) => format!("a new campaign with {flag} in which it is compared"),
    }
}

/// Why a variant has no runs of their own, whatever is resumed: nothing if it is compared.
pub fn obstacle(status: &VariantStatus) -> Option<String> {
    let is_compared = status.not_measured().is_none() && !status.is_withheld();
    let reason = status.reason().filter(|_| !is_compared)?;
    Some(format!("not compared, since {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_is_resumed_for_a_variant_that_is_compared_alone() {
        let of = |status: VariantStatus| {
            (needed(Path::new("there"), "--heap", &status), obstacle(&status).is_none())
        };
        let resumed = ("widthwise compare --resume there --heap".to_owned(), true);
        assert_eq!(of(VariantStatus::Ready), resumed);
        assert_eq!(of(VariantStatus::OutputMismatchAllowed("its output differs".to_owned())), resumed);
        for status in [VariantStatus::OutputMismatch, VariantStatus::LeftOver, VariantStatus::Excluded] {
            let (needed, is_compared) = of(status("a reason".to_owned()));
            assert!(!is_compared && !needed.contains("--resume") && needed.contains("--heap"), "{needed}");
        }
    }
}
