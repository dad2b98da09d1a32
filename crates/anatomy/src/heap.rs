//! A program's allocations, their stacks and lifetimes, from the logs of `runtime/heap`.

mod allocating_functions;
pub mod broken;
pub mod completeness;
pub mod composition;
mod pool_frames;
pub mod pools;
pub mod rss_against_heap;
pub mod site;
pub mod symbols;
pub mod types;
mod unlinked;
pub mod wrappers;

pub use composition::Composition;
pub use symbols::{StackValues, Symbols};
pub use widthwise_heap_log::*;
