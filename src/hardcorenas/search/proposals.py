"""Which networks to score, so that an estimate learns what matters: where its optima are.

First networks all over the space, to learn from at all. Then optima of the estimate within limits,
and, where these are known already, optima of what the estimate might be as well (Thompson
sampling): what is uncertain is tried where it could pay. In the end neighbours of the best.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.search.knapsack.items import UndecidedError
from hardcorenas.search.local import promising_neighbours
from hardcorenas.search.optimum import AdditiveValue, Optimizer

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from hardcorenas.search.estimate import Estimate
    from hardcorenas.search.problem import Problem
    from hardcorenas.space import Architecture

FIRST_SHARE = 0.2  # of what may be scored: to learn from at first, where nothing is known
_DRAWS = 4  # of a network that is not known yet


def first_networks(
    problem: Problem, limits: Sequence[Sequence[int]], rng: np.random.Generator
) -> list[Architecture]:
    """Return networks to learn from, one within each row of limits: optima of random values.

    Each uses most of its limits, as the networks do that are wanted in the end; of networks drawn
    evenly hardly any is cheap or dear.
    """
    networks: dict[Architecture, None] = {}
    for row in limits:
        for _ in range(_DRAWS):
            network = best_within(problem, _random_value(problem, rng), row)
            if network is not None and network not in networks:
                networks[network] = None
                break
    return list(networks)


def best_within(
    problem: Problem, value: AdditiveValue, limits: Sequence[int]
) -> Architecture | None:
    """Return the network of largest value within limits; None where none fits or it is too hard."""
    with suppress(UndecidedError):
        return Optimizer(problem.space, value, problem.budgets).best(limits)
    return None


def optimum_or_draw(
    problem: Problem,
    estimate: Estimate,
    limits: Sequence[int],
    known: Container[Architecture],
    rng: np.random.Generator,
) -> Architecture | None:
    """Return the estimate's optimum, or where that is known one of what the estimate may be.

    None where all of these are known.
    """
    draws = (estimate.drawn(rng) for _ in range(_DRAWS))
    for value in itertools.chain((estimate.value,), draws):
        network = best_within(problem, value, limits)
        if network is not None and network not in known:
            return network
    return None


def neighbour(
    problem: Problem, estimate: Estimate, best: Architecture, known: Container[Architecture]
) -> Architecture | None:
    """Return the network next to the best that is estimated highest and not known."""
    value = estimate.value
    rows = [row for table in value.choices for row in table]
    gradient = -problem.pad_gradient(rows, list(value.depths))
    near = promising_neighbours(problem, best, gradient)
    return next((network for network in near if network not in known), None)


def _random_value(problem: Problem, rng: np.random.Generator) -> AdditiveValue:
    """Return a value that grows with what choices cost, and by chance."""
    choices, depths = [], []
    for s, stage in enumerate(problem.space.stages):
        chance = rng.standard_normal((stage.max_depth, len(stage.choices)))
        for budget in problem.additive:
            costs = np.array(budget.table.costs[s], float)
            chance += 2 * costs / (costs.max() or 1.0) / len(problem.additive)
        choices.append(chance)
        depths.append(rng.standard_normal(len(stage.depths)))
    return AdditiveValue(tuple(choices), tuple(depths))
