//! The definition of an experiment: a program, its axes, its metrics and its stopping rule.
//!
//! This crate is pure. It starts no process, reads no clock and opens no file. Its input is the text of a spec file and
//! the command line; its output is an [`Experiment`] or an error that names the line or the flag. All other crates use
//! its types.
//!
//! [`spec::parse`] reads a spec file into a [`Request`]; the command line fills in another;
//! [`Request::overlay`] lays one over the other, and [`Request::resolve`] makes the experiment of it.

pub mod abi;
pub mod allocator;
pub mod axis;
pub mod bytes;
pub mod cache_model;
pub mod cpus;
pub mod duration;
pub mod emulation;
pub mod estimator;
pub mod flag_set;
pub mod kernel;
pub mod location;
mod matrix;
pub mod memory;
pub mod metric;
pub mod model;
pub mod names;
pub mod outcome;
pub mod percentage;
pub mod placeholder;
pub mod point;
pub mod reported_metric;
pub mod request;
pub mod request_error;
pub mod resolve;
pub mod rng;
pub mod role;
pub mod scale;
pub mod schedule;
pub mod source;
pub mod spec;
pub mod spec_text;
pub mod suggestion;
pub mod thp;
pub mod units;

pub use abi::Abi;
pub use axis::Axis;
pub use cache_model::CacheModel;
pub use kernel::Kernel;
pub use location::{Located, SourceLocation};
pub use matrix::{DEFAULT_ENV, MOST_VARIANTS};
pub use metric::Metric;
pub use model::Experiment;
pub use request::Request;
pub use request_error::{RequestError, RequestErrorKind, SpecError};
pub use resolve::Facts;
pub use role::{Role, VariantStatus};
pub use source::ProgramSource;
pub use spec_text::spec_text;
