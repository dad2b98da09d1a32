//! Pairs what two builds have under names that differ between ABIs. Pure.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// The place, in each build's list, of what is one thing in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paired {
    /// In the first list; absent if only the second has it.
    pub a: Option<usize>,
    /// In the second list; absent if only the first has it.
    pub b: Option<usize>,
}

/// Pairs the items of two builds, one by one, in the order of the first list, then of the second.
///
/// `own` identifies an item within one build, `common` in both builds, where `long` and `int` are one: `size_t` is one of them in
/// each ABI. Items of the same own key are paired first, and then those of the same common key, in the order of their own keys.
pub fn paired<T, K: Ord, C: Eq + Hash>(
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
}
