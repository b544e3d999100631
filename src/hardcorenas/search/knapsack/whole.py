"""The knapsack with whole items: greedily, or to optimality and without tolerance.

The greedy way is the paper's remark: the best exchange that still fits, again and again.

The exact way is dynamic programming over partial selections, cut down by the bound that the relaxed
problem's multipliers λ give. A partial selection of value v and costs t_k can reach at most
v + Σ_k λ_k (T_k − t_k) + Σ max_j (p_gj − Σ_k λ_k t_kgj), the last sum over the groups left over;
those that cannot beat the best known selection are dropped, those dominated by a cheaper and
better one too, and few survive. With several budgets an integer program is asked first; it keeps
budgets only up to a tolerance, so that its answer counts only if it fits exactly.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hardcorenas.search.highs import Infeasible, SolverError
from hardcorenas.search.knapsack.dominance import undominated
from hardcorenas.search.knapsack.items import Groups, Items, Limit, NothingFitsError, UndecidedError
from hardcorenas.search.knapsack.relaxed import blend_items, program_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Partial selections kept at most. With one budget only values nearly proportional to costs (subset
# sum) come near; beyond it the selection still fits but is no longer surely the best.
MAX_STATES = 2**15


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


def solve_greedy(values: Groups, costs: Groups, budget: Limit) -> tuple[int, ...]:
    """Return one item of each group that keeps the budgets and is of good, not the best, value.

    Args:
        values: For each group, a 1-D array.
        costs: For each group, a 1-D array; for several budgets, one row for each.
        budget: A number, or one for each budget.

    Raises:
        NothingFitsError: No selection keeps the budgets.
    """
    return tuple(solve_items_greedily(Items.read(values, costs, budget)))


def solve_items_greedily(items: Items) -> list[int]:
    """Solve a knapsack that has been read; see `solve_greedy`."""
    start = cheapest_selection(items)
    if start is None and len(items.limits) > 1:
        # Something else than the cheapest may fit: the lightest selection of all that do.
        start = list(solve_items(replace(items, values=-_relative_costs(items))).indices)
    if start is None:
        raise NothingFitsError(f"the cheapest items exceed the budget {items.limits[0]}")
    return improve(items, start)


def cheapest_selection(items: Items) -> list[int] | None:
    """Return each group's cheapest items, by their share of the budgets; None if they do not fit.

    For one budget, None means that nothing fits.
    """
    indices = [int(index) for index in _relative_costs(items).argmin(1)]
    return indices if items.fits(indices) else None


def improve(items: Items, indices: list[int]) -> list[int]:
    """Exchange items, the largest gain for its cost first, as long as an exchange fits and gains.

    Args:
        items: The knapsack.
        indices: A selection that fits.
    """
    indices = list(indices)
    costs, values = _relative_costs(items), items.values
    rows = np.arange(len(indices))
    while True:
        gain = values - values[rows, indices][:, None]
        price = costs - costs[rows, indices][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            merit = np.where(gain > 0, np.where(price > 0, gain / price, np.inf), -np.inf)
        for flat in np.argsort(-merit, axis=None, kind="stable"):
            group, item = divmod(int(flat), values.shape[1])
            if merit[group, item] == -np.inf:
                return indices
            if items.fits([*indices[:group], item, *indices[group + 1 :]]):
                indices[group] = item
                break
        else:
            return indices


def _relative_costs(items: Items) -> NDArray[np.float64]:
    """Return each item's cost as a share of the budgets, added up over the budgets."""
    shares = [
        rows.astype(float) / (abs(float(limit)) or 1.0)
        for rows, limit in zip(items.costs, items.limits, strict=True)
    ]
    return np.asarray(np.sum(shares, axis=0))


def solve_exact(values: Groups, costs: Groups, budget: Limit) -> tuple[int, ...]:
    """Solve max Σ p u s.t. Σ t u ≤ T, Σ_j u_gj = 1, u ∈ {0, 1}; return one index per group.

    Args:
        values: For each group, a 1-D array p.
        costs: For each group, a 1-D array t; for several budgets, one row for each. Whole numbers
            are added and compared exactly, whatever their size.
        budget: T, or one number for each budget.

    Raises:
        NothingFitsError: No selection keeps the budgets.
        UndecidedError: Several budgets are too many and too tight to tell in bounded time.
    """
    return solve_items(Items.read(values, costs, budget)).indices


def solve_items(items: Items) -> ExactSolution:
    """Solve a knapsack that has been read; see `solve_exact`."""
    if len(items.limits) == 1:
        blend = blend_items(items)  # raises where nothing fits
        return _Search(items, improve(items, blend.indices), (blend.multiplier,)).run()
    fitting = None  # that the program finds none proves nothing: its tolerances can hide one
    with suppress(Infeasible, SolverError):
        indices, proved = program_of(items).solve_integer()
        if items.fits(indices):
            if proved:
                return ExactSolution(tuple(indices), items.value(indices), optimal=True)
            fitting = indices
    return solve_in_whole_numbers(items, fitting)


def solve_in_whole_numbers(items: Items, fitting: list[int] | None = None) -> ExactSolution:
    """Solve by dynamic programming alone, which believes no tolerance.

    Args:
        items: The knapsack.
        fitting: A selection that fits, to start from; the cheapest if not given.
    """
    start = cheapest_selection(items) if fitting is None else fitting
    multipliers: tuple[float, ...] = (0.0,) * len(items.limits)  # all that are not negative bound
    with suppress(Infeasible, SolverError):
        _, multipliers = program_of(items).solve()  # these bound well
    return _Search(items, start and improve(items, start), multipliers).run()


class _Search:
    """One run of the dynamic program.

    Args:
        items: The knapsack.
        best: A selection that fits, or None if none is known.
        multipliers: One for each budget, not negative.
    """

    def __init__(
        self, items: Items, best: list[int] | None, multipliers: tuple[float, ...]
    ) -> None:
        self.items = items
        self.values = items.centred
        self.best = best
        self.best_value = -np.inf if best is None else self._value(best)
        self.optimal = True
        self.multipliers = multipliers
        # Budgets × groups × items: costs above each group's cheapest, and limits to match.
        above = [items.above_floor(k) for k in range(len(items.limits))]
        self.costs = [costs for costs, _ in above]
        self.limits = [limit for _, limit in above]
        scores = self.values - self._priced(self.costs)
        self.tops = scores.max(1)
        self.tolerance = 1e-13 * len(scores) * float(np.abs(self.values).max())
        bound = self.tops.sum() + sum(
            weight * float(limit) for weight, limit in zip(multipliers, self.limits, strict=True)
        )
        # An item that alone breaks a budget, or pulls the bound below the best known value, is in
        # no better selection.
        promising = bound - (self.tops[:, None] - scores) > self.best_value + self.tolerance
        for costs, limit in zip(self.costs, self.limits, strict=True):
            promising &= (costs <= limit).astype(bool)
        self.kept = [np.flatnonzero(row) for row in items.trim(promising)]

    def run(self) -> ExactSolution:
        if all(len(kept) for kept in self.kept):
            self._sweep()
        if self.best is None:
            if self.optimal:
                raise NothingFitsError("no selection keeps the budgets together")
            raise UndecidedError
        return ExactSolution(tuple(self.best), self.items.value(self.best), self.optimal)

    def _priced(self, costs: list[NDArray[Any]]) -> NDArray[np.float64]:
        """Return Σ_k λ_k · costs_k."""
        priced = (w * cost.astype(float) for w, cost in zip(self.multipliers, costs, strict=True))
        return np.asarray(sum(priced))

    def _sweep(self) -> None:
        """Extend partial selections group by group, groups with few items left first."""
        order = sorted(range(len(self.kept)), key=lambda g: len(self.kept[g]))
        ahead = self.tops.sum()
        costs = [table[:1, 0] * 0 for table in self.costs]
        values = np.zeros(1)
        trail: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
        for g in order:
            ahead -= self.tops[g]
            kept = self.kept[g]
            costs = [
                (spent[:, None] + table[g][kept][None, :]).ravel()
                for spent, table in zip(costs, self.costs, strict=True)
            ]
            values = (values[:, None] + self.values[g][kept][None, :]).ravel()
            left = [limit - spent for limit, spent in zip(self.limits, costs, strict=True)]
            reach = values + self._priced(left) + ahead
            fits = np.logical_and.reduce([(room >= 0).astype(bool) for room in left])
            alive = np.flatnonzero(fits & (reach > self.best_value + self.tolerance))
            if not len(alive):
                return  # nothing better than what is known
            alive = alive[undominated([spent[alive] for spent in costs], values[alive])]
            if len(alive) > MAX_STATES:
                alive = alive[:: len(alive) // MAX_STATES + 1]
                self.optimal = False
            costs, values = [spent[alive] for spent in costs], values[alive]
            trail.append((alive // len(kept), kept[alive % len(kept)]))
        state = int(values.argmax())
        if values[state] <= self.best_value:
            return
        self.best = [0] * len(order)
        for g, (parents, picked) in zip(reversed(order), reversed(trail), strict=True):
            self.best[g] = int(picked[state])
            state = int(parents[state])
        self.best_value = self._value(self.best)

    def _value(self, indices: list[int]) -> float:
        return float(self.values.take(self.items.offsets + indices).sum())
