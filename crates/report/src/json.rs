//! A campaign as JSON, for programs: one envelope for every kind of campaign, and a body for each kind.
//!
//! `docs/json.md` and `docs/schema/report-3.json` describe each field; a change that could break a reader raises
//! [`envelope::SCHEMA`].

pub mod comparison;
pub mod envelope;
pub mod memory;
pub mod scaling;
