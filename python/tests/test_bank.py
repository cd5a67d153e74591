"""Banks: the same answers as the filters one by one."""

import pytest

import umbel


def held(keys, make=umbel.StandardFilter, **keywords):
    filter = make(1000, 0.001, **keywords)
    filter.add_many(keys)
    return filter


def test_a_bank_answers_as_its_filters_do():
    kinds = [umbel.StandardFilter, umbel.CountingFilter, umbel.DynamicFilter]
    keys = [f"key {number}" for number in range(600)]
    filters = {f"host {n:03}": held(keys[n * 3 : n * 3 + 60], kinds[n % 3]) for n in range(180)}
    # Some are longer than others, and some have several components.
    filters["large"] = umbel.StandardFilter(100_000, 0.0001)
    filters["large"].add_many(keys)
    filters["grown"] = umbel.DynamicFilter(50, 0.01)
    filters["grown"].add_many(keys[:300])
    assert filters["grown"].components == 6
    bank = umbel.Bank()
    for name, filter in filters.items():
        bank[name] = filter
    expected = [sorted(name for name, filter in filters.items() if key in filter) for key in keys]
    assert bank.who_many(keys) == expected
    assert [bank.who(key) for key in keys] == expected
    assert len(bank) == len(filters) == 182 and list(bank) == sorted(filters)
    assert bank.memory_bytes > 0 and repr(bank).startswith("<Bank of 182 filters")


def test_an_empty_bank_names_nobody():
    bank = umbel.Bank()
    assert bank.who("apple") == [] and bank.who_many(["apple", "pear"]) == [[], []]
    assert bank.chain(["apple"]) == {} and len(bank) == 0 and list(bank) == [] and bank.memory_bytes == 0


def test_filters_are_copied_replaced_and_removed():
    bank, filter = umbel.Bank(), held(["apple"])
    bank["a"] = filter
    filter.add("pear")
    assert bank.who("pear") == []
    bank["a"] = filter
    assert bank.who("pear") == ["a"] and len(bank) == 1
    bank["a"] = umbel.DynamicFilter(10, 0.01)
    assert bank.who("pear") == []
    assert "a" in bank and "b" not in bank
    del bank["a"]
    assert "a" not in bank and bank.who("apple") == []
    with pytest.raises(KeyError, match="a"):
        del bank["a"]


def test_filters_that_do_not_fit_change_nothing():
    bank = umbel.Bank()
    bank["a"] = held(["apple"])
    with pytest.raises(ValueError, match="different seeds"):
        bank["a"] = held(["pear"], seed=7)
    with pytest.raises(ValueError, match="a bank does not take a blocked filter"):
        bank["a"] = umbel.BlockedFilter(100, 0.01)
    with pytest.raises(TypeError):
        bank["a"] = {"pear"}
    with pytest.raises(TypeError):
        bank[1] = held(["pear"])
    assert bank.who("apple") == ["a"] and list(bank) == ["a"]


def test_what_is_no_key_is_a_type_error():
    bank = umbel.Bank()
    bank["a"] = held(["apple"])
    for call in (bank.who, lambda key: bank.who_many([key]), lambda key: bank.chain([key])):
        with pytest.raises(TypeError, match="a key is bytes or str, not int"):
            call(1)
    for call in (bank.who_many, bank.chain):
        with pytest.raises(TypeError, match="many keys are needed"):
            call("apple")


def test_depths_are_rounded_down_to_the_step():
    chain = [f"block {number}".encode() for number in range(500)]
    bank = umbel.Bank()
    true = {f"worker {n}": n * 37 for n in range(12)}
    for name, depth in true.items():
        bank[name] = held(chain[:depth])
    for step in (4, 8, 50):
        expected = {name: depth // step * step for name, depth in true.items() if depth >= step}
        for walk in (False, True):
            found = bank.chain(chain, step=step, walk=walk)
            assert found == expected
            assert list(found.values()) == sorted(found.values(), reverse=True)
    assert bank.chain([]) == {}


def test_a_walk_sees_a_hole():
    chain = [f"block {number}" for number in range(400)]
    bank = umbel.Bank()
    bank["worker"] = held(chain[:100] + chain[101:])
    assert bank.chain(chain, walk=True) == {"worker": 96}


def test_promises_that_cannot_be_kept_are_refused():
    bank = umbel.Bank()
    with pytest.raises(ValueError, match="step: a whole number from 1 to"):
        bank.chain(["a"], step=0)
    with pytest.raises(ValueError, match="above 0 and below 1, not 0"):
        bank.chain(["a"], over_estimate=0)
    full = umbel.StandardFilter(bits=64, hashes=1)
    full.add_many(str(number) for number in range(1000))
    bank["full"] = full
    with pytest.raises(ValueError, match="cannot keep a chance of 1e-8 with a step of 8 keys"):
        bank.chain(["a"] * 100)
    assert bank.chain(["a"] * 100, walk=True) == {"full": 96}
    bank["full"] = umbel.DynamicFilter(1, 0.01)
    grown = umbel.DynamicFilter(1, 0.01)
    grown.add_many(["a", "b", "c"])
    bank["grown"] = grown
    with pytest.raises(ValueError, match="'grown' is a dynamic filter of 3 components"):
        bank.chain(["a"])
