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
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar, final

import msgspec

from hardcorenas import files
from hardcorenas.artifacts import Provenance, TableFile
from hardcorenas.artifacts.table import MEDIAN, PERCENTILES
from hardcorenas.errors import (
    ArtifactError,
    ForeignTableError,
    HardcorenasError,
    InvalidArchitectureError,
    InvalidArgumentError,
    shown,
)
from hardcorenas.networks import layout
from hardcorenas.resources.settings import DeviceSettings
from hardcorenas.resources.units import COUNTED, LATENCY, RESOURCES, UNITS, Unit, percentile_name
from hardcorenas.space import Architecture, SearchSpace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike

    from hardcorenas.artifacts import TargetRecord
    from hardcorenas.artifacts.table import Combination, Costs
    from hardcorenas.files import Json
    from hardcorenas.resources.calibration import Calibration

T = TypeVar("T")

# Below this, sums are exact in 64-bit floats too: 104 days in nanoseconds, 9 · 10^15 MACs.
LARGEST_TOTAL = 2**53
# The yardstick is the lightest network; beyond this, its time and the table's are no match.
LARGEST_YARDSTICK_RATIO = 3.0
LARGEST_TIMED_RATIO = 100.0  # a few readings on a busy machine may be far off, but not so far
LEAST_WINDOWS = 2  # one says nothing of how windows differ


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

    kind: ClassVar[Combination]

    space: SearchSpace
    resource: str
    unit: str
    base: int
    costs: Costs
    provenance: Provenance = dataclasses.field(hash=False)
    calibration: Calibration | None = dataclasses.field(default=None, hash=False)

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ArtifactError(f"unit: expected one of {', '.join(UNITS)}, got {shown(self.unit)}")
        _check_length("costs", self.costs, len(self.space.stages))
        for s, (rows, stage) in enumerate(zip(self.costs, self.space.stages, strict=True)):
            _check_length(f"costs[{s}]", rows, stage.max_depth)
            for b, row in enumerate(rows):
                _check_length(f"costs[{s}][{b}]", row, len(stage.choices))
        amounts = (self.base, *(cost for rows in self.costs for row in rows for cost in row))
        if not all(type(amount) is int and amount >= 0 for amount in amounts):
            raise ArtifactError("costs: expected whole numbers from 0")
        if self.provenance.resolution != self.space.resolution:
            raise ArtifactError(
                f"provenance.resolution: expected {self.space.resolution}, that of the space, "
                f"got {self.provenance.resolution}"
            )
        self._check_calibration()
        total = self.base + sum(max(row) for rows in self.costs for row in rows)
        if total > LARGEST_TOTAL:
            raise ArtifactError(
                f"costs: add up to {shown(total)} {self.unit}, expected at most {LARGEST_TOTAL}"
            )

    def _check_calibration(self) -> None:
        """Check that what was calibrated is a latency, and of the order of its own yardstick."""
        if self.calibration is None:
            return
        latency, percentile = RESOURCES[LATENCY], self.calibration.percentile
        name = LATENCY if percentile == MEDIAN else percentile_name(LATENCY, percentile)
        if (self.resource, self.unit, self.kind) != (name, latency.unit, latency.kind):
            raise ArtifactError(
                f"unit: a measured table is of {name}, a {latency.kind} of {latency.unit}; "
                f"got {shown(self.resource)}, a {self.kind} of {self.unit}"
            )
        if (self.calibration.untimed == 0) != self.provenance.cold:
            raise ArtifactError(
                f"calibration.untimed: expected 0 of a cold table and more of a warm one, got "
                f"{self.calibration.untimed} of a {'cold' if self.provenance.cold else 'warm'} one"
            )
        if percentile != MEDIAN:
            return  # the slower runs of a fast network may take several times its median
        timed = [(Architecture.parse(self.space, text), ns) for text, ns in self.calibration.timed]
        self._check_time(self.space.lightest, self.calibration.yardstick, LARGEST_YARDSTICK_RATIO)
        for network, taken in timed:
            self._check_time(network, taken, LARGEST_TIMED_RATIO)

    def _check_time(self, network: Architecture, taken: int, largest: float) -> None:
        ratio = self.predicted(network) / taken
        if not 1 / largest < ratio < largest:
            raise ArtifactError(
                f"unit: {network} is predicted at {ratio:.3g} times its own measured time; are the "
                f"costs in {self.unit}?"
            )

    @staticmethod
    @abstractmethod
    def combine(costs: Iterable[int]) -> int:
        """Return what parts cost together."""

    def cost(self, architecture: Architecture) -> int:
        """Return the exact cost of a discrete architecture, in the table's unit."""
        return self.total([cost for costs in self.block_costs(architecture) for cost in costs])

    def total(self, block_costs: Iterable[int]) -> int:
        """Return what a network costs whose blocks cost this, the fixed part included."""
        return self.combine((self.base, *block_costs))

    def predicted(self, architecture: Architecture) -> int:
        """Return the cost to expect: that of a counted table, or the bound less its margin."""
        margin = 0.0 if self.calibration is None else self.calibration.margin
        return round(self.cost(architecture) / (1 + margin))

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

    @cached_property
    def cheapest_cost(self) -> int:
        """The least that any architecture of the space costs."""
        return self._extreme_cost(min)

    @cached_property
    def dearest_cost(self) -> int:
        """The most that any architecture of the space costs."""
        return self._extreme_cost(max)

    def _extreme_cost(self, extreme: Callable[[Iterable[int]], int]) -> int:
        stages = []
        for rows, stage in zip(self.costs, self.space.stages, strict=True):
            blocks = [extreme(row) for row in rows]
            stages.append(extreme(self.combine(blocks[:depth]) for depth in stage.depths))
        return self.combine((self.base, *stages))

    @property
    def display_unit(self) -> Unit:
        """How amounts are written and shown."""
        return UNITS[self.unit]

    @property
    def is_measured(self) -> bool:
        """Whether only a measurement can tell what a network costs."""
        declared = RESOURCES.get(self.resource)
        by_nature = declared is not None and declared.is_measured
        return by_nature or self.provenance.method == "measured"

    def with_confidence(self, confidence: float) -> Self:
        """Return the same measurement with the margin of another confidence.

        Args:
            confidence: The chance, from 0.5, that a network stays within its upper bound.
        """
        DeviceSettings(confidence=confidence)
        if self.calibration is None:
            return self
        calibration = msgspec.structs.replace(self.calibration, confidence=confidence)
        factor = (1 + calibration.margin) / (1 + self.calibration.margin)
        return dataclasses.replace(
            self,
            base=math.ceil(factor * self.base),
            costs=costs_of(self.costs, lambda cost: math.ceil(factor * cost)),
            calibration=calibration,
        )

    def at_percentile(self, percentile: int) -> Self:
        """Return the same measurement as bounds of the slower runs of each network.

        Args:
            percentile: Of 100 runs, so many stay below; one of `PERCENTILES`.
        """
        if percentile not in PERCENTILES:
            raise InvalidArgumentError(
                f"percentile: expected one of {', '.join(map(str, PERCENTILES))}, got {percentile}"
            )
        judged = self.calibration
        if judged is None or judged.percentile != MEDIAN or len(judged.windows) < LEAST_WINDOWS:
            raise ArtifactError(
                f"this {self.resource} table does not say how slow slower runs are; percentiles "
                f"need one of medians, with its windows; write it with: hardcorenas measure"
            )
        tail, calibration = (
            judged.tail(percentile),
            msgspec.structs.replace(judged, percentile=percentile),
        )
        factor = (1 + tail.share) * (1 + calibration.margin) / (1 + judged.margin)
        constant = tail.constant * (1 + calibration.margin)
        return dataclasses.replace(
            self,
            resource=percentile_name(self.resource, percentile),
            base=math.ceil(factor * self.base + constant),
            costs=costs_of(self.costs, lambda cost: math.ceil(factor * cost)),
            calibration=calibration,
        )

    @property
    def percentile(self) -> int:
        """Which percentile of a network's runs the costs bound."""
        return MEDIAN if self.calibration is None else self.calibration.percentile

    @property
    def measurement(self) -> str:
        """What tables have in common that come of one measurement."""
        judged = self.calibration
        pairs = None if judged is None else judged.unseen
        return files.digest_of({"provenance": self.provenance.to_dict(), "unseen": pairs})

    def check_bound_to(self, target: TargetRecord) -> None:
        """Raise `ForeignTableError` unless the table was measured on just this."""
        differing = [
            f"{name} is {shown(expected)}, here {shown(actual)}"
            for name, actual in target.to_dict().items()
            if (expected := getattr(self.provenance, name)) != actual
        ]
        if differing:
            raise ForeignTableError(
                f"this {self.resource} table was measured on something else: "
                f"its {', its '.join(differing)}"
            )

    @cached_property
    def digest(self) -> str:
        """What tells this table from every other."""
        return files.digest_of(self.to_file().to_dict())

    def to_file(self) -> TableFile:
        """Return the table as it is written."""
        target, batch_size = self.provenance.target, self.provenance.batch_size
        return TableFile(
            inputs=files.digest_of(table_inputs(self.space, target, batch_size)) if target else "",
            kind=self.kind,
            resource=self.resource,
            unit=self.unit,
            provenance=self.provenance,
            base=self.base,
            costs=self.costs,
            calibration=self.calibration and self.calibration.to_record(),
            space=self.space.to_dict(),
        )

    def to_json(self) -> str:
        """Return a JSON document with the table and its whole space."""
        return self.to_file().to_json()

    def save(self, path: str | Path) -> None:
        """Write the JSON document to a file, whole or not at all."""
        self.to_file().save(path)

    @staticmethod
    def from_json(text: str, *, source: str = "table") -> ResourceTable:
        """Read what `to_json` wrote.

        Args:
            text: The JSON document.
            source: What to call it in errors, usually its file name.
        """
        return ResourceTable.from_file(TableFile.from_json(text, source=source), source=source)

    @staticmethod
    def load(path: str | Path) -> ResourceTable:
        """Read the JSON document from a file."""
        return ResourceTable.from_file(TableFile.load(path), source=str(path))

    @staticmethod
    def from_file(file: TableFile, *, source: str) -> ResourceTable:
        """Return the table that a file holds, checked against its space."""
        calibration = None
        if file.calibration is not None:  # needs numpy, which counting does not
            from hardcorenas.resources.calibration import Calibration

            calibration = Calibration.from_record(file.calibration)
        try:
            return TABLES[file.kind](
                SearchSpace.from_dict(file.space, field="space"),
                file.resource,
                file.unit,
                file.base,
                file.costs,
                file.provenance,
                calibration,
            )
        except HardcorenasError as error:
            raise ArtifactError(f"{files.shown_path(source)}: {error}") from None


@final
class AdditiveTable(ResourceTable):
    """A resource that adds up along the network: time, MACs, parameters."""

    kind = "sum"

    @staticmethod
    def combine(costs: Iterable[int]) -> int:
        """Return their sum."""
        return sum(costs)

    def expected_cost(
        self, alpha: Sequence[Sequence[ArrayLike]], beta: Sequence[ArrayLike]
    ) -> float:
        """Return the mean cost of networks drawn from (α, β), in the table's unit.

        Args:
            alpha: ``alpha[stage][block]``: probabilities of the choices of a block.
            beta: ``beta[stage]``: probabilities of the stage's allowed depths.
        """
        import numpy as np  # only here, so that counting and showing need no numpy

        expected = float(self.base)
        for rows, stage, choices, depths in zip(
            self.costs, self.space.stages, alpha, beta, strict=True
        ):
            runs = np.arange(stage.max_depth)[:, None] < np.asarray(stage.depths)
            blocks = [
                np.asarray(row, float) @ np.asarray(chances, float)
                for row, chances in zip(rows, choices, strict=True)
            ]
            expected += float(np.asarray(blocks) @ runs @ np.asarray(depths, float))
        return expected


@final
class PeakTable(ResourceTable):
    """A resource of which the network needs as much as its neediest part: peak memory."""

    kind = "peak"

    @staticmethod
    def combine(costs: Iterable[int]) -> int:
        """Return the largest."""
        return max(costs)


TABLES: Mapping[Combination, type[ResourceTable]] = {"sum": AdditiveTable, "peak": PeakTable}


def table_inputs(space: SearchSpace, target: TargetRecord, batch_size: int) -> Json:
    """Return what a measured table is of, as `jobs.step` compares it."""
    return {"space": space.fingerprint, "target": target.to_dict(), "batch_size": batch_size}


def _check_length(field: str, values: object, expected: int) -> None:
    if not isinstance(values, tuple) or len(values) != expected:
        given = len(values) if isinstance(values, tuple) else shown(values)
        raise ArtifactError(f"{field}: expected {expected} entries for the space, got {given}")


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
    costs = costs_of(layout.cell_shapes(space), cost)
    provenance = Provenance("counted", space.resolution)
    return kind(space, resource, declared.unit, base, costs, provenance)


def costs_of(cells: Sequence[Sequence[Sequence[T]]], cost: Callable[[T], int]) -> Costs:
    """Return what each of ``cells[stage][block][choice]`` costs."""
    return tuple(tuple(tuple(map(cost, row)) for row in rows) for rows in cells)
