//! What a program asked of its allocator, where, and for how long: out of the logs of `runtime/heap`.

pub mod completeness;
pub mod decoder;
pub mod discrepancy;
pub mod executed;
pub mod folded;
pub mod headers;
pub mod heaptrack;
pub mod history;
pub mod lives;
pub mod log;
pub mod massif;
pub mod naming;
pub mod peer;
pub mod pprof;
pub mod profile;
pub mod site;
pub mod stacks;
pub mod symbols;
pub mod wrappers;

pub use decoder::{Exec, ExecState};
pub use history::{Blocks, History, Moment};
pub use lives::Lives;
pub use log::{Header, LogError, LogFile, Loss, Process};
pub use peer::{Peer, Point};
pub use profile::{Column, Frame, Gathering, Profile, Sample, Values};
pub use stacks::{CodeAddress, ModuleId, StackId, Stacks};
pub use symbols::{StackValues, Symbols};
