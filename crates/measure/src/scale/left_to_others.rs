//! The CPU time that others can have taken from the members of a run at most: what the members left of their CPUs while
//! they were there. Others that ran before or after, or on other CPUs, took nothing from them.

use std::collections::BTreeSet;

/// What a member had of its CPUs; nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Use {
    /// Where it could run.
    pub cpus: BTreeSet<u32>,
    /// From when to when it was there.
    pub life: (u64, u64),
    /// For how long it ran.
    pub ran_ns: u64,
    /// For how long it waited for a CPU.
    pub waited_ns: u64,
    /// For how long it may have been on other CPUs: until it was found.
    pub elsewhere_ns: u64,
}

/// How much of their waiting can have been for others. Members on the same CPUs waited for each other as long as one of them ran. Where
/// a member ran until it was found is not known, but it was on one of these CPUs.
pub(super) fn most_lost(members: Vec<Use>) -> u64 {
    let mut groups: Vec<Use> = Vec::new();
    for mut member in members {
        let (same, apart) = groups.into_iter().partition(|group| !group.cpus.is_disjoint(&member.cpus));
        groups = apart;
        same.into_iter().for_each(|group: Use| member.join(group));
        groups.push(member);
    }
    let sum = |of: fn(&Use) -> u64| groups.iter().map(of).sum::<u64>();
    let of_all =
        sum(|group| group.waited_ns).min(sum(Use::there_ns).saturating_sub(sum(|group| group.ran_ns)));
    sum(Use::most_lost).min(of_all)
}

impl Use {
    fn join(&mut self, other: Use) {
        self.cpus.extend(other.cpus);
        self.life = (self.life.0.min(other.life.0), self.life.1.max(other.life.1));
        self.ran_ns += other.ran_ns;
        self.waited_ns += other.waited_ns;
        self.elsewhere_ns += other.elsewhere_ns;
    }

    /// The time of its CPUs while it was there.
    fn there_ns(&self) -> u64 {
        self.life.1.saturating_sub(self.life.0) * self.cpus.len() as u64
    }

    fn most_lost(&self) -> u64 {
        self.waited_ns.min(self.there_ns().saturating_sub(self.ran_ns) + self.elsewhere_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(cpu: u32, life: (u64, u64), ran_ns: u64, waited_ns: u64) -> Use {
        Use { cpus: BTreeSet::from([cpu]), life, ran_ns, waited_ns, elsewhere_ns: 0 }
    }

    #[test]
    fn members_that_fill_their_cpu_lost_nothing_to_others() {
        // Two on CPU 1, one after the other's end.
        assert_eq!(most_lost(vec![member(1, (0, 100), 50, 50), member(1, (0, 102), 50, 51)]), 2);
        // CPU 0 is busy with others; no member wants it.
        let waiting =
            vec![member(0, (0, 100), 1, 0), member(1, (0, 100), 50, 49), member(1, (0, 100), 50, 49)];
        assert_eq!(most_lost(waiting), 0);
    }

    #[test]
    fn what_others_had_between_members_is_lost() {
        // Others had half of the CPU.
        assert_eq!(most_lost(vec![member(0, (10, 210), 50, 150), member(0, (10, 210), 50, 150)]), 100);
        let apart = vec![member(0, (0, 200), 100, 100), member(1, (0, 100), 100, 0)];
        assert_eq!(most_lost(apart), 100);
        // Found on CPU 0 when it had run on CPU 1 for 20: others had CPU 0 meanwhile.
        let late = Use { elsewhere_ns: 20, ..member(0, (0, 200), 190, 40) };
        assert_eq!(most_lost(vec![late.clone(), member(1, (0, 200), 170, 0)]), 30);
        // Both CPUs were theirs.
        assert_eq!(most_lost(vec![late, member(1, (0, 200), 210, 40)]), 0);
    }

    #[test]
    fn members_with_a_common_cpu_share_all_of_theirs() {
        let both = Use { cpus: BTreeSet::from([0, 1]), ..member(0, (0, 100), 50, 0) };
        assert_eq!(most_lost(vec![member(0, (0, 100), 60, 40), member(1, (0, 100), 60, 40), both]), 30);
    }
}
