"""What a network costs: every resource, declared once.

To add one that is counted, write its function in `networks.counting` and its line here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas.networks import counting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hardcorenas.artifacts.table import Combination
    from hardcorenas.networks.counting import Part


@dataclass(frozen=True)
class Resource:
    """Something that networks need and budgets limit.

    Attributes:
        unit: Smallest unit, one of `units.UNITS`.
        kind: Whether a network needs the sum of its parts, or as much as the neediest.
        count: Returns what a part of a network needs; None where that has to be measured.
    """

    unit: str
    kind: Combination
    count: Callable[[Part], int] | None = None

    @property
    def is_measured(self) -> bool:
        """Whether it depends on a device."""
        return self.count is None


LATENCY = "latency"
RESOURCES: Mapping[str, Resource] = {
    LATENCY: Resource("ns", "sum"),
    "macs": Resource("MACs", "sum", counting.macs),
    "params": Resource("parameters", "sum", counting.params),
    "memory": Resource("bytes", "peak", counting.peak_bytes),
}
COUNTED = tuple(name for name, resource in RESOURCES.items() if not resource.is_measured)
