"""What searches take and return."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hardcorenas.errors import HardcorenasError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hardcorenas.artifacts import TraceStep
    from hardcorenas.search.frank_wolfe import Status
    from hardcorenas.search.local import LocalSearch
    from hardcorenas.search.point import Floats, RelaxedPoint
    from hardcorenas.search.projection import Projection
    from hardcorenas.space import Architecture


@dataclass(frozen=True)
class Evaluation:
    """An objective's answer at a point.

    Attributes:
        value: The loss, to be minimised.
        alpha: Its gradient by the choices: an array for each block, stage after stage.
        beta: Its gradient by the depths: an array for each stage.
    """

    value: float
    alpha: Sequence[NDArray[np.float64]]
    beta: Sequence[NDArray[np.float64]]


class Objective(Protocol):
    """What is minimised: a loss with gradients by (α, β), on a fresh sample at every call."""

    def __call__(self, point: RelaxedPoint) -> Evaluation:
        """Evaluate a point; an architecture is a point that is certain of everything."""


Score = Callable[["Architecture"], float]
"""The loss of one network: what is minimised, judged without gradients."""

StepCallback = Callable[["TraceStep", "RelaxedPoint"], "bool | None"]
"""Sees every step and the point it started from; ends the search by returning True."""


class NotFiniteError(HardcorenasError, FloatingPointError):
    """A loss or gradient is no number; the search cannot go on."""


def checked_score(value: float, step: int) -> float:
    """Return a score that is finite; stop the search at one that is not."""
    if not math.isfinite(value):
        raise NotFiniteError(
            f"step {step}: the score of a network is {value}; did the training diverge?"
        )
    return float(value)


def checked(answer: Evaluation, step: int) -> Evaluation:
    """Return an evaluation that is finite; stop the search at one that is not."""
    rows = (*answer.alpha, *answer.beta)
    if not math.isfinite(answer.value) or not all(np.isfinite(row).all() for row in rows):
        raise NotFiniteError(
            f"step {step}: the objective returned a value or gradient that is not finite; did the "
            f"training diverge?"
        )
    return answer


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes:
        architecture: The network.
        costs: What it costs by each budget's table, in the table's unit.
        fits: Whether it keeps every budget. Always true but for the soft penalty with argmax.
        value: The objective at the network.
        status: Why the search ended.
        num_evaluations: How often the objective was called.
        point: The relaxed point before projection; None for methods without one.
        projection: How the network was made from the point.
        gap: The whole Frank-Wolfe gap at the point; None for methods without one.
        recent_gradient: Mean gradient of the later half of the steps; None likewise.
        local_search: What the local search behind BCSFW did, if there was one; then network, costs
            and value are its own.
        trace: What happened, step by step.
    """

    architecture: Architecture
    costs: dict[str, int]
    fits: bool
    value: float
    status: Status
    num_evaluations: int
    point: RelaxedPoint | None = None
    projection: Projection | None = None
    gap: float | None = None
    recent_gradient: Floats | None = field(default=None, repr=False, compare=False)
    local_search: LocalSearch | None = None
    trace: list[TraceStep] = field(default_factory=list, repr=False)
