//! Builds: each variant has its own folder, built by the user's command, cached by content, with its log.
//!
//! ```text
//! CACHE/builds/x32_gcc-12-1f2e3d…/   one build; the name ends in the digest of all its inputs
//!     tree/         the build folder: a copy of the source's folder, in which the command runs
//!     profile/      profiles of a profile-guided build
//!     log           what the command printed
//!     dependencies  what the compiler read, if the source is a single file
//!     done          written last: a folder without it is incomplete and is built anew
//! ```

mod cache;
mod command;
mod copy;
mod dependencies;
mod failure_reason;
pub mod layout;
mod order;
mod profile;
pub mod source;
mod stage;
mod static_libraries;
pub mod toolchain;

pub use cache::{build, folder};
pub use order::{BuildError, Built, Order, Training};
