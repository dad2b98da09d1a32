//! The order of the runs in a round: pure, and the same for the same seed, so that a campaign can be resumed.

use widthwise_experiment::rng::Rng;

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
}

/// A fresh random order of all participants for the round of that number.
pub fn round(seed: u64, number: u32, participants: usize) -> Vec<Slot> {
    let mut rng = Rng::named(seed, &["schedule", &number.to_string()]);
    let mut order: Vec<usize> = (0..participants).collect();
    // Fisher and Yates, from the end.
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last + 1));
    }
    order.into_iter().map(|participant| Slot { participant, padding: rng.below(MOST_PADDING) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_participant_once() {
        for number in 0..50 {
            let mut seen: Vec<usize> = round(7, number, 5).iter().map(|slot| slot.participant).collect();
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2, 3, 4]);
        }
    }

    /// A campaign that is resumed must get the orders that it would have had: this test fails if they change.
    #[test]
    fn orders_and_paddings_never_change() {
        let golden: Vec<Vec<(usize, usize)>> = (0..3)
            .map(|number| round(7, number, 4).iter().map(|slot| (slot.participant, slot.padding)).collect())
            .collect();
        assert_eq!(
            golden,
            [
                [(3, 2147), (0, 3142), (2, 3974), (1, 210)],
                [(3, 3508), (0, 1948), (1, 3561), (2, 358)],
                [(1, 1718), (0, 3995), (3, 190), (2, 1780)]
            ]
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_order_and_another_seed_another() {
        let rounds = |seed| (0..20).map(|n| round(seed, n, 4)).collect::<Vec<_>>();
        assert_eq!(rounds(1), rounds(1));
        assert_ne!(rounds(1), rounds(2));
    }

    #[test]
    fn every_participant_is_equally_likely_at_every_position() {
        let mut places = [[0u32; 4]; 4];
        for number in 0..4000 {
            for (place, slot) in round(3, number, 4).iter().enumerate() {
                places[slot.participant][place] += 1;
            }
        }
        // Binomial(4000, 1/4): mean 1000, standard deviation 27; five of them either way.
        assert!(places.iter().flatten().all(|n| (860..1140).contains(n)), "{places:?}");
    }
}
