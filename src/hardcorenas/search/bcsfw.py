"""BCSFW: block-coordinate stochastic Frank-Wolfe inside the budgets, and the network it ends at.

Expected cost is not convex in (α, β) together but linear in each. So each step moves one of them,
the other held fixed, inside a polytope; every iterate keeps every budget, by exact arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from hardcorenas.errors import InvalidArgumentError, shown
from hardcorenas.search.frank_wolfe import Step, frank_wolfe, harmonic
from hardcorenas.search.initial import balanced_point, lightest_point
from hardcorenas.search.oracle import best_vertex
from hardcorenas.search.point import RelaxedPoint, point_of
from hardcorenas.search.projection import Method, project
from hardcorenas.search.result import Objective, SearchResult, TraceStep, checked

if TYPE_CHECKING:
    from collections.abc import Callable

    from hardcorenas.search.frank_wolfe import StepRule
    from hardcorenas.search.point import Floats, Units
    from hardcorenas.search.problem import Block, Problem

BlockRule = Literal["random", "alternating"]
Start = Literal["balanced", "lightest"]

# A vertex goes as far as it can; chosen by the gradient of one batch it is the noise's choice too.
MOMENTUM = 0.9


class BudgetedSet:
    """The set of points that keep the budgets, walked one block of coordinates at a time."""

    def __init__(self, problem: Problem, rng: np.random.Generator, rule: BlockRule) -> None:
        self._problem = problem
        self._rng = rng
        self._rule = rule
        self.block: Literal["alpha", "beta"] = "alpha"  # so that alternating begins with beta

    def target(self, point: RelaxedPoint, gradient: Floats) -> RelaxedPoint:
        """Pick a block and return the point with that block at its best vertex."""
        if self._rule == "random":
            self.block = "alpha" if self._rng.random() < 0.5 else "beta"
        else:
            self.block = "beta" if self.block == "alpha" else "alpha"
        return self._with_best(point, gradient, self.block)

    def drop(self, point: RelaxedPoint, target: RelaxedPoint, gradient: Floats) -> float:
        """Return ⟨point − target, gradient⟩."""
        return float((point.shares - target.shares) @ gradient)

    def distance_squared(self, point: RelaxedPoint, target: RelaxedPoint) -> float:
        """Return |point − target|²."""
        return float(np.sum((point.shares - target.shares) ** 2))

    def move(self, point: RelaxedPoint, target: RelaxedPoint, step: float) -> RelaxedPoint:
        """Return the mixture; where rounding would break one of several budgets, stay."""
        moved = self._problem.mixed(point, target, step)
        if len(self._problem.additive) > 1 and not self._problem.fits(moved):
            return point
        return moved

    def gap(self, point: RelaxedPoint, gradient: Floats) -> float:
        """Return the Frank-Wolfe gaps of both blocks, added up."""
        return sum(
            self.drop(point, self._with_best(point, gradient, block), gradient)
            for block in ("alpha", "beta")
        )

    def _with_best(self, point: RelaxedPoint, gradient: Floats, block: str) -> RelaxedPoint:
        by_alpha, by_beta = self._problem.split_gradient(gradient)
        if block == "alpha":
            alpha = _best(self._problem.alpha_block(point), by_alpha, point.alpha)
            return RelaxedPoint(alpha, point.beta)
        beta = _best(self._problem.beta_block(point), by_beta, point.beta)
        return RelaxedPoint(point.alpha, beta)


def _best(block: Block, gradient: Floats, current: Units) -> Units:
    vertex = best_vertex(block, -gradient)
    return current if vertex is None else vertex


def search_bcsfw(
    problem: Problem,
    objective: Objective,
    *,
    num_evaluations: int,
    seed: int = 0,
    start: Start | RelaxedPoint = "balanced",
    projection: Method = "exact",
    block_rule: BlockRule = "random",
    step_rule: StepRule | None = None,
    momentum: float = MOMENTUM,
    callback: Callable[[TraceStep, RelaxedPoint], bool | None] | None = None,
) -> SearchResult:
    """Search for the network of least objective that keeps every budget.

    Args:
        problem: Space and budgets.
        objective: The loss with its gradients; called ``num_evaluations`` times.
        num_evaluations: One for each step, one at the final point and one at the network.
        seed: Of the order of blocks; the same seed and objective give the same result.
        start: ``"balanced"``, ``"lightest"``, or a feasible point.
        projection: How the final point becomes a network.
        block_rule: Which block to move at each step.
        step_rule: Step sizes; γ_t = 4 / (t + 4) if not given.
        momentum: Share of the past in the averaged gradient.
        callback: Sees every step and the point it started from; ends the search by returning True.
    """
    if num_evaluations < 2:
        raise InvalidArgumentError(f"num_evaluations: expected at least 2, got {num_evaluations}")
    if block_rule not in get_args(BlockRule):
        expected = " or ".join(map(repr, get_args(BlockRule)))
        raise InvalidArgumentError(f"block_rule: expected {expected}, got {shown(block_rule)}")
    if not 0 <= momentum < 1:
        raise InvalidArgumentError(f"momentum: expected from 0 to below 1, got {momentum}")
    first = _starting_point(problem, start)
    feasible = BudgetedSet(problem, np.random.default_rng(seed), block_rule)
    trace: list[TraceStep] = []

    def evaluate(point: RelaxedPoint) -> tuple[float, Floats]:
        answer = checked(objective(point), len(trace))
        return float(answer.value), problem.pad_gradient(answer.alpha, answer.beta)

    def record(step: Step[RelaxedPoint]) -> bool | None:
        trace.append(_trace_step(problem, step, feasible.block))
        return callback(trace[-1], step.point) if callback is not None else None

    outcome = frank_wolfe(
        evaluate,
        feasible,
        first,
        num_steps=num_evaluations - 2,
        step_rule=step_rule or harmonic(4),
        momentum=momentum,
        callback=record,
    )
    assert problem.fits(outcome.point), "every iterate keeps every budget"
    found = project(problem, outcome.point, projection)
    answer = checked(objective(point_of(problem.space, found.architecture)), len(trace))
    return SearchResult(
        architecture=found.architecture,
        costs=found.costs,
        fits=found.fits,
        value=float(answer.value),
        status=outcome.status,
        num_evaluations=outcome.num_steps + 2,
        point=outcome.point,
        projection=found,
        gap=outcome.gap,
        trace=trace,
    )


def _starting_point(problem: Problem, start: Start | RelaxedPoint) -> RelaxedPoint:
    if isinstance(start, RelaxedPoint):
        problem.check_point(start)
        return start
    if start not in get_args(Start):
        raise InvalidArgumentError(
            f"start: expected 'balanced', 'lightest' or a point, got {shown(start)}"
        )
    return balanced_point(problem) if start == "balanced" else lightest_point(problem)


def _trace_step(problem: Problem, step: Step[RelaxedPoint], block: str) -> TraceStep:
    costs = problem.expected_costs(step.point)
    return TraceStep(
        index=step.index,
        value=step.value,
        costs=tuple(costs),
        slack=problem.slack(costs),
        gap=step.gap,
        step_size=step.step_size,
        block=block,
    )
