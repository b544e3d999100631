"""Networks that fit, drawn and changed at random: what random and evolutionary search are made of.

Nothing here loops without a bound: a draw that does not fit is made cheaper step by step until it
does, or given up for the lightest network, which fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from hardcorenas.search.problem import Problem
    from hardcorenas.space import SearchSpace

NUM_DRAWS = 20
NUM_FITTING = 4


def sample_fitting(problem: Problem, rng: np.random.Generator) -> Architecture:
    """Draw a network that fits and makes something of its budgets.

    Of a few uniform draws that fit it is the dearest: under a loose budget most draws are cheaper
    by far than they may be. Where none fits, the last draw is made cheaper until it does.
    """
    fitting: list[Architecture] = []
    for _ in range(NUM_DRAWS):
        network = problem.space.sample(rng)
        if problem.fits_discrete(network):
            fitting.append(network)
        if len(fitting) == NUM_FITTING:
            break
    if not fitting:
        return make_fit(problem, network, rng)
    return max(fitting, key=lambda n: max(b.table.cost(n) / b.limit for b in problem.budgets))


def make_fit(problem: Problem, network: Architecture, rng: np.random.Generator) -> Architecture:
    """Make random changes that lower what exceeds its budget until the network fits."""
    if problem.fits_discrete(network):
        return network
    stages = [list(indices) for indices in network.indices]
    excess = _excess(problem, stages)
    while excess > 0:
        cheaper = []
        for s, changed in changed_stages(problem.space, stages):
            left = _excess(problem, [*stages[:s], changed, *stages[s + 1 :]])
            if left < excess:
                cheaper.append((s, changed, left))
        if not cheaper:
            return problem.lightest
        s, stages[s], excess = cheaper[int(rng.integers(len(cheaper)))]
    return Architecture.from_indices(problem.space, stages)


def mutate(
    problem: Problem, network: Architecture, rate: float, rng: np.random.Generator
) -> Architecture:
    """Draw each depth and each choice anew with a probability, and make the result fit."""
    fresh = problem.space.sample(rng)
    stages = []
    for stage, old, new in zip(problem.space.stages, network.stages, fresh.stages, strict=True):
        depth = len(new) if rng.random() < rate else len(old)
        blocks = list(old[:depth])
        while len(blocks) < depth:  # a deeper stage needs choices for its new blocks
            blocks.append(stage.choices[int(rng.integers(len(stage.choices)))])
        for position in range(depth):
            if rng.random() < rate:
                blocks[position] = stage.choices[int(rng.integers(len(stage.choices)))]
        stages.append(tuple(blocks))
    return make_fit(problem, Architecture(problem.space, tuple(stages)), rng)


def cross(
    problem: Problem, first: Architecture, second: Architecture, rng: np.random.Generator
) -> Architecture:
    """Take each stage from one of two parents, and make the result fit."""
    stages = tuple(
        one if rng.random() < 0.5 else other
        for one, other in zip(first.stages, second.stages, strict=True)
    )
    return make_fit(problem, Architecture(problem.space, stages), rng)


def changed_stages(space: SearchSpace, stages: list[list[int]]) -> Iterator[tuple[int, list[int]]]:
    """Yield each stage with one thing changed, choices as indices."""
    for s, (stage, blocks) in enumerate(zip(space.stages, stages, strict=True)):
        for b, chosen in enumerate(blocks):
            for choice in range(len(stage.choices)):
                if choice != chosen:
                    yield s, [*blocks[:b], choice, *blocks[b + 1 :]]
        for depth in stage.depths:
            if depth != len(blocks):
                yield s, [*blocks[:depth], *[blocks[-1]] * (depth - len(blocks))]


def _excess(problem: Problem, stages: list[list[int]]) -> float:
    """Return by how much budgets are exceeded, as shares of them, added up; 0 if it fits."""
    total = 0.0
    for budget in problem.budgets:
        rows = budget.table.costs
        costs = [rows[s][b][c] for s, blocks in enumerate(stages) for b, c in enumerate(blocks)]
        total += max(0, budget.table.total(costs) - budget.limit) / budget.limit
    return total
