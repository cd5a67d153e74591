"""Filters of all kinds: what they promise, and what they refuse."""

import copy
import pickle

import pytest

import umbel

KEYS = [f"key {number}" for number in range(1000)]


def test_added_keys_are_claimed_and_few_others(make):
    filter = make(1000, 0.01)
    filter.add_many(KEYS)
    assert all(filter.contains_many(KEYS)) and all(key in filter for key in KEYS)
    others = filter.contains_many(f"other {number}" for number in range(10_000))
    # Ten standard deviations above one in a hundred.
    assert sum(others) < 200
    assert len(filter) == 1000
    assert 0 < filter.false_positive < 0.013


def test_single_and_many_keys_build_the_same_filter(make):
    one_by_one, at_once = make(1000, 0.01), make(1000, 0.01)
    for key in KEYS:
        one_by_one.add(key)
    at_once.add_many(KEYS)
    assert one_by_one == at_once
    assert one_by_one.to_bytes() == at_once.to_bytes()


def test_str_stands_for_its_utf8_bytes(make):
    filter = make(100, 0.0001)
    assert filter.add("naïve é 漢 🍏")
    assert "naïve é 漢 🍏".encode() in filter
    assert filter.contains_many(["naïve é 漢 🍏".encode("utf-16"), "naïve é 漢 🍏"]) == [False, True]
    assert not filter.add("naïve é 漢 🍏".encode())


@pytest.mark.parametrize("key", [b"", "", b"\0", b"x" * 1_000_000])
def test_any_bytes_are_a_key(make, key):
    filter = make(100, 0.0001)
    assert key not in filter
    filter.add(key)
    assert key in filter


@pytest.mark.parametrize("wrong", [1, None, 1.5, ["a"], bytearray(b"a"), object()])
def test_what_is_no_key_changes_nothing(make, wrong):
    filter = make(100, 0.01)
    before = filter.to_bytes()
    for call in (filter.add, filter.__contains__, lambda key: filter.add_many(["a", key]), lambda key: filter.contains_many(["a", key])):
        with pytest.raises(TypeError, match="a key is bytes or str, not"):
            call(wrong)
    assert filter.to_bytes() == before


def test_a_str_without_utf8_form_is_a_value_error(make):
    filter = make(100, 0.01)
    with pytest.raises(UnicodeEncodeError):
        filter.add_many(["fine", "\ud800"])
    assert len(filter) == 0


def test_one_key_is_not_taken_for_many(make):
    filter = make(100, 0.01)
    for one in ("apple", b"apple"):
        with pytest.raises(TypeError, match="many keys are needed"):
            filter.add_many(one)
        with pytest.raises(TypeError, match="many keys are needed"):
            filter.contains_many(one)
    with pytest.raises(TypeError):
        filter.add_many(7)
    assert len(filter) == 0


def test_an_iterator_that_fails_changes_nothing(make):
    def keys():
        yield "apple"
        raise RuntimeError("no more")

    filter = make(100, 0.01)
    with pytest.raises(RuntimeError, match="no more"):
        filter.add_many(keys())
    assert "apple" not in filter


def test_no_keys_are_fine(make):
    filter = make(100, 0.01)
    filter.add_many([])
    assert filter.contains_many(iter(())) == []
    assert not filter and filter.fill == 0 and filter.false_positive == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give items and false_positive, or bits and hashes"),
        ({"items": 10}, "give items and false_positive, or bits and hashes"),
        ({"items": 10, "false_positive": 0.1, "bits": 64, "hashes": 8}, "give items and false_positive, or bits"),
        ({"items": 0, "false_positive": 0.1}, "a filter is planned for at least one key, not 0"),
        ({"items": -1, "false_positive": 0.1}, "a whole number from 0 to 2^64 - 1 is needed, not -1"),
        ({"items": 2**64, "false_positive": 0.1}, "a whole number from 0 to 2^64 - 1 is needed"),
        ({"items": 2**63, "false_positive": 0.1}, "a filter has 1 to 2^40 bits"),
        ({"items": 10, "false_positive": 0}, "a rate lies strictly between 0 and 1, not 0"),
        ({"items": 10, "false_positive": float("nan")}, "a rate lies strictly between 0 and 1, not NaN"),
        ({"bits": 0, "hashes": 8}, "a filter has 1 to 2^40 bits, not 0"),
        ({"bits": 256, "hashes": 65}, "a filter has 1 to 64 hashes, not 65"),
        ({"items": 10, "false_positive": 0.1, "hash": "md5"}, "unknown hash 'md5': use xxh3 or siphash-1-3"),
        ({"items": 10, "false_positive": 0.1, "seed": 1, "secret": b"s"}, "give a seed or a secret, not both"),
        ({"items": 10, "false_positive": 0.1, "secret": b""}, "the secret is empty"),
    ],
)
def test_wrong_parameters_are_value_errors(make, arguments, message):
    with pytest.raises(ValueError) as error:
        make(**arguments)
    assert message in str(error.value)


def test_exact_sizes_are_taken_as_they_are(kind, make):
    filter = make(bits=2560, hashes=8)
    assert (filter.bits, filter.hashes, filter.hash) == (2560, 8, "xxh3")
    if kind == "blocked":
        with pytest.raises(ValueError, match="8 hashes and a multiple of 256 bits"):
            make(bits=9593, hashes=7)


def test_filters_too_large_for_memory_are_memory_errors():
    with pytest.raises(MemoryError, match="no memory for a filter of"):
        umbel.CountingFilter(bits=2**40, hashes=7)


def test_unions_claim_the_keys_of_both(make):
    a, b = make(100, 0.001), make(100, 0.001)
    a.add("apple")
    b.add("pear")
    both = a | b
    assert type(both) is make and "apple" in both and "pear" in both and len(both) == 2
    assert "pear" not in a
    a |= b
    assert type(a) is make and "pear" in a
    a |= a
    assert "apple" in a


def test_filters_that_do_not_fit_are_not_joined(make):
    filter = make(100, 0.01)
    with pytest.raises(ValueError, match="different lengths"):
        filter | make(200, 0.01)
    with pytest.raises(ValueError, match="different seeds"):
        filter | make(100, 0.01, seed=7)
    with pytest.raises(ValueError, match="different hash functions"):
        filter |= make(100, 0.01, hash="siphash-1-3")
    with pytest.raises(TypeError):
        filter | {"apple"}
    other = umbel.StandardFilter if make is not umbel.StandardFilter else umbel.CountingFilter
    with pytest.raises(ValueError, match="one is a .* filter, the other is a .* filter"):
        filter | other(100, 0.01)


def test_intersections_claim_what_both_have(kind, make):
    a, b = make(100, 0.0001), make(100, 0.0001)
    a.add_many(["apple", "plum"])
    b.add_many(["apple", "pear"])
    if kind in ("standard", "counting"):
        common = a & b
        assert type(common) is umbel.StandardFilter
        assert common.contains_many(["apple", "plum", "pear"]) == [True, False, False]
    else:
        with pytest.raises(ValueError, match="cannot be intersected"):
            a & b


def test_copies_are_independent_and_equal(make):
    filter = make(100, 0.01)
    filter.add("apple")
    for copied in (filter.copy(), copy.copy(filter), copy.deepcopy(filter), pickle.loads(pickle.dumps(filter))):
        assert type(copied) is make and copied == filter and not copied != filter
        copied.add("pear")
        assert copied != filter
    assert "pear" not in filter
    assert filter != "apple"
    with pytest.raises(TypeError):
        hash(filter)


def test_a_filter_with_a_secret_needs_it(make):
    filter = make(100, 0.01, secret=b"only for us")
    filter.add("apple")
    assert filter.hash == "siphash-1-3"
    data = filter.to_bytes()
    with pytest.raises(ValueError, match="made with a secret seed .* pass it as secret="):
        umbel.from_bytes(data)
    with pytest.raises(ValueError):
        umbel.from_bytes(data, secret=b"a guess")
    assert umbel.from_bytes(data, secret=b"only for us") == filter
    with pytest.raises(ValueError, match="cannot be pickled"):
        pickle.dumps(filter)


def test_counting_filters_remove_what_was_added():
    filter = umbel.CountingFilter(1000, 0.01)
    filter.add_many(KEYS)
    assert filter.remove(KEYS[0]) and KEYS[0] not in filter
    assert not filter.remove("never added")
    assert filter.remove_many(KEYS[1:]) == 999
    assert len(filter) == 0 and filter.fill == 0 and filter.stuck_counters == 0
    with pytest.raises(TypeError):
        filter.remove_many(["apple", 1])
    assert "apple" in (lambda f: f.add("apple") and f.to_standard())(filter)


def test_dynamic_filters_grow_and_shrink():
    filter = umbel.DynamicFilter(100, 0.001)
    assert (filter.capacity, filter.max_components, filter.components) == (100, 8, 1)
    filter.add_many(KEYS[:700])
    assert filter.components == 7 and filter.false_positive < 0.001
    removed = filter.remove_many(KEYS[100:700])
    # A key that two components claim is kept.
    assert 580 < removed <= 600
    assert filter.components < 7
    assert all(filter.contains_many(KEYS[:100]))
    assert not filter.remove("never added")
    assert filter.shrink() == 0
    planned = umbel.DynamicFilter(1000, 0.01, capacity=100)
    assert (planned.capacity, planned.max_components) == (100, 10)
    with pytest.raises(ValueError, match="at least one key"):
        umbel.DynamicFilter(1000, 0.01, capacity=0)
    with pytest.raises(ValueError, match="1 to 65536 components"):
        umbel.DynamicFilter(2**40, 0.01, capacity=1)


def test_repr_says_what_it_is(make):
    text = repr(make(100, 0.01))
    assert text.startswith(f"<{make.__name__} of ") and "0 items" in text
