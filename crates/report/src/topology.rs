//! The machine's topology with the busy CPUs marked: as text for a terminal, and as SVG for a page.
//!
//! This crate does not inspect the machine: the caller fills these plain structures.

use std::collections::BTreeSet;

use maud::{html, Markup};
use unicode_width::UnicodeWidthStr;

use crate::sanitize;

/// The content of the drawing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Machine {
    /// Packages, or memory nodes where a package has several.
    pub packages: Vec<Package>,
    /// CPUs that are switched off, as a list; empty if there are none.
    pub offline: String,
}

/// A package or a memory node: one line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Such as `package 0`.
    pub name: String,
    /// Its last-level caches.
    pub groups: Vec<Group>,
}

/// Cores under one last-level cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The cache, such as `L3`; empty if none is known.
    pub name: String,
    /// Its modules; a core that shares no lower cache is a module by itself.
    pub modules: Vec<Module>,
}

/// Cores that share a cache below the last level, or one core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// The cache they share, such as `L2`; absent for a core by itself.
    pub shares: Option<String>,
    /// The kind of its cores, such as `E`; absent if all are alike.
    pub kind: Option<String>,
    /// Each core's CPUs.
    pub cores: Vec<Vec<Cpu>>,
}

/// One CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub number: u32,
    /// What runs there, in one or two characters such as `*`; absent if it is idle.
    pub busy: Option<String>,
    /// Whether it may be used at all.
    pub allowed: bool,
}

impl Cpu {
    fn mark(&self) -> String {
        match &self.busy {
            Some(label) => sanitize::line(label),
            None if !self.allowed => "-".to_owned(),
            None => String::new(),
        }
    }
}

impl Machine {
    fn modules(&self) -> impl Iterator<Item = &Module> {
        self.packages.iter().flat_map(|package| &package.groups).flat_map(|group| &group.modules)
    }

    fn cpus(&self) -> impl Iterator<Item = &Cpu> {
        self.modules().flat_map(|module| &module.cores).flatten()
    }
}

/// The topology as text: one line for each package, broken between cores at `width` columns, and a legend.
///
/// ```text
/// package 0  L3 [ (0* 4 ) (1* 5 ) (2  6 ) (3  7 ) ]
/// ```
pub fn text(machine: &Machine, width: usize) -> String {
    let digits = machine.cpus().map(|cpu| cpu.number.to_string().len()).max().unwrap_or(1);
    let marks = machine.cpus().map(|cpu| cpu.mark().width()).max().unwrap_or(0);
    let cell = |cpu: &Cpu| {
        let mark = cpu.mark();
        format!("{:>digits$}{mark}{}", cpu.number, " ".repeat(marks - mark.width()))
    };
    let names = machine.packages.iter().map(|package| sanitize::line(&package.name).width());
    let head = names.max().unwrap_or(0);
    let mut shown = String::new();
    for package in &machine.packages {
        let name = sanitize::line(&package.name);
        let indent = " ".repeat(head - name.width());
        let words = package.groups.iter().flat_map(|group| words(group, &cell));
        let mut line = format!("{name}{indent} ");
        let mut empty = true;
        for word in words {
            if !empty && line.width() + 1 + word.width() > width {
                shown.push_str(line.trim_end());
                shown.push('\n');
                line = " ".repeat(head + 5);
            }
            line.push(' ');
            line.push_str(&word);
            empty = false;
        }
        shown.push_str(line.trim_end());
        shown.push('\n');
    }
    if !machine.offline.is_empty() {
        shown.push_str(&format!("offline: {}\n", sanitize::line(&machine.offline)));
    }
    shown.push_str(&legend(machine));
    shown.push('\n');
    shown
}

/// The words of a group, which must not be broken.
fn words(group: &Group, cell: &impl Fn(&Cpu) -> String) -> Vec<String> {
    let mut words = vec![format!("{} [", sanitize::line(&group.name)).trim_start().to_owned()];
    let mut kind = None;
    for module in &group.modules {
        if module.kind != kind {
            words.extend(module.kind.as_deref().map(sanitize::line));
            kind = module.kind.clone();
        }
        let cores: Vec<String> = module
            .cores
            .iter()
            .map(|core| format!("({})", core.iter().map(cell).collect::<Vec<String>>().join(" ")))
            .collect();
        words.push(match module.shares {
            Some(_) => format!("{{{}}}", cores.join(" ")),
            None => cores.join(" "),
        });
    }
    words.push("]".to_owned());
    words
}

fn legend(machine: &Machine) -> String {
    let mut words = Vec::new();
    let labels: BTreeSet<&str> = machine.cpus().filter_map(|cpu| cpu.busy.as_deref()).collect();
    if labels.contains("*") {
        words.push("* a process".to_owned());
    }
    for label in labels.iter().filter(|label| **label != "*") {
        match label.strip_prefix('*') {
            Some(count) if count.bytes().all(|digit| digit.is_ascii_digit()) => {
                words.push(format!("{label} {count} processes"));
            }
            _ => words.push(sanitize::line(label)),
        }
    }
    if machine.cpus().any(|cpu| !cpu.allowed) {
        words.push("- not ours to use".to_owned());
    }
    words.push(if machine.modules().flat_map(|module| &module.cores).any(|core| core.len() > 1) {
        "( ) a core with its SMT siblings".to_owned()
    } else {
        "( ) a core".to_owned()
    });
    let shared: BTreeSet<&str> = machine.modules().filter_map(|module| module.shares.as_deref()).collect();
    words.extend(shared.iter().map(|cache| format!("{{ }} cores that share an {}", sanitize::line(cache))));
    let kinds: BTreeSet<&str> = machine.modules().filter_map(|module| module.kind.as_deref()).collect();
    words.extend(kinds.iter().map(|kind| match *kind {
        "P" => "P performance".to_owned(),
        "E" => "E efficiency".to_owned(),
        other => sanitize::line(other),
    }));
    words.join("   ")
}

/// A drawing and its size.
struct Block {
    width: u32,
    height: u32,
    drawn: Markup,
}

/// The appearance of a box. Colours come from the page's style sheet, which supports light, dark and print.
struct Frame<'a> {
    style: &'a str,
    /// The label above the content; no line for it if empty.
    name: &'a str,
    pad: u32,
    gap: u32,
}

const CELL: (u32, u32) = (34, 20);
/// Wider rows of boxes wrap to the next line.
const WIDEST: u32 = 820;
const FONT: &str = "font: 11px var(--sans); font-variant-numeric: tabular-nums";

/// The topology as one SVG element, for a page with the report's style sheet.
pub fn svg(machine: &Machine) -> Markup {
    let packages = machine.packages.iter().map(|package| {
        let groups = package.groups.iter().map(group_box).collect();
        framed(groups, &Frame { style: "fill: none; stroke: none", name: &package.name, pad: 4, gap: 8 })
    });
    let packages: Vec<Block> = packages.collect();
    let all = framed(packages, &Frame { style: "fill: none; stroke: none", name: "", pad: 0, gap: 4 });
    let busy = machine.cpus().filter(|cpu| cpu.busy.is_some()).count();
    let label = format!("The machine's CPUs: {busy} of {} are busy", machine.cpus().count());
    html! {
        svg role="img" aria-label=(label) viewBox={ "0 0 " (all.width) " " (all.height) }
            style={ "max-width: " (all.width) "px" } { (all.drawn) }
    }
}

fn group_box(group: &Group) -> Block {
    let modules = group.modules.iter().map(module_box).collect();
    let style = "fill: var(--raised); stroke: var(--rule)";
    framed(modules, &Frame { style, name: &group.name, pad: 7, gap: 6 })
}

fn module_box(module: &Module) -> Block {
    let cores = module.cores.iter().map(|core| {
        let style = "fill: var(--paper); stroke: var(--quiet)";
        framed(core.iter().map(cell_box).collect(), &Frame { style, name: "", pad: 3, gap: 2 })
    });
    let cores: Vec<Block> = cores.collect();
    let name: Vec<&str> = [module.kind.as_deref(), module.shares.as_deref()].into_iter().flatten().collect();
    let style = match module.shares {
        Some(_) => "fill: none; stroke: var(--quiet); stroke-dasharray: 3 3",
        None => "fill: none; stroke: none",
    };
    let pad = if module.shares.is_some() { 5 } else { 0 };
    framed(cores, &Frame { style, name: &name.join(" "), pad, gap: 4 })
}

fn cell_box(cpu: &Cpu) -> Block {
    let (fill, ink) = match (&cpu.busy, cpu.allowed) {
        (Some(_), _) => ("fill: var(--lower)", "var(--paper)"),
        (None, true) => ("fill: var(--idle)", "var(--quiet)"),
        (None, false) => ("fill: none; stroke: var(--rule); stroke-dasharray: 2 2", "var(--quiet)"),
    };
    let (width, height) = CELL;
    let drawn = html! {
        rect width=(width) height=(height) rx="2" style=(fill) {}
        text x=(width / 2) y="14" class="middle" style={ (FONT) "; fill: " (ink) } {
            (cpu.number) (cpu.mark())
        }
    };
    Block { width, height, drawn }
}

/// The blocks in sequence, in lines no wider than [`WIDEST`], in a box.
fn framed(blocks: Vec<Block>, frame: &Frame) -> Block {
    let top = frame.pad + if frame.name.is_empty() { 0 } else { 15 };
    let (mut x, mut y, mut line, mut widest) = (frame.pad, top, 0, 0);
    let mut placed = Vec::new();
    for block in blocks {
        if x > frame.pad && x + block.width + frame.pad > WIDEST {
            (x, y, line) = (frame.pad, y + line + frame.gap, 0);
        }
        placed.push((x, y, block.drawn));
        widest = widest.max(x + block.width);
        x += block.width + frame.gap;
        line = line.max(block.height);
    }
    // Eight units per letter suffice for the font's widest.
    let name = sanitize::line(frame.name);
    let width = widest.max(8 * name.width() as u32) + frame.pad;
    let height = y + line + frame.pad;
    let drawn = html! {
        rect width=(width) height=(height) rx="4" style=(frame.style) {}
        @if !name.is_empty() {
            text x=(frame.pad) y=(frame.pad + 10) style={ (FONT) "; fill: var(--quiet)" } { (name) }
        }
        @for (x, y, inside) in &placed {
            g transform={ "translate(" (x) " " (y) ")" } { (inside) }
        }
    };
    Block { width, height, drawn }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(number: u32, busy: &str) -> Cpu {
        Cpu { number, busy: (!busy.is_empty()).then(|| busy.to_owned()), allowed: true }
    }

    fn alone(cpus: &[(u32, &str)]) -> Module {
        Module { shares: None, kind: None, cores: vec![cpus.iter().map(|(n, busy)| cpu(*n, busy)).collect()] }
    }

    fn one_package(modules: Vec<Module>) -> Machine {
        let groups = vec![Group { name: "L3".into(), modules }];
        Machine { packages: vec![Package { name: "package 0".into(), groups }], offline: String::new() }
    }

    fn sandybridge() -> Machine {
        one_package((0..4).map(|n| alone(&[(n, if n < 2 { "*" } else { "" }), (n + 4, "")])).collect())
    }

    fn bulldozer() -> Machine {
        one_package(
            (0..4)
                .map(|n| Module {
                    shares: Some("L2".into()),
                    kind: None,
                    cores: vec![vec![cpu(2 * n, "*")], vec![cpu(2 * n + 1, if n == 0 { "*2" } else { "" })]],
                })
                .collect(),
        )
    }

    #[test]
    fn siblings_are_in_one_core_and_busy_ones_are_marked() {
        assert_eq!(
            text(&sandybridge(), 100),
            "package 0  L3 [ (0* 4 ) (1* 5 ) (2  6 ) (3  7 ) ]\n* a process   ( ) a core with its SMT siblings\n"
        );
    }

    #[test]
    fn modules_and_cpus_with_several_processes_are_shown() {
        assert_eq!(
            text(&bulldozer(), 100),
            "package 0  L3 [ {(0* ) (1*2)} {(2* ) (3  )} {(4* ) (5  )} {(6* ) (7  )} ]\n\
             * a process   *2 2 processes   ( ) a core   { } cores that share an L2\n"
        );
    }

    #[test]
    fn core_kinds_unavailable_and_offline_cpus_are_shown() {
        let mut machine = one_package(vec![alone(&[(0, "*"), (1, "")]), alone(&[(12, "")])]);
        machine.offline = "13".into();
        let modules = &mut machine.packages[0].groups[0].modules;
        (modules[0].kind, modules[1].kind) = (Some("P".into()), Some("E".into()));
        modules[1].cores[0][0].allowed = false;
        assert_eq!(
            text(&machine, 100),
            "package 0  L3 [ P ( 0*  1 ) E (12-) ]\noffline: 13\n\
             * a process   - not ours to use   ( ) a core with its SMT siblings   E efficiency   P performance\n"
        );
    }

    #[test]
    fn a_large_machine_wraps_between_cores_and_has_every_cpu() {
        let machine = one_package((0..64).map(|n| alone(&[(n, "*"), (n + 64, "")])).collect());
        let shown = text(&machine, 80);
        assert!(shown.lines().take(8).all(|line| line.width() <= 80), "{shown}");
        assert_eq!(shown.matches('(').count(), 64 + 1);
        assert!(shown.lines().count() > 8 && shown.contains("( 63* 127 )"), "{shown}");
    }

    #[test]
    fn the_drawing_has_every_cpu_and_marks_the_busy_ones() {
        let drawn = svg(&bulldozer()).into_string();
        assert_eq!(drawn.matches("var(--lower)").count(), 5);
        assert_eq!(drawn.matches("var(--idle)").count(), 3);
        assert_eq!(drawn.matches("stroke-dasharray").count(), 4);
        assert!(drawn.contains(">1*2</text>") && drawn.contains("5 of 8 are busy"), "{drawn}");
        // Every colour comes from the style sheet.
        let known = include_str!("html/style.css");
        for name in drawn.split("var(").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(known.contains(&format!("{name}:")), "{name}");
        }
    }

    #[test]
    fn untrusted_names_stay_text() {
        let mut machine = sandybridge();
        machine.packages[0].name = "<b>\u{1b}[31m".into();
        assert!(text(&machine, 80).starts_with("<b>\\x1b[31m"));
        let drawn = svg(&machine).into_string();
        assert!(drawn.contains("&lt;b&gt;\\x1b") && !drawn.contains("<b>"), "{drawn}");
    }

    #[test]
    fn an_empty_machine_is_drawn() {
        assert_eq!(text(&Machine::default(), 10), "( ) a core\n");
        assert!(svg(&Machine::default()).into_string().contains("0 of 0"));
    }
}
