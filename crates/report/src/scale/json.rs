//! The content of the tables, and every attempt, as JSON. `docs/scale.md` describes it.

use serde_json::{json, Value};
use widthwise_experiment::scale::Cell;
use widthwise_verdict::scaling::{Best, Figure, Line, Unfitted};
use widthwise_verdict::study::{EventSource, Row, Table};

use super::comparison::word;
use super::StudyReport;

/// The version of the format; it increases when the meaning of something changes.
const SCHEMA: u32 = 1;

/// The report as text.
///
/// # Errors
/// A number that JSON cannot represent; there is none.
pub fn render(report: &StudyReport) -> Result<String, serde_json::Error> {
    let summary = report.summary;
    let value = json!({
        "schema": SCHEMA,
        "kind": "scale",
        "program": report.program,
        "version": report.version,
        "created": report.created,
        "folder": report.folder,
        "command": report.command,
        "widthwise": report.widthwise,
        "run": report.run,
        "plan": report.plan,
        "variants": report.variants,
        "unable": report.unable.iter().map(|(variant, reason)| json!({"variant": variant, "reason": reason}))
            .collect::<Vec<_>>(),
        "remarks": report.remarks,
        "machine": report.machine_lines.iter().map(|(name, text)| (name.clone(), Value::from(text.clone())))
            .collect::<serde_json::Map<_, _>>(),
        "rounds": summary.rounds,
        "equal_within": report.equal_within,
        "floor": summary.floor.as_ref().map(figure),
        "tables": summary.tables.iter().map(table).collect::<Vec<_>>(),
        "comparisons": summary.comparisons.iter().map(|comparison| json!({
            "cell": cell(&comparison.cell),
            "beside": cell(&comparison.beside),
            "throughput": known(&comparison.throughput),
            "verdict": word(report, &comparison.throughput).name(),
            "memory": comparison.memory,
        })).collect::<Vec<_>>(),
        "smt": summary.smt.iter().map(|(one, two, found)| json!({
            "cores": cell(one),
            "cpus": cell(two),
            "by_evtime": known(&found.by_event),
            "by_elapsed": known(&found.by_elapsed),
            "by_elapsed_less_sequential": known(&found.by_elapsed_less_sequential),
        })).collect::<Vec<_>>(),
        "capacity": summary.capacity.iter().map(|capacity| json!({
            "variant": capacity.variant,
            "mode": capacity.mode,
            "limit": report.plan.memory_limit,
            "each": capacity.each,
            "fixed": capacity.fixed,
            "fit": capacity.fit,
            "best": capacity.best.as_ref().map(|(processes, placement, throughput)| json!({
                "processes": processes,
                "placement": placement,
                "throughput": figure(throughput),
            })),
        })).collect::<Vec<_>>(),
        "different": summary.different.iter().map(|(variant, at)| json!({"variant": variant, "cell": cell(at)}))
            .collect::<Vec<_>>(),
        "attempts": report.attempts,
    });
    serde_json::to_string_pretty(&value)
}

fn cell(cell: &Cell) -> Value {
    json!({
        "variant": cell.variant, "mode": cell.mode, "placement": cell.placement, "processes": cell.processes
    })
}

fn figure(figure: &Figure) -> Value {
    json!({
        "estimate": figure.estimate,
        "low": figure.bounds.map(|ends| ends.low),
        "high": figure.bounds.map(|ends| ends.high),
        "rounds": figure.rounds,
    })
}

fn known(found: &Result<Figure, Unfitted>) -> Value {
    match found {
        Ok(found) => figure(found),
        Err(reason) => instead(reason),
    }
}

/// Why there is no figure; `withheld` where there are numbers that must not be compared.
fn instead(reason: &Unfitted) -> Value {
    match reason {
        Unfitted::Withheld(_) => json!({"verdict": "withheld", "reason": reason.to_string()}),
        _ => json!({"reason": reason.to_string()}),
    }
}

fn line(found: &Result<Line, Unfitted>) -> Value {
    match found {
        Ok(line) => json!({
            "intercept": figure(&line.intercept),
            "slope": figure(&line.slope),
            "residual": line.residual,
            "places": line.places,
        }),
        Err(reason) => instead(reason),
    }
}

fn table(table: &Table) -> Value {
    let amdahl = match &table.amdahl {
        Ok(law) => json!({"one": figure(&law.one), "serial": figure(&law.serial), "residual": law.residual}),
        Err(reason) => instead(reason),
    };
    let universal = match &table.universal {
        Ok(law) => json!({
            "one": figure(&law.one),
            "contention": figure(&law.contention),
            "coherency": figure(&law.coherency),
            "residual": law.residual,
            "best": match &law.best {
                Best::At { processes, throughput, beyond } => json!({
                    "processes": figure(processes), "throughput": figure(throughput), "beyond": beyond
                }),
                Best::NoneWithinReach => Value::Null,
            },
        }),
        Err(reason) => instead(reason),
    };
    json!({
        "variant": table.variant,
        "mode": table.mode,
        "placement": table.placement,
        "unit": table.work.unit(),
        "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
        "amdahl": amdahl,
        "universal": universal,
        "sequential": {
            "one_event": known(&table.sequential.one_event),
            "at_fork": known(&table.sequential.at_fork),
            "cpu_at_fork": known(&table.sequential.cpu_at_fork),
            "regression": line(&table.sequential.regression),
            "subtracted": table.sequential.chosen(),
        },
        "marginal": line(&table.marginal),
    })
}

fn row(row: &Row) -> Value {
    let (event, source) = match &row.event {
        Ok((found, source)) => (figure(found), Some(source)),
        Err(reason) => (json!({"reason": reason.to_string()}), None),
    };
    json!({
        "processes": row.processes,
        "cpus": row.cpus,
        "attempts": row.attempts,
        "failure": row.failure,
        "elapsed": known(&row.elapsed),
        "cpu": known(&row.cpu),
        "throughput": known(&row.throughput),
        "speed_up": known(&row.speed_up),
        "efficiency": known(&row.efficiency),
        "evtime": event,
        "evtime_source": source.map(|source| match source {
            EventSource::ReportedCpu => "reported-cpu",
            EventSource::ReportedElapsed => "reported-elapsed",
            EventSource::CpuTime => "cpu-time",
        }),
        "TIME": known(&row.time),
        "NTIME": known(&row.ntime),
        "ipc": known(&row.ipc),
        "sci": known(&row.sci),
        "waiting": row.waiting.as_ref().map(|waiting| json!({
            "waited": waiting.waited,
            "unknown": waiting.unknown,
            "lost": waiting.lost,
            "others": waiting.others,
        })),
        "memory": row.memory.as_ref().map(|memory| json!({
            "pss": memory.pss,
            "member_pss": memory.member_pss,
            "member_uss": memory.member_uss,
            "member_private_dirty": memory.member_private_dirty,
            "member_resident": memory.member_resident,
            "anonymous": memory.anonymous,
            "system_anonymous": memory.system_anonymous,
            "system_drift": memory.system_drift,
            "huge": memory.huge,
            "system_huge": memory.system_huge,
            "merged": memory.merged,
            "frozen": memory.frozen,
            "copy_on_write": memory.copy_on_write,
        })),
    })
}
