"""Initial points: feasible to the last unit, and as balanced as an independent solver finds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

import hardcorenas as hc
from hardcorenas.resources import Budget
from hardcorenas.search.bcsfw import balanced_point, lightest_point
from hardcorenas.search.point import ONE
from hardcorenas.search.problem import Problem
from stress import exceeds, random_problem

SPACE = hc.SearchSpace.preset("gray28")
MACS = hc.count(SPACE, "macs")


def roughness(rows):
    return float(np.sum(np.diff(rows, axis=1) ** 2))


def test_with_room_to_spare_everything_is_equally_likely():
    point = balanced_point(Problem(SPACE, [Budget(MACS, "100%")]))
    assert np.allclose(point.alpha_shares, 1 / 12, atol=1e-6)
    assert np.allclose(point.beta_shares, 1 / 3, atol=1e-6)


def test_at_the_exact_minimum_only_the_lightest_is_left():
    problem = Problem(SPACE, [Budget(MACS, MACS.cheapest_cost)])
    for point in (balanced_point(problem), lightest_point(problem)):
        assert problem.fits(point)
        assert problem.exact_cost(point, 0) == (MACS.cheapest_cost - MACS.base) * ONE**2
        assert np.array_equal(point.beta[:, 0], [ONE] * 3)


@pytest.mark.parametrize("share", [20, 35, 50, 65, 80])
def test_every_budget_is_kept_and_used(share):
    problem = Problem(SPACE, [Budget(MACS, f"{share}%")])
    point = balanced_point(problem)
    assert problem.fits(point)
    assert not exceeds(problem, point)
    (cost,) = problem.expected_costs(point)
    assert cost <= problem.budgets[0].limit
    # A tight budget binds; a loose one leaves the uniform point, which costs less.
    assert cost == pytest.approx(problem.budgets[0].limit, rel=1e-4) or np.allclose(
        point.beta_shares, 1 / 3, atol=1e-6
    )


@pytest.mark.parametrize("share", [30, 40, 50])
def test_each_program_is_solved_to_its_optimum(share):
    """At the fixed point, neither block can be smoother given the other; scipy agrees."""
    problem = Problem(SPACE, [Budget(MACS, f"{share}%")])
    point = balanced_point(problem, num_rounds=1)
    polytope = problem.alpha_polytope(point)
    costs = polytope.costs[0].astype(float) / ONE
    order = np.argsort(costs, axis=1, kind="stable")
    found = np.take_along_axis(point.alpha_shares, order, 1)
    costs = np.take_along_axis(costs, order, 1)
    shape = found.shape
    sums = np.kron(np.eye(shape[0]), np.ones(shape[1]))
    limit = polytope.limits[0] / ONE
    solved = minimize(
        lambda x: roughness(x.reshape(shape)),
        np.full(found.size, 1 / shape[1]),
        method="SLSQP",
        bounds=[(0, 1)] * found.size,
        constraints=[
            LinearConstraint(sums, 1, 1),
            LinearConstraint(costs.reshape(1, -1) / limit, ub=1),
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert solved.success
    assert roughness(found) == pytest.approx(solved.fun, rel=1e-3, abs=1e-5)


def test_dear_choices_are_never_likelier_than_cheap_ones():
    """Neighbours are by the block's own cost, not by index: the chain falls along the cost."""
    problem = Problem(SPACE, [Budget(MACS, "35%")])
    point = balanced_point(problem)
    for row, costs in zip(point.alpha_shares, problem.alpha_polytope(point).costs[0], strict=True):
        falling = row[np.argsort(costs, kind="stable")]
        assert np.all(np.diff(falling) <= 1e-6)


def test_depth_comes_first():
    """β is spread before α, so that as many blocks as possible take part."""
    point = balanced_point(Problem(SPACE, [Budget(MACS, "35%")]), num_rounds=1)
    assert np.allclose(point.beta_shares, 1 / 3, atol=1e-3)
    assert point.alpha_shares.max() > 0.15


# The last two leave the quadratic solver a set so thin that it cycles; it has to give up in time.
@pytest.mark.parametrize("seed", [*range(150), 22318, 22813])
def test_random_problems_start_feasible(seed):
    problem = random_problem(np.random.default_rng(seed))
    for point in (balanced_point(problem), lightest_point(problem)):
        assert not exceeds(problem, point)
