//! Reads all units of a program with several threads, and makes one list of types of what they found.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use rustc_hash::{FxHashMap, FxHashSet};

use super::model::{Aggregate, Destructor, LayoutError, Layouts, Member, Type, TypeId, Unread};
use super::object_file::ObjectFile;
use super::program::{self, Files, Notes, Program};
use super::reader::{Found, Key, RawAggregate, RawType, Reader, CYCLIC, MOST_NAMES, VOID};
use super::virtual_bases;

/// Types are followed into types by recursion; the memory is taken only where it is used.
const STACK: usize = 256 << 20;
const MOST_THREADS: usize = 256;

/// The layouts of a program's types, read with as many threads.
///
/// # Errors
/// When the file cannot be opened or is no program. Everything smaller is in [`Layouts::unread`].
pub fn read(path: &Path, threads: usize) -> Result<Layouts, LayoutError> {
    let mut notes = Notes::default();
    let files = Files::open(path, &mut notes)?;
    Ok(read_files(&files, threads, notes))
}

/// The same of a program in memory: its split and supplementary files are not looked for.
///
/// # Errors
/// When the bytes are no program.
pub fn read_bytes(bytes: &[u8]) -> Result<Layouts, LayoutError> {
    let files = Files::from_bytes(bytes)?;
    Ok(read_files(&files, 1, Notes::default()))
}

fn read_files(files: &Files, threads: usize, mut notes: Notes) -> Layouts {
    let program = Program::new(files, &mut notes);
    let mut layouts = program::empty(&files.main);
    layouts.units = program.listed.len();
    if program.units.is_empty() {
        notes.add(nothing(&files.main));
    }
    let found = Found::new();
    let gathered = Mutex::new(notes);
    let imported = read_units(&program, &found, &program.listed, threads, &gathered);
    // Units of a shared file (dwz) may import more of them.
    let (mut seen, mut next) = (FxHashSet::default(), imported);
    loop {
        next.retain(|unit| seen.insert(*unit));
        if next.is_empty() {
            break;
        }
        next = read_units(&program, &found, &next, threads, &gathered);
    }
    let mut notes = gathered.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    drop(program);
    layouts.describes_types = found.describes_types.load(Ordering::Relaxed);
    layouts.overlaps_members = found.overlaps_members.load(Ordering::Relaxed);
    layouts.changes_alignments = found.changes_alignments.load(Ordering::Relaxed);
    let (types, destructors) = found.into_types();
    std::thread::scope(|scope| {
        let merging = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || {
            Merge::new(types, destructors, &mut layouts).run();
            virtual_bases::place(&mut layouts);
        });
        if merging.is_err() || merging.is_ok_and(|thread| thread.join().is_err()) {
            notes.add("the types could not be put together: a thread failed".to_owned());
        }
    });
    layouts.unread = notes.0.into_iter().map(|(reason, count)| Unread { reason, count }).collect();
    layouts
}

/// The reason for a program without types.
fn nothing(main: &ObjectFile) -> String {
    format!(
        "{} has no debug information, so that its types are not known: build it with -g, or install its -dbgsym package",
        main.path.display()
    )
}

/// Returns the imported units of a supplementary file.
fn read_units(
    program: &Program<'_>,
    found: &Found,
    units: &[u32],
    threads: usize,
    notes: &Mutex<Notes>,
) -> Vec<u32> {
    // The largest first, so that none is left alone at the end.
    let mut order = units.to_vec();
    order.sort_by_key(|unit| {
        let unit = &program.units[*unit as usize];
        std::cmp::Reverse(unit.end - unit.start)
    });
    let next = AtomicUsize::new(0);
    let imported = Mutex::new(Vec::new());
    let work = || {
        let mut reader = Reader::new(program, found);
        while let Some(unit) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            reader.read(*unit);
        }
        let (mut notes, mut imported) = (lock(notes), lock(&imported));
        notes.merge(std::mem::take(&mut reader.notes));
        imported.append(&mut reader.imported);
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads.clamp(1, MOST_THREADS).min(order.len()))
            .map(|_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work))
            .collect();
        if started.iter().all(Result::is_err) {
            work();
        }
        for thread in started.into_iter().flatten() {
            if thread.join().is_err() {
                lock(notes).add("some units could not be read: a thread failed".to_owned());
            }
        }
    });
    imported.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Makes equal types one, and declarations the definition that another unit has.
struct Merge<'l> {
    raw: FxHashMap<Key, RawType>,
    destructors: FxHashMap<Key, Destructor>,
    definitions: FxHashMap<Box<str>, Option<Key>>,
    ids: FxHashMap<Key, Option<TypeId>>,
    known: FxHashMap<u64, Vec<TypeId>>,
    hashing: RandomState,
    layouts: &'l mut Layouts,
}

impl<'l> Merge<'l> {
    fn new(
        raw: FxHashMap<Key, RawType>,
        destructors: FxHashMap<Key, Destructor>,
        layouts: &'l mut Layouts,
    ) -> Self {
        let declared: FxHashSet<&str> = raw
            .values()
            .filter_map(|raw| match raw {
                RawType::Declared { name } => Some(&**name),
                _ => None,
            })
            .collect();
        let mut definitions: FxHashMap<Box<str>, Option<Key>> = FxHashMap::default();
        for (key, raw_type) in &raw {
            let RawType::Aggregate(aggregate) = raw_type else { continue };
            if !declared.contains(&*aggregate.name) {
                continue;
            }
            let same = |other: &Key| matches!(&raw[other], RawType::Aggregate(other) if other.size == aggregate.size);
            definitions
                .entry(aggregate.name.clone())
                // Two definitions of different sizes decide nothing.
                .and_modify(|known| *known = known.filter(same).map(|other| other.min(*key)))
                .or_insert(Some(*key));
        }
        Merge {
            raw,
            destructors,
            definitions,
            ids: FxHashMap::default(),
            known: FxHashMap::default(),
            hashing: RandomState::new(),
            layouts,
        }
    }

    fn run(mut self) {
        let mut keys: Vec<Key> = self.raw.keys().copied().collect();
        // By name, so that the order of the types is the same each time.
        keys.sort_by(|one, other| {
            let name = |key| match &self.raw[key] {
                RawType::Aggregate(aggregate) => {
                    Some((&aggregate.name, aggregate.size, aggregate.members.len()))
                }
                _ => None,
            };
            name(one).cmp(&name(other))
        });
        for key in keys {
            if matches!(self.raw.get(&key), Some(RawType::Aggregate(_))) {
                self.id(key, 0);
            }
        }
        self.other_names();
        let layouts = self.layouts;
        let is_aggregate = |index: &u32| matches!(layouts.types[*index as usize], Type::Aggregate(_));
        let mut aggregates: Vec<TypeId> =
            (0..layouts.types.len() as u32).filter(is_aggregate).map(TypeId).collect();
        aggregates.sort_by(|one, other| {
            let order =
                |id: &TypeId| layouts.aggregate(*id).map(|aggregate| (&*aggregate.name, aggregate.size));
            order(one).cmp(&order(other)).then(one.cmp(other))
        });
        layouts.aggregates = aggregates;
    }

    /// Typedefs of structures and of numbers that no member uses, in the order of their names and of what they name.
    fn other_names(&mut self) {
        let of_typedef = |(key, raw): (&Key, &RawType)| match raw {
            RawType::Typedef { name, target } => {
                let known = self.ids.get(target).copied().flatten();
                Some((name.clone(), known, self.number(*target), *key))
            }
            _ => None,
        };
        let mut left: Vec<_> = self.raw.iter().filter_map(of_typedef).collect();
        left.retain(|(_, target, number, _)| target.is_some() || number.is_some());
        left.sort();
        for (_, _, _, key) in left {
            self.id(key, 0);
        }
    }

    /// The name and the size of the number that a type without an identifier is, by whatever names.
    fn number(&self, mut key: Key) -> Option<(Box<str>, u64)> {
        for _ in 0..MOST_NAMES {
            match self.raw.get(&key)? {
                RawType::Base { name, size, .. } => return Some((name.clone(), *size)),
                RawType::Typedef { target, .. } => key = *target,
                _ => return None,
            }
            if let Some(Type::Base { name, size, .. }) =
                self.ids.get(&key).copied().flatten().map(|id| self.layouts.get(self.layouts.stripped(id)))
            {
                return Some((name.clone(), *size));
            }
        }
        None
    }

    fn void(&mut self, name: &str) -> TypeId {
        self.add(Type::Other { name: name.into(), size: 0 })
    }

    fn id(&mut self, key: Key, depth: u32) -> TypeId {
        match self.ids.get(&key) {
            Some(Some(id)) => return *id,
            // A declaration whose definition contains it.
            Some(None) => return self.void("(cyclic)"),
            None => {}
        }
        if depth > 20_000 {
            return self.void("(nested too deeply)");
        }
        self.ids.insert(key, None);
        let Some(raw) = self.raw.remove(&key) else {
            let id = self.void(match key {
                VOID => "void",
                CYCLIC => "(cyclic)",
                _ => "(unknown)",
            });
            self.ids.insert(key, Some(id));
            return id;
        };
        let made = match raw {
            RawType::Base { name, size, integer } => Type::Base { name, size, integer },
            RawType::Pointer { name, size } => Type::Pointer { name, size },
            RawType::Enumeration { name, size } => Type::Enumeration { name, size },
            RawType::Typedef { name, target } => Type::Typedef { name, target: self.id(target, depth + 1) },
            RawType::Other { name, size } => Type::Other { name, size },
            RawType::Array { element, count, size } => {
                let element = self.id(element, depth + 1);
                let own = self.layouts.size(element).saturating_mul(count.unwrap_or(0));
                Type::Array { element, count, size: size.unwrap_or(own) }
            }
            RawType::Declared { name } => {
                if let Some(Some(definition)) = self.definitions.get(&name).copied() {
                    let id = self.id(definition, depth + 1);
                    self.ids.insert(key, Some(id));
                    return id;
                }
                Type::Declared { name }
            }
            RawType::Aggregate(raw) => Type::Aggregate(Box::new(self.aggregate(*raw, depth))),
        };
        let id = self.add(made);
        if let Some(own) = self.destructors.get(&key) {
            let known = self.layouts.destructors.entry(id).or_insert(*own);
            *known = (*known).max(*own);
        }
        self.ids.insert(key, Some(id));
        id
    }

    fn aggregate(&mut self, raw: RawAggregate, depth: u32) -> Aggregate {
        let RawAggregate { name, kind, size, explicit_alignment, members, location } = raw;
        let members = members
            .into_iter()
            .map(|member| Member {
                name: member.name,
                role: member.role,
                offset: member.offset,
                bits: member.bits,
                explicit_alignment: member.explicit_alignment,
                ty: self.id(member.ty, depth + 1),
            })
            .collect();
        Aggregate { name, kind, size, explicit_alignment, members, location }
    }

    fn add(&mut self, made: Type) -> TypeId {
        let hash = self.hashing.hash_one(&made);
        let same = self.known.entry(hash).or_default();
        if let Some(id) = same.iter().find(|id| self.layouts.types[id.0 as usize] == made) {
            return *id;
        }
        let id = TypeId(self.layouts.types.len() as u32);
        same.push(id);
        self.layouts.types.push(made);
        id
    }
}
