//! An explanation as CSV: one row for each part of a metric's difference, and one for what no part explains.

use std::io::Write;

use super::Explanation;

/// The header row. `docs/csv.md` describes each column.
pub const HEAD: [&str; 13] = [
    "baseline",
    "variant",
    "metric",
    "unit",
    "baseline_value",
    "variant_value",
    "row",
    "amount",
    "points",
    "cause",
    "numbers",
    "certainty",
    "where",
];

/// Writes every part of every metric. A metric without a part has the row of what is not explained alone.
pub fn write(explanation: &Explanation, out: impl Write) -> Result<(), ::csv::Error> {
    let mut table = ::csv::Writer::from_writer(out);
    table.write_record(HEAD)?;
    let parts = explanation.parts();
    for rest in explanation.unexplained() {
        let mut row = |kind: &str, amount: i64, points: f64, texts: [&str; 4]| {
            let both = [explanation.baseline, explanation.variant, rest.metric, rest.unit.name()];
            let numbers = [rest.baseline.to_string(), rest.variant.to_string(), kind.to_owned()];
            let own = [amount.to_string(), points.to_string()];
            table.write_record(
                both.map(str::to_owned).iter().chain(&numbers).chain(&own).chain(&texts.map(str::to_owned)),
            )
        };
        for part in parts.iter().filter(|part| part.metric == rest.metric) {
            let texts = [&*part.cause, &part.detail, part.certainty.name(), &part.place];
            row("part", part.amount, part.points, texts)?;
        }
        let reason = rest.reason.as_deref().unwrap_or_default();
        row("not_explained", rest.amount, rest.points, [reason, "", "", ""])?;
    }
    table.flush()?;
    Ok(())
}
