//! The heap as the process sees it: untimed runs of each variant with the recorder preloaded, in a separate
//! pass. Each variant is recorded more than once: variation between its recordings is no difference between
//! variants.

mod log_file;
mod packing;
pub mod record;
pub mod recorder;
pub mod recording;
pub mod repeats;
mod system;

pub use record::record;
pub use recording::{LargestReading, Recording, SystemMoment, ENDING};
pub use repeats::{Repeats, FEWEST, MOST};
