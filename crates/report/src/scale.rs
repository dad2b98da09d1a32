//! Shows a scaling campaign: tables by number of processes, then sentences, then remarks. On a terminal, as one
//! HTML page, as Markdown and as CSV.

mod columns;
mod comparison;
mod csv;
mod figures;
mod html;
mod markdown;
mod model;
mod names;
mod sentences;
mod terminal;

pub(crate) use comparison::judged;
pub use csv::write as csv;
pub use html::page as html;
pub use markdown::render as markdown;
pub use model::Scaling;
pub use terminal::render as terminal;
