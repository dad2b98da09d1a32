//! Call stacks: code addresses within object files, each in the stack around it.
//!
//! A code address is resolved to an object file and the address in that file when it is decoded. So the stacks of a plugin
//! that is loaded a thousand times, at a thousand addresses, are those of one load.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

/// A stack: the code address of its innermost call, and the stack around it. [`StackId::NONE`] is the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

impl StackId {
    /// Outside of the outermost call; also the stack of every block where no stacks were recorded.
    pub const NONE: StackId = StackId(0);
    /// The walk could not continue from here.
    pub const BROKEN: StackId = StackId(1);
}

/// An object file, by its number among those of all logs that are read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// An address that a call returns to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeAddress {
    /// The object file that holds it; `None` where no module was recorded for it.
    pub module: Option<ModuleId>,
    /// The address as the object file has it, or as the process had it where there is no object file.
    pub address: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    outer: StackId,
    code: CodeAddress,
}

/// All object files and stacks of the logs that are read together, each stored once.
#[derive(Debug)]
pub struct Stacks {
    paths: Vec<Box<str>>,
    modules: FxHashMap<Box<str>, ModuleId>,
    nodes: Vec<Node>,
    known: FxHashMap<Node, StackId>,
}

impl Default for Stacks {
    fn default() -> Stacks {
        let root = Node { outer: StackId::NONE, code: CodeAddress { module: None, address: 0 } };
        Stacks {
            paths: Vec::new(),
            modules: FxHashMap::default(),
            nodes: vec![root, root],
            known: FxHashMap::default(),
        }
    }
}

impl Stacks {
    /// The object file of that path.
    pub fn module(&mut self, path: &str) -> ModuleId {
        if let Some(known) = self.modules.get(path) {
            return *known;
        }
        let module = ModuleId(self.paths.len() as u32);
        self.paths.push(path.into());
        self.modules.insert(path.into(), module);
        module
    }

    /// The stack of a call that returns to `code`, around which is the stack `outer`. The heap recorder is no part of the program: a
    /// call in it is left out.
    pub fn stack(&mut self, outer: StackId, code: CodeAddress) -> StackId {
        if code.module.and_then(|module| self.path(module)).is_some_and(is_recorder) {
            return outer;
        }
        let node = Node { outer, code };
        if let Some(known) = self.known.get(&node) {
            return *known;
        }
        let Ok(number) = u32::try_from(self.nodes.len()) else { return StackId::BROKEN };
        self.nodes.push(node);
        self.known.insert(node, StackId(number));
        StackId(number)
    }

    /// The path of an object file, as it was recorded.
    pub fn path(&self, module: ModuleId) -> Option<&str> {
        self.paths.get(module.0 as usize).map(|path| &**path)
    }

    /// The file to read of an object file. None where the path is relative: the folder that the program was in is not recorded.
    pub fn file(&self, module: ModuleId) -> Option<&str> {
        self.path(module).filter(|path| path.starts_with('/'))
    }

    /// How many object files there are.
    pub fn modules(&self) -> usize {
        self.paths.len()
    }

    /// How many stacks there are; their numbers are below it. An outer stack has a smaller number than its inner ones.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no stack was recorded.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() <= 2
    }

    /// Of each stack by its number, whether it could not be followed to its outermost call.
    pub fn broken(&self) -> Vec<bool> {
        let mut broken = vec![false; self.nodes.len()];
        for (number, node) in self.nodes.iter().enumerate() {
            // An outer stack has the smaller number.
            broken[number] =
                number == StackId::BROKEN.0 as usize || broken.get(node.outer.0 as usize) == Some(&true);
        }
        broken
    }

    /// The innermost call's code address, and the stack around it. `None` for the two that are no stacks.
    pub fn call(&self, stack: StackId) -> Option<(CodeAddress, StackId)> {
        let node = self.nodes.get(stack.0 as usize).filter(|_| stack > StackId::BROKEN)?;
        Some((node.code, node.outer))
    }
}

/// Whether an object file is the preloaded heap recorder (`NAME` in `crates/measure/src/passes/heap/recorder.rs`).
fn is_recorder(path: &str) -> bool {
    path.ends_with("/libwidthwise-heap.so")
}

/// Where one object file is loaded.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    high: u64,
    bias: u64,
    module: ModuleId,
}

/// Which object file holds which addresses, at one moment of one stream. No two of them overlap.
#[derive(Debug, Default)]
pub(crate) struct AddressMap {
    by_low: BTreeMap<u64, Mapping>,
}

impl AddressMap {
    /// The addresses from `low` up to `high` are `module`'s from here on. Earlier modules that overlap are removed.
    pub(crate) fn load(&mut self, low: u64, high: u64, bias: u64, module: ModuleId) {
        if low >= high {
            return;
        }
        // Each mapping is inserted once and removed once, so a long log takes no more than a logarithm for each.
        while let Some((&from, _)) =
            self.by_low.range(..high).next_back().filter(|(_, mapping)| mapping.high > low)
        {
            self.by_low.remove(&from);
        }
        self.by_low.insert(low, Mapping { high, bias, module });
    }

    /// Which object file holds the address, and where in it.
    pub(crate) fn resolve(&self, address: u64) -> CodeAddress {
        let found = self.by_low.range(..=address).next_back();
        match found.filter(|(_, mapping)| address < mapping.high) {
            Some((_, mapping)) => {
                CodeAddress { module: Some(mapping.module), address: address.wrapping_sub(mapping.bias) }
            }
            None => CodeAddress { module: None, address },
        }
    }

    pub(crate) fn clear(&mut self) {
        self.by_low.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_in_the_recorder_is_left_out_of_a_stack() {
        let mut stacks = Stacks::default();
        let (program, recorder) =
            (stacks.module("/opt/program"), stacks.module("/cache/lib/libwidthwise-heap.so"));
        let code = |module, address| CodeAddress { module: Some(module), address };
        let main = stacks.stack(StackId::NONE, code(program, 7));
        let hook = stacks.stack(main, code(recorder, 8));
        let inner = stacks.stack(hook, code(program, 9));
        assert_eq!((hook, stacks.call(inner)), (main, Some((code(program, 9), main))));
        assert_eq!(stacks.stack(StackId::BROKEN, code(recorder, 8)), StackId::BROKEN);
    }

    fn resolved(map: &AddressMap, address: u64) -> (Option<u32>, u64) {
        let code = map.resolve(address);
        (code.module.map(|module| module.0), code.address)
    }

    #[test]
    fn an_address_is_that_of_the_module_that_holds_it() {
        let mut map = AddressMap::default();
        map.load(0x1000, 0x2000, 0x1000, ModuleId(0));
        map.load(0x2000, 0x3000, 0x1800, ModuleId(1));
        assert_eq!(resolved(&map, 0xfff), (None, 0xfff));
        assert_eq!(resolved(&map, 0x1000), (Some(0), 0));
        assert_eq!(resolved(&map, 0x1fff), (Some(0), 0xfff));
        assert_eq!(resolved(&map, 0x2000), (Some(1), 0x800));
        assert_eq!(resolved(&map, 0x3000), (None, 0x3000));
    }

    #[test]
    fn a_module_replaces_every_module_that_it_overlaps() {
        let mut map = AddressMap::default();
        for (index, low) in [0x1000, 0x2000, 0x3000, 0x4000].into_iter().enumerate() {
            map.load(low, low + 0x1000, low, ModuleId(index as u32));
        }
        map.load(0x1fff, 0x3001, 0, ModuleId(9));
        assert_eq!(map.by_low.len(), 2);
        assert_eq!(resolved(&map, 0x1000), (None, 0x1000));
        assert_eq!(resolved(&map, 0x2500), (Some(9), 0x2500));
        assert_eq!(resolved(&map, 0x3800), (None, 0x3800));
        assert_eq!(resolved(&map, 0x4000), (Some(3), 0));
        map.load(5, 5, 0, ModuleId(1));
        map.load(0, u64::MAX, 0, ModuleId(2));
        assert_eq!(map.by_low.len(), 1);
    }
}
