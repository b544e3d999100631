"""Local search: only networks that fit, never worse than it began, and it ends."""

from __future__ import annotations

import itertools
from zlib import crc32

import numpy as np
import pytest

import hardcorenas as hc
import stress
from hardcorenas.resources import Budget
from hardcorenas.search import baselines
from hardcorenas.search.local import promising_neighbours, search_locally
from hardcorenas.search.point import point_of
from hardcorenas.search.problem import Problem
from synthetic import AdditiveUtility

SPACE = hc.SearchSpace(
    "small",
    8,
    1,
    2,
    hc.Stem(8),
    (
        hc.Stage(8, 1, "relu", (1, 2), (2, 3), (3,), (False, True)),
        hc.Stage(8, 2, "relu", (1, 2, 3), (2, 4), (3,), (False,)),
        hc.Stage(16, 1, "relu", (2,), (2, 3), (3, 5), (False,)),
    ),
    hc.Head(8),
)
MACS, PARAMS, MEMORY = (hc.count(SPACE, resource) for resource in ("macs", "params", "memory"))
EVERYTHING = list(SPACE.enumerate())


def flat(problem):
    """A gradient that says nothing."""
    return np.zeros(problem.shape[0] * problem.shape[1] + int(np.prod(problem.depth_shape)))


def changed_stages(before, after):
    """Numbers of the stages that differ, checked to differ in one choice or in depth alone."""
    changed = []
    pairs = zip(before.indices, after.indices, strict=True)
    for number, (old, new) in enumerate(pairs):
        if old == new:
            continue
        changed.append(number)
        if len(old) == len(new):
            assert sum(a != b for a, b in zip(old, new, strict=True)) == 1
        else:
            common = min(len(old), len(new))
            assert old[:common] == new[:common]
    return changed


class Scores:
    """A score that remembers what it was asked."""

    def __init__(self, score):
        self.score = score
        self.asked = []

    def __call__(self, network):
        self.asked.append(network)
        return self.score(network)


def test_random_problems():
    """With up to three budgets, peaks among them, gradients of every size, scores of any kind."""
    improved = scored = 0
    for seed in range(150):
        rng = np.random.default_rng([seed, 1])
        problem = stress.random_problem(rng)
        answer = stress.RandomGradient(problem, rng)(None)
        gradient = problem.pad_gradient(answer.alpha, answer.beta)
        utility = AdditiveUtility(problem.space, seed=seed)
        drawn = [baselines.sample_fitting(problem, rng) for _ in range(2)]
        starts = [problem.lightest, *drawn, problem.lightest]
        scores = Scores(
            utility.loss if seed % 3 else lambda network: crc32(str(network).encode()) % 97
        )
        limit = int(rng.integers(len(set(starts)), 60))
        found = search_locally(problem, starts, scores, gradient=gradient, num_networks=limit)
        assert len(scores.asked) == len(set(scores.asked)) == found.num_networks <= limit
        assert not any(stress.network_exceeds(problem, network) for network in scores.asked)
        assert set(starts) <= set(scores.asked)
        assert found.first_score == scores.score(starts[0])
        assert found.score == scores.score(found.architecture)
        assert found.score == min(map(scores.score, scores.asked))
        improved += found.score < min(map(scores.score, starts))
        scored += found.num_networks
    assert improved > 75  # else this would test little
    assert scored > 2000


def test_neighbours_fit_and_differ_in_one_or_two_stages():
    numbers = {1: 0, 2: 0}
    for seed in range(80):
        rng = np.random.default_rng([seed, 2])
        problem = stress.random_problem(rng)
        answer = stress.RandomGradient(problem, rng)(None)
        gradient = problem.pad_gradient(answer.alpha, answer.beta)
        network = baselines.sample_fitting(problem, rng)
        for neighbour in itertools.islice(promising_neighbours(problem, network, gradient), 100):
            assert not stress.network_exceeds(problem, neighbour)
            numbers[len(changed_stages(network, neighbour))] += 1
    assert min(numbers.values()) > 500


def test_the_most_promising_come_first():
    """In the order of what a linear loss gains, which brute force knows."""
    problem = Problem(SPACE, [Budget(MACS, "70%"), Budget(PARAMS, "80%")])
    utility = AdditiveUtility(SPACE, seed=3)
    start = problem.lightest
    answer = utility(point_of(SPACE, start))
    # Of blocks that do not run a certain point says nothing; here the utilities themselves speak.
    alpha = [-row for rows in utility.utilities for row in rows]
    gradient = problem.pad_gradient(alpha, [np.zeros(len(row)) for row in answer.beta])
    losses = [utility.loss(n) for n in promising_neighbours(problem, start, gradient)]
    assert len(losses) > 50
    assert losses == pytest.approx(sorted(losses))


@pytest.mark.parametrize("seed", range(4))
def test_without_a_budget_that_binds_it_finds_the_optimum(seed):
    """A loss that is a sum has no local optimum but the best: uphill goes every way."""
    utility = AdditiveUtility(SPACE, seed=seed)
    best = min(map(utility.loss, EVERYTHING))
    for budgets in ([], [Budget(MACS, "100%")], [Budget(MEMORY, "100%")]):
        problem = Problem(SPACE, budgets)
        found = search_locally(
            problem, [SPACE.lightest], utility.loss, gradient=flat(problem), num_networks=10**6
        )
        assert found.score == pytest.approx(best)
        assert found.num_networks < 10**4


@pytest.mark.parametrize("share", [40, 50, 65, 80])
def test_under_budgets_it_ends_where_no_neighbour_is_better(share):
    """Neighbours by brute force: one or two choices changed, or a stage cut, anywhere."""
    optimal = 0
    for seed in range(3):
        utility = AdditiveUtility(SPACE, seed=seed)
        problem = Problem(SPACE, [Budget(MACS, f"{share}%"), Budget(PARAMS, "85%")])
        fitting = [n for n in EVERYTHING if not stress.network_exceeds(problem, n)]
        found = search_locally(
            problem, [problem.lightest], utility.loss, gradient=flat(problem), num_networks=10**6
        )
        for other in fitting:
            apart = [
                (old, new)
                for old, new in zip(found.architecture.indices, other.indices, strict=True)
                if old != new
            ]
            near = all(
                len(new) <= len(old) and sum(a != b for a, b in zip(old, new, strict=False)) <= 1
                for old, new in apart
            )
            one_thing = all(len(new) == len(old) or new == old[: len(new)] for old, new in apart)
            if len(apart) <= 2 and near and one_thing:
                assert utility.loss(other) >= found.score
        optimal += found.score == pytest.approx(min(map(utility.loss, fitting)))
    assert optimal >= 2


def test_a_gradient_that_knows_the_way_needs_fewer_networks():
    utility = AdditiveUtility(SPACE, seed=5)
    problem = Problem(SPACE, [])
    answer = [-row for rows in utility.utilities for row in rows]
    wise = problem.pad_gradient(answer, [np.zeros(len(s.depths)) for s in SPACE.stages])
    numbers = [
        search_locally(
            problem, [SPACE.lightest], utility.loss, gradient=gradient, num_networks=10**6
        ).num_networks
        for gradient in (wise, flat(problem), -wise)
    ]
    assert numbers[0] < min(numbers[1:])


@pytest.mark.parametrize("table", [MACS, PARAMS], ids=["macs", "params"])
def test_at_the_exact_minimum_there_is_nowhere_to_go(table):
    problem = Problem(SPACE, [Budget(table, str(table.cheapest_cost))])
    assert list(promising_neighbours(problem, SPACE.lightest, flat(problem))) == []
    scores = Scores(lambda network: 1.0)
    found = search_locally(
        problem, [SPACE.lightest], scores, gradient=flat(problem), num_networks=50
    )
    assert scores.asked == [found.architecture] == [SPACE.lightest]
    assert found.num_networks == 1


def test_only_peak_memory():
    limit = (MEMORY.cheapest_cost + MEMORY.dearest_cost) // 2
    problem = Problem(SPACE, [Budget(MEMORY, f"{limit}B")])
    assert not problem.additive
    utility = AdditiveUtility(SPACE, seed=1)
    found = search_locally(
        problem, [problem.lightest], utility.loss, gradient=flat(problem), num_networks=10**6
    )
    fitting = [n for n in EVERYTHING if not stress.network_exceeds(problem, n)]
    assert len(fitting) < len(EVERYTHING)
    assert MEMORY.cost(found.architecture) <= limit
    assert found.score == pytest.approx(min(map(utility.loss, fitting)))


def test_a_score_that_is_no_number_stops_it():
    problem = Problem(SPACE, [])
    with pytest.raises(FloatingPointError, match=r"step 0: the score of a network is nan"):
        search_locally(
            problem,
            [SPACE.lightest],
            lambda network: float("nan"),
            gradient=flat(problem),
            num_networks=9,
        )


@pytest.mark.parametrize("limit", [1, 2])
def test_no_more_networks_than_allowed_though_there_are_more_starts(limit):
    problem = Problem(SPACE, [])
    rng = np.random.default_rng(0)
    starts = [SPACE.sample(rng) for _ in range(3)]
    assert len(set(starts)) == 3
    scores = Scores(AdditiveUtility(SPACE, seed=0).loss)
    found = search_locally(problem, starts, scores, gradient=flat(problem), num_networks=limit)
    assert len(scores.asked) == found.num_networks == limit


def test_a_space_of_one_network():
    stage = hc.Stage(8, 1, "relu", (2,), (2,), (3,), (False,))
    space = hc.SearchSpace("one", 8, 1, 2, hc.Stem(8), (stage,), hc.Head(8))
    problem = Problem(space, [Budget(hc.count(space, "macs"), "100%")])
    found = search_locally(
        problem, [space.lightest], lambda network: 1.0, gradient=flat(problem), num_networks=9
    )
    assert (found.architecture, found.num_networks) == (space.lightest, 1)
