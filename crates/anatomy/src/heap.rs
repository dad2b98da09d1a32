//! A program's allocations, their stacks and lifetimes, from the logs of `runtime/heap`.

pub mod completeness;
pub mod composition;
pub mod decoder;
pub mod executed;
pub mod headers;
pub mod history;
pub mod lifetimes;
pub mod log;
pub mod profile;
pub mod rss_against_heap;
pub mod site;
pub mod sizes;
pub mod stacks;
pub mod symbols;
pub mod types;
mod unlinked;
pub mod wrappers;

pub use composition::Composition;
pub use decoder::{Exec, ExecState};
pub use history::{Blocks, History, Moment};
pub use lifetimes::Lifetimes;
pub use log::{Header, LogError, LogFile, Loss, Process};
pub use profile::{Column, Frame, Gathering, Profile, Sample, Values};
pub use stacks::{CodeAddress, ModuleId, StackId, Stacks};
pub use symbols::{StackValues, Symbols};
