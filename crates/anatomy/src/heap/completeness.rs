//! Whether a recording of a process is complete. An incomplete one has lower bounds for sums and peaks, which are not compared.

use widthwise_heap_log::decoder::ExecState;
use widthwise_heap_log::history::History;
use widthwise_heap_log::log::Header;

/// Why the recording of a process is incomplete, one sentence each without its full stop; nothing where it is complete.
pub fn shortcomings(header: &Header, history: &History) -> Vec<String> {
    let process = header.process;
    let mut found = Vec::new();
    if header.own_malloc {
        found.push(format!("process {process} has a malloc of its own, which is not recorded"));
    }
    match header.lost.total() {
        0 => {}
        1 => found.push(format!("1 event of process {process} was not recorded")),
        lost => found.push(format!("{lost} events of process {process} were not recorded")),
    }
    if let Some(fault) = history.faults.first() {
        found.push(format!("the records of process {process} are damaged: {fault}"));
    }
    if !header.ended && !executes(header, history) {
        found.push(format!("process {process} was killed, or had not ended yet"));
    }
    found
}

/// Whether the process ended by executing another program.
fn executes(header: &Header, history: &History) -> bool {
    let own = history.execs.iter().rev().find(|exec| exec.process == header.process);
    own.is_some_and(|exec| exec.state == ExecState::AboutTo)
}
