//! One line for each member of each attempt, with the attempt's own values repeated in each. An attempt
//! without members has one line.

use std::io::Write;

use super::StudyReport;

/// The column headings; `docs/scale.md` describes each. Times are nanoseconds, amounts bytes.
const HEAD: [&str; 27] = [
    "round",
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
pub fn write(report: &StudyReport, to: &mut impl Write) -> Result<(), ::csv::Error> {
    let mut table = ::csv::Writer::from_writer(to);
    table.write_record(HEAD)?;
    let or_empty = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    for attempt in report.attempts {
        let highest = attempt.memory.as_ref().and_then(|memory| memory.moments.get(memory.highest?));
        let wait = attempt.cpu_wait.as_ref();
        let common = [
            attempt.round.to_string(),
            attempt.position.to_string(),
            attempt.purpose.name().to_owned(),
            attempt.cell.variant.clone(),
            attempt.cell.mode.name().to_owned(),
            attempt.cell.placement.clone(),
            attempt.cell.processes.to_string(),
            or_empty(attempt.events),
            attempt.is_sound().to_string(),
            attempt.failure.clone().unwrap_or_default(),
            attempt.elapsed_ns.to_string(),
            attempt.spread_ns.to_string(),
            attempt.cpu_ns.to_string(),
            or_empty(wait.and_then(|wait| wait.waited_ns)),
            or_empty(wait.map(|wait| wait.others_ns)),
            or_empty(wait.map(|wait| wait.stolen_ns)),
            or_empty(attempt.before_fork.map(|fork| fork.elapsed_ns)),
            or_empty(attempt.before_fork.map(|fork| fork.cpu_ns)),
            or_empty(highest.map(|moment| moment.pss)),
            highest.map_or(String::new(), |moment| moment.system_anonymous.to_string()),
        ];
        let members = attempt.members.iter().enumerate().map(|(place, member)| {
            [
                place.to_string(),
                or_empty(member.cpu.map(u64::from)),
                member.began_ns.to_string(),
                member.ended_ns.to_string(),
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
