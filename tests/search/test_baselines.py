"""The opponents: same interface, same number of evaluations, hard feasibility where promised."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import hardcorenas as hc
import stress
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.resources import Budget
from hardcorenas.search import baselines
from hardcorenas.search.baselines import search_evolution, search_penalty, search_random
from hardcorenas.search.problem import Problem
from synthetic import AdditiveUtility

SPACE = hc.SearchSpace.preset("rgb32")
MACS, PARAMS = hc.count(SPACE, "macs"), hc.count(SPACE, "params")
PROBLEM = Problem(SPACE, [Budget(MACS, "55%"), Budget(PARAMS, "50%")])


def question(search, objective):
    """What a search asks: gradients for the penalty, losses of networks for the others."""
    return objective if search is search_penalty else objective.loss


@pytest.mark.parametrize("search", [search_random, search_evolution, search_penalty])
@pytest.mark.parametrize("number", [1, 7, 130])
def test_the_number_of_evaluations_is_kept(search, number):
    calls = []
    ask = question(search, AdditiveUtility(SPACE, seed=0))

    def counted(asked):
        calls.append(asked)
        return ask(asked)

    result = search(PROBLEM, counted, num_evaluations=number)
    assert len(calls) == result.num_evaluations == number
    assert result.costs == PROBLEM.costs(result.architecture)
    assert result.fits == PROBLEM.fits_discrete(result.architecture)
    with pytest.raises(ValueError, match="num_evaluations"):
        search(PROBLEM, counted, num_evaluations=0)


@pytest.mark.parametrize("search", [search_random, search_evolution])
@pytest.mark.parametrize("seed", range(30))
def test_hard_feasibility_on_random_problems(search, seed):
    problem = stress.random_problem(np.random.default_rng(seed))
    rng = np.random.default_rng(0)
    result = search(problem, lambda _network: rng.random(), num_evaluations=60, seed=seed)
    assert not stress.network_exceeds(problem, result.architecture)


def test_a_budget_at_the_exact_minimum_ends():
    problem = Problem(SPACE, [Budget(MACS, MACS.cheapest_cost)])
    for search in (search_random, search_evolution):
        result = search(problem, AdditiveUtility(SPACE, seed=0).loss, num_evaluations=60)
        assert result.architecture == SPACE.lightest


def test_evolution_beats_chance():
    objective = AdditiveUtility(SPACE, seed=4)
    chance = search_random(PROBLEM, objective.loss, num_evaluations=600, seed=0)
    bred = search_evolution(PROBLEM, objective.loss, num_evaluations=600, seed=0)
    assert objective.loss(bred.architecture) < objective.loss(chance.architecture)


@pytest.mark.parametrize("search", [search_random, search_evolution])
@pytest.mark.parametrize("amount", ["40%", "80%"])
def test_no_network_is_paid_for_twice(search, amount):
    problem = Problem(SPACE, [Budget(MACS, amount)])
    objective, asked = AdditiveUtility(SPACE, seed=4), []

    def score(network):
        asked.append(network)
        return objective.loss(network)

    options = {"population": 6} if search is search_evolution else {}
    search(problem, score, num_evaluations=60, **options)
    assert len(set(asked)) == len(asked) == 60


def test_opponents_use_their_budget_and_draw_anew_at_each():
    seen = {}
    for amount in ("60%", "70%"):
        problem = Problem(SPACE, [Budget(MACS, amount)])
        result = search_random(problem, AdditiveUtility(SPACE, seed=4).loss, num_evaluations=40)
        seen[amount] = [step.costs[0] for step in result.trace]
        assert np.mean(seen[amount]) > 0.75 * problem.budgets[0].limit
    assert set(seen["60%"]).isdisjoint(seen["70%"][:3])


def test_the_soft_penalty_misses_in_both_directions():
    problem = Problem(SPACE, [Budget(MACS, "55%")])
    objective = AdditiveUtility(SPACE, seed=4)
    costs = {}
    for weight in (0.0, 1.0, 1e3):
        result = search_penalty(problem, objective, num_evaluations=300, weight=weight)
        costs[weight] = result.costs["macs"]
        assert len(result.trace) == 299
    assert costs[0.0] > problem.budgets[0].limit  # no weight: as if there were no budget
    assert costs[1e3] < costs[0.0]


def test_seeds():
    objective = AdditiveUtility(SPACE, seed=0)
    for search in (search_random, search_evolution):
        first, again, other = (
            search(PROBLEM, objective.loss, num_evaluations=80, seed=s) for s in (1, 1, 2)
        )
        assert first.trace == again.trace
        assert first.trace != other.trace


def test_changes_are_of_one_thing():
    network = SPACE.sample(np.random.default_rng(0))
    stages = [list(indices) for indices in network.indices]
    changed = {(s, tuple(blocks)) for s, blocks in baselines.changed_stages(SPACE, stages)}
    assert len(changed) == 11 * sum(network.depths) + 2 * 3
    assert not changed & set(enumerate(map(tuple, stages)))


def test_changes_always_fit():
    rng = np.random.default_rng(0)
    first, second = (baselines.sample_fitting(PROBLEM, rng) for _ in range(2))
    for _ in range(50):
        first = baselines.mutate(PROBLEM, first, 0.3, rng)
        second = baselines.cross(PROBLEM, first, second, rng)
        assert PROBLEM.fits_discrete(first)
        assert PROBLEM.fits_discrete(second)


def test_uniform_networks_are_every_depth_with_every_choice():
    networks = baselines.uniform_networks(SPACE)
    assert len(networks) == len(set(networks)) == 3 * 12
    assert {SPACE.lightest, SPACE.heaviest} <= set(networks)
    for network in networks:
        (blocks,) = {blocks for stage in network.stages for blocks in stage}
        assert blocks in SPACE.stages[0].choices


def test_a_stage_with_one_depth_keeps_it_in_uniform_networks():
    lite = hc.SearchSpace.preset("lite")
    networks = baselines.uniform_networks(lite)
    assert len(networks) == 3 * 6
    assert {network.depths for network in networks} == {(d,) * 5 + (1,) for d in (2, 3, 4)}


@pytest.mark.parametrize("seed", range(10))
def test_the_dearest_uniform_networks_fit(seed):
    problem = stress.random_problem(np.random.default_rng(seed))
    everything = baselines.uniform_networks(problem.space)
    dearest = baselines.dearest_uniform(problem, 3)
    rest = [n for n in everything if n not in dearest and problem.fits_discrete(n)]
    assert not any(stress.network_exceeds(problem, network) for network in dearest)
    assert len(dearest) == min(3, len(dearest) + len(rest))
    least = min(map(problem.used_share, dearest), default=0.0)
    assert all(problem.used_share(network) <= least for network in rest)


@pytest.mark.parametrize("search", [search_random, search_evolution, search_penalty])
def test_what_is_no_number_stops_a_search(search):
    objective = AdditiveUtility(SPACE, seed=0)

    def broken(asked):
        if search is not search_penalty:
            return float("nan")
        return dataclasses.replace(objective(asked), value=float("nan"))

    with pytest.raises(FloatingPointError, match="step 0"):
        search(PROBLEM, broken, num_evaluations=5)


def test_a_population_that_cannot_breed_is_refused():
    objective = AdditiveUtility(SPACE, seed=0)
    for arguments in ({"population": 0}, {"population": -3}, {"mutation_rate": 2.0}):
        with pytest.raises(InvalidArgumentError, match="expected a population of at least 2"):
            search_evolution(PROBLEM, objective.loss, num_evaluations=5, **arguments)
