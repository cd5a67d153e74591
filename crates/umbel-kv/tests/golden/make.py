#!/usr/bin/env python3
"""Makes the recorded event streams of this folder.

    pip install msgspec==0.22.0 xxhash && python3 make.py

The structures are those that vLLM (vllm/distributed/kv_events.py) and SGLang
(python/sglang/srt/disaggregation/kv_events.py) publish; msgspec encodes them as it does there. What the
blocks must be is computed here, apart from the code that is tested.

A file is a list of records: kind (1 byte), number (8 bytes, big-endian), length (4 bytes,
big-endian), bytes.

    0  a message that arrives            number, payload
    1  a message that is lost            number, payload; the engine can replay it
    2  the engine starts anew            its latest messages are gone
    3  the connection is made            after it was lost, or for the first time
    4  canonical keys of the GPU's blocks, each 8 bytes little-endian, in order
    5  canonical keys of the CPU's blocks
    6  the engine's hashes of the GPU's blocks, each a length (1 byte) and bytes, in order

An engine keeps the latest 50 messages.
"""
import random
import struct
import sys
from typing import Any, Optional, Union

import msgspec
import xxhash

KEPT = 50
BLOCK = 4


def structures(array_like, fields, batch_rank, tagged=True):
    """The structures of an engine: which fields BlockStored and BlockRemoved have beyond the oldest."""
    form = dict(omit_defaults=True, gc=False, array_like=array_like)
    hash_type = Union[bytes, int]
    stored = [("block_hashes", list[hash_type]), ("parent_block_hash", Optional[hash_type]),
              ("token_ids", list[int]), ("block_size", int), ("lora_id", Optional[int])]
    removed = [("block_hashes", list[hash_type])]
    if "medium" in fields:
        stored.append(("medium", Optional[str]))
        removed.append(("medium", Optional[str]))
    if "lora_name" in fields:
        stored.append(("lora_name", Optional[str]))
    if "extra_keys" in fields:
        stored.append(("extra_keys", Optional[list[Optional[tuple[Any, ...]]]], None))
    if "group_idx" in fields:
        stored += [("group_idx", Optional[int], None), ("kv_cache_spec_kind", Optional[str], None),
                   ("kv_cache_spec_sliding_window", Optional[int], None)]
        removed.append(("group_idx", Optional[int], None))
    batch = [("ts", float), ("events", list[Any])]
    if batch_rank:
        batch.append(("data_parallel_rank", Optional[int], None))
    define = msgspec.defstruct
    return (define("EventBatch", batch, **form), define("BlockStored", stored, tag=True, **form),
            define("BlockRemoved", removed, tag=True, **form),
            define("AllBlocksCleared", [], tag=True, **form))


def canonical(parent, tokens, extra):
    body = struct.pack("<QI", parent, len(tokens)) + struct.pack(f"<{len(tokens)}I", *tokens) + extra
    return xxhash.xxh3_64_intdigest(body)


class Twin:
    """What a follower must know."""

    def __init__(self):
        self.gpu, self.cpu, self.engine = {}, {}, set()

    def clear(self):
        self.gpu, self.cpu, self.engine = {}, {}, set()

    def known(self, name):
        return self.gpu.get(name, self.cpu.get(name))

    def store(self, names, parent, tokens, extra, medium):
        tier = self.cpu if medium == "CPU" else self.gpu
        if medium != "CPU":
            self.engine.update(names)
        at = 0 if parent is None else self.known(parent)
        for number, name in enumerate(names):
            block = tokens[number * BLOCK:(number + 1) * BLOCK]
            if self.known(name) is not None:
                at = self.known(name)
            elif at is None or not block:
                return
            else:
                at = canonical(at, block, extra)
            tier[name] = at

    def remove(self, names, medium):
        for name in names:
            (self.cpu if medium == "CPU" else self.gpu).pop(name, None)
            if medium != "CPU":
                self.engine.discard(name)


class Recorder:
    def __init__(self, seed, hash_kind, engine, fields):
        self.random = random.Random(seed)
        self.hash_kind, self.fields = hash_kind, fields
        self.Batch, self.Stored, self.Removed, self.Cleared = engine
        self.out, self.twin, self.now = bytearray(), Twin(), 1_700_000_000.0
        self.number, self.kept, self.heard, self.chains = 0, [], 0, []

    def record(self, kind, number=0, payload=b""):
        self.out += struct.pack(">BQI", kind, number, len(payload)) + payload

    def name(self):
        word = self.random.getrandbits(64)
        if self.hash_kind == "bytes":
            return struct.pack(">Q", word) * 4
        return word - (1 << 63) if self.hash_kind == "signed" else word

    def key(self, name):
        return name if isinstance(name, bytes) else struct.pack("<Q", name % (1 << 64))

    # What the engine does: a pair of events and of what the twin does with it.

    def store(self):
        more = {}
        adapter = "sql" if "lora_name" in self.fields and self.random.random() < 0.3 else None
        salt = "tenant" if "extra_keys" in self.fields and self.random.random() < 0.3 else None
        extra = tuple(text for text in (adapter, salt) if text)
        blocks = self.random.randint(1, 10)
        if self.chains and not extra and self.random.random() < 0.6:
            parent = self.random.choice(self.chains)
        else:
            parent = None
        names = [self.name() for _ in range(blocks)]
        if not extra:
            self.chains.append(names[-1])
        tokens = [self.random.choice([5, 200, 40_000, 150_000]) + n for n in range(blocks * BLOCK)]
        if "medium" in self.fields:
            more["medium"] = "GPU"
        if "lora_name" in self.fields:
            more["lora_name"] = adapter
        if "extra_keys" in self.fields and extra:
            more["extra_keys"] = [extra] * blocks
        if "group_idx" in self.fields:
            more |= {"group_idx": 0, "kv_cache_spec_kind": "full_attention"}
        event = self.Stored(block_hashes=names, parent_block_hash=parent, token_ids=tokens,
                            block_size=BLOCK, lora_id=None, **more)
        # An adapter without extra keys is hashed as an array with its name.
        packed = msgspec.msgpack.encode(list(extra)) if extra else b""
        return event, lambda twin: twin.store(names, parent, tokens, packed, None)

    def offload(self):
        names = self.random.sample(sorted(self.twin.gpu, key=repr), min(5, len(self.twin.gpu)))
        event = self.Stored(block_hashes=names, parent_block_hash=None, token_ids=[], block_size=BLOCK,
                            lora_id=None, medium="CPU", lora_name=None)
        return event, lambda twin: twin.store(names, None, [], b"", "CPU")

    def other_group(self):
        names = [self.name()]
        event = self.Stored(block_hashes=names, parent_block_hash=None, token_ids=[1] * BLOCK,
                            block_size=BLOCK, lora_id=None, medium="GPU", lora_name=None, group_idx=1,
                            kv_cache_spec_kind="sliding_window", kv_cache_spec_sliding_window=128)
        return event, lambda twin: None

    def remove(self):
        medium = "CPU" if "medium" in self.fields and self.twin.cpu and self.random.random() < 0.2 else None
        held = sorted(self.twin.cpu if medium else self.twin.engine, key=repr)
        names = self.random.sample(held, min(self.random.randint(1, 16), len(held)))
        # A name that nobody knows changes nothing.
        names.append(self.name())
        more = {"medium": medium or "GPU"} if "medium" in self.fields else {}
        return self.Removed(block_hashes=names, **more), lambda twin: twin.remove(names, medium)

    def event(self):
        dice = self.random.random()
        if dice < 0.004:
            return self.Cleared(), lambda twin: twin.clear()
        if dice < 0.35:
            return self.remove()
        if "extra_keys" in self.fields and dice < 0.40:
            return self.offload()
        if "group_idx" in self.fields and dice < 0.43:
            return self.other_group()
        return self.store()

    def message(self, arrives=True):
        """A message of some events, which the twin applies once it is known to a follower."""
        events, changes = [], []
        for _ in range(self.random.randint(1, 4)):
            event, change = self.event()
            events.append(event)
            changes.append(change)
            if arrives:
                self.catch_up()
                change(self.twin)
        self.now += self.random.random()
        rank = {"data_parallel_rank": 0} if hasattr(self.Batch, "data_parallel_rank") else {}
        payload = msgspec.msgpack.encode(self.Batch(ts=self.now, events=events, **rank))
        self.record(0 if arrives else 1, self.number, payload)
        self.kept = (self.kept + [(self.number, changes)])[-KEPT:]
        self.number += 1
        if arrives:
            self.heard = self.number

    def catch_up(self):
        """What the twin knows once a message arrives, or a connection is made: all that is replayed."""
        missing = range(self.heard, self.number)
        if not missing:
            return
        # The message that arrives is kept as well, and takes the place of one.
        kept = dict(self.kept[-(KEPT - 1):])
        if all(number in kept for number in missing):
            for number in missing:
                for change in kept[number]:
                    change(self.twin)
        else:
            self.twin.clear()
        self.heard = self.number

    def connect(self):
        missing, kept = range(self.heard, self.number), dict(self.kept)
        # The last message that was heard shows that it is the same life.
        if self.heard > 0 and self.heard - 1 not in kept:
            self.twin.clear()
            missing = sorted(kept)
        for number in missing:
            for change in kept[number]:
                change(self.twin)
        self.heard = self.number
        self.record(3)

    def restart(self, lost):
        self.record(2)
        self.number, self.heard, self.kept, self.chains = 0, 0, [], []
        self.twin.clear()
        for _ in range(lost):
            self.message(arrives=False)
        self.connect()

    def check(self):
        for kind, tier in ((4, self.twin.gpu), (5, self.twin.cpu)):
            self.record(kind, 0, b"".join(struct.pack("<Q", key) for key in sorted(set(tier.values()))))
        keys = sorted(self.key(name) for name in self.twin.engine)
        self.record(6, 0, b"".join(bytes([len(key)]) + key for key in keys))

    def run(self):
        self.connect()
        for round_ in range(12):
            for _ in range(15):
                self.message()
            self.check()
            kind = round_ % 6
            for _ in range({0: 1, 1: 7, 2: 60, 3: 5, 4: 0, 5: 0}[kind]):
                self.message(arrives=False)
            if kind == 3:
                self.connect()
                self.check()
            if kind in (4, 5):
                self.restart(lost=3 if kind == 4 else 0)
                self.check()
            self.message()
            self.check()
        return bytes(self.out)


STREAMS = {
    # vLLM since 2026: maps, hashes as bytes, adapters, salts, tiers, groups.
    "vllm-maps": (1, "bytes", False, {"medium", "lora_name", "extra_keys", "group_idx"}, True),
    # vLLM in 2025: arrays, hashes as numbers, tiers.
    "vllm-arrays": (2, "unsigned", True, {"medium"}, True),
    # SGLang: arrays, hashes as numbers with a sign, nothing else.
    "sglang-arrays": (3, "signed", True, set(), False),
}

if __name__ == "__main__":
    for name, (seed, hash_kind, array_like, fields, rank) in STREAMS.items():
        recorder = Recorder(seed, hash_kind, structures(array_like, fields, rank), fields)
        recorded = recorder.run()
        with open(f"{sys.path[0]}/{name}.bin", "wb") as file:
            file.write(recorded)
        print(name, len(recorded), "bytes")
