//! Heap logs, which `runtime/heap` writes: their records, and what each process had allocated at every moment. Pure: bytes in, facts
//! out. What needs the program's own files (names, lines, types) is in `widthwise-anatomy`.

pub mod decoder;
pub mod executed;
pub mod headers;
pub mod history;
pub mod lifetimes;
pub mod log;
pub mod profile;
pub mod sizes;
pub mod stacks;

pub use decoder::{Exec, ExecState};
pub use history::{Blocks, History, Moment};
pub use lifetimes::Lifetimes;
pub use log::{Header, LogError, LogFile, Loss, Process};
pub use profile::{Column, Frame, Gathering, Profile, Sample, Values};
pub use stacks::{CodeAddress, ModuleId, StackId, Stacks};
