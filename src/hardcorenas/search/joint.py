"""The best network under budgets when depths and choices are decided together: one integer program.

    max Σ_s Σ_d q_sd z_sd + Σ_b Σ_c p_bc x_bc
    s.t. Σ_d z_sd = 1,  Σ_c x_bc = Σ_{d: block b runs} z_sd,  Σ_bc t_bc x_bc ≤ T  for each budget

A block that does not run picks nothing, earns nothing and costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.resources import AdditiveTable, PeakTable
from hardcorenas.search.highs import Infeasible, Program, SolverError
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hardcorenas.resources import Budget
    from hardcorenas.space import SearchSpace


# Networks that keep budgets by the solver's tolerance but not exactly are excluded one by one; more
# than a few lie so close to a limit only where costs differ by a billionth of it.
MAX_EXCLUSIONS = 100


def allowed_choices(space: SearchSpace, budgets: Sequence[Budget]) -> list[list[list[int]]]:
    """Return, for each stage and block, the choices that keep every peak budget.

    A limit on a maximum is no sum over the network but a filter on what each block may be.
    """
    peaks = [budget for budget in budgets if isinstance(budget.table, PeakTable)]
    return [
        [
            [
                c
                for c in range(len(stage.choices))
                if all(p.table.costs[s][b][c] <= p.limit for p in peaks)
            ]
            for b in range(stage.max_depth)
        ]
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
    """
    peaks = [budget for budget in budgets if isinstance(budget.table, PeakTable)]
    if any(budget.table.base > budget.limit for budget in peaks):
        return None
    allowed = allowed_choices(space, budgets)
    depths = [
        [i for i, depth in enumerate(stage.depths) if all(allowed[s][b] for b in range(depth))]
        for s, stage in enumerate(space.stages)
    ]
    if not all(depths):
        return None

    # Groups: first the depths of each stage, then the choices of each block that may run.
    blocks = [
        (s, b) for s, stage in enumerate(space.stages) for b in range(stage.depths[depths[s][-1]])
    ]
    values = [np.array([depth_value(s, i) for i in row], float) for s, row in enumerate(depths)]
    values += [np.array([choice_value(s, b, c) for c in allowed[s][b]], float) for s, b in blocks]
    program = Program(values)
    first = np.cumsum([0, *map(len, depths)])
    for number, (s, b) in enumerate(blocks):
        runs = [int(first[s]) + k for k, i in enumerate(depths[s]) if space.stages[s].depths[i] > b]
        program.link(len(depths) + number, runs)
    free = [np.zeros(len(row)) for row in depths]
    for budget in budgets:
        if isinstance(budget.table, AdditiveTable):
            costs = [[budget.table.costs[s][b][c] for c in allowed[s][b]] for s, b in blocks]
            program.add_budget([*free, *costs], budget.limit - budget.table.base)

    try:
        for _ in range(MAX_EXCLUSIONS):
            picked = program.solve_integer()
            indices = [depths[s][picked[s]] for s in range(len(depths))]
            stages: list[list[int]] = [[] for _ in depths]
            chosen = {s: picked[s] for s in range(len(depths))}
            for number, (s, b) in enumerate(blocks, start=len(depths)):
                if b < space.stages[s].depths[indices[s]]:
                    stages[s].append(allowed[s][b][picked[number]])
                    chosen[number] = picked[number]
            network = Architecture.from_indices(space, stages)
            if all(budget.fits(network) for budget in budgets):
                return network
            program.exclude(chosen)  # kept a budget only up to the solver's tolerance
    except (Infeasible, SolverError):
        pass
    return None
