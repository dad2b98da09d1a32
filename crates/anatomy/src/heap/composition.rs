//! What a process tree has allocated at the moment at which that is most, by where the allocator has it.

use crate::heap::rss_against_heap::Course;
use widthwise_heap_log::history::Moment;

/// Memory that is allocated at one moment, over all processes of a tree. Bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Composition {
    /// Live blocks.
    pub blocks: u64,
    /// Their bytes, as requested.
    pub requested: u64,
    /// The allocator's chunks in its main arena, which is the heap segment.
    pub main: u64,
    /// Chunks with a mapping of their own.
    pub mapped: u64,
    /// Chunks in other arenas.
    pub arenas: u64,
    /// Private memory that the program maps itself, files left out.
    pub own: u64,
}

impl Composition {
    /// What the allocator uses for the live blocks.
    pub fn chunks(&self) -> u64 {
        self.main.saturating_add(self.mapped).saturating_add(self.arenas)
    }

    /// Headers and rounding: what the allocator uses for the blocks and the program has not requested.
    pub fn overhead(&self) -> u64 {
        self.chunks().saturating_sub(self.requested)
    }

    /// Live blocks, and what the program maps itself.
    fn allocated(&self) -> u64 {
        self.requested.saturating_add(self.own)
    }

    fn of(moment: &Moment) -> Composition {
        Composition {
            blocks: moment.count,
            requested: moment.bytes,
            main: moment.main_bytes,
            mapped: moment.mapped_bytes,
            arenas: moment.arena_bytes,
            own: moment.own_bytes,
        }
    }

    /// One process's share of a sum is replaced. The sums saturate: a hostile log may hold any number of bytes.
    fn change(&mut self, before: &Composition, now: &Composition) {
        let pairs = [
            (&mut self.blocks, before.blocks, now.blocks),
            (&mut self.requested, before.requested, now.requested),
            (&mut self.main, before.main, now.main),
            (&mut self.mapped, before.mapped, now.mapped),
            (&mut self.arenas, before.arenas, now.arenas),
            (&mut self.own, before.own, now.own),
        ];
        for (sum, before, now) in pairs {
            *sum = sum.saturating_sub(before).saturating_add(now);
        }
    }

    /// The first moment at which the processes together have most allocated; none without any moment. A process that has
    /// ended has nothing.
    pub fn at_peak(courses: &[Course]) -> Option<Composition> {
        // When, whose, and what there is from then on.
        let mut steps: Vec<(u64, usize, Composition)> = Vec::new();
        for (course, of) in courses.iter().enumerate() {
            let at = |moment: &Moment| of.began_ns.saturating_add(moment.time_ns);
            steps.extend(of.moments.iter().map(|moment| (at(moment), course, Composition::of(moment))));
            let last = of.moments.last().map_or(0, at);
            steps.extend(of.ended_ns.map(|ended_ns| (ended_ns.max(last), course, Composition::default())));
        }
        // Stable: moments of one process at one time keep their order.
        steps.sort_by_key(|(at_ns, ..)| *at_ns);
        let mut current = vec![Composition::default(); courses.len()];
        let mut sum = Composition::default();
        let mut most: Option<Composition> = None;
        for (_, course, now) in steps {
            sum.change(&current[course], &now);
            current[course] = now;
            if most.is_none_or(|most| sum.allocated() > most.allocated()) {
                most = Some(sum);
            }
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(time_ns: u64, bytes: u64, own_bytes: u64) -> Moment {
        Moment { time_ns, count: 1, bytes, main_bytes: bytes + 8, own_bytes, ..Moment::default() }
    }

    fn course(began_ns: u64, ended_ns: Option<u64>, moments: &[Moment]) -> Course<'_> {
        Course { began_ns, ended_ns, moments }
    }

    #[test]
    fn the_peak_counts_blocks_and_own_mappings_together() {
        let moments = [moment(0, 100, 0), moment(1, 40, 90), moment(2, 10, 90)];
        let peak = Composition::at_peak(&[course(0, None, &moments)]).unwrap();
        assert_eq!((peak.requested, peak.own, peak.overhead()), (40, 90, 8));
    }

    #[test]
    fn processes_count_together_while_they_live() {
        let (parent, child) = ([moment(0, 10, 0), moment(50, 60, 0)], [moment(0, 70, 0)]);
        let both = |ended_ns| {
            let courses = [course(0, None, &parent), course(10, ended_ns, &child)];
            Composition::at_peak(&courses).unwrap()
        };
        assert_eq!((both(None).requested, both(None).blocks), (130, 2));
        assert_eq!(both(Some(40)).requested, 80);
    }

    #[test]
    fn without_a_moment_there_is_no_peak() {
        assert_eq!(Composition::at_peak(&[]), None);
        assert_eq!(Composition::at_peak(&[course(0, Some(1), &[])]), Some(Composition::default()));
    }
}
