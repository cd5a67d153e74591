from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, TypedDict, final, overload

from typing_extensions import Self

__version__: str

Key = bytes | str
Path = str | bytes | PathLike[str] | PathLike[bytes]

class Filter:
    def add(self, key: Key) -> bool: ...
    def add_many(self, keys: Iterable[Key]) -> None: ...
    def __contains__(self, key: Key, /) -> bool: ...
    def contains_many(self, keys: Iterable[Key]) -> list[bool]: ...
    def __len__(self) -> int: ...
    def __or__(self, other: Self, /) -> Self: ...
    def __ior__(self, other: Self, /) -> Self: ...
    def __and__(self, other: Filter, /) -> StandardFilter: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    def copy(self) -> Self: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...
    def to_bytes(self) -> bytes: ...
    def save(self, path: Path) -> None: ...
    @property
    def bits(self) -> int: ...
    @property
    def hashes(self) -> int: ...
    @property
    def hash(self) -> str: ...
    @property
    def seed_fingerprint(self) -> str: ...
    @property
    def false_positive(self) -> float: ...
    @property
    def fill(self) -> float: ...
    @property
    def memory_bytes(self) -> int: ...

@final
class StandardFilter(Filter):
    @overload
    def __new__(
        cls,
        items: int,
        false_positive: float,
        *,
        hash: str | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...
    @overload
    def __new__(
        cls,
        *,
        bits: int,
        hashes: int,
        hash: str | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...

@final
class BlockedFilter(Filter):
    @overload
    def __new__(
        cls,
        items: int,
        false_positive: float,
        *,
        hash: str | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...
    @overload
    def __new__(
        cls,
        *,
        bits: int,
        hashes: int,
        hash: str | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...

@final
class CountingFilter(Filter):
    @overload
    def __new__(
        cls,
        items: int,
        false_positive: float,
        *,
        hash: str | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...
    @overload
    def __new__(
        cls,
        *,
        bits: int,
        hashes: int,
        hash: str | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...
    def remove(self, key: Key) -> bool: ...
    def remove_many(self, keys: Iterable[Key]) -> int: ...
    def to_standard(self) -> StandardFilter: ...
    @property
    def stuck_counters(self) -> int: ...

@final
class DynamicFilter(Filter):
    @overload
    def __new__(
        cls,
        items: int,
        false_positive: float,
        *,
        capacity: int | None = None,
        hash: str | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...
    @overload
    def __new__(
        cls,
        *,
        bits: int,
        hashes: int,
        capacity: int | None = None,
        hash: str | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...
    def remove(self, key: Key) -> bool: ...
    def remove_many(self, keys: Iterable[Key]) -> int: ...
    def shrink(self) -> int: ...
    @property
    def components(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def max_components(self) -> int: ...

@final
class Bank:
    def __new__(cls) -> Self: ...
    def __setitem__(self, name: str, filter: Filter, /) -> None: ...
    def __delitem__(self, name: str, /) -> None: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def who(self, key: Key) -> list[str]: ...
    def who_many(self, keys: Iterable[Key]) -> list[list[str]]: ...
    def chain(
        self, keys: Iterable[Key], *, step: int = 8, over_estimate: float = 1e-8, walk: bool = False
    ) -> dict[str, int]: ...
    @property
    def memory_bytes(self) -> int: ...

def from_bytes(data: bytes, *, secret: bytes | None = None, max_memory: int | None = None) -> Filter: ...
def load(path: Path, *, secret: bytes | None = None, max_memory: int | None = None) -> Filter: ...

class StandardPlan(TypedDict):
    bits: int
    hashes: int
    bits_per_item: float
    false_positive: float
    papers_bits: int
    papers_hashes: int

class BlockedPlan(TypedDict):
    bits: int
    hashes: int
    bits_per_item: float
    false_positive: float

class DynamicPlan(TypedDict):
    components: int
    bits: int
    hashes: int
    capacity: int
    false_positive: float
    papers_components: int
    papers_bits: int
    papers_hashes: int
    expected_bits: float
    standard_bits: int
    ratio: float

class ReplicaPlan(TypedDict):
    bits: int
    hashes: int
    rung: int
    takes: int
    replica_false_positive: float
    seconds_between_updates: float
    bytes_per_update: float
    sent_bytes_per_second_per_host: float
    received_bytes_per_second_per_host: float
    full_broadcast_sent_bytes_per_second_per_host: float
    wire_bytes_per_second_per_host: float
    quiet_bytes_per_second_per_host: float
    join_bytes_per_host: float
    join_seconds: float
    processor_share_per_host: float
    memory_bytes_per_host: int
    copies_bytes_per_host: int
    rows_bytes_per_host: int
    home_bytes_per_host: int
    false_hosts_per_lookup: float
    vain_probes_per_second: float
    reserve: str

class ChainPlan(TypedDict):
    key_false_positive: float
    hashes: int
    window: int
    bits: int
    takes: int
    bits_per_block: float
    memory_bytes: int
    memory_bits_per_block: float
    over_estimate: float
    one_step_more: float
    keys_read: float
    rounds: float
    cache_lines_read: float
    lookup_ns: float

class StandardModel(TypedDict):
    fill: float
    false_positive: float
    best_hashes: float
    best_false_positive: float

class DynamicModel(TypedDict):
    components: int
    false_positive: float
    standard_false_positive: float
    rebuilt_false_positive: float
    several_components_bound: float

class HostModel(TypedDict):
    false_positive: float
    false_negative: float
    overall: float

class ReplicaModel(TypedDict):
    replica_items: float
    false_positive: float
    false_negative: float
    overall: float
    host: HostModel

class ChainModel(TypedDict):
    over_estimate: float
    run: float
    one_step_more: float
    keys_read: float
    rounds: float
    keys_walked: float

def plan_standard(items: int, false_positive: float) -> StandardPlan: ...
def plan_blocked(items: int, false_positive: float) -> BlockedPlan: ...
def plan_dynamic(
    max_items: int, false_positive: float, sizes: Iterable[int] | Mapping[int, float] | None = None
) -> DynamicPlan: ...
def plan_replica(
    items: int,
    adds_per_second: float,
    removes_per_second: float,
    hosts: int,
    miss: float,
    false_positive: float,
    *,
    longest: float | None = 1.0,
    lookups_per_second: float = 0.0,
) -> ReplicaPlan: ...
def plan_chain(
    workers: int, blocks: int, *, length: int = 16384, step: int = 8, over_estimate: float = 1e-8
) -> ChainPlan: ...
def model_standard(bits: int, hashes: int, items: int) -> StandardModel: ...
def model_dynamic(bits: int, hashes: int, capacity: int, items: int) -> DynamicModel: ...
def model_replica(
    bits: int,
    hashes: int,
    items: int,
    dirty_ones: float,
    dirty_zeros: float,
    *,
    hosts: int = 2,
    weight_false_positive: float = 1.0,
    weight_false_negative: float = 1.0,
) -> ReplicaModel: ...
def model_chain(
    false_positive: float, hashes: int, window: int, step: int, length: int, workers: int
) -> ChainModel: ...
