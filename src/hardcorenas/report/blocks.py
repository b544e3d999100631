"""A network as a picture: what stands in each place, how large it is and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas.networks import layout

if TYPE_CHECKING:
    from hardcorenas.report.run_files import Limit
    from hardcorenas.space import Architecture


@dataclass(frozen=True)
class Part:
    """One place of a network.

    Attributes:
        name: Where it stands.
        lines: What it is; empty where the network is less deep than it might be.
        cost: What it costs, in words; empty where that is not known.
        weight: Its cost beside that of the dearest block, from 0 to 1.
    """

    name: str
    lines: tuple[str, ...]
    cost: str = ""
    weight: float = 0.0


@dataclass(frozen=True)
class Group:
    """The parts of one stage; the note tells its width and resolution."""

    name: str
    note: str
    parts: tuple[Part, ...]


def drawn_stages(architecture: Architecture, limit: Limit | None) -> list[Group]:
    """Return a network stage by stage, the fixed parts first.

    Args:
        architecture: The network.
        limit: The budget whose costs are shown, if any; its table may be gone.
    """
    space = architecture.space
    table = None if limit is None else limit.table
    costs = None if table is None else list(table.block_costs(architecture))
    dearest = max((cost for stage in costs or () for cost in stage), default=0) or 1

    def priced(name: str, lines: tuple[str, ...], amount: int | None) -> Part:
        if limit is None or amount is None:
            return Part(name, lines)
        return Part(name, lines, limit.unit.format(amount), min(1.0, amount / dearest))

    conv, _ = layout.stem_shapes(space)
    kernel, size = conv.kernel_size, space.resolution
    fixed = f"{kernel}×{kernel} convolution, {space.head.width} wide head"
    fixed_part = priced("stem and head", (fixed,), table.base if table else None)
    groups = [Group("fixed", f"{size}×{size} in, {space.num_classes} classes out", (fixed_part,))]
    for index, shapes in enumerate(layout.block_shapes(architecture)):
        stage = space.stages[index]
        names = [f"{index + 1}.{block + 1}" for block in range(stage.max_depth)]
        parts = [
            priced(
                names[block],
                tuple(filter(None, shape.choice.described(shape.slot))),
                None if costs is None else costs[index][block],
            )
            for block, shape in enumerate(shapes)
        ]
        parts += [Part(name, ()) for name in names[len(shapes) :]]
        size = shapes[0].slot.out_size
        note = f"{stage.width} channels, {size}×{size}"
        groups.append(Group(f"stage {index + 1}", note, tuple(parts)))
    return groups
