"""Search by an estimate: within its number of networks, its budgets, and ahead of chance."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import hardcorenas as hc
import stress
from hardcorenas.resources import Budget
from hardcorenas.search.baselines import search_random
from hardcorenas.search.estimating import search_estimate
from hardcorenas.search.problem import Problem
from synthetic import AdditiveUtility

SPACE = hc.SearchSpace.preset("rgb32")
MACS, PARAMS = hc.count(SPACE, "macs"), hc.count(SPACE, "params")
PROBLEM = Problem(SPACE, [Budget(MACS, "55%"), Budget(PARAMS, "50%")])


def loss_of(seed):
    """A loss above 0 of which a part is not additive: what blocks in a row share counts as well."""
    utility = AdditiveUtility(SPACE, seed=seed)
    most = -utility.loss(SPACE.heaviest)

    def loss(network):
        same = sum(
            first == second for stage in network.indices for first, second in pairwise(stage)
        )
        return math.exp(utility.loss(network) / most + 0.01 * same)

    return loss


@pytest.mark.parametrize("number", [1, 3, 7, 40])
def test_the_number_of_networks_is_kept(number):
    asked = []

    def score(network):
        asked.append(network)
        return loss_of(0)(network)

    result = search_estimate(PROBLEM, score, num_evaluations=number)
    assert len(asked) == len(set(asked)) == result.num_evaluations == number
    assert result.value == min(map(loss_of(0), asked))
    assert result.fits
    assert all(PROBLEM.fits_discrete(network) for network in asked)


@pytest.mark.parametrize("seed", range(30))
def test_hard_feasibility_on_random_problems(seed):
    problem = stress.random_problem(np.random.default_rng(seed))
    rng = np.random.default_rng(0)
    asked = []

    def score(network):
        asked.append(network)
        return rng.uniform(0.5, 2)

    result = search_estimate(problem, score, num_evaluations=12, seed=seed)
    assert not any(stress.network_exceeds(problem, network) for network in asked)
    assert result.architecture in asked


def test_the_same_seed_is_the_same_search_and_starts_come_first():
    starts = [PROBLEM.lightest]
    runs = [
        search_estimate(PROBLEM, loss_of(0), num_evaluations=20, seed=seed, starts=starts)
        for seed in (0, 0, 1)
    ]
    assert runs[0] == runs[1]
    assert runs[0].trace != runs[2].trace
    assert runs[0].trace[0].value == loss_of(0)(PROBLEM.lightest)


def test_it_is_ahead_of_random_networks_of_the_same_number():
    """On every one of several truths; by chance that would be one case in 64."""
    for seed in range(6):
        ours = search_estimate(PROBLEM, loss_of(seed), num_evaluations=60, seed=seed)
        by_chance = search_random(PROBLEM, loss_of(seed), num_evaluations=60, seed=seed)
        assert ours.value < by_chance.value


def test_a_space_of_few_networks_ends():
    stage = hc.Stage(8, 1, "relu", (1,), (2, 3), (3,), (False,))
    space = hc.SearchSpace("few", 8, 1, 2, hc.Stem(8), (stage, stage), hc.Head(8))
    problem = Problem(space, [Budget(hc.count(space, "macs"), "100%")])
    result = search_estimate(problem, lambda n: 1 + len(str(n)), num_evaluations=50)
    assert result.num_evaluations <= 50
    assert result.value == min(1 + len(str(n)) for n in space.enumerate())
