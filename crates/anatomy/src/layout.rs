//! The layout of a program's structures, classes and unions, from its debug information (DWARF 2 to 5), and why it is another in
//! another ABI.

mod cause;
mod comparison;
mod compressed;
pub mod drawing;
mod gather;
mod lines;
mod model;
pub(crate) mod object_file;
mod order;
pub(crate) mod program;
mod reader;
mod segments;
mod unit;
mod virtual_bases;

pub(crate) use cause::innermost_typedef;
pub use cause::{Cause, Differ, Share};
pub use comparison::{compare, difference, Comparison, TypeDifference, Weights};
pub use gather::{read, read_bytes};
pub use model::{
    Aggregate, Bits, Destructor, Kind, LayoutError, Layouts, Location, Member, Role, Type, TypeId, Unread,
};
pub use order::{find, Found, Order};
pub use program::missing_split;
pub use segments::{Part, Piece, Segment};
