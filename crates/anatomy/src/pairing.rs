//! Pairs what two builds have under names that differ between ABIs. Pure.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::names::{self, SymbolNames};

/// The place, in each build's list, of what is one thing in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paired {
    /// In the first list; absent if only the second has it.
    pub a: Option<usize>,
    /// In the second list; absent if only the first has it.
    pub b: Option<usize>,
}

/// Pairs the items of two builds, one by one, in the order of the first list, then of the second.
///
/// `own` identifies an item within one build, `common` in both builds, where `long` and `int` are one: `size_t` is one of them in
/// each ABI. Items of the same own key are paired first, and then those of the same common key, in the order of their own keys.
pub(crate) fn paired<T, K: Ord, C: Eq + Hash>(
    a: &[T],
    b: &[T],
    own: impl Fn(&T) -> K,
    common: impl Fn(&T) -> C,
) -> Vec<Paired> {
    let mut places: FxHashMap<C, usize> = FxHashMap::default();
    let mut classes: Vec<[Vec<usize>; 2]> = Vec::new();
    for (side, items) in [a, b].into_iter().enumerate() {
        for (index, item) in items.iter().enumerate() {
            let place = *places.entry(common(item)).or_insert_with(|| {
                classes.push(Default::default());
                classes.len() - 1
            });
            classes[place][side].push(index);
        }
    }
    classes.into_iter().flat_map(|class| one_by_one(a, b, class, &own)).collect()
}

fn one_by_one<T, K: Ord>(
    a: &[T],
    b: &[T],
    [of_a, mut left_b]: [Vec<usize>; 2],
    own: &impl Fn(&T) -> K,
) -> Vec<Paired> {
    let mut pairs = Vec::new();
    let mut left_a = Vec::new();
    for index in of_a {
        match left_b.iter().position(|other| own(&b[*other]) == own(&a[index])) {
            Some(place) => pairs.push(Paired { a: Some(index), b: Some(left_b.remove(place)) }),
            None => left_a.push(index),
        }
    }
    left_a.sort_by_key(|index| own(&a[*index]));
    left_b.sort_by_key(|index| own(&b[*index]));
    let mut left_b = left_b.into_iter();
    pairs.extend(left_a.into_iter().map(|a| Paired { a: Some(a), b: left_b.next() }));
    pairs.sort_by_key(|pair| pair.a);
    pairs.extend(left_b.map(|b| Paired { a: None, b: Some(b) }));
    pairs
}

/// What each build has, by name.
pub(crate) type Named<T> = [Vec<(SymbolNames, T)>; 2];

/// What two builds have of one name: the name for readers, and what the baseline and the variant have of it.
pub(crate) type PairedSums<T> = (String, [T; 2]);

/// Sums up what each build has of a name, and pairs the sums as [`paired`] does. The readers' name is the first of the baseline's.
pub(crate) fn paired_sums<T: Default>(sides: Named<T>, add: impl Fn(&mut T, T)) -> Vec<PairedSums<T>> {
    let [mut a, mut b] = sides.map(|side| {
        let mut sums: Vec<(SymbolNames, T)> = Vec::new();
        let mut places: FxHashMap<String, usize> = FxHashMap::default();
        for (names, amount) in side {
            match places.get(&names.own) {
                Some(place) => add(&mut sums[*place].1, amount),
                None => {
                    places.insert(names.own.clone(), sums.len());
                    sums.push((names, amount));
                }
            }
        }
        sums
    });
    let pairs = paired(&a, &b, |one| one.0.own.clone(), |one| one.0.common.clone());
    let taken = |of: &mut [(SymbolNames, T)], place: Option<usize>| {
        place.map(|place| (of[place].0.shown.clone(), std::mem::take(&mut of[place].1))).unwrap_or_default()
    };
    let sums = pairs.into_iter().map(|pair| {
        let ((of_a, first), (of_b, second)) = (taken(&mut a, pair.a), taken(&mut b, pair.b));
        (if pair.a.is_some() { of_a } else { of_b }, [first, second])
    });
    sums.collect()
}

/// A number for each demangled function of two profiles: within one profile a function has one number, and in both the same where
/// it is paired as [`paired`] does.
pub fn function_numbers(a: &[&str], b: &[&str]) -> [Vec<usize>; 2] {
    let mut numbers: [FxHashMap<String, usize>; 2] = Default::default();
    let own = |functions: &[&str]| {
        let mut keys: Vec<_> =
            functions.iter().map(|name| (names::function_name_key(name), names::key(name))).collect();
        keys.sort_unstable();
        keys.dedup_by(|one, other| one.0 == other.0);
        keys
    };
    let [of_a, of_b] = [own(a), own(b)];
    let pairs = paired(&of_a, &of_b, |keys| keys.0.clone(), |keys| keys.1.clone());
    for (number, pair) in pairs.into_iter().enumerate() {
        for (side, key) in
            [pair.a.map(|place| &of_a[place]), pair.b.map(|place| &of_b[place])].into_iter().enumerate()
        {
            if let Some(key) = key {
                numbers[side].insert(key.0.clone(), number);
            }
        }
    }
    let numbered = |side: usize, all: &[&str]| {
        all.iter().map(|name| numbers[side][&names::function_name_key(name)]).collect()
    };
    [numbered(0, a), numbered(1, b)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{type_key, type_name_key};

    fn of<'n>(a: &[&'n str], b: &[&'n str]) -> Vec<[Option<&'n str>; 2]> {
        let pairs = paired(a, b, |name| type_name_key(name), |name| type_key(name));
        pairs.into_iter().map(|pair| [pair.a.map(|place| a[place]), pair.b.map(|place| b[place])]).collect()
    }

    #[test]
    fn the_same_name_is_paired_first_and_the_rest_by_what_abis_call_it() {
        assert_eq!(
            of(&["Node<long>", "Node<int>", "Tree"], &["Node<int>", "Node<long long>", "Leaf"]),
            [
                [Some("Node<long>"), Some("Node<long long>")],
                [Some("Node<int>"), Some("Node<int>")],
                [Some("Tree"), None],
                [None, Some("Leaf")]
            ]
        );
    }

    #[test]
    fn what_only_one_build_has_is_not_added_to_what_both_have() {
        assert_eq!(
            of(&["f(int)", "f(long)"], &["f(int)"]),
            [[Some("f(int)"), Some("f(int)")], [Some("f(long)"), None]]
        );
        assert_eq!(of(&["f(int)"], &["f(long)", "f(int)"])[1], [None, Some("f(long)")]);
    }

    #[test]
    fn several_names_that_differ_are_paired_in_the_order_of_their_names() {
        assert_eq!(
            of(&["P<long, int>", "P<int, long>"], &["P<int, long long>", "P<long long, int>"]),
            [
                [Some("P<long, int>"), Some("P<long long, int>")],
                [Some("P<int, long>"), Some("P<int, long long>")]
            ]
        );
    }

    #[test]
    fn functions_of_one_profile_have_one_number_each_and_those_of_two_the_same_where_abis_differ() {
        assert_eq!(function_numbers(&["f(int)", "f(long)", "f(int)"], &[])[0], [0, 1, 0]);
        let [a, b] = function_numbers(&["f(int)", "f(unsigned long)"], &["f(unsigned int)", "f(int)", "g()"]);
        assert_eq!((a[0], a[1]), (b[1], b[0]));
        assert!(b[2] > 1);
    }
}
