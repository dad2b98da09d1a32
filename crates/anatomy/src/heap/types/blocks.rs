//! Blocks of one origin with the types that they may have.

use std::rc::Rc;

use super::found::Found;
use super::program_types::ProgramTypes;
use crate::heap::site::Site;
use widthwise_heap_log::profile::Values;

/// Blocks of one origin.
#[derive(Debug, Clone)]
pub struct Blocks {
    /// The site.
    pub site: Site,
    /// How much.
    pub values: Values,
    /// The type, where it is one.
    pub found: Option<Found>,
    /// The types that are possible, the likeliest first.
    pub candidates: Vec<Found>,
    /// The types of which each block may be one object with something behind it.
    pub with_tails: Vec<Found>,
    /// Whether another call of the line fits the same types, so that the line does not say which of them these are.
    pub is_shared: bool,
    /// The files whose types they may have.
    pub files: Vec<Rc<ProgramTypes>>,
}
