"""What to time: every distinct part of a space, and whole networks to calibrate and to judge by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hardcorenas.errors import ArtifactError, InvalidSpaceError
from hardcorenas.networks import layout
from hardcorenas.networks.layout import macs
from hardcorenas.resources.settings import PlanSettings, TargetSettings
from hardcorenas.space import Architecture, SearchSpace

if TYPE_CHECKING:
    from hardcorenas.families import BlockShape

# Unseen networks judge the table, so each of them must be known well by itself; the error of a
# calibration network is averaged away.
_VISITS_OF_UNSEEN = 2
_STRONGEST_TILT = 4.0


@dataclass(frozen=True)
class Plan:
    """The items to time, in this order: stem, head, blocks, calibration networks, unseen networks.

    Attributes:
        space: The space.
        batch_size: Images at once.
        networks: How many networks to calibrate with.
        unseen: How many further networks to judge by.
        seed: Decides which networks.
    """

    space: SearchSpace
    batch_size: int = 1
    networks: int = PlanSettings.networks
    unseen: int = PlanSettings.unseen
    seed: int = 0

    def __post_init__(self) -> None:
        self.space.require_one_resolution()
        TargetSettings(batch_size=self.batch_size)
        PlanSettings(self.networks, self.unseen, self.seed)

    @cached_property
    def blocks(self) -> tuple[BlockShape, ...]:
        """The distinct shapes of blocks; equal shapes cost the same and are timed once."""
        return tuple(dict.fromkeys(shape for rows in self.cells for row in rows for shape in row))

    @cached_property
    def cells(self) -> tuple[tuple[tuple[BlockShape, ...], ...], ...]:
        """``cells[stage][block][choice]``: the shape of every cell of the table."""
        return layout.cell_shapes(self.space)

    @cached_property
    def architectures(self) -> tuple[Architecture, ...]:
        """Distinct networks, those for calibration first, spread over the whole range of cost."""
        wanted = self.networks + self.unseen
        rng = np.random.default_rng(self.seed)
        drawn: dict[Architecture, None] = {}
        for _ in range(50 * wanted):
            drawn[_tilted_sample(self.space, rng)] = None
            if len(drawn) == wanted:
                return tuple(drawn)
        raise InvalidSpaceError(
            "",
            f"space {self.space.name!r} gave only {len(drawn)} different networks, {wanted} are "
            f"needed; ask for fewer: hardcorenas measure --networks N --unseen M, whose table a "
            f"run takes as device.table",
        )

    @property
    def yardstick(self) -> Architecture:
        """The network that runs among the others to tell how busy the machine is."""
        return self.space.lightest

    @property
    def input_shape(self) -> tuple[int, int, int, int]:
        """What a network takes: images, channels, height, width."""
        space = self.space
        return self.batch_size, space.input_channels, space.resolution, space.resolution

    @property
    def num_parts(self) -> int:
        """How many items are parts: stem, head and blocks."""
        return 2 + len(self.blocks)

    @property
    def visits(self) -> list[int]:
        """How often each item is timed in a round."""
        return [1] * (self.num_parts + self.networks) + [_VISITS_OF_UNSEEN] * self.unseen

    @property
    def judged(self) -> list[int]:
        """The items whose precision decides when to stop."""
        return list(range(self.num_parts, len(self.visits)))

    def counts(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return how often each network has each part: a column for the fixed part, then blocks."""
        column = {shape: 1 + index for index, shape in enumerate(self.blocks)}
        counts = np.zeros((len(self.architectures), 1 + len(self.blocks)))
        counts[:, 0] = 1
        for row, architecture in enumerate(self.architectures):
            for shapes in layout.block_shapes(architecture):
                for shape in shapes:
                    counts[row, column[shape]] += 1
        return counts

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which the same plan is made again."""
        return {
            "space": self.space.to_dict(),
            "batch_size": self.batch_size,
            "networks": self.networks,
            "unseen": self.unseen,
            "seed": self.seed,
            "digest": self._digest,
        }

    @staticmethod
    def from_dict(data: Any, *, source: str) -> Plan:
        """Read what `to_dict` returned."""
        expected = {"space", "batch_size", "networks", "unseen", "seed", "digest"}
        if not isinstance(data, dict) or set(data) != expected:
            raise ArtifactError(f"{source}: expected a plan with {', '.join(sorted(expected))}")
        fields = {name: value for name, value in data.items() if name != "digest"}
        plan = Plan(**{**fields, "space": SearchSpace.from_dict(data["space"])})
        if plan._digest != data["digest"]:
            raise ArtifactError(
                f"{source}: its networks were drawn by another version of hardcorenas or numpy; "
                f"read it with that one"
            )
        return plan

    @property
    def _digest(self) -> str:
        """What tells these networks from others: random numbers may change between versions."""
        return hashlib.sha256("\n".join(map(str, self.architectures)).encode()).hexdigest()[:16]


def _tilted_sample(space: SearchSpace, rng: np.random.Generator) -> Architecture:
    """Return a random network, drawn with a taste for cheap or for dear of random strength.

    Drawing uniformly gives networks of nearly the same cost; budgets lie anywhere.
    """
    tilt = rng.uniform(-_STRONGEST_TILT, _STRONGEST_TILT)
    indices = []
    for number, stage in enumerate(space.stages):
        depth = int(rng.choice(stage.depths, p=_tilted(np.asarray(stage.depths, float), tilt)))
        sizes = np.array(
            [macs(layout.block_shape(space, number, 1, choice)) for choice in stage.choices]
        )
        chances = _tilted(sizes, tilt)
        indices.append([int(rng.choice(len(chances), p=chances)) for _ in range(depth)])
    return Architecture.from_indices(space, indices)


def _tilted(sizes: Any, tilt: float) -> Any:
    """Return probabilities that grow with the rank of a size, or fall for a negative tilt."""
    ranks = np.argsort(np.argsort(sizes, kind="stable"), kind="stable")
    weights = np.exp(tilt * ranks / max(1, len(ranks) - 1))
    return weights / weights.sum()
