//! Where calls return to: addresses within modules, and the stacks that they make up.

use rustc_hash::FxHashMap;

/// An object file that the process had loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its file.
    pub path: String,
    /// What was added to its own addresses.
    pub bias: u64,
    /// Its first byte.
    pub low: u64,
    /// Behind its last byte.
    pub high: u64,
    /// It counts the closings of modules: an address may mean something else in another one.
    pub generation: u64,
}

/// A stack: the place of its innermost call, and the stack around it. [`StackId::NONE`] is the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

impl StackId {
    /// Outside of the outermost call; also the stack of every block where no stacks were recorded.
    pub const NONE: StackId = StackId(0);
    /// The walk could not go on from here.
    pub const BROKEN: StackId = StackId(1);
}

/// An address that a call returns to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place<'a> {
    /// Where it is; `None` where no module was told that holds it.
    pub module: Option<&'a Module>,
    /// The address as the module's file has it, or as the process had it where there is no module.
    pub address: u64,
}

impl std::hash::Hash for Module {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.path.hash(state);
        self.bias.hash(state);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    outer: StackId,
    address: u64,
    generation: u64,
}

/// All modules and stacks of a log.
#[derive(Debug)]
pub struct Places {
    /// In the order in which they were told.
    pub modules: Vec<Module>,
    nodes: Vec<Node>,
    known: FxHashMap<Node, StackId>,
}

impl Default for Places {
    fn default() -> Places {
        let root = Node { outer: StackId::NONE, address: 0, generation: 0 };
        Places { modules: Vec::new(), nodes: vec![root, root], known: FxHashMap::default() }
    }
}

impl Places {
    pub(crate) fn add(&mut self, module: Module) {
        if !self.modules.contains(&module) {
            self.modules.push(module);
        }
    }

    /// The stack of a call that returns to `address`, around which is the stack `outer`.
    pub(crate) fn stack(&mut self, outer: StackId, address: u64, generation: u64) -> StackId {
        let node = Node { outer, address, generation };
        *self.known.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            StackId(self.nodes.len() as u32 - 1)
        })
    }

    /// How many stacks there are; their numbers are below it.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no stack was recorded.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() <= 2
    }

    /// The innermost call's place, and the stack around it. `None` for the two that are no stacks.
    pub fn call(&self, stack: StackId) -> Option<(Place<'_>, StackId)> {
        let node = self.nodes.get(stack.0 as usize).filter(|_| stack > StackId::BROKEN)?;
        // Of two that held the address, the one that was there at the time, or had been there last.
        let module = self
            .modules
            .iter()
            .filter(|module| node.address >= module.low && node.address < module.high)
            .max_by_key(|module| {
                (module.generation <= node.generation, module.generation.min(node.generation))
            });
        let bias = module.map_or(0, |module| module.bias);
        Some((Place { module, address: node.address.wrapping_sub(bias) }, node.outer))
    }
}
