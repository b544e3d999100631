"""The relaxed knapsack: one budget by its dual, several by linear programming; always a vertex."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardcorenas.search.highs import Infeasible, Program
from hardcorenas.search.knapsack.items import Groups, Items, Limit, NothingFitsError, Number

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class RelaxedSolution:
    """A vertex of the relaxed knapsack.

    Attributes:
        weights: For each group, the shares of its items. With m budgets, all groups but m hold a
            single 1, and there are at most m more non-zero shares than groups.
        multiplier: What one more unit of budget is worth (for several budgets, of each).
        value: Σ value · share.
    """

    weights: list[NDArray[np.float64]]
    multiplier: float | tuple[float, ...]
    value: float


@dataclass
class Blend:
    """A vertex for one budget: whole items, and at most one group between two of its items.

    Attributes:
        indices: The item of each group; in the blended group, the cheaper of its two.
        group: The blended group, or None.
        upper: The dearer item of the blended group.
        slack: Budget left by ``indices``.
        step: What exchanging the blended group's item for ``upper`` costs; above ``slack``.
        multiplier: What one more unit of budget is worth.
    """

    indices: list[int]
    group: int | None
    upper: int
    slack: Number
    step: Number
    multiplier: float


def solve_relaxed(values: Groups, costs: Groups, budget: Limit) -> RelaxedSolution:
    """Solve max Σ p u s.t. Σ t u ≤ T, Σ_j u_gj = 1, u ≥ 0, and return a vertex.

    Args:
        values: For each group, a 1-D array p.
        costs: For each group, a 1-D array t; for several budgets, one row for each.
        budget: T, or one number for each budget.

    Raises:
        NothingFitsError: Even the cheapest items exceed the budget.
    """
    items = Items.read(values, costs, budget)
    if len(items.limits) > 1:
        return solve_several(items)
    blend = blend_items(items)
    shares = _certain_rows(items.values.shape[1])[blend.indices]
    if blend.group is not None:
        share = blend.slack / blend.step
        shares[blend.group, blend.indices[blend.group]] = 1.0 - share
        shares[blend.group, blend.upper] = share
    value = float(items.values.ravel().dot(shares.ravel()))
    return RelaxedSolution(items.trim(shares), blend.multiplier, value)


@functools.cache
def _certain_rows(width: int) -> NDArray[np.float64]:
    return np.eye(width)


def blend_items(items: Items) -> Blend:
    """Solve the relaxed knapsack of one budget; whole-number costs are added up exactly."""
    limit = items.limits[0]
    costs = items.costs[0]
    lower, upper, multiplier = bracket(
        items.values, costs.astype(np.float64, copy=False), float(limit), items.offsets
    )
    spent = sum(costs.take(items.offsets + lower).tolist())
    if spent <= limit:
        return _assemble(costs, lower.tolist(), upper.tolist(), limit - spent, multiplier)
    return _retreat(costs, lower.tolist(), spent - limit, multiplier)


def bracket(
    values: NDArray[np.float64],
    costs: NDArray[np.float64],
    limit: float,
    offsets: NDArray[np.intp],
) -> tuple[NDArray[np.intp], NDArray[np.intp], float]:
    """Find the multiplier λ* and two selections optimal for it, one on each side of the budget.

    For a multiplier λ each group by itself picks the item of largest value − λ · cost. Raising λ
    makes the selection cheaper; λ* is where it first fits. The search draws the line through a
    selection that fits and one that does not, takes its slope as the next λ, and ends when no
    selection lies between them above the line: a handful of sweeps, each over all items at once.
    This visits vertices of the groups' summed upper hulls without building the hulls.

    Args:
        values: Groups × items.
        costs: Groups × items.
        limit: The budget.
        offsets: Where each group begins in the flattened arrays.

    Returns:
        The selection that fits, the one that does not (the same one if the budget does not
        bind), and λ*.
    """

    def totals(picked: NDArray[np.intp]) -> tuple[float, float]:
        flat = picked + offsets
        return sum(costs.take(flat).tolist()), sum(values.take(flat).tolist())

    upper = values.argmax(1)
    flat = upper + offsets
    upper_cost = sum(costs.take(flat).tolist())
    if upper_cost <= limit:
        return upper, upper, 0.0
    # Values below each group's best: the same problem, without digits lost to large offsets.
    values = values - values.take(flat)[:, None]
    upper_value = 0.0
    lower = costs.argmin(1)
    lower_cost, lower_value = totals(lower)
    multiplier = 0.0
    scores = np.empty_like(values)
    while upper_cost > lower_cost:
        multiplier = max(0.0, (upper_value - lower_value) / (upper_cost - lower_cost))
        np.multiply(costs, -multiplier, scores)
        scores += values
        picked = scores.argmax(1)
        cost, value = totals(picked)
        if cost <= limit and (cost, value) > (lower_cost, lower_value):
            lower, lower_cost, lower_value = picked, cost, value
        elif limit < cost < upper_cost:
            upper, upper_cost, upper_value = picked, cost, value
        else:
            break
    if not 1e-200 < multiplier < 1e200:
        scale = float(np.abs(values).max())
        if 0 < scale < 1e-100 or scale > 1e100:  # solve again where products keep their digits
            lower, upper, multiplier = bracket(values / scale, costs, limit, offsets)
            return lower, upper, multiplier * scale
    return lower, upper, multiplier


def _assemble(
    costs: NDArray[Any], lower: list[int], upper: list[int], slack: Number, multiplier: float
) -> Blend:
    """Walk from the selection that fits towards the other until the budget is used up.

    Both are optimal for the multiplier, and so is everything between them; stopping inside one
    group gives a vertex. All sums are in the type of the costs, so whole numbers are exact.

    Args:
        costs: Groups × items.
        lower: The selection that fits.
        upper: The one that does not.
        slack: What the first leaves of the budget.
        multiplier: What one more unit of budget is worth; at 0 there is nothing to gain.
    """
    indices = lower
    if multiplier > 0:
        for g, (cheap, dear) in enumerate(zip(lower, upper, strict=True)):
            if cheap == dear:
                continue
            step = costs.item(g, dear) - costs.item(g, cheap)
            if step > slack:
                return Blend(indices, g if slack > 0 else None, dear, slack, step, multiplier)
            if step >= 0:
                indices[g] = dear
                slack -= step
    return Blend(indices, None, 0, slack, 0, multiplier)


def _retreat(costs: NDArray[Any], picked: list[int], excess: Number, multiplier: float) -> Blend:
    """Mend a selection that floats judged to fit but that exceeds the budget by a rounding error.

    The group with the most to give back is blended with its cheapest item, just as far as needed.
    Where nothing fits, that shows here: all groups together cannot give back the excess.
    """
    indices, cheapest = list(picked), costs.argmin(1).tolist()
    steps = [
        costs.item(g, j) - costs.item(g, low)
        for g, (j, low) in enumerate(zip(picked, cheapest, strict=True))
    ]
    for g in sorted(range(len(steps)), key=steps.__getitem__, reverse=True):
        indices[g] = cheapest[g]
        excess -= steps[g]
        if excess <= 0:
            blended = g if excess < 0 else None
            return Blend(indices, blended, picked[g], -excess, steps[g], multiplier)
    raise NothingFitsError(f"the cheapest items exceed the budget by {excess}")


def solve_several(items: Items) -> RelaxedSolution:
    """Solve the relaxed knapsack of several budgets by the simplex method; see `solve_relaxed`."""
    try:
        weights, multipliers = program_of(items).solve()
    except Infeasible:
        raise NothingFitsError("no mixture of items keeps the budgets together") from None
    value = sum(float(p[: len(u)] @ u) for p, u in zip(items.values, weights, strict=True))
    return RelaxedSolution(weights, multipliers, value)


def program_of(items: Items) -> Program:
    """Return the knapsack as a program for HiGHS."""
    program = Program(items.trim(items.centred))
    for k in range(len(items.limits)):
        costs, limit = items.above_floor(k)
        program.add_budget(items.trim(costs), float(limit))
    return program
