//! A flame graph of the memory requested by a heap's stacks, and the difference of two (a differential flame
//! graph).
//!
//! After B. Gregg, "The Flame Graph", CACM 59(6), 2016, with the outermost call at the top. In a difference
//! the width of a stack is the larger of the two amounts, so that stacks of only one side are visible too.
//! The colour is the difference.
//!
//! The drawing is plain SVG with text, readable without its script; positions are shares of the width, so
//! that it fits any screen. The script zooms, searches and handles keys. Nothing is loaded, and the page's
//! Content-Security-Policy allows this script only.

mod label;
mod tree;

use std::fmt::Write;

use maud::{html, Markup, PreEscaped};
use widthwise_anatomy::heap::site::{self, Pair};
use widthwise_anatomy::heap::{Column, Profile};
use widthwise_experiment::units::{Quantity, Unit};

use self::tree::{Kind, Node, Tree};
use super::document;
use crate::sanitize;

/// The figure's style, in addition to the report's: for the `style` of a page with a figure.
pub const STYLE: &str = include_str!("flame/flame.css");
/// The figure's script. A page needs it once for any number of figures; without it they are static.
pub const SCRIPT: &str = include_str!("flame/flame.js");

/// A row's height in CSS pixels.
const ROW: usize = 20;
/// The most boxes to draw; more make a page of many megabytes that browsers handle badly.
const MOST_BOXES: usize = 4000;
/// The most boxes of a figure among others.
pub const EMBEDDED_BOXES: usize = 1000;
/// Boxes narrower than this fraction of the whole are left out: on a wide screen they are half a pixel.
const FINEST: u64 = 4000;
/// Rows of the table below the figure.
const MOST_LINES: usize = 20;
/// Object files with a tint of their own.
const TINTS: usize = 4;

/// A profile and its name, such as a variant's.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Its name.
    pub name: &'a str,
    /// The profile.
    pub profile: &'a Profile,
    /// The file name of the program itself; empty where it is unknown.
    pub program: &'a str,
}

/// The content of a figure.
#[derive(Debug, Clone, Copy)]
pub struct Flame<'a> {
    /// The title above it.
    pub title: &'a str,
    /// The column of the profiles to draw.
    pub column: Column,
    /// The profile; of two, the one that the other is compared with.
    pub first: Side<'a>,
    /// The other profile.
    pub second: Option<Side<'a>>,
    /// Functions that only pass requests on, as in [`site::sites`].
    pub through: &'a [String],
}

/// A page with one figure.
pub fn page(flame: &Flame) -> String {
    let title = sanitize::line(flame.title);
    let body = html! {
        body class="wide" {
            main { h1 { (title) } (PreEscaped(figure(flame))) }
            script { (PreEscaped(SCRIPT)) }
        }
    };
    document::document(&title, &policy(), &[STYLE], &body).into_string()
}

/// The Content-Security-Policy of a page with figures: the report's, plus this script's hash.
pub fn policy() -> String {
    document::policy(&[SCRIPT])
}

/// [`SCRIPT`] as a source of a Content-Security-Policy's `script-src` (CSP level 3, 6.7.2.3: its hash).
pub fn script_source() -> String {
    document::source(SCRIPT)
}

/// The figure, to be embedded in a page: a `figure` element with drawing, legend and table.
pub fn figure(flame: &Flame) -> String {
    figure_within(flame, MOST_BOXES)
}

/// The same with at most `most_boxes` boxes, for a page that has others.
pub fn figure_within(flame: &Flame, most_boxes: usize) -> String {
    let tree = Tree::of(flame.first.profile, flame.second.map(|side| side.profile), flame.column);
    let drawing = Drawing::of(flame, &tree, most_boxes);
    let whole = &tree.nodes[0];
    html! {
        figure class="flame" {
            figcaption {
                strong { (drawing.describe(whole)) }
                span { (drawing.explanation()) }
            }
            @if whole.width == 0 {
                p class="none" { "No stack requested any memory of this kind." }
            } @else {
                // The script unhides these: without it they have no function.
                div class="tools" hidden {
                    input type="search" placeholder="search functions and lines" aria-label="Search functions and lines";
                    button type="button" class="whole" disabled { "whole picture" }
                    output {}
                }
                (drawing.boxes())
                p class="details" aria-live="polite" hidden { }
                (drawing.legend())
                (drawing.table())
            }
        }
    }
    .into_string()
}

struct Drawing<'a> {
    flame: &'a Flame<'a>,
    tree: &'a Tree,
    drawn: Vec<usize>,
    /// The object files with the most memory, the largest first.
    modules: Vec<String>,
}

impl<'a> Drawing<'a> {
    fn of(flame: &'a Flame<'a>, tree: &'a Tree, most_boxes: usize) -> Drawing<'a> {
        let drawn = tree.drawn(most_boxes, FINEST);
        let mut modules: Vec<(String, u64)> = Vec::new();
        for node in drawn.iter().map(|index| &tree.nodes[*index]).filter(|node| !node.module.is_empty()) {
            match modules.iter_mut().find(|(module, _)| *module == node.module) {
                Some((_, width)) => *width = width.saturating_add(node.width),
                None => modules.push((node.module.clone(), node.width)),
            }
        }
        modules.sort_by(|(a, more), (b, less)| less.cmp(more).then(a.cmp(b)));
        let modules = modules.into_iter().map(|(module, _)| module).take(TINTS).collect();
        Drawing { flame, tree, drawn, modules }
    }

    /// `x86-64: 12.0 kB in 3 000 blocks · x32: 8.00 kB in 3 000 blocks · −33 %`.
    fn describe(&self, node: &Node) -> String {
        let amount = |amount| label::amount(amount, self.flame.column);
        let [first, second] = node.amounts;
        match self.flame.second {
            None => {
                let share = label::share(first.value, self.tree.nodes[0].amounts[0].value);
                match node.kind {
                    Kind::Root => format!("{}: {}", sanitize::line(self.flame.first.name), amount(first)),
                    _ => format!("{} · {share}", amount(first)),
                }
            }
            Some(side) => format!(
                "{}: {} · {}: {} · {}",
                sanitize::line(self.flame.first.name),
                amount(first),
                sanitize::line(side.name),
                amount(second),
                label::change(node.amounts)
            ),
        }
    }

    fn explanation(&self) -> String {
        let mut text = "Each box is a function, as wide as the memory that it and its callees requested; its caller is above it, and the \
                        requesting line is the lowest."
            .to_owned();
        if let Some(second) = self.flame.second {
            let _ = write!(
                text,
                " The width is the larger of the two, stack by stack; the colour and the number are the change from {} to {}.",
                sanitize::line(self.flame.first.name),
                sanitize::line(second.name)
            );
        }
        let left_out = self.tree.nodes.len() - self.drawn.len();
        if left_out > 0 {
            let many = if left_out == 1 { "box is" } else { "boxes are" };
            let count = Quantity { value: left_out as f64, unit: Unit::Count };
            let _ = write!(text, " {count} {many} too narrow and left out.");
        }
        if self.tree.cut {
            text.push_str(" Deeper stacks than can be shown are truncated.");
        }
        text
    }

    fn class(&self, node: &Node) -> String {
        let kind = match node.kind {
            Kind::Root => "root",
            Kind::Function => "call",
            Kind::Unnamed => "call unnamed",
            Kind::Line => "line",
        };
        let tint = if self.flame.second.is_some() {
            match label::strength(node.amounts) {
                0 => "even".to_owned(),
                less @ ..0 => format!("less{}", -less),
                more => format!("more{more}"),
            }
        } else {
            match self.modules.iter().position(|module| *module == node.module) {
                Some(index) => format!("tint{index}"),
                None => "even".to_owned(),
            }
        };
        format!("{kind} {tint}")
    }

    fn boxes(&self) -> Markup {
        let rows = 1 + self.drawn.iter().map(|index| self.tree.nodes[*index].depth).max().unwrap_or(0);
        let whole = self.tree.nodes[0].width as f64;
        let percent = |part: u64| format!("{:.4}%", 100.0 * part as f64 / whole);
        let label = format!("{}. {}", sanitize::line(self.flame.title), self.describe(&self.tree.nodes[0]));
        html! {
            svg class="boxes" role="tree" aria-label=(label) height=(rows * ROW) {
                @for index in &self.drawn {
                    @let node = &self.tree.nodes[*index];
                    svg class=(self.class(node)) role="treeitem" aria-level=(node.depth + 1) tabindex=[(*index == 0).then_some("0")]
                        x=(percent(node.start)) y=(node.depth * ROW) width=(percent(node.width)) height=(ROW) {
                        title { (sanitize::line(&node.name)) "\n" (self.describe(node))
                            @if node.kind == Kind::Function && !node.module.is_empty() { "\n" (sanitize::line(&node.module)) } }
                        rect width="100%" height="100%" {}
                        text x="4" y="14" { (self.text(node)) }
                    }
                }
            }
        }
    }

    fn text(&self, node: &Node) -> String {
        let name = match node.kind {
            Kind::Function => label::short(&node.name),
            _ => node.name.clone(),
        };
        match self.flame.second {
            Some(_) => {
                let (arrow, change) = (label::arrow(node.amounts), label::change(node.amounts));
                sanitize::line(&format!("{arrow}{name} {change}"))
            }
            None => sanitize::line(&name),
        }
    }

    fn legend(&self) -> Markup {
        let entry = |class: &str, text: &str| html! { li { span class={ "swatch " (class) } {} (sanitize::line(text)) } };
        html! {
            ul class="legend" aria-label="Colours" {
                @if let Some(second) = self.flame.second {
                    @for (class, text) in LESS { (entry(class, text)) }
                    (entry("even", "the same, within 2 %"))
                    @for (class, text) in MORE { (entry(class, text)) }
                    li { "in " (sanitize::line(second.name)) }
                } @else {
                    @for (index, module) in self.modules.iter().enumerate() { (entry(&format!("tint{index}"), module)) }
                    @if self.has_others() { (entry("even", "other object files")) }
                }
            }
        }
    }

    fn has_others(&self) -> bool {
        let nodes = self.drawn.iter().map(|index| &self.tree.nodes[*index]);
        nodes.skip(1).any(|node| !self.modules.contains(&node.module))
    }

    /// The lines with the most memory, or with the largest differences: the same content for readers who
    /// cannot see the drawing.
    fn table(&self) -> Markup {
        let sites = self.sites();
        let compared = self.flame.second.is_some();
        html! {
            details class="sites" {
                summary { @if compared { "The largest differences, by the line of the program that asked" } @else { "The largest, by the line of the program that asked" } }
                div class="scroll" { table {
                    thead { tr {
                        th scope="col" { "function" } th scope="col" { "line" } th scope="col" { "what it makes" }
                        th scope="col" class="number" { (sanitize::line(self.flame.first.name)) }
                        @if let Some(second) = self.flame.second {
                            th scope="col" class="number" { (sanitize::line(second.name)) }
                            th scope="col" class="number" { "change" }
                        }
                    } }
                    tbody { @for (site, amounts) in sites.iter().take(MOST_LINES) { tr {
                        th scope="row" { code title=(sanitize::line(&site.function)) { (sanitize::line(&label::short(&site.function))) } }
                        td { code { (sanitize::line(&site.location())) } }
                        td { @if let Some(made) = &site.made { code title=(sanitize::line(made)) { (sanitize::line(&label::short(made))) } } }
                        td class="number" { (label::amount(amounts[0], self.flame.column)) }
                        @if compared {
                            td class="number" { (label::amount(amounts[1], self.flame.column)) }
                            td class="number" { (label::change(*amounts)) }
                        }
                    } } }
                } }
                @if sites.len() > MOST_LINES { p class="quiet" { "And " (sites.len() - MOST_LINES) " more." } }
            }
        }
    }

    /// For two profiles, the site with the largest difference first.
    fn sites(&self) -> Vec<(site::Site, [tree::Amount; 2])> {
        let Flame { column, first, second, through, .. } = *self.flame;
        let sites = |side: Side| site::sites(side.profile, side.program, through);
        let pairs = site::pairs(&sites(first), &second.map(sites).unwrap_or_default());
        let mut sites: Vec<(site::Site, [tree::Amount; 2])> = pairs
            .into_iter()
            .map(|Pair { site, a, b, .. }| {
                (site, [tree::Amount::of(&a, column), tree::Amount::of(&b, column)])
            })
            .filter(|(_, amounts)| amounts.iter().any(|amount| amount.value > 0))
            .collect();
        sites.sort_by_key(|(_, [first, second])| {
            std::cmp::Reverse(match self.flame.second {
                Some(_) => first.value.abs_diff(second.value),
                None => first.value,
            })
        });
        sites
    }
}

/// Classes and their meaning; the steps are those of [`label::strength`].
const LESS: [(&str, &str); 3] =
    [("less3", "▼ 35 % less, or first only"), ("less2", "▼ 15 %"), ("less1", "▼ 2 %")];
const MORE: [(&str, &str); 3] =
    [("more1", "▲ 2 %"), ("more2", "▲ 15 %"), ("more3", "▲ 35 % more, or second only")];

#[cfg(test)]
mod tests;
