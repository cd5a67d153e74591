"""Parameters for a target: dictionaries with the names that ``umbel plan --json`` prints.

In a notebook, ``pandas.DataFrame(umbel.plan.standard(n, 0.01) for n in sizes)`` makes a table of them.
"""

from ._umbel import plan_blocked as blocked
from ._umbel import plan_chain as chain
from ._umbel import plan_dynamic as dynamic
from ._umbel import plan_replica as replica
from ._umbel import plan_standard as standard

__all__ = ["blocked", "chain", "dynamic", "replica", "standard"]
