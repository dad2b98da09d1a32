//! One recorded process.

use widthwise_anatomy::heap::{Header, History};

/// A process of a side.
pub(super) struct Recorded {
    pub header: Header,
    /// The number of the process that it was forked from.
    pub forked_from: Option<u32>,
    pub history: History,
}
