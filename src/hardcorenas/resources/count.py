"""Resource tables by arithmetic, exact and the same on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardcorenas.artifacts import Provenance
from hardcorenas.errors import InvalidArgumentError, shown
from hardcorenas.networks import layout
from hardcorenas.resources.resource import COUNTED, RESOURCES
from hardcorenas.resources.table import TABLES, ResourceTable

if TYPE_CHECKING:
    from hardcorenas.space import SearchSpace


def count(space: SearchSpace, resource: str) -> ResourceTable:
    """Return the table of a resource that needs no measuring.

    Args:
        space: What to count, at its own resolution.
        resource: ``"macs"`` of one image, ``"params"``, or ``"memory"``: peak bytes of activations
            when one image is inferred, a maximum and not a sum.
    """
    declared = RESOURCES.get(resource) if isinstance(resource, str) else None
    if declared is None or declared.count is None:
        raise InvalidArgumentError(
            f"resource: expected one of {', '.join(COUNTED)}, got {shown(resource)}"
        )
    cost, kind = declared.count, TABLES[declared.kind]
    fixed = (*layout.stem_shapes(space), layout.head_shape(space))
    base = kind.combine(cost(part) for part in fixed if part is not None)
    costs = tuple(
        tuple(tuple(cost(shape) for shape in row) for row in rows)
        for rows in layout.cell_shapes(space)
    )
    provenance = Provenance("counted", space.resolution)
    return kind(space, resource, declared.unit, base, costs, provenance)
