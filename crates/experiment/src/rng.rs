//! Reproducible random numbers.
//!
//! The generator is written out here, not taken from a crate, because an archive must give the same intervals for as
//! long as it can be read: library generators reserve the right to change (`rand::rngs::SmallRng` does). It is
//! xoshiro256++ (Blackman & Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47(4), 2021), seeded
//! through SplitMix64 as its authors advise.

/// A stream of random numbers that a seed and a few names determine.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream that belongs to these names under this seed. Each comparison has its own, so that no verdict
    /// depends on which others were asked for, or in which order.
    pub fn named(seed: u64, names: &[&str]) -> Rng {
        // FNV-1a, with a byte no UTF-8 text contains between the names: ("ab", "c") is not ("a", "bc").
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ seed;
        for name in names {
            for byte in name.bytes().chain(std::iter::once(0xff)) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        Rng::new(hash)
    }

    /// The stream of this seed.
    pub fn new(seed: u64) -> Rng {
        let mut counter = seed;
        let mut split_mix = || {
            counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = counter;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Rng { state: [split_mix(), split_mix(), split_mix(), split_mix()] }
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A whole number below `bound`: the upper half of a 128-bit product, whose bias is below `bound` in 2⁶⁴.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// A number from 0 up to, not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        // The first outputs from the state 1, 2, 3, 4, as the authors' C code gives them.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.bits()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn names_with_the_same_concatenation_have_different_streams() {
        assert_ne!(Rng::named(1, &["ab", "c"]).bits(), Rng::named(1, &["a", "bc"]).bits());
        assert_ne!(Rng::named(1, &["a", "b"]).bits(), Rng::named(2, &["a", "b"]).bits());
        assert_eq!(Rng::named(1, &["a", "b"]).bits(), Rng::named(1, &["a", "b"]).bits());
    }

    #[test]
    fn every_index_below_the_bound_comes_up_about_equally_often() {
        let mut rng = Rng::new(7);
        let mut seen = [0_u32; 7];
        for _ in 0..70_000 {
            seen[rng.below(7)] += 1;
        }
        assert!(seen.iter().all(|&n| (9_500..10_500).contains(&n)), "{seen:?}");
    }
}
