"""A space and its budgets as exact integer arithmetic over points (α, β).

Legend: α_bc is the probability of choice c in block b (blocks counted over all stages), β_sd that
of depth d in stage s, ρ_b the probability that block b runs, t_bc what a choice costs. All
probabilities are whole numbers of 2⁻³⁰, all costs whole numbers, so sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardcorenas.errors import InvalidBudgetError
from hardcorenas.resources import AdditiveTable
from hardcorenas.search import feasibility
from hardcorenas.search.joint import allowed_choices, allowed_depths
from hardcorenas.search.knapsack.items import INT64_SAFE, Items, group_offsets
from hardcorenas.search.point import ONE, RelaxedPoint, mix
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hardcorenas.resources import Budget
    from hardcorenas.search.point import Floats, Units
    from hardcorenas.space import SearchSpace


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
        return Items(
            sizes=[values.shape[1]] * len(values),
            values=np.take_along_axis(values, self.stand_in, 1),
            costs=[np.take_along_axis(costs, self.stand_in, 1) for costs in self.costs],
            limits=list(self.limits),
            offsets=group_offsets(*values.shape),
        )

    def fits(self, rows: Units) -> bool:
        """Return whether rows of probabilities keep every budget, exactly."""
        return all(
            _exact_dot(rows, costs) <= limit * ONE
            for costs, limit in zip(self.costs, self.limits, strict=True)
        )


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
        allowed = allowed_choices(space, self.budgets)
        self.lightest = feasibility.require_network(space, self.budgets)
        self.additive = [b for b in self.budgets if isinstance(b.table, AdditiveTable)]
        self.additive_labels = [
            label
            for label, budget in zip(self.labels, self.budgets, strict=True)
            if isinstance(budget.table, AdditiveTable)
        ]
        self._lay_out(allowed)

    def _lay_out(self, allowed: list[list[list[int]]]) -> None:
        space = self.space
        stages, width = space.stages, max(len(stage.choices) for stage in space.stages)
        self.positions = [(s, b) for s, stage in enumerate(stages) for b in range(stage.max_depth)]
        num_depths = max(len(stage.depths) for stage in stages)
        self.shape = (len(self.positions), width)
        self.depth_shape = (len(stages), num_depths)

        # runs[b, (s, d)] is 1 where block b runs at depth d of its stage
        runs = np.zeros((len(self.positions), len(stages), num_depths), np.int64)
        for g, (s, b) in enumerate(self.positions):
            runs[g, s, : len(stages[s].depths)] = [depth > b for depth in stages[s].depths]
        self._runs = runs.reshape(len(self.positions), -1)

        # A limit beyond the dearest network binds nothing; cut, it stays a number of sane size.
        self._limits = [
            min(budget.limit, budget.table.dearest_cost) - budget.table.base
            for budget in self.additive
        ]
        self._costs = []
        for budget in self.additive:
            total = budget.table.dearest_cost * ONE
            costs = np.zeros(self.shape, np.int64 if total < INT64_SAFE else object)
            for g, (s, b) in enumerate(self.positions):
                row = budget.table.costs[s][b]
                costs[g, : len(row)] = row
            self._costs.append(costs)

        relative_cost = sum(
            costs.astype(float) / max(limit, 1)
            for costs, limit in zip(self._costs, self._limits, strict=True)
        ) + np.zeros(self.shape)
        self.allowed_choices = _mask(self.shape, [allowed[s][b] for s, b in self.positions])
        self.choice_sinks = np.where(self.allowed_choices, relative_cost, np.inf).argmin(1)
        self._choice_stand_in = _stand_in(self.allowed_choices, self.choice_sinks)
        self.allowed_depths = _mask(self.depth_shape, allowed_depths(space, allowed))
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
        if any(self.exact_cost(point, k) > limit * ONE**2 for k, limit in enumerate(self._limits)):
            return False
        runs = self._running(point)[:, None] > 0
        return not np.any(runs & (point.alpha > 0) & ~self.allowed_choices)

    def fits_discrete(self, architecture: Architecture) -> bool:
        """Return whether a network keeps every budget, by integer arithmetic."""
        return all(budget.fits(architecture) for budget in self.budgets)

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
        return Polytope(costs, self._scaled_limits(), self._choice_stand_in, self.choice_sinks)

    def beta_polytope(self, point: RelaxedPoint) -> Polytope:
        """Return β's feasible set with α held fixed."""
        costs = []
        for table in self._costs:
            means = np.array(_row_dots(point.alpha, table), table.dtype)
            costs.append((means @ self._runs).reshape(self.depth_shape))
        return Polytope(costs, self._scaled_limits(), self._depth_stand_in, self.depth_sinks)

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

    def _scaled_limits(self) -> list[int]:
        return [limit * ONE for limit in self._limits]


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


def _exact_dot(rows: Units, costs: NDArray[Any]) -> int:
    """Return Σ rows · costs in Python integers, over the entries that count."""
    used = np.nonzero(rows)
    return sum(r * c for r, c in zip(rows[used].tolist(), costs[used].tolist(), strict=True))
