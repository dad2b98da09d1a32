//! The archive: one folder per campaign, and in it a SQLite file with every raw sample.
//!
//! The archive stores measurements; everything derived (verdicts, tables, charts) can be recomputed. A run is written
//! in one transaction when it has ended and never changed: triggers in the file refuse changes.
//!
//! **After `kill -9` nothing is lost and nothing counts twice.** The file is in WAL mode with `synchronous=NORMAL`: a
//! committed transaction is in the kernel's page cache, which survives the process. After a power failure the last
//! rounds may be missing, but the file is undamaged (<https://sqlite.org/pragma.html#pragma_synchronous>). In return, a
//! run costs well under 100 µs.
//!
//! **One process writes, any number read.** [`Archive::create`] and [`Archive::resume`] hold an exclusive lock for as
//! long as the [`Archive`] lives; [`Archive::read`] takes none and sees every run committed so far.
//!
//! Do not open `campaign.sqlite` by other means in a process that has an [`Archive`] open: closing any descriptor of a
//! file drops all of the process's POSIX locks on it, SQLite's among them
//! (<https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>).

mod campaign;
mod database;
mod earlier_spec;
mod error;
mod folder;
mod group_run;
mod lock;
mod metadata;
mod migrate;
mod open;
mod reader;
mod round_layout;
mod runtime_calls;
mod schema;
mod series;
mod slug;
mod writer;

pub use database::Archive;
pub use error::ArchiveError;
pub use metadata::{Metadata, Scaling, VariantRow};
pub use reader::Samples;
pub use runtime_calls::RuntimeCalls;
pub use schema::VERSION;
pub use slug::slug;
pub use writer::{BuildNote, ProcessNote};
