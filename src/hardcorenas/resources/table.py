"""What each choice costs: tables of exact integers in the smallest unit of a resource."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from hardcorenas.errors import InvalidArchitectureError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hardcorenas.space import Architecture, SearchSpace

Costs = tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True)
class ResourceTable(ABC):
    """What every choice of every block of a space costs, and what the fixed part costs.

    Attributes:
        space: The space it was made for, image size and number of classes included.
        resource: What is counted, such as ``"macs"``.
        unit: The unit of every number in it.
        base: Cost of stem and head.
        costs: ``costs[stage][block][choice]``, up to the largest depth of each stage.
    """

    space: SearchSpace
    resource: str
    unit: str
    base: int
    costs: Costs

    @abstractmethod
    def cost(self, architecture: Architecture) -> int:
        """Return the exact cost of a discrete architecture, in the table's unit."""

    def block_costs(self, architecture: Architecture) -> Iterator[tuple[int, ...]]:
        """Yield, for each stage, the costs of the blocks that run."""
        if architecture.space.fingerprint != self.space.fingerprint:
            raise InvalidArchitectureError(
                f"this {self.resource} table was made for space {self.space.name!r} "
                f"({self.space.fingerprint}), the architecture is of {architecture.space.name!r} "
                f"({architecture.space.fingerprint}); make a table for that space"
            )
        for table, indices in zip(self.costs, architecture.indices, strict=True):
            yield tuple(table[block][index] for block, index in enumerate(indices))


@final
class AdditiveTable(ResourceTable):
    """A resource that adds up along the network: time, MACs, parameters."""

    def cost(self, architecture: Architecture) -> int:
        """Return base plus the sum over the blocks that run."""
        return self.base + sum(map(sum, self.block_costs(architecture)))


@final
class PeakTable(ResourceTable):
    """A resource of which the network needs as much as its neediest part: peak memory."""

    def cost(self, architecture: Architecture) -> int:
        """Return the maximum over the fixed part and the blocks that run."""
        return max(self.base, *map(max, self.block_costs(architecture)))
