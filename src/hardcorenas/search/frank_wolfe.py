"""Frank-Wolfe: minimise a function over a set known only by its linear oracle.

    x_{t+1} = (1 − γ_t) x_t + γ_t s_t,   s_t = argmin_{s ∈ D} ⟨s, ∇f(x_t)⟩

Every iterate is a mixture of points of D, so it is in D. The loop knows nothing of budgets or
networks: a `FeasibleSet` gives s_t and mixes points.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    # γ from step number, promised drop and squared distance to the target.
    StepRule = Callable[[int, float, float], float]

P = TypeVar("P")


class Status(Enum):
    """Why a run ended."""

    CONVERGED = "the Frank-Wolfe gap fell below the tolerance"
    STEP_LIMIT = "all steps were made"
    STOPPED = "the callback asked to stop"


class FeasibleSet(Protocol[P]):
    """What the loop has to know of the set D."""

    def target(self, point: P, gradient: Floats) -> P:
        """Return a point s of D to move to, minimising ⟨s, gradient⟩ (over a block of D)."""

    def drop(self, point: P, target: P, gradient: Floats) -> float:
        """Return ⟨point − target, gradient⟩: what the linear model promises of the move."""

    def distance_squared(self, point: P, target: P) -> float:
        """Return the squared length of the move."""

    def move(self, point: P, target: P, step: float) -> P:
        """Return the point of D that lies a share ``step`` of the way to the target."""

    def gap(self, point: P, gradient: Floats) -> float:
        """Return max_{s ∈ D} ⟨point − s, gradient⟩ over all blocks, from scratch."""


@dataclass(frozen=True)
class Step(Generic[P]):
    """What one step saw and did.

    Attributes:
        index: Number of the step, from 0.
        point: Where it started.
        value: The objective there (on this step's sample, for a stochastic one).
        gap: What the linear model promised of the move.
        step_size: How far it went towards the target, 0 to 1.
        next_point: Where it ended.
    """

    index: int
    point: P
    value: float
    gap: float
    step_size: float
    next_point: P


@dataclass(frozen=True)
class Outcome(Generic[P]):
    """Where a run ended. Value and gap are computed anew at the final point.

    Attributes:
        point: The last iterate.
        value: The objective there.
        gap: The whole Frank-Wolfe gap there.
        status: Why it ended.
        num_steps: How many steps were made.
    """

    point: P
    value: float
    gap: float
    status: Status
    num_steps: int


def harmonic(offset: float = 4.0) -> StepRule:
    """Return γ_t = offset / (t + offset): 4 for the paper's rule, 2 for the classic one."""
    return lambda t, _gap, _distance: offset / (t + offset)


def constant(step_size: float) -> StepRule:
    """Return the same γ for every step."""
    return lambda _t, _gap, _distance: step_size


def short_step(smoothness: float) -> StepRule:
    """Return γ = gap / (smoothness · |s − x|²), at most 1: the step that surely descends."""

    def rule(_t: int, gap: float, distance_squared: float) -> float:
        if distance_squared <= 0 or gap <= 0:
            return 0.0
        return min(1.0, gap / (smoothness * distance_squared))

    return rule


def frank_wolfe(
    objective: Callable[[P], tuple[float, Floats]],
    feasible_set: FeasibleSet[P],
    start: P,
    *,
    num_steps: int,
    step_rule: StepRule | None = None,
    momentum: float = 0.0,
    gap_tolerance: float | None = None,
    callback: Callable[[Step[P]], bool | None] | None = None,
) -> Outcome[P]:
    """Minimise an objective over a feasible set, from a feasible start.

    Args:
        objective: Gives value and gradient at a point; may be stochastic.
        feasible_set: The oracle.
        start: A point of the set.
        num_steps: How many steps at most; the objective is called once more at the end.
        step_rule: Gives γ from step number, promised drop and squared distance; `harmonic` if
            not given.
        momentum: Share of the past in the averaged gradient, from 0 (none) to below 1.
        gap_tolerance: Stop when the promised drop is at most this. Meaningful for a set with one
            block and an objective without noise.
        callback: Sees every step; ends the run by returning True.
    """
    rule = step_rule or harmonic()
    point, average = start, None
    status = Status.STEP_LIMIT
    made = 0
    for index in range(num_steps):
        value, gradient = objective(point)
        average = gradient if average is None else momentum * average + (1 - momentum) * gradient
        target = feasible_set.target(point, average)
        gap = feasible_set.drop(point, target, average)
        if gap_tolerance is not None and gap <= gap_tolerance:
            status = Status.CONVERGED
            break
        step_size = rule(index, gap, feasible_set.distance_squared(point, target))
        step_size = min(1.0, max(0.0, step_size))
        moved = feasible_set.move(point, target, step_size)
        made += 1
        step = Step(index, point, value, gap, 0.0 if moved is point else step_size, moved)
        point = moved
        if callback is not None and callback(step):
            status = Status.STOPPED
            break
    value, gradient = objective(point)
    return Outcome(point, value, feasible_set.gap(point, gradient), status, made)
