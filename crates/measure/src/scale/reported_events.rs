//! The events that a program reported in a run, and which member reported them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use widthwise_experiment::placeholder;
use widthwise_experiment::scale::{GroupRun, Member, Mode, ReportedEvents};

use crate::output::earlier::Earlier;
use crate::scale::event_log::{self, EventLog, Pattern};
use crate::scale::group_spec::{filled, GroupSpec};
use crate::scale::launcher_pool::Task;
use widthwise_proc::clock::now;
use widthwise_proc::sampler::marks::Marks;
use widthwise_proc::taskstats::Exit;

/// The most bytes of a log to read.
const MOST_LOG: u64 = 64 << 20;
/// The most generations between a job and a process of its.
const MOST_GENERATIONS: usize = 64;
/// The place of a job's number in a pattern of names.
const INDEX: &str = "{index}";

/// What tells whose events are whose.
pub(super) struct Told<'a> {
    pub spec: &'a GroupSpec<'a>,
    pub tasks: &'a [Task<'a>],
    /// Logs that are still what they were before the run are not of this run.
    pub earlier: &'a Earlier,
    /// See [`parents`].
    pub parents: &'a HashMap<u32, u32>,
}

/// The parents of processes that have ended, and the processes of threads.
pub(super) fn parents(exits: &[(Exit, u64)]) -> HashMap<u32, u32> {
    let parent = |exit: &Exit| if exit.pid == exit.tgid { exit.parent } else { exit.tgid };
    exits.iter().map(|(exit, _)| (exit.pid, parent(exit))).collect()
}

/// Logs that are there before a run of so many programs.
pub(super) fn logs(spec: &GroupSpec, programs: usize) -> Vec<PathBuf> {
    let Some(EventLog::Lines { files: Some(files), .. }) = spec.event_log else { return Vec::new() };
    let programs = if files.contains(INDEX) { programs } else { programs.min(1) };
    (0..programs).flat_map(|index| named(files, spec, index)).collect()
}

/// Takes in the events that the program reported.
pub(super) fn tell(told: &Told, pipes: Vec<Marks>, run: &mut GroupRun) {
    match told.spec.event_log {
        None => {}
        Some(EventLog::Marks) => tell_by_marks(pipes, run),
        Some(EventLog::Lines { pattern, files }) if run.cell.mode == Mode::Jobs => {
            tell_of_jobs(told, pattern, files.as_deref(), run);
        }
        Some(EventLog::Lines { pattern, files }) => {
            let mut texts: Vec<(String, String)> = Vec::new();
            for (index, task) in told.programs().enumerate() {
                let files = told.written(files.as_deref(), index).into_iter();
                texts.extend(files.map(|file| (told.name(&file), read(&file))));
                texts.push(("standard output".into(), read(&task.output) + &read(&task.errors())));
            }
            let reported =
                texts.into_iter().filter_map(|(name, text)| Some((name, pattern.reported(&text)?)));
            tell_by_names(reported.collect(), run);
        }
    }
}

impl<'a> Told<'a> {
    fn programs(&self) -> impl Iterator<Item = &'a Task<'a>> {
        self.tasks.iter().filter(|task| !task.load)
    }

    /// The logs of this run, of one job or of all.
    fn written(&self, files: Option<&str>, index: usize) -> Vec<PathBuf> {
        let mut found = files.map(|files| named(files, self.spec, index)).unwrap_or_default();
        found.retain(|file| !self.earlier.has(file));
        found
    }

    /// A log's name below the working directory.
    fn name(&self, file: &Path) -> String {
        let directory = &self.spec.start.directory;
        let below = file.strip_prefix(directory).ok().or(file.file_name().map(Path::new));
        below.unwrap_or(file).to_string_lossy().into_owned()
    }
}

/// Each job has what it printed, and the logs that name it: by its number from 0, or by that of one of its processes.
fn tell_of_jobs(told: &Told, pattern: &Pattern, files: Option<&str>, run: &mut GroupRun) {
    let mut texts: Vec<String> =
        told.programs().map(|task| read(&task.output) + &read(&task.errors())).collect();
    let mut left_out = Vec::new();
    if texts.len() == 1 || files.is_some_and(|files| files.contains(INDEX)) {
        for (index, text) in texts.iter_mut().enumerate() {
            told.written(files, index).iter().for_each(|file| *text += &read(file));
        }
    } else {
        let jobs: Vec<u32> = run.members.iter().map(|member| member.pid).collect();
        for file in told.written(files, 0) {
            let (name, text) = (told.name(&file), read(&file));
            let job = numbers_in(&name).find_map(|number| job_of(number, &jobs, told.parents));
            match job.and_then(|job| texts.get_mut(job)) {
                Some(own) => *own += &text,
                None if pattern.reported(&text).is_some() => left_out.push(name),
                None => {}
            }
        }
    }
    for (member, text) in run.members.iter_mut().zip(&texts) {
        member.reported = pattern.reported(text);
    }
    remark_on(&left_out, "job", run);
}

/// The place of the job that a process belongs to.
fn job_of(process: u32, jobs: &[u32], parents: &HashMap<u32, u32>) -> Option<usize> {
    // Orphans are children of the job's own launcher.
    let is_of = |number: u32, job: &u32| number == *job || parents.get(job) == Some(&number);
    let line = std::iter::successors(Some(process), |number| parents.get(number).copied());
    line.take(MOST_GENERATIONS).find_map(|number| jobs.iter().position(|job| is_of(number, job)))
}

fn remark_on(left_out: &[String], member: &str, run: &mut GroupRun) {
    let others = match left_out.len() {
        0 => return,
        1 => String::new(),
        2 => " and another log".to_owned(),
        several => format!(" and {} other logs", several - 1),
    };
    run.remarks.push(format!(
        "the events in {}{others} were left out: no {member}'s process number is in the name",
        left_out[0]
    ));
}

/// A mark names the child by its number or its place; otherwise marks are in the spec of the members.
fn tell_by_marks(pipes: Vec<Marks>, run: &mut GroupRun) {
    let at = now();
    for (index, pipe) in pipes.into_iter().enumerate() {
        let (marks, _) = pipe.close(at);
        let reported = event_log::of_marks(&marks);
        if run.cell.mode == Mode::Jobs {
            let all: Vec<ReportedEvents> = reported.into_iter().map(|(_, reported)| reported).collect();
            if let Some(member) = run.members.get_mut(index) {
                member.reported = event_log::combined(&all);
            }
            continue;
        }
        for (place, (name, reported)) in reported.into_iter().enumerate() {
            let by_name = run
                .members
                .iter()
                .position(|member| numbers(member).any(|pid| pid.to_string() == name))
                .or_else(|| name.parse().ok().filter(|index| *index < run.members.len()));
            if let Some(member) = run.members.get_mut(by_name.unwrap_or(place)) {
                add(member, reported);
            }
        }
    }
}

/// A single text is that of all members; of several, each belongs to the member whose number is in its name. If none
/// is named and there is one for each, they are in the order of the members.
fn tell_by_names(reported: Vec<(String, ReportedEvents)>, run: &mut GroupRun) {
    if let [(_, reported)] = reported[..] {
        // Each has reported the same.
        let count = run.members.len().max(1) as u64;
        let each = ReportedEvents { events: reported.events / count, ..reported };
        run.members.iter_mut().for_each(|member| member.reported = Some(each));
        return;
    }
    let place_of = |name: &str| {
        run.members.iter().position(|member| numbers(member).any(|pid| numbers_in(name).any(|n| n == pid)))
    };
    let mut places: Vec<Option<usize>> = reported.iter().map(|(name, _)| place_of(name)).collect();
    if places.len() == run.members.len() && places.iter().all(Option::is_none) {
        places = (0..places.len()).map(Some).collect();
    }
    let mut left_out = Vec::new();
    for (place, (name, reported)) in places.into_iter().zip(reported) {
        match place.and_then(|place| run.members.get_mut(place)) {
            Some(member) => add(member, reported),
            None => left_out.push(name),
        }
    }
    remark_on(&left_out, run.cell.mode.singular(), run);
}

/// The numbers of all tasks that had a member's lane.
fn numbers(member: &Member) -> impl Iterator<Item = u32> + '_ {
    std::iter::once(member.pid).chain(member.others.iter().copied())
}

/// Adds the events reported by one more task of a member's lane.
fn add(member: &mut Member, reported: ReportedEvents) {
    member.reported = match member.reported {
        Some(before) => event_log::combined(&[before, reported]),
        None => Some(reported),
    };
}

/// The numbers in a name.
fn numbers_in(name: &str) -> impl Iterator<Item = u32> + '_ {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok())
}

/// The files that match a pattern of names, for one job or for all.
fn named(files: &str, spec: &GroupSpec, index: usize) -> Vec<PathBuf> {
    let directory = filled(spec, index).directory;
    let words =
        BTreeMap::from([("index", index.to_string()), ("processes", spec.cell.processes.to_string())]);
    // Only the user's part is a pattern.
    let directory = glob::Pattern::escape(&directory.to_string_lossy());
    let pattern = Path::new(&directory).join(placeholder::fill(files, &words));
    let mut found: Vec<PathBuf> =
        glob::glob(&pattern.to_string_lossy()).into_iter().flatten().flatten().collect();
    found.sort();
    found
}

fn read(path: &Path) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(MOST_LOG).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use widthwise_experiment::model::OutputCheck;
    use widthwise_experiment::scale::{Cell, Purpose, Work};

    use super::*;
    use crate::run::launch_spec::LaunchSpec;

    /// A folder in which a run of two members, of these numbers, has written logs.
    struct Scene {
        _folder: tempfile::TempDir,
        directory: PathBuf,
        mode: Mode,
        log: &'static str,
    }

    impl Scene {
        fn new(mode: Mode, log: &'static str) -> Scene {
            let folder = tempfile::tempdir().unwrap();
            // Brackets are no part of the pattern.
            let directory = folder.path().join("at [1]");
            std::fs::create_dir(&directory).unwrap();
            Scene { _folder: folder, directory, mode, log }
        }

        fn write(&self, name: &str, events: u64) {
            std::fs::write(self.directory.join(name), "event\n".repeat(events as usize)).unwrap();
        }

        /// The events of each member after a run that does this, and the remarks.
        fn run(&self, parents: &[(u32, u32)], during: impl Fn()) -> (Vec<Option<u64>>, Vec<String>) {
            let cell = Cell { variant: "a".into(), mode: self.mode, placement: "cores".into(), processes: 2 };
            let start = LaunchSpec::plain("/bin/true", &[], &self.directory);
            let pattern = Pattern::new("event").unwrap();
            let log = EventLog::Lines { pattern, files: Some(self.log.into()) };
            let spec = GroupSpec {
                cell: &cell,
                purpose: Purpose::Timed,
                start: &start,
                cpus: &[],
                allowed: &[],
                events: None,
                work: Work::OnceUnknown,
                padding: 0,
                load: None,
                check: &OutputCheck::default(),
                event_log: Some(&log),
            };
            let programs = if self.mode == Mode::Jobs { 2 } else { 1 };
            let task = |index: usize| {
                let output = self.directory.join(format!("stdout-{index}"));
                Task { start: &start, cpus: Vec::new(), output, padding: 0, load: false }
            };
            let tasks: Vec<Task> = (0..programs).map(task).collect();
            let earlier = Earlier::of(logs(&spec, programs));
            during();
            let text = format!(
                r#"{{"round":0,"position":0,"cell":{},"purpose":"timed","events":null,"ending":{{"ended":"done"}},
                    "failure":null,"elapsed_ns":0,"spread_ns":0,"cpu_ns":0,"before_fork":null,"members":[],"counters":{{}},
                    "memory":null,"output_digest":null,"remarks":[]}}"#,
                serde_json::to_string(&cell).unwrap()
            );
            let mut run: GroupRun = serde_json::from_str(&text).unwrap();
            for pid in [100, 200] {
                let text = format!(
                    r#"{{"pid":{pid},"cpu":0,"began_ns":0,"ended_ns":0,"cpu_ns":0,"exact":true,"max_rss":null,"reported":null}}"#
                );
                run.members.push(serde_json::from_str(&text).unwrap());
            }
            let parents = parents.iter().copied().collect();
            let told = Told { spec: &spec, tasks: &tasks, earlier: &earlier, parents: &parents };
            tell(&told, Vec::new(), &mut run);
            let events = |member: &Member| member.reported.map(|reported| reported.events);
            (run.members.iter().map(events).collect(), run.remarks)
        }
    }

    #[test]
    fn a_log_of_an_earlier_run_is_nobodys() {
        for mode in [Mode::Fork, Mode::Jobs] {
            let scene = Scene::new(mode, "*.log");
            scene.write("a_90.log", 7);
            scene.write("at_100.log", 5);
            let (events, remarks) = scene.run(&[], || {
                scene.write("at_100.log", 3);
                scene.write("at_200.log", 4);
            });
            assert_eq!((events, remarks), (vec![Some(3), Some(4)], Vec::new()));
        }
    }

    #[test]
    fn a_job_has_the_logs_of_its_processes_and_of_its_orphans() {
        let scene = Scene::new(Mode::Jobs, "*.log");
        // 11 is the launcher of the second job; 210 is a child of its child, 220 was left to the launcher.
        let parents = [(100, 10), (200, 11), (205, 200), (210, 205), (220, 11), (300, 1)];
        let (events, remarks) = scene.run(&parents, || {
            for (name, events) in [("a100.log", 1), ("a210.log", 2), ("a220.log", 4), ("a300.log", 8)] {
                scene.write(name, events);
            }
        });
        assert_eq!(events, [Some(1), Some(6)]);
        let remark = "the events in a300.log were left out: no job's process number is in the name";
        assert_eq!(remarks, [remark]);
    }

    #[test]
    fn a_pattern_with_a_jobs_number_names_its_own_logs() {
        let scene = Scene::new(Mode::Jobs, "job{index}.log");
        let (events, remarks) = scene.run(&[], || {
            scene.write("job0.log", 1);
            scene.write("job1.log", 2);
        });
        assert_eq!((events, remarks), (vec![Some(1), Some(2)], Vec::new()));
    }

    #[test]
    fn logs_without_numbers_of_processes_are_in_the_order_of_the_children_if_there_is_one_for_each() {
        let scene = Scene::new(Mode::Fork, "*.log");
        let two = || {
            scene.write("a.log", 1);
            scene.write("b.log", 2);
        };
        assert_eq!(scene.run(&[], two), (vec![Some(1), Some(2)], Vec::new()));
        let (events, remarks) = scene.run(&[], || {
            two();
            scene.write("at_200.log", 4);
        });
        assert_eq!(events, [None, Some(4)]);
        assert!(remarks[0].starts_with("the events in a.log and another log were left out"), "{remarks:?}");
    }

    #[test]
    fn a_number_in_a_name_is_not_a_part_of_another() {
        assert_eq!(numbers_in("redirectout_15125_0.log").collect::<Vec<_>>(), [15125, 0]);
    }
}
