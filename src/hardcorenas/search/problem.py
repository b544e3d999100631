"""A space and its budgets as exact integer arithmetic over points (α, β).

Legend: α_bc is the probability of choice c in block b (blocks counted over all stages), β_sd that
of depth d in stage s, ρ_b the probability that block b runs, t_bc what a choice costs. All
probabilities are whole numbers of 2⁻³⁰, all costs whole numbers, so sums are exact. With β held
fixed the feasible α are a polytope, and so the other way round; `best_vertex` is its linear oracle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from hardcorenas.errors import InvalidBudgetError
from hardcorenas.resources import AdditiveTable
from hardcorenas.search import feasibility
from hardcorenas.search.highs import SolverError
from hardcorenas.search.joint import allowed_choices, allowed_depths
from hardcorenas.search.knapsack.items import INT64_SAFE, Items, NothingFitsError, group_offsets
from hardcorenas.search.knapsack.relaxed import blend_items, solve_several
from hardcorenas.search.point import ONE, Floats, RelaxedPoint, Units, mix, one_hot, to_units
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hardcorenas.resources import Budget
    from hardcorenas.space import SearchSpace

# Several budgets go through a solver with tolerances. This share of what each budget leaves above
# the cheapest rows is held back, so that its vertex, rounded to whole units, still fits exactly.
_MARGINS = (1e-8, 1e-6, 1e-4, 1e-2)


@dataclass(frozen=True)
class Polytope:
    """α with β held fixed, or β with α: rows to choose from under linear budgets.

    Attributes:
        costs: For each additive budget, exact costs, rows × entries, in units of 2⁻³⁰.
        limits: For each, its limit in the same units.
        stand_in: For each entry, itself, or the row's sink where the entry is not allowed.
        sinks: For each row, its cheapest allowed entry.
    """

    costs: list[NDArray[Any]]
    limits: list[int]
    stand_in: NDArray[np.intp]
    sinks: NDArray[np.intp]

    def items(self, values: Floats) -> Items:
        """Return the knapsack of maximising values; what is not allowed looks like its stand-in."""
        sizes = [values.shape[1]] * len(values)
        values, *costs = (np.take_along_axis(a, self.stand_in, 1) for a in (values, *self.costs))
        return Items(sizes, values, costs, list(self.limits), group_offsets(*values.shape))

    def fits(self, rows: Units) -> bool:
        """Return whether rows of probabilities keep every budget, exactly."""
        used = np.nonzero(rows)
        shares = rows[used].tolist()  # Python integers, in which sums are exact
        return all(
            sum(r * c for r, c in zip(shares, costs[used].tolist(), strict=True)) <= limit * ONE
            for costs, limit in zip(self.costs, self.limits, strict=True)
        )


def best_vertex(polytope: Polytope, values: Floats) -> Units | None:
    """Solve max Σ values · rows over a polytope; the rows returned fit exactly.

    Args:
        polytope: Of α with β held fixed, or of β with α.
        values: Rows × entries.

    Returns:
        Rows of probabilities, all certain but one row for each budget that binds. None where
        several budgets are so tight that no rounded vertex fits; one budget always has one.
    """
    items = polytope.items(values)
    if not items.limits:
        return _certain(polytope, items.values.argmax(1).tolist())
    solve = _one_budget if len(items.limits) == 1 else _several_budgets
    return solve(polytope, items)


def _one_budget(polytope: Polytope, items: Items) -> Units:
    """Solve a knapsack of one budget, to the last unit."""
    blend = blend_items(items)
    rows = _certain(polytope, blend.indices)
    if blend.group is not None:
        g = blend.group
        # Both are whole numbers: rounding down keeps the budget, to the last unit.
        units = int(blend.slack) * ONE // int(blend.step)
        rows[g, polytope.stand_in[g, blend.indices[g]]] -= units
        rows[g, polytope.stand_in[g, blend.upper]] += units
    return rows


def _several_budgets(polytope: Polytope, items: Items) -> Units | None:
    # What is best under one of the budgets and keeps the others is best under all.
    for costs, limit in zip(items.costs, items.limits, strict=True):
        rows = _one_budget(polytope, replace(items, costs=[costs], limits=[limit]))
        if polytope.fits(rows):
            return rows
    spare = [items.above_floor(k)[1] for k in range(len(items.limits))]
    for margin in _MARGINS:
        held_back = (int(margin * float(room)) for room in spare)
        limits = [limit - held for limit, held in zip(items.limits, held_back, strict=True)]
        try:
            solution = solve_several(replace(items, limits=limits))
        except (NothingFitsError, SolverError):
            return None
        shares = np.zeros(items.values.shape)
        rows = np.arange(len(shares))[:, None]
        np.add.at(shares, (rows, polytope.stand_in), np.array(solution.weights))
        vertex = to_units(shares, polytope.sinks)
        if polytope.fits(vertex):
            return vertex
    return None


def _certain(polytope: Polytope, indices: list[int]) -> Units:
    picked = polytope.stand_in[np.arange(len(indices)), indices]
    return one_hot(picked, polytope.stand_in.shape[1])


class Problem:
    """What may be built and what it may cost, checked to have at least one network that fits.

    Attributes:
        space: The space.
        budgets: All budgets.
        labels: Their names, no two alike.
        additive: Those whose resource adds up: linear in α and in β.
        additive_labels: Their names.
        lightest: A network that fits: the cheapest one, or with several budgets one they all allow.
        positions: Stage and place in it of each block.
        shape: Blocks × choices.
        depth_shape: Stages × depths.
        allowed_choices: Blocks × choices: what the peak budgets allow.
        allowed_depths: Stages × depths: what the peak budgets allow.
        choice_sinks: Each block's cheapest allowed choice.
        depth_sinks: Each stage's smallest allowed depth.
    """

    def __init__(self, space: SearchSpace, budgets: Sequence[Budget]) -> None:
        self.space = space
        self.budgets = tuple(budgets)
        for budget in self.budgets:
            if budget.table.space.fingerprint != space.fingerprint:
                raise InvalidBudgetError(
                    f"{budget.name} budget: its table was made for space "
                    f"{budget.table.space.name!r} ({budget.table.space.fingerprint}), not for "
                    f"{space.name!r} ({space.fingerprint}); make a table for this space"
                )
        self.labels = feasibility.unique_labels(self.budgets)
        self.lightest = feasibility.require_network(space, self.budgets)
        is_additive = [isinstance(budget.table, AdditiveTable) for budget in self.budgets]
        self.additive = list(compress(self.budgets, is_additive))
        self.additive_labels = list(compress(self.labels, is_additive))
        self._lay_out(allowed_choices(space, self.budgets))

    def _lay_out(self, allowed: list[list[list[int]]]) -> None:
        stages = self.space.stages
        self.positions = [(s, b) for s, stage in enumerate(stages) for b in range(stage.max_depth)]
        self.shape = (len(self.positions), max(len(stage.choices) for stage in stages))
        self.depth_shape = (len(stages), max(len(stage.depths) for stage in stages))

        # runs[b, (s, d)] is 1 where block b runs at depth d of its stage
        runs = np.zeros((len(self.positions), *self.depth_shape), np.int64)
        for g, (s, b) in enumerate(self.positions):
            runs[g, s, : len(stages[s].depths)] = [depth > b for depth in stages[s].depths]
        self._runs = runs.reshape(len(self.positions), -1)

        # A limit beyond the dearest network binds nothing; cut, it stays a number of sane size.
        limits = [min(b.limit, b.table.dearest_cost) - b.table.base for b in self.additive]
        self._limits = [limit * ONE for limit in limits]
        self._costs = []
        for budget in self.additive:
            total = budget.table.dearest_cost * ONE
            costs = np.zeros(self.shape, np.int64 if total < INT64_SAFE else object)
            for row, (s, b) in zip(costs, self.positions, strict=True):
                row[: len(stages[s].choices)] = budget.table.costs[s][b]
            self._costs.append(costs)

        relative_cost = np.zeros(self.shape)
        for costs, limit in zip(self._costs, limits, strict=True):
            relative_cost += costs.astype(float) / max(limit, 1)
        self.allowed_choices = _mask(self.shape, [allowed[s][b] for s, b in self.positions])
        self.choice_sinks = np.where(self.allowed_choices, relative_cost, np.inf).argmin(1)
        self._choice_stand_in = _stand_in(self.allowed_choices, self.choice_sinks)
        self.allowed_depths = _mask(self.depth_shape, allowed_depths(self.space, allowed))
        self.depth_sinks = self.allowed_depths.argmax(1)
        self._depth_stand_in = _stand_in(self.allowed_depths, self.depth_sinks)

    # What a point costs.

    def exact_cost(self, point: RelaxedPoint, budget: int) -> int:
        """Return the expected cost of an additive budget without its base, times 2⁶⁰."""
        means = _row_dots(point.alpha, self._costs[budget])
        return sum(r * m for r, m in zip(self._running(point).tolist(), means, strict=True))

    def expected_costs(self, point: RelaxedPoint) -> list[float]:
        """Return the expected cost of each additive budget, in its table's unit."""
        return [
            budget.table.base + self.exact_cost(point, k) / ONE**2
            for k, budget in enumerate(self.additive)
        ]

    def slack(self, costs: Sequence[float]) -> tuple[float, ...]:
        """Return what costs, one for each additive budget, leave of the limits."""
        return tuple(b.limit - cost for b, cost in zip(self.additive, costs, strict=True))

    def fits(self, point: RelaxedPoint) -> bool:
        """Return whether a point keeps every budget, by exact integer arithmetic.

        An additive resource counts by its expectation; a peak by every choice that has any
        probability.
        """
        if any(self.exact_cost(point, k) > limit * ONE for k, limit in enumerate(self._limits)):
            return False
        runs = self._running(point)[:, None] > 0
        return not np.any(runs & (point.alpha > 0) & ~self.allowed_choices)

    def fits_discrete(self, architecture: Architecture) -> bool:
        """Return whether a network keeps every budget, by integer arithmetic."""
        return all(budget.fits(architecture) for budget in self.budgets)

    def used_share(self, architecture: Architecture) -> float:
        """Return the largest share of a budget that a network uses, 1 for all of it."""
        return max(b.table.cost(architecture) / b.limit for b in self.budgets)

    def costs(self, architecture: Architecture) -> dict[str, int]:
        """Return what a network costs, in the unit of each budget's table."""
        return {
            label: budget.table.cost(architecture)
            for label, budget in zip(self.labels, self.budgets, strict=True)
        }

    def alpha_polytope(self, point: RelaxedPoint) -> Polytope:
        """Return α's feasible set with β held fixed."""
        running = self._running(point)[:, None]
        costs = [costs * running for costs in self._costs]
        return Polytope(costs, self._limits, self._choice_stand_in, self.choice_sinks)

    def beta_polytope(self, point: RelaxedPoint) -> Polytope:
        """Return β's feasible set with α held fixed."""
        means = (np.array(_row_dots(point.alpha, table), table.dtype) for table in self._costs)
        costs = [(mean @ self._runs).reshape(self.depth_shape) for mean in means]
        return Polytope(costs, self._limits, self._depth_stand_in, self.depth_sinks)

    def mixed(self, start: RelaxedPoint, end: RelaxedPoint, step: float) -> RelaxedPoint:
        """Return the point a share of the way from start to end, rounded towards cheaper."""
        return RelaxedPoint(
            mix(start.alpha, end.alpha, step, self.choice_sinks),
            mix(start.beta, end.beta, step, self.depth_sinks),
        )

    def architecture(self, choices: Sequence[int], depths: Sequence[int]) -> Architecture:
        """Return the network of one choice index per block and one depth index per stage."""
        stages = [[] for _ in self.space.stages]  # type: list[list[int]]
        for (s, b), choice in zip(self.positions, choices, strict=True):
            if b < self.space.stages[s].depths[depths[s]]:
                stages[s].append(int(choice))
        return Architecture.from_indices(self.space, stages)

    def pad_gradient(
        self, alpha: Sequence[NDArray[np.float64]], beta: Sequence[NDArray[np.float64]]
    ) -> Floats:
        """Return gradients given per block and per stage as one flat vector."""
        by_alpha, by_beta = np.zeros(self.shape), np.zeros(self.depth_shape)
        for row, given in zip(by_alpha, alpha, strict=True):
            row[: len(given)] = given
        for row, given in zip(by_beta, beta, strict=True):
            row[: len(given)] = given
        return np.concatenate((by_alpha.ravel(), by_beta.ravel()))

    def split_gradient(self, flat: Floats) -> tuple[Floats, Floats]:
        """Return a flat gradient as its two rectangles, by α and by β."""
        size = self.shape[0] * self.shape[1]
        return flat[:size].reshape(self.shape), flat[size:].reshape(self.depth_shape)

    def _running(self, point: RelaxedPoint) -> Units:
        return self._runs @ point.beta.ravel()


def _mask(shape: tuple[int, int], allowed: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    mask = np.zeros(shape, bool)
    for row, indices in zip(mask, allowed, strict=True):
        row[list(indices)] = True
    return mask


def _stand_in(allowed: NDArray[np.bool_], sinks: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.where(allowed, np.arange(allowed.shape[1]), sinks[:, None])


def _row_dots(rows: Units, costs: NDArray[Any]) -> list[int]:
    """Return Σ_c rows · costs of each row; rows add up to 2³⁰, costs are stored to hold that."""
    products: list[int] = (rows * costs).sum(1).tolist()
    return products
