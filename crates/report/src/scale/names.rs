//! What tables and cells are called.

use widthwise_experiment::scale::Cell;
use widthwise_verdict::scaling_summary::Table;

/// `x86-64 · fork · cores`.
pub(super) fn title(table: &Table) -> String {
    format!("{} · {} · {}", table.variant, table.mode, table.placement)
}

/// `4 children of x32 (cores)`.
pub(super) fn cell_name(cell: &Cell) -> String {
    let noun = if cell.processes == 1 { cell.mode.singular() } else { cell.mode.noun() };
    format!("{} {noun} of {} ({})", cell.processes, cell.variant, cell.placement)
}
