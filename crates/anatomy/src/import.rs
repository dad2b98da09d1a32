//! Heap profiles in the formats of other tools: heaptrack, massif, pprof and folded stacks. Pprof and folded stacks are also
//! written here, so that both directions of a format stand in one file.

pub mod folded;
pub mod heaptrack;
pub mod massif;
pub mod pprof;
pub mod recording;
