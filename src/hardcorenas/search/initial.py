"""Where a search starts: a feasible point, as close to uniform as the budgets allow.

From the lightest network, two quadratic programs are solved in turns, β first,

    min Σ_s Σ_d (β_{s,d+1} − β_{s,d})²   and   min Σ_b Σ_c (α_{b,c+1} − α_{b,c})²,

each over the feasible set that the other block leaves. Neighbours are choices of neighbouring cost,
by each block's own costs. Probabilities then fall off smoothly towards dear choices, and gradients
reach everything that can be afforded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.search.highs import Infeasible, Program, SolverError
from hardcorenas.search.point import ONE, RelaxedPoint, point_of, to_units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hardcorenas.search.point import Floats, Units
    from hardcorenas.search.problem import Polytope, Problem

NUM_ROUNDS = 3


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
        polytope = problem.beta_polytope(point)
        beta = _smoothest(polytope, problem.allowed_depths, point.beta)
        point = RelaxedPoint(point.alpha, beta)
        polytope = problem.alpha_polytope(point)
        alpha = _smoothest(polytope, problem.allowed_choices, point.alpha)
        point = RelaxedPoint(alpha, point.beta)
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
    order = []
    for row, mask in zip(relative_cost, allowed, strict=True):
        entries = np.flatnonzero(mask)
        # A block that cannot run may have nothing allowed: any one entry will do.
        entries = entries if len(entries) else np.array([0])
        order.append(entries[np.argsort(row[entries], kind="stable")])
    return order
