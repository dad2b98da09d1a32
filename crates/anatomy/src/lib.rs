//! Why two variants of a program differ. Pure: files in, facts out.

pub mod heap;
pub mod import;
