//! What debug information (DWARF 2 to 5) says of a program's code and data: which compile unit an address is of, and where the
//! compiler has put copies of functions (inlining), and where functions begin in the source. The layout of types is read in [`crate::layout`].

mod beginnings;
mod contributions;
mod model;
mod names;
mod scopes;
mod sections;
mod units;

pub use beginnings::beginnings;
pub use model::{Contribution, InlinedRange, Unit, Units};
pub use sections::Sections;
pub use units::read;
