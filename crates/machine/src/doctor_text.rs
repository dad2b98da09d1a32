//! The diagnosis as lines of text: a word, a state, and a detail. No colours: each line has a mark instead.

use std::collections::{BTreeMap, BTreeSet};

use crate::abi::{Abi, ABIS};
use crate::ability::{Ability, Language, Technique};
use crate::doctor::{quietness, Diagnosis, Missing, Quietness};
use crate::topology::{CoreKind, Source, Topology};

/// Whether a line is good news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It works.
    Good,
    /// It works in part, or not at all.
    Lacking,
    /// Neither: a fact.
    Info,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What it is about: `x32`, `counters`, `missing`.
    pub word: String,
    /// Its state in a word or two; for what is missing, what it is.
    pub state: String,
    /// Everything else; for what is missing, the command that fixes it.
    pub detail: String,
    /// Whether it is good news.
    pub mark: Mark,
}

/// The diagnosis as text.
pub fn render(diagnosis: &Diagnosis) -> String {
    let lines = lines(diagnosis);
    let widths = Widths::of(&lines);
    lines
        .iter()
        .map(|line| format!("  {}{}{}\n", widths.word(line), widths.state(line), line.detail))
        .collect()
}

/// The widths of the first two columns, for printing with colours.
#[derive(Debug, Clone, Copy)]
pub struct Widths {
    word: usize,
    state: usize,
}

impl Widths {
    /// The widths that hold all lines. A very long state moves only its own detail to the right.
    pub fn of(lines: &[Line]) -> Widths {
        let widest = |text: fn(&Line) -> &str| lines.iter().map(|line| text(line).chars().count()).max();
        Widths {
            word: widest(|line| &line.word).unwrap_or(0) + 2,
            state: widest(|line| &line.state).unwrap_or(0).min(28) + 2,
        }
    }

    /// The first column, padded.
    pub fn word(&self, line: &Line) -> String {
        pad(&line.word, self.word)
    }

    /// The second column, padded if anything follows.
    pub fn state(&self, line: &Line) -> String {
        if line.detail.is_empty() {
            line.state.clone()
        } else {
            pad(&line.state, self.state)
        }
    }
}

fn pad(text: &str, width: usize) -> String {
    let blank = width.saturating_sub(text.chars().count()).max(if text.is_empty() { width } else { 2 });
    format!("{text}{}", " ".repeat(blank))
}

/// The diagnosis, line by line.
pub fn lines(diagnosis: &Diagnosis) -> Vec<Line> {
    let mut lines = vec![machine(diagnosis), compilers(diagnosis)];
    lines.extend(ABIS.iter().map(|abi| ability(diagnosis, abi)));
    lines.extend([Technique::Lto, Technique::Pgo].into_iter().filter_map(|t| techniques(diagnosis, t)));
    lines.extend([allocators(diagnosis), counters(diagnosis), kernels(diagnosis)]);
    lines.extend(processors(diagnosis));
    lines.extend([
        topology(&diagnosis.machine.topology, diagnosis.measured_cpu),
        accounting(diagnosis),
        settings(diagnosis),
        noise(diagnosis),
    ]);
    lines.extend(missing(&diagnosis.missing));
    for line in &mut lines {
        for text in [&mut line.word, &mut line.state, &mut line.detail] {
            *text = printable(text);
        }
    }
    lines
}

fn line(word: &str, state: impl Into<String>, detail: impl Into<String>, mark: Mark) -> Line {
    Line { word: word.to_string(), state: state.into(), detail: detail.into(), mark }
}

fn good(is_good: bool) -> Mark {
    if is_good {
        Mark::Good
    } else {
        Mark::Lacking
    }
}

/// Names from firmware and messages from compilers must not move the cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn machine(diagnosis: &Diagnosis) -> Line {
    let settings = &diagnosis.machine.settings;
    let state = if settings.hypervisor { "virtual machine" } else { "no hypervisor" };
    let memory = settings.memory_bytes.map(|bytes| format!("{} of memory", binary(bytes)));
    let swap = settings.swap_bytes.map(|bytes| match bytes {
        0 => "no swap".to_string(),
        bytes => format!("{} of swap", binary(bytes)),
    });
    let kernel = settings.kernel.as_ref().map(|release| format!("Linux {release}"));
    let facts = [settings.cpu_model.clone(), memory, swap, kernel, settings.distribution.clone()];
    line("machine", state, join(facts.into_iter().flatten(), ", "), Mark::Info)
}

fn compilers(diagnosis: &Diagnosis) -> Line {
    let found = &diagnosis.machine.compilers;
    if found.is_empty() {
        return line("compilers", "none", "neither gcc nor clang is on the PATH", Mark::Lacking);
    }
    let mut sorted: Vec<_> = found.values().collect();
    sorted.sort_by_key(|compiler| (!compiler.default, compiler.family, compiler.name.clone()));
    let names = sorted.into_iter().map(|compiler| {
        let default = if compiler.default { " (default)" } else { "" };
        format!("{} {}{default}", compiler.name, compiler.version)
    });
    line("compilers", format!("{} found", found.len()), join(names, ", "), Mark::Info)
}

fn ability(diagnosis: &Diagnosis, abi: Abi) -> Line {
    let tried: Vec<&Ability> = diagnosis.abilities.iter().filter(|a| a.abi == abi.name).collect();
    let builds = tried.iter().any(|ability| ability.builds.is_ok());
    let runs = tried.iter().any(|ability| ability.runs.is_ok());
    let state = match (builds, runs) {
        (true, true) => "builds, runs",
        (true, false) => "builds, does not start",
        (false, _) => "does not build",
    };
    let mut details: Vec<String> = Vec::new();
    let able = able_compilers(&tried);
    if tried.is_empty() {
        details.push("there is no compiler".into());
    } else if !able.is_empty() {
        details.push(able.join(", "));
    }
    let by = |ability: &Ability| format!("{} {}: ", ability.compiler, ability.language);
    if let Some((ability, unavailable)) = tried.iter().find_map(|a| Some((a, a.builds.as_ref().err()?))) {
        let who = if builds { by(ability) } else { String::new() };
        details.push(format!("{who}{}", unavailable.reason));
    }
    let built = || tried.iter().filter(|ability| ability.builds.is_ok());
    if let Some((ability, unavailable)) = built().find_map(|a| Some((a, a.runs.as_ref().err()?))) {
        let who = if runs { by(ability) } else { String::new() };
        details.push(format!("{who}{}", unavailable.reason));
    }
    let complete = tried.iter().all(|ability| ability.builds.is_ok() && ability.runs.is_ok());
    line(abi.name, state, details.join("; "), good(runs && complete))
}

/// `gcc-12, clang-14 (C only)`.
fn able_compilers(tried: &[&Ability]) -> Vec<String> {
    let mut languages: BTreeMap<&str, Vec<Language>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for ability in tried.iter().filter(|ability| ability.builds.is_ok()) {
        if !order.contains(&ability.compiler.as_str()) {
            order.push(&ability.compiler);
        }
        languages.entry(&ability.compiler).or_default().push(ability.language);
    }
    let spell = |name: &&str| match languages.get(name).map(Vec::as_slice) {
        Some([only]) => format!("{name} ({only} only)"),
        _ => name.to_string(),
    };
    order.iter().map(spell).collect()
}

fn techniques(diagnosis: &Diagnosis, technique: Technique) -> Option<Line> {
    let tried: Vec<_> = diagnosis.techniques.iter().filter(|t| t.technique == technique).collect();
    let able = tried.iter().filter(|t| t.builds.is_ok()).count();
    let state = match able {
        0 => "does not build",
        _ if able == tried.len() => "builds",
        _ => "builds in part",
    };
    let mut by_compiler: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for ability in tried.iter().filter(|t| t.builds.is_ok()) {
        by_compiler.entry(&ability.compiler).or_default().push(&ability.abi);
    }
    let whole = tried.len() == able;
    let detail = if whole {
        join(by_compiler.keys().map(|name| name.to_string()), ", ")
    } else {
        join(by_compiler.iter().map(|(name, abis)| format!("{name} for {}", abis.join(", "))), "; ")
    };
    (!tried.is_empty()).then(|| line(&technique.to_string(), state, detail, good(whole && able > 0)))
}

fn allocators(diagnosis: &Diagnosis) -> Line {
    let found = || diagnosis.allocators.iter().filter(|allocator| allocator.file.is_ok());
    let names: BTreeSet<&str> = found().map(|allocator| allocator.name.as_str()).collect();
    if names.is_empty() {
        return line("allocators", "glibc only", "", Mark::Lacking);
    }
    let by_abi = ABIS.iter().filter_map(|abi| {
        let names: Vec<&str> = found().filter(|a| a.abi == abi.name).map(|a| a.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{} for {}", names.join(", "), abi.name))
    });
    // An allocator without a package for an ABI is not missing.
    let wanting =
        diagnosis.allocators.iter().any(|a| matches!(&a.file, Err(unavailable) if unavailable.fix.is_some()));
    line("allocators", format!("glibc and {} more", names.len()), join(by_abi, "; "), good(!wanting))
}

fn counters(diagnosis: &Diagnosis) -> Line {
    let (hardware, software): (Vec<_>, Vec<_>) = diagnosis.counters.iter().partition(|c| c.hardware);
    let able = hardware.iter().filter(|counter| counter.counts.is_ok()).count();
    let state = match able {
        0 => "not here",
        _ if able == hardware.len() => "here",
        _ => "here in part",
    };
    let mut details: Vec<String> = Vec::new();
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for counter in &hardware {
        if let Err(unavailable) = &counter.counts {
            reasons.entry(&unavailable.reason).or_default().push(&counter.name);
        }
    }
    for (reason, names) in reasons {
        details.push(if able == 0 { reason.to_string() } else { format!("{}: {reason}", names.join(", ")) });
    }
    let counted: Vec<&str> = software.iter().filter(|c| c.counts.is_ok()).map(|c| c.name.as_str()).collect();
    if !counted.is_empty() {
        details.push(format!("the kernel counts {}", counted.join(", ")));
    }
    if let Ok(version) = &diagnosis.valgrind.version {
        let runs = diagnosis.valgrind.abis.iter().filter(|entry| entry.runs.is_ok());
        let abis: Vec<&str> = runs.map(|entry| entry.abi.as_str()).collect();
        let whose = if abis.is_empty() { "no ABI".to_string() } else { abis.join(", ") };
        details.push(format!("valgrind {version} emulates them for {whose}"));
    }
    line("counters", state, details.join("; "), good(able > 0 && able == hardware.len()))
}

fn kernels(diagnosis: &Diagnosis) -> Line {
    match &diagnosis.qemu.version {
        Ok(version) => {
            let kvm = match &diagnosis.qemu.kvm {
                Ok(()) => "with --kvm programs are timed there, too",
                Err(unavailable) => &format!("nothing is timed there: {}", unavailable.reason),
            };
            let booted = "other kernels can be booted: instructions are counted";
            let name = if diagnosis.qemu.kvm.is_ok() { "TCG, KVM" } else { "TCG" };
            line("kernels", format!("QEMU {version}, {name}"), format!("{booted}; {kvm}"), Mark::Good)
        }
        Err(unavailable) => line("kernels", "this one only", unavailable.reason.clone(), Mark::Lacking),
    }
}

/// ABIs of other processors: those that build and run, or none.
fn processors(diagnosis: &Diagnosis) -> Option<Line> {
    let first = diagnosis.foreign.first()?;
    let running = diagnosis.foreign.iter().filter(|one| one.runs.is_ok());
    let names: Vec<&str> = running.map(|one| one.abi.as_str()).collect();
    Some(match &first.runs {
        Err(unavailable) if names.is_empty() => {
            line("processors", "this one only", unavailable.reason.clone(), Mark::Lacking)
        }
        _ => line(
            "processors",
            names.join(", "),
            "built and run under QEMU: instructions are counted",
            Mark::Good,
        ),
    })
}

fn topology(topology: &Topology, measured: Option<u32>) -> Line {
    let cores = topology.cores.len();
    let smt = match topology.threads_per_core() {
        0 | 1 => "no SMT".to_string(),
        threads => format!("SMT {threads}"),
    };
    let mut details: Vec<String> = Vec::new();
    if topology.packages > 1 {
        details.push(format!("{} packages", topology.packages));
    }
    if topology.is_hybrid() {
        let fast = topology.cores.iter().filter(|core| core.kind == CoreKind::Performance).count();
        details.push(format!("{fast} fast cores, {} slow ones", cores - fast));
    }
    let last = topology.last_level_caches();
    if let Some(cache) = last.first() {
        let sharing = if last.len() > 1 || cores == 1 { "each group of cores has" } else { "cores share" };
        let sharing = if last.len() >= cores { "each core has" } else { sharing };
        details.push(format!("{sharing} an L{} of {}", cache.level, binary(cache.size)));
    }
    if topology.nodes.len() > 1 {
        details.push(format!("{} memory nodes", topology.nodes.len()));
    }
    let set = |name: &str, cpus| format!("{name} CPUs {}", crate::cpulist::list(cpus));
    if !topology.offline.is_empty() {
        details.push(set("offline:", &topology.offline));
    }
    if topology.allowed != topology.online() {
        details.push(set("this process may use", &topology.allowed));
    }
    if let Some(cpu) = measured {
        details.push(format!("measures on CPU {cpu}"));
    }
    if topology.source == Source::Sysfs {
        details.push("read from /sys".into());
    }
    let plural = if cores == 1 { "core" } else { "cores" };
    line("topology", format!("{cores} {plural}, {smt}"), details.join("; "), Mark::Info)
}

/// How processes are accounted for: groups, and accounts at exit.
fn accounting(diagnosis: &Diagnosis) -> Line {
    let cgroup = &diagnosis.cgroup;
    let taskstats = &diagnosis.machine.settings.taskstats;
    let (state, reason) = match (&cgroup.groups, &cgroup.memory) {
        (Err(unavailable), _) => ("no control groups", Some(&unavailable.reason)),
        (Ok(()), Err(unavailable)) => ("control groups in part", Some(&unavailable.reason)),
        (Ok(()), Ok(())) => ("control groups", None),
    };
    let taskstats_words = match taskstats {
        Ok(()) => "taskstats available".to_string(),
        Err(unavailable) => unavailable.reason.clone(),
    };
    let cpus = cgroup.cpu_limit.map(|limit| format!("at most {limit} CPUs"));
    let memory = cgroup.memory_limit.map(|limit| format!("at most {} of memory", binary(limit)));
    let details = reason.cloned().into_iter().chain([taskstats_words]).chain(cpus).chain(memory);
    line("accounting", state, join(details, "; "), good(reason.is_none() && taskstats.is_ok()))
}

fn settings(diagnosis: &Diagnosis) -> Line {
    let settings = &diagnosis.machine.settings;
    let switch = |on: bool| if on { "on" } else { "off" };
    let thp = settings.thp.as_ref().map(|mode| match &settings.thp_defrag {
        Some(defrag) => format!("THP {mode} (defrag {defrag})"),
        None => format!("THP {mode}"),
    });
    let aslr = settings.aslr.map(|level| match level {
        0 => "ASLR off".to_string(),
        1 => "ASLR on, without the heap".to_string(),
        _ => "ASLR on".to_string(),
    });
    let governor = settings.governor.as_ref().map(|name| format!("governor {name}"));
    let turbo = settings.turbo.map(|on| format!("turbo {}", switch(on)));
    let smt = settings.smt.as_ref().filter(|smt| matches!(smt.as_str(), "on" | "off" | "forceoff"));
    let smt = smt.map(|smt| format!("SMT {smt}"));
    let state = match settings.governor.as_deref() {
        None => "frequency not ours",
        Some("performance") => "steady frequency",
        Some(_) => "frequency follows load",
    };
    let mark = if state == "frequency follows load" { Mark::Lacking } else { Mark::Info };
    line("settings", state, join([thp, aslr, governor, turbo, smt].into_iter().flatten(), ", "), mark)
}

fn noise(diagnosis: &Diagnosis) -> Line {
    let noise = &diagnosis.noise;
    let quietness = quietness(noise);
    let state = match quietness {
        Quietness::Quiet => "quiet",
        Quietness::Fair => "fair",
        Quietness::Noisy => "noisy",
    };
    let floor = diagnosis.noise_floor.as_ref().map(|floor| {
        format!("A/A floor {} {} ({:.0} s test)", percent(floor.share), floor.metric, floor.seconds)
    });
    let facts = [
        floor.or(diagnosis.no_noise_floor.as_ref().map(|reason| format!("no A/A floor ({reason})"))),
        Some(format!("steal {}", percent(noise.steal))),
        Some(format!("other tasks {}", percent(noise.others))),
        noise.pressure.map(|share| format!("tasks waiting {}", percent(share))),
        diagnosis.machine.settings.load.map(|load| format!("load {load:.2}")),
        (noise.throttled > 0).then(|| format!("throttled {} times", noise.throttled)),
    ];
    line("noise", state, join(facts.into_iter().flatten(), ", "), good(quietness != Quietness::Noisy))
}

/// What is missing, and what fixes it; then everything that one apt-get can fix, at once. Entries without a fix are in
/// the lines above.
fn missing(all: &[Missing]) -> Vec<Line> {
    let entry =
        |one: &Missing| Some(line("missing", one.what.clone(), one.unavailable.fix.clone()?, Mark::Lacking));
    let mut lines: Vec<Line> = all.iter().filter_map(entry).collect();
    const INSTALL: &str = "apt-get install ";
    let installs: Vec<&str> =
        all.iter().filter_map(|one| one.unavailable.fix.as_deref()?.strip_prefix(INSTALL)).collect();
    let simple = |fix: &&&str| !fix.contains(['&', ':']);
    let mut names: Vec<&str> =
        installs.iter().filter(simple).flat_map(|fix| fix.split_ascii_whitespace()).collect();
    names.sort_unstable();
    names.dedup();
    if installs.iter().filter(simple).count() > 1 {
        lines.push(line("", "packages at once", format!("{INSTALL}{}", names.join(" ")), Mark::Info));
    }
    lines
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Sizes of caches and memory come in powers of two, and are shown in them.
fn binary(bytes: u64) -> String {
    const STEPS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match STEPS.into_iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => {
            let value = bytes as f64 / size as f64;
            let text = if value < 100.0 && value.fract() > 0.05 {
                format!("{value:.1}")
            } else {
                format!("{value:.0}")
            };
            format!("{text} {unit}")
        }
        None => format!("{bytes} B"),
    }
}

fn join(parts: impl IntoIterator<Item = String>, with: &str) -> String {
    parts.into_iter().collect::<Vec<_>>().join(with)
}

#[cfg(test)]
mod tests;
