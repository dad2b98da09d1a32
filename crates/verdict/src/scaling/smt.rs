//! The yield of the second process on a core, in the three ways that innocente-2012 allows.
//!
//! The paper's +26 % and +63 % follow from the time of an event. Elapsed time gives +20 % and +49 %, and less the
//! sequential part +22 % and +53 %. All three are valid and reported.

use super::figure::{ratio, usable, Figure, Terms, Unfitted};

/// One round: the same work on the cores alone, and on every CPU.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SmtRound {
    /// One process on each core.
    pub cores: Span,
    /// One process on each CPU.
    pub cpus: Span,
}

/// The times of one such run; what was not measured is absent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Span {
    /// CPU time of an event, as the processes themselves see it.
    pub event: Option<f64>,
    /// Elapsed time of the whole run, in the same unit as `sequential`.
    pub elapsed: Option<f64>,
    /// The sequential part of it: the parent's elapsed time at the fork in this run, or an estimate (whose uncertainty
    /// the interval then leaves out).
    pub sequential: Option<f64>,
}

/// How much more throughput every CPU gives than the cores alone, as a fraction: 0.26 is 26 % more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SmtYield {
    /// By the time of an event: (N₂ / N₁) · event₁ / event₂ − 1.
    pub by_event: Result<Figure, Unfitted>,
    /// By elapsed time: elapsed₁ / elapsed₂ − 1.
    pub by_elapsed: Result<Figure, Unfitted>,
    /// By elapsed time less the sequential part.
    pub by_elapsed_less_sequential: Result<Figure, Unfitted>,
}

/// The yield of `cpus` processes over `cores` processes that together do the same work.
pub fn smt_yield(rounds: &[SmtRound], cores: usize, cpus: usize, terms: Terms) -> SmtYield {
    let more = cpus as f64 / cores.max(1) as f64;
    let yielded = |of: fn(&Span) -> Option<f64>, factor: f64, name: &str| {
        let measured = |span: &Span| of(span).filter(|value| usable(*value));
        let pairs: Vec<(f64, f64)> = rounds
            .iter()
            .filter_map(|round| Some((measured(&round.cores)?, measured(&round.cpus)?)))
            .collect();
        ratio(&pairs, terms, &["SMT", name]).map(|figure| figure.map(|ratio| factor * ratio - 1.0))
    };
    let parallel = |span: &Span| Some(span.elapsed? - span.sequential?);
    let less = yielded(parallel, 1.0, "parallel");
    // Both were measured, and the difference was not above 0.
    let both = rounds.iter().any(|round| parallel(&round.cores).is_some() && parallel(&round.cpus).is_some());
    SmtYield {
        by_event: yielded(|span| span.event, more, "event"),
        by_elapsed: yielded(|span| span.elapsed, 1.0, "elapsed"),
        by_elapsed_less_sequential: less.map_err(|why| if both { Unfitted::AllSequential } else { why }),
    }
}
