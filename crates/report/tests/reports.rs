//! Every format of a report, from campaigns that are written here.

#[path = "../../../tests/browser/mod.rs"]
mod browser;
mod campaign;
#[path = "../../../tests/schema/mod.rs"]
mod schema;

mod cpu_time;
mod csv;
mod explanation;
mod few_rounds;
mod flame;
mod heap;
mod html;
mod json;
mod markdown;
mod memory;
mod output_agreement;
mod scaling;
mod terminal;
mod x32_runtime;
