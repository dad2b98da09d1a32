//! Specs and requests: what they ask for, and what is wrong with them.

mod asked;

mod defaults;
mod emulation;
mod matrix;
mod mutated_specs;
mod overlay;
mod request_errors;
mod round_trip;
mod spec_errors;
