"""The Pareto front of a space: for every limit of a resource the best network, by an estimate.

Some networks are scored, the estimate tells of all others. Where a scored network beats what the
estimate promises of its own optimum, the scored one counts.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.errors import InvalidArgumentError
from hardcorenas.search.baselines import dearest_uniform, sample_fitting
from hardcorenas.search.estimate import FEWEST_NETWORKS, fit_estimate, log_losses
from hardcorenas.search.optimum import AdditiveValue, Optimizer
from hardcorenas.search.proposals import (
    FIRST_SHARE,
    best_within,
    first_networks,
    optimum_or_draw,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from hardcorenas.search.estimate import Estimate
    from hardcorenas.search.problem import Problem
    from hardcorenas.search.result import Score
    from hardcorenas.space import Architecture

NUM_LIMITS = 200
_UNIFORM = 8  # of all networks one in so many is a uniform one
_ROUND = 8  # networks that one estimate proposes
_DRAWS = 40  # to meet a random network that is not known, where limits leave few


@dataclass(frozen=True)
class FrontNetwork:
    """A network of a front.

    Attributes:
        architecture: The network.
        log_loss: By its score, or else by the estimate.
        error: Of the estimate; 0 of a network that was scored.
    """

    architecture: Architecture
    log_loss: float
    error: float


def limits_along(problem: Problem, number: int = NUM_LIMITS) -> list[list[int]]:
    """Return rows of limits: of the first additive budget from the cheapest network to its limit.

    They differ by a factor. The other budgets keep their limits.
    """
    along, *others = problem.additive
    dearest = min(along.limit, along.table.dearest_cost)
    cheapest = min(dearest, along.table.cost(_cheapest(problem)))
    amounts = np.geomspace(max(1, cheapest), max(1, dearest), number).astype(int).tolist()
    amounts[0], amounts[-1] = cheapest, dearest
    return [[amount, *(other.limit for other in others)] for amount in amounts]


def _cheapest(problem: Problem) -> Architecture:
    """Return the network that costs least of the first budget's resource and keeps all budgets."""
    costs = problem.additive[0].table.costs
    choices = tuple(-np.array(rows, float) for rows in costs)
    depths = tuple(np.zeros(len(stage.depths)) for stage in problem.space.stages)
    limits = [budget.limit for budget in problem.additive]
    return best_within(problem, AdditiveValue(choices, depths), limits) or problem.lightest


def score_for_front(
    problem: Problem, score: Score, *, num_networks: int, seed: int = 0
) -> dict[Architecture, float]:
    """Score networks from which a front can be estimated, along the first additive budget.

    Args:
        problem: Space and budgets.
        score: The loss of a network, 0 or more.
        num_networks: How many may be scored.
        seed: Of everything random.
    """
    rng = np.random.default_rng(seed)
    num_first = max(1, round(FIRST_SHARE * num_networks))
    starts = _plain_networks(problem, num_networks // _UNIFORM)
    rows = limits_along(problem, max(1, num_first - len(starts)))
    starts += first_networks(problem, rows, rng)
    while len(set(starts)) < FEWEST_NETWORKS and (drawn := _any_unknown(problem, starts, rng)):
        starts += drawn
    scores = {network: score(network) for network in list(dict.fromkeys(starts))[:num_networks]}
    if len(scores) < FEWEST_NETWORKS:
        raise InvalidArgumentError(
            f"budgets: expected at least {FEWEST_NETWORKS} networks that fit, to estimate others "
            f"from; found {len(scores)}; raise a limit, or search for one network"
        )
    while len(scores) < num_networks:
        number = min(_ROUND, num_networks - len(scores))
        proposed = _proposals(problem, scores, number, rng) or _any_unknown(problem, scores, rng)
        if not proposed:
            break  # all there are seem to be known
        scores |= {network: score(network) for network in proposed}
    return scores


def _plain_networks(problem: Problem, number: int) -> list[Architecture]:
    """Return what anybody would take: the lightest, and uniform networks up to the dearest."""
    uniform = dearest_uniform(problem)
    every = max(1, -(-len(uniform) // max(1, number)))
    return list(dict.fromkeys([_cheapest(problem), problem.lightest, *uniform[::every]]))


def _proposals(
    problem: Problem,
    scores: Mapping[Architecture, float],
    number: int,
    rng: np.random.Generator,
) -> list[Architecture]:
    """Return networks to score next, at limits all along."""
    estimate = fit_estimate(problem.space, list(scores), list(scores.values()))
    rows = limits_along(problem)
    known = set(scores)
    for place in (np.arange(number) + rng.random(number)) * len(rows) / number:
        limits = rows[int(place)]
        network = optimum_or_draw(problem, estimate, limits, known, rng)
        if network is not None:
            known.add(network)
    return sorted(known - set(scores), key=str)


def _any_unknown(
    problem: Problem, known: Container[Architecture], rng: np.random.Generator
) -> list[Architecture]:
    """Return a random network that fits and is not known, if one is met."""
    draws = (sample_fitting(problem, rng) for _ in range(_DRAWS))
    return list(itertools.islice((network for network in draws if network not in known), 1))


def front_networks(
    problem: Problem, estimate: Estimate, scores: Mapping[Architecture, float]
) -> list[FrontNetwork]:
    """Return the networks of the front, from the cheapest to the dearest; each is better."""
    rows = limits_along(problem)
    optima = Optimizer(problem.space, estimate.value, problem.budgets).best_of_each(rows)
    candidates = dict.fromkeys(network for network in (*scores, *optima) if network is not None)
    predicted, errors = estimate.predict(list(candidates))
    known = [
        FrontNetwork(network, float(log_losses([scores[network]])[0]), 0.0)
        if network in scores
        else FrontNetwork(network, float(log_loss), float(error))
        for network, log_loss, error in zip(candidates, predicted, errors, strict=True)
        if problem.fits_discrete(network)
    ]
    return list(_better_and_better(problem, known))


def _better_and_better(
    problem: Problem, networks: Sequence[FrontNetwork]
) -> Iterator[FrontNetwork]:
    """Yield by rising cost each network that is better than all before."""
    table = problem.additive[0].table
    best = np.inf
    for network in sorted(networks, key=lambda n: (table.cost(n.architecture), n.log_loss)):
        if network.log_loss < best:
            best = network.log_loss
            yield network
