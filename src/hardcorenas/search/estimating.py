"""Search by an estimate: score networks, estimate all others, score what looks best; again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hardcorenas.search.baselines import generator, sample_fitting
from hardcorenas.search.estimate import FEWEST_NETWORKS, fit_estimate
from hardcorenas.search.proposals import (
    FIRST_SHARE,
    first_networks,
    neighbour,
    optimum_or_draw,
)
from hardcorenas.search.scored import ScoredNetworks

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from hardcorenas.search.optimum import AdditiveValue
    from hardcorenas.search.problem import Problem
    from hardcorenas.search.result import Score, SearchResult
    from hardcorenas.space import Architecture

_CYCLE = 3  # every third network is a neighbour of the best one


def search_estimate(
    problem: Problem,
    score: Score,
    *,
    num_evaluations: int,
    seed: int = 0,
    starts: Sequence[Architecture] = (),
    hint: AdditiveValue | None = None,
) -> SearchResult:
    """Score networks that look best by an estimate that learns from them; return the best.

    Args:
        problem: Space and budgets.
        score: The loss of a network, 0 or more.
        num_evaluations: Networks scored in all.
        seed: Of everything random.
        starts: Networks that fit, to begin with.
        hint: What is known of the value before; see `fit_estimate`.
    """
    rng = generator(problem, seed)
    seen = ScoredNetworks(problem, score)
    limits = [budget.limit for budget in problem.additive]
    for network in list(dict.fromkeys(starts))[: max(1, num_evaluations)]:
        seen.evaluate(network)
    wanted = FEWEST_NETWORKS if hint else max(FEWEST_NETWORKS, int(FIRST_SHARE * num_evaluations))
    missing = min(wanted, num_evaluations) - len(seen.trace)
    for network in first_networks(problem, [limits] * missing, rng):
        if network not in seen.values:
            seen.evaluate(network)
    while len(seen.trace) < num_evaluations:
        proposed = _next(problem, seen, hint, limits, rng)
        if proposed is None:
            proposed = seen.unknown(lambda: sample_fitting(problem, rng))
        if proposed in seen.values:
            break  # there seems to be no other
        seen.evaluate(proposed)
    return seen.result()


def _next(
    problem: Problem,
    seen: ScoredNetworks,
    hint: AdditiveValue | None,
    limits: Sequence[int],
    rng: np.random.Generator,
) -> Architecture | None:
    """Return the network to score next, if there is an estimate to tell it."""
    means = seen.means()
    if len(means) < FEWEST_NETWORKS:
        return None
    estimate = fit_estimate(problem.space, list(means), list(means.values()), hint)
    drawn = partial(optimum_or_draw, problem, estimate, limits, means, rng)
    near = partial(neighbour, problem, estimate, seen.best(1)[0], means)
    ways = (drawn, near) if len(seen.trace) % _CYCLE else (near, drawn)
    return next((network for way in ways if (network := way()) is not None), None)
