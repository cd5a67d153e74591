"""Bloom filters that travel.

Filters of several kinds, whose files the command ``umbel filter`` reads and writes; a bank that asks many filters at
once; plans and models of filters and of their replicas.

>>> from umbel import StandardFilter
>>> seen = StandardFilter(items=10_000, false_positive=0.01)
>>> seen.add("apple")
True
>>> "apple" in seen, "pear" in seen
(True, False)

A key is bytes, or a str, which stands for its UTF-8 bytes.
"""

from . import model, plan
from ._umbel import (
    Bank,
    BlockedFilter,
    CountingFilter,
    DynamicFilter,
    Filter,
    StandardFilter,
    __version__,
    from_bytes,
    load,
)

__all__ = [
    "Bank",
    "BlockedFilter",
    "CountingFilter",
    "DynamicFilter",
    "Filter",
    "StandardFilter",
    "__version__",
    "from_bytes",
    "load",
    "model",
    "plan",
]
