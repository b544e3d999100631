"""A point between architectures: probabilities of choices (α) and of depths (β), exact.

Probabilities are whole numbers of 2⁻³⁰, and each row adds up to exactly 1. So the expected cost of
a point is a ratio of integers, and whether it keeps a budget needs no tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hardcorenas.space import Architecture, SearchSpace

Units = NDArray[np.int64]
Floats = NDArray[np.float64]
BITS = 30
ONE = 1 << BITS


@dataclass(frozen=True, eq=False)
class RelaxedPoint:
    """Probabilities in units of 2⁻³⁰.

    Attributes:
        alpha: A row for each block, stage after stage; short rows are filled up with 0.
        beta: A row for each stage over its depths; short rows are filled up with 0.
    """

    alpha: Units
    beta: Units

    @cached_property
    def alpha_shares(self) -> Floats:
        """α as floats, blocks × choices."""
        return self.alpha / ONE

    @cached_property
    def beta_shares(self) -> Floats:
        """β as floats, stages × depths."""
        return self.beta / ONE

    @cached_property
    def shares(self) -> Floats:
        """α and β as one flat vector, as gradients are laid out."""
        return np.concatenate((self.alpha_shares.ravel(), self.beta_shares.ravel()))

    def same_as(self, other: RelaxedPoint) -> bool:
        """Return whether all probabilities are equal."""
        return np.array_equal(self.alpha, other.alpha) and np.array_equal(self.beta, other.beta)


def one_hot(indices: NDArray[np.intp] | list[int], width: int) -> Units:
    """Return rows that are certain of one entry each."""
    rows = np.zeros((len(indices), width), np.int64)
    rows[np.arange(len(rows)), indices] = ONE
    return rows


def to_units(shares: Floats, sinks: NDArray[np.intp]) -> Units:
    """Return floats as exact rows: each rounded down, what is left over given to the row's sink."""
    return _settle(np.floor(np.clip(shares, 0.0, 1.0) * ONE).astype(np.int64), sinks)


def mix(start: Units, end: Units, step: float, sinks: NDArray[np.intp]) -> Units:
    """Return (1 − step) · start + step · end, each rounded down, the rest given to the sinks.

    With each row's cheapest entry as its sink, the result costs no more than the exact mixture.
    """
    weight = int(step * ONE)
    return _settle((start * (ONE - weight) + end * weight) >> BITS, sinks)


def _settle(rows: Units, sinks: NDArray[np.intp]) -> Units:
    rows[np.arange(len(rows)), sinks] += ONE - rows.sum(1)
    return rows


def point_of(space: SearchSpace, architecture: Architecture) -> RelaxedPoint:
    """Return an architecture as a point; blocks that do not run get the first choice."""
    width = max(len(stage.choices) for stage in space.stages)
    choices = []
    for stage, indices in zip(space.stages, architecture.indices, strict=True):
        choices += [*indices, *[0] * (stage.max_depth - len(indices))]
    depths = [
        stage.depths.index(depth)
        for stage, depth in zip(space.stages, architecture.depths, strict=True)
    ]
    return RelaxedPoint(
        one_hot(choices, width), one_hot(depths, max(len(stage.depths) for stage in space.stages))
    )
