"""Filters of umbel beside rbloom and pybloom-live, in rounds that take turns.

    pip install ./python rbloom pybloom-live
    python python/bench/compare.py [--keys N] [--rounds N]

Every row is the minimum of the rounds, which other programs disturb least, in nanoseconds of processor time per key; the
fastest is marked with *, rows that umbel loses included. Answers are checked before anything is timed. rbloom uses Python's
hash(), which a str or bytes object remembers after the first time; rows "new str" and "new bytes" ask for keys whose hash was
never computed.
"""

import argparse
import time
import warnings

warnings.filterwarnings("ignore")

import pybloom_live  # noqa: E402
import rbloom  # noqa: E402

import umbel  # noqa: E402

RATE = 0.01


class Umbel:
    """One of umbel's classes."""

    def __init__(self, kind, is_batch):
        self.kind = kind
        self.name = f"umbel {kind.__name__}{', many' if is_batch else ''}"
        self.is_batch = is_batch

    def empty(self, keys):
        return self.kind(keys, RATE)

    def add(self, filter, keys):
        if self.is_batch:
            return filter.add_many(keys)
        add = filter.add
        for key in keys:
            add(key)

    def ask(self, filter, keys):
        if self.is_batch:
            return sum(filter.contains_many(keys))
        return sum(key in filter for key in keys)

    def bits(self, filter):
        return filter.bits


class Rbloom:
    def __init__(self, is_batch):
        self.name = f"rbloom{', many' if is_batch else ''}"
        self.is_batch = is_batch

    def empty(self, keys):
        return rbloom.Bloom(keys, RATE)

    def add(self, filter, keys):
        if self.is_batch:
            return filter.update(keys)
        add = filter.add
        for key in keys:
            add(key)

    def ask(self, filter, keys):
        # It has no call for many keys.
        return sum(key in filter for key in keys)

    def bits(self, filter):
        return filter.size_in_bits


class Pybloom:
    name = "pybloom-live"

    def empty(self, keys):
        return pybloom_live.BloomFilter(keys, RATE)

    def add(self, filter, keys):
        add = filter.add
        for key in keys:
            add(key, skip_check=True)

    def ask(self, filter, keys):
        return sum(key in filter for key in keys)

    def bits(self, filter):
        return filter.num_bits


def contestants():
    kinds = [umbel.StandardFilter, umbel.BlockedFilter]
    yield from (Umbel(kind, is_batch) for kind in kinds for is_batch in (False, True))
    yield from (Rbloom(False), Rbloom(True), Pybloom())


def texts(start, count):
    """New objects, whose hash was never computed."""
    return [f"https://example.org/objects/{number}" for number in range(start, start + count)]


def timed(work):
    start = time.thread_time_ns()
    work()
    return time.thread_time_ns() - start


def measure(contestant, count, form, times):
    """One round of one contestant: all rows, each with keys of its own."""
    make = (lambda start: texts(start, count)) if form == "str" else (lambda start: [t.encode() for t in texts(start, count)])
    filter, members, absent = contestant.empty(count), make(0), make(10 * count)
    note = lambda row, work: times.setdefault((f"{form}: {row}", contestant.name), []).append(timed(work) / count)
    note("add", lambda: contestant.add(filter, members))
    claimed, wrong = contestant.ask(filter, make(0)), contestant.ask(filter, make(20 * count)) / count
    assert claimed == count, f"{contestant.name} lost keys"
    assert wrong < 2 * RATE, f"{contestant.name} claims {wrong} of absent keys"
    note(f"present, new {form}", lambda fresh=make(0): contestant.ask(filter, fresh))
    note(f"absent, new {form}", lambda: contestant.ask(filter, absent))
    note(f"absent, same {form} again", lambda: contestant.ask(filter, absent))
    return contestant.bits(filter) / count, wrong


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--keys", type=int, default=200_000)
    options.add_argument("--rounds", type=int, default=7)
    given = options.parse_args()
    times, sizes, everyone = {}, {}, list(contestants())
    for _ in range(given.rounds):
        for form in ("str", "bytes"):
            for contestant in everyone:
                sizes[contestant.name] = measure(contestant, given.keys, form, times)
    names = [contestant.name for contestant in everyone]
    print(f"{given.keys} keys at {RATE:.0%}, minima of {given.rounds} rounds, ns a key")
    print(f"{'':32}" + "".join(f"{name:>28}" for name in names))
    for row in dict.fromkeys(row for row, _ in times):
        fastest = [min(times[row, name]) for name in names]
        best = min(fastest)
        print(f"{row:32}" + "".join(f"{one:27.0f}{'*' if one == best else ' '}" for one in fastest))
    for row, place in (("bits a key", 0), ("absent keys claimed, %", 1)):
        values = [sizes[name][place] * (100 if place else 1) for name in names]
        print(f"{row:32}" + "".join(f"{value:27.2f} " for value in values))


if __name__ == "__main__":
    main()
