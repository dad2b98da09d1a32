//! Archives as files: opened, locked, killed, damaged, of earlier versions.

mod sample;

mod documentation;
mod earlier_versions;
mod full;
mod hostile;
mod keeping;
mod killed;
mod lock;
mod opening;
mod read_only;
mod series;
