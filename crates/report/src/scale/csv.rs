//! One line for each member of each run, with the run's own values repeated in each. A run
//! without members has one line.

use std::io::Write;

use widthwise_experiment::outcome::RoundKind;

use super::model::Scaling;

/// The column headings; `docs/csv.md` describes each. Times are nanoseconds, amounts bytes.
const HEAD: [&str; 28] = [
    "round",
    "kind",
    "position",
    "purpose",
    "variant",
    "mode",
    "placement",
    "processes",
    "events",
    "sound",
    "failure",
    "elapsed_ns",
    "spread_ns",
    "cpu_ns",
    "waited_ns",
    "others_ns",
    "stolen_ns",
    "fork_elapsed_ns",
    "fork_cpu_ns",
    "pss",
    "system_anonymous",
    "member",
    "member_cpu",
    "member_began_ns",
    "member_ended_ns",
    "member_cpu_ns",
    "member_max_rss",
    "member_events",
];

/// Writes the table.
///
/// # Errors
/// The writer's.
pub fn write(report: &Scaling, to: &mut impl Write) -> Result<(), ::csv::Error> {
    let mut table = ::csv::Writer::from_writer(to);
    table.write_record(HEAD)?;
    let or_empty = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    for run in report.runs {
        let highest = run.memory.as_ref().and_then(|memory| memory.moments.get(memory.highest?));
        let wait = run.cpu_wait.as_ref();
        let kind =
            report.campaign.rounds.iter().find(|round| round.number == run.round).map(|round| round.kind);
        let counts = run.is_sound() && kind != Some(RoundKind::Interrupted);
        let common = [
            run.round.to_string(),
            kind.map_or(String::new(), |kind| kind.name().to_owned()),
            run.position.to_string(),
            run.purpose.name().to_owned(),
            run.cell.variant.clone(),
            run.cell.mode.name().to_owned(),
            run.cell.placement.clone(),
            run.cell.processes.to_string(),
            or_empty(run.events),
            counts.to_string(),
            run.failure.clone().unwrap_or_default(),
            run.elapsed_ns.to_string(),
            run.spread_ns.to_string(),
            run.cpu_ns.to_string(),
            or_empty(wait.and_then(|wait| wait.waited_ns)),
            or_empty(wait.map(|wait| wait.others_ns)),
            or_empty(wait.map(|wait| wait.stolen_ns)),
            or_empty(run.before_fork.map(|fork| fork.elapsed_ns)),
            or_empty(run.before_fork.map(|fork| fork.cpu_ns)),
            or_empty(highest.map(|moment| moment.pss)),
            highest.map_or(String::new(), |moment| moment.system_anonymous.to_string()),
        ];
        let members = run.members.iter().enumerate().map(|(place, member)| {
            [
                place.to_string(),
                or_empty(member.cpu.map(u64::from)),
                member.began_ns.to_string(),
                or_empty(member.ended_ns),
                member.cpu_ns.to_string(),
                or_empty(member.max_rss),
                or_empty(member.reported.map(|reported| reported.events)),
            ]
        });
        let mut rows: Vec<[String; 7]> = members.collect();
        if rows.is_empty() {
            rows.push(Default::default());
        }
        for row in rows {
            table.write_record(common.iter().chain(&row))?;
        }
    }
    table.flush()?;
    Ok(())
}
