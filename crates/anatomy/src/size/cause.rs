//! Why sections differ: each section's difference with its reason in words.

use std::collections::BTreeMap;

use super::difference::Pair;
use super::RowKind;
use crate::elf::section_flag;

/// A reason for a part of the difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The reason; empty where none is known.
    pub reason: String,
    /// The sections, or the table.
    pub place: String,
    /// The variant's bytes minus the baseline's.
    pub bytes: i64,
    /// Whether it is counted in the files: records with a known size.
    pub is_counted: bool,
}

/// A kind of section: how its name begins, what its bytes are, whether all of it is records of one size.
const SECTIONS: [(&str, &str, bool); 40] = [
    (".relr", "packed relocation records", true),
    (".rel", "relocation records", true),
    (".got", "pointers in the global offset table", true),
    (".got2", "pointers in the global offset table", true),
    (".toc", "pointers in the table of contents (TOC)", true),
    (".opd", "function descriptors", true),
    (".dynamic", "entries of the dynamic section", true),
    (".dynsym", "symbols that the dynamic linker reads", true),
    (".symtab", "symbols", true),
    (".init_array", "pointers to initialisers", true),
    (".fini_array", "pointers to finalisers", true),
    (".ctors", "pointers to initialisers", true),
    (".dtors", "pointers to finalisers", true),
    (".data.rel.ro", "constant data with pointers (virtual tables, type information)", false),
    (".strtab", "names of symbols", false),
    (".dynstr", "names that the dynamic linker reads", false),
    (".shstrtab", "names of sections", false),
    (".hash", "tables for looking up symbols", false),
    (".gnu.hash", "tables for looking up symbols", false),
    (".gnu.version", "versions of symbols", false),
    (".gnu_debuglink", "links to debug information", false),
    (".eh_frame", "unwind information", false),
    (".gcc_except_table", "exception tables", false),
    (".ARM.exidx", "unwind information", false),
    (".ARM.extab", "unwind information", false),
    (".plt", "calls of shared libraries (procedure linkage table)", false),
    (".init", "start and end of the program", false),
    (".fini", "start and end of the program", false),
    (".rodata", "read-only data", false),
    (".data", "initialised data", false),
    (".tdata", "initialised data of threads", false),
    (".sdata", "initialised data", false),
    (".tm_clone_table", "initialised data", false),
    (".debug", "debug information", false),
    (".zdebug", "debug information", false),
    (".note", "notes", false),
    (".comment", "notes", false),
    (".interp", "the dynamic linker's path", false),
    (".text", "instructions", false),
    (LIBC, "tables of the C library", false),
];

/// What the names of sections of glibc begin with.
const LIBC: &str = "__libc";

/// The reasons of all rows; they sum to the difference. A row without a known reason has an empty one.
pub fn causes(pairs: &[Pair]) -> Vec<Cause> {
    let mut all: Vec<Cause> = Vec::new();
    for pair in &whole_tables(pairs) {
        for cause in of_pair(pair) {
            let same = |known: &&mut Cause| known.reason == cause.reason && known.place == cause.place;
            match all.iter_mut().find(same) {
                Some(known) => {
                    known.bytes += cause.bytes;
                    known.is_counted &= cause.is_counted;
                }
                None => all.push(cause),
            }
        }
    }
    all.retain(|cause| cause.bytes != 0);
    all.sort_by(|a, b| {
        b.bytes
            .unsigned_abs()
            .cmp(&a.bytes.unsigned_abs())
            .then_with(|| (&a.reason, &a.place).cmp(&(&b.reason, &b.place)))
    });
    all
}

/// The rows, those of a table of relocations as one: what is `R_X86_64_64` in one ABI can be `R_386_32` or `R_386_RELATIVE` in the
/// other, and neither is a record more or less.
fn whole_tables(pairs: &[Pair]) -> Vec<Pair> {
    let (relocations, mut rows): (Vec<&Pair>, Vec<&Pair>) =
        pairs.iter().partition(|pair| pair.kind == RowKind::Relocations);
    let mut tables: BTreeMap<(&str, &str), Pair> = BTreeMap::new();
    for row in relocations {
        let table = tables.entry((&row.file, &row.section)).or_insert_with(|| Pair {
            name: String::new(),
            sides: Default::default(),
            ..row.clone()
        });
        for (sum, side) in table.sides.iter_mut().zip(row.sides) {
            sum.add(side);
        }
    }
    rows.extend(tables.values());
    rows.into_iter().cloned().collect()
}

/// The reasons of one row.
fn of_pair(pair: &Pair) -> Vec<Cause> {
    let section = match pair.file.as_str() {
        "" => pair.section.clone(),
        file => format!("{} of {file}", pair.section).trim().to_owned(),
    };
    let cause = |reason: &str, place: String, bytes, is_counted| Cause {
        reason: reason.to_owned(),
        place,
        bytes,
        is_counted,
    };
    match pair.kind {
        RowKind::PaddingBetween => {
            return vec![cause("padding between sections", "padding".to_owned(), pair.difference(), true)]
        }
        RowKind::Uncovered => {
            return vec![cause("", "covered by no section".to_owned(), pair.difference(), false)]
        }
        RowKind::Headers => return records(pair, &pair.name, pair.name.clone(), true),
        _ => {}
    }
    let is_code = pair.flags & section_flag::EXECINSTR != 0;
    // glibc's static libraries also have code in sections of such names: `__libc_freeres_fn`.
    let is_other = |start: &str| is_code && start == LIBC;
    let known = SECTIONS
        .iter()
        .find(|(start, ..)| begins(&pair.section, start))
        .filter(|(start, ..)| !is_other(start));
    match known {
        Some((_, noun, true)) => records(pair, noun, section, pair.kind != RowKind::Symbol),
        Some((_, noun, false)) => vec![cause(noun, section, pair.difference(), false)],
        None if is_code => {
            vec![cause("instructions", section, pair.difference(), false)]
        }
        None => vec![cause("", section, pair.difference(), false)],
    }
}

/// Whether a section's name is that, or begins with it and a dot.
fn begins(section: &str, start: &str) -> bool {
    let rest = section.strip_prefix(start);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_', 'a']))
        || (start == ".debug" && rest.is_some())
}

/// A table: what its records' size makes, and what their number makes.
fn records(pair: &Pair, noun: &str, place: String, is_whole: bool) -> Vec<Cause> {
    let [a, b] = pair.sides;
    let is_known = is_whole && a.record > 0 && b.record > 0 && a.record != b.record;
    let by_size = if is_known { a.count as i64 * (b.record as i64 - a.record as i64) } else { 0 };
    let by_number = pair.difference() - by_size;
    let mut causes = Vec::new();
    if by_size != 0 {
        let reason = format!("{noun}: {} instead of {} bytes each", b.record, a.record);
        causes.push(Cause { reason, place: place.clone(), bytes: by_size, is_counted: true });
    }
    if by_number != 0 {
        let reason = match is_known || (a.record == b.record && a.record > 0) || a.count == 0 || b.count == 0
        {
            true => format!("number of {noun}"),
            false => noun.to_owned(),
        };
        causes.push(Cause { reason, place, bytes: by_number, is_counted: is_whole });
    }
    causes
}
