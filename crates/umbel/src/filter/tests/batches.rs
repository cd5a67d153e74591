//! Batches answer and add like single calls, in the cache and beyond it.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..crate::model::seeded() })]

    #[test]
    fn batches_answer_like_single_calls(
        keys in prop::collection::vec(any::<u64>(), 0..200),
        hashes in 1u32..12,
    ) {
        let shape = Shape::new(701, hashes).unwrap();
        let keys: Vec<_> = keys.into_iter().map(bytes).collect();
        let (mut one, mut many) = (StandardFilter::with_shape(shape).unwrap(), StandardFilter::with_shape(shape).unwrap());
        let (mut count_one, mut count_many) = (CountingFilter::with_shape(shape).unwrap(), CountingFilter::with_shape(shape).unwrap());
        for key in &keys {
            one.insert(key);
            count_one.insert(key);
        }
        many.insert_batch(&keys);
        count_many.insert_batch(&keys);
        prop_assert_eq!(&one, &many);
        prop_assert_eq!(&count_one, &count_many);
        prop_assert_eq!(&count_one.to_standard(), &one);
        let mut dynamic_one = DynamicFilter::<CountingFilter>::with_shape(shape, 40).unwrap();
        let mut dynamic_many = dynamic_one.clone();
        let planned = dynamic_one.memory_bytes_with(keys.len() as u64);
        for key in &keys {
            dynamic_one.insert(key);
        }
        dynamic_many.insert_batch(&keys);
        prop_assert_eq!(&dynamic_one, &dynamic_many);
        dynamic_many.validate();
        prop_assert_eq!(dynamic_many.memory_bytes() as u64, planned);

        let asked: Vec<_> = (0..150).map(bytes).collect();
        let mut answers = Vec::new();
        let any: [AnyFilter; 3] = [one.into(), count_one.into(), dynamic_one.into()];
        for filter in any {
            filter.contains_batch(&asked, &mut answers);
            prop_assert_eq!(answers.len(), asked.len());
            for (key, answer) in asked.iter().zip(&answers) {
                prop_assert_eq!(filter.may_contain(key), *answer, "{:?}", filter);
            }
        }
    }
}

/// Filters that no longer fit the cache are filled and asked in another way.
#[test]
fn batches_beyond_the_cache_answer_like_single_calls() {
    let keys: Vec<_> = (0..1000).map(bytes).collect();
    for hashes in [1, 2, 3, 4, 5, 9] {
        let shape = Shape::new((1 << 21) + 1, hashes).unwrap();
        let mut one = half_full(shape);
        let mut many = one.clone();
        let before: Vec<bool> = keys.iter().map(|key| one.contains(key)).collect();
        let mut answers = vec![true; 5];
        one.contains_batch(&keys, &mut answers);
        assert_eq!(answers, before, "{hashes} hashes");
        assert!(before.contains(&true) && before.contains(&false));

        keys[..300].iter().for_each(|key| {
            one.insert(key);
        });
        many.insert_batch(&keys[..300]);
        assert_eq!(one, many);
        many.bits().validate();
        let after: Vec<bool> = keys.iter().map(|key| one.contains(key)).collect();
        let digests: Vec<_> = keys.iter().map(|key| one.scheme().digest(key)).collect();
        one.contains_digests(&digests, &mut answers);
        assert_eq!(answers, after, "{hashes} hashes");
    }
}

/// A filter of which every other bit is set, by chance.
fn half_full(shape: Shape) -> StandardFilter {
    let length = Bits::new(shape.bits()).unwrap();
    let mut state = 1u64;
    let mut words: Vec<u64> = (0..length.get().div_ceil(64))
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state ^ state >> 29
        })
        .collect();
    *words.last_mut().unwrap() &= u64::MAX >> (length.get().wrapping_neg() & 63);
    StandardFilter::from_parts(shape.into(), BitVector::from_words(length, words), 0)
}
