"""Frank-Wolfe: minimise a function over a set known only by its linear oracle.

    x_{t+1} = (1 − γ_t) x_t + γ_t s_t,   s_t = argmin_{s ∈ D} ⟨s, ∇f(x_t)⟩

Every iterate is a mixture of points of D, so it is in D. Where only a block of coordinates at a
time makes D a polytope, there is an oracle for each block, and an order of blocks. The loop knows
nothing of budgets or networks: points are vectors of shares, and a rule mixes two of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class Shares(Protocol):
    """A point of D."""

    @property
    def shares(self) -> Floats:
        """Its coordinates, all blocks, as one flat vector."""


P = TypeVar("P", bound=Shares)

# The point with one block at its vertex s of least ⟨s, gradient⟩, the other blocks as they are.
Oracle = Callable[[P, "Floats"], P]
# The point of D that lies a share of the way from the first to the second.
Mixing = Callable[[P, P, float], P]
# The block to move, from the step's number.
BlockOrder = Callable[[int], str]
# γ from step number, promised drop and squared distance to the target.
StepRule = Callable[[int, float, float], float]


class Status(Enum):
    """Why a run ended."""

    STEP_LIMIT = "all steps were made"
    STOPPED = "the callback asked to stop"


@dataclass(frozen=True)
class FrankWolfeStep(Generic[P]):
    """What one step saw and did.

    Attributes:
        index: Number of the step, from 0.
        block: Which block it moved.
        point: Where it started.
        value: The objective there (on this step's sample, for a stochastic one).
        gap: What the linear model promised of the move.
        step_size: How far it went towards the target, 0 to 1.
        next_point: Where it ended.
    """

    index: int
    block: str
    point: P
    value: float
    gap: float
    step_size: float
    next_point: P


@dataclass(frozen=True)
class FrankWolfeResult(Generic[P]):
    """Where a run ended. Value and gap are computed anew at the final point.

    Attributes:
        point: The last iterate.
        value: The objective there.
        gap: The whole Frank-Wolfe gap there, over all blocks.
        status: Why it ended.
        num_steps: How many steps were made.
        recent_gradient: Mean of the gradients of the later half; early ones are of points long
            left.
    """

    point: P
    value: float
    gap: float
    status: Status
    num_steps: int
    recent_gradient: Floats


def in_turn(*blocks: str) -> BlockOrder:
    """Return the order of blocks one after the other, again and again."""
    return lambda t: blocks[t % len(blocks)]


def at_random(*blocks: str, seed: int) -> BlockOrder:
    """Return an order that draws a block for each step."""
    rng = np.random.default_rng(seed)
    return lambda _t: blocks[int(rng.random() * len(blocks))]


def harmonic(offset: float = 4.0) -> StepRule:
    """Return γ_t = offset / (t + offset): 4 for the paper's rule, 2 for the classic one."""
    return lambda t, _gap, _distance: offset / (t + offset)


def short_step(smoothness: float) -> StepRule:
    """Return γ = gap / (smoothness · |s − x|²), at most 1: the step that surely descends."""

    def rule(_t: int, gap: float, distance_squared: float) -> float:
        if distance_squared <= 0 or gap <= 0:
            return 0.0
        return min(1.0, gap / (smoothness * distance_squared))

    return rule


def frank_wolfe(
    objective: Callable[[P], tuple[float, Floats]],
    oracles: Mapping[str, Oracle[P]],
    mixing: Mixing[P],
    start: P,
    *,
    num_steps: int,
    order: BlockOrder | None = None,
    step_rule: StepRule | None = None,
    momentum: float = 0.0,
    callback: Callable[[FrankWolfeStep[P]], bool | None] | None = None,
) -> FrankWolfeResult[P]:
    """Minimise an objective over a feasible set, from a feasible start.

    Args:
        objective: Gives value and gradient at a point; may be stochastic.
        oracles: The best vertex of each block, by the block's name.
        mixing: Moves a share of the way to such a vertex; may stay, by returning the same point.
        start: A point of the set.
        num_steps: How many steps at most; the objective is called once more at the end.
        order: Which block to move; by default one after the other.
        step_rule: Gives γ; `harmonic` if not given.
        momentum: Share of the past in the averaged gradient, from 0 (none) to below 1.
        callback: Sees every step; ends the run by returning True.
    """
    order = order or in_turn(*oracles)
    rule = step_rule or harmonic()
    point, average = start, None
    gradients: list[Floats] = []
    status = Status.STEP_LIMIT
    for index in range(num_steps):
        value, gradient = objective(point)
        gradients.append(gradient)
        average = gradient if average is None else momentum * average + (1 - momentum) * gradient
        block = order(index)
        target = oracles[block](point, average)
        way = point.shares - target.shares
        gap = float(way @ average)
        step_size = min(1.0, max(0.0, rule(index, gap, float(np.sum(way**2)))))
        moved = mixing(point, target, step_size)
        size = 0.0 if moved is point else step_size
        step = FrankWolfeStep(index, block, point, value, gap, size, moved)
        point = moved
        if callback is not None and callback(step):
            status = Status.STOPPED
            break
    value, gradient = objective(point)
    gradients.append(gradient)
    gap = sum(
        float((point.shares - oracle(point, gradient).shares) @ gradient)
        for oracle in oracles.values()
    )
    recent = np.mean(gradients[-max(1, len(gradients) // 2) :], axis=0)
    return FrankWolfeResult(point, value, gap, status, len(gradients) - 1, recent)
