"""What a filter will do: dictionaries with the names that ``umbel model --json`` prints."""

from ._umbel import model_chain as chain
from ._umbel import model_dynamic as dynamic
from ._umbel import model_replica as replica
from ._umbel import model_standard as standard

__all__ = ["chain", "dynamic", "replica", "standard"]
