"""A publisher of KV cache events with the sockets and the messages of vLLM and SGLang.

Prints the ports of its PUB and its ROUTER socket, then reads lines: `store FIRST BLOCKS`,
`lose FIRST BLOCKS` (numbered and kept, not sent), `clear`.
"""
import sys
import time
from collections import deque
from typing import Any, Optional, Union

import msgspec
import zmq

FORM = dict(omit_defaults=True, gc=False, array_like=sys.argv[1] == "arrays")


class EventBatch(msgspec.Struct, **FORM):
    ts: float
    events: list[Any]
    data_parallel_rank: Optional[int] = None


class KVCacheEvent(msgspec.Struct, tag=True, **FORM):
    pass


class BlockStored(KVCacheEvent):
    block_hashes: list[Union[bytes, int]]
    parent_block_hash: Union[bytes, int, None]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str]


class AllBlocksCleared(KVCacheEvent):
    pass


context = zmq.Context()
pub, router = context.socket(zmq.PUB), context.socket(zmq.ROUTER)
pub.set_hwm(100_000)
print(pub.bind_to_random_port("tcp://127.0.0.1"), flush=True)
print(router.bind_to_random_port("tcp://127.0.0.1"), flush=True)
poller = zmq.Poller()
poller.register(router, zmq.POLLIN)
poller.register(sys.stdin, zmq.POLLIN)
kept, number = deque(maxlen=10_000), 0


def replay():
    client, _, start = router.recv_multipart()
    for seq, payload in kept:
        if seq >= int.from_bytes(start, "big"):
            router.send_multipart((client, b"", seq.to_bytes(8, "big"), payload))
    router.send_multipart((client, b"", (-1).to_bytes(8, "big", signed=True), b""))


def publish(event, is_sent=True):
    global number
    payload = msgspec.msgpack.encode(EventBatch(ts=time.time(), events=[event], data_parallel_rank=0))
    if is_sent:
        pub.send_multipart((b"kv-events", number.to_bytes(8, "big"), payload))
    kept.append((number, payload))
    number += 1


def stored(first, blocks):
    names = [hash((first, block)) for block in range(blocks)]
    return BlockStored(names, None, list(range(first, first + 4 * blocks)), 4, None, "GPU")


def obey(line):
    words = line.split()
    if words[0] == "clear":
        publish(AllBlocksCleared())
    else:
        publish(stored(int(words[1]), int(words[2])), is_sent=words[0] == "store")


while True:
    ready = dict(poller.poll())
    if router in ready:
        replay()
    if sys.stdin.fileno() in ready or sys.stdin in ready:
        line = sys.stdin.buffer.raw.readline()
        if not line:
            break
        obey(line.decode())
