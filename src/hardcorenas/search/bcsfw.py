"""BCSFW: block-coordinate stochastic Frank-Wolfe inside the budgets, and the network it ends at.

Expected cost is not convex in (α, β) together but linear in each. So each step moves one of them,
the other held fixed, inside a polytope; every iterate keeps every budget, by exact arithmetic.

It starts as close to uniform as the budgets allow. From the lightest network, two quadratic
programs are solved in turns, β first,

    min Σ_s Σ_d (β_{s,d+1} − β_{s,d})²   and   min Σ_b Σ_c (α_{b,c+1} − α_{b,c})²,

each over the feasible set that the other block leaves. Neighbours are choices of neighbouring cost,
by each block's own costs. Probabilities then fall off smoothly towards dear choices, and gradients
reach everything that can be afforded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.artifacts import TraceStep
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.search import frank_wolfe as fw
from hardcorenas.search.highs import Infeasible, Program, SolverError
from hardcorenas.search.point import ONE, Floats, RelaxedPoint, Units, point_of, to_units
from hardcorenas.search.problem import Polytope, Problem, best_vertex
from hardcorenas.search.projection import project
from hardcorenas.search.result import Objective, SearchResult, StepCallback, checked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hardcorenas.search.methods import InitialPoint, ProjectionMethod

NUM_ROUNDS = 3
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
    order: fw.BlockOrder | None = None,
    step_rule: fw.StepRule | None = None,
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

    def record(step: fw.FrankWolfeStep[RelaxedPoint]) -> bool | None:
        costs = tuple(problem.expected_costs(step.point))
        facts = (step.gap, step.step_size, step.block)
        trace.append(TraceStep(step.index, step.value, costs, problem.slack(costs), *facts))
        return callback(trace[-1], step.point) if callback is not None else None

    ended = fw.frank_wolfe(
        evaluate,
        _oracles(problem),
        mixing,
        _starting_point(problem, start),
        num_steps=num_evaluations - 2,
        order=order or fw.at_random("alpha", "beta", seed=seed),
        step_rule=step_rule or fw.harmonic(4),
        momentum=momentum,
        callback=record,
    )
    assert problem.fits(ended.point), "every iterate keeps every budget"
    projected = project(problem, ended.point, projection)
    value, _ = evaluate(point_of(problem.space, projected.architecture))
    network = (projected.architecture, projected.costs, projected.fits)
    judged = (value, ended.status, ended.num_steps + 2)
    recent = ended.recent_gradient
    return SearchResult(*network, *judged, ended.point, projected, ended.gap, recent, trace=trace)


def _oracles(problem: Problem) -> dict[str, fw.Oracle[RelaxedPoint]]:
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


def lightest_point(problem: Problem) -> RelaxedPoint:
    """Return the lightest network that fits as a point; for comparison, as the paper has it."""
    point = point_of(problem.space, problem.lightest)
    # Blocks that do not run take their cheapest choice, so that depth alone decides what they cost.
    alpha = point.alpha.copy()
    idle = [b >= problem.lightest.depths[s] for s, b in problem.positions]
    alpha[idle] = 0
    alpha[np.flatnonzero(idle), problem.choice_sinks[idle]] = ONE
    return RelaxedPoint(alpha, point.beta)


def balanced_point(problem: Problem, num_rounds: int = NUM_ROUNDS) -> RelaxedPoint:
    """Return the feasible point that alternating quadratic programs reach from the lightest.

    Args:
        problem: Space and budgets.
        num_rounds: How often both programs are solved, β first.
    """
    point = lightest_point(problem)
    for _ in range(num_rounds):
        before = point
        beta = _smoothest(problem.beta_polytope(point), problem.allowed_depths, point.beta)
        point = RelaxedPoint(point.alpha, beta)
        alpha = _smoothest(problem.alpha_polytope(point), problem.allowed_choices, point.alpha)
        point = RelaxedPoint(alpha, beta)
        if point.same_as(before):
            break
    return point


def _smoothest(polytope: Polytope, allowed: NDArray[np.bool_], current: Units) -> Units:
    """Return the smoothest rows that fit; near them, towards ``current``, where rounding bites."""
    order = _by_cost(polytope, allowed)
    program = Program([np.zeros(len(entries)) for entries in order])
    for costs, limit in zip(polytope.costs, polytope.limits, strict=True):
        # Costs above each row's cheapest: the same problem, better conditioned.
        rows = [costs[g, entries] for g, entries in enumerate(order)]
        floors = [row.min() for row in rows]
        above = [(row - floor).astype(float) for row, floor in zip(rows, floors, strict=True)]
        program.add_budget(above, float(limit - sum(int(floor) for floor in floors)))
    try:
        smooth = program.solve_smooth()
    except (Infeasible, SolverError):
        return current  # feasible, but the set is so thin that the solver's tolerance bites
    shares: Floats = np.zeros(allowed.shape)
    for g, (entries, weights) in enumerate(zip(order, smooth, strict=True)):
        shares[g, entries] = weights
    held = current / ONE
    for retreat in (0.0, *(2.0**-k for k in range(24, -1, -2))):
        units = to_units((1 - retreat) * shares + retreat * held, polytope.sinks)
        if polytope.fits(units):
            return units
    return current


def _by_cost(polytope: Polytope, allowed: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Return each row's allowed entries, by rising share of the budgets."""
    relative_cost = np.zeros(allowed.shape)
    for costs, limit in zip(polytope.costs, polytope.limits, strict=True):
        relative_cost += costs.astype(float) / max(limit, 1)
    # A block that cannot run may have nothing allowed: any one entry will do.
    rows = [np.flatnonzero(mask) if mask.any() else np.array([0]) for mask in allowed]
    return [
        entries[np.argsort(row[entries], kind="stable")]
        for entries, row in zip(rows, relative_cost, strict=True)
    ]
