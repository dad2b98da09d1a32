//! Pairs what two builds have under names that differ between ABIs. Pure.

use std::collections::HashMap;
use std::hash::Hash;

/// The places, in each build's list, of what is one thing in both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paired {
    /// In the first list; empty if only the second has it.
    pub a: Vec<usize>,
    /// In the second list; empty if only the first has it.
    pub b: Vec<usize>,
}

/// Pairs the items of two builds, in the order of the first list, then of the second.
///
/// `own` identifies an item within one build, `common` in both builds, where `long` and `int` are one: `size_t` is one of them in
/// each ABI. As many items of one common key in both builds are paired one by one, those of the same own key first. Another number
/// of items is one pair: `uint32_t` and `size_t` are two types on x86-64, and one on i386.
pub fn paired<T, K: Ord, C: Eq + Hash>(
    a: &[T],
    b: &[T],
    own: impl Fn(&T) -> K,
    common: impl Fn(&T) -> C,
) -> Vec<Paired> {
    let mut places: HashMap<C, usize> = HashMap::new();
    let mut classes: Vec<Paired> = Vec::new();
    for (items, is_first) in [(a, true), (b, false)] {
        for (index, item) in items.iter().enumerate() {
            let place = *places.entry(common(item)).or_insert_with(|| {
                classes.push(Paired { a: Vec::new(), b: Vec::new() });
                classes.len() - 1
            });
            let class = &mut classes[place];
            if is_first { &mut class.a } else { &mut class.b }.push(index);
        }
    }
    classes.into_iter().flat_map(|class| one_by_one(a, b, class, &own)).collect()
}

fn one_by_one<T, K: Ord>(a: &[T], b: &[T], class: Paired, own: &impl Fn(&T) -> K) -> Vec<Paired> {
    if class.b.is_empty() {
        return class.a.into_iter().map(|index| Paired { a: vec![index], b: Vec::new() }).collect();
    }
    if class.a.is_empty() {
        return class.b.into_iter().map(|index| Paired { a: Vec::new(), b: vec![index] }).collect();
    }
    if class.a.len() != class.b.len() || class.a.len() == 1 {
        return vec![class];
    }
    let mut left_b = class.b;
    let mut pairs = Vec::new();
    let mut left_a = Vec::new();
    for index in class.a {
        match left_b.iter().position(|other| own(&b[*other]) == own(&a[index])) {
            Some(place) => pairs.push(Paired { a: vec![index], b: vec![left_b.remove(place)] }),
            None => left_a.push(index),
        }
    }
    left_a.sort_by_key(|index| own(&a[*index]));
    left_b.sort_by_key(|index| own(&b[*index]));
    pairs.extend(left_a.into_iter().zip(left_b).map(|(a, b)| Paired { a: vec![a], b: vec![b] }));
    pairs.sort_by_key(|pair| pair.a[0]);
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{type_key, type_name_key};

    fn of<'n>(a: &[&'n str], b: &[&'n str]) -> Vec<(Vec<&'n str>, Vec<&'n str>)> {
        let named =
            |names: &[&'n str], places: Vec<usize>| places.into_iter().map(|place| names[place]).collect();
        let pairs = paired(a, b, |name| type_name_key(name), |name| type_key(name));
        pairs.into_iter().map(|pair| (named(a, pair.a), named(b, pair.b))).collect()
    }

    #[test]
    fn the_same_name_is_paired_first_and_the_rest_by_what_abis_call_it() {
        let a = ["Node<long>", "Node<int>", "Tree"];
        assert_eq!(
            of(&a, &["Node<int>", "Node<long long>", "Leaf"]),
            [
                (vec!["Node<long>"], vec!["Node<long long>"]),
                (vec!["Node<int>"], vec!["Node<int>"]),
                (vec!["Tree"], vec![]),
                (vec![], vec!["Leaf"])
            ]
        );
    }

    #[test]
    fn two_types_that_are_one_in_the_other_abi_are_compared_with_it_together() {
        let a = ["Node<unsigned int>", "Node<unsigned long>"];
        assert_eq!(of(&a, &["Node<unsigned int>"]), [(a.to_vec(), vec!["Node<unsigned int>"])]);
    }

    #[test]
    fn several_names_that_differ_are_paired_in_the_order_of_their_names() {
        assert_eq!(
            of(&["P<long, int>", "P<int, long>"], &["P<int, long long>", "P<long long, int>"]),
            [
                (vec!["P<long, int>"], vec!["P<long long, int>"]),
                (vec!["P<int, long>"], vec!["P<int, long long>"])
            ]
        );
    }
}
