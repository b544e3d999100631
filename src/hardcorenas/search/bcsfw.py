"""BCSFW: block-coordinate stochastic Frank-Wolfe inside the budgets, and the network it ends at.

Expected cost is not convex in (α, β) together but linear in each. So each step moves one of them,
the other held fixed, inside a polytope; every iterate keeps every budget, by exact arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hardcorenas.artifacts import TraceStep
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.search.frank_wolfe import at_random, frank_wolfe, harmonic
from hardcorenas.search.initial import balanced_point, lightest_point
from hardcorenas.search.oracle import best_vertex
from hardcorenas.search.point import RelaxedPoint, point_of
from hardcorenas.search.projection import project
from hardcorenas.search.result import SearchResult, checked

if TYPE_CHECKING:
    from hardcorenas.search.frank_wolfe import BlockOrder, FrankWolfeStep, Oracle, StepRule
    from hardcorenas.search.point import Floats
    from hardcorenas.search.problem import Problem
    from hardcorenas.search.projection import ProjectionMethod
    from hardcorenas.search.result import Objective, StepCallback

InitialPoint = Literal["balanced", "lightest"]

# A vertex goes as far as it can; chosen by the gradient of one batch it is the noise's choice too.
MOMENTUM = 0.9


def search_bcsfw(
    problem: Problem,
    objective: Objective,
    *,
    num_evaluations: int,
    seed: int = 0,
    start: InitialPoint | RelaxedPoint = "balanced",
    projection: ProjectionMethod = "exact",
    order: BlockOrder | None = None,
    step_rule: StepRule | None = None,
    momentum: float = MOMENTUM,
    callback: StepCallback | None = None,
) -> SearchResult:
    """Search for the network of least objective that keeps every budget.

    Args:
        problem: Space and budgets.
        objective: The loss with its gradients; called ``num_evaluations`` times.
        num_evaluations: One for each step, one at the final point and one at the network.
        seed: Of the order of blocks; the same seed and objective give the same result.
        start: ``"balanced"``, ``"lightest"``, or a feasible point.
        projection: How the final point becomes a network.
        order: Of the blocks ``"alpha"`` and ``"beta"``; at random if not given.
        step_rule: Step sizes; γ_t = 4 / (t + 4) if not given.
        momentum: Share of the past in the averaged gradient.
        callback: Sees every step and the point it started from; ends the search by returning True.
    """
    if num_evaluations < 2:
        raise InvalidArgumentError(f"num_evaluations: expected at least 2, got {num_evaluations}")
    if not 0 <= momentum < 1:
        raise InvalidArgumentError(f"momentum: expected from 0 to below 1, got {momentum}")
    trace: list[TraceStep] = []

    def evaluate(point: RelaxedPoint) -> tuple[float, Floats]:
        answer = checked(objective(point), len(trace))
        return float(answer.value), problem.pad_gradient(answer.alpha, answer.beta)

    def mixing(point: RelaxedPoint, target: RelaxedPoint, step: float) -> RelaxedPoint:
        moved = problem.mixed(point, target, step)
        rounding_may_break = len(problem.additive) > 1
        return point if rounding_may_break and not problem.fits(moved) else moved

    def record(step: FrankWolfeStep[RelaxedPoint]) -> bool | None:
        costs = tuple(problem.expected_costs(step.point))
        facts = (step.gap, step.step_size, step.block)
        trace.append(TraceStep(step.index, step.value, costs, problem.slack(costs), *facts))
        return callback(trace[-1], step.point) if callback is not None else None

    ended = frank_wolfe(
        evaluate,
        _oracles(problem),
        mixing,
        _starting_point(problem, start),
        num_steps=num_evaluations - 2,
        order=order or at_random("alpha", "beta", seed=seed),
        step_rule=step_rule or harmonic(4),
        momentum=momentum,
        callback=record,
    )
    assert problem.fits(ended.point), "every iterate keeps every budget"
    projected = project(problem, ended.point, projection)
    value, _ = evaluate(point_of(problem.space, projected.architecture))
    return SearchResult(
        architecture=projected.architecture,
        costs=projected.costs,
        fits=projected.fits,
        value=value,
        status=ended.status,
        num_evaluations=ended.num_steps + 2,
        point=ended.point,
        projection=projected,
        gap=ended.gap,
        recent_gradient=ended.recent_gradient,
        trace=trace,
    )


def _oracles(problem: Problem) -> dict[str, Oracle[RelaxedPoint]]:
    """Return the best vertices of α with β held fixed, and of β with α held fixed."""

    def alpha(point: RelaxedPoint, gradient: Floats) -> RelaxedPoint:
        by_alpha, _ = problem.split_gradient(gradient)
        vertex = best_vertex(problem.alpha_polytope(point), -by_alpha)
        return point if vertex is None else RelaxedPoint(vertex, point.beta)

    def beta(point: RelaxedPoint, gradient: Floats) -> RelaxedPoint:
        _, by_beta = problem.split_gradient(gradient)
        vertex = best_vertex(problem.beta_polytope(point), -by_beta)
        return point if vertex is None else RelaxedPoint(point.alpha, vertex)

    return {"alpha": alpha, "beta": beta}


def _starting_point(problem: Problem, start: InitialPoint | RelaxedPoint) -> RelaxedPoint:
    if isinstance(start, RelaxedPoint):
        if not problem.fits(start):
            raise InvalidArgumentError("start: the point does not keep the budgets")
        return start
    return balanced_point(problem) if start == "balanced" else lightest_point(problem)
