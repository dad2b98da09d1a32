//! The order of the runs in a round: pure, and the same for the same seed, so that a campaign can be resumed.

use crate::rng::Rng;

/// Bytes of environment padding are drawn from `0..MOST_PADDING`: one page, after which stack positions
/// repeat (Mytkowicz et al. 2009; hyperfine draws from the same range).
pub const MOST_PADDING: usize = 4096;

/// One run to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Index of the participant.
    pub participant: usize,
    /// Bytes by which the environment is padded.
    pub padding: usize,
    /// Which of its layouts the participant has in this run.
    pub layout: u32,
}

/// In which order the participants run in a round.
///
/// In neither does a variant have a position of its own. A position's effect changes slowly, and differs from round to round
/// for a variant; if the variant always ran between two runs of the baseline, it would be the same for many rounds,
/// and no interval would cover it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Every participant is equally often at each position, and every second round has the opposite order: a drift that is
    /// linear over both cancels. Only for successive runs.
    Balanced,
    /// Every order is equally likely, independent of the other rounds. The default.
    Random,
}

impl Order {
    /// Both.
    pub const ALL: [Order; 2] = [Order::Balanced, Order::Random];

    /// The name in spec files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Order::Balanced => "balanced",
            Order::Random => "random",
        }
    }
}

/// Which orders the rounds of a campaign have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// The seed of orders and paddings.
    pub seed: u64,
    /// How many participants there are.
    pub participants: usize,
    /// In which orders they run.
    pub order: Order,
    /// How many layouts each participant has: 0 or 1, if not several.
    pub layouts: u32,
    /// For how many rounds in a row a layout is kept.
    pub rounds_a_layout: u32,
}

impl Schedule {
    /// All participants, once each, for the round of that number.
    ///
    /// In a balanced order, rounds come in twos, of which the second has the opposite order. The next two begin with the second
    /// participant of these, and end with the first, until every participant was at each position.
    pub fn round(&self, number: u32) -> Vec<Slot> {
        let order = match self.order {
            Order::Balanced => self.balanced(number),
            Order::Random => self.shuffled(number),
        };
        let layout = self.layout(number);
        let mut rng = Rng::named(self.seed, &["padding", &number.to_string()]);
        let slot = |participant| Slot { participant, padding: rng.below(MOST_PADDING), layout };
        order.into_iter().map(slot).collect()
    }

    /// The layout that all participants have in the round of that number, from 0. All layouts come, in a random order,
    /// before one comes again.
    pub fn layout(&self, number: u32) -> u32 {
        if self.layouts < 2 {
            return 0;
        }
        let step = number / self.rounds_a_layout.max(1);
        let (turn, place) = (step / self.layouts, step % self.layouts);
        let mut layouts: Vec<usize> = (0..self.layouts as usize).collect();
        shuffle(&mut layouts, &mut Rng::named(self.seed, &["layout", &turn.to_string()]));
        layouts[place as usize] as u32
    }

    fn balanced(&self, number: u32) -> Vec<usize> {
        let (pair, turns) = (number / 2, self.participants.max(1) as u32);
        let mut order = self.shuffled(pair / turns);
        order.rotate_left((pair % turns) as usize);
        if number % 2 == 1 {
            order.reverse();
        }
        order
    }

    fn shuffled(&self, number: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.participants).collect();
        shuffle(&mut order, &mut Rng::named(self.seed, &["schedule", &number.to_string()]));
        order
    }
}

/// Fisher and Yates, from the end.
fn shuffle(values: &mut [usize], rng: &mut Rng) {
    for last in (1..values.len()).rev() {
        values.swap(last, rng.below(last + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(seed: u64, participants: usize, order: Order) -> Schedule {
        Schedule { seed, participants, order, layouts: 1, rounds_a_layout: 2 }
    }

    fn orders(schedule: Schedule, rounds: u32) -> Vec<Vec<usize>> {
        (0..rounds)
            .map(|number| schedule.round(number).iter().map(|slot| slot.participant).collect())
            .collect()
    }

    #[test]
    fn every_round_has_every_participant_once() {
        for participants in 2..70 {
            for kind in Order::ALL {
                for mut order in orders(schedule(7, participants, kind), 10) {
                    order.sort_unstable();
                    assert!(order.into_iter().eq(0..participants));
                }
            }
        }
    }

    /// A campaign that is resumed must get the orders that it would have had: this test fails if they change.
    #[test]
    fn orders_and_paddings_never_change() {
        let golden = |order| -> Vec<Vec<(usize, usize)>> {
            let slots = |number| schedule(7, 4, order).round(number);
            (0..3)
                .map(|number| slots(number).iter().map(|slot| (slot.participant, slot.padding)).collect())
                .collect()
        };
        assert_eq!(
            golden(Order::Balanced),
            [
                [(3, 3854), (0, 2560), (2, 126), (1, 740)],
                [(1, 3223), (2, 1484), (0, 4042), (3, 1991)],
                [(0, 2675), (2, 898), (1, 2806), (3, 1316)]
            ]
        );
        assert_eq!(
            golden(Order::Random),
            [
                [(3, 3854), (0, 2560), (2, 126), (1, 740)],
                [(3, 3223), (0, 1484), (1, 4042), (2, 1991)],
                [(1, 2675), (0, 898), (3, 2806), (2, 1316)]
            ]
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_order_and_another_seed_another() {
        for order in Order::ALL {
            let rounds = |seed| (0..20).map(|n| schedule(seed, 4, order).round(n)).collect::<Vec<_>>();
            assert_eq!(rounds(1), rounds(1));
            assert_ne!(rounds(1), rounds(2));
        }
    }

    #[test]
    fn in_a_random_order_every_participant_is_equally_likely_at_every_position() {
        let mut places = [[0u32; 4]; 4];
        for order in orders(schedule(3, 4, Order::Random), 4000) {
            for (place, participant) in order.into_iter().enumerate() {
                places[participant][place] += 1;
            }
        }
        // Binomial(4000, 1/4): mean 1000, standard deviation 27; five of them either way.
        assert!(places.iter().flatten().all(|n| (860..1140).contains(n)), "{places:?}");
    }

    #[test]
    fn in_a_balanced_order_every_participant_is_at_every_position_twice_before_one_is_there_again() {
        for participants in 2..12 {
            let orders = orders(schedule(5, participants, Order::Balanced), 20 * participants as u32);
            for block in orders.chunks(2 * participants) {
                for place in 0..participants {
                    let mut there: Vec<usize> = block.iter().map(|order| order[place]).collect();
                    there.sort_unstable();
                    assert!(there.into_iter().eq((0..2 * participants).map(|i| i / 2)), "{block:?}");
                }
            }
        }
    }

    #[test]
    fn a_linear_drift_cancels_over_two_rounds_in_every_comparison_with_the_baseline() {
        for participants in 3..40 {
            let orders = orders(schedule(11, participants, Order::Balanced), 60);
            for pair in orders.chunks(2) {
                let time = |one: usize| -> usize {
                    let place =
                        |order: &Vec<usize>| order.iter().position(|other| *other == one).unwrap_or(0);
                    place(&pair[0]) + place(&pair[1])
                };
                assert!((0..participants).all(|one| time(one) == participants - 1));
            }
        }
    }

    #[test]
    fn every_layout_comes_once_before_one_comes_again_and_stays_for_a_pair_of_rounds() {
        for layouts in [2, 3, 8] {
            let schedule = Schedule { layouts, ..schedule(3, 4, Order::Balanced) };
            let of_pairs: Vec<u32> = (0..5 * layouts).map(|pair| schedule.layout(2 * pair)).collect();
            assert!((0..10 * layouts).all(|round| schedule.layout(round) == of_pairs[round as usize / 2]));
            for turn in of_pairs.chunks(layouts as usize) {
                let mut sorted = turn.to_vec();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..layouts));
            }
            let turns: Vec<&[u32]> = of_pairs.chunks(layouts as usize).collect();
            assert!(turns.iter().any(|turn| turn != &turns[0]), "the order is random");
            assert!(schedule.round(5).iter().all(|slot| slot.layout == schedule.layout(5)));
        }
        assert!((0..20).all(|round| schedule(3, 4, Order::Random).layout(round) == 0));
    }
}
