//! Debian source packages, fetched and unpacked without touching the system's apt configuration.
//!
//! apt-get(8) fetches, and checks every signature and digest. Its lists, state and cache are under the
//! caller's cache folder: the system's own are neither read nor written, so that the right to write that
//! folder suffices. dpkg-source(1) unpacks and applies Debian's patches (source format 3.0; format 1.0 leaves
//! that to each package's build).
//!
//! ```text
//! CACHE/debian/index/      debian.sources, lists/, state/, cache/, lock; `refreshed` is as old as the index
//! CACHE/debian/ARCHITECTURE/   the same for binary packages, of which kernels are fetched
//! CACHE/debian/sources/    PACKAGE/VERSION/: complete if it exists, since it arrives by rename(2)
//! ```

mod apt_sources;
mod binary;
mod error;
mod fetch;
mod index;
mod lock;
mod names;
mod records;
mod tools;
mod unpacked;
mod version;

pub use binary::{fetch_kernel, FetchedKernel};
pub use error::DebianError;
pub use fetch::fetch;
pub use unpacked::Fetched;
