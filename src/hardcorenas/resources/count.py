"""Resource tables by arithmetic, exact and the same on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from hardcorenas.errors import InvalidArgumentError, shown
from hardcorenas.networks import layout
from hardcorenas.networks.counting import Resource, cost
from hardcorenas.resources.provenance import Provenance
from hardcorenas.resources.table import (
    AdditiveTable,
    Costs,
    PeakTable,
    ResourceTable,
)

if TYPE_CHECKING:
    from hardcorenas.space import SearchSpace

_UNITS: dict[Resource, str] = {"macs": "MACs", "params": "parameters", "memory": "bytes"}


def count(space: SearchSpace, resource: Resource) -> ResourceTable:
    """Return the table of a resource that needs no measuring.

    Args:
        space: What to count, at its own resolution.
        resource: ``"macs"`` of one image, ``"params"``, or ``"memory"``: peak bytes of activations
            when one image is inferred, a maximum and not a sum.
    """
    if resource not in get_args(Resource):
        expected = ", ".join(get_args(Resource))
        raise InvalidArgumentError(f"resource: expected one of {expected}, got {shown(resource)}")
    fixed = [
        cost(part, resource)
        for part in (*layout.stem_shapes(space), layout.head_shape(space))
        if part is not None
    ]
    costs = _block_costs(space, resource)
    provenance = Provenance("counted", space.resolution)
    if resource == "memory":
        return PeakTable(space, resource, _UNITS[resource], max(fixed), costs, provenance)
    return AdditiveTable(space, resource, _UNITS[resource], sum(fixed), costs, provenance)


def _block_costs(space: SearchSpace, resource: Resource) -> Costs:
    return tuple(
        tuple(tuple(cost(shape, resource) for shape in row) for row in rows)
        for rows in layout.cell_shapes(space)
    )
