//! Where a seed is stored, and where it never is.

use super::*;

#[test]
fn a_secret_seed_never_leaves_and_is_needed_again() {
    let seed = Seed::from_secret(b"only for us");
    let scheme = Scheme::new(Shape::new(500, 5).unwrap(), KeyHasher::secret(HashId::Xxh3, seed));
    let mut filter = DynamicFilter::<StandardFilter>::new(scheme, 5, 8).unwrap();
    (0..20u64).for_each(|key| filter.put(key));
    let bytes = encode(&filter);
    assert!(!bytes.windows(16).any(|window| window == seed.bytes()));

    let fingerprint = seed.fingerprint();
    assert_eq!(Decoder::new().filter(&bytes), Err(DecodeError::Locked(fingerprint)));
    let wrong = Decoder::new().seed(Seed::from_number(1)).filter(&bytes);
    assert!(matches!(wrong, Err(DecodeError::WrongSeed(_))));
    let known = Decoder::new().seed(seed).filter(&bytes).unwrap();
    assert!(known.may_contain(&7u64.to_le_bytes()));
    assert_eq!(known.encode(), bytes);

    let mut locked = Decoder::new().accept_locked().filter(&bytes).unwrap();
    assert!(locked.scheme().hasher().is_locked());
    assert!(locked.contains_digest(scheme.digest(&7u64.to_le_bytes())));
    assert!(locked.unlock(Seed::from_number(1)).is_err());
    locked.unlock(seed).unwrap();
    assert!(locked.may_contain(&7u64.to_le_bytes()));
}

/// A locked base takes deltas; one that knows its seed still knows it afterwards.
#[test]
fn deltas_apply_to_locked_filters() {
    let seed = Seed::from_secret(b"only for us");
    let scheme = Scheme::new(Shape::new(500, 5).unwrap(), KeyHasher::secret(HashId::Xxh3, seed));
    let old = CountingFilter::new(scheme).unwrap();
    let mut new = old.clone();
    new.insert("a");
    let delta = encode_delta(&old, &new, &[]).unwrap();
    let locked = Decoder::new().accept_locked().filter(&encode(&old)).unwrap();
    assert!(Decoder::new().apply(&locked, &delta).unwrap().scheme().hasher().is_locked());
    let known = Decoder::new().apply(&old.into(), &delta).unwrap();
    assert!(known.may_contain(b"a"));
}

/// Whether the seed stands in the file was once taken from the base alone, so that a delta to a
/// file without it led to one with it; then from the delta alone, so that whoever sent one could
/// have a secret seed written down.
#[test]
fn a_seed_is_stored_only_if_neither_base_nor_delta_keeps_it_secret() {
    let (shape, seed) = (Shape::new(500, 5).unwrap(), Seed::from_number(7));
    let public = StandardFilter::new(Scheme::new(shape, KeyHasher::new(HashId::Xxh3, seed)));
    let secret = StandardFilter::new(Scheme::new(shape, KeyHasher::secret(HashId::Xxh3, seed)));
    let (public, secret) = (public.unwrap(), secret.unwrap());
    for (old, new, result) in [
        (&public, &public, &public),
        (&public, &secret, &secret),
        (&secret, &public, &secret),
        (&secret, &secret, &secret),
    ] {
        let delta = encode_delta(old, new, &[]).unwrap();
        let updated = Decoder::new().apply(&old.clone().into(), &delta).unwrap();
        assert_eq!(updated.encode(), encode(result));
        assert!(!updated.scheme().hasher().is_locked(), "the seed is known all the same");
    }
    let locked = Decoder::new().accept_locked().filter(&encode(&secret)).unwrap();
    let delta = encode_delta(&secret, &public, &[]).unwrap();
    let updated = Decoder::new().apply(&locked, &delta).unwrap();
    assert!(updated.scheme().hasher().is_locked());
    assert_eq!(updated.encode(), encode(&secret));
}
