"""Projections: the sequential one always fits and keeps most credit; the paper's need not fit."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import hardcorenas as hc
import stress
from hardcorenas.resources import AdditiveTable, Budget, Provenance
from hardcorenas.search import projection
from hardcorenas.search.bcsfw import balanced_point, search_bcsfw
from hardcorenas.search.knapsack import NothingFitsError
from hardcorenas.search.point import ONE, RelaxedPoint, point_of
from hardcorenas.search.problem import Problem
from hardcorenas.search.projection import METHODS, project

STAGE = hc.Stage(8, 1, "relu", (1, 2), (2, 3, 4), (3,), (False,))
SMALL = hc.SearchSpace("small", 8, 1, 2, hc.Stem(8), (STAGE, STAGE), hc.Head(8))


def small_problem(rng, num_budgets=1):
    provenance = Provenance("counted", 8)
    budgets = []
    witness = SMALL.sample(rng)
    for _ in range(num_budgets):
        costs = tuple(
            tuple(tuple(int(c) for c in rng.integers(1, 100, 3)) for _ in range(2))
            for _ in range(2)
        )
        table = AdditiveTable(SMALL, "latency", "ns", 7, costs, provenance)
        limit = int(rng.integers(table.cheapest_cost, table.dearest_cost + 1))
        if num_budgets > 1:
            limit = max(limit, table.cost(witness))
        budgets.append(Budget(table, f"{limit}ns"))
    return Problem(SMALL, budgets)


def searched_point(problem, rng):
    objective = stress.RandomGradient(problem, rng)
    return search_bcsfw(problem, objective, num_evaluations=8, seed=int(rng.integers(100))).point


def log(share):
    return math.log(share) if share > 0 else -1e4


def probability(point, architecture):
    """The logarithm of how likely a point makes an architecture, impossible parts counted."""
    total = 0.0
    for s, (depth, indices) in enumerate(
        zip(architecture.depths, architecture.indices, strict=True)
    ):
        total += log(point.beta_shares[s, STAGE.depths.index(depth)])
        total += sum(log(point.alpha_shares[2 * s + b, c]) for b, c in enumerate(indices))
    return total


@pytest.mark.parametrize("num_budgets", [1, 2])
@pytest.mark.parametrize("seed", range(25))
def test_joint_is_the_most_probable_network_that_fits(seed, num_budgets):
    rng = np.random.default_rng(seed)
    problem = small_problem(rng, num_budgets)
    point = searched_point(problem, rng)
    found = project(problem, point, "joint")
    best = max(probability(point, a) for a in SMALL.enumerate() if problem.fits_discrete(a))
    assert found.fits
    assert probability(point, found.architecture) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("seed", range(25))
def test_exact_keeps_most_credit_block_by_block(seed):
    """By brute force: the best α against β*, then the best β against that α."""
    rng = np.random.default_rng(seed)
    problem = small_problem(rng)
    point = searched_point(problem, rng)
    found = project(problem, point, "exact")
    assert (found.fits, found.method, found.thinned) == (True, "exact", False)

    def credit(rows, picked):
        return sum(rows[g, c] for g, c in enumerate(picked))

    def alpha_point(picked):
        alpha = np.zeros((4, 3), np.int64)
        alpha[range(4), picked] = ONE
        return alpha

    fitting = [
        picked
        for picked in itertools.product(range(3), repeat=4)
        if problem.fits(RelaxedPoint(alpha_point(picked), point.beta))
    ]
    best_alpha = max(credit(point.alpha_shares, picked) for picked in fitting)
    candidates = [p for p in fitting if credit(point.alpha_shares, p) >= best_alpha - 1e-12]
    allowed = set()
    for picked in candidates:  # several may keep the same credit
        networks = [
            (depths, problem.architecture(picked, depths))
            for depths in itertools.product(range(2), repeat=2)
        ]
        fit = [(d, a) for d, a in networks if problem.fits_discrete(a)]
        best_beta = max(credit(point.beta_shares, d) for d, _ in fit)
        allowed |= {a for d, a in fit if credit(point.beta_shares, d) >= best_beta - 1e-12}
    assert found.architecture in allowed


@pytest.mark.parametrize("method", METHODS)
def test_a_certain_point_is_its_own_projection(method):
    space = hc.SearchSpace.preset("rgb32")
    table = hc.count(space, "macs")
    architecture = space.sample(np.random.default_rng(0))
    problem = Problem(space, [Budget(table, table.cost(architecture))])
    found = project(problem, point_of(space, architecture), method)
    assert found.architecture == architecture
    assert found.credit == 1.0
    assert found.costs == {"macs": table.cost(architecture)}


def test_without_budgets_all_agree_with_argmax():
    problem = Problem(SMALL, [])
    point = searched_point(problem, np.random.default_rng(1))
    networks = {project(problem, point, method).architecture for method in METHODS}
    assert len(networks) == 1


def test_argmax_and_the_papers_programs_break_budgets_and_ours_do_not():
    broken = dict.fromkeys(METHODS, 0)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        problem = small_problem(rng)
        point = searched_point(problem, rng)
        for method in METHODS:
            found = project(problem, point, method)
            broken[method] += not found.fits
            assert found.fits == (not stress.network_exceeds(problem, found.architecture))
    assert broken["exact"] == broken["greedy"] == broken["joint"] == 0
    assert broken["argmax"] > 0
    assert broken["relaxed"] > 0


def test_the_fallback_is_taken_and_says_so(monkeypatch):
    def nothing(_items):
        raise NothingFitsError

    monkeypatch.setattr(projection, "solve_items", nothing)
    monkeypatch.setattr(projection, "solve_items_greedily", nothing)
    rng = np.random.default_rng(3)
    problem = small_problem(rng, num_budgets=2)
    point = balanced_point(problem)
    for method in ("exact", "greedy"):
        found = project(problem, point, method)
        assert found.method == "joint"
        assert found.fits


def test_an_unknown_method_is_refused():
    problem = Problem(SMALL, [])
    with pytest.raises(ValueError, match="method: expected one of exact, greedy"):
        project(problem, balanced_point(problem), "best")
