"""The knapsack with whole items, solved to optimality; whole-number costs without tolerance.

One budget: dynamic programming over undominated partial selections, cut down by the bound that the
relaxed problem's multiplier λ gives. A partial selection of value v and cost t can reach at most
v + λ(T − t) + Σ max_j (p_gj − λ t_gj), summed over the groups that are left; those that cannot beat
the best known selection are dropped, and few survive. Several budgets: integer programming.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardcorenas.search.knapsack.greedy import improve, pick_by_program
from hardcorenas.search.knapsack.items import Items, Number
from hardcorenas.search.knapsack.relaxed import blend_items

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

# Undominated partial selections kept at most. Only knapsacks whose values are nearly proportional
# to their costs (subset-sum problems) come near; they are thinned and no longer surely optimal.
MAX_STATES = 2**15
_INT64_SAFE = 2**62


@dataclass(frozen=True)
class ExactSolution:
    """A selection that fits.

    Attributes:
        indices: The item of each group.
        value: Its value.
        optimal: Whether it is surely the best; False only where `MAX_STATES` was exceeded.
    """

    indices: tuple[int, ...]
    value: float
    optimal: bool


def solve_exact(
    values: Sequence[ArrayLike],
    costs: Sequence[ArrayLike],
    budget: Number | Sequence[Number] | NDArray[Any],
) -> tuple[int, ...]:
    """Solve max Σ p u s.t. Σ t u ≤ T, Σ_j u_gj = 1, u ∈ {0, 1}; return one index per group.

    Args:
        values: For each group, a 1-D array p.
        costs: For each group, a 1-D array t; for several budgets, one row for each. Whole numbers
            are added and compared exactly, whatever their size.
        budget: T, or one number for each budget.

    Raises:
        NothingFitsError: No selection keeps the budgets.
    """
    return solve_items(Items.read(values, costs, budget)).indices


def solve_items(items: Items) -> ExactSolution:
    """Solve a knapsack that has been read; see `solve_exact`."""
    if len(items.limits) > 1:
        indices = pick_by_program(items, items.values)
        return ExactSolution(tuple(indices), items.value(indices), optimal=True)
    return _Search(items).run()


class _Search:
    """One run of the dynamic program for one budget."""

    def __init__(self, items: Items) -> None:
        blend = blend_items(items)  # raises where nothing fits
        self.items = items
        self.best = improve(items, blend.indices)
        self.best_value = items.value(self.best)
        self.optimal = True
        # Costs above each group's cheapest: small, non-negative, and with a limit to match.
        floors = [min(row) for row in items.cost_lists[0]]
        self.limit = items.limits[0] - sum(floors)
        self.costs = _above(items, floors, self.limit)
        self.multiplier = blend.multiplier
        scores = items.values - self.multiplier * self.costs.astype(float)
        self.tops = scores.max(1)
        self.tolerance = 1e-13 * len(scores) * float(np.abs(items.values).max())
        bound = self.tops.sum() + self.multiplier * float(self.limit)
        # An item that alone pulls the bound below the best known value is in no better selection.
        promising = bound - (self.tops[:, None] - scores) > self.best_value + self.tolerance
        self.kept = [np.flatnonzero(row) for row in items.trim(promising)]

    def run(self) -> ExactSolution:
        if all(len(kept) for kept in self.kept):
            self._sweep()
        return ExactSolution(tuple(self.best), self.best_value, self.optimal)

    def _sweep(self) -> None:
        """Extend partial selections group by group, groups with few items left first."""
        order = sorted(range(len(self.kept)), key=lambda g: len(self.kept[g]))
        ahead = self.tops.sum()
        costs = self.costs[:1, 0] * 0
        values = np.zeros(1)
        trail: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
        for g in order:
            ahead -= self.tops[g]
            kept = self.kept[g]
            all_costs = (costs[:, None] + self.costs[g][kept][None, :]).ravel()
            all_values = (values[:, None] + self.items.values[g][kept][None, :]).ravel()
            reach = all_values + self.multiplier * (self.limit - all_costs).astype(float) + ahead
            alive = np.flatnonzero(
                (all_costs <= self.limit) & (reach > self.best_value + self.tolerance)
            )
            alive = alive[_undominated(all_costs[alive], all_values[alive])]
            if len(alive) > MAX_STATES:
                alive = alive[:: len(alive) // MAX_STATES + 1]
                self.optimal = False
            if not len(alive):
                return  # nothing better than what is known
            costs, values = all_costs[alive], all_values[alive]
            trail.append((alive // len(kept), kept[alive % len(kept)]))
        state = int(values.argmax())
        if values[state] <= self.best_value:
            return
        for g, (parents, picked) in zip(reversed(order), reversed(trail), strict=True):
            self.best[g] = int(picked[state])
            state = int(parents[state])
        self.best_value = self.items.value(self.best)


def _undominated(costs: NDArray[Any], values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return, by rising cost, the positions that are worth more than everything cheaper."""
    order = np.lexsort((-values, costs))
    ranked = values[order]
    before = np.concatenate([[-np.inf], np.maximum.accumulate(ranked)[:-1]])
    return order[ranked > before]


def _above(items: Items, floors: list[Number], limit: Number) -> NDArray[Any]:
    """Return costs above the floors, as 64-bit numbers where sums up to the limit are safe."""
    rows = [
        [cost - floor for cost in row]
        for row, floor in zip(items.cost_lists[0], floors, strict=True)
    ]
    whole = not isinstance(limit, float) and items.costs[0].dtype.kind != "f"
    if not whole:
        return np.array(rows, float)
    safe = max(limit, *map(max, rows)) * 2 < _INT64_SAFE
    return np.array(rows, np.int64 if safe else object)
