//! Memory of programs that mostly sleep, read over time. These tests run beside each other (`laboratory::alone::asleep`): they are
//! in one module, since the test harness starts tests in the order of their names.

mod allocator;
mod explain_memory;
mod memory;
mod sharing;
