//! How a run is made: build, launch, pin, account, compare outputs.
//!
//! Each module uses only modules below it in this list, which begins at the top: [`scale`]; [`passes`] and
//! [`comparison`]; [`rounds`] and [`executor`]; [`plan`]; [`kernel_image`], [`build`]; [`program`]; [`run`]. Below them is the crate `widthwise_proc`.

pub mod build;
pub mod comparison;
pub mod core_lock;
pub mod executor;
pub mod kernel_image;
mod noise_window;
mod output;
pub mod passes;
pub mod plan;
pub mod program;
pub mod rounds;
pub mod run;
pub mod scale;
