"""The best network under budgets when depths and choices are decided together.

    max Σ_s Σ_d q_sd z_sd + Σ_b Σ_c p_bc x_bc
    s.t. Σ_d z_sd = 1,  Σ_c x_bc = Σ_{d: block b runs} z_sd,  Σ_bc t_bc x_bc ≤ T  for each budget

A block that does not run picks nothing, earns nothing and costs nothing. An integer program is
asked first. It works with tolerances, so its answer counts only if it fits exactly, and that it
finds none proves nothing: then the ways to build each stage become the items of a knapsack that is
solved in whole numbers.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardcorenas.resources import AdditiveTable, PeakTable
from hardcorenas.search.highs import Infeasible, Program, SolverError
from hardcorenas.search.knapsack.dominance import undominated
from hardcorenas.search.knapsack.items import Items, NothingFitsError, UndecidedError
from hardcorenas.search.knapsack.whole import MAX_STATES, solve_in_whole_numbers
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from hardcorenas.resources import Budget
    from hardcorenas.space import SearchSpace

    Floats = NDArray[np.float64]


def allowed_choices(space: SearchSpace, budgets: Sequence[Budget]) -> list[list[list[int]]]:
    """Return, for each stage and block, the choices that keep every peak budget.

    A limit on a maximum is no sum over the network but a filter on what each block may be.
    """
    peaks = [budget for budget in budgets if isinstance(budget.table, PeakTable)]

    def keep(s: int, b: int, c: int) -> bool:
        return all(peak.table.costs[s][b][c] <= peak.limit for peak in peaks)

    return [
        [[c for c in range(len(stage.choices)) if keep(s, b, c)] for b in range(stage.max_depth)]
        for s, stage in enumerate(space.stages)
    ]


def allowed_depths(space: SearchSpace, allowed: list[list[list[int]]]) -> list[list[int]]:
    """Return, for each stage, the indices of depths whose every block has an allowed choice."""
    return [
        [i for i, depth in enumerate(stage.depths) if all(allowed[s][b] for b in range(depth))]
        for s, stage in enumerate(space.stages)
    ]


def best_network(
    space: SearchSpace,
    budgets: Sequence[Budget],
    choice_value: Callable[[int, int, int], float],
    depth_value: Callable[[int, int], float],
) -> Architecture | None:
    """Return the network of largest total value that keeps every budget; None if there is none.

    Args:
        space: What can be built.
        budgets: What it may cost.
        choice_value: Gives p for stage, block and choice.
        depth_value: Gives q for stage and depth index.

    Raises:
        UndecidedError: Several budgets are too many and too tight to tell in bounded time.
    """
    peaks = [budget for budget in budgets if isinstance(budget.table, PeakTable)]
    if any(budget.table.base > budget.limit for budget in peaks):
        return None
    task = _Task(space, budgets, choice_value, depth_value)
    if not all(task.depths):
        return None
    network, proved = task.by_program()
    if network is not None and proved:
        return network
    exact = task.in_whole_numbers()
    return network if exact is None else exact


@dataclass
class _Task:
    """One call of `best_network`."""

    space: SearchSpace
    budgets: Sequence[Budget]
    choice_value: Callable[[int, int, int], float]
    depth_value: Callable[[int, int], float]
    thinned: bool = False

    def __post_init__(self) -> None:
        self.additive = [b for b in self.budgets if isinstance(b.table, AdditiveTable)]
        self.limits = [b.limit - b.table.base for b in self.additive]
        self.allowed = allowed_choices(self.space, self.budgets)
        self.depths = allowed_depths(self.space, self.allowed)

    def _gains(self, s: int, b: int) -> Floats:
        return np.array([self.choice_value(s, b, c) for c in self.allowed[s][b]], float)

    def _prices(self, budget: Budget, s: int, b: int) -> list[int]:
        return [budget.table.costs[s][b][c] for c in self.allowed[s][b]]

    def by_program(self) -> tuple[Architecture | None, bool]:
        """Return the integer program's network, if it fits exactly, and whether it is the best."""
        stages = self.space.stages
        # Groups: first the depths of each stage, then the choices of each block that may run.
        blocks = [
            (s, b)
            for s, stage in enumerate(stages)
            for b in range(stage.depths[self.depths[s][-1]])
        ]
        depth_values = (
            np.array([self.depth_value(s, i) for i in row], float)
            for s, row in enumerate(self.depths)
        )
        program = Program([*depth_values, *(self._gains(s, b) for s, b in blocks)])
        first = np.cumsum([0, *map(len, self.depths)]).tolist()
        for number, (s, b) in enumerate(blocks, start=len(stages)):
            runs = [k for k, i in enumerate(self.depths[s], first[s]) if stages[s].depths[i] > b]
            program.link(number, runs)
        free = [np.zeros(len(row)) for row in self.depths]
        for budget, limit in zip(self.additive, self.limits, strict=True):
            program.add_budget([*free, *(self._prices(budget, s, b) for s, b in blocks)], limit)
        try:
            picked, proved = program.solve_integer()
        except (Infeasible, SolverError):
            return None, False
        depths = [stages[s].depths[row[picked[s]]] for s, row in enumerate(self.depths)]
        chosen: list[list[int]] = [[] for _ in stages]
        for number, (s, b) in enumerate(blocks, start=len(stages)):
            if b < depths[s]:
                chosen[s].append(self.allowed[s][b][picked[number]])
        network = Architecture.from_indices(self.space, chosen)
        fits = all(budget.fits(network) for budget in self.budgets)
        return (network, proved) if fits else (None, False)

    def in_whole_numbers(self) -> Architecture | None:
        """Return the best network by a knapsack over the ways to build each stage."""
        options = [self._options(s) for s in range(len(self.space.stages))]
        values, costs, ways = zip(*options, strict=True)
        picked: Sequence[int] | None = None
        if not self.additive:
            picked = [int(worth.argmax()) for worth in values]
        elif all(ways):
            items = Items.read(values, [np.stack(rows) for rows in costs], self.limits)
            with suppress(NothingFitsError):
                picked = solve_in_whole_numbers(items).indices
        if picked is not None:
            stages = [choices[j] for choices, j in zip(ways, picked, strict=True)]
            return Architecture.from_indices(self.space, stages)
        if self.thinned:
            raise UndecidedError
        return None

    def _options(self, s: int) -> tuple[Floats, list[NDArray[Any]], list[list[int]]]:
        """Extend ways to build a stage block by block, dropping what cannot matter.

        Returns:
            What each way is worth; for each budget, what each costs; and the choices of each, fewer
            for shallower ways.
        """
        stage = self.space.stages[s]
        values, ways = np.zeros(1), [[]]  # type: tuple[Floats, list[list[int]]]
        costs: list[NDArray[Any]] = [np.zeros(1, object) for _ in self.additive]
        all_values, all_ways = np.zeros(0), []  # type: tuple[Floats, list[list[int]]]
        all_costs: list[NDArray[Any]] = [np.zeros(0, object) for _ in self.additive]
        for b in range(stage.depths[self.depths[s][-1]]):
            values = np.add.outer(values, self._gains(s, b)).ravel()
            ways = [[*way, c] for way in ways for c in self.allowed[s][b]]
            for k, budget in enumerate(self.additive):
                prices = np.array(self._prices(budget, s, b), object)
                costs[k] = np.add.outer(costs[k], prices).ravel()
            kept = np.arange(len(values))
            for spent, limit in zip(costs, self.limits, strict=True):
                kept = kept[(spent[kept] <= limit).astype(bool)]
            if self.additive and len(kept):
                kept = kept[undominated([spent[kept] for spent in costs], values[kept])]
            if len(kept) > MAX_STATES:
                kept = kept[:: len(kept) // MAX_STATES + 1]
                self.thinned = True
            values, ways = values[kept], [ways[i] for i in kept]
            costs = [spent[kept] for spent in costs]
            for i in self.depths[s]:
                if stage.depths[i] == b + 1:
                    all_values = np.concatenate([all_values, values + self.depth_value(s, i)])
                    all_costs = [np.concatenate(c) for c in zip(all_costs, costs, strict=True)]
                    all_ways = all_ways + ways
        return all_values, all_costs, all_ways
