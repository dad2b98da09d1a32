//! Size, code and layout of programs against their files, binutils and pahole.

mod debian;
mod files;
mod instructions;
mod layout;

use crate::section::{Section, Table};
use crate::work_directory::WorkDirectory;

/// Layouts must be read so many times as fast as by pahole.
const FASTER: f64 = 3.0;
/// And with at most this share of its memory.
const MEMORY: f64 = 0.5;
/// Debug information that the layouts are read from is at least so large.
const LARGE: u64 = 100_000_000;

/// Measures all three.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let layout = layout::measure(work_directory)?;
    eprintln!("  {} types", layout.compared);
    let sums = files::measure(work_directory)?;
    eprintln!("  {} files", sums.files);
    let code = instructions::measure(work_directory)?;
    eprintln!("  {} functions", code.functions);
    let mut table = Table::new(["", "widthwise", "peer", "peer's name"]);
    let of = |count: usize, all: usize| format!("{count} of {all}");
    let mut row = |what: &str, own: String, peer: String, name: &str| {
        table.row([what.to_owned(), own, peer, name.to_owned()]);
    };
    row("files whose rows sum to the file", of(sums.exact, sums.files), String::new(), "");
    row("files whose compile units sum to the file", of(sums.units_exact, sums.files), String::new(), "");
    row(
        "files whose functions and inlined copies sum to the code",
        of(sums.code_exact, sums.files),
        String::new(),
        "",
    );
    row(
        "files with the same text, data and bss",
        of(sums.like_size, sums.files),
        sums.files.to_string(),
        "size",
    );
    row(
        "functions with the same instructions",
        of(code.equal, code.functions),
        code.functions.to_string(),
        "objdump -d",
    );
    row(
        "layouts: seconds, 2 threads",
        format!("{:.2}", layout.own.seconds),
        format!("{:.2}", layout.pahole.seconds),
        "pahole --jobs=2",
    );
    row("layouts: peak memory, MiB", layout.own.mib(), layout.pahole.mib(), "pahole --jobs=2");
    row(
        "structures with the same size",
        of(layout.equal, layout.compared),
        layout.compared.to_string(),
        "pahole --sizes",
    );
    row("structures in all", layout.types.to_string(), layout.compared.to_string(), "pahole --sizes");
    let faster = layout.pahole.seconds / layout.own.seconds;
    let memory = layout.own.peak / layout.pahole.peak;
    let is_exact = [sums.exact, sums.units_exact, sums.code_exact, sums.like_size]
        .iter()
        .all(|count| *count == sums.files);
    let reached = is_exact
        && code.equal == code.functions
        && faster >= FASTER
        && memory <= MEMORY
        && layout.missing.is_empty()
        && (work_directory.quick || layout.debug_bytes >= LARGE);
    let mut method = format!(
        "Files: {} of Debian's (programs of /usr/bin from small to large, and the largest shared libraries), and {} of ours in three ABIs, with \
         debug information, position-independent, static and stripped. Instructions: every function with a symbol, of our programs in \
         three ABIs and of libraries. Layouts: {}, with {:.0} MB of debug sections; the \
         median of {} runs of each, in turn, with their output to /dev/null. ",
        sums.debian, sums.files - sums.debian, layout.program, layout.debug_bytes as f64 / 1e6, layout.rounds,
    );
    method.push_str(&layout.reasons());
    method.push_str(&code.reasons());
    Ok(Section {
        bar: format!(
            "the rows, the compile units and the code's origins sum exactly on 30 binaries of Debian and on our programs in three ABIs, stripped or \
             not; text, data and bss are those of `size`; each function has objdump's number of instructions; layouts of a C++ binary with at \
             least 100 MB of debug information are read at least {FASTER:.0} times as fast as by pahole with the same threads, with at most half its memory."
        ),
        method,
        commands: layout.commands.clone(),
        table,
        reached,
        sentence: format!(
            "sums are exact in {} of {} files, {} of {} functions have objdump's instructions, layouts are read {faster:.1} times as fast as by pahole with {:.2} of its memory.",
            sums.exact, sums.files, code.equal, code.functions, memory
        ),
    })
}
