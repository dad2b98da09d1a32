//! What the sizes of a stack's blocks have in common.

/// The sizes of some blocks: which sizes of elements divide all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sizes {
    /// Nothing is known, or there are no blocks.
    #[default]
    None,
    /// Every size differs from `one` by a multiple of `step`; 0 if all are equal.
    Known {
        /// The size of one of the blocks.
        one: u64,
        /// The greatest common divisor of the differences.
        step: u64,
    },
}

impl Sizes {
    /// Adds a block.
    pub fn take(&mut self, size: u64) {
        *self = match *self {
            Sizes::None => Sizes::Known { one: size, step: 0 },
            // Most stacks allocate one size.
            Sizes::Known { one, step } if one == size || step == 1 => Sizes::Known { one, step },
            Sizes::Known { one, step } => Sizes::Known { one, step: common(one.abs_diff(size), step) },
        };
    }

    /// Adds the blocks of another stack.
    pub fn add(&mut self, other: Sizes) {
        match (*self, other) {
            (_, Sizes::None) => {}
            (Sizes::None, other) => *self = other,
            (Sizes::Known { one, step }, Sizes::Known { one: other, step: of_other }) => {
                *self = Sizes::Known { one, step: common(common(step, of_other), one.abs_diff(other)) };
            }
        }
    }

    /// The size of every block, if they all have one.
    pub fn only(self) -> Option<u64> {
        match self {
            Sizes::Known { one, step: 0 } => Some(one),
            _ => None,
        }
    }

    /// Whether there are blocks of different sizes.
    pub fn are_several(self) -> bool {
        matches!(self, Sizes::Known { step: 1.., .. })
    }

    /// Whether each block may be a whole number of elements of this size behind a header.
    pub fn are_multiples(self, element: u64, header: u64) -> bool {
        match self {
            Sizes::None => true,
            Sizes::Known { one, step } => {
                one.checked_sub(header).is_some_and(|bytes| bytes.is_multiple_of(element))
                    && step.is_multiple_of(element)
            }
        }
    }
}

/// The greatest common divisor; of 0 and a number, that number.
fn common(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sizes: &[u64]) -> Sizes {
        let mut all = Sizes::default();
        sizes.iter().for_each(|size| all.take(*size));
        all
    }

    #[test]
    fn blocks_of_two_sizes_have_no_size_although_their_mean_is_a_number() {
        let of = |sizes: &[u64]| {
            let mut all = Sizes::default();
            sizes.iter().for_each(|size| all.take(*size));
            all.only()
        };
        assert_eq!((of(&[72, 72]), of(&[800_000, 8_000]), of(&[])), (Some(72), None, None));
    }

    #[test]
    fn elements_divide_every_block() {
        assert!(of(&[]).are_multiples(8, 0));
        assert!(of(&[48, 96, 144]).are_multiples(16, 0));
        // Together 216 bytes, which 8 divides.
        assert!(!of(&[108, 108]).are_multiples(8, 0));
        assert!(!of(&[16, 20, 28]).are_multiples(8, 0));
        assert!(of(&[16, 24, 40]).are_multiples(8, 0) && !of(&[16, 24, 40]).are_multiples(16, 0));
        // `new T[n]` with the length before the elements.
        assert!(of(&[8 + 24, 8 + 72]).are_multiples(24, 8) && !of(&[8 + 24, 8 + 72]).are_multiples(24, 0));
        assert!(!of(&[4]).are_multiples(4, 8));
    }

    #[test]
    fn the_order_of_blocks_and_stacks_makes_no_difference() {
        let all = [24, 24, 120, 72, 264];
        let mut one_after_the_other = of(&all[..2]);
        one_after_the_other.add(of(&all[2..]));
        let mut into_nothing = Sizes::None;
        into_nothing.add(one_after_the_other);
        into_nothing.add(Sizes::None);
        for element in 1..300 {
            let expected = all.iter().all(|size| size % element == 0);
            assert_eq!(of(&all).are_multiples(element, 0), expected, "{element}");
            assert_eq!(into_nothing.are_multiples(element, 0), expected, "{element}");
        }
    }
}
