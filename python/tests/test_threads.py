"""Threads that share filters and banks: nothing is lost, nothing hangs, and Python runs on meanwhile."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import umbel

THREADS = 4


def in_threads(work):
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, number) for number in range(THREADS)]:
            done.result(timeout=60)


def test_keys_of_all_threads_are_added(make):
    filter = make(40_000, 0.01)

    def add(number):
        keys = [f"{number} {index}" for index in range(10_000)]
        for start in range(0, 9_000, 500):
            filter.add_many(keys[start : start + 500])
        for key in keys[9_000:]:
            filter.add(key)
        assert all(filter.contains_many(keys))

    in_threads(add)
    assert len(filter) == 40_000


def test_filters_that_are_joined_with_each_other_do_not_hang():
    filters = [umbel.CountingFilter(1000, 0.01) for _ in range(2)]

    def join(number):
        a, b = filters[number % 2], filters[1 - number % 2]
        for _ in range(200):
            a |= b
            assert a | b is not a and (a == b or a != b)

    in_threads(join)


def test_a_bank_answers_while_it_changes():
    bank, stays = umbel.Bank(), umbel.StandardFilter(100, 0.001)
    stays.add("apple")
    for number in range(20):
        bank[f"stays {number:02}"] = stays
    expected = list(bank)

    def ask(number):
        name, comes = f"comes {number}", umbel.StandardFilter(200, 0.0001)
        comes.add("pear")
        for _ in range(100):
            bank[name] = comes
            answers = bank.who_many(["apple"] * 50 + ["pear"])
            assert all(answer == expected for answer in answers[:-1])
            assert name in answers[-1] and set(answers[-1]) <= {f"comes {n}" for n in range(THREADS)}
            del bank[name]

    in_threads(ask)
    assert list(bank) == expected


@pytest.mark.parametrize("call", ["add_many", "contains_many", "who_many", "chain"])
def test_python_runs_while_many_keys_are_worked_on(call):
    """No thread has to give up the global lock for 1000 seconds: another one runs only where a call releases it."""
    filter, bank = umbel.StandardFilter(200_000, 0.0001), umbel.Bank()
    bank["a"] = filter
    work = getattr(bank if call in ("who_many", "chain") else filter, call)
    keys = [b"%d" % number for number in range(200_000)]
    go, has_run = threading.Event(), []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        other = threading.Thread(target=lambda: go.wait() and has_run.append(True))
        other.start()
        go.set()
        # The system decides when the other thread runs, so that one call may be over too soon.
        for _ in range(1000):
            work(keys)
            if has_run:
                break
    finally:
        sys.setswitchinterval(interval)
    assert has_run
    other.join()
