"""The front of a space: what is scored for it, and that nothing on it breaks a budget."""

from __future__ import annotations

import itertools
import math
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest

import hardcorenas as hc
import stress
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.resources import AdditiveTable, Budget
from hardcorenas.search.estimate import FEWEST_NETWORKS, fit_estimate
from hardcorenas.search.front import front_networks, limits_along, score_for_front
from hardcorenas.search.problem import Problem
from hardcorenas.search.proposals import first_networks
from hardcorenas.space import Architecture
from synthetic import AdditiveUtility

STAGE = hc.Stage(8, 1, "relu", (1, 2), (2, 3), (3, 5), (False,))
SMALL = hc.SearchSpace("small", 8, 1, 2, hc.Stem(8), (STAGE, STAGE), hc.Head(8))
SMALL_NETWORKS = [
    Architecture.from_indices(SMALL, stages)
    for stages in itertools.product(
        [
            list(s)
            for d in STAGE.depths
            for s in itertools.product(range(len(STAGE.choices)), repeat=d)
        ],
        repeat=2,
    )
]
RGB = hc.SearchSpace.preset("rgb32")
MACS, PARAMS = hc.count(RGB, "macs"), hc.count(RGB, "params")
PROBLEM = Problem(RGB, [Budget(MACS, "70%"), Budget(PARAMS, "60%")])


def loss_of(space, seed=0):
    """A loss above 0 that is additive in its logarithm."""
    utility = AdditiveUtility(space, seed=seed)
    most = -utility.loss(space.heaviest)
    return lambda network: math.exp(utility.loss(network) / most)


def test_limits_lead_from_the_cheapest_network_to_the_budget():
    rows = limits_along(PROBLEM, 50)
    assert len(rows) == 50
    amounts = [amount for amount, _ in rows]
    assert amounts[0] == MACS.cost(PROBLEM.lightest)
    assert amounts[-1] == PROBLEM.budgets[0].limit
    assert all(a < b for a, b in pairwise(amounts))
    assert {other for _, other in rows} == {PROBLEM.budgets[1].limit}


@pytest.mark.parametrize("seed", range(5))
def test_a_front_begins_at_the_cheapest_network_that_keeps_all_budgets(seed):
    """Which the lightest of all, by the sum of its costs, need not be."""
    rng = np.random.default_rng(seed)
    provenance = hc.count(SMALL, "macs").provenance
    tables = [
        AdditiveTable(
            SMALL,
            "latency",
            "ns",
            0,
            tuple(
                tuple(
                    tuple(row)
                    for row in rng.integers(1, 100, (s.max_depth, len(s.choices))).tolist()
                )
                for s in SMALL.stages
            ),
            provenance,
        )
        for _ in range(2)
    ]
    problem = Problem(SMALL, [Budget(tables[0], "100%"), Budget(tables[1], "70%")])
    fitting = [a for a in SMALL_NETWORKS if problem.fits_discrete(a)]
    (first, _), *_ = limits_along(problem, 20)
    assert first == min(tables[0].cost(a) for a in fitting)
    scores = score_for_front(problem, loss_of(SMALL), num_networks=20)
    assert first in {tables[0].cost(a) for a in scores}


def test_a_network_may_cost_nothing():
    costs = tuple((tuple(range(len(s.choices))),) * s.max_depth for s in SMALL.stages)
    table = AdditiveTable(SMALL, "latency", "ns", 0, costs, hc.count(SMALL, "macs").provenance)
    amounts = [amount for (amount,) in limits_along(Problem(SMALL, [Budget(table, "100%")]), 9)]
    assert amounts[0] == 0
    assert amounts[-1] == table.dearest_cost


def test_what_is_scored_fits_and_is_as_much_as_was_asked_for():
    asked = []

    def score(network):
        asked.append(network)
        return loss_of(RGB)(network)

    scores = score_for_front(PROBLEM, score, num_networks=40)
    assert list(scores) == asked
    assert len(set(asked)) == len(asked) == 40
    assert all(PROBLEM.fits_discrete(network) for network in asked)
    assert score_for_front(PROBLEM, loss_of(RGB), num_networks=40) == scores
    assert score_for_front(PROBLEM, loss_of(RGB), num_networks=40, seed=1) != scores


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_scored_that_breaks_a_budget_of_any_problem(seed):
    problem = stress.random_problem(np.random.default_rng(seed))
    if not problem.additive:
        problem = Problem(problem.space, [*problem.budgets, stress_axis(problem.space)])
    rng = np.random.default_rng(0)
    asked = []

    def score(network):
        asked.append(network)
        return rng.uniform(0.5, 2)

    scores = {}
    with suppress(InvalidArgumentError):
        scores = score_for_front(problem, score, num_networks=15)
    assert asked
    assert not any(stress.network_exceeds(problem, network) for network in asked)
    assert bool(scores) == (len(asked) >= FEWEST_NETWORKS)
    if not scores:
        return
    estimate = fit_estimate(problem.space, list(scores), list(scores.values()))
    for found in front_networks(problem, estimate, scores):
        assert not stress.network_exceeds(problem, found.architecture)


def stress_axis(space):
    """A budget that adds up and lets everything through."""
    return Budget(hc.count(space, "macs"), "100%")


def test_a_space_that_is_smaller_than_what_may_be_scored_is_scored_whole():
    macs = hc.count(SMALL, "macs")
    problem = Problem(SMALL, [Budget(macs, "35%")])
    fitting = [n for n in SMALL.enumerate() if problem.fits_discrete(n)]
    scores = score_for_front(problem, loss_of(SMALL), num_networks=10 * len(fitting))
    assert set(scores) <= set(fitting)
    best = min(fitting, key=loss_of(SMALL))
    assert best in scores


def test_first_networks_keep_their_rows_and_use_most_of_them():
    rows = limits_along(PROBLEM, 20)
    networks = first_networks(PROBLEM, rows, np.random.default_rng(0))
    assert len(networks) >= 15
    costs = [MACS.cost(network) for network in networks]
    assert costs[-1] <= rows[-1][0]
    assert all(PARAMS.cost(network) <= rows[0][1] for network in networks)
    assert max(costs) > 0.6 * rows[-1][0]


@pytest.mark.parametrize("seed", range(3))
def test_an_additive_truth_is_found_at_every_limit(seed):
    """Half of a small space is scored; what the front says of the rest is the truth."""
    macs, loss = hc.count(SMALL, "macs"), loss_of(SMALL, seed)
    problem = Problem(SMALL, [Budget(macs, "100%")])
    networks = list(SMALL.enumerate())
    scores = score_for_front(problem, loss, num_networks=min(60, len(networks) // 2))
    estimate = fit_estimate(SMALL, list(scores), list(scores.values()))
    front = front_networks(problem, estimate, scores)
    for (limit,) in limits_along(problem, 40):
        best = min(loss(n) for n in networks if macs.cost(n) <= limit)
        ours = min(loss(f.architecture) for f in front if macs.cost(f.architecture) <= limit)
        assert ours <= best * 1.005


def test_each_network_of_a_front_is_dearer_and_better_and_says_how_it_is_known():
    scores = score_for_front(PROBLEM, loss_of(RGB), num_networks=60)
    estimate = fit_estimate(RGB, list(scores), list(scores.values()))
    front = front_networks(PROBLEM, estimate, scores)
    assert len(front) > 10
    for before, after in pairwise(front):
        assert MACS.cost(before.architecture) <= MACS.cost(after.architecture)
        assert before.log_loss > after.log_loss
    for found in front:
        if found.architecture in scores:
            assert found.log_loss == pytest.approx(math.log(scores[found.architecture]))
            assert found.error == 0
        else:
            assert found.error > 0


def test_limits_that_leave_too_few_networks_are_told():
    problem = Problem(RGB, [Budget(MACS, MACS.cheapest_cost)])
    with pytest.raises(InvalidArgumentError, match="at least 4 networks that fit"):
        score_for_front(problem, loss_of(RGB), num_networks=20)
