//! Filters with a history: what is written and read again is the same, by deltas too.

use super::*;

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn deltas_of_every_kind_rebuild_the_new_filter_exactly(
        scheme in schemes(), first in history(), second in history(), other in history(),
    ) {
        deltas_rebuild::<StandardFilter>(scheme, [&first, &second, &other]);
        deltas_rebuild::<CountingFilter>(scheme, [&first, &second, &other]);
        deltas_rebuild::<DynamicFilter>(scheme, [&first, &second, &other]);
        deltas_rebuild::<DynamicFilter<StandardFilter>>(scheme, [&first, &second, &other]);
    }

    #[test]
    fn digests_rebuild_the_new_filter_exactly(
        scheme in schemes(),
        before in prop::collection::vec(0u64..1000, 0..60),
        added in prop::collection::vec(0u64..1000, 0..60),
        cleared in prop::collection::vec(0u64..1000, 0..5),
        lies in prop::collection::vec(any::<u64>(), 0..2),
        strangers in prop::collection::vec(2000u64..3000, 0..2),
        forgotten in 0usize..3,
    ) {
        let mut old = StandardFilter::make(scheme);
        before.iter().for_each(|key| old.put(*key));
        let mut new = old.clone();
        cleared.iter().for_each(|key| new.take(*key));
        added.iter().for_each(|key| new.put(*key));
        // Not all that was added, some that was not, and some that is no digest of this shape:
        // what is said of the keys may be wrong, the new bits must be right.
        let message = added.iter().skip(forgotten).chain(&strangers);
        let mut digests: Vec<Digest> =
            message.map(|key| scheme.digest(&key.to_le_bytes())).collect();
        digests.extend(lies.iter().filter_map(|lie| Digest::from_raw(*lie, DigestBits::FULL)));

        let delta = encode_delta(&old, &new, &digests).unwrap();
        prop_assert!(delta.len() <= encode_delta(&old, &new, &[]).unwrap().len());
        let decoder = Decoder::new().accept_locked();
        prop_assert_eq!(decoder.apply(&old.clone().into(), &delta).unwrap(), new.clone().into());

        let mut change = Vec::new();
        encode_change(&mut change, scheme.shape(), old.bits(), new.bits(), &digests);
        let flips = decode_change(&change, scheme.shape(), old.bits()).unwrap();
        prop_assert_eq!(&flips, &Flips::between(old.bits(), new.bits()));
        let foretold = flips.checksum_after(old.bits(), old.bits().checksum());
        prop_assert_eq!(foretold, new.bits().checksum());
    }

    #[test]
    fn junk_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Decoder::new().filter(&bytes).is_err());
        let base = AnyFilter::from(StandardFilter::for_target(10, 0.1).unwrap());
        prop_assert!(Decoder::new().apply(&base, &bytes).is_err());
        let change = decode_change(&bytes, base.scheme().shape(), plain(&base).bits());
        if let Ok(flips) = change {
            let mut bits = plain(&base).bits().clone();
            flips.apply(&mut bits);
            bits.validate();
        }
    }
}
