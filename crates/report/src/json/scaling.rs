//! The body of a scaling campaign's JSON: the plan, tables by number of processes, and every run with its members.

use serde::Serialize;
use serde_json::{json, Value};
use widthwise_experiment::scale::{GroupRun, Plan};
use widthwise_verdict::scaling::{Best, Figure, Line, Unfitted};
use widthwise_verdict::scaling_summary::{Comparison, EventSource, Row, Table};

use crate::json::envelope::{self, Envelope, Kind, ScalingVerdict, VerdictFields, VerdictNote};
use crate::scale::{judged, Scaling};

/// The fields of a scaling campaign alone.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)] // Each field is described in docs/schema/report-3.json, which a test holds against these.
pub struct Body<'a> {
    pub plan: &'a Plan,
    pub timed_rounds: usize,
    pub floor: Option<Value>,
    pub tables: Vec<Value>,
    pub smt: Vec<Value>,
    pub capacity: Vec<Value>,
    pub output_mismatches: Vec<Value>,
    pub runs: &'a [GroupRun],
}

/// A scaling campaign in its envelope.
pub fn envelope<'a>(scaling: &Scaling<'a>) -> Envelope<Body<'a>> {
    let summary = scaling.summary;
    let mismatches = summary.different.iter().map(|(variant, at)| json!({"variant": variant, "cell": at}));
    let smt = summary.smt.iter().map(|(one, two, found)| {
        json!({
            "cores": one,
            "cpus": two,
            "by_cpu_per_event": known(&found.by_event),
            "by_elapsed": known(&found.by_elapsed),
            "by_elapsed_less_sequential": known(&found.by_elapsed_less_sequential),
        })
    });
    let capacity = summary.capacity.iter().map(|capacity| {
        json!({
            "variant": capacity.variant,
            "mode": capacity.mode,
            "limit": scaling.plan.memory_limit,
            "each": capacity.each,
            "fixed": capacity.fixed,
            "fit": capacity.fit,
            "fit_low": capacity.bounds.map(|(low, _)| low),
            "fit_high": capacity.bounds.map(|(_, high)| high),
            "best": capacity.best.as_ref().map(|(processes, placement, throughput)| json!({
                "processes": processes,
                "placement": placement,
                "throughput": figure(throughput),
            })),
        })
    });
    let body = Body {
        plan: scaling.plan,
        timed_rounds: summary.rounds,
        floor: summary.floor.as_ref().ok().map(figure),
        tables: summary.tables.iter().map(table).collect(),
        smt: smt.collect(),
        capacity: capacity.collect(),
        output_mismatches: mismatches.collect(),
        runs: scaling.runs,
    };
    let mut envelope = envelope::envelope(&scaling.campaign, Kind::Scaling, body);
    envelope.verdicts = summary.comparisons.iter().map(|comparison| verdict(scaling, comparison)).collect();
    envelope
}

/// The throughput of a cell against that of the baseline's cell, or of the first mode or placement.
fn verdict(scaling: &Scaling, comparison: &Comparison) -> VerdictNote {
    let judging = &scaling.campaign.experiment.judging;
    let (verdict, reason) = judged(scaling, comparison);
    let figure = comparison.throughput.as_ref().ok();
    let bounds = figure.and_then(|figure| figure.bounds);
    let of_memory = comparison.memory.and_then(|memory| memory.bounds);
    VerdictNote {
        metric: "throughput",
        unit: match scaling.plan.work(comparison.cell.mode).unit() {
            "events" => "events per second",
            _ => "runs per second",
        },
        variant: comparison.cell.variant.clone(),
        baseline: comparison.baseline.variant.clone(),
        ratio: figure.map(|figure| figure.estimate),
        low: bounds.map(|ends| ends.low),
        high: bounds.map(|ends| ends.high),
        confidence: judging.confidence,
        equal_within: judging.equal_within,
        floor: scaling.floor(),
        verdict,
        reason,
        pairs: figure.map_or(0, |figure| figure.rounds as u32),
        of_kind: VerdictFields::Scaling(ScalingVerdict {
            cell: comparison.cell.clone(),
            baseline_cell: comparison.baseline.clone(),
            memory_ratio: comparison.memory.map(|memory| memory.estimate),
            memory_low: of_memory.map(|ends| ends.low),
            memory_high: of_memory.map(|ends| ends.high),
        }),
    }
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
        "private": table.private,
    })
}

fn row(row: &Row) -> Value {
    let (event, source) = match &row.event {
        Ok((found, source)) => (figure(found), Some(source)),
        Err(reason) => (instead(reason), None),
    };
    json!({
        "processes": row.processes,
        "cpus": row.cpus,
        "runs": row.runs,
        "failure": row.failure,
        "elapsed": known(&row.elapsed),
        "cpu": known(&row.cpu),
        "throughput": known(&row.throughput),
        "speed_up": known(&row.speed_up),
        "efficiency": known(&row.efficiency),
        "cpu_per_event": event,
        "cpu_per_event_source": source.map(|source| match source {
            EventSource::ReportedCpu => "reported-cpu",
            EventSource::ReportedElapsed => "reported-elapsed",
            EventSource::CpuTime => "cpu-time",
        }),
        "parallel_time": known(&row.parallel_time),
        "clock_normalised_parallel_time": known(&row.clock_normalised),
        "ipc": known(&row.ipc),
        "stalled_cycles_per_instruction": known(&row.stalled_per_instruction),
        "waiting": row.waiting.as_ref().map(|waiting| json!({
            "waited": waiting.waited,
            "unknown": waiting.unknown,
            "lost": waiting.lost,
            "others": waiting.others,
        })),
        "memory": row.memory.as_ref().map(|memory| json!({
            "tree": memory.tree,
            "runtime": memory.runtime,
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
