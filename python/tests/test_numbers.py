"""Plans and models: the numbers that the command prints, and the ranges that it has."""

import json

import pytest

import umbel

CASES = [
    (["plan", "standard"], umbel.plan.standard, {"items": 12345, "false_positive": 0.003}),
    (["plan", "dynamic", "--distribution", "uniform"], umbel.plan.dynamic, {"max_items": 1330, "false_positive": 0.0098}),
    (
        ["plan", "replica"],
        umbel.plan.replica,
        {"items": 100_000, "adds_per_second": 10, "removes_per_second": 7, "hosts": 32, "miss": 0.01, "false_positive": 0.01, "lookups_per_second": 5},
    ),
    (["plan", "chain"], umbel.plan.chain, {"workers": 64, "blocks": 156_250, "length": 8192, "step": 12, "over_estimate": 1e-7}),
    (["model", "standard"], umbel.model.standard, {"bits": 9593, "hashes": 7, "items": 1000}),
    (["model", "dynamic"], umbel.model.dynamic, {"bits": 1280, "hashes": 7, "capacity": 133, "items": 1330}),
    (
        ["model", "replica"],
        umbel.model.replica,
        {"bits": 1200, "hashes": 6, "items": 240, "dirty_ones": 0.1705, "dirty_zeros": 0.01, "hosts": 5, "weight_false_negative": 2},
    ),
    (["model", "chain"], umbel.model.chain, {"false_positive": 0.1, "hashes": 3, "window": 12, "step": 8, "length": 8192, "workers": 64}),
]


@pytest.mark.parametrize(("words", "function", "numbers"), CASES, ids=lambda case: "-".join(case[:2]) if isinstance(case, list) else None)
def test_functions_return_what_the_command_prints(words, function, numbers, command):
    options = [word for name, number in numbers.items() for word in (f"--{name.replace('_', '-')}", number)]
    assert function(**numbers) == json.loads(command(*words, "--json", *options))


def test_a_plan_is_a_filter_that_keeps_its_promise():
    plan = umbel.plan.blocked(10_000, 0.01)
    filter = umbel.BlockedFilter(10_000, 0.01)
    assert (filter.bits, filter.hashes) == (plan["bits"], plan["hashes"])
    assert plan["false_positive"] <= 0.01
    sizes = umbel.plan.dynamic(1330, 0.01, sizes=[10, 20, 1330])
    assert sizes == umbel.plan.dynamic(1330, 0.01, sizes={1330: 2, 20: 2, 10: 2})
    assert umbel.plan.replica(1000, 1, 0, 2, 0.01, 0.01, longest=None)["reserve"].endswith("--all-hosts")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: umbel.plan.standard(0, 0.01), "items: a whole number from 1 to 2^40 is needed, not 0"),
        (lambda: umbel.plan.standard(10, 1), "a rate lies strictly between 0 and 1, not 1"),
        (lambda: umbel.plan.blocked(2**40, 1e-9), "a filter has 1 to 2^40 bits"),
        (lambda: umbel.plan.dynamic(10, 0.01, sizes=[11]), "not 11"),
        (lambda: umbel.plan.dynamic(10, 0.01, sizes=[]), "at least one cardinality must be observed"),
        (lambda: umbel.plan.dynamic(10, 0.01, sizes={5: -1}), "not -1"),
        (lambda: umbel.plan.replica(10, 0, 0, 2, 0.01, 0.01), "nothing is added and nothing removed"),
        (lambda: umbel.plan.replica(10, -1, 0, 2, 0.01, 0.01), "keys per second"),
        (lambda: umbel.plan.replica(10, 1, 0, 2, 0.6, 0.01), "miss: a number from"),
        (lambda: umbel.plan.replica(10, 1, 0, 2, 0.1, 0.01, longest=float("nan")), "longest: a number from"),
        (lambda: umbel.plan.chain(4, 100, step=1), "a step of 1 keys cannot keep a chance"),
        (lambda: umbel.plan.chain(4, 100, length=2**30), "length: a whole number from 1 to 2^24"),
        (lambda: umbel.model.standard(0, 7, 10), "a filter has 1 to 2^40 bits, not 0"),
        (lambda: umbel.model.dynamic(100, 7, 0, 10), "capacity: a whole number from 1"),
        (lambda: umbel.model.replica(100, 7, 10, 2, 0), "dirty_ones: a number from 0 to 1 is needed, not 2"),
        (lambda: umbel.model.chain(0.1, 0, 12, 8, 100, 4), "1 to 64 hashes, not 0"),
    ],
)
def test_numbers_outside_their_range_are_value_errors(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
