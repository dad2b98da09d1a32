//! The stacks of one profile, or of two, as one tree: the boxes of a flame graph, and their widths.

use std::collections::HashMap;

use widthwise_anatomy::heap::{Column, Frame, Profile, Values};
use widthwise_anatomy::pairing::function_numbers;

/// Deeper calls are counted at this depth: no screen shows more, and a recursion can have a million.
const DEEPEST: usize = 160;

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Everything.
    Root,
    /// A function, inlined ones included.
    Function,
    /// Code without a symbol.
    Unnamed,
    /// The line that requested memory, innermost of all.
    Line,
}

/// One profile's amount at a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// In the unit of the drawn column.
    pub value: u64,
    /// Blocks, where the column is one of bytes.
    pub blocks: u64,
}

impl Amount {
    /// The amount of `values` in that column.
    pub fn of(values: &Values, column: Column) -> Amount {
        Amount { value: column.of(values), blocks: blocks(column).map_or(0, |blocks| blocks.of(values)) }
    }

    fn add(&mut self, other: Amount) {
        self.value = self.value.saturating_add(other.value);
        self.blocks = self.blocks.saturating_add(other.blocks);
    }
}

/// A function as called from its parent, or a line of it.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its kind.
    pub kind: Kind,
    /// The function's name in the first profile, or `file:line`.
    pub name: String,
    /// The object file it is in.
    pub module: String,
    /// The parent node; the root's is the root.
    pub parent: usize,
    /// Calls around it.
    pub depth: usize,
    /// Its own amounts, without its children's, in the first and in the second profile.
    pub own: [Amount; 2],
    /// Its amounts including its children's, in the first and in the second profile.
    pub amounts: [Amount; 2],
    /// Its drawn width: the sum over its stacks of the larger of the two amounts.
    pub width: u64,
    /// Its left edge, in the unit of `width`.
    pub start: u64,
}

/// All nodes; the first is the root, and parents precede their children.
#[derive(Debug)]
pub struct Tree {
    /// Not empty.
    pub nodes: Vec<Node>,
    /// Some stack was too deep to be shown completely.
    pub cut: bool,
}

/// The column that counts the blocks of a column of bytes.
fn blocks(column: Column) -> Option<Column> {
    match column {
        Column::PeakBytes | Column::PeakChunkBytes => Some(Column::PeakBlocks),
        Column::AllocBytes => Some(Column::AllocCount),
        Column::LiveBytes => Some(Column::LiveCount),
        Column::PeakBlocks | Column::AllocCount | Column::LiveCount => None,
    }
}

/// A step of a stack: its identity in both profiles, and its appearance.
#[derive(Debug, Clone)]
struct Step {
    identity: usize,
    kind: Kind,
    name: String,
    module: String,
}

/// What a step is in both profiles.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum What {
    /// A function, by its number in both profiles.
    Function(usize),
    /// Code without a symbol, or a line.
    Named(String),
}

/// Identities of steps, over both profiles.
#[derive(Default)]
struct Identities(HashMap<What, usize>);

impl Identities {
    fn of(&mut self, what: What) -> usize {
        let next = self.0.len();
        *self.0.entry(what).or_insert(next)
    }

    /// `number` is the function's, as [`function_numbers`] gives it.
    fn function(&mut self, frame: &Frame, number: usize) -> Step {
        let unnamed = frame.function.strip_prefix("0x");
        let unnamed = unnamed.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let (kind, name, identity) = match (unnamed, frame.module.as_str()) {
            // Addresses say nothing about another build.
            (true, "") => (Kind::Unnamed, "?".to_owned(), What::Named("?".to_owned())),
            (true, module) => {
                (Kind::Unnamed, format!("? in {module}"), What::Named(format!("? in {module}")))
            }
            (false, _) => (Kind::Function, frame.function.clone(), What::Function(number)),
        };
        Step { identity: self.of(identity), kind, name, module: frame.module.clone() }
    }

    fn line(&mut self, frame: &Frame) -> Option<Step> {
        // Builds of the same source in two folders have the same lines.
        let file = frame.file.as_deref()?;
        let name = format!("{}:{}", file.rsplit('/').next().unwrap_or(file), frame.line?);
        // No module's name contains a tab.
        let identity = self.of(What::Named(format!("\t{name}")));
        Some(Step { identity, kind: Kind::Line, name, module: frame.module.clone() })
    }
}

impl Tree {
    /// The tree of a profile's column, or of two profiles'.
    ///
    /// Calls outside `main` are the C library's start-up code, which differs between ABIs: stacks begin with
    /// `main` where they have one. [`function_numbers`] says which functions are equal.
    pub fn of<'p>(first: &'p Profile, second: Option<&'p Profile>, column: Column) -> Tree {
        let root = Node {
            kind: Kind::Root,
            name: "all".to_owned(),
            module: String::new(),
            parent: 0,
            depth: 0,
            own: [Amount::default(); 2],
            amounts: [Amount::default(); 2],
            width: 0,
            start: 0,
        };
        let mut tree = Tree { nodes: vec![root], cut: false };
        let mut children: HashMap<(usize, usize), usize> = HashMap::new();
        let mut identities = Identities::default();
        let names_of = |profile: Option<&'p Profile>| -> Vec<&'p str> {
            let frames = profile.into_iter().flat_map(|profile| &profile.frames);
            frames.map(|frame| frame.function.as_str()).collect()
        };
        let numbers = function_numbers(&names_of(Some(first)), &names_of(second));
        for (side, profile) in [Some(first), second].into_iter().flatten().enumerate() {
            let numbered = profile.frames.iter().zip(&numbers[side]);
            let functions: Vec<Step> =
                numbered.map(|(frame, number)| identities.function(frame, *number)).collect();
            let lines: Vec<Option<Step>> =
                profile.frames.iter().map(|frame| identities.line(frame)).collect();
            for sample in &profile.samples {
                let amount = Amount::of(&sample.values, column);
                if amount.value == 0 {
                    continue;
                }
                let is_main =
                    |frame: &u32| profile.frames.get(*frame as usize).is_some_and(|f| f.function == "main");
                let main = sample.stack.iter().position(is_main).unwrap_or(0);
                let stack = &sample.stack[main..];
                let steps = stack.iter().filter_map(|frame| functions.get(*frame as usize));
                let line = stack.last().and_then(|frame| lines.get(*frame as usize)?.as_ref());
                let mut at = 0;
                for step in steps.chain(line) {
                    let node = &tree.nodes[at];
                    if node.kind == Kind::Unnamed && step.kind == Kind::Unnamed && node.name == step.name {
                        // The number of unknown calls varies without meaning.
                        continue;
                    }
                    if node.depth == DEEPEST {
                        tree.cut = true;
                        break;
                    }
                    at = *children.entry((at, step.identity)).or_insert_with(|| {
                        tree.nodes.push(Node {
                            kind: step.kind,
                            name: step.name.clone(),
                            module: step.module.clone(),
                            parent: at,
                            depth: tree.nodes[at].depth + 1,
                            own: [Amount::default(); 2],
                            ..tree.nodes[0].clone()
                        });
                        tree.nodes.len() - 1
                    });
                }
                tree.nodes[at].own[side].add(amount);
            }
        }
        tree.measure();
        tree.place();
        tree
    }

    /// Sums up, from the innermost nodes outwards.
    fn measure(&mut self) {
        for index in (0..self.nodes.len()).rev() {
            let node = &mut self.nodes[index];
            node.width = node.width.saturating_add(node.own[0].value.max(node.own[1].value));
            for (amount, own) in node.amounts.iter_mut().zip(node.own) {
                amount.add(own);
            }
            let Node { parent, amounts, width, .. } = *node;
            if index > 0 {
                let outer = &mut self.nodes[parent];
                outer.width = outer.width.saturating_add(width);
                for (amount, inner) in outer.amounts.iter_mut().zip(amounts) {
                    amount.add(inner);
                }
            }
        }
    }

    /// Puts the children of a node side by side, the widest first.
    fn place(&mut self) {
        let mut order: Vec<usize> = (1..self.nodes.len()).collect();
        order.sort_by(|a, b| {
            let (a, b) = (&self.nodes[*a], &self.nodes[*b]);
            (a.depth, b.width, &a.name).cmp(&(b.depth, a.width, &b.name))
        });
        let mut taken = vec![0_u64; self.nodes.len()];
        for index in order {
            let parent = self.nodes[index].parent;
            self.nodes[index].start = self.nodes[parent].start + taken[parent];
            taken[parent] += self.nodes[index].width;
        }
    }

    /// The nodes to draw, each row from left to right: at most `most`, and none narrower than the whole
    /// divided by `finest`. A node's parent is always among them.
    pub fn drawn(&self, most: usize, finest: u64) -> Vec<usize> {
        let mut widths: Vec<u64> = self.nodes.iter().map(|node| node.width).collect();
        widths.sort_unstable_by(|a, b| b.cmp(a));
        // Nodes as wide as the first one beyond the limit are left out too.
        let too_many = widths.get(most).copied().unwrap_or(0);
        let narrowest = (self.nodes[0].width / finest).max(too_many.saturating_add(1)).max(1);
        let mut drawn: Vec<usize> = (0..self.nodes.len())
            .filter(|index| *index == 0 || self.nodes[*index].width >= narrowest)
            .collect();
        drawn.sort_by_key(|index| (self.nodes[*index].depth, self.nodes[*index].start));
        drawn
    }
}

#[cfg(test)]
mod tests;
