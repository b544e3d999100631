"""What each choice costs: tables of exact integers in the smallest unit of a resource.

Block b of stage s runs with probability ρ_sb(β) = Σ_{b' ≥ b} β_sb'. With α_sbc the probability of
choice c, the expected cost of an additive resource is

    cost(α, β) = base + Σ_s Σ_b ρ_sb(β) Σ_c α_sbc · t_sbc,

linear in α for fixed β and linear in β for fixed α.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, final

from hardcorenas import files
from hardcorenas.errors import (
    ArtifactError,
    ForeignTableError,
    HardcorenasError,
    InvalidArchitectureError,
    shown,
)
from hardcorenas.resources.provenance import Provenance
from hardcorenas.resources.units import UNITS, Unit
from hardcorenas.space import Architecture, SearchSpace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from hardcorenas.resources.calibration import Calibration
    from hardcorenas.resources.targets import Fingerprint

    Alpha = Sequence[Sequence[ArrayLike]]
    Beta = Sequence[ArrayLike]

Costs = tuple[tuple[tuple[int, ...], ...], ...]

FORMAT_VERSION = 2
# Below this, sums are exact in 64-bit floats too: 104 days in nanoseconds, 9 · 10^15 MACs.
LARGEST_TOTAL = 2**53
# The yardstick is the lightest network; beyond this, its time and the table's are no match.
LARGEST_YARDSTICK_RATIO = 3.0


@dataclass(frozen=True)
class ResourceTable(ABC):
    """What every choice of every block of a space costs, and what the fixed part costs.

    The costs of a measured table are upper bounds: predictions with the margin of its calibration
    on top. So a budget is kept by the bound, not by a mean.

    Attributes:
        space: The space it was made for, image size and number of classes included.
        resource: What is counted, such as ``"macs"`` or ``"latency"``.
        unit: The unit of every number in it: ``"ns"``, ``"MACs"``, ``"parameters"``, ``"bytes"``.
        base: Cost of stem and head.
        costs: ``costs[stage][block][choice]``, up to the largest depth of each stage.
        provenance: Where the numbers come from.
        calibration: How well a measured table predicts, and its margin; none if counted.
    """

    space: SearchSpace
    resource: str
    unit: str
    base: int
    costs: Costs
    provenance: Provenance
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.resource, str) or not self.resource:
            raise ArtifactError(f"resource: expected a name, got {shown(self.resource)}")
        if not isinstance(self.unit, str) or self.unit not in UNITS:
            raise ArtifactError(f"unit: expected one of {', '.join(UNITS)}, got {self.unit!r}")
        _check_amount("base", self.base)
        _check_length("costs", self.costs, len(self.space.stages))
        for s, (rows, stage) in enumerate(zip(self.costs, self.space.stages, strict=True)):
            _check_length(f"costs[{s}]", rows, stage.max_depth)
            for b, row in enumerate(rows):
                _check_length(f"costs[{s}][{b}]", row, len(stage.choices))
                for c, amount in enumerate(row):
                    _check_amount(f"costs[{s}][{b}][{c}]", amount)
        if self.provenance.resolution != self.space.resolution:
            raise ArtifactError(
                f"provenance.resolution: expected {self.space.resolution}, that of the space, "
                f"got {shown(self.provenance.resolution)}"
            )
        self._check_calibration()
        total = self.base + sum(max(row) for rows in self.costs for row in rows)
        if total > LARGEST_TOTAL:
            raise ArtifactError(
                f"costs: add up to {total} {self.unit}, expected at most {LARGEST_TOTAL}"
            )

    def _check_calibration(self) -> None:
        """Check that a measured table is of time, and of the order of its own yardstick."""
        if self.calibration is None:
            return
        if (self.unit, self.kind) != ("ns", "sum"):
            raise ArtifactError(
                f"unit: a measured table is a sum of ns, got a {self.kind} of {self.unit}"
            )
        ratio = self.predicted(self.space.lightest) / self.calibration.yardstick
        if not 1 / LARGEST_YARDSTICK_RATIO < ratio < LARGEST_YARDSTICK_RATIO:
            raise ArtifactError(
                f"unit: the lightest network is predicted at {ratio:.3g} times its own measured "
                f"time; are the costs in {self.unit}?"
            )

    @property
    @abstractmethod
    def kind(self) -> str:
        """How parts combine, as it is written in files."""

    @abstractmethod
    def total(self, block_costs: Sequence[int]) -> int:
        """Return what a network costs whose blocks cost this, the fixed part included."""

    def cost(self, architecture: Architecture) -> int:
        """Return the exact cost of a discrete architecture, in the table's unit."""
        return self.total([cost for costs in self.block_costs(architecture) for cost in costs])

    def predicted(self, architecture: Architecture) -> int:
        """Return the cost to expect: that of a counted table, or the bound less its margin."""
        margin = 0.0 if self.calibration is None else self.calibration.margin
        return round(self.cost(architecture) / (1 + margin))

    def with_confidence(self, confidence: float) -> Self:
        """Return the same measurement with the margin of another confidence.

        Args:
            confidence: The chance, from 0.5, that a network stays within its upper bound.
        """
        if self.calibration is None:
            return self
        calibration = dataclasses.replace(self.calibration, confidence=confidence)
        factor = (1 + calibration.margin) / (1 + self.calibration.margin)
        return dataclasses.replace(
            self,
            base=math.ceil(factor * self.base),
            costs=tuple(
                tuple(tuple(math.ceil(factor * cost) for cost in row) for row in rows)
                for rows in self.costs
            ),
            calibration=calibration,
        )

    def check_bound_to(self, found: Fingerprint) -> None:
        """Raise `ForeignTableError` unless the table was measured on just this.

        Args:
            found: Device, runtime, threads, precision and versions of a target.
        """
        differing = [
            f"{name} is {shown(expected)}, here {shown(actual)}"
            for name, actual in dataclasses.asdict(found).items()
            if (expected := getattr(self.provenance, name)) != actual
        ]
        if differing:
            raise ForeignTableError(
                f"this {self.resource} table was measured on something else: "
                f"its {', its '.join(differing)}"
            )

    @property
    @abstractmethod
    def cheapest_cost(self) -> int:
        """The least that any architecture of the space costs."""

    @property
    @abstractmethod
    def dearest_cost(self) -> int:
        """The most that any architecture of the space costs."""

    @property
    def display_unit(self) -> Unit:
        """How amounts are written and shown."""
        return UNITS[self.unit]

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

    def to_json(self) -> str:
        """Return a JSON document with the table and its whole space."""
        content = {
            "kind": self.kind,
            "resource": self.resource,
            "unit": self.unit,
            "provenance": dataclasses.asdict(self.provenance),
            "base": self.base,
            "costs": self.costs,
            "calibration": self.calibration and self.calibration.to_dict(),
            "space": self.space.to_dict(),
        }
        return files.dump(content, kind="table", version=FORMAT_VERSION)

    @staticmethod
    def from_json(text: str, *, source: str = "table") -> ResourceTable:
        """Read what `to_json` wrote.

        Args:
            text: The JSON document.
            source: What to call it in errors, usually its file name.
        """
        data = files.parse(text, kind="table", version=FORMAT_VERSION, source=source)
        kinds = {"sum": AdditiveTable, "peak": PeakTable}
        kind = data.pop("kind", None)
        if not isinstance(kind, str) or kind not in kinds:
            raise ArtifactError(f"{source}: kind: expected one of {', '.join(kinds)}, got {kind!r}")
        try:
            return kinds[kind](**_read_fields(data))
        except HardcorenasError as error:
            raise ArtifactError(f"{source}: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the JSON document to a file, whole or not at all."""
        files.write_text(path, self.to_json())

    @staticmethod
    def load(path: str | Path) -> ResourceTable:
        """Read the JSON document from a file."""
        return ResourceTable.from_json(files.read_text(path), source=str(path))

    def _stage_ends(self, extreme: Any, combine: Any) -> Iterator[list[int]]:
        """Yield, for each stage, what its depths cost with the cheapest or dearest blocks."""
        for rows, stage in zip(self.costs, self.space.stages, strict=True):
            blocks = [extreme(row) for row in rows]
            yield [combine(blocks[:depth]) for depth in stage.depths]


@final
class AdditiveTable(ResourceTable):
    """A resource that adds up along the network: time, MACs, parameters."""

    @property
    def kind(self) -> str:
        """Parts are added."""
        return "sum"

    def total(self, block_costs: Sequence[int]) -> int:
        """Return base plus the sum over the blocks that run."""
        return self.base + sum(block_costs)

    @cached_property
    def cheapest_cost(self) -> int:
        """The least that any architecture of the space costs."""
        return self.base + sum(map(min, self._stage_ends(min, sum)))

    @cached_property
    def dearest_cost(self) -> int:
        """The most that any architecture of the space costs."""
        return self.base + sum(map(max, self._stage_ends(max, sum)))

    def expected_cost(self, alpha: Alpha, beta: Beta) -> float:
        """Return the mean cost of networks drawn from (α, β), in the table's unit.

        Args:
            alpha: ``alpha[stage][block]``: probabilities of the choices of a block.
            beta: ``beta[stage]``: probabilities of the stage's allowed depths.
        """
        flat_alpha, flat_beta = _flatten(alpha, beta)
        return float(self.base + flat_alpha @ self.theta @ flat_beta)

    def expected_cost_gradients(
        self, alpha: Alpha, beta: Beta
    ) -> tuple[list[list[NDArray[np.float64]]], list[NDArray[np.float64]]]:
        """Return the derivatives of `expected_cost` by α and by β, laid out as those are."""
        import numpy as np

        flat_alpha, flat_beta = _flatten(alpha, beta)
        by_alpha = iter(self.theta @ flat_beta)
        by_beta = iter(flat_alpha @ self.theta)
        return (
            [[np.array([next(by_alpha) for _ in row]) for row in rows] for rows in self.costs],
            [np.array([next(by_beta) for _ in stage.depths]) for stage in self.space.stages],
        )

    @cached_property
    def theta(self) -> NDArray[np.float64]:
        """The paper's matrix Θ: cost(α, β) = base + αᵀ Θ β, with α and β flattened.

        Row (s, b, c), column (s, d): t_sbc where block b runs at depth d of its stage, else 0. So
        the gradient of the cost with respect to α is Θβ, and with respect to β it is Θᵀα.
        """
        import numpy as np

        blocks = []
        for rows, stage in zip(self.costs, self.space.stages, strict=True):
            times = np.asarray(rows, float)
            runs = np.arange(stage.max_depth)[:, None] < np.asarray(stage.depths)[None, :]
            blocks.append((times[:, :, None] * runs[:, None, :]).reshape(-1, len(stage.depths)))
        theta = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)))
        row = column = 0
        for block in blocks:
            theta[row : row + block.shape[0], column : column + block.shape[1]] = block
            row, column = row + block.shape[0], column + block.shape[1]
        return theta


@final
class PeakTable(ResourceTable):
    """A resource of which the network needs as much as its neediest part: peak memory."""

    @property
    def kind(self) -> str:
        """The largest part counts."""
        return "peak"

    def total(self, block_costs: Sequence[int]) -> int:
        """Return the maximum over the fixed part and the blocks that run."""
        return max(self.base, *block_costs)

    @cached_property
    def cheapest_cost(self) -> int:
        """The least that any architecture of the space costs."""
        return max(self.base, *map(min, self._stage_ends(min, max)))

    @cached_property
    def dearest_cost(self) -> int:
        """The most that any architecture of the space costs."""
        return max(self.base, *map(max, self._stage_ends(max, max)))


def _flatten(alpha: Alpha, beta: Beta) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    import numpy as np  # only here, so that counting and showing need no numpy

    flat_alpha = np.concatenate([np.asarray(row, float) for rows in alpha for row in rows])
    return flat_alpha, np.concatenate([np.asarray(row, float) for row in beta])


def _read_fields(data: dict[str, Any]) -> dict[str, Any]:
    """Return a table's fields from plain data; their values are checked by the table itself."""
    expected = {"resource", "unit", "provenance", "base", "costs", "calibration", "space"}
    if set(data) != expected:
        odd = ", ".join(sorted(set(data) ^ expected))
        raise ArtifactError(f"unknown or missing fields: {odd}")
    return {
        **data,
        "provenance": Provenance.from_dict(data["provenance"]),
        "calibration": _calibration(data["calibration"]),
        "costs": _tuples(data["costs"]),
        "space": SearchSpace.from_dict(data["space"]),
    }


def _calibration(data: object) -> Calibration | None:
    if data is None:
        return None
    from hardcorenas.resources.calibration import Calibration  # needs numpy, counting does not

    return Calibration.from_dict(data)


def _tuples(value: object) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _check_amount(field_name: str, amount: object) -> None:
    if isinstance(amount, bool) or not isinstance(amount, int) or amount < 0:
        raise ArtifactError(f"{field_name}: expected a whole number from 0, got {amount!r}")


def _check_length(field_name: str, values: object, expected: int) -> None:
    if not isinstance(values, tuple) or len(values) != expected:
        found = len(values) if isinstance(values, tuple) else values
        raise ArtifactError(
            f"{field_name}: expected {expected} entries for the space, got {found!r}"
        )
